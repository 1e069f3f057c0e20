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

/// Options for data like the paper's. `scale` multiplies the entries, users and items alike, so that
/// rows keep their lengths; the time mode and the columns of matrices stay.
pub fn preset(name: &str, scale: f64) -> Result<GenerateOptions> {
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Error::argument(format!(
            "scale {scale}; it must be above 0"
        )));
    }
    let zipf = |shift: f64| Skew {
        exponent: 1.0,
        shift: shift * scale,
    };
    let scaled = |n: f64| ((n * scale).round() as u64).max(1);
    let full = |mode, columns, ones| MatrixSpec {
        mode,
        columns,
        cells: CellChoice::Full,
        ones: Some(ones),
    };
    let mut o;
    match name {
        "movielens" => {
            o = GenerateOptions::new(&[scaled(71e3), scaled(11e3), 157], scaled(10e6));
            o.ranks = vec![12];
            o.skew = vec![
                zipf(250.0),
                zipf(50.0),
                Skew {
                    exponent: 0.5,
                    shift: 5.0,
                },
            ];
            o.mean = Some(3.51);
            o.rounding = Some(Rounding {
                low: 0.5,
                high: 5.0,
                step: 0.5,
            });
            o.matrices = vec![full(1, 20, 0.1)];
        }
        "netflix" => {
            o = GenerateOptions::new(&[scaled(480e3), scaled(18e3), 74], scaled(100e6));
            o.ranks = vec![11];
            o.skew = vec![
                zipf(900.0),
                zipf(70.0),
                Skew {
                    exponent: 0.5,
                    shift: 2.0,
                },
            ];
            o.mean = Some(3.6);
            o.rounding = Some(Rounding {
                low: 1.0,
                high: 5.0,
                step: 1.0,
            });
            o.matrices = vec![full(1, 110, 0.01)];
        }
        "yelp" => {
            o = GenerateOptions::new(&[scaled(1e6), scaled(144e3), 149], scaled(4e6));
            o.ranks = vec![10];
            o.skew = vec![
                zipf(100.0),
                zipf(100.0),
                Skew {
                    exponent: 0.5,
                    shift: 5.0,
                },
            ];
            o.mean = Some(3.7);
            o.rounding = Some(Rounding {
                low: 1.0,
                high: 5.0,
                step: 1.0,
            });
            let friends = MatrixSpec {
                mode: 0,
                columns: o.dims[0],
                cells: CellChoice::Entries(scaled(7e6).min(o.dims[0] * o.dims[0])),
                ones: None,
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
    if o.dims.iter().any(|&d| d > MAX_DIM) {
        return Err(Error::argument(format!(
            "scale {scale} makes a mode larger than {MAX_DIM}"
        )));
    }
    // About half of the variance is noise, as in ratings; rows have tendencies of their own.
    o.deviation = 0.75;
    o.noise = 1.0;
    o.factor_mean = 1.0;
    o.test = 0.2;
    Ok(o)
}
