//! The sections on the parameters of a model: its core and the columns of its factors.

use std::fmt::Write;

use s3cmtf::Result;
use s3cmtf::discover::{ConceptOptions, describe_concepts};
use s3cmtf::kernel::CoreKind;
use s3cmtf::simd::padded_len;

use super::bar_chart::BarChart;
use super::context::PageContext;
use super::heat_map::HeatMap;
use super::html::{count_noun, escape, format_integer, format_value};

/// The largest number of slices of the core.
const MAX_SLICES: usize = 16;

/// The largest number of rows of a mode that is shown row by row.
const MAX_ROWS: usize = 40;

/// The largest number of columns of a factor.
const MAX_COLUMNS: usize = 24;

/// The number of bins of the histogram of a column.
const HISTOGRAM_BINS: usize = 21;

const CORE_SCALE_NOTE: &str = "Entries are scaled to factor columns of root mean square 1: each is about the contribution of one \
     combination of columns to a prediction.";

impl PageContext<'_> {
    /// Returns the root mean square of each column of a factor, over rows.
    fn column_rms(&self, n: usize) -> Vec<f64> {
        let own = &self.model.modes()[n];
        let mut squares = vec![0.0f64; own.factor.rank()];
        for row in 0..own.rows.len() {
            let add = |(s, &u): (&mut f64, &f32)| *s += f64::from(u) * f64::from(u);
            squares.iter_mut().zip(own.factor.row(row)).for_each(add);
        }
        let rows = own.rows.len().max(1) as f64;
        squares.iter().map(|s| (s / rows).sqrt()).collect()
    }

    /// Returns the section on the core. Its entries are scaled to factor columns of root mean square 1.
    pub(super) fn core(&self) -> String {
        let rms: Vec<Vec<f64>> = (0..self.model.order())
            .map(|n| self.column_rms(n))
            .collect();
        match self.model.shape().kind() {
            CoreKind::Diagonal => self.diagonal_core(&rms),
            CoreKind::Full => self.full_core(&rms),
        }
    }

    fn diagonal_core(&self, rms: &[Vec<f64>]) -> String {
        let model = self.model;
        let weights = (0..model.shape().ranks()[0]).map(|j| {
            let scale: f64 = rms.iter().map(|s| s[j]).product();
            (f64::from(model.core()[j]) * scale).abs()
        });
        let weights: Vec<f64> = weights.collect();
        let largest = weights.iter().fold(0.0f64, |m, x| m.max(*x));
        // Bars are whole numbers: thousandths of the largest weight.
        let bars = weights.iter().enumerate().map(|(j, x)| {
            let thousandths = if largest > 0.0 {
                1000.0 * x / largest
            } else {
                0.0
            };
            ((j + 1).to_string(), thousandths.round() as u64)
        });
        let drawn = BarChart {
            title: "Weights of the components",
            x_label: "component",
            bars: bars.collect(),
        }
        .draw();
        format!(
            "<p>The core of a CP model is hyper-diagonal: column <i>j</i> of each mode interacts only with column <i>j</i> of the others. \
             {CORE_SCALE_NOTE} The largest is {}.</p>\n<figure>{drawn}<figcaption>in thousandths of the largest</figcaption></figure>\n",
            format_value(largest)
        )
    }

    fn full_core(&self, rms: &[Vec<f64>]) -> String {
        let (model, shape) = (self.model, self.model.shape());
        // The rows and columns of slices are the two modes with the largest ranks.
        let mut modes: Vec<usize> = (0..model.order()).collect();
        modes.sort_by_key(|&n| std::cmp::Reverse(shape.ranks()[n]));
        let mut slice_modes = [modes[0], modes[1]];
        slice_modes.sort_unstable();
        let [row_mode, column_mode] = slice_modes;
        let others: Vec<usize> = (0..model.order())
            .filter(|n| !slice_modes.contains(n))
            .collect();
        let slices: usize = others.iter().map(|&n| shape.ranks()[n]).product();
        let (rows, columns) = (shape.ranks()[row_mode], shape.ranks()[column_mode]);
        let mut values = vec![0.0f64; slices * rows * columns];
        let mut index = vec![0usize; model.order()];
        let last = shape.ranks()[model.order() - 1];
        for line in model.core().chunks_exact(padded_len(last)) {
            for (j, &g) in line[..last].iter().enumerate() {
                index[model.order() - 1] = j;
                let slice = others
                    .iter()
                    .fold(0, |at, &n| at * shape.ranks()[n] + index[n]);
                let scale: f64 = rms.iter().zip(&index).map(|(s, &j)| s[j]).product();
                values[(slice * rows + index[row_mode]) * columns + index[column_mode]] =
                    f64::from(g) * scale;
            }
            // Advance to the next line; the last mode but one varies fastest.
            for n in (0..model.order() - 1).rev() {
                index[n] += 1;
                if index[n] < shape.ranks()[n] {
                    break;
                }
                index[n] = 0;
            }
        }
        let full_scale = values.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let mut by_norm: Vec<(f64, usize)> = values
            .chunks_exact(rows * columns)
            .map(|s| s.iter().map(|x| x * x).sum::<f64>().sqrt())
            .zip(0..)
            .collect();
        by_norm.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let ranks: Vec<String> = shape.ranks().iter().map(usize::to_string).collect();
        let mut out = format!(
            "<p>A core of {} entries. Each heat map is a slice, with columns of {} from top to bottom and columns of {} from left to \
             right. {CORE_SCALE_NOTE} Red is above 0, blue below; the full colour is {}.</p>\n<div class=\"small\">\n",
            ranks.join(" × "),
            self.mode_name(row_mode),
            self.mode_name(column_mode),
            format_value(full_scale)
        );
        for &(norm, slice) in by_norm.iter().take(MAX_SLICES) {
            let name = self.slice_name(slice, &others);
            let heat_map = HeatMap {
                title: format!("Slice of the core: {name}"),
                columns,
                values: &values[slice * rows * columns..(slice + 1) * rows * columns],
                full_scale,
                row_names: Vec::new(),
            };
            let _ = writeln!(
                out,
                "<figure>{}<figcaption>{name}: norm {}</figcaption></figure>",
                heat_map.draw().trim_end(),
                format_value(norm)
            );
        }
        out += "</div>\n";
        if slices > MAX_SLICES {
            let _ = writeln!(
                out,
                "<p class=\"note\">The {MAX_SLICES} largest of {} slices.</p>",
                format_integer(slices as u64)
            );
        }
        out
    }

    /// Returns the columns of the other modes that a slice of the core belongs to.
    fn slice_name(&self, slice: usize, others: &[usize]) -> String {
        let ranks = self.model.shape().ranks();
        let mut rest = slice;
        let mut columns: Vec<String> = Vec::new();
        for &n in others.iter().rev() {
            columns.push(format!(
                "column {} of {}",
                rest % ranks[n] + 1,
                self.mode_name(n)
            ));
            rest /= ranks[n];
        }
        columns.reverse();
        if columns.is_empty() {
            "the whole core".into()
        } else {
            columns.join(", ")
        }
    }

    /// Returns the section on the factors: all rows of small modes, and histograms of the columns of large ones.
    pub(super) fn factors(&self) -> Result<String> {
        let mut out = String::from(
            "<p>Columns are scaled to a root mean square of 1. The sign of a column is arbitrary.</p>\n",
        );
        for (n, own) in self.model.modes().iter().enumerate() {
            let rank = own.factor.rank();
            let rows = own.rows.len();
            let _ = writeln!(
                out,
                "<h3>{}: {} of {}</h3>",
                capitalized(&self.mode_name(n)),
                count_noun(rank as u64, "column", "columns"),
                count_noun(rows as u64, "row", "rows")
            );
            // By descending strength: columns that contribute nothing look like noise.
            let options = ConceptOptions {
                top: 0,
                ..ConceptOptions::new(n)
            };
            let concepts = describe_concepts(self.model, &options, self.monitor)?.concepts;
            let columns = concepts.iter().map(|c| c.column).take(MAX_COLUMNS);
            let columns: Vec<usize> = columns.collect();
            let order_note = if rank > MAX_COLUMNS {
                format!("The {MAX_COLUMNS} strongest of {rank} columns, the strongest first.")
            } else {
                "The strongest column comes first.".into()
            };
            if rows <= MAX_ROWS {
                out += &self.factor_heat_map(n, &columns, &order_note);
            } else {
                out += &self.factor_histograms(n, &columns, &order_note);
            }
        }
        Ok(out)
    }

    /// Returns the value of a factor, divided by the root mean square of its column.
    fn scaled_value(&self, n: usize, row: usize, column: usize, rms: &[f64]) -> f64 {
        if rms[column] > 0.0 {
            f64::from(self.model.modes()[n].factor.row(row)[column]) / rms[column]
        } else {
            0.0
        }
    }

    fn factor_heat_map(&self, n: usize, columns: &[usize], order_note: &str) -> String {
        let (own, rms) = (&self.model.modes()[n], self.column_rms(n));
        let values: Vec<f64> = (0..own.rows.len())
            .flat_map(|row| columns.iter().map(move |&j| (row, j)))
            .map(|(row, j)| self.scaled_value(n, row, j, &rms))
            .collect();
        let names = own.rows.indices();
        let heat_map = HeatMap {
            title: format!("Columns of mode {}", n + 1),
            columns: columns.len(),
            values: &values,
            full_scale: values.iter().fold(0.0, |m, x| x.abs().max(m)),
            row_names: names
                .map(|i| self.options.names.display_name(n, i))
                .collect(),
        };
        format!(
            "<figure>{}<figcaption>rows from top to bottom, columns from left to right; the full colour is the largest value. {order_note}</figcaption></figure>\n",
            heat_map.draw().trim_end()
        )
    }

    fn factor_histograms(&self, n: usize, columns: &[usize], order_note: &str) -> String {
        let rms = self.column_rms(n);
        let mut out = String::from("<div class=\"small\">\n");
        for &j in columns {
            let mut bins = [0u64; HISTOGRAM_BINS];
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for row in 0..self.model.modes()[n].rows.len() {
                let x = self.scaled_value(n, row, j, &rms);
                (low, high) = (low.min(x), high.max(x));
                let bin = ((x + 3.0) / 6.0 * HISTOGRAM_BINS as f64).floor();
                bins[bin.clamp(0.0, (HISTOGRAM_BINS - 1) as f64) as usize] += 1;
            }
            let _ = writeln!(
                out,
                "<figure>{}<figcaption>column {}: {} to {}</figcaption></figure>",
                histogram(&bins, &format!("Column {} of mode {}", j + 1, n + 1)),
                j + 1,
                format_value((low * 100.0).round() / 100.0),
                format_value((high * 100.0).round() / 100.0)
            );
        }
        out += "</div>\n";
        let _ = writeln!(
            out,
            "<p class=\"note\">Histograms of the values from −3 to 3; the first and the last bin include all values beyond. {order_note}</p>"
        );
        out
    }
}

/// Returns a text with its first letter in upper case.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// Returns a small histogram with a line at 0.
fn histogram(bins: &[u64], title: &str) -> String {
    let largest = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let title = escape(title);
    let mut path = String::from("M0 40");
    for (k, &count) in bins.iter().enumerate() {
        let _ = write!(
            path,
            "V{:.1}H{}",
            40.0 - 36.0 * count as f64 / largest,
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
