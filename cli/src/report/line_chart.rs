//! Line charts as inline SVG.

use std::fmt::Write;

use super::html::{escape, format_value};
use super::svg_frame::{
    BOTTOM, HEIGHT, RIGHT, TOP, WIDTH, horizontal_axis, open, text_centre, text_width,
};

/// The smallest left margin. It grows with the width of the tick labels.
const MIN_LEFT: f64 = 58.0;

/// The largest number of drawn points of a curve; more cannot be distinguished.
const MAX_POINTS: usize = 300;

/// The largest number of points that are also drawn as dots.
const MAX_DOTS: usize = 24;

/// A curve. Points that are not finite are left out.
pub(super) struct Curve<'a> {
    pub name: &'a str,
    /// Its class in the style sheet.
    pub class: &'static str,
    pub points: Vec<(f64, f64)>,
    /// Standard errors, one per point, or none.
    pub errors: Vec<f64>,
}

/// An event at a position of the horizontal axis, drawn as a vertical line.
pub(super) struct Mark {
    pub x: f64,
    pub class: &'static str,
    pub text: String,
}

/// A chart with one or more curves.
pub(super) struct LineChart<'a> {
    pub title: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    pub curves: Vec<Curve<'a>>,
    pub marks: Vec<Mark>,
    /// Whether the vertical axis includes 0.
    pub from_zero: bool,
}

/// A linear scale of an axis.
struct Scale {
    low: f64,
    high: f64,
    /// The distance between ticks.
    step: f64,
}

impl Scale {
    /// Returns a scale over all finite values, with about `tick_count` ticks at round numbers. Returns `None` without
    /// finite values.
    fn of(values: impl Iterator<Item = f64>, from_zero: bool, tick_count: f64) -> Option<Scale> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in values.filter(|x| x.is_finite() && x.abs() < 1e200) {
            (low, high) = (low.min(x), high.max(x));
        }
        if low > high {
            return None;
        }
        if from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // A single value gets an interval around it.
        let size = match high - low {
            s if s > 1e-9 * high.abs().max(low.abs()) && s > f64::MIN_POSITIVE => s,
            _ if low == 0.0 => 1.0,
            _ => low.abs() * 0.2,
        };
        let raw = size / tick_count;
        let power_of_ten = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .map(|s| s * power_of_ten)
            .into_iter()
            .find(|s| *s >= 0.999 * raw)
            .unwrap_or(10.0 * power_of_ten);
        let middle = (low + high) / 2.0;
        (low, high) = (low.min(middle - size / 2.0), high.max(middle + size / 2.0));
        Some(Scale {
            low: (low / step + 1e-9).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            step,
        })
    }

    /// Returns the multiples of the step within the scale, at most 41.
    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let first = (self.low / self.step - 1e-9).ceil();
        let all = (0..=40).map(move |k| (first + f64::from(k)) * self.step);
        all.take_while(|t| *t <= self.high + 1e-9 * self.step)
            // Adding 0 turns -0 into 0.
            .map(|t| t + 0.0)
    }

    /// Maps a value to the interval of the chart from `from` to `to`.
    fn map(&self, x: f64, from: f64, to: f64) -> f64 {
        from + (x - self.low) / (self.high - self.low) * (to - from)
    }
}

impl LineChart<'_> {
    /// Returns the chart; empty if no curve has a finite point.
    pub(super) fn draw(&self) -> String {
        let points = || self.curves.iter().flat_map(|c| &c.points);
        let xs = points().filter(|p| p.1.is_finite()).map(|p| p.0);
        let with_errors = |c: &Curve<'_>| {
            let error = |k: usize| c.errors.get(k).copied().unwrap_or(0.0);
            let points = c.points.iter().enumerate();
            let ends = points.flat_map(|(k, p)| [p.1 - error(k), p.1 + error(k)]);
            ends.collect::<Vec<f64>>()
        };
        let ys = self.curves.iter().flat_map(with_errors);
        let (Some(x), Some(y)) = (
            Scale::of(xs, false, 6.0),
            Scale::of(ys, self.from_zero, 4.0),
        ) else {
            return String::new();
        };
        // Epochs and numbers of clusters have ticks at whole numbers.
        let step = if points().all(|p| p.0.fract() == 0.0) {
            x.step.floor().max(1.0)
        } else {
            x.step
        };
        // The horizontal axis ends at the data.
        let last = points().filter(|p| p.1.is_finite()).map(|p| p.0);
        let first = last.clone().fold(f64::INFINITY, f64::min);
        let last = last.fold(f64::NEG_INFINITY, f64::max);
        let x = if first < last {
            Scale {
                low: first,
                high: last,
                step,
            }
        } else {
            Scale { step, ..x }
        };
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let left = y.ticks().map(|t| text_width(&format_value(t)) + 5.0);
        let left = left.fold(MIN_LEFT, f64::max);
        let mut out = open(self.title);
        for t in y.ticks() {
            let at = y.map(t, bottom, TOP);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{right}\"/>\
                 <text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 5.0,
                at + 3.5,
                format_value(t)
            );
        }
        for t in x.ticks() {
            let (at, text) = (x.map(t, left, right), format_value(t));
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {bottom}v4\"/>\
                 <text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                text_centre(at, &text),
                bottom + 15.0
            );
        }
        out += &horizontal_axis(left, self.x_label);
        for mark in &self.marks {
            // Events before the first epoch are drawn at the beginning of the axis.
            let at = x.map(mark.x.clamp(x.low, x.high), left, right);
            let _ = writeln!(
                out,
                "<path class=\"mark {}\" d=\"M{at:.1} {TOP}V{bottom}\"><title>{}</title></path>",
                mark.class,
                escape(&mark.text)
            );
        }
        let to_chart = |p: &(f64, f64)| (x.map(p.0, left, right), y.map(p.1, bottom, TOP));
        let mut legend_x = right;
        for curve in self.curves.iter().rev() {
            let _ = write!(out, "{}", draw_curve(curve, to_chart));
            // The legend is above the chart, from right to left.
            if self.curves.len() > 1 {
                let width = 7.0 * curve.name.chars().count() as f64 + 22.0;
                legend_x -= width;
                let _ = writeln!(
                    out,
                    "<path class=\"line {0}\" d=\"M{1:.1} 11h12\"/><text class=\"tick\" x=\"{2:.1}\" y=\"15\">{3}</text>",
                    curve.class,
                    legend_x,
                    legend_x + 16.0,
                    escape(curve.name)
                );
            }
        }
        out + "</svg>\n"
    }
}

