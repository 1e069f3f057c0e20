//! Memory layout of rows and cores.

use crate::error::Result;
use crate::simd::{LANES, padded_len};
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Maximum order of a tensor.
pub const MAX_ORDER: usize = 8;

/// The core entries that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreKind {
    /// All entries (Tucker).
    Full,
    /// The entries with equal indices (CP); all ranks are the same.
    Diagonal,
}

/// The ranks of a model and the memory layout they imply.
///
/// A full core is row-major, with its last mode padded like a row. Padding is zero and stays zero. A diagonal
/// core is one padded row.
///
/// Kernels rely on the layout, so a shape cannot be changed:
///
/// ```compile_fail,E0616
/// use s3cmtf_kernel::kernel::{CoreKind, CoreShape};
/// let mut shape = CoreShape::new(CoreKind::Full, &[2, 2]);
/// shape.ranks[0] = 1000;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreShape {
    kind: CoreKind,
    ranks: Vec<usize>,
    /// Offset of each mode's row among the rows of an entry, and their total length.
    starts: Vec<usize>,
}

impl CoreShape {
    /// Returns the layout for these ranks.
    ///
    /// # Panics
    /// If [`CoreShape::try_new`] returns `None`.
    pub fn new(kind: CoreKind, ranks: &[usize]) -> Self {
        CoreShape::try_new(kind, ranks).expect("ranks must have a layout")
    }

    /// Returns the layout for these ranks; `None` if there are no modes or more than [`MAX_ORDER`], a rank is 0, a diagonal core
    /// has unequal ranks, or the number of floats overflows.
    pub fn try_new(kind: CoreKind, ranks: &[usize]) -> Option<Self> {
        // Kernels multiply these lengths without checks.
        const MAX_FLOATS: usize = isize::MAX as usize / size_of::<f32>();
        let mut lens = ranks.iter().map(|&j| j.checked_next_multiple_of(LANES));
        let floats = match kind {
            CoreKind::Full => lens.try_fold(1usize, |n, len| n.checked_mul(len?)),
            CoreKind::Diagonal => lens.try_fold(0usize, |n, len| n.checked_add(len?)),
        };
        let is_possible = (1..=MAX_ORDER).contains(&ranks.len())
            && ranks.iter().all(|&j| j > 0)
            && (kind == CoreKind::Full || ranks.iter().all(|&j| j == ranks[0]))
            && floats.is_some_and(|n| n <= MAX_FLOATS);
        if !is_possible {
            return None;
        }
        let mut starts = vec![0];
        for &rank in ranks {
            starts.push(starts[starts.len() - 1] + padded_len(rank));
        }
        Some(CoreShape {
            kind,
            ranks: ranks.to_vec(),
            starts,
        })
    }

    /// Returns which core entries exist.
    #[inline]
    pub fn kind(&self) -> CoreKind {
        self.kind
    }

    /// Returns the rank of each mode.
    #[inline]
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Returns the number of modes.
    #[inline]
    pub fn order(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the number of floats of the core, padding included.
    #[inline]
    pub fn core_len(&self) -> usize {
        let last = padded_len(self.ranks[self.order() - 1]);
        match self.kind {
            CoreKind::Full => self.ranks[..self.order() - 1].iter().product::<usize>() * last,
            CoreKind::Diagonal => last,
        }
    }

    /// Returns the number of floats of one row of every mode, padding included.
    #[inline]
    pub fn rows_len(&self) -> usize {
        self.starts[self.order()]
    }

    /// Returns the position of the row of mode `n` among the rows of an entry, padding included.
    #[inline]
    pub fn row(&self, n: usize) -> std::ops::Range<usize> {
        self.starts[n]..self.starts[n + 1]
    }

    /// Returns a core with ones on its diagonal.
    pub fn identity(&self) -> Result<Vec<f32>> {
        let mut core = try_zeroed(self.core_len(), CORE_ENTRIES)?;
        let min_rank = self.ranks.iter().copied().min().unwrap_or(0);
        let last = padded_len(self.ranks[self.order() - 1]);
        for j in 0..min_rank {
            let row = match self.kind {
                CoreKind::Full => {
                    let before = &self.ranks[..self.order() - 1];
                    before.iter().fold(0, |at, &rank| at * rank + j)
                }
                CoreKind::Diagonal => 0,
            };
            core[row * last + j] = 1.0;
        }
        Ok(core)
    }

    /// Returns the core without padding, row-major, with the off-diagonal zeros of CP.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn dense_core(&self, core: &[f32]) -> Result<Vec<f32>> {
        let last = self.ranks[self.order() - 1];
        match self.kind {
            CoreKind::Full => {
                let rows = core.chunks_exact(padded_len(last));
                let count = rows.len() * last;
                try_collect(count, rows.flat_map(|c| &c[..last]).copied(), CORE_ENTRIES)
            }
            CoreKind::Diagonal => {
                let count = last.checked_pow(self.order() as u32).unwrap_or(usize::MAX);
                let mut dense = try_zeroed(count, CORE_ENTRIES)?;
                let stride: usize = (0..self.order()).map(|n| last.pow(n as u32)).sum();
                (0..last).for_each(|j| dense[j * stride] = core[j]);
                Ok(dense)
            }
        }
    }

    /// Returns the padded core of a dense row-major one.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn padded_core(&self, dense: &[f32]) -> Result<Vec<f32>> {
        let last = self.ranks[self.order() - 1];
        let mut core = try_zeroed(self.core_len(), CORE_ENTRIES)?;
        match self.kind {
            CoreKind::Full => {
                for (to, from) in core
                    .chunks_exact_mut(padded_len(last))
                    .zip(dense.chunks_exact(last))
                {
                    to[..last].copy_from_slice(from);
                }
            }
            CoreKind::Diagonal => {
                let stride: usize = (0..self.order()).map(|n| last.pow(n as u32)).sum();
                (0..last).for_each(|j| core[j] = dense[j * stride]);
            }
        }
        Ok(core)
    }
}
