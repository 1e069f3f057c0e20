//! What products of rows mean: those of their predictions.

use super::layer::Layer;
use crate::error::Result;
use crate::model::Model;
use crate::try_alloc::try_zeroed;

use crate::kernel::CoreKind;

/// The metric of the rows of a mode, row-major: u M v^T is the mean product of what rows u and v predict, without mean
/// and biases, over all cells of the other modes. Of modes that `given` has, only that compact row counts.
pub(super) fn metric(
    model: &Model,
    layer: &Layer<'_>,
    mode: usize,
    given: &[(usize, usize)],
) -> Result<Vec<f64>> {
    let shape = model.shape();
    let square = |n: usize| match given.iter().find(|(m, _)| *m == n) {
        Some(&(_, row)) => Ok(one_square(layer, n, row, shape.ranks[n])),
        None => mean_square(model, layer, n),
    };
    let others: Vec<(usize, Vec<f64>)> = (0..shape.order())
        .filter(|&n| n != mode)
        .map(|n| Ok((n, square(n)?)))
        .collect::<Result<_>>()?;
    let rank = shape.ranks[mode];
    let mut metric = try_zeroed(rank * rank, "numbers of a metric")?;
    if shape.kind == CoreKind::Diagonal {
        for (k, m) in metric.iter_mut().enumerate() {
            let core = |j: usize| f64::from(layer.core()[j]);
            let squares: f64 = others.iter().map(|(_, a)| a[k]).product();
            *m = core(k / rank) * core(k % rank) * squares;
        }
        return Ok(metric);
    }
    let core = shape.dense_core(layer.core());
    let mut turned: Vec<f64> = core.iter().map(|&g| f64::from(g)).collect();
    for (n, square) in &others {
        turned = along(&turned, &shape.ranks, *n, square);
    }
    let after: usize = shape.ranks[mode + 1..].iter().product();
    for (at, &g) in core.iter().enumerate() {
        let i = at / after % rank;
        let first = at - i * after;
        for j in 0..rank {
            metric[i * rank + j] += f64::from(g) * turned[first + j * after];
        }
    }
    Ok(metric)
}

/// A dense tensor multiplied with a square matrix along mode `n`.
fn along(from: &[f64], ranks: &[usize], n: usize, by: &[f64]) -> Vec<f64> {
    let (rank, after) = (ranks[n], ranks[n + 1..].iter().product::<usize>());
    let mut out = vec![0.0; from.len()];
    for (block, to) in from
        .chunks_exact(rank * after)
        .zip(out.chunks_exact_mut(rank * after))
    {
        for (i, to) in to.chunks_exact_mut(after).enumerate() {
            for (j, part) in block.chunks_exact(after).enumerate() {
                let g = by[i * rank + j];
                to.iter_mut().zip(part).for_each(|(t, p)| *t += g * p);
            }
        }
    }
    out
}

/// w^T w of one row w.
fn one_square(layer: &Layer<'_>, mode: usize, row: usize, rank: usize) -> Vec<f64> {
    let mut numbers = vec![0.0f32; rank];
    layer.read(mode, row, &mut numbers);
    let product = |k: usize| f64::from(numbers[k / rank]) * f64::from(numbers[k % rank]);
    (0..rank * rank).map(product).collect()
}

/// The mean of w^T w over the rows w of a mode, by their entries.
pub(super) fn mean_square(model: &Model, layer: &Layer<'_>, mode: usize) -> Result<Vec<f64>> {
    let rank = model.shape().ranks[mode];
    let mut square: Vec<f64> = try_zeroed(rank * rank, "numbers of a metric")?;
    let mut row = vec![0.0f32; rank];
    let own = &model.modes()[mode];
    let total = own.total();
    for i in (0..own.rows.len()).filter(|_| total > 0.0) {
        let share = own.weight(i) / total;
        layer.read(mode, i, &mut row);
        for (line, &x) in square.chunks_exact_mut(rank).zip(&row) {
            let x = share * f64::from(x);
            line.iter_mut()
                .zip(&row)
                .for_each(|(s, &y)| *s += x * f64::from(y));
        }
    }
    Ok(square)
}
