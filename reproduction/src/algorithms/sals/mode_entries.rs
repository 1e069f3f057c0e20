//! The entries of the tensor, grouped by the rows of one mode.

use s3cmtf::internals::RowTasks;
use s3cmtf_kernel::kernel::ModeCsr;

/// The entries and penalties of one mode.
pub(super) struct SalsMode {
    pub csr: ModeCsr,
    pub tasks: RowTasks,
    /// Of each entry, without the part of the current block of columns.
    pub residuals: Vec<f32>,
    /// The penalty of each row.
    pub penalties: Vec<f32>,
    /// The row that the penalty shrinks to.
    pub target: Vec<f32>,
}
