//! The default learning rate of a full core, as a multiple of that of the factors.
//!
//! The curvature c of the squared error of an entry in the core is the product of the squared norms of the entry's factor rows u.
//! SGD is stable for learning rates below 2 E[c] / E[c^2]. If the rows of different modes are independent, that bound is
//! proportional to the product of E[|u|^2] / E[|u|^4] over the modes.
//!
//! [`CORE_ETA_SCALE`] was chosen for order 3. Starting values with prior means have two modes with small rows; in every other
//! mode the squared norm of a row is about the rank. Each mode beyond the third therefore multiplies the curvature by about
//! the rank, and the learning rate is divided by that factor.

use super::chunked_sum::sum_chunks;
use crate::error::Result;
use crate::model::{Model, ModelMode};
use crate::options::ModelKind;
use crate::parallel::ThreadPool;

/// The default at orders 2 and 3, for starting values with prior means.
const CORE_ETA_SCALE: f64 = 0.02;

/// Largest order at which the default is [`CORE_ETA_SCALE`].
const MAX_CONSTANT_ORDER: usize = 3;

/// Number of rows that one task sums.
const CHUNK_ROWS: usize = 4096;

/// Returns the default for starting values with prior means; `None` if it depends on these values.
pub(super) fn without_starting_values(model: ModelKind, order: usize) -> Option<f64> {
    match model {
        ModelKind::Cp => Some(0.0),
        _ if order <= MAX_CONSTANT_ORDER => Some(CORE_ETA_SCALE),
        _ => None,
    }
}

/// Returns the default for a full core and the starting values in `model`.
pub(super) fn of_starting_values(model: &Model, pool: &ThreadPool<'_>) -> Result<f64> {
    let mut curvatures = Vec::new();
    for mode in &model.modes {
        curvatures.push(mode_curvature(mode, pool)?);
    }
    Ok(CORE_ETA_SCALE / excess_curvature(curvatures))
}

/// Returns E[|u|^4] / E[|u|^2] over the rows u of a mode; 0 if all elements are 0.
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

/// Returns the curvature of the core relative to a tensor of order 3, from the curvatures of the modes. The modes with the two
/// smallest curvatures have small rows. Of the others, order 3 has one: the result is their product divided by their geometric
/// mean, and at least 1.
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
