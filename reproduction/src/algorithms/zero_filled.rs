//! New rows of a model of zero-filled data: cells of the tensor without an entry are 0, as in the fit.
//!
//! A row u minimizes the squared errors over its cells with all rows of the other modes, so it solves
//!
//! ```text
//! (P + sum_m lambda_m V_m^T V_m + lambda M) u = sum x d + sum_m lambda_m Y_m v + lambda M t
//! P = G_(n) (U_1^T U_1 x ... x U_N^T U_N, without mode n) G_(n)^T
//! ```
//!
//! where sums are over the entries, d is the derivative of an entry's value by the row, G_(n) the core unfolded along the mode
//! of the row, and lambda M the penalty with target t. P is the sum of d d^T over all cells. `cmtf-opt` has a diagonal core, so
//! that P is a Hadamard product. `tucker-als` has no penalty, and after the fit orthonormal factors, so that P = G_(n) G_(n)^T
//! but for rounding; rows that were folded into other modes count as well. Observed matrices are full in the fit, and their
//! unlisted cells are 0 if the matrix is given here.
//!
//! P of `tucker-als` has the squared condition number of the unfolded core, so everything is in `f64`.

use std::ops::Range;

use crate::algorithms::core_products::{core_without_padding, multiply_core, slice_products};
use crate::algorithms::row_computation::{RowComputation, compute_rows};
use s3cmtf::error::Result;
use s3cmtf::internals::row_moments;
use s3cmtf::internals::{FixedMatrix, FixedModel, NewRowEntries, NewRows, RowTasks};
use s3cmtf::internals::{Model, RowPrior};
use s3cmtf_kernel::kernel::{CoreKind, ModeCsr, Partials, PartialsScratch};
use s3cmtf_kernel::linalg::{
    add_scaled, cholesky, dot, regularized_cholesky, solve_lower, solve_lower_transposed,
    symmetric_eigen,
};
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::progress::{Monitor, StopFlag, count_operations};
use s3cmtf_kernel::simd::padded_len;
use s3cmtf_kernel::try_alloc::try_zeroed;

/// Eigenvalues of P below this multiple of the largest are rounding errors of a core in `f32`.
const MIN_EIGENVALUE: f64 = 1e-13;

/// Solves for the rows. `strengths` are their penalties, with which the mode's prior is multiplied.
pub(super) fn solve_zero_filled(
    model: &Model,
    fixed: &FixedModel<'_>,
    entries: &NewRowEntries<'_>,
    strengths: &[f32],
    pool: &ThreadPool<'_>,
) -> Result<NewRows> {
    let rank = model.shape.ranks()[entries.mode];
    let mut precision = all_cells_precision(model, entries.mode, fixed.scale, pool)?;
    let mut rhs = vec![0.0; rank];
    for matrix in &fixed.matrices {
        if let Some(unobserved) = &matrix.unobserved_values {
            add_full_matrix(matrix, unobserved, rank, &mut precision, &mut rhs);
        }
    }
    let (others, core) = entries.other_rows(fixed, pool)?;
    let equations = RowEquations {
        entries,
        partials: entries.partials(fixed, &others, core.as_deref()),
        matrices: &fixed.matrices,
        pseudo_inverse: pseudo_inverse(rank, &precision, pool.monitor())?,
        precision,
        rhs,
        strengths,
        prior: &model.modes[entries.mode].prior,
    };
    let mut rows: Vec<f32> = try_zeroed(entries.indices.len() * rank, "row elements")?;
    let tasks = RowTasks::all(&[&entries.tensor])?;
    compute_rows(&equations, &entries.tensor, &tasks, &mut rows, rank, pool)?;
    Ok(NewRows {
        rows,
        means: Vec::new(),
    })
}

/// Returns P: the sum of d d^T over the cells of a row of mode `n` with all rows of the other modes.
fn all_cells_precision(
    model: &Model,
    n: usize,
    scale: f64,
    pool: &ThreadPool<'_>,
) -> Result<Vec<f64>> {
    let gram = |m: usize| {
        let mode = &model.modes[m];
        Ok(row_moments(&mode.factor, mode.rows.len(), &[], pool)?.gram())
    };
    let others = (0..model.order()).filter(|m| *m != n);
    let ranks = model.shape.ranks();
    let mut precision = match model.shape.kind() {
        CoreKind::Full => {
            let core = core_without_padding(&model.shape, &model.core)?;
            let mut product = core.clone();
            for m in others {
                product = multiply_core(&product, ranks, m, &gram(m)?, pool.monitor())?;
            }
            slice_products(&core, &product, ranks, n, pool.monitor())?
        }
        CoreKind::Diagonal => {
            let core = &model.core[..ranks[n]];
            let pairs = core.iter().flat_map(|g| core.iter().map(move |h| (g, h)));
            let mut product: Vec<f64> = pairs.map(|(&g, &h)| f64::from(g) * f64::from(h)).collect();
            for m in others {
                product.iter_mut().zip(gram(m)?).for_each(|(p, x)| *p *= x);
            }
            product
        }
    };
    precision.iter_mut().for_each(|p| *p /= scale * scale);
    Ok(precision)
}

