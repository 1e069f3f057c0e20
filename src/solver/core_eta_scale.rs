//! The default learning rate of a full core, relative to that of rows and columns.
//!
//! The gradient of the core is the outer product of the rows of an entry, whose curvature c is the product of their squared
//! norms. SGD with rows that are independent between modes is stable for learning rates below 2 E c / E c^2, a product of
//! one factor E |u|^2 / E |u|^4 per mode. At order 3, [`CORE_ETA_SCALE`] suits starts with prior means, where two modes have
//! rows around 0 and the third has rows whose squared norm is about the rank. Each further mode with such rows multiplies the
//! curvature by about the rank.

use super::chunked_sum::sum_chunks;
use crate::error::Result;
use crate::model::{Model, ModelMode};
use crate::options::ModelKind;
use crate::parallel::ThreadPool;

/// Learning rate of a full core that starts near its prior mean, as a multiple of that of rows, up to order 3.
const CORE_ETA_SCALE: f64 = 0.02;

/// Largest order at which [`CORE_ETA_SCALE`] is the default whatever the starting values are.
const MAX_CONSTANT_ORDER: usize = 3;

/// Number of rows that one task sums.
const CHUNK_ROWS: usize = 4096;

/// Returns the default of a start with prior means; `None` if it depends on the starting values.
pub(super) fn without_starting_values(model: ModelKind, order: usize) -> Option<f64> {
    match model {
        ModelKind::Cp => Some(0.0),
        _ if order <= MAX_CONSTANT_ORDER => Some(CORE_ETA_SCALE),
        _ => None,
    }
}

/// Returns the default for a full core with these starting values.
pub(super) fn of_starting_values(model: &Model, pool: &ThreadPool<'_>) -> Result<f64> {
    let mut curvatures = Vec::new();
    for mode in &model.modes {
        curvatures.push(mode_curvature(mode, pool)?);
    }
    Ok(CORE_ETA_SCALE / excess_curvature(curvatures))
}

/// Returns E |u|^4 / E |u|^2 over the rows of a mode; 0 if all are 0.
fn mode_curvature(mode: &ModelMode, pool: &ThreadPool<'_>) -> Result<f64> {
    let count = mode.rows.len();
    let no_state = || Ok(());
    let [squares, fourth_powers] =
        sum_chunks(count.div_ceil(CHUNK_ROWS), pool, no_state, |(), chunk| {
            let mut sums = [0.0; 2];
            for i in chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(count) {
                let row = mode.factor.row(i).iter();
                let square: f64 = row.map(|&u| f64::from(u) * f64::from(u)).sum();
                sums[0] += square;
                sums[1] += square * square;
            }
            Ok(sums)
        })?;
    Ok(if squares > 0.0 {
        fourth_powers / squares
    } else {
        0.0
    })
}

/// Returns how many times the curvature of the core is that of order 3: the product over the modes, without the two around
/// 0, which have the smallest curvatures, divided by one typical factor. It is at least 1.
fn excess_curvature(mut curvatures: Vec<f64>) -> f64 {
    curvatures.sort_by(f64::total_cmp);
    let others = curvatures.get(2..).unwrap_or_default();
    let log_product: f64 = others.iter().map(|c| c.ln()).sum();
    (log_product * (1.0 - 1.0 / others.len().max(1) as f64))
        .exp()
        .max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_further_mode_multiplies_the_curvature() {
        assert_eq!(excess_curvature(vec![2.0, 3.0]), 1.0);
        assert_eq!(excess_curvature(vec![25.0, 2.0, 3.0]), 1.0);
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        assert!(close(excess_curvature(vec![25.0, 2.0, 25.0, 3.0]), 25.0));
        assert!(close(excess_curvature(vec![9.0, 2.0, 4.0, 3.0]), 6.0));
        // Small rows leave the learning rate as it is.
        assert_eq!(excess_curvature(vec![0.1, 0.2, 0.3, 0.4, 0.0]), 1.0);
        assert_eq!(excess_curvature(vec![0.0; 5]), 1.0);
    }
}
