//! Figures as SVG: panels with curves, or with bars.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use s3cmtf::{Error, Result};

/// The size of a panel, in pixels.
const PANEL: (u32, u32) = (420, 320);
/// The height of a row of the legend.
const LEGEND_ROW: u32 = 20;
/// The largest number of points of a curve that are also drawn as dots.
const MAX_DOTS: usize = 12;
/// The height of a row of marks, in pixels and as a part of the height of the curves.
const MARK_ROW: i32 = 13;
const MARK_SPACE: f64 = 0.06;
/// Panels beside each other.
const COLUMNS: usize = 3;

/// Colours of Okabe and Ito, which colour-blind readers can tell apart, then darker ones.
static COLOURS: [RGBColor; 16] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(148, 148, 148),
    RGBColor(120, 60, 20),
    RGBColor(90, 50, 140),
    RGBColor(0, 90, 60),
    RGBColor(160, 0, 60),
    RGBColor(150, 190, 60),
    RGBColor(255, 140, 160),
    RGBColor(60, 120, 130),
    RGBColor(190, 150, 220),
];

/// A curve of a panel.
pub(super) struct Curve {
    /// The place of its name in the legend of the figure.
    pub series: usize,
    pub points: Vec<(f64, f64)>,
}

/// A text in the place of a point that could not be measured.
pub(super) struct Mark {
    /// The place of its method in the legend.
    pub series: usize,
    /// Its position on the horizontal axis, where the figure has one for each measurement.
    pub x: Option<f64>,
    pub text: String,
}

/// A bar of a panel.
pub(super) struct Bar {
    pub name: String,
    /// Its length, or the text that stands in its place.
    pub length: std::result::Result<f64, String>,
}

/// Curves over common axes.
pub(super) struct Curves {
    pub curves: Vec<Curve>,
    pub marks: Vec<Mark>,
    pub log_x: bool,
    pub log_y: bool,
    pub x_label: &'static str,
    pub y_label: &'static str,
}

pub(super) enum Content {
    Curves(Curves),
    /// Lengths on a logarithmic scale.
    Bars(Vec<Bar>),
}

pub(super) struct Panel {
    pub title: String,
    pub content: Content,
}

/// A figure of several panels with one legend.
pub(super) struct Chart {
    pub title: String,
    pub legend: Vec<String>,
    pub panels: Vec<Panel>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Chart {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> Result<String> {
        let mut text = String::new();
        let columns = self.panels.len().clamp(1, COLUMNS);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let legend_rows = self.legend.len().div_ceil(columns) as u32;
        let header = 30 + legend_rows * LEGEND_ROW + 6;
        let size = (PANEL.0 * columns as u32, header + PANEL.1 * rows as u32);
        self.draw_on(&mut text, size, header, (rows, columns))
            .map_err(|e| Error::argument(format!("cannot draw {}: {e}", self.title)))?;
        Ok(text)
    }

    fn draw_on(
        &self,
        text: &mut String,
        size: (u32, u32),
        header: u32,
        grid: (usize, usize),
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (top, below) = root.split_vertically(header);
        top.draw(&Text::new(self.title.clone(), (12, 8), ("sans-serif", 18)))?;
        for (k, name) in self.legend.iter().enumerate() {
            let x = 12 + (k % grid.1) as i32 * PANEL.0 as i32;
            let y = 36 + (k / grid.1) as i32 * LEGEND_ROW as i32;
            let style = colour(k).stroke_width(3);
            top.draw(&PathElement::new([(x, y + 6), (x + 22, y + 6)], style))?;
            top.draw(&Text::new(name.clone(), (x + 30, y), ("sans-serif", 14)))?;
        }
        for (panel, area) in self.panels.iter().zip(below.split_evenly(grid)) {
            match &panel.content {
                Content::Curves(curves) => draw_curves(&area, &panel.title, curves)?,
                Content::Bars(bars) => draw_bars(&area, &panel.title, bars)?,
            }
        }
        root.present()?;
        Ok(())
    }
}

fn colour(series: usize) -> &'static RGBColor {
    &COLOURS[series % COLOURS.len()]
}