/// Draws a curve. `to_chart` maps a point to chart coordinates.
fn draw_curve(curve: &Curve<'_>, to_chart: impl Fn(&(f64, f64)) -> (f64, f64)) -> String {
    let points: Vec<&(f64, f64)> = curve.points.iter().filter(|p| p.1.is_finite()).collect();
    let stride = points.len().div_ceil(MAX_POINTS).max(1);
    let mut out = String::new();
    let mut path = String::new();
    for (k, p) in points.iter().enumerate() {
        if k % stride == 0 || k + 1 == points.len() {
            let (x, y) = to_chart(p);
            let _ = write!(
                path,
                "{}{x:.1} {y:.1}",
                if path.is_empty() { 'M' } else { 'L' }
            );
        }
    }
    for (p, &e) in curve.points.iter().zip(&curve.errors) {
        let ((x, low), (_, high)) = (to_chart(&(p.0, p.1 - e)), to_chart(&(p.0, p.1 + e)));
        if (low - high).is_finite() {
            let _ = writeln!(
                out,
                "<path class=\"error {}\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>",
                curve.class
            );
        }
    }
    if !path.is_empty() {
        let _ = writeln!(out, "<path class=\"line {}\" d=\"{path}\"/>", curve.class);
    }
    // A single point would be invisible as a line.
    if points.len() <= MAX_DOTS {
        for p in &points {
            let (x, y) = to_chart(p);
            let _ = writeln!(
                out,
                "<circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"><title>{}: {}, {}</title></circle>",
                curve.class,
                escape(curve.name),
                format_value(p.0),
                format_value(p.1)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        LineChart {
            title: "a < b",
            x_label: "epoch",
            curves: vec![Curve {
                name: "one",
                class: "train",
                points,
                errors: Vec::new(),
            }],
            marks: Vec::new(),
            from_zero: false,
        }
        .draw()
    }

    #[test]
    fn charts_are_well_formed_for_any_values() {
        assert_eq!(chart(Vec::new()), "");
        assert_eq!(chart(vec![(1.0, f64::NAN)]), "");
        for points in [
            vec![(1.0, 0.0)],
            vec![(1.0, 5.0), (2.0, 5.0)],
            vec![(1.0, 1e-300), (2.0, 2e-300)],
            vec![(1.0, -1e150), (2.0, 1e150), (3.0, f64::INFINITY)],
            (0..5000)
                .map(|k| (f64::from(k), f64::from(k).sin()))
                .collect(),
            vec![(0.0, 1e300), (1.0, 1.0)],
        ] {
            let count = points.len();
            let svg = chart(points);
            assert!(
                svg.starts_with("<svg") && svg.ends_with("</svg>\n"),
                "{count}"
            );
            assert!(
                svg.contains("a &lt; b") && svg.len() < 12_000,
                "{}",
                svg.len()
            );
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn tick_labels_are_not_cut_off() {
        let check = |points: &[(f64, f64)]| {
            let svg = chart(points.to_vec());
            let mut labels = 0;
            for label in svg.split("<text class=\"tick ").skip(1) {
                let (class, rest) = label.split_once("\" x=\"").unwrap();
                let (x, rest) = rest.split_once('"').unwrap();
                let text = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
                let (x, width) = (x.parse::<f64>().unwrap(), text_width(text));
                let (from, to) = match class {
                    "end" => (x - width, x),
                    _ => (x - width / 2.0, x + width / 2.0),
                };
                assert!(from > -0.1 && to < WIDTH + 0.1, "{text}: {from} to {to}");
                labels += 1;
            }
            assert!(labels > 4, "{svg}");
        };
        // The last tick is at the end of the axis.
        check(&[(0.0004, 1.0), (0.0014, 0.9)]);
        check(&[(0.0, 1.0), (1e5, 0.9)]);
        check(&[(1.0, -1.25e-10), (2.0, 1.25e-10)]);
        check(&[(1.0, -9.75e120), (2.0, -9.7e120)]);
        // With short labels the axes are at the same position in all charts.
        assert!(chart(vec![(1.0, 1.0), (2.0, 2.0)]).contains("d=\"M58.0 "));
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        let scale = Scale::of([0.83, 1.12].into_iter(), false, 4.0).unwrap();
        let ticks: Vec<String> = scale.ticks().map(format_value).collect();
        assert_eq!(ticks, ["0.8", "0.9", "1", "1.1", "1.2"]);
        let scale = Scale::of([0.0, 7.0].into_iter(), true, 4.0).unwrap();
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [0.0, 2.0, 4.0, 6.0, 8.0]);
        // The ends need not be multiples of the step.
        let scale = Scale {
            low: -3.0,
            high: 7.5,
            step: 2.5,
        };
        let ticks: Vec<String> = scale.ticks().map(format_value).collect();
        assert_eq!(ticks, ["−2.5", "0", "2.5", "5", "7.5"]);
    }
}
