//! The paper's data sets (its Table 4), as planted data of the same shape.
//!
//! Skews were fitted to what is known of the real ones: the share of the most popular film is 0.35%
//! in MovieLens-10M and 0.23% in Netflix, of the most active user 0.07% and 0.02%. Values have the
//! real mean, deviation and steps; a good model should reach an error near 0.8 to 0.9, as there.

use super::options::{CellChoice, GenerateOptions, MatrixSpec, Rounding};
use super::skew::Skew;
use crate::error::{Error, Result};
use crate::format::MAX_DIM;

/// The names [`preset`] knows.
pub const PRESETS: [&str; 3] = ["movielens", "netflix", "yelp"];

/// One of the paper's tensors: users, items and times, entries, and the skew of the first two.
struct Shape {
    dims: [f64; 3],
    entries: f64,
    shifts: [f64; 2],
    time: Skew,
}

/// Below this density a smaller scale shrinks users and items with the entries, so that rows keep
/// their lengths; above it rows would soon have more entries than there are items, so the density
/// is kept instead.
const DENSEST: f64 = 0.1;

impl Shape {
    fn scaled(&self, scale: f64) -> Result<GenerateOptions> {
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::argument(format!(
                "scale {scale}; it must be above 0"
            )));
        }
        let densest_at = self.entries / (self.dims[0] * self.dims[1]) / DENSEST;
        let side = scale.max((scale * densest_at).sqrt());
        let whole = |x: f64| x.round().max(1.0);
        let (users, items) = (whole(self.dims[0] * side), whole(self.dims[1] * side));
        if users.max(items) > MAX_DIM as f64 {
            return Err(Error::argument(format!(
                "scale {scale} makes a mode larger than {MAX_DIM}"
            )));
        }
        let entries = whole(self.entries * scale);
        let mut user_shift = self.shifts[0] * side;
        // Nobody rates more items than there are.
        while largest_share(user_shift, users) * entries > items && user_shift < 1e9 {
            user_shift = 1.25 * user_shift + 1.0;
        }
        let zipf = |shift| Skew {
            exponent: 1.0,
            shift,
        };
        let dims = [users as u64, items as u64, self.dims[2] as u64];
        let mut o = GenerateOptions::new(&dims, entries as u64);
        o.skew = vec![zipf(user_shift), zipf(self.shifts[1] * side), self.time];
        // About half of the variance is noise, as in ratings; rows have tendencies of their own.
        o.deviation = 0.75;
        o.noise = 1.0;
        o.factor_mean = 1.0;
        o.test = 0.2;
        Ok(o)
    }
}

/// The share of the most popular of `n` rows when p(r) ~ 1 / (r + shift).
fn largest_share(shift: f64, n: f64) -> f64 {
    ((2.0 + shift) / (1.0 + shift)).ln() / ((n + 1.0 + shift) / (1.0 + shift)).ln()
}

/// Options for data like the paper's. `scale` multiplies the entries, and users and items with
/// them; the time mode and the columns of matrices stay.
pub fn preset(name: &str, scale: f64) -> Result<GenerateOptions> {
    let full = |mode, columns, ones| MatrixSpec {
        mode,
        columns,
        cells: CellChoice::Full,
        ones: Some(ones),
        groups: None,
    };
    let time = |shift| Skew {
        exponent: 0.5,
        shift,
    };
    let stars = |step: f64| {
        Some(Rounding {
            low: step,
            high: 5.0,
            step,
        })
    };
    let mut o;
    match name {
        "movielens" => {
            let shape = Shape {
                dims: [71e3, 11e3, 157.0],
                entries: 10e6,
                shifts: [250.0, 50.0],
                time: time(5.0),
            };
            o = shape.scaled(scale)?;
            o.ranks = vec![12];
            o.mean = Some(3.51);
            o.rounding = stars(0.5);
            o.matrices = vec![full(1, 20, 0.1)];
        }
        "netflix" => {
            let shape = Shape {
                dims: [480e3, 18e3, 74.0],
                entries: 100e6,
                shifts: [900.0, 70.0],
                time: time(2.0),
            };
            o = shape.scaled(scale)?;
            o.ranks = vec![11];
            o.mean = Some(3.6);
            o.rounding = stars(1.0);
            o.matrices = vec![full(1, 110, 0.01)];
        }
        "yelp" => {
            let shape = Shape {
                dims: [1e6, 144e3, 149.0],
                entries: 4e6,
                shifts: [100.0, 100.0],
                time: time(5.0),
            };
            o = shape.scaled(scale)?;
            o.ranks = vec![10];
            o.mean = Some(3.7);
            o.rounding = stars(1.0);
            let users = o.dims[0];
            let friends = MatrixSpec {
                mode: 0,
                columns: users,
                // Seven friends each.
                cells: CellChoice::Entries((7 * users).min(users * users)),
                ones: Some(1.0),
                groups: None,
            };
            o.matrices = vec![friends, full(1, 1192, 0.003), full(1, 877, 0.0012)];
        }
        _ => {
            return Err(Error::argument(format!(
                "no preset is called '{name}'; there are {}",
                PRESETS.join(", ")
            )));
        }
    }
    Ok(o)
}
