//! The section on the data: sizes, values, errors on test entries and the lengths of rows.

use std::fmt::Write;

use s3cmtf::Result;
use s3cmtf::format::{CooView, summarize};

use super::bar_chart::BarChart;
use super::context::{PageContext, TestErrors};
use super::html::{
    count_noun, format_integer, format_percent, format_value, key_value_table, truncate,
};

/// The largest number of bars of the distribution of values.
const MAX_VALUE_BARS: usize = 24;

/// The number of listed rows with the most entries.
const LONGEST_ROWS: usize = 5;

impl PageContext<'_> {
    pub(super) fn data(&self, errors: Option<&TestErrors>) -> Result<String> {
        let model = self.model;
        let count: u64 = model.modes()[0].counts.iter().sum();
        let range = model.range();
        let mut rows = vec![(
            "Training entries",
            format!(
                "{}, values {} to {}",
                format_integer(count),
                format_value(range.min),
                format_value(range.max)
            ),
        )];
        let mut charts = Vec::new();
        if let Some(view) = &self.options.data {
            let summary = summarize(view, self.monitor)?;
            rows.push((
                "Density",
                format!("{} of all cells", format_fraction(summary.density)),
            ));
            if let Some(v) = summary.values {
                let text = format!(
                    "mean {}, standard deviation {}",
                    format_value(v.mean),
                    format_value(v.deviation)
                );
                rows.push(("Values", text));
                let chart = BarChart {
                    title: "Values",
                    x_label: "value",
                    bars: value_histogram(view, v.min, v.max),
                };
                charts.push(chart.draw());
            }
        }
        if let (Some(test), Some(errors)) = (&self.options.test, errors) {
            rows.extend(self.test_rows(test, errors));
        }
        for (m, matrix) in model.matrices().iter().enumerate() {
            let entries = self.options.matrices.get(m).map(|(_, view)| view.len());
            let entries = entries.map_or(String::new(), |n| {
                format!(", {}", count_noun(n as u64, "entry", "entries"))
            });
            let columns = if matrix.kind.is_graph() {
                String::new()
            } else {
                let count = matrix.columns.len() as u64;
                format!(" with {}", count_noun(count, "column", "columns"))
            };
            let text = format!(
                "{}{columns} on {}{entries}, weight {}",
                matrix.kind,
                self.mode_name(matrix.mode),
                format_value(matrix.weight)
            );
            rows.push(("Coupled matrix", format!("{}: {text}", m + 1)));
        }
        let mut out = key_value_table(&rows);
        for (n, mode) in model.modes().iter().enumerate() {
            let name = self.options.modes.get(n).filter(|m| !m.is_empty());
            let name = name.map_or_else(|| format!("mode {}", n + 1), |m| truncate(m, 30));
            let chart = BarChart {
                title: &format!("Entries per row: {name}"),
                x_label: "training entries of a row (bars count rows)",
                bars: length_histogram(&mode.counts),
            };
            charts.push(chart.draw());
        }
        let charts: String = charts
            .iter()
            .filter(|p| !p.is_empty())
            .map(|p| format!("<figure>{p}</figure>\n"))
            .collect();
        let _ = writeln!(
            out,
            "<h3>Distributions</h3>\n<div class=\"grid2\">{charts}</div>"
        );
        out += "<h3>Modes</h3>\n<div class=\"scroll\"><table><thead><tr><th>Mode</th><th>Rows in use</th><th>Entries per row: median, mean</th><th>Rows with the most entries</th></tr></thead><tbody>\n";
        for (n, mode) in model.modes().iter().enumerate() {
            let mean = count as f64 / (mode.rows.len().max(1)) as f64;
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td class=\"short\">{} of {}</td><td class=\"short\">{}, {}</td><td>{}</td></tr>",
                self.mode_name(n),
                format_integer(mode.rows.len() as u64),
                format_integer(mode.rows.dim()),
                format_integer(median(&mode.counts)),
                format_value(mean),
                self.longest_rows(n)
            );
        }
        Ok(out + "</tbody></table></div>\n")
    }

    /// Returns the rows of the table about the test entries.
    fn test_rows(&self, test: &CooView<'_>, errors: &TestErrors) -> Vec<(&'static str, String)> {
        let mut rows = vec![("Test entries", format_integer(test.len() as u64))];
        let clipped = &errors.model.clipped;
        rows.push((
            "Test errors",
            format!(
                "RMSE {}, mean absolute error {} (clipped to the range of the training values); RMSE {} not clipped",
                format_value(clipped.rmse),
                format_value(clipped.mae),
                format_value(errors.model.unclipped.rmse)
            ),
        ));
        if errors.mean_rmse.is_finite() && errors.mean_rmse > 0.0 {
            rows.push((
                "Training mean as the prediction",
                format!(
                    "RMSE {}; that of the model is {} of it",
                    format_value(errors.mean_rmse),
                    format_percent(clipped.rmse / errors.mean_rmse)
                ),
            ));
        }
        let cold: Vec<String> = (0..self.model.order())
            .map(|n| self.cold_start_fraction(test, n))
            .collect();
        rows.push(("Test entries of cold-start rows", cold.join(", ")));
        rows
    }

    /// Returns the fraction of the test entries in rows of a mode without training entries.
    fn cold_start_fraction(&self, test: &CooView<'_>, n: usize) -> String {
        let own = &self.model.modes()[n];
        let is_trained = |i: u32| {
            own.rows
                .compact(i)
                .is_some_and(|r| own.counts[r as usize] > 0)
        };
        let cold = test.column(n).iter().filter(|&&i| !is_trained(i)).count();
        format!(
            "{}: {}",
            self.mode_name(n),
            format_fraction(cold as f64 / test.len().max(1) as f64)
        )
    }

    /// Returns the rows of a mode with the most entries.
    fn longest_rows(&self, n: usize) -> String {
        let own = &self.model.modes()[n];
        let mut rows: Vec<(u64, u32)> = Vec::new();
        for (index, &count) in own.rows.indices().zip(own.counts.iter()) {
            let at = rows.partition_point(|r| r.0 >= count);
            if at < LONGEST_ROWS {
                rows.insert(at, (count, index));
                rows.truncate(LONGEST_ROWS);
            }
        }
        let names: Vec<String> = rows
            .iter()
            .map(|&(count, index)| {
                format!("{} ({})", self.row_name(n, index), format_integer(count))
            })
            .collect();
        names.join(", ")
    }
}

