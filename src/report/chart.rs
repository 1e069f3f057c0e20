//! Curves and bars as inline SVG. Colours come from the style sheet, so that pictures follow light and dark.

use std::fmt::Write;

use super::html::{cut, escape, grouped, number};

/// The size of a chart in its own units; the page scales it.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 250.0;

/// Where the axes are; the left one is further right where its numbers are long.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 42.0;

/// More points of a curve than this cannot be told apart.
const POINTS: usize = 300;

/// A curve. What is not finite leaves a gap.
pub(super) struct Curve<'a> {
    pub name: &'a str,
    /// Its class in the style sheet.
    pub class: &'static str,
    pub points: Vec<(f64, f64)>,
    /// Standard errors, one for each point, or none.
    pub errors: Vec<f64>,
}

/// Something that happened at a place of the horizontal axis.
pub(super) struct Mark {
    pub at: f64,
    pub class: &'static str,
    pub text: String,
}

/// Curves in one picture.
pub(super) struct Curves<'a> {
    /// What the picture shows.
    pub title: &'a str,
    pub x: &'a str,
    pub curves: Vec<Curve<'a>>,
    pub marks: Vec<Mark>,
    /// Whether the vertical axis begins at 0.
    pub from_zero: bool,
}

/// Where numbers are on an axis.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// Holds all these numbers, with ends that read well.
    fn of(numbers: impl Iterator<Item = f64>, from_zero: bool, about: f64) -> Option<Scale> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in numbers.filter(|x| x.is_finite() && x.abs() < 1e200) {
            (low, high) = (low.min(x), high.max(x));
        }
        if low > high {
            return None;
        }
        if from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // One number needs room around it.
        let size = match high - low {
            s if s > 1e-9 * high.abs().max(low.abs()) && s > f64::MIN_POSITIVE => s,
            _ if low == 0.0 => 1.0,
            _ => low.abs() * 0.2,
        };
        let raw = size / about;
        let tens = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .map(|s| s * tens)
            .into_iter()
            .find(|s| *s >= 0.999 * raw)
            .unwrap_or(10.0 * tens);
        let middle = (low + high) / 2.0;
        (low, high) = (low.min(middle - size / 2.0), high.max(middle + size / 2.0));
        Some(Scale {
            low: (low / step + 1e-9).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            step,
        })
    }

    /// The multiples of the step within the scale, not too many.
    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let first = (self.low / self.step - 1e-9).ceil();
        let all = (0..=40).map(move |k| (first + f64::from(k)) * self.step);
        all.take_while(|t| *t <= self.high + 1e-9 * self.step)
            // Not -0.
            .map(|t| t + 0.0)
    }

    fn place(&self, x: f64, from: f64, to: f64) -> f64 {
        from + (x - self.low) / (self.high - self.low) * (to - from)
    }
}

/// The room that words below or beside an axis need at most; letters are narrower in most fonts.
fn room(text: &str) -> f64 {
    7.2 * text.chars().count() as f64
}

/// Where the middle of words below an axis is: at `at`, or so near that nothing is cut off.
fn within(at: f64, text: &str) -> f64 {
    let half = room(text) / 2.0;
    at.min(WIDTH - half).max(half)
}

/// The beginning of a picture.
fn open(title: &str, height: f64) -> String {
    let title = escape(&cut(title, 50));
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\
         <title>{title}</title>\n<text class=\"name\" x=\"2\" y=\"15\">{title}</text>\n"
    )
}

/// The horizontal axis and what is on it.
fn axis(left: f64, what: &str) -> String {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    format!(
        "<path class=\"axis\" d=\"M{left:.1} {bottom}H{right}\"/><text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        (left + right) / 2.0,
        HEIGHT - 10.0,
        escape(what)
    )
}

