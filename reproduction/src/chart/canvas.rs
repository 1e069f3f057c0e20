//! Lines, rectangles and texts in pixels.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// A font size is that of plotters, 1.24 times that of the SVG file.
const CHARACTER_WIDTH: f64 = 0.6 / 1.24;
pub(super) const TITLE_FONT: i32 = 21;
pub(super) const PANEL_FONT: i32 = 17;
pub(super) const LABEL_FONT: i32 = 15;
pub(super) const SMALL_FONT: i32 = 13;

pub(super) const GRID: RGBColor = RGBColor(225, 228, 232);
pub(super) const FRAME: RGBColor = RGBColor(90, 90, 90);

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Stroke {
    pub colour: RGBColor,
    pub is_dashed: bool,
}

/// An area of the picture.
pub(super) struct Canvas<'a>(pub DrawingArea<SVGBackend<'a>, Shift>);

impl Canvas<'_> {
    pub fn size(&self) -> (i32, i32) {
        let (width, height) = self.0.dim_in_pixel();
        (width as i32, height as i32)
    }

    pub fn line(&self, points: &[(i32, i32)], stroke: Stroke, width: u32) -> Drawn {
        let style = stroke.colour.stroke_width(width);
        let points = points.to_vec();
        if stroke.is_dashed {
            self.0.draw(&DashedPathElement::new(points, 6, 4, style))?;
        } else {
            self.0.draw(&PathElement::new(points, style))?;
        }
        Ok(())
    }

    /// Draws a solid line between two points.
    pub fn rule(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        let is_dashed = false;
        self.line(&[from, to], Stroke { colour, is_dashed }, 1)
    }

    pub fn dot(&self, at: (i32, i32), radius: i32, colour: RGBColor) -> Drawn {
        Ok(self.0.draw(&Circle::new(at, radius, colour.filled()))?)
    }

    pub fn rectangle(&self, corners: [(i32, i32); 2], colour: RGBColor) -> Drawn {
        Ok(self.0.draw(&Rectangle::new(corners, colour.filled()))?)
    }

    pub fn text(&self, text: &str, at: (i32, i32), font: i32, anchor: (HPos, VPos)) -> Drawn {
        self.coloured_text(text, at, font, anchor, BLACK)
    }

    pub fn coloured_text(
        &self,
        text: &str,
        at: (i32, i32),
        font: i32,
        anchor: (HPos, VPos),
        colour: RGBColor,
    ) -> Drawn {
        let style = TextStyle::from(("sans-serif", font).into_font()).color(&colour);
        let style = style.pos(Pos::new(anchor.0, anchor.1));
        Ok(self.0.draw(&Text::new(text.to_string(), at, style))?)
    }

    /// Draws a text that reads upwards, with its middle at a point.
    pub fn upward_text(&self, text: &str, at: (i32, i32), font: i32) -> Drawn {
        let font = ("sans-serif", font).into_font();
        let style = TextStyle::from(font.transform(FontTransform::Rotate270));
        let style = style.pos(Pos::new(HPos::Center, VPos::Center));
        Ok(self.0.draw(&Text::new(text.to_string(), at, style))?)
    }
}

/// Returns the width of a text in pixels, about.
pub(super) fn text_width(text: &str, font: i32) -> i32 {
    (text.chars().count() as f64 * f64::from(font) * CHARACTER_WIDTH).ceil() as i32
}

/// Returns the room that the label of a tick takes along a horizontal axis.
pub(super) fn label_room(label: &str) -> f64 {
    f64::from(text_width(label, SMALL_FONT) + 5)
}

/// Returns a text without what does not fit into a width.
pub(super) fn shortened(text: &str, font: i32, width: i32) -> String {
    if text_width(text, font) <= width {
        return text.into();
    }
    let count = (f64::from(width) / (f64::from(font) * CHARACTER_WIDTH)) as usize;
    let kept: String = text.chars().take(count.saturating_sub(1)).collect();
    format!("{kept}…")
}
