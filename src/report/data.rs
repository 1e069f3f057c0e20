//! What was fitted to: sizes, values, how long rows are.

use std::fmt::Write;

use super::chart::bars;
use super::html::{counted, cut, facts, grouped, number, percent};
use super::{Context, TestErrors};
use crate::error::Result;
use crate::format::{CooView, summarize};

/// Bars of the distribution of values.
const BINS: usize = 24;

/// How many of the longest rows are listed.
const LONGEST: usize = 5;

impl Context<'_> {
    pub(super) fn data(&self, errors: Option<&TestErrors>) -> Result<String> {
        let model = self.model;
        let count: u64 = model.modes()[0].counts.iter().sum();
        let (low, high) = model.range();
        let mut rows = vec![(
            "Training entries",
            format!(
                "{}, values {} to {}",
                grouped(count),
                number(low),
                number(high)
            ),
        )];
        let summary = match &self.options.data {
            Some(view) => Some(summarize(view, self.monitor)?),
            None => None,
        };
        let mut pictures = Vec::new();
        if let (Some(s), Some(view)) = (&summary, &self.options.data) {
            rows.push(("Filled", format!("{} of all cells", share(s.density))));
            if let Some(v) = s.values {
                rows.push((
                    "Values",
                    format!("mean {}, deviation {}", number(v.mean), number(v.deviation)),
                ));
                let drawn = bars("Values", "value", &values(view, (v.min, v.max)));
                pictures.push(drawn);
            }
        }
        if let (Some(test), Some(e)) = (&self.options.test, errors) {
            rows.push(("Test entries", grouped(test.len() as u64)));
            let clipped = &e.model.clipped;
            rows.push((
                "Errors on them",
                format!(
                    "RMSE {}, mean absolute error {} (clipped to the range of the training values); RMSE {} not clipped",
                    number(clipped.rmse),
                    number(clipped.mae),
                    number(e.model.unclipped.rmse)
                ),
            ));
            if e.mean.is_finite() && e.mean > 0.0 {
                let left = clipped.rmse / e.mean;
                rows.push((
                    "The mean alone",
                    format!(
                        "RMSE {}; the model leaves {} of it",
                        number(e.mean),
                        percent(left)
                    ),
                ));
            }
            let cold: Vec<String> = (0..model.order()).map(|n| self.cold(test, n)).collect();
            rows.push(("Test entries in rows never trained", cold.join(", ")));
        }
        for (m, matrix) in model.matrices().iter().enumerate() {
            let file = self
                .options
                .matrices
                .get(m)
                .map(|(_, view)| view.len() as u64);
            let entries = file.map_or(String::new(), |n| {
                format!(", {}", counted(n, "entry", "entries"))
            });
            let columns = match matrix.kind.is_graph() {
                true => String::new(),
                false => format!(
                    " with {}",
                    counted(matrix.columns.len() as u64, "column", "columns")
                ),
            };
            let text = format!(
                "{}{columns} on {}{entries}, weight {}",
                matrix.kind,
                self.mode(matrix.mode),
                number(matrix.weight)
            );
            rows.push(("Coupled matrix", format!("{}: {text}", m + 1)));
        }
        let mut out = facts(&rows);
        for (n, mode) in model.modes().iter().enumerate() {
            let lengths = lengths(&mode.counts);
            let name = self.options.modes.get(n).filter(|m| !m.is_empty());
            let name = name.map_or_else(|| format!("mode {}", n + 1), |m| cut(m, 30));
            let title = format!("Entries of a row: {name}");
            pictures.push(bars(
                &title,
                "training entries (rows with so many)",
                &lengths,
            ));
        }
        let pictures: String = pictures
            .iter()
            .filter(|p| !p.is_empty())
            .map(|p| format!("<figure>{p}</figure>\n"))
            .collect();
        let _ = writeln!(
            out,
            "<h3>Distributions</h3>\n<div class=\"grid2\">{pictures}</div>"
        );
        out += "<h3>Modes</h3>\n<div class=\"scroll\"><table><thead><tr><th>Mode</th><th>Rows in use</th><th>Entries of a row: median, mean</th><th>The longest rows</th></tr></thead><tbody>\n";
        for (n, mode) in model.modes().iter().enumerate() {
            let (median, longest) = (median(&mode.counts), self.longest(n));
            let mean = count as f64 / (mode.rows.len().max(1)) as f64;
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{} of {}</td><td>{}, {}</td><td>{longest}</td></tr>",
                self.mode(n),
                grouped(mode.rows.len() as u64),
                grouped(mode.rows.dim()),
                grouped(median),
                number(mean)
            );
        }
        Ok(out + "</tbody></table></div>\n")
    }

    /// How many test entries are in rows of a mode that had no training entry.
    fn cold(&self, test: &CooView<'_>, n: usize) -> String {
        let own = &self.model.modes()[n];
        let trained = |i: u32| {
            own.rows
                .compact(i)
                .is_some_and(|r| own.counts[r as usize] > 0)
        };
        let cold = test.column(n).iter().filter(|&&i| !trained(i)).count();
        format!(
            "{}: {}",
            self.mode(n),
            share(cold as f64 / test.len().max(1) as f64)
        )
    }

    fn longest(&self, n: usize) -> String {
        let own = &self.model.modes()[n];
        let mut rows: Vec<(u64, u32)> = Vec::new();
        for (index, &count) in own.rows.indices().zip(&own.counts) {
            let at = rows.partition_point(|r| r.0 >= count);
            if at < LONGEST {
                rows.insert(at, (count, index));
                rows.truncate(LONGEST);
            }
        }
        let each = rows
            .iter()
            .map(|&(count, index)| format!("{} ({})", self.row(n, index), grouped(count)));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// A share for which 0 is 0.
fn share(x: f64) -> String {
    match x {
        0.0 => "none".into(),
        x if x < 1e-3 => format!("one in {}", number(1.0 / x)),
        x => percent(x),
    }
}

fn median(counts: &[u64]) -> u64 {
    let mut sorted = counts.to_vec();
    let middle = sorted.len() / 2;
    match sorted.is_empty() {
        true => 0,
        false => *sorted.select_nth_unstable(middle).1,
    }
}

/// How many rows have 1, 2 to 3, 4 to 7, ... entries, and none.
fn lengths(counts: &[u64]) -> Vec<(String, u64)> {
    let mut bins: Vec<u64> = Vec::new();
    let mut none = 0;
    for &count in counts {
        match count.checked_ilog2() {
            None => none += 1,
            Some(bin) => {
                let bin = bin as usize;
                bins.resize(bins.len().max(bin + 1), 0);
                bins[bin] += 1;
            }
        }
    }
    let first = bins.iter().position(|&rows| rows > 0).unwrap_or(0);
    let named = bins.iter().enumerate().skip(first).map(|(k, &rows)| {
        let (low, high) = (1u64 << k, (1u64 << k) * 2 - 1);
        let name = match k {
            0 => "1".into(),
            1..=6 => format!("{low}–{high}"),
            7..=9 => format!("{low}+"),
            10..=19 => format!("{}K+", low >> 10),
            _ => format!("{}M+", low >> 20),
        };
        (name, rows)
    });
    let zero = (none > 0).then(|| ("none".to_string(), none));
    zero.into_iter().chain(named).collect()
}

/// How many values are where: one bar for each if there are few different ones.
fn values(view: &CooView<'_>, (low, high): (f64, f64)) -> Vec<(String, u64)> {
    let values = view.values();
    let mut different: Vec<(f64, u64)> = Vec::new();
    for i in 0..view.len() {
        let x = values.get(i);
        let at = different.partition_point(|d| d.0 < x);
        match different.get_mut(at).filter(|d| d.0 == x) {
            Some(d) => d.1 += 1,
            None => different.insert(at, (x, 1)),
        }
        if different.len() > BINS {
            break;
        }
    }
    if different.len() <= BINS {
        return different.iter().map(|(x, n)| (number(*x), *n)).collect();
    }
    let width = (high - low) / BINS as f64;
    let mut bins = [0u64; BINS];
    for i in 0..view.len() {
        let bin = ((values.get(i) - low) / width) as usize;
        bins[bin.min(BINS - 1)] += 1;
    }
    let bins = bins.iter().enumerate();
    bins.map(|(k, &n)| (number(low + k as f64 * width), n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;

    #[test]
    fn lengths_are_counted() {
        let found = lengths(&[0, 1, 1, 3, 2, 7, 1 << 12, (1 << 21) + 5]);
        let some: Vec<(&str, u64)> = found.iter().map(|(n, k)| (n.as_str(), *k)).collect();
        assert_eq!(some[..4], [("none", 1), ("1", 2), ("2–3", 2), ("4–7", 1)]);
        assert!(some.contains(&("4K+", 1)) && some.contains(&("2M+", 1)));
        assert_eq!(some.iter().map(|s| s.1).sum::<u64>(), 8);
        assert!(lengths(&[]).is_empty());
        assert_eq!(median(&[5, 1, 9]), 5);
        assert_eq!(median(&[]), 0);
    }

    #[test]
    fn values_are_counted() {
        let i = vec![0u32; 1000];
        let few: Vec<f64> = (0..1000).map(|k| f64::from(k % 3)).collect();
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        for (v, bars) in [(&few, 3), (&many, BINS)] {
            let view = CooView::new("t", &[1, 1], &[&i, &i], Values::F64(v)).unwrap();
            let found = values(&view, (v[0], v[999].max(2.0)));
            assert_eq!(found.len(), bars);
            assert_eq!(found.iter().map(|f| f.1).sum::<u64>(), 1000);
        }
    }
}
