//! Heat maps as inline SVG: numbers below 0 in one colour, above 0 in another, 0 as the page itself.
//!
//! Cells of the same shade are one path, which keeps pages small.

use std::fmt::Write;

use super::html::{cut, escape};

/// Shades of either colour.
const SHADES: usize = 12;

/// A heat map has no more rows or columns than this; neighbours are put together where there are more.
const MOST: usize = 48;

/// A table of numbers, row by row.
pub(super) struct Heat<'a> {
    /// What it shows, for those who cannot see it.
    pub title: String,
    pub columns: usize,
    pub numbers: &'a [f64],
    /// The size of numbers that has the full colour.
    pub full: f64,
    /// Names of rows, or none.
    pub rows: Vec<String>,
}

impl Heat<'_> {
    pub(super) fn draw(&self) -> String {
        let rows = self.numbers.len() / self.columns.max(1);
        if rows == 0 || self.columns == 0 {
            return String::new();
        }
        let (tall, wide) = (rows.min(MOST), self.columns.min(MOST));
        let names = !self.rows.is_empty() && tall == rows;
        // With names, rows must be high enough to read.
        let cell = if names { 14.0 } else { 10.0 };
        let letters = self.rows.iter().map(|r| r.chars().count().min(22)).max();
        let left = if names {
            6.6 * letters.unwrap_or(0) as f64 + 6.0
        } else {
            0.0
        };
        let (width, height) = (left + cell * wide as f64, cell * tall as f64);
        let mut paths = vec![String::new(); 2 * SHADES];
        for i in 0..tall {
            for j in 0..wide {
                let x = self.pooled(i, j, (tall, wide), rows);
                let shade = (x.abs() / self.full * SHADES as f64).round();
                if !(shade >= 1.0 && self.full > 0.0) {
                    continue;
                }
                let shade = (shade as usize).min(SHADES) - 1;
                let path = &mut paths[shade + if x < 0.0 { 0 } else { SHADES }];
                let (x, y) = (left + cell * j as f64, cell * i as f64);
                let _ = write!(path, "M{x} {y}h{cell}v{cell}h-{cell}z");
            }
        }
        let title = escape(&self.title);
        // A few cells are not blown up to the width of the page.
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
        if names {
            for (i, name) in self.rows.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "<text class=\"row\" x=\"{}\" y=\"{}\">{}</text>",
                    left - 4.0,
                    cell * i as f64 + 10.5,
                    escape(&cut(name, 21))
                );
            }
        }
        out + "</svg>\n"
    }

    /// The number furthest from 0 of those that a cell stands for.
    fn pooled(&self, i: usize, j: usize, (tall, wide): (usize, usize), rows: usize) -> f64 {
        let mut most = 0.0f64;
        for r in i * rows / tall..(i + 1) * rows / tall {
            for c in j * self.columns / wide..(j + 1) * self.columns / wide {
                let x = self.numbers[r * self.columns + c];
                if x.abs() > most.abs() {
                    most = x;
                }
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_shades_and_large_tables_stay_small() {
        let heat = |numbers: &[f64], columns, rows: Vec<String>| {
            Heat {
                title: "t".into(),
                columns,
                numbers,
                full: 2.0,
                rows,
            }
            .draw()
        };
        let svg = heat(&[0.0, -2.0, 1.0, 2.0], 2, vec!["<a>".into(), "b".into()]);
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
        assert!(heat(&many, 1000, Vec::new()).len() < 100_000);
        assert_eq!(heat(&[], 3, Vec::new()), "");
        let none = Heat {
            title: String::new(),
            columns: 1,
            numbers: &[0.0],
            full: 0.0,
            rows: Vec::new(),
        };
        assert!(none.draw().contains("frame"));
    }
}
