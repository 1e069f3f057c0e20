//! Presets: planted data with the shapes of the paper's data sets (its Table 4).
//!
//! The popularity distributions were fitted to those of the real data. The most popular film has 0.35% of the entries of
//! MovieLens-10M and 0.23% of those of Netflix; the most active user has 0.07% and 0.02%. Values have the real mean,
//! deviation and rating steps. A good model should reach an RMSE near 0.8 to 0.9, as on the real data.

use super::options::{GenerateOptions, MatrixEntries, MatrixSpec, Rounding};
use super::popularity::ZipfMandelbrot;
use crate::error::{Error, Result};
use crate::format::MAX_DIM;

/// The names of the presets.
pub const PRESETS: [&str; 3] = ["movielens", "netflix", "yelp"];

/// The shape of one of the paper's tensors, at scale 1.
struct Shape {
    /// Users, items and times.
    dims: [f64; 3],
    entries: f64,
    /// The shifts of the popularity distributions of users and items, with exponent 1.
    shifts: [f64; 2],
    time: ZipfMandelbrot,
}

/// The largest density of the user-item matrix when a tensor is scaled down.
///
/// Up to it, users and items shrink in proportion to the entries, so that rows keep their lengths. Beyond it, rows would
/// soon have more entries than there are items, and the density is kept instead.
const MAX_DENSITY: f64 = 0.1;

impl Shape {
    /// Returns options with `scale` times the entries.
    fn scaled(&self, scale: f64) -> Result<GenerateOptions> {
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::argument(format!(
                "scale {scale}; it must be above 0"
            )));
        }
        let relative_density = self.entries / (self.dims[0] * self.dims[1]) / MAX_DENSITY;
        let side = scale.max((scale * relative_density).sqrt());
        let whole = |x: f64| x.round().max(1.0);
        let (users, items) = (whole(self.dims[0] * side), whole(self.dims[1] * side));
        if users.max(items) > MAX_DIM as f64 {
            return Err(Error::argument(format!(
                "scale {scale} makes a mode larger than {MAX_DIM}"
            )));
        }
        let entries = whole(self.entries * scale);
        let mut user_shift = self.shifts[0] * side;
        // No user may rate more items than there are.
        while largest_probability(user_shift, users) * entries > items && user_shift < 1e9 {
            user_shift = 1.25 * user_shift + 1.0;
        }
        let zipf = |shift| ZipfMandelbrot {
            exponent: 1.0,
            shift,
        };
        let dims = [users as u64, items as u64, self.dims[2] as u64];
        let mut o = GenerateOptions::new(&dims, entries as u64);
        o.skew = vec![zipf(user_shift), zipf(self.shifts[1] * side), self.time];
        // About half of the variance is noise, as in ratings. Factors with a mean give rows main effects.
        o.deviation = 0.75;
        o.noise = 1.0;
        o.factor_mean = 1.0;
        o.test_fraction = 0.2;
        Ok(o)
    }
}

/// Returns the probability of the most popular of `n` rows for p(r) proportional to 1 / (r + shift).
fn largest_probability(shift: f64, n: f64) -> f64 {
    ((2.0 + shift) / (1.0 + shift)).ln() / ((n + 1.0 + shift) / (1.0 + shift)).ln()
}

/// Returns options for data like those of the paper. `scale` multiplies the entries, and users and items with them; the
/// time mode and the columns of matrices keep their sizes.
pub fn preset(name: &str, scale: f64) -> Result<GenerateOptions> {
    let full = |mode, columns, ones_fraction| MatrixSpec {
        mode,
        columns,
        entries: MatrixEntries::All,
        ones_fraction: Some(ones_fraction),
        group_fraction: None,
    };
    let time = |shift| ZipfMandelbrot {
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
                // On average seven friends per user.
                entries: MatrixEntries::Sampled((7 * users).min(users * users)),
                ones_fraction: Some(1.0),
                group_fraction: None,
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
