//! The validated problem that solvers work on.

use super::entry_source::EntrySource;
use super::matrix_kind::MatrixKind;
use super::problem_mode::ProblemMode;
use super::value_statistics::{Outlier, ValueStatistics};
use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::options::Options;
use crate::progress::Monitor;
use crate::value_range::ValueRange;

/// A matrix coupled to a mode.
pub struct CoupledMatrix<'a> {
    /// Mode the matrix is coupled to, counted from 0.
    pub mode: usize,
    /// Weight of the matrix in the objective, lambda_m of the paper; `None` takes that of the options.
    pub weight: Option<f64>,
    /// Penalty on V, if it differs from lambda_reg.
    pub penalty: Option<f64>,
    /// How the matrix enters the model.
    pub kind: MatrixKind,
    /// Its entries, followed by the sampled zeros. Compact rows are those of the mode.
    pub entries: EntrySource<'a>,
    /// Its columns that occur, with their numbers of entries; a column of a full matrix has as many as the mode has rows.
    /// Columns of a graph are rows of its mode and counted there; this list is then empty.
    pub columns: ProblemMode,
    /// Whether all its entries have the same value.
    pub is_constant: bool,
    /// Whether its kind was left open and it could be `Full`: all entries have the same value, which is not 0, at different
    /// positions and without weights.
    pub may_be_full: bool,
    /// The number of rows and columns that it would have as `Full`, if that is left open and so large that a fit does not try it by
    /// itself.
    pub refused_full_size: Option<u64>,
    /// Statistics of its entries.
    pub(super) statistics: ValueStatistics,
}

impl CoupledMatrix<'_> {
    /// Returns the weighted root mean square of the values of the entries; 0 without entries.
    pub fn root_mean_square(&self) -> f64 {
        self.statistics.root_mean_square
    }

    /// Returns the value that is far from all others, if there is one.
    pub(crate) fn outlier(&self) -> Option<Outlier> {
        self.statistics.outlier
    }
}

/// A validated tensor with its coupled matrices.
///
/// ```
/// use s3cmtf::format::{CooView, Values};
/// use s3cmtf::problem::{MatrixKind, Problem};
/// # fn main() -> s3cmtf::Result<()> {
/// // Three ratings by two of a million users, and the genres of two items.
/// let (user, item, month) = ([7, 7, 999_999], [0, 1, 1], [0, 0, 3]);
/// let ratings = CooView::new("ratings", &[1_000_000, 2, 4], &[&user, &item, &month], Values::F32(&[4.0, 2.0, 5.0]))?;
/// let genres = CooView::new("genres", &[2, 3], &[&[0, 1], &[2, 0]], Values::F32(&[1.0, 1.0]))?;
///
/// let problem = Problem::builder(ratings)
///     .matrix(1, genres, 10.0, MatrixKind::Observed)
///     .build(&())?;
/// assert_eq!(problem.modes()[0].indices(), [7, 999_999]);
/// assert_eq!(problem.modes()[0].counts(), [2, 1]);
/// # Ok(())
/// # }
/// ```
pub struct Problem<'a> {
    pub(super) tensor: EntrySource<'a>,
    pub(super) modes: Vec<ProblemMode>,
    pub(super) matrices: Vec<CoupledMatrix<'a>>,
    pub(super) statistics: ValueStatistics,
}

impl<'a> Problem<'a> {
    /// Returns the number of modes of the tensor.
    pub fn order(&self) -> usize {
        self.modes.len()
    }

    /// Returns the number of tensor entries of positive weight: |Omega| of the paper.
    pub fn count(&self) -> u64 {
        self.statistics.count
    }

    /// Returns the sum of the weights of all tensor entries: their number if they have no weights. Weights count relative to their
    /// mean if that is below 1/256 or above 256.
    pub fn total_weight(&self) -> f64 {
        self.statistics.total_weight
    }