/// Returns the range of an axis, with a margin; on a logarithmic axis of the logarithms.
fn range(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = numbers.filter(|x| x.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
        (l.min(x), h.max(x))
    });
    let margin = match high - low {
        span if span > 0.0 => 0.05 * span,
        _ => 0.5 * low.abs().max(0.1),
    };
    (low <= high).then_some((low - margin, high + margin))
}

/// Curves are drawn over logarithms where an axis is logarithmic, so that its ticks can be labelled by powers of ten.
fn draw_curves(
    area: &Area<'_>,
    title: &str,
    content: &Curves,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (curves, log_x, log_y) = (&content.curves, content.log_x, content.log_y);
    let scaled = |x: f64, is_log: bool| if is_log { x.log10() } else { x };
    let point = |p: &(f64, f64)| (scaled(p.0, log_x), scaled(p.1, log_y));
    let all = || curves.iter().flat_map(|c| c.points.iter().map(point));
    let usable = || all().filter(|p| p.0.is_finite() && p.1.is_finite());
    let marked = || content.marks.iter().filter_map(|m| m.x);
    let xs = usable().map(|p| p.0);
    let xs = xs.chain(marked().map(|x| scaled(x, log_x)));
    let (Some(x), Some(y)) = (range(xs), range(usable().map(|p| p.1))) else {
        let style = ("sans-serif", 15).into_font();
        area.draw(&Text::new(title.to_string(), (12, 6), style.clone()))?;
        area.draw(&Text::new("no measurements", (12, 40), style))?;
        for (k, mark) in content.marks.iter().enumerate() {
            let text = Text::new(mark.text.clone(), (12, 64 + 16 * k as i32), mark.style());
            area.draw(&text)?;
        }
        return Ok(());
    };
    // Marks stand above all curves, those of one position below each other.
    let row = |k: usize| {
        let before = content.marks[..k].iter();
        before.filter(|m| m.x == content.marks[k].x).count()
    };
    let rows = (0..content.marks.len()).map(|k| row(k) + 1).max();
    let y = (
        y.0,
        y.1 + MARK_SPACE * rows.unwrap_or(0) as f64 * (y.1 - y.0),
    );
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 228, 232))
        .x_desc(content.x_label)
        .y_desc(content.y_label)
        .x_labels(6)
        .y_labels(6)
        .label_style(("sans-serif", 12))
        .x_label_formatter(&|x| tick(*x, log_x))
        .y_label_formatter(&|y| tick(*y, log_y))
        .draw()?;
    for curve in curves {
        let points: Vec<(f64, f64)> = curve.points.iter().map(point).collect();
        let points = points
            .into_iter()
            .filter(|p| p.0.is_finite() && p.1.is_finite());
        let points: Vec<(f64, f64)> = points.collect();
        let style = colour(curve.series).stroke_width(2);
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        // Many points would hide the line.
        if points.len() <= MAX_DOTS {
            let dot = |&p: &(f64, f64)| Circle::new(p, 3, colour(curve.series).filled());
            chart.draw_series(points.iter().map(dot))?;
        }
    }
    for (k, mark) in content.marks.iter().enumerate() {
        let below = 3 + MARK_ROW * row(k) as i32;
        let (position, anchor) = match mark.x {
            Some(x) => (scaled(x, log_x), HPos::Center),
            None => (x.1, HPos::Right),
        };
        let style = mark.style().pos(Pos::new(anchor, VPos::Top));
        let text = Text::new(mark.text.clone(), (0, below), style);
        chart.draw_series([EmptyElement::at((position, y.1)) + text])?;
    }
    Ok(())
}

impl Mark {
    fn style(&self) -> TextStyle<'static> {
        let font = ("sans-serif", 11).into_font();
        TextStyle::from(font).color(colour(self.series))
    }
}

/// Returns the label of a tick.
fn tick(x: f64, is_log: bool) -> String {
    if !is_log {
        return short_number(x);
    }
    // Two digits: ticks between powers of ten are not round numbers.
    let value = 10f64.powf(x);
    let unit = 10f64.powf(x.floor() - 1.0);
    short_number((value / unit).round() * unit)
}

