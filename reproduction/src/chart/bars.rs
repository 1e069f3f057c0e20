//! A panel with bars: seconds on a logarithmic axis.

use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Scale, label};
use super::canvas::{
    Canvas, Drawn, FRAME, GRID, LABEL_FONT, SMALL_FONT, label_room, shortened, text_width,
};
use super::{FRAME_BOTTOM, FRAME_TOP, lighter, short_number};

/// The height that a method takes at least.
const ROW: i32 = 24;
/// Room for the number after the longest bar.
const NUMBER_WIDTH: i32 = 64;

/// The bars of a method.
pub(in super::super) struct Bar {
    pub name: String,
    pub colour: RGBColor,
    /// Seconds of training, or the text that stands in their place.
    pub training: std::result::Result<f64, String>,
    /// Seconds of evaluation, a second bar.
    pub evaluation: Option<f64>,
}

pub(in super::super) struct Bars {
    pub bars: Vec<Bar>,
    pub label: &'static str,
    /// The ends of the axis, the same in all panels of a chart.
    pub ends: (f64, f64),
}

impl Bars {
    /// Returns the height of a panel in which each method has enough room.
    pub(super) fn height(&self) -> i32 {
        FRAME_TOP + FRAME_BOTTOM + ROW * self.bars.len() as i32
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>) -> Drawn {
        let (width, height) = canvas.size();
        let names = self.bars.iter().map(|b| text_width(&b.name, LABEL_FONT));
        let left = (names.max().unwrap_or(0) + 16).min(width * 45 / 100);
        let bottom = height - FRAME_BOTTOM;
        let length = f64::from(width - left - NUMBER_WIDTH);
        let ends = [self.ends.0, self.ends.1].into_iter();
        let Some(axis) = Axis::new(&Scale::Log, ends, length, &label_room, None) else {
            return Ok(());
        };
        let at = |x: f64| left + axis.pixel(x).round() as i32;
        let base = at(self.ends.0);
        for &tick in &axis.ticks {
            let x = at(tick);
            canvas.rule((x, FRAME_TOP), (x, bottom), GRID)?;
            canvas.rule((x, bottom), (x, bottom + 4), FRAME)?;
            let anchor = (HPos::Center, VPos::Top);
            canvas.text(&label(tick), (x, bottom + 7), SMALL_FONT, anchor)?;
        }
        let middle = (left + length as i32 / 2, height - 8);
        canvas.text(self.label, middle, SMALL_FONT, (HPos::Center, VPos::Bottom))?;
        let step = (bottom - FRAME_TOP) / self.bars.len().max(1) as i32;
        for (k, bar) in self.bars.iter().enumerate() {
            let top = FRAME_TOP + k as i32 * step;
            let (first, second) = (top + step * 55 / 100, top + step * 85 / 100);
            let name = shortened(&bar.name, LABEL_FONT, left - 8);
            let anchor = (HPos::Right, VPos::Center);
            canvas.text(&name, (left - 8, top + step / 2), LABEL_FONT, anchor)?;
            if let Some(seconds) = bar.evaluation {
                let corners = [(base, first), (at(seconds), second)];
                canvas.rectangle(corners, lighter(bar.colour))?;
            }
            let (end, text) = match &bar.training {
                Ok(seconds) => {
                    let corners = [(base, top + step * 10 / 100), (at(*seconds), first)];
                    canvas.rectangle(corners, bar.colour)?;
                    (at(*seconds), format!("{} s", short_number(*seconds)))
                }
                Err(text) => (base, text.clone()),
            };
            let number = (end + 5, top + step * 32 / 100);
            canvas.text(&text, number, SMALL_FONT, (HPos::Left, VPos::Center))?;
        }
        canvas.rule((base, FRAME_TOP), (base, bottom), FRAME)?;
        canvas.rule((base, bottom), (left + length as i32, bottom), FRAME)
    }
}
