//! A panel with curves over common axes, and marks above them.

use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Scale, label};
use super::canvas::{
    Canvas, Drawn, FRAME, GRID, LABEL_FONT, SMALL_FONT, Stroke, label_room, shortened, text_width,
};
use super::{FRAME_BOTTOM, FRAME_TOP, darker};

/// The distances of the frame from the sides of the panel.
const FRAME_LEFT: i32 = 70;
const FRAME_RIGHT: i32 = 18;
/// The height of a row of marks.
pub(super) const MARK_ROW: i32 = 13;
/// The distance of marks in a row.
const MARK_GAP: i32 = 8;
/// The room for the label of a tick of the vertical axis.
const LABEL_HEIGHT: f64 = 18.0;
/// How far the break of an axis is above the least value: this power of the median's ratio to it.
const BREAK_POWER: f64 = 1.6;
/// The least distance of two points of a curve: pixels would make steps of closer ones.
const POINT_DISTANCE: i32 = 3;
/// The largest number of points of a curve that are also drawn as dots.
const MAX_DOTS: usize = 12;
/// The background of the part of a broken axis that has another scale.
const FAR: RGBColor = RGBColor(244, 244, 246);

/// A curve of a panel.
pub(in super::super) struct Curve {
    pub stroke: Stroke,
    pub points: Vec<(f64, f64)>,
    /// The standard error of each point, or empty.
    pub errors: Vec<f64>,
}

/// A text in the place of a point that could not be measured.
pub(in super::super) struct Mark {
    pub colour: RGBColor,
    /// Its position on the horizontal axis, where the figure has one for each measurement.
    pub x: Option<f64>,
    pub text: String,
}

/// Curves over common axes.
pub(in super::super) struct Curves {
    pub curves: Vec<Curve>,
    pub marks: Vec<Mark>,
    pub x: Scale,
    pub y: Scale,
    pub x_label: &'static str,
    pub y_label: &'static str,
    /// Whether the vertical axis, which is logarithmic, may have another scale for values far above most curves.
    pub may_break: bool,
}

impl Curves {
    /// Returns the number of rows of marks in a panel of some width.
    pub(super) fn mark_rows(&self, width: i32) -> i32 {
        let places = self.mark_places(self.x_axis(width).as_ref(), width);
        places.iter().map(|(row, _)| row + 1).max().unwrap_or(0)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken_at().is_some()
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.curves.iter().flat_map(|c| c.points.iter().copied());
        let is_positive = |scale: &Scale, x: f64| match scale {
            Scale::Linear | Scale::Whole => x.is_finite(),
            Scale::Log | Scale::LogAt(_) => x.is_finite() && x > 0.0,
        };
        all.filter(move |p| is_positive(&self.x, p.0) && is_positive(&self.y, p.1))
    }

    fn x_axis(&self, width: i32) -> Option<Axis> {
        let length = f64::from(width - FRAME_LEFT - FRAME_RIGHT);
        let marked = self.marks.iter().filter_map(|m| m.x);
        let xs = self.points().map(|p| p.0).chain(marked);
        Axis::new(&self.x, xs, length, &label_room, None)
    }

    fn y_axis(&self, height: i32) -> Option<Axis> {
        let with_error = |c: &Curve, k: usize| {
            let (y, error) = (c.points[k].1, c.errors.get(k).copied().unwrap_or(0.0));
            [y - error, y + error]
        };
        let ends = self
            .curves
            .iter()
            .flat_map(|c| (0..c.errors.len().min(c.points.len())).flat_map(|k| with_error(c, k)));
        let ys = self.points().map(|p| p.1).chain(ends);
        let (length, at) = (f64::from(height), self.broken_at());
        Axis::new(&self.y, ys, length, &|_| LABEL_HEIGHT, at)
    }

