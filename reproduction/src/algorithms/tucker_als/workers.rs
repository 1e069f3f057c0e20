//! The threads that compute products, and their kernels.

use std::sync::Mutex;

use s3cmtf::error::Result;
use s3cmtf_kernel::parallel::{ThreadPool, lock_ignoring_poison};
use s3cmtf_kernel::simd::Level;

/// The threads of a fit, and the instruction set of their kernels.
#[derive(Clone, Copy)]
pub(super) struct Workers<'a> {
    pub pool: &'a ThreadPool<'a>,
    pub level: Level,
}

impl Workers<'_> {
    /// Calls `update` with the number of the first row and the elements of groups of at most `count` rows, of `width` elements
    /// each, and a buffer.
    pub(super) fn for_row_groups<T: Send, S: Default>(
        self,
        rows: &mut [T],
        width: usize,
        count: usize,
        update: impl Fn(usize, &mut [T], &mut S) + Sync,
    ) -> Result<()> {
        let groups: Vec<Mutex<&mut [T]>> = rows.chunks_mut(count * width).map(Mutex::new).collect();
        self.pool.map(groups.len(), S::default, |buffer, g| {
            update(g * count, &mut lock_ignoring_poison(&groups[g]), buffer);
        })?;
        Ok(())
    }
}
