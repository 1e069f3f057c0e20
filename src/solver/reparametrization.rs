//! Changes of a model's parameters that leave its predictions unchanged: orthonormal factors of Tucker
//! models and normalized columns of non-negative models after a fit, balanced scales before a warm start.

use crate::error::Result;
use crate::kernel::{CoreKind, CoreShape};
use crate::linalg::qr;
use crate::model::{FactorMatrix, Model, RowPrior};
use crate::progress::{Monitor, StepPolls, check_cancelled};
use crate::simd::padded_len;
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Makes the columns of every factor orthonormal: with U(n) = Q R, sets U(n) <- Q, G <- G x_n R, and
/// V <- V R^T for every matrix coupled to mode n.
///
/// A cancellation ends it between two modes, so that predictions stay the same.
pub(super) fn orthogonalize(model: &mut Model, monitor: &dyn Monitor) -> Result<()> {
    for n in 0..model.order() {
        let count = model.modes[n].rows.len();
        let rank = model.shape.ranks()[n];
        if count < rank {
            // An empty mode has nothing to orthonormalize.
            continue;
        }
        let (q, r) = orthonormal_columns(&model.modes[n].factor, count, n, monitor)?;
        let core = multiply_core(&model.shape, &model.core, n, rank, &r, monitor)?;
        let prior = transform_prior(&model.modes[n].prior, rank, &r, monitor)?;
        let mut factors = Vec::new();
        for matrix in model.matrices.iter().filter(|m| m.mode == n) {
            factors.push(multiply_rows(&matrix.factor, rank, &r, monitor)?);
        }
        store_columns(&mut model.modes[n].factor, &q)?;
        model.core.copy_from_slice(&core);
        model.modes[n].prior = prior;
        let matrices = model.matrices.iter_mut().filter(|m| m.mode == n);
        matrices
            .zip(factors)
            .for_each(|(matrix, factor)| matrix.factor = factor);
    }
    model.orthogonal = true;
    model.update_mean_rows()
}

/// Transforms the penalty on rows u for rows q with u = R^T q: with M the metric and p = M times the row that
/// the penalty shrinks to, returns R M R^T and R p.
fn transform_prior(
    prior: &RowPrior,
    rank: usize,
    r: &[f64],
    monitor: &dyn Monitor,
) -> Result<RowPrior> {
    let metric: Vec<f64> = if prior.metric.is_empty() {
        (0..rank * rank)
            .map(|k| f64::from(u8::from(k / rank == k % rank)))
            .collect()
    } else {
        prior.metric.iter().map(|&m| f64::from(m)).collect()
    };
    let multiply = |r: &[f64], m: &dyn Fn(usize, usize) -> f64| -> Result<Vec<f64>> {
        let mut product = Vec::with_capacity(rank * rank);
        for row in r.chunks_exact(rank) {
            check_cancelled(monitor)?;
            let element = |j: usize| {
                let each = row.iter().enumerate();
                each.map(|(i, x)| x * m(i, j)).sum::<f64>()
            };
            product.extend((0..rank).map(element));
        }
        Ok(product)
    };
    let r_metric = multiply(r, &|i, j| metric[i * rank + j])?;
    let transformed = multiply(&r_metric, &|i, j| r[j * rank + i])?;
    let mut linear = Vec::new();
    if !prior.linear.is_empty() {
        linear.extend(r.chunks_exact(rank).map(|row| {
            let each = row.iter().zip(&prior.linear);
            each.map(|(x, &p)| x * f64::from(p)).sum::<f64>() as f32
        }));
    }
    Ok(RowPrior {
        metric: transformed.iter().map(|&m| m as f32).collect(),
        linear,
        ..prior.clone()
    })
}

/// Returns the QR factorization of the first `count` rows, as a matrix: the columns of Q, and R, row-major.
fn orthonormal_columns(
    rows: &FactorMatrix,
    count: usize,
    mode: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
    let (rank, stride) = (rows.rank(), rows.stride());
    let column = |j: usize| -> Result<Vec<f64>> {
        check_cancelled(monitor)?;
        let elements = rows.as_slice().iter().skip(j).step_by(stride).take(count);
        try_collect(count, elements.map(|&u| f64::from(u)), "rows")
    };
    let mut q: Vec<Vec<f64>> = (0..rank).map(column).collect::<Result<_>>()?;
    let r = qr(&mut q, mode as u64, monitor)?;
    Ok((q, r))
}

/// Overwrites the first rows of a factor with the rows of a matrix that is given by its columns.
fn store_columns(rows: &mut FactorMatrix, columns: &[Vec<f64>]) -> Result<()> {
    let stride = rows.stride();
    let out = rows.as_mut_slice()?;
    for (j, column) in columns.iter().enumerate() {
        for (i, &x) in column.iter().enumerate() {
            out[i * stride + j] = x as f32;
        }
    }
    Ok(())
}

/// Returns the mode product G x_n R of a full core.
fn multiply_core(
    shape: &CoreShape,
    core: &[f32],
    n: usize,
    rank: usize,
    r: &[f64],
    monitor: &dyn Monitor,
) -> Result<Vec<f32>> {
    let dense = shape.dense_core(core)?;
    let inner: usize = shape.ranks()[n + 1..].iter().product();
    let mut out: Vec<f32> = try_zeroed(dense.len(), CORE_ENTRIES)?;
    let mut polls = StepPolls::new(monitor, rank * inner);
    for (to, from) in out
        .chunks_exact_mut(rank * inner)
        .zip(dense.chunks_exact(rank * inner))
    {
        for a in 0..rank {
            polls.step()?;
            for k in 0..inner {
                let sum: f64 = (0..rank)
                    .map(|j| r[a * rank + j] * f64::from(from[j * inner + k]))
                    .sum();
                to[a * inner + k] = sum as f32;
            }
        }
    }
    shape.padded_core(&out)
}

