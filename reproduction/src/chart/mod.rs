//! Figures as SVG: panels with curves, or with bars, and one legend.

mod axis;
mod bars;
mod canvas;
mod curves;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use s3cmtf::{Error, Result};

pub(super) use axis::Scale;
pub(super) use bars::{Bar, Bars};
pub(super) use canvas::Stroke;
use canvas::{Canvas, Drawn, LABEL_FONT, PANEL_FONT, SMALL_FONT, TITLE_FONT};
use canvas::{shortened, text_width};
use curves::MARK_ROW;
pub(super) use curves::{Curve, Curves, Mark};

/// The size of a panel without marks in pixels, and that of the only panel of a chart.
const PANEL: (i32, i32) = (420, 320);
const ONLY_PANEL: (i32, i32) = (640, 400);
/// The distances of the frame from the top and the bottom of a panel.
const FRAME_TOP: i32 = 34;
const FRAME_BOTTOM: i32 = 46;
/// What is not needed at the top of a panel without a title.
const UNTITLED: i32 = 12;
/// The height of a row of the legend, and the width of an item beside its name.
const LEGEND_ROW: i32 = 20;
const LEGEND_LINE: i32 = 54;
const BROKEN: &str = "Shaded: far above most curves, on a compressed scale.";

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
/// The colour of what is not a method.
pub(super) const GREY: RGBColor = RGBColor(120, 120, 120);

pub(super) enum Content {
    Curves(Curves),
    Bars(Bars),
}

pub(super) struct Panel {
    pub title: String,
    pub content: Content,
}

/// An item of the legend.
pub(super) struct Series {
    pub name: String,
    pub stroke: Stroke,
}

/// A figure of several panels with one legend.
pub(super) struct Chart {
    pub title: String,
    pub legend: Vec<Series>,
    pub panels: Vec<Panel>,
    /// The largest number of panels beside each other.
    pub columns: usize,
}

impl Chart {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> Result<String> {
        let mut text = String::new();
        self.draw_on(&mut text)
            .map_err(|e| Error::argument(format!("cannot draw {}: {e}", self.title)))?;
        Ok(text)
    }

