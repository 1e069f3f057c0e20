//! Starting values in the scale that L-BFGS needs.
//!
//! The core stays 1. All parameters take steps of one size at first, so no mode and no component may have a scale of its own.
//! Components near 0 would also be near a saddle of the objective.

use super::objective::{MatrixTerm, Objective, grams, hadamard_product};
use super::parameter_vector::scale_columns;
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf::internals::row_moments;
use s3cmtf::internals::{CHUNK, sum_chunks};
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::linalg::dot;
use s3cmtf_kernel::parallel::ThreadPool;

/// Factor of all parameters below the size with which the model has the magnitude of the values. From larger values
/// components cancel each other before they fit anything; from much smaller ones the saddle at 0 is near. Of 0.1, 0.25, 0.35,
/// 0.5, 0.7 and 1 it reached the optimum of planted data of orders 3 and 4, with and without matrices, most often and soonest.
const REDUCTION: f64 = 0.5;

/// Sets the core to 1 and scales random factors and columns. Without [`REDUCTION`] the models of the tensor and of each
/// matrix would have, over all cells, the mean square of the values that count: of the entries if other cells are unknown, of
/// all cells if those are zeros.
pub(super) fn scale_random_values(
    model: &mut Model,
    objective: &Objective,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let rank = model.shape.ranks()[0];
    model.core[..rank].fill(1.0);
    let grams = grams(model, pool)?;
    let wanted = match objective.zero_filled {
        Some(squares) => squares,
        None => {
            let rows = model.modes.iter().map(|m| m.rows.len() as f64);
            mean_square(&objective.tensor[0].csr, pool)? * rows.product::<f64>()
        }
    };
    let found: f64 = hadamard_product(&grams, None).iter().sum();
    // The product has one factor per mode.
    let factor = scale(wanted, found).powf(1.0 / model.order() as f64);
    let mut scales = vec![vec![REDUCTION * factor; rank]; model.order()];
    for (m, matrix) in objective.matrices.iter().enumerate() {
        let columns = &model.matrices[m].factor;
        let v = row_moments(columns, columns.len(), &[], pool)?;
        let found = factor.powi(2) * dot(&grams[matrix.mode], &v.gram());
        let wanted = squares_of_all_cells(matrix, pool)?;
        scales.push(vec![REDUCTION * scale(wanted, found); rank]);
    }
    scale_columns(model, &scales, pool)?;
    model.update_mean_rows_with(pool)
}

/// Makes the core 1 without a change of the tensor's predictions: the modes without matrices take equal shares of an element, the
/// first of them its sign, so that predictions of the matrices do not change either. If every mode has a matrix, the first mode
/// takes the element.
pub(super) fn distribute_core(model: &mut Model, pool: &ThreadPool<'_>) -> Result<()> {
    let (rank, order) = (model.shape.ranks()[0], model.order());
    let is_coupled = |n: &usize| model.matrices.iter().any(|matrix| matrix.mode == *n);
    let mut modes: Vec<usize> = (0..order).filter(|n| !is_coupled(n)).collect();
    if modes.is_empty() {
        modes.push(0);
    }
    let mut scales = vec![vec![1.0; rank]; order + model.matrices.len()];
    for (j, g) in model.core[..rank].iter_mut().enumerate() {
        let g = f64::from(std::mem::replace(g, 1.0));
        if g == 0.0 {
            // A component that is 0 in one mode only can still grow.
            scales[modes[0]][j] = 0.0;
            continue;
        }
        let share = g.abs().powf(1.0 / modes.len() as f64);
        modes.iter().for_each(|&n| scales[n][j] = share);
        scales[modes[0]][j] *= g.signum();
    }
    scale_columns(model, &scales, pool)?;
    model.update_mean_rows_with(pool)
}

/// Returns the factor that changes the sum of squares `found` into `wanted`; 1 if there is none.
fn scale(wanted: f64, found: f64) -> f64 {
    let scale = (wanted / found).sqrt();
    if scale.is_finite() && scale > 0.0 {
        scale
    } else {
        1.0
    }
}

/// Returns the sum of squares of a matrix if each cell has the mean square of those that count.
fn squares_of_all_cells(matrix: &MatrixTerm, pool: &ThreadPool<'_>) -> Result<f64> {
    let cells = matrix.by_row.csr.row_count() as f64 * matrix.by_column.csr.row_count() as f64;
    match &matrix.full {
        Some((_, squares)) => Ok(*squares),
        None => Ok(mean_square(&matrix.by_row.csr, pool)? * cells),
    }
}

/// Returns the weighted mean square of the values of entries; 0 without any.
fn mean_square(entries: &ModeCsr, pool: &ThreadPool<'_>) -> Result<f64> {
    let count = entries.len();
    let state = || Ok(());
    let [squares, weight] = sum_chunks(count.div_ceil(CHUNK), pool, state, |(), c| {
        let mut sums = [0.0; 2];
        for entry in c * CHUNK..((c + 1) * CHUNK).min(count) {
            let (value, weight) = (
                f64::from(entries.value(entry)),
                f64::from(entries.weight(entry)),
            );
            sums[0] += weight * value * value;
            sums[1] += weight;
        }
        Ok(sums)
    })?;
    Ok(if weight > 0.0 { squares / weight } else { 0.0 })
}