/// Returns R v of each row v.
fn multiply_rows(
    rows: &FactorMatrix,
    rank: usize,
    r: &[f64],
    monitor: &dyn Monitor,
) -> Result<FactorMatrix> {
    let mut products = FactorMatrix::zeros(rows.len(), rank)?;
    let stride = rows.stride();
    let mut polls = StepPolls::new(monitor, rank * rank);
    for (i, out) in products
        .as_mut_slice()?
        .chunks_exact_mut(stride)
        .enumerate()
    {
        polls.step()?;
        let row = rows.row(i);
        for (a, o) in out[..rank].iter_mut().enumerate() {
            *o = (0..rank)
                .map(|j| r[a * rank + j] * f64::from(row[j]))
                .sum::<f64>() as f32;
        }
    }
    Ok(products)
}

/// Multiplies column `j` of mode `n`'s factor by `scales[j]`, and divides the core and the columns of the
/// mode's matrices by it, which leaves predictions unchanged.
fn rescale_mode(model: &mut Model, n: usize, scales: &[f64], monitor: &dyn Monitor) -> Result<()> {
    let (rank, stride) = (model.shape.ranks()[n], padded_len(model.shape.ranks()[n]));
    let mut inverse = vec![0.0; rank * rank];
    scales
        .iter()
        .enumerate()
        .for_each(|(j, s)| inverse[j * rank + j] = 1.0 / s);
    let prior = transform_prior(&model.modes[n].prior, rank, &inverse, monitor)?;
    let core = match model.shape.kind() {
        CoreKind::Diagonal => {
            let elements = model.core[..rank].iter().zip(scales);
            elements.map(|(g, s)| (f64::from(*g) / s) as f32).collect()
        }
        CoreKind::Full => multiply_core(&model.shape, &model.core, n, rank, &inverse, monitor)?,
    };
    model.modes[n].prior = prior;
    model.core[..core.len()].copy_from_slice(&core);
    for row in model.modes[n]
        .factor
        .as_mut_slice()?
        .chunks_exact_mut(stride)
    {
        row[..rank]
            .iter_mut()
            .zip(scales)
            .for_each(|(u, s)| *u = (f64::from(*u) * s) as f32);
    }
    for matrix in model.matrices.iter_mut().filter(|m| m.mode == n) {
        for row in matrix.factor.as_mut_slice()?.chunks_exact_mut(stride) {
            row[..rank]
                .iter_mut()
                .zip(scales)
                .for_each(|(v, s)| *v = (f64::from(*v) / s) as f32);
        }
    }
    Ok(())
}

/// Returns the norm of each column of mode `n`'s factor, without the mean row.
pub(super) fn column_norms(model: &Model, n: usize) -> Vec<f64> {
    let mode = &model.modes[n];
    let mut squares = vec![0.0f64; model.shape.ranks()[n]];
    for i in 0..mode.rows.len() {
        squares
            .iter_mut()
            .zip(mode.factor.row(i))
            .for_each(|(s, &u)| *s += f64::from(u) * f64::from(u));
    }
    squares.iter().map(|s| s.sqrt()).collect()
}

/// Scales the columns of every factor to norm 1. Their norms move into the core, and the columns of coupled
/// matrices are rescaled with their mode. Columns of zeros stay.
///
/// A cancellation ends it between two modes, so that predictions stay the same.
pub(super) fn normalize_columns(model: &mut Model, monitor: &dyn Monitor) -> Result<()> {
    for n in 0..model.order() {
        let scales: Vec<f64> = column_norms(model, n)
            .iter()
            .map(|&s| if s > 0.0 { 1.0 / s } else { 1.0 })
            .collect();
        rescale_mode(model, n, &scales, monitor)?;
    }
    model.update_mean_rows()
}

/// Gives factors and core the same root mean square. After orthogonalization factors are small and the core
/// is large, which one learning rate does not suit.
pub(super) fn rebalance(model: &mut Model, monitor: &dyn Monitor) -> Result<()> {
    let rms = |squares: f64, n: f64| (squares / n.max(1.0)).sqrt();
    let square = |xs: &[f32]| xs.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let sizes: Vec<f64> = (0..model.order())
        .map(|n| {
            let squares: f64 = column_norms(model, n).iter().map(|s| s * s).sum();
            rms(
                squares,
                (model.modes[n].rows.len() * model.shape.ranks()[n]) as f64,
            )
        })
        .collect();
    let core = rms(
        square(&model.core),
        model.core.iter().filter(|g| **g != 0.0).count() as f64,
    );
    if core == 0.0 || sizes.contains(&0.0) {
        return Ok(());
    }
    let log_mean =
        (sizes.iter().map(|s| s.ln()).sum::<f64>() + core.ln()) / (sizes.len() as f64 + 1.0);
    for (n, size) in sizes.iter().enumerate() {
        let scales = vec![log_mean.exp() / size; model.shape.ranks()[n]];
        rescale_mode(model, n, &scales, monitor)?;
    }
    model.orthogonal = false;
    model.update_mean_rows()
}
