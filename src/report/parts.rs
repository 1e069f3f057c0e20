//! The numbers of a model: its core and the columns of its factors.

use std::fmt::Write;

use super::Context;
use super::chart::bars;
use super::heat_map::Heat;
use super::html::{counted, escape, grouped, number};
use crate::discover::{ConceptOptions, describe_concepts};
use crate::error::Result;
use crate::kernel::CoreKind;

use crate::simd::padded_len;
use crate::sort::{stable_sort_by, stable_sort_by_key};

/// How many slices of the core are shown, the largest.
const SLICES: usize = 16;

/// Modes of at most so many rows are shown row by row.
const SHOWN: usize = 40;

/// How many columns of a larger mode are shown, and the bars of each.
const COLUMNS: usize = 24;
const BINS: usize = 21;

impl Context<'_> {
    /// The root mean square of each column of a factor, over rows.
    fn sizes(&self, n: usize) -> Vec<f64> {
        let own = &self.model.modes()[n];
        let mut squares = vec![0.0f64; own.factor.rank()];
        for row in 0..own.rows.len() {
            let add = |(s, &u): (&mut f64, &f32)| *s += f64::from(u) * f64::from(u);
            squares.iter_mut().zip(own.factor.row(row)).for_each(add);
        }
        let rows = own.rows.len().max(1) as f64;
        squares.iter().map(|s| (s / rows).sqrt()).collect()
    }

    /// The core at columns of root mean square 1: a number is then about what it adds to a prediction.
    pub(super) fn core(&self) -> Result<String> {
        let (model, shape) = (self.model, self.model.shape());
        let sizes: Vec<Vec<f64>> = (0..model.order()).map(|n| self.sizes(n)).collect();
        let about = "Numbers are those at columns of root mean square 1: about what a combination of columns adds to a prediction.";
        if shape.kind == CoreKind::Diagonal {
            let each = (0..shape.ranks[0]).map(|j| {
                let size: f64 = sizes.iter().map(|s| s[j]).product();
                (f64::from(model.core()[j]) * size).abs()
            });
            let each: Vec<f64> = each.collect();
            let most = each.iter().fold(0.0f64, |m, x| m.max(*x));
            // Bars count whole numbers; shares of the largest in thousandths.
            let whole = each.iter().enumerate();
            let whole = whole.map(|(j, x)| {
                let share = if most > 0.0 { 1000.0 * x / most } else { 0.0 };
                ((j + 1).to_string(), share.round() as u64)
            });
            let drawn = bars(
                "Sizes of the components",
                "component",
                &whole.collect::<Vec<_>>(),
            );
            return Ok(format!(
                "<p>The core of a CP model is a diagonal: column <i>j</i> of every mode goes with column <i>j</i> of the others. {about} \
                 The largest is {}.</p>\n<figure>{drawn}<figcaption>shares of the largest; numbers are thousandths of it</figcaption></figure>\n",
                number(most)
            ));
        }
        // Rows and columns of slices are the two modes with the largest ranks.
        let mut modes: Vec<usize> = (0..model.order()).collect();
        stable_sort_by_key(&mut modes, &|&n| std::cmp::Reverse(shape.ranks[n]));
        let mut across = [modes[0], modes[1]];
        across.sort_unstable();
        let others: Vec<usize> = (0..model.order()).filter(|n| !across.contains(n)).collect();
        let slices: usize = others.iter().map(|&n| shape.ranks[n]).product();
        let (tall, wide) = (shape.ranks[across[0]], shape.ranks[across[1]]);
        let mut numbers = vec![0.0f64; slices * tall * wide];
        let mut index = vec![0usize; model.order()];
        let last = shape.ranks[model.order() - 1];
        for line in model.core().chunks_exact(padded_len(last)) {
            for (j, &g) in line[..last].iter().enumerate() {
                index[model.order() - 1] = j;
                let slice = others
                    .iter()
                    .fold(0, |at, &n| at * shape.ranks[n] + index[n]);
                let scale: f64 = sizes.iter().zip(&index).map(|(s, &j)| s[j]).product();
                numbers[(slice * tall + index[across[0]]) * wide + index[across[1]]] =
                    f64::from(g) * scale;
            }
            // The next line: the last mode but one counts fastest.
            for n in (0..model.order() - 1).rev() {
                index[n] += 1;
                if index[n] < shape.ranks[n] {
                    break;
                }
                index[n] = 0;
            }
        }
        let full = numbers.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let mut order: Vec<(f64, usize)> = numbers
            .chunks_exact(tall * wide)
            .map(|s| s.iter().map(|x| x * x).sum::<f64>().sqrt())
            .zip(0..)
            .collect();
        stable_sort_by(&mut order, &|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut out = format!(
            "<p>{} numbers, of which each picture is a slice: columns of {} down, of {} across. {about} Red is above 0, blue below; \
             the full colour is {}.</p>\n<div class=\"small\">\n",
            shape
                .ranks
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(" × "),
            self.mode(across[0]),
            self.mode(across[1]),
            number(full)
        );
        for &(size, slice) in order.iter().take(SLICES) {
            let mut rest = slice;
            let mut place: Vec<String> = Vec::new();
            for &n in others.iter().rev() {
                place.push(format!(
                    "column {} of {}",
                    rest % shape.ranks[n] + 1,
                    self.mode(n)
                ));
                rest /= shape.ranks[n];
            }
            place.reverse();
            let name = match place.is_empty() {
                true => "the whole core".into(),
                false => place.join(", "),
            };
            let heat = Heat {
                title: format!("Slice of the core: {name}"),
                columns: wide,
                numbers: &numbers[slice * tall * wide..(slice + 1) * tall * wide],
                full,
                rows: Vec::new(),
            };
            let _ = writeln!(
                out,
                "<figure>{}<figcaption>{name}: norm {}</figcaption></figure>",
                heat.draw().trim_end(),
                number(size)
            );
        }
        out += "</div>\n";
        if slices > SLICES {
            let _ = writeln!(
                out,
                "<p class=\"note\">The {SLICES} largest of {} slices.</p>",
                grouped(slices as u64)
            );
        }
        Ok(out)
    }

    /// Row by row where there are few rows, else how the numbers of each column are distributed.
    pub(super) fn factors(&self) -> Result<String> {
        let mut out = String::from(
            "<p>Columns over their root mean square, so that 1 is a usual size. Signs mean nothing by themselves.</p>\n",
        );
        for (n, own) in self.model.modes().iter().enumerate() {
            let rank = own.factor.rank();
            let sizes = self.sizes(n);
            let over = |row: usize, j: usize| match sizes[j] > 0.0 {
                true => f64::from(own.factor.row(row)[j]) / sizes[j],
                false => 0.0,
            };
            let rows = own.rows.len();
            let _ = writeln!(
                out,
                "<h3>{}: {} of {}</h3>",
                first_upper(&self.mode(n)),
                counted(rank as u64, "column", "columns"),
                counted(rows as u64, "row", "rows")
            );
            // The strongest first: columns that add nothing look like noise.
            let how = ConceptOptions {
                top: 0,
                ..ConceptOptions::new(n)
            };
            let found = describe_concepts(self.model, &how)?.concepts;
            let columns: Vec<usize> = found.iter().map(|c| c.column).take(COLUMNS).collect();
            let more = match rank > COLUMNS {
                true => format!("The {COLUMNS} strongest of {rank} columns, the strongest first."),
                false => "The strongest column comes first.".into(),
            };
            if rows <= SHOWN {
                let numbers: Vec<f64> = (0..rows)
                    .flat_map(|row| columns.iter().map(move |&j| (row, j)))
                    .map(|(row, j)| over(row, j))
                    .collect();
                let names = own.rows.indices();
                let heat = Heat {
                    title: format!("Columns of mode {}", n + 1),
                    columns: columns.len(),
                    numbers: &numbers,
                    full: numbers.iter().fold(0.0, |m, x| x.abs().max(m)),
                    rows: names
                        .map(|i| self.options.names.display_name(n, i))
                        .collect(),
                };
                let _ = writeln!(
                    out,
                    "<figure>{}<figcaption>rows down, columns across; the full colour is the largest number. {more}</figcaption></figure>",
                    heat.draw().trim_end()
                );
                continue;
            }
            out += "<div class=\"small\">\n";
            for j in columns {
                let mut bins = [0u64; BINS];
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                for row in 0..rows {
                    let x = over(row, j);
                    (low, high) = (low.min(x), high.max(x));
                    let bin = ((x + 3.0) / 6.0 * BINS as f64).floor();
                    bins[bin.clamp(0.0, (BINS - 1) as f64) as usize] += 1;
                }
                let _ = writeln!(
                    out,
                    "<figure>{}<figcaption>column {}: {} to {}</figcaption></figure>",
                    spark(&bins, &format!("Column {} of mode {}", j + 1, n + 1)),
                    j + 1,
                    number((low * 100.0).round() / 100.0),
                    number((high * 100.0).round() / 100.0)
                );
            }
            out += "</div>\n";
            let _ = writeln!(
                out,
                "<p class=\"note\">How many rows have which number, from −3 to 3; those further out are at the ends. {more}</p>"
            );
        }
        Ok(out)
    }
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// A small picture of a distribution, with 0 marked.
fn spark(bins: &[u64], title: &str) -> String {
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let title = escape(title);
    let mut path = String::from("M0 40");
    for (k, &n) in bins.iter().enumerate() {
        let _ = write!(
            path,
            "V{:.1}H{}",
            40.0 - 36.0 * n as f64 / most,
            5 * (k + 1)
        );
    }
    let width = 5 * bins.len();
    let middle = width as f64 / 2.0;
    format!(
        "<svg viewBox=\"0 0 {width} 41\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>\
         <path class=\"bar\" d=\"{path}V40z\"/><path class=\"axis\" d=\"M0 40.5H{width}M{middle} 0V40\"/></svg>"
    )
}
