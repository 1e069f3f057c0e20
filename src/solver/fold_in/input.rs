//! Inputs and outcome of folding rows into a model.

use crate::format::CooView;

/// The entries of new rows of one mode.
#[derive(Default)]
pub struct FoldIn<'a> {
    /// The mode, counted from 0.
    pub mode: usize,
    /// Tensor entries of the new rows. Rows of other modes that the model does not have count as the mean row of
    /// their mode. Repeated entries count repeatedly, as in a fit.
    pub tensor: Option<CooView<'a>>,
    /// Entries of matrices that are coupled to the mode.
    pub matrices: Vec<FoldMatrix<'a>>,
    /// Whether rows that the model has from tensor entries are replaced by the solution of these entries alone;
    /// otherwise they are an error.
    pub replace: bool,
    /// Number of threads; 0 takes all that this process may use. The result is independent of it.
    pub threads: usize,
}

/// Entries of a coupled matrix for new rows.
pub struct FoldMatrix<'a> {
    /// The number of the matrix in the model, counted from 0.
    pub number: usize,
    /// Entries in columns that the model does not have are ignored.
    pub entries: CooView<'a>,
    /// Weight of the matrix; `None` for that of the fit.
    pub weight: Option<f64>,
}

/// The counts of what was folded in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoldSummary {
    /// Rows that the model did not have.
    pub added: u64,
    /// Rows that the model had.
    pub replaced: u64,
    /// Of all these rows, those without tensor entries.
    pub without_entries: u64,
    /// Tensor entries.
    pub entries: u64,
    /// Tensor entries with a row of another mode that the model does not have.
    pub unknown: u64,
    /// Matrix entries in columns that the model has.
    pub matrix_entries: u64,
}
