//! What happens to a fitted model at the end, none of which changes a prediction: orthonormal factors
//! for Tucker, normalised columns for non-negative models; and the opposite before a warm start.

use crate::error::Result;
use crate::model::{Before, Model, Rows};

use crate::kernel::{CoreKind, CoreShape};

use crate::random::RandomStream;
use crate::simd::padded_len;

/// U(n) = Q R by modified Gram-Schmidt, twice, in `f64`; U(n) <- Q, G <- G x_n R, and V <- V R^T for
/// every matrix of that mode.
pub(super) fn orthogonalise(model: &mut Model) -> Result<()> {
    for n in 0..model.order() {
        let count = model.modes[n].rows.len();
        let rank = model.shape.ranks[n];
        if count < rank {
            // An empty mode: nothing to make orthonormal.
            continue;
        }
        let r = orthonormal_columns(&mut model.modes[n].factor, count, n as u64)?;
        multiply_core(&model.shape, &mut model.core, n, rank, &r);
        turn(&mut model.modes[n].before, rank, &r);
        for matrix in model.matrices.iter_mut().filter(|m| m.mode == n) {
            multiply_rows(&mut matrix.factor, rank, &r)?;
        }
    }
    model.orthogonal = true;
    model.refresh_means()
}

/// What rows are thought to be like, for rows q instead of u = q R.
fn turn(before: &mut Before, rank: usize, r: &[f64]) {
    let metric: Vec<f64> = match before.metric.is_empty() {
        true => (0..rank * rank)
            .map(|k| f64::from(u8::from(k / rank == k % rank)))
            .collect(),
        false => before.metric.iter().map(|&m| f64::from(m)).collect(),
    };
    // R M, then R M R^T.
    let times = |r: &[f64], m: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let at = |k: usize| {
            let row = &r[k / rank * rank..][..rank];
            let each = row.iter().enumerate();
            each.map(|(j, x)| x * m(j, k % rank)).sum()
        };
        (0..rank * rank).map(at).collect()
    };
    let half = times(r, &|i, j| metric[i * rank + j]);
    let whole = times(&half, &|i, j| r[j * rank + i]);
    before.metric = whole.iter().map(|&m| m as f32).collect();
    if !before.pull.is_empty() {
        let pull = r.chunks_exact(rank).map(|row| {
            let each = row.iter().zip(&before.pull);
            each.map(|(x, &p)| x * f64::from(p)).sum::<f64>() as f32
        });
        before.pull = pull.collect();
    }
}