/// Adds the cells of a full matrix without an entry: lambda V^T V, and lambda times the sum of the columns' rows, weighted by
/// their unobserved values.
fn add_full_matrix(
    matrix: &FixedMatrix<'_>,
    unobserved_values: &[f32],
    rank: usize,
    precision: &mut [f64],
    rhs: &mut [f64],
) {
    let columns = matrix.columns.chunks_exact(padded_len(rank));
    for (column, &value) in columns.zip(unobserved_values) {
        add_outer_product(precision, matrix.weight, &column[..rank]);
        add_row(rhs, matrix.weight * f64::from(value), column);
    }
}

/// Adds a multiple of v v^T.
fn add_outer_product(to: &mut [f64], scale: f64, v: &[f32]) {
    for (to, &x) in to.chunks_exact_mut(v.len()).zip(v) {
        add_row(to, scale * f64::from(x), v);
    }
}

/// Adds a multiple of a row, which may be padded.
fn add_row(to: &mut [f64], scale: f64, row: &[f32]) {
    let pairs = to.iter_mut().zip(row);
    pairs.for_each(|(to, &x)| *to += scale * f64::from(x));
}

/// Returns the inverse of a positive semidefinite matrix on the space of its eigenvalues that are not rounding errors. Other
/// directions of a row do not change its predictions, and remain 0.
fn pseudo_inverse(size: usize, matrix: &[f64], monitor: &dyn Monitor) -> Result<Vec<f64>> {
    let eigen = symmetric_eigen(size, matrix, monitor)?;
    let largest = eigen.values[0];
    let mut inverse = vec![0.0; size * size];
    let pairs = eigen.values.iter().zip(eigen.vectors.chunks_exact(size));
    for (value, vector) in pairs.filter(|(value, _)| **value > MIN_EIGENVALUE * largest) {
        for (to, x) in inverse.chunks_exact_mut(size).zip(vector) {
            add_scaled(to, x / value, vector);
        }
    }
    Ok(inverse)
}

/// The equations of all rows.
struct RowEquations<'a> {
    entries: &'a NewRowEntries<'a>,
    /// The derivatives of tensor entries by the row.
    partials: Partials<'a>,
    matrices: &'a [FixedMatrix<'a>],
    /// Left side of a row without a penalty, full matrices included, and its pseudo-inverse.
    precision: Vec<f64>,
    pseudo_inverse: Vec<f64>,
    /// Right side of a row without entries.
    rhs: Vec<f64>,
    strengths: &'a [f32],
    prior: &'a RowPrior,
}

impl RowEquations<'_> {
    /// Adds the entries of the matrices to both sides of the equations of a row, and returns whether the left side changed.
    fn add_matrix_entries(&self, row: usize, precision: &mut [f64], rhs: &mut [f64]) -> bool {
        let mut is_changed = false;
        for (csr, matrix) in self.entries.matrices.iter().zip(self.matrices) {
            let entries = csr.row_entries(row);
            count_operations(entries.len() * rhs.len());
            for e in entries {
                let stride = padded_len(rhs.len());
                let column = &matrix.columns[csr.other_rows(e)[0] as usize * stride..][..rhs.len()];
                let weight = matrix.weight * f64::from(csr.weight(e));
                add_row(rhs, weight * f64::from(csr.value(e)), column);
                if matrix.unobserved_values.is_none() {
                    add_outer_product(precision, weight, column);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Solves for a row, given the sum of x d over its tensor entries.
    fn solve(&self, row: usize, sums: &[f64], to: &mut [f32]) {
        let rank = to.len();
        let mut rhs: Vec<f64> = self.rhs.iter().zip(sums).map(|(b, x)| b + x).collect();
        let mut precision = self.precision.clone();
        let has_own_entries = self.add_matrix_entries(row, &mut precision, &mut rhs);
        let strength = f64::from(self.strengths[row]);
        let mut solution = vec![0.0; rank];
        if has_own_entries || strength > 0.0 {
            match &self.prior.metric[..] {
                [] => (0..rank).for_each(|j| precision[j * rank + j] += strength),
                metric => add_row(&mut precision, strength, metric),
            }
            add_row(&mut rhs, strength, &self.prior.linear);
            let lower = cholesky(rank, &precision)
                .unwrap_or_else(|| regularized_cholesky(rank, &precision));
            solve_lower(rank, &lower, &mut rhs);
            solve_lower_transposed(rank, &lower, &mut rhs);
            solution.copy_from_slice(&rhs);
        } else {
            let rows = self.pseudo_inverse.chunks_exact(rank);
            let products = solution.iter_mut().zip(rows);
            products.for_each(|(x, row)| *x = dot(row, &rhs));
        }
        to.iter_mut()
            .zip(solution)
            .for_each(|(to, x)| *to = x as f32);
    }
}

impl RowComputation for RowEquations<'_> {
    type Element = f32;
    type Scratch = PartialsScratch;
    type Total = ();

    fn scratch(&self) -> Result<PartialsScratch> {
        Ok(PartialsScratch::default())
    }

    /// The sum of x d, padded.
    fn sum_count(&self) -> usize {
        padded_len(self.partials.rank)
    }

    fn add_entries(
        &self,
        _: usize,
        entries: Range<usize>,
        sums: &mut [f64],
        scratch: &mut PartialsScratch,
        stop: &StopFlag,
    ) -> Result<()> {
        let csr: &ModeCsr = &self.entries.tensor;
        self.partials
            .add_value_products(csr, entries, scratch, sums, stop)
    }

    fn finish_row(
        &self,
        row: usize,
        sums: &mut [f64],
        _: &mut PartialsScratch,
        to: &mut [f32],
        (): &mut (),
    ) {
        self.solve(row, sums, to);
    }
}
