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
use super::workers::Workers;
use crate::algorithms::core_products::{core_without_padding, multiply_core};
use s3cmtf::error::Result;
use s3cmtf::internals::Data;
use s3cmtf::internals::Model;
use s3cmtf::internals::row_moments;
use s3cmtf_kernel::linalg::dot;

/// Returns the objective of a model. `mode` are the entries of mode `n`, and `squares` is |X|^2.
pub(super) fn objective(
    model: &Model,
    data: &Data,
    (n, mode): (usize, &TuckerMode),
    squares: f64,
    workers: Workers<'_>,
) -> Result<f64> {
    let core = core_without_padding(&model.shape, &model.core)?;
    let factor = factor_rows(&model.modes[n].factor, model.modes[n].rows.len(), workers)?;
    let projection = Unfolding::new(mode, model, workers)?.core(model, n, &factor)?;
    let pool = workers.pool;
    let mut product = core.clone();
    for k in 0..model.order() {
        let factor = &model.modes[k].factor;
        let gram = row_moments(factor, model.modes[k].rows.len(), &[], pool)?.gram();
        product = multiply_core(&product, model.shape.ranks(), k, &gram, pool.monitor())?;
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
