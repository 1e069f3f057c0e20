//! Heat maps as inline SVG: one colour below 0, another above 0, and the background at 0.
//!
//! All squares of one shade are one SVG path, which keeps pages small.

use std::fmt::Write;
use std::ops::Range;

use super::html::{escape, truncate};

/// The number of shades of either colour.
const SHADES: usize = 12;

/// The largest number of drawn rows and of drawn columns. Beyond it, neighbours are pooled.
const MAX_SIDE: usize = 48;

/// A matrix of values, row-major.
pub(super) struct HeatMap<'a> {
    /// The title, for screen readers.
    pub title: String,
    pub columns: usize,
    pub values: &'a [f64],
    /// The absolute value with the full colour.
    pub full_scale: f64,
    /// The names of the rows, or none.
    pub row_names: Vec<String>,
}

impl HeatMap<'_> {
    pub(super) fn draw(&self) -> String {
        let rows = self.values.len() / self.columns.max(1);
        if rows == 0 || self.columns == 0 {
            return String::new();
        }
        let (drawn_rows, drawn_columns) = (rows.min(MAX_SIDE), self.columns.min(MAX_SIDE));
        let has_names = !self.row_names.is_empty() && drawn_rows == rows;
        // Named rows must be high enough for their text.
        let square = if has_names { 14.0 } else { 10.0 };
        let letters = self.row_names.iter().map(|r| r.chars().count().min(22));
        let left = if has_names {
            6.6 * letters.max().unwrap_or(0) as f64 + 6.0
        } else {
            0.0
        };
        let width = left + square * drawn_columns as f64;
        let height = square * drawn_rows as f64;
        let mut paths = vec![String::new(); 2 * SHADES];
        for i in 0..drawn_rows {
            for j in 0..drawn_columns {
                let pooled_rows = i * rows / drawn_rows..(i + 1) * rows / drawn_rows;
                let first = j * self.columns / drawn_columns;
                let end = (j + 1) * self.columns / drawn_columns;
                let x = self.pooled(pooled_rows, first..end);
                let shade = (x.abs() / self.full_scale * SHADES as f64).round();
                if !(shade >= 1.0 && self.full_scale > 0.0) {
                    continue;
                }
                let shade = (shade as usize).min(SHADES) - 1;
                let path = &mut paths[shade + if x < 0.0 { 0 } else { SHADES }];
                let (x, y) = (left + square * j as f64, square * i as f64);
                let _ = write!(path, "M{x} {y}h{square}v{square}h-{square}z");
            }
        }
        let title = escape(&self.title);
        // Small heat maps are not enlarged to the width of the page.
        let size = (width * 1.25).max(60.0);
        let mut out = format!(
            "<svg class=\"heat\" style=\"max-width:{size:.0}px\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>\
             <rect class=\"frame\" x=\"{left}\" width=\"{}\" height=\"{height}\"/>\n",
            width - left
        );
        for (k, path) in paths.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
            let class = if k < SHADES { "below" } else { "above" };
            let opacity = ((k % SHADES) + 1) as f64 / SHADES as f64;
            let _ = writeln!(
                out,
                "<path class=\"{class}\" fill-opacity=\"{opacity:.2}\" d=\"{path}\"/>"
            );
        }
        if has_names {
            for (i, name) in self.row_names.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "<text class=\"row\" x=\"{}\" y=\"{}\">{}</text>",
                    left - 4.0,
                    square * i as f64 + 10.5,
                    escape(&truncate(name, 21))
                );
            }
        }
        out + "</svg>\n"
    }

    /// Returns the value farthest from 0 in a range of rows and columns.
    fn pooled(&self, rows: Range<usize>, columns: Range<usize>) -> f64 {
        let mut farthest = 0.0f64;
        for r in rows {
            for c in columns.clone() {
                let x = self.values[r * self.columns + c];
                if x.abs() > farthest.abs() {
                    farthest = x;
                }
            }
        }
        farthest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_have_the_shade_of_their_value_and_large_matrices_are_pooled() {
        let draw = |values: &[f64], columns, row_names: Vec<String>| {
            HeatMap {
                title: "t".into(),
                columns,
                values,
                full_scale: 2.0,
                row_names,
            }
            .draw()
        };
        let svg = draw(&[0.0, -2.0, 1.0, 2.0], 2, vec!["<a>".into(), "b".into()]);
        assert_eq!(
            svg.matches("class=\"below\" fill-opacity=\"1.00\"").count(),
            1
        );
        assert_eq!(
            svg.matches("class=\"above\" fill-opacity=\"0.50\"").count(),
            1
        );
        assert!(svg.contains("&lt;a&gt;"));
        let many: Vec<f64> = (0..1_000_000).map(|k| f64::from(k % 7) - 3.0).collect();
        assert!(draw(&many, 1000, Vec::new()).len() < 100_000);
        assert_eq!(draw(&[], 3, Vec::new()), "");
        let zero = HeatMap {
            title: String::new(),
            columns: 1,
            values: &[0.0],
            full_scale: 0.0,
            row_names: Vec::new(),
        };
        assert!(zero.draw().contains("frame"));
    }
}