    /// Returns the value above which the vertical axis is compressed: a little above the median of the values with which curves
    /// begin and end. `None` if all curves can be read without it.
    fn broken_at(&self) -> Option<f64> {
        if !self.may_break {
            return None;
        }
        let mut ends: Vec<f64> = Vec::new();
        for curve in &self.curves {
            let is_shown = |y: &f64| y.is_finite() && *y > 0.0;
            let mut shown = curve.points.iter().map(|p| p.1).filter(is_shown);
            let first = shown.next();
            ends.extend(first);
            ends.extend(shown.next_back().or(first));
        }
        ends.sort_by(f64::total_cmp);
        let median = *ends.get(ends.len() / 2)?;
        let low = self.points().map(|p| p.1).reduce(f64::min)?;
        let high = self.points().map(|p| p.1).reduce(f64::max)?;
        let at = low * (median / low).powf(BREAK_POWER);
        let unit = 10f64.powf(at.log10().floor()) / 20.0;
        let at = (at / unit).ceil() * unit;
        (at > low && (high / at).ln() > 1.5 * (at / low).ln()).then_some(at)
    }

    /// Returns the row and the centre of each mark: the first row where it overlaps no earlier one.
    fn mark_places(&self, axis: Option<&Axis>, width: i32) -> Vec<(i32, i32)> {
        let length = width - FRAME_LEFT - FRAME_RIGHT;
        // The left and the right ends of the marks of each row.
        let mut rows: Vec<Vec<(i32, i32)>> = Vec::new();
        let mut place = |mark: &Mark| {
            let half = text_width(&mark.text, SMALL_FONT).min(length) / 2;
            let wanted = mark.x.zip(axis).map(|(x, axis)| axis.pixel(x) as i32);
            let wanted = wanted.map(|x| x.clamp(half, length - half));
            let free_centre = |row: &Vec<(i32, i32)>| {
                let after = row.iter().map(|m| m.1 + MARK_GAP).max();
                let centre = wanted.unwrap_or(after.unwrap_or(0) + half);
                let is_free = |m: &(i32, i32)| {
                    centre + half + MARK_GAP <= m.0 || m.1 + MARK_GAP <= centre - half
                };
                (centre + half <= length && row.iter().all(is_free)).then_some(centre)
            };
            let mut places = rows.iter().map(free_centre).enumerate();
            let found = places.find_map(|(row, centre)| Some((row, centre?)));
            let (row, centre) = found.unwrap_or((rows.len(), wanted.unwrap_or(half)));
            rows.resize(rows.len().max(row + 1), Vec::new());
            rows[row].push((centre - half, centre + half));
            (row as i32, FRAME_LEFT + centre)
        };
        self.marks.iter().map(&mut place).collect()
    }

    /// Draws the panel with room for some rows of marks.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, mark_rows: i32) -> Drawn {
        let (width, height) = canvas.size();
        let top = FRAME_TOP + MARK_ROW * mark_rows;
        let (right, bottom) = (width - FRAME_RIGHT, height - FRAME_BOTTOM);
        let x = self.x_axis(width);
        self.draw_marks(canvas, x.as_ref(), width)?;
        let (Some(x), Some(y)) = (x, self.y_axis(bottom - top)) else {
            let at = (width / 2, (top + bottom) / 2);
            return canvas.text(
                "no measurements",
                at,
                LABEL_FONT,
                (HPos::Center, VPos::Center),
            );
        };
        let middle = ((FRAME_LEFT + right) / 2, height - 8);
        canvas.text(
            self.x_label,
            middle,
            SMALL_FONT,
            (HPos::Center, VPos::Bottom),
        )?;
        canvas.upward_text(self.y_label, (14, (top + bottom) / 2), SMALL_FONT)?;
        let frame = Frame {
            top,
            right,
            bottom,
            x,
            y,
        };
        frame.draw_axes(canvas)?;
        for curve in &self.curves {
            frame.draw_curve(canvas, curve)?;
        }
        Ok(())
    }

    fn draw_marks(&self, canvas: &Canvas<'_>, axis: Option<&Axis>, width: i32) -> Drawn {
        let places = self.mark_places(axis, width);
        for (mark, (row, centre)) in self.marks.iter().zip(places) {
            let text = shortened(&mark.text, SMALL_FONT, width - FRAME_LEFT - FRAME_RIGHT);
            let half = text_width(&text, SMALL_FONT) / 2;
            let (x, anchor) = match mark.x {
                Some(_) => (centre, HPos::Center),
                None => (centre - half, HPos::Left),
            };
            let (at, anchor) = ((x, FRAME_TOP - 4 + MARK_ROW * row), (anchor, VPos::Top));
            canvas.coloured_text(&text, at, SMALL_FONT, anchor, darker(mark.colour))?;
        }
        Ok(())
    }
}