impl Curves<'_> {
    /// The picture; empty if there is no number to show.
    pub(super) fn draw(&self) -> String {
        let points = || self.curves.iter().flat_map(|c| &c.points);
        let xs = points().filter(|p| p.1.is_finite()).map(|p| p.0);
        let spread = |c: &Curve<'_>| {
            let error = |k: usize| c.errors.get(k).copied().unwrap_or(0.0);
            let ends = c.points.iter().enumerate();
            let ends = ends.flat_map(|(k, p)| [p.1 - error(k), p.1 + error(k)]);
            ends.collect::<Vec<f64>>()
        };
        let ys = self.curves.iter().flat_map(spread);
        let (Some(x), Some(y)) = (
            Scale::of(xs, false, 6.0),
            Scale::of(ys, self.from_zero, 4.0),
        ) else {
            return String::new();
        };
        // Empty space beyond the data tells nothing.
        let last = points().filter(|p| p.1.is_finite()).map(|p| p.0);
        let first = last.clone().fold(f64::INFINITY, f64::min);
        let last = last.fold(f64::NEG_INFINITY, f64::max);
        let x = match first < last {
            true => Scale {
                low: first,
                high: last,
                step: x.step,
            },
            false => x,
        };
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let left = y.ticks().map(|t| room(&number(t)) + 5.0);
        let left = left.fold(LEFT, f64::max);
        let mut out = open(self.title, HEIGHT);
        let mut tick = |line: String, class: &str, (x, y): (f64, f64), text: &str| {
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"{line}\"/><text class=\"tick {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
            );
        };
        for t in y.ticks() {
            let at = y.place(t, bottom, TOP);
            let line = format!("M{left:.1} {at:.1}H{right}");
            tick(line, "end", (left - 5.0, at + 3.5), &number(t));
        }
        for t in x.ticks() {
            let (at, text) = (x.place(t, left, right), number(t));
            let line = format!("M{at:.1} {bottom}v4");
            tick(line, "middle", (within(at, &text), bottom + 15.0), &text);
        }
        out += &axis(left, self.x);
        for mark in &self.marks {
            // What happens before the first epoch is at its beginning.
            let at = x.place(mark.at.clamp(x.low, x.high), left, right);
            let _ = writeln!(
                out,
                "<path class=\"mark {}\" d=\"M{at:.1} {TOP}V{bottom}\"><title>{}</title></path>",
                mark.class,
                escape(&mark.text)
            );
        }
        let place = |p: &(f64, f64)| (x.place(p.0, left, right), y.place(p.1, bottom, TOP));
        let mut name_at = right;
        for curve in self.curves.iter().rev() {
            let _ = write!(out, "{}", draw_curve(curve, place));
            // Names from right to left above the picture.
            if self.curves.len() > 1 {
                let width = 7.0 * curve.name.chars().count() as f64 + 22.0;
                name_at -= width;
                let _ = writeln!(
                    out,
                    "<path class=\"line {0}\" d=\"M{1:.1} 11h12\"/><text class=\"tick\" x=\"{2:.1}\" y=\"15\">{3}</text>",
                    curve.class,
                    name_at,
                    name_at + 16.0,
                    escape(curve.name)
                );
            }
        }
        out + "</svg>\n"
    }
}

fn draw_curve(curve: &Curve<'_>, place: impl Fn(&(f64, f64)) -> (f64, f64)) -> String {
    let points: Vec<&(f64, f64)> = curve.points.iter().filter(|p| p.1.is_finite()).collect();
    let every = points.len().div_ceil(POINTS).max(1);
    let mut out = String::new();
    let mut path = String::new();
    for (k, p) in points.iter().enumerate() {
        if k % every == 0 || k + 1 == points.len() {
            let (x, y) = place(p);
            let _ = write!(
                path,
                "{}{x:.1} {y:.1}",
                if path.is_empty() { 'M' } else { 'L' }
            );
        }
    }
    for (p, &e) in curve.points.iter().zip(&curve.errors) {
        let ((x, low), (_, high)) = (place(&(p.0, p.1 - e)), place(&(p.0, p.1 + e)));
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
    // Few points are seen better as such, and one would not be seen at all.
    if points.len() <= 24 {
        for p in &points {
            let (x, y) = place(p);
            let _ = writeln!(
                out,
                "<circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"><title>{}: {}, {}</title></circle>",
                curve.class,
                escape(curve.name),
                number(p.0),
                number(p.1)
            );
        }
    }
    out
}

/// Bars side by side, with what each stands for below it. Too many labels are thinned out.
pub(super) fn bars(title: &str, below: &str, bars: &[(String, u64)]) -> String {
    let most = bars.iter().map(|b| b.1).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let (bottom, right, left) = (HEIGHT - BOTTOM, WIDTH - RIGHT, 10.0);
    let width = (right - left) / bars.len() as f64;
    let letters = bars.iter().map(|b| b.0.chars().count()).max().unwrap_or(1);
    let every = ((letters as f64 * 6.2 + 6.0) / width).ceil().max(1.0) as usize;
    let counts = bars.iter().map(|b| grouped(b.1).len()).max().unwrap_or(1);
    let counted = counts as f64 * 6.2 < width;
    let mut out = open(title, HEIGHT);
    for (k, (label, count)) in bars.iter().enumerate() {
        let height = (*count as f64 / most as f64) * (bottom - TOP - 14.0);
        // What is there at all is seen.
        let height = if *count > 0 { height.max(1.0) } else { 0.0 };
        let x = left + k as f64 * width;
        let _ = writeln!(
            out,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}: {}</title></rect>",
            x + 0.08 * width,
            bottom - height,
            0.84 * width,
            escape(label),
            grouped(*count)
        );
        let middle = x + width / 2.0;
        if counted && *count > 0 {
            let _ = writeln!(
                out,
                "<text class=\"tick middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
                bottom - height - 4.0,
                grouped(*count)
            );
        }
        if k % every == 0 {
            let _ = writeln!(
                out,
                "<text class=\"tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                within(middle, label),
                bottom + 15.0,
                escape(label)
            );
        }
    }
    out += &axis(left, below);
    out + "</svg>\n"
}

