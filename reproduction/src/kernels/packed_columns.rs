//! A block of columns of the factors of a CP model, one mode after the other, without padding where it is narrow.
#![allow(unsafe_code)]

use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::simd::padded_len;

/// Most columns of a narrow block, whose rows are padded to powers of two instead of whole vectors.
pub(crate) const MAX_NARROW_COLUMNS: usize = 8;

/// Returns the number of floats per row of a block of `columns` columns.
pub fn packed_width(columns: usize) -> usize {
    if columns <= MAX_NARROW_COLUMNS {
        columns.next_power_of_two()
    } else {
        padded_len(columns)
    }
}

/// The columns of a block in all modes, as the entries grouped by one of them need them.
#[derive(Clone)]
pub struct PackedColumns<'a> {
    /// The rows of the other modes, in the order of [`ModeCsr::other_modes`].
    pub others: Vec<&'a [f32]>,
    /// Number of columns.
    pub count: usize,
    /// Number of floats per row: [`packed_width`] of at least `count` columns. Those beyond the columns are 0.
    pub width: usize,
}

impl PackedColumns<'_> {
    /// Checks that there is a row for every index in `csr`.
    ///
    /// # Panics
    /// If there is not, or the width is not that of a block.
    pub(crate) fn check(&self, csr: &ModeCsr) {
        assert!(self.count <= self.width && self.width == packed_width(self.width));
        assert_eq!(self.others.len(), csr.other_modes().len());
        for (rows, &row_count) in self.others.iter().zip(csr.other_row_counts()) {
            assert!(rows.len() >= row_count * self.width);
        }
    }

    /// Whether rows are shorter than a vector.
    pub fn is_narrow(&self) -> bool {
        self.width <= MAX_NARROW_COLUMNS
    }
}

/// Returns a row of a narrow block.
///
/// # Safety
/// It must exist.
#[inline(always)]
pub(crate) unsafe fn row<const W: usize>(rows: &[f32], index: usize) -> [f32; W] {
    // SAFETY: the caller's obligations.
    unsafe { rows.as_ptr().add(index * W).cast::<[f32; W]>().read() }
}
