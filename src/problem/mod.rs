//! A validated tensor with its coupled matrices: what every solver works on.
//!
//! Building a [`Problem`] reads all entries once: indices must be below the sizes, values finite,
//! weights finite and not negative, sizes of coupled modes must agree. An entry of weight 0 is as if it
//! were not there. Rows are numbered compactly, so that everything downstream
//! takes memory for the rows that occur and not for the sizes of the modes.
//!
//! The entries themselves stay where they are. A solver copies them into its own layout with
//! [`EntrySource::read_chunk`], which validates every index again: a file that changed under its map gives an
//! error there, never an index out of bounds.

mod build;
mod part;
mod zeros;

pub use crate::kernel::EntryChunk;
pub use build::ProblemBuilder;
pub use part::EntrySource;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::options::Options;

/// What a coupled matrix means to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatrixKind {
    /// Factorized as U V^T over its listed entries.
    #[default]
    Observed,
    /// A square matrix of similarities between the rows of its mode, used as a penalty on their
    /// distance rather than factorized.
    Graph,
    /// Factorized as U V^T over all its cells: those that are not listed are 0. All rows of its mode
    /// and all its columns then occur.
    Full,
    /// As `Observed`, with so many zeros drawn for every listed entry that is not 0: cells of the same
    /// row that are not listed. A row that has fewer gets all of them.
    Sampled(u32),
}

impl MatrixKind {
    /// Whether it is a graph, which has no columns of its own.
    pub fn is_graph(self) -> bool {
        self == MatrixKind::Graph
    }

    /// The kind that its text gives: `observed`, `graph`, `full`, `sampled=K`.
    pub fn from_name(name: &str) -> Option<MatrixKind> {
        Some(match name {
            "observed" => MatrixKind::Observed,
            "graph" => MatrixKind::Graph,
            "full" => MatrixKind::Full,
            _ => {
                let zeros = name.strip_prefix("sampled")?.strip_prefix(['=', ':'])?;
                MatrixKind::Sampled(zeros.parse().ok()?)
            }
        })
    }
}

impl fmt::Display for MatrixKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatrixKind::Observed => f.write_str("observed"),
            MatrixKind::Graph => f.write_str("graph"),
            MatrixKind::Full => f.write_str("full"),
            MatrixKind::Sampled(zeros) => write!(f, "sampled={zeros}"),
        }
    }
}

/// One mode of the tensor.
pub struct ProblemMode {
    pub(crate) rows: Arc<RowMap>,
    pub(crate) indices: Vec<u32>,
    pub(crate) counts: Vec<u64>,
    pub(crate) weights: Vec<f64>,
}

impl ProblemMode {
    /// The size of the mode.
    pub fn dim(&self) -> u64 {
        self.rows.dim()
    }

    /// The rows that occur in the tensor or in a matrix coupled to this mode, and their compact
    /// numbers.
    pub fn rows(&self) -> &Arc<RowMap> {
        &self.rows
    }

    /// The index of each compact row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// For each compact row, its number of tensor entries: |Omega(n, i)| of the paper. Rows that
    /// occur only in matrices have 0.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// What the tensor entries of each compact row weigh together; empty if entries have no weights, and
    /// each counts as one.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// A matrix coupled to a mode.
pub struct CoupledMatrix<'a> {
    /// The mode, counted from 0.
    pub mode: usize,
    /// Its weight, lambda_m of the paper; `None` takes that of the options.
    pub weight: Option<f64>,
    /// The penalty on its columns, if it has one of its own instead of lambda_reg.
    pub penalty: Option<f64>,
    /// What it means.
    pub kind: MatrixKind,
    /// Its entries, with the zeros that were drawn behind those listed. Compact rows are those of the
    /// mode.
    pub entries: EntrySource<'a>,
    /// Its columns that occur, with their numbers of entries: all rows of the mode if it is full. A
    /// graph's columns are rows of its mode and stand there; its own list is empty.
    pub columns: ProblemMode,
    /// Whether all its entries have the same value.
    pub is_constant: bool,
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
    tensor: EntrySource<'a>,
    modes: Vec<ProblemMode>,
    matrices: Vec<CoupledMatrix<'a>>,
    values: Values,
}

/// What is known about the values of a tensor or matrix, by weight.
#[derive(Clone, Copy)]
struct Values {
    /// How many there are, and what they weigh together.
    count: u64,
    weight: f64,
    mean: f64,
    rms: f64,
    deviation: f64,
    range: (f64, f64),
}

impl<'a> Problem<'a> {
    /// The number of modes of the tensor.
    pub fn order(&self) -> usize {
        self.modes.len()
    }

    /// The number of tensor entries, |Omega|, without those of weight 0.
    pub fn count(&self) -> u64 {
        self.values.count
    }

    /// What all tensor entries weigh together: their number if they have no weights.
    pub fn total_weight(&self) -> f64 {
        self.values.weight
    }

    /// The tensor's entries.
    pub fn tensor(&self) -> &EntrySource<'a> {
        &self.tensor
    }

    /// The modes of the tensor.
    pub fn modes(&self) -> &[ProblemMode] {
        &self.modes
    }

    /// The coupled matrices.
    pub fn matrices(&self) -> &[CoupledMatrix<'a>] {
        &self.matrices
    }

    /// The weight of each coupled matrix: its own, or what `options` say.
    pub fn matrix_weights(&self, options: &Options) -> Result<Vec<f64>> {
        let (listed, matrices) = (&options.matrix_weights, self.matrices.len());
        if !listed.is_empty() && listed.len() != matrices {
            return Err(Error::argument(format!(
                "matrix_weights has {} numbers, but the problem has {matrices} matrices and graphs; \
                 it must have one for each",
                listed.len()
            )));
        }
        let weight = |(m, matrix): (usize, &CoupledMatrix<'_>)| {
            let open = listed.get(m).copied().unwrap_or(options.lambda_m);
            matrix.weight.unwrap_or(open)
        };
        Ok(self.matrices.iter().enumerate().map(weight).collect())
    }

    /// The step of the rows of each mode as a share of `eta`, as `options` say.
    pub(crate) fn mode_steps(&self, options: &Options) -> Result<Vec<f32>> {
        let each = self.per_mode("mode_steps", &options.mode_steps)?;
        Ok(match each {
            None => vec![1.0; self.order()],
            Some(each) => each.into_iter().map(|x| x as f32).collect(),
        })
    }

    /// What an option lists for each mode, or says once for all; `None` if nothing.
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

    /// The rows of each mode, as [`EntrySource::read_chunk`] takes them for the tensor.
    pub fn row_maps(&self) -> Vec<&RowMap> {
        self.modes.iter().map(|m| &*m.rows).collect()
    }

    /// The mean of the tensor's values, by weight; 0 without entries.
    pub fn mean(&self) -> f64 {
        self.values.mean
    }

    /// The root of the mean square of the tensor's values, by weight; 0 without entries.
    pub fn root_mean_square(&self) -> f64 {
        self.values.rms
    }

    /// The standard deviation of the tensor's values, by weight; 0 without entries.
    pub fn standard_deviation(&self) -> f64 {
        self.values.deviation
    }

    /// The smallest and the largest value of the tensor; 0 without entries.
    pub fn range(&self) -> (f64, f64) {
        self.values.range
    }
}