/// The axes of a panel and where they are.
struct Frame {
    top: i32,
    right: i32,
    bottom: i32,
    x: Axis,
    y: Axis,
}

impl Frame {
    fn at_x(&self, x: f64) -> i32 {
        FRAME_LEFT + self.x.pixel(x).round() as i32
    }

    fn at_y(&self, y: f64) -> i32 {
        self.bottom - self.y.pixel(y).round() as i32
    }

    /// Returns where a point is; `None` if a logarithmic axis does not have it.
    fn at(&self, (x, y): (f64, f64)) -> Option<(i32, i32)> {
        let is_shown = self.x.pixel(x).is_finite() && self.y.pixel(y).is_finite();
        is_shown.then(|| (self.at_x(x), self.at_y(y)))
    }

    fn draw_axes(&self, canvas: &Canvas<'_>) -> Drawn {
        let (top, right, bottom) = (self.top, self.right, self.bottom);
        let break_y = self.y.break_pixel().map(|at| bottom - at as i32);
        if let Some(y) = break_y {
            canvas.rectangle([(FRAME_LEFT, top), (right, y)], FAR)?;
        }
        for &tick in &self.x.ticks {
            let x = self.at_x(tick);
            canvas.rule((x, top), (x, bottom), GRID)?;
            canvas.rule((x, bottom), (x, bottom + 4), FRAME)?;
            let anchor = (HPos::Center, VPos::Top);
            canvas.text(&label(tick), (x, bottom + 7), SMALL_FONT, anchor)?;
        }
        for &tick in &self.y.ticks {
            let y = self.at_y(tick);
            canvas.rule((FRAME_LEFT, y), (right, y), GRID)?;
            canvas.rule((FRAME_LEFT - 4, y), (FRAME_LEFT, y), FRAME)?;
            let anchor = (HPos::Right, VPos::Center);
            canvas.text(&label(tick), (FRAME_LEFT - 7, y), SMALL_FONT, anchor)?;
        }
        canvas.rule((FRAME_LEFT, top), (FRAME_LEFT, bottom), FRAME)?;
        canvas.rule((FRAME_LEFT, bottom), (right, bottom), FRAME)?;
        if let Some(y) = break_y {
            for y in [y - 2, y + 2] {
                canvas.rule((FRAME_LEFT - 5, y + 3), (FRAME_LEFT + 5, y - 3), FRAME)?;
            }
        }
        Ok(())
    }

    fn draw_curve(&self, canvas: &Canvas<'_>, curve: &Curve) -> Drawn {
        let solid = Stroke {
            is_dashed: false,
            ..curve.stroke
        };
        for (&(x, y), &error) in curve.points.iter().zip(&curve.errors) {
            if let (Some((x, low)), Some((_, high))) =
                (self.at((x, y - error)), self.at((x, y + error)))
            {
                let (left, right) = (x - 3, x + 3);
                let bar = [
                    (left, low),
                    (right, low),
                    (x, low),
                    (x, high),
                    (left, high),
                    (right, high),
                ];
                canvas.line(&bar, solid, 1)?;
            }
        }
        let points = curve.points.iter().filter_map(|p| self.at(*p));
        let points: Vec<(i32, i32)> = points.collect();
        if points.len() > 1 {
            canvas.line(&apart(&points), curve.stroke, 2)?;
        }
        // Many points would hide the line.
        if points.len() <= MAX_DOTS {
            let radius = if points.len() == 1 { 4 } else { 3 };
            for at in points {
                canvas.dot(at, radius, curve.stroke.colour)?;
            }
        }
        Ok(())
    }
}

/// Returns the first and the last point, and those between that are apart from the one before.
fn apart(points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for (k, p) in points.iter().enumerate() {
        let distance = |q: &(i32, i32)| (p.0 - q.0).abs().max((p.1 - q.1).abs());
        let is_apart = kept.last().is_none_or(|q| distance(q) >= POINT_DISTANCE);
        if is_apart || k + 1 == points.len() {
            kept.push(*p);
        }
    }
    kept
}