/// Returns a number with few digits: 0.0123, 1.5, 20, 3K, 10M.
pub(super) fn short_number(x: f64) -> String {
    let (scaled, unit) = match x.abs() {
        a if a >= 999_500.0 => (x / 1e6, "M"),
        a if a >= 1000.0 => (x / 1e3, "K"),
        _ => (x, ""),
    };
    let digits = match scaled.abs() {
        a if a >= 100.0 || a == 0.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        a => (2.0 - a.log10().floor()).min(12.0) as usize,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}

fn draw_bars(
    area: &Area<'_>,
    title: &str,
    bars: &[Bar],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    const LEFT: i32 = 170;
    const TOP: i32 = 34;
    let (width, height) = area.dim_in_pixel();
    area.draw(&Text::new(title.to_string(), (12, 6), ("sans-serif", 15)))?;
    let lengths = bars.iter().filter_map(|b| b.length.as_ref().ok());
    // Without lengths there are only texts.
    let (low, high) = range(lengths.map(|x| x.log10())).unwrap_or((0.0, 1.0));
    let step = (height as i32 - TOP - 12) / bars.len().max(1) as i32;
    let room = f64::from(width as i32 - LEFT - 70);
    for (k, bar) in bars.iter().enumerate() {
        let y = TOP + k as i32 * step;
        let centre = y + step / 2;
        let name = ("sans-serif", 13).into_font().into_text_style(area);
        area.draw(&Text::new(
            bar.name.clone(),
            (LEFT - 8, centre),
            name.pos(Pos::new(HPos::Right, VPos::Center)),
        ))?;
        let (end, text) = match &bar.length {
            Ok(x) => {
                // Bars begin a little below the smallest length.
                let end = LEFT
                    + (room * (x.log10() - low + 0.02 * (high - low)) / (1.02 * (high - low)))
                        as i32;
                let corners = [(LEFT, y + 3), (end, y + step - 3)];
                area.draw(&Rectangle::new(corners, colour(0).filled()))?;
                (end, format!("{} s", short_number(*x)))
            }
            Err(text) => (LEFT, text.clone()),
        };
        let style = ("sans-serif", 13).into_font().into_text_style(area);
        area.draw(&Text::new(
            text,
            (end + 6, centre),
            style.pos(Pos::new(HPos::Left, VPos::Center)),
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.0123, "0.0123"),
            (1.5, "1.5"),
            (20.0, "20"),
            (3000.0, "3K"),
            (1e7, "10M"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(short_number(x), text);
        }
    }

    #[test]
    fn charts_are_well_formed_for_any_values() {
        let curve = |points| Curve { series: 0, points };
        let mark = |x, text: &str| Mark {
            series: 1,
            x,
            text: text.into(),
        };
        let curves = |points| {
            Content::Curves(Curves {
                curves: vec![curve(points)],
                marks: vec![mark(Some(9.0), "O.O.T."), mark(None, "a < b: O.O.M.")],
                log_x: true,
                log_y: false,
                x_label: "seconds",
                y_label: "RMSE",
            })
        };
        let bars = vec![
            Bar {
                name: "a < b".into(),
                length: Ok(0.5),
            },
            Bar {
                name: "c".into(),
                length: Err("O.O.M.".into()),
            },
        ];
        for content in [
            curves(Vec::new()),
            curves(vec![(1.0, 2.0)]),
            curves(vec![(0.0, f64::NAN), (1.0, 2.0), (3.0, f64::INFINITY)]),
            Content::Bars(bars),
            Content::Bars(Vec::new()),
        ] {
            let panels = vec![Panel {
                title: "panel".into(),
                content,
            }];
            let chart = Chart {
                title: "title".into(),
                legend: vec!["first".into()],
                panels,
            };
            let svg = chart.draw().unwrap();
            assert!(
                svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
                "{svg}"
            );
            assert!(!svg.contains("NaN") && !svg.contains("a < b"), "{svg}");
        }
    }
}
