//! Entries of the tensor or of a matrix, grouped by the rows whose gradient they contribute to.

use std::sync::Arc;

use s3cmtf::error::Result;
use s3cmtf::internals::RowTasks;
use s3cmtf_kernel::kernel::ModeCsr;

/// Entries by row, divided into tasks.
pub(super) struct GroupedEntries {
    pub csr: Arc<ModeCsr>,
    pub tasks: RowTasks,
}

impl GroupedEntries {
    pub(super) fn new(csr: Arc<ModeCsr>) -> Result<GroupedEntries> {
        Ok(GroupedEntries {
            tasks: RowTasks::all(&[&csr])?,
            csr,
        })
    }
}
