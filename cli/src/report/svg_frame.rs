//! The frame of a chart as inline SVG: its size, margins, title and horizontal axis.
//!
//! Colours come from the style sheet, so that charts follow the light and the dark colour scheme.

use super::html::{escape, truncate};

/// The size of a chart in its own units; the page scales it.
pub(super) const WIDTH: f64 = 440.0;
pub(super) const HEIGHT: f64 = 250.0;

/// Margins between the edges of a chart and its axes.
pub(super) const RIGHT: f64 = 14.0;
pub(super) const TOP: f64 = 30.0;
pub(super) const BOTTOM: f64 = 42.0;

/// Returns an upper bound of the width of a text; most fonts are narrower.
pub(super) fn text_width(text: &str) -> f64 {
    7.2 * text.chars().count() as f64
}

/// Returns the centre of a text below an axis: `x`, or the nearest position at which the text is not cut off.
pub(super) fn text_centre(x: f64, text: &str) -> f64 {
    let half = text_width(text) / 2.0;
    x.min(WIDTH - half).max(half)
}

/// Returns the beginning of a chart.
pub(super) fn open(title: &str) -> String {
    let title = escape(&truncate(title, 50));
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\
         <title>{title}</title>\n<text class=\"name\" x=\"2\" y=\"15\">{title}</text>\n"
    )
}

/// Returns the horizontal axis with its label.
pub(super) fn horizontal_axis(left: f64, label: &str) -> String {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    format!(
        "<path class=\"axis\" d=\"M{left:.1} {bottom}H{right}\"/><text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        (left + right) / 2.0,
        HEIGHT - 10.0,
        escape(label)
    )
}