    /// Returns the entries of the tensor.
    pub fn tensor(&self) -> &EntrySource<'a> {
        &self.tensor
    }

    /// Returns the modes of the tensor.
    pub fn modes(&self) -> &[ProblemMode] {
        &self.modes
    }

    /// Returns the coupled matrices.
    pub fn matrices(&self) -> &[CoupledMatrix<'a>] {
        &self.matrices
    }

    /// Returns the weight of each coupled matrix: its own, or that of `options`, or else 1.
    pub fn matrix_weights(&self, options: &Options) -> Vec<f64> {
        let given = &options.lambda_m;
        let weight = |(m, matrix): (usize, &CoupledMatrix<'_>)| {
            let position = if given.len() == 1 { 0 } else { m };
            let of_options = given.get(position).copied();
            matrix.weight.or(of_options).unwrap_or(1.0)
        };
        self.matrices.iter().enumerate().map(weight).collect()
    }

    /// Returns the kind of each coupled matrix.
    pub(crate) fn matrix_kinds(&self) -> Vec<MatrixKind> {
        self.matrices.iter().map(|m| m.kind).collect()
    }

    /// Returns the problem with these kinds of matrices, in which matrices of weight 0 have no entries, rows or columns, so
    /// that it is fitted as if it did not have them; `None` if that changes nothing. Observed matrices are full if cells
    /// without an entry are 0.
    pub(crate) fn with_matrices(
        &self,
        kinds: &[MatrixKind],
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<Option<Problem<'a>>> {
        let weights = self.matrix_weights(options);
        let fitted_kind = |kind: &MatrixKind| match kind {
            MatrixKind::Observed if options.is_zero_filled() => MatrixKind::Full,
            kind => *kind,
        };
        let kinds: Vec<MatrixKind> = kinds.iter().map(fitted_kind).collect();
        let is_other = |((m, &kind), &weight): ((&CoupledMatrix<'_>, &MatrixKind), &f64)| {
            m.kind != kind || (weight == 0.0 && !m.entries.is_empty())
        };
        let matrices = || self.matrices.iter().zip(&kinds).zip(&weights);
        if !matrices().any(is_other) {
            return Ok(None);
        }
        let mut builder = Problem::builder(self.tensor.view().clone())
            .seed(options.seed)
            .threads(options.threads as usize);
        for ((matrix, &kind), &weight) in matrices() {
            let view = matrix.entries.view();
            let (view, kind) = match (weight == 0.0, kind) {
                (false, kind) => (view.clone(), kind),
                (true, MatrixKind::Graph) => (view.without_entries()?, MatrixKind::Graph),
                (true, _) => (view.without_entries()?, MatrixKind::Observed),
            };
            builder = builder.matrix(matrix.mode, view, matrix.weight, kind);
            if let Some(penalty) = matrix.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder.build(monitor).map(Some)
    }

    /// Expands the values of option `name`, one per mode or one for all, to one per mode; `None` if there are none.
    pub(crate) fn per_mode(&self, name: &str, listed: &[f64]) -> Result<Option<Vec<f64>>> {
        let order = self.order();
        match listed {
            [] => Ok(None),
            [one] => Ok(Some(vec![*one; order])),
            _ if listed.len() == order => Ok(Some(listed.to_vec())),
            _ => Err(Error::argument(format!(
                "{name} has {} numbers, but the tensor has {order} modes; it must have one for each, or \
                 one for all",
                listed.len()
            ))),
        }
    }

    /// Returns the row map of each mode, which [`EntrySource::read_chunk`] of the tensor needs.
    pub fn row_maps(&self) -> Vec<&RowMap> {
        self.modes.iter().map(|m| &*m.rows).collect()
    }

    /// Returns the weighted mean of the tensor's values; 0 without entries.
    pub fn mean(&self) -> f64 {
        self.statistics.mean
    }

    /// Returns the weighted root mean square of the tensor's values; 0 without entries.
    pub fn root_mean_square(&self) -> f64 {
        self.statistics.root_mean_square
    }

    /// Returns the weighted standard deviation of the tensor's values; 0 without entries.
    pub fn standard_deviation(&self) -> f64 {
        self.statistics.standard_deviation
    }

    /// Returns the value of the tensor that is far from all others, if there is one.
    pub(crate) fn outlier(&self) -> Option<Outlier> {
        self.statistics.outlier
    }

    /// Returns whether the tensor's values have a bounded scale, such as ratings: few distinct values that occur often, or many
    /// entries at both ends of the range.
    pub fn is_bounded(&self) -> bool {
        self.statistics.is_bounded
    }

    /// Returns the smallest and the largest value of the tensor; 0 without entries.
    pub fn range(&self) -> ValueRange {
        self.statistics.range
    }
}
