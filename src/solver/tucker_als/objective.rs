//! The objective of a model over all cells, from the entries and products of small matrices.
//!
//! For any factors, with P = X x_1 A(1)^T ... x_N A(N)^T and B(n) = A(n)^T A(n),
//!
//! ```text
//! |X - G x_1 A(1) ... x_N A(N)|^2 = |X|^2 - 2 <P, G> + <G x_1 B(1) ... x_N B(N), G>
//! ```
//!
//! With exactly orthonormal factors and G = P this is |X|^2 - |G|^2. Factors are rounded to `f32`, and the long form takes that
//! into account.

use super::dense::factor_rows;
use super::mode_entries::TuckerMode;
use super::unfolding::Unfolding;
use crate::error::Result;
use crate::linalg::dot;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::progress::StepPolls;
use crate::simd::padded_len;
use crate::solver::data::Data;
use crate::solver::gram::row_moments;
use crate::try_alloc::{CORE_ENTRIES, try_with_capacity, try_zeroed};

/// Returns the objective of a model. `mode` are the entries of mode `n`, and `squares` is |X|^2.
pub(super) fn objective(
    model: &Model,
    data: &Data,
    (n, mode): (usize, &TuckerMode),
    squares: f64,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let core = dense_core(model)?;
    let projection = Unfolding::new(mode, model, pool)?.core(model, n, &factor_of(model, n)?)?;
    let mut product = core.clone();
    for k in 0..model.order() {
        let factor = &model.modes[k].factor;
        let gram = row_moments(factor, model.modes[k].rows.len(), &[], pool)?.gram();
        product = multiply_core(&product, model.shape.ranks(), k, &gram, pool)?;
    }
    // Rounding can make the error of a perfect fit negative.
    let error = squares - 2.0 * dot(&projection, &core) + dot(&product, &core);
    let mut f = 0.5 * error.max(0.0);
    for (m, matrix) in data.matrices.iter().enumerate() {
        if let Some(full) = &matrix.full {
            let (rows, columns) = (&model.modes[matrix.mode].factor, &model.matrices[m].factor);
            f += 0.5 * f64::from(matrix.weight) * full.squared_error(rows, columns, pool)?;
        }
    }
    Ok(f)
}

/// Returns the rows of the factor of mode `n`.
fn factor_of(model: &Model, n: usize) -> Result<Vec<f64>> {
    factor_rows(&model.modes[n].factor, model.modes[n].rows.len())
}

/// Returns the core, row-major and without padding.
fn dense_core(model: &Model) -> Result<Vec<f64>> {
    let last = model.shape.ranks()[model.order() - 1];
    let rows = model.core.chunks_exact(padded_len(last));
    let mut core = try_with_capacity(rows.len() * last, CORE_ENTRIES)?;
    core.extend(rows.flat_map(|row| &row[..last]).map(|&g| f64::from(g)));
    Ok(core)
}

/// Returns G x_n B for a core without padding and a symmetric matrix.
fn multiply_core(
    core: &[f64],
    ranks: &[usize],
    n: usize,
    matrix: &[f64],
    pool: &ThreadPool<'_>,
) -> Result<Vec<f64>> {
    let (rank, after) = (ranks[n], ranks[n + 1..].iter().product::<usize>());
    let mut product: Vec<f64> = try_zeroed(core.len(), CORE_ENTRIES)?;
    let mut polls = StepPolls::new(pool.monitor(), rank * after);
    let slabs = product.chunks_exact_mut(rank * after);
    for (to, from) in slabs.zip(core.chunks_exact(rank * after)) {
        for (to, row) in to.chunks_exact_mut(after).zip(matrix.chunks_exact(rank)) {
            polls.step()?;
            for (from, &b) in from.chunks_exact(after).zip(row) {
                to.iter_mut().zip(from).for_each(|(to, g)| *to += b * g);
            }
        }
    }
    Ok(product)
}