    fn draw_on(&self, text: &mut String) -> Drawn {
        let (width, least_height) = match self.panels.len() {
            0 | 1 => ONLY_PANEL,
            _ => PANEL,
        };
        let mark_rows = self.panels.iter().map(|p| match &p.content {
            Content::Curves(curves) => curves.mark_rows(width),
            Content::Bars(_) => 0,
        });
        let mark_rows = mark_rows.max().unwrap_or(0);
        let heights = self.panels.iter().map(|p| match &p.content {
            Content::Curves(_) => least_height + MARK_ROW * mark_rows,
            Content::Bars(bars) => bars.height().max(least_height),
        });
        let height = heights.max().unwrap_or(least_height);
        let columns = self.panels.len().clamp(1, self.columns.max(1));
        let rows = self.panels.len().div_ceil(columns).max(1);
        let full_width = width * columns as i32;
        let is_broken = self.panels.iter().any(|p| match &p.content {
            Content::Curves(curves) => curves.is_broken(),
            Content::Bars(_) => false,
        });
        let names = self.legend.iter().map(|s| text_width(&s.name, LABEL_FONT));
        let item = (names.max().unwrap_or(0) + LEGEND_LINE).min(full_width - 12);
        let legend_columns = ((full_width - 12) / item) as usize;
        let legend_rows = self.legend.len().div_ceil(legend_columns) as i32;
        let note_top = 42 + legend_rows * LEGEND_ROW;
        let note = if is_broken { 18 } else { 0 };
        let has_titles = self.panels.iter().any(|p| !p.title.is_empty());
        let header = note_top + note - if has_titles { 0 } else { UNTITLED };

        let size = (full_width as u32, (header + height * rows as i32) as u32);
        let root = SVGBackend::with_string(text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (top, below) = root.split_vertically(header);
        let top = Canvas(top);
        let anchor = (HPos::Left, VPos::Top);
        top.text(&self.title, (12, 10), TITLE_FONT, anchor)?;
        for (k, series) in self.legend.iter().enumerate() {
            let x = 12 + (k % legend_columns) as i32 * item;
            let y = 46 + (k / legend_columns) as i32 * LEGEND_ROW;
            top.line(&[(x, y), (x + 26, y)], series.stroke, 3)?;
            let name = shortened(&series.name, LABEL_FONT, item - 36);
            top.text(&name, (x + 34, y), LABEL_FONT, (HPos::Left, VPos::Center))?;
        }
        if is_broken {
            top.coloured_text(BROKEN, (12, note_top), SMALL_FONT, anchor, GREY)?;
        }
        for (panel, area) in self.panels.iter().zip(below.split_evenly((rows, columns))) {
            let canvas = Canvas(area);
            let title = shortened(&panel.title, PANEL_FONT, width - 24);
            canvas.text(
                &title,
                (width / 2, 6),
                PANEL_FONT,
                (HPos::Center, VPos::Top),
            )?;
            match &panel.content {
                Content::Curves(curves) => curves.draw(&canvas, mark_rows)?,
                Content::Bars(bars) => bars.draw(&canvas)?,
            }
        }
        root.present()?;
        Ok(())
    }
}

/// Returns a colour of its own for each of the first places.
pub(super) fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// Returns a colour that small text can be read in.
fn darker(colour: RGBColor) -> RGBColor {
    let part = |c: u8| c / 10 * 7;
    RGBColor(part(colour.0), part(colour.1), part(colour.2))
}

/// Returns a colour nearer to white.
pub(super) fn lighter(colour: RGBColor) -> RGBColor {
    let part = |c: u8| c + (255 - c) / 5 * 3;
    RGBColor(part(colour.0), part(colour.1), part(colour.2))
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

    fn stroke() -> Stroke {
        Stroke {
            colour: colour(0),
            is_dashed: true,
        }
    }

    fn curves(points: Vec<Vec<(f64, f64)>>, marks: &[(Option<f64>, &str)]) -> Content {
        let curve = |points: Vec<(f64, f64)>| Curve {
            stroke: stroke(),
            errors: vec![0.1; points.len()],
            points,
        };
        let mark = |&(x, text): &(Option<f64>, &str)| Mark {
            colour: colour(1),
            x,
            text: text.into(),
        };
        Content::Curves(Curves {
            curves: points.into_iter().map(curve).collect(),
            marks: marks.iter().map(mark).collect(),
            x: Scale::Log,
            y: Scale::Log,
            x_label: "seconds",
            y_label: "RMSE",
            may_break: true,
        })
    }

    fn bars(bars: Vec<Bar>) -> Content {
        let (label, ends) = ("seconds", (0.1, 1.0));
        Content::Bars(Bars { bars, label, ends })
    }

    fn svg(content: Content) -> String {
        let name = "a name that is much longer than what any legend or axis of a chart has room for, a < b";
        let panel = Panel {
            title: name.into(),
            content,
        };
        let series = Series {
            name: name.into(),
            stroke: stroke(),
        };
        let chart = Chart {
            title: "title".into(),
            legend: vec![series],
            panels: vec![panel],
            columns: 3,
        };
        chart.draw().unwrap()
    }

    #[test]
    fn charts_are_well_formed_for_any_values() {
        let marks = [(Some(9.0), "O.O.T."), (None, "a < b: O.O.M.")];
        let bar = |training| Bar {
            name: "a < b".into(),
            colour: colour(0),
            training,
            evaluation: Some(0.2),
        };
        for content in [
            curves(Vec::new(), &marks),
            curves(vec![vec![(1.0, 2.0)]], &marks),
            curves(
                vec![vec![(0.0, f64::NAN), (1.0, 2.0), (3.0, f64::INFINITY)]],
                &[],
            ),
            bars(vec![bar(Ok(0.5)), bar(Err("O.O.M.".into()))]),
            bars(Vec::new()),
        ] {
            let svg = svg(content);
            assert!(
                svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
                "{svg}"
            );
            assert!(!svg.contains("NaN") && !svg.contains("a < b"), "{svg}");
        }
    }

    #[test]
    fn far_curves_have_a_scale_of_their_own() {
        let near = |k: usize| vec![(1.0, 1.02 + 0.01 * k as f64), (2.0, 0.95 - 0.01 * k as f64)];
        let mut points: Vec<_> = (0..4).map(near).collect();
        assert!(!svg(curves(points.clone(), &[])).contains(BROKEN));
        points.push(vec![(1.0, 3.0), (2.0, 3.5)]);
        let svg = svg(curves(points, &[]));
        assert!(svg.contains(BROKEN));
        for tick in ["0.95", "1", "3"] {
            assert!(
                svg.contains(&format!(">\n{tick}\n</text>")),
                "{tick}: {svg}"
            );
        }
    }

    #[test]
    fn marks_do_not_overlap() {
        let marks = [(Some(9.0), "O.O.T. 10 s"); 8];
        let Content::Curves(content) = curves(vec![vec![(1.0, 2.0)]], &marks) else {
            unreachable!()
        };
        assert_eq!(content.mark_rows(400), 8);
        let marks = [(None, "O.O.T. 10 s"); 8];
        let Content::Curves(content) = curves(vec![vec![(1.0, 2.0)]], &marks) else {
            unreachable!()
        };
        assert!(content.mark_rows(400) < 4);
    }
}