/// A bar in a line of text, for a share of 0 to 1.
pub(super) fn inline_bar(share: f64) -> String {
    let width = 100.0 * share.clamp(0.0, 1.0);
    format!(
        "<span class=\"meter\"><span style=\"width:{:.1}%\"></span></span>",
        if width.is_finite() { width } else { 0.0 }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(points: Vec<(f64, f64)>) -> String {
        Curves {
            title: "a < b",
            x: "epoch",
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
    fn any_numbers_give_a_picture_or_none() {
        assert_eq!(curves(Vec::new()), "");
        assert_eq!(curves(vec![(1.0, f64::NAN)]), "");
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
            let svg = curves(points);
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
    fn no_number_beside_an_axis_is_cut_off() {
        let ends = |points: &[(f64, f64)]| {
            let svg = curves(points.to_vec());
            let mut seen = 0;
            for label in svg.split("<text class=\"tick ").skip(1) {
                let (class, rest) = label.split_once("\" x=\"").unwrap();
                let (x, rest) = rest.split_once('"').unwrap();
                let text = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
                let (x, wide) = (x.parse::<f64>().unwrap(), room(text));
                let (from, to) = match class {
                    "end" => (x - wide, x),
                    _ => (x - wide / 2.0, x + wide / 2.0),
                };
                assert!(from > -0.1 && to < WIDTH + 0.1, "{text}: {from} to {to}");
                seen += 1;
            }
            assert!(seen > 4, "{svg}");
        };
        // The last number is at the very end of the axis.
        ends(&[(0.0004, 1.0), (0.0014, 0.9)]);
        ends(&[(0.0, 1.0), (1e5, 0.9)]);
        ends(&[(1.0, -1.25e-10), (2.0, 1.25e-10)]);
        ends(&[(1.0, -9.75e120), (2.0, -9.7e120)]);
        // Where numbers are short, axes are where they are in other pictures.
        assert!(curves(vec![(1.0, 1.0), (2.0, 2.0)]).contains("d=\"M58.0 "));
    }

    #[test]
    fn ticks_read_well() {
        let scale = Scale::of([0.83, 1.12].into_iter(), false, 4.0).unwrap();
        let ticks: Vec<String> = scale.ticks().map(number).collect();
        assert_eq!(ticks, ["0.8", "0.9", "1", "1.1", "1.2"]);
        let scale = Scale::of([0.0, 7.0].into_iter(), true, 4.0).unwrap();
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [0.0, 2.0, 4.0, 6.0, 8.0]);
        // The ends need not be multiples of the step.
        let scale = Scale {
            low: -3.0,
            high: 7.5,
            step: 2.5,
        };
        let ticks: Vec<String> = scale.ticks().map(number).collect();
        assert_eq!(ticks, ["−2.5", "0", "2.5", "5", "7.5"]);
    }
}
