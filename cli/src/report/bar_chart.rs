//! Bar charts as inline SVG.

use std::fmt::Write;

use super::html::{escape, format_integer};
use super::svg_frame::{BOTTOM, HEIGHT, RIGHT, TOP, WIDTH, horizontal_axis, open, text_centre};

/// Bars side by side, each with its label and its count.
pub(super) struct BarChart<'a> {
    pub title: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    pub bars: Vec<(String, u64)>,
}

impl BarChart<'_> {
    /// Returns the chart; empty if all counts are 0. Labels that would overlap are thinned out.
    pub(super) fn draw(&self) -> String {
        let bars = &self.bars;
        let largest = bars.iter().map(|b| b.1).max().unwrap_or(0);
        if largest == 0 {
            return String::new();
        }
        let (bottom, right, left) = (HEIGHT - BOTTOM, WIDTH - RIGHT, 10.0);
        let width = (right - left) / bars.len() as f64;
        let letters = bars.iter().map(|b| b.0.chars().count()).max().unwrap_or(1);
        let label_step = ((letters as f64 * 6.2 + 6.0) / width).ceil().max(1.0) as usize;
        let digits = bars.iter().map(|b| format_integer(b.1).len()).max();
        let show_counts = digits.unwrap_or(1) as f64 * 6.2 < width;
        let mut out = open(self.title);
        for (k, (label, count)) in bars.iter().enumerate() {
            let height = (*count as f64 / largest as f64) * (bottom - TOP - 14.0);
            // A count above 0 is always visible.
            let height = if *count > 0 { height.max(1.0) } else { 0.0 };
            let x = left + k as f64 * width;
            let _ = writeln!(
                out,
                "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}: {}</title></rect>",
                x + 0.08 * width,
                bottom - height,
                0.84 * width,
                escape(label),
                format_integer(*count)
            );
            let middle = x + width / 2.0;
            if show_counts && *count > 0 {
                let _ = writeln!(
                    out,
                    "<text class=\"tick middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
                    bottom - height - 4.0,
                    format_integer(*count)
                );
            }
            if k % label_step == 0 {
                let _ = writeln!(
                    out,
                    "<text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    text_centre(middle, label),
                    bottom + 15.0,
                    escape(label)
                );
            }
        }
        out += &horizontal_axis(left, self.x_label);
        out + "</svg>\n"
    }
}

/// Returns a bar within a line of text, for a fraction from 0 to 1.
pub(super) fn inline_bar(fraction: f64) -> String {
    let width = 100.0 * fraction.clamp(0.0, 1.0);
    format!(
        "<span class=\"meter\"><span style=\"width:{:.1}%\"></span></span>",
        if width.is_finite() { width } else { 0.0 }
    )
}