/// Formats a fraction; small ones as one in so many.
fn format_fraction(x: f64) -> String {
    match x {
        0.0 => "none".into(),
        x if x < 1e-3 => format!("one in {}", format_value(1.0 / x)),
        x => format_percent(x),
    }
}

/// Returns the (upper) median; 0 without counts.
fn median(counts: &[u64]) -> u64 {
    if counts.is_empty() {
        return 0;
    }
    let mut sorted = counts.to_vec();
    let middle = sorted.len() / 2;
    *sorted.select_nth_unstable(middle).1
}

/// Counts the rows with 0, 1, 2 to 3, 4 to 7, ... entries.
fn length_histogram(counts: &[u64]) -> Vec<(String, u64)> {
    let mut bins: Vec<u64> = Vec::new();
    let mut empty_rows = 0;
    for &count in counts {
        match count.checked_ilog2() {
            None => empty_rows += 1,
            Some(bin) => {
                let bin = bin as usize;
                bins.resize(bins.len().max(bin + 1), 0);
                bins[bin] += 1;
            }
        }
    }
    let first = bins.iter().position(|&rows| rows > 0).unwrap_or(0);
    let bars = bins.iter().enumerate().skip(first).map(|(k, &rows)| {
        let (low, high) = (1u64 << k, u64::MAX >> (63 - k));
        let label = match k {
            0 => "1".into(),
            1..=6 => format!("{low}–{high}"),
            7..=9 => format!("{low}+"),
            10..=19 => format!("{}K+", low >> 10),
            _ => format!("{}M+", low >> 20),
        };
        (label, rows)
    });
    let empty = (empty_rows > 0).then(|| ("none".to_string(), empty_rows));
    empty.into_iter().chain(bars).collect()
}

/// Returns the histogram of the values, which are between `low` and `high`. Few distinct values have one bar each.
fn value_histogram(view: &CooView<'_>, low: f64, high: f64) -> Vec<(String, u64)> {
    let values = view.values();
    let mut distinct: Vec<(f64, u64)> = Vec::new();
    for i in 0..view.len() {
        let x = values.get(i);
        let at = distinct.partition_point(|d| d.0 < x);
        match distinct.get_mut(at).filter(|d| d.0 == x) {
            Some(d) => d.1 += 1,
            None => distinct.insert(at, (x, 1)),
        }
        if distinct.len() > MAX_VALUE_BARS {
            break;
        }
    }
    if distinct.len() <= MAX_VALUE_BARS {
        return distinct
            .iter()
            .map(|(x, n)| (format_value(*x), *n))
            .collect();
    }
    let width = (high - low) / MAX_VALUE_BARS as f64;
    let mut bins = [0u64; MAX_VALUE_BARS];
    for i in 0..view.len() {
        let bin = ((values.get(i) - low) / width) as usize;
        bins[bin.min(MAX_VALUE_BARS - 1)] += 1;
    }
    let bins = bins.iter().enumerate();
    bins.map(|(k, &n)| (format_value(low + k as f64 * width), n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3cmtf::format::Values;

    #[test]
    fn rows_are_counted_by_powers_of_two_of_their_length() {
        let found = length_histogram(&[0, 1, 1, 3, 2, 7, 1 << 12, (1 << 21) + 5]);
        let some: Vec<(&str, u64)> = found.iter().map(|(n, k)| (n.as_str(), *k)).collect();
        assert_eq!(some[..4], [("none", 1), ("1", 2), ("2–3", 2), ("4–7", 1)]);
        assert!(some.contains(&("4K+", 1)) && some.contains(&("2M+", 1)));
        assert_eq!(some.iter().map(|s| s.1).sum::<u64>(), 8);
        assert!(length_histogram(&[]).is_empty());
        assert_eq!(median(&[5, 1, 9]), 5);
        assert_eq!(median(&[]), 0);
    }

    #[test]
    fn each_value_is_counted_in_one_bar() {
        let i = vec![0u32; 1000];
        let few: Vec<f64> = (0..1000).map(|k| f64::from(k % 3)).collect();
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        for (v, bars) in [(&few, 3), (&many, MAX_VALUE_BARS)] {
            let view = CooView::new("t", &[1, 1], &[&i, &i], Values::F64(v)).unwrap();
            let found = value_histogram(&view, v[0], v[999].max(2.0));
            assert_eq!(found.len(), bars);
            assert_eq!(found.iter().map(|f| f.1).sum::<u64>(), 1000);
        }
    }
}