/// Replaces the first `count` rows by Q and returns R, row-major.
fn orthonormal_columns(rows: &mut Rows, count: usize, name: u64) -> Result<Vec<f64>> {
    let (rank, stride) = (rows.rank(), rows.stride());
    // Column after column.
    let mut q: Vec<Vec<f64>> = (0..rank)
        .map(|j| {
            (0..count)
                .map(|i| f64::from(rows.as_slice()[i * stride + j]))
                .collect()
        })
        .collect();
    let mut r = vec![0.0; rank * rank];
    for j in 0..rank {
        let (done, rest) = q.split_at_mut(j);
        let column = &mut rest[0];
        let before = dot(column, column).sqrt();
        for (k, share) in remove(column, done).into_iter().enumerate() {
            r[k * rank + j] = share;
        }
        let mut norm = dot(column, column).sqrt();
        r[j * rank + j] = norm;
        if norm <= 1e-12 * before || norm == 0.0 {
            // A column the others span already: any direction completes the basis, with weight 0.
            r[j * rank + j] = 0.0;
            let mut s = RandomStream::new(&[name, j as u64]);
            norm = 0.0;
            while norm <= 1e-6 {
                column.iter_mut().for_each(|x| *x = s.standard_normal());
                remove(column, done);
                norm = dot(column, column).sqrt();
            }
        }
        column.iter_mut().for_each(|x| *x /= norm);
    }
    let out = rows.as_mut_slice()?;
    for (j, column) in q.iter().enumerate() {
        for (i, &x) in column.iter().enumerate() {
            out[i * stride + j] = x as f32;
        }
    }
    Ok(r)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Takes the share of each of `others` (orthonormal) out of `column` and returns the shares. The
/// second pass removes what rounding left of the first.
fn remove(column: &mut [f64], others: &[Vec<f64>]) -> Vec<f64> {
    let mut shares = vec![0.0; others.len()];
    for _ in 0..2 {
        for (total, other) in shares.iter_mut().zip(others) {
            let share = dot(column, other);
            *total += share;
            column
                .iter_mut()
                .zip(other)
                .for_each(|(x, y)| *x -= share * y);
        }
    }
    shares
}

/// G <- G x_n R for a full core.
fn multiply_core(shape: &CoreShape, core: &mut [f32], n: usize, rank: usize, r: &[f64]) {
    let dense = shape.dense_core(core);
    let inner: usize = shape.ranks[n + 1..].iter().product();
    let mut out = vec![0.0f32; dense.len()];
    for (to, from) in out
        .chunks_exact_mut(rank * inner)
        .zip(dense.chunks_exact(rank * inner))
    {
        for a in 0..rank {
            for k in 0..inner {
                let sum: f64 = (0..rank)
                    .map(|j| r[a * rank + j] * f64::from(from[j * inner + k]))
                    .sum();
                to[a * inner + k] = sum as f32;
            }
        }
    }
    core.copy_from_slice(&shape.padded_core(&out));
}

/// Each row v <- R v.
fn multiply_rows(rows: &mut Rows, rank: usize, r: &[f64]) -> Result<()> {
    let stride = rows.stride();
    let mut out = vec![0.0f32; rank];
    for row in rows.as_mut_slice()?.chunks_exact_mut(stride) {
        for (a, o) in out.iter_mut().enumerate() {
            *o = (0..rank)
                .map(|j| r[a * rank + j] * f64::from(row[j]))
                .sum::<f64>() as f32;
        }
        row[..rank].copy_from_slice(&out);
    }
    Ok(())
}

/// Multiplies column `j` of mode `n` by `by[j]`, and the core and the matrices of that mode by its
/// inverse, so that predictions stay.
fn rescale_mode(model: &mut Model, n: usize, by: &[f64]) -> Result<()> {
    let (rank, stride) = (model.shape.ranks[n], padded_len(model.shape.ranks[n]));
    let mut inverse = vec![0.0; rank * rank];
    by.iter()
        .enumerate()
        .for_each(|(j, s)| inverse[j * rank + j] = 1.0 / s);
    turn(&mut model.modes[n].before, rank, &inverse);
    for row in model.modes[n]
        .factor
        .as_mut_slice()?
        .chunks_exact_mut(stride)
    {
        row[..rank]
            .iter_mut()
            .zip(by)
            .for_each(|(u, s)| *u = (f64::from(*u) * s) as f32);
    }
    for matrix in model.matrices.iter_mut().filter(|m| m.mode == n) {
        for row in matrix.factor.as_mut_slice()?.chunks_exact_mut(stride) {
            row[..rank]
                .iter_mut()
                .zip(by)
                .for_each(|(v, s)| *v = (f64::from(*v) / s) as f32);
        }
    }
    match model.shape.kind {
        CoreKind::Diagonal => {
            model.core[..rank]
                .iter_mut()
                .zip(by)
                .for_each(|(g, s)| *g = (f64::from(*g) / s) as f32);
        }
        CoreKind::Full => multiply_core(&model.shape, &mut model.core, n, rank, &inverse),
    }
    Ok(())
}

/// The norm of each column over the rows that exist.
pub(super) fn column_norms(model: &Model, n: usize) -> Vec<f64> {
    let mode = &model.modes[n];
    let mut squares = vec![0.0f64; model.shape.ranks[n]];
    for i in 0..mode.rows.len() {
        squares
            .iter_mut()
            .zip(mode.factor.row(i))
            .for_each(|(s, &u)| *s += f64::from(u) * f64::from(u));
    }
    squares.iter().map(|s| s.sqrt()).collect()
}

/// Columns of every factor get norm 1; their norms move into the core, and V is rescaled with its
/// mode. Columns of zeros stay.
pub(super) fn normalise_columns(model: &mut Model) -> Result<()> {
    for n in 0..model.order() {
        let by: Vec<f64> = column_norms(model, n)
            .iter()
            .map(|&s| if s > 0.0 { 1.0 / s } else { 1.0 })
            .collect();
        rescale_mode(model, n, &by)?;
    }
    model.refresh_means()
}

/// Spreads scales evenly over factors and core: after orthogonalisation factors are small and the
/// core large, which one step size does not suit.
pub(super) fn rebalance(model: &mut Model) -> Result<()> {
    let rms = |squares: f64, n: f64| (squares / n.max(1.0)).sqrt();
    let square = |xs: &[f32]| xs.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let sizes: Vec<f64> = (0..model.order())
        .map(|n| {
            let squares: f64 = column_norms(model, n).iter().map(|s| s * s).sum();
            rms(
                squares,
                (model.modes[n].rows.len() * model.shape.ranks[n]) as f64,
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
        let by = vec![log_mean.exp() / size; model.shape.ranks[n]];
        rescale_mode(model, n, &by)?;
    }
    model.orthogonal = false;
    model.refresh_means()
}
