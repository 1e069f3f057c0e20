//! The inner product of rows that equals the mean product of their predictions.
//!
//! The entries of a factor row have no meaning by themselves: an invertible matrix may move between the factor and the
//! core without changing any prediction. The inner product defined here is invariant to that choice.

// One index runs over several arrays.
#![allow(clippy::needless_range_loop)]

use super::parameter_view::ParameterView;
use crate::error::Result;
use crate::kernel::CoreKind;
use crate::model::Model;
use crate::progress::{Monitor, OPERATIONS_PER_STRIDED_ENTRY, StepPolls};
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Returns the matrix M of a mode, row-major with J_n columns: u M v^T is the mean product of the predictions of rows u
/// and v over all positions of the other modes, without mean and biases.
///
/// With the core unfolded along the mode, M = G (A_2 (x) ... (x) A_N) G^T, where A_n is the second moment of another
/// mode ([`second_moment`]). For a mode in `given`, A_n is w^T w of the given compact row w.
pub(super) fn prediction_metric(
    model: &Model,
    parameters: &ParameterView<'_>,
    mode: usize,
    given: &[(usize, usize)],
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let shape = model.shape();
    let moment = |n: usize| match given.iter().find(|(m, _)| *m == n) {
        Some(&(_, row)) => Ok(outer_square(parameters, n, row, shape.ranks()[n])),
        None => second_moment(model, parameters, n, monitor),
    };
    let others: Vec<(usize, Vec<f64>)> = (0..shape.order())
        .filter(|&n| n != mode)
        .map(|n| Ok((n, moment(n)?)))
        .collect::<Result<_>>()?;
    let rank = shape.ranks()[mode];
    let mut metric = try_zeroed(rank * rank, "values of a metric")?;
    if shape.kind() == CoreKind::Diagonal {
        for (k, m) in metric.iter_mut().enumerate() {
            let core = |j: usize| f64::from(parameters.core()[j]);
            let moments: f64 = others.iter().map(|(_, a)| a[k]).product();
            *m = core(k / rank) * core(k % rank) * moments;
        }
        return Ok(metric);
    }
    let core = shape.dense_core(parameters.core())?;
    let elements = core.iter().map(|&g| f64::from(g));
    let mut product: Vec<f64> = try_collect(core.len(), elements, CORE_ENTRIES)?;
    for (n, moment) in &others {
        product = mode_product(&product, shape.ranks(), *n, moment, monitor)?;
    }
    let stride: usize = shape.ranks()[mode + 1..].iter().product();
    let mut polls = StepPolls::new(monitor, rank * OPERATIONS_PER_STRIDED_ENTRY);
    for (position, &g) in core.iter().enumerate() {
        polls.step()?;
        let i = position / stride % rank;
        let first = position - i * stride;
        for j in 0..rank {
            metric[i * rank + j] += f64::from(g) * product[first + j * stride];
        }
    }
    Ok(metric)
}

/// Computes the product of a dense tensor with a square matrix along mode `n`.
fn mode_product(
    tensor: &[f64],
    ranks: &[usize],
    n: usize,
    matrix: &[f64],
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let (rank, stride) = (ranks[n], ranks[n + 1..].iter().product::<usize>());
    let mut out: Vec<f64> = try_zeroed(tensor.len(), CORE_ENTRIES)?;
    // A slice of the last mode is a single entry.
    let mut polls = StepPolls::new(monitor, rank * (stride + OPERATIONS_PER_STRIDED_ENTRY));
    for (block, to) in tensor
        .chunks_exact(rank * stride)
        .zip(out.chunks_exact_mut(rank * stride))
    {
        for (i, to) in to.chunks_exact_mut(stride).enumerate() {
            polls.step()?;
            for (j, slice) in block.chunks_exact(stride).enumerate() {
                let a = matrix[i * rank + j];
                to.iter_mut().zip(slice).for_each(|(t, x)| *t += a * x);
            }
        }
    }
    Ok(out)
}

/// Returns w^T w of one row w.
fn outer_square(parameters: &ParameterView<'_>, mode: usize, row: usize, rank: usize) -> Vec<f64> {
    let mut values = vec![0.0f32; rank];
    parameters.read(mode, row, &mut values);
    let product = |k: usize| f64::from(values[k / rank]) * f64::from(values[k % rank]);
    (0..rank * rank).map(product).collect()
}

/// Returns the second moment of the rows of a mode: the mean of w^T w, each row weighted by its tensor entries.
pub(super) fn second_moment(
    model: &Model,
    parameters: &ParameterView<'_>,
    mode: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let rank = model.shape().ranks()[mode];
    let mut moment: Vec<f64> = try_zeroed(rank * rank, "values of a metric")?;
    let mut row = vec![0.0f32; rank];
    let own = &model.modes()[mode];
    let total = own.total_weight();
    let mut polls = StepPolls::new(monitor, rank * rank);
    for i in (0..own.rows.len()).filter(|_| total > 0.0) {
        polls.step()?;
        let fraction = own.row_weight(i) / total;
        parameters.read(mode, i, &mut row);
        // Slices of equal length: the compiler then drops the bounds checks and vectorizes.
        let row = &row[..rank];
        for j in 0..rank {
            let line = &mut moment[j * rank..][..rank];
            let x = fraction * f64::from(row[j]);
            for k in 0..rank {
                line[k] += x * f64::from(row[k]);
            }
        }
    }
    Ok(moment)
}
