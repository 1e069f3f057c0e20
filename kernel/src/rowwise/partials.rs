//! The partial derivatives of the model's value by a row of one mode, for batches of entries.
//!
//! d = G x_{-n} {u} is the derivative by the entry's row of mode n: the elementwise product of the other
//! rows for a hyper-diagonal core, O(N J) per entry, else the core contracted with one row after the other.
//! Entries of a [`ModeCsr`] are sorted so that neighbours share most of these contractions.
#![allow(unsafe_code)]

use crate::entries::by_row::ModeCsr;
use crate::error::Result;
use crate::per_entry::gradient::contract;
use crate::shape::core_shape::MAX_ORDER;
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES, padded_len};
use crate::simd::{F32x16, prefetch};
use crate::try_alloc::CORE_ENTRIES;

/// Number of entries whose partial derivatives are computed before they are summed.
pub(crate) const BATCH_ENTRIES: usize = 64;

/// Prefetch distance, in entries.
const PREFETCH_ENTRIES: usize = 6;

/// The factor rows and biases of one of the other modes.
#[derive(Clone, Copy)]
pub struct OtherMode<'a> {
    /// Factor rows, padded.
    pub rows: &'a [f32],
    /// Number of columns without padding.
    pub rank: usize,
    /// One bias per row; empty if the mode has no biases.
    pub biases: &'a [f32],
}

/// The inputs of d = G x_{-n} {u}, the partial derivative of the model's value by a row of mode n.
pub struct Partials<'a> {
    /// The other modes, in the order of [`ModeCsr::other_modes`].
    pub others: Vec<OtherMode<'a>>,
    /// The full core with its modes in that order, then mode n, whose rows are padded. `None` for a
    /// hyper-diagonal core of ones: d is then the elementwise product of the other rows.
    pub core: Option<&'a [f32]>,
    /// The rank of mode n.
    pub rank: usize,
    /// Instruction set.
    pub level: Level,
}

impl Partials<'_> {
    /// Number of floats of the core after contraction with the first `k` of the other modes.
    #[inline]
    fn contracted_len(&self, k: usize) -> usize {
        self.others[k..].iter().map(|o| o.rank).product::<usize>() * padded_len(self.rank)
    }

    /// Number of floats of all partial contractions together.
    fn contractions_len(&self) -> usize {
        match self.core {
            None => 0,
            Some(_) => (1..self.others.len()).map(|k| self.contracted_len(k)).sum(),
        }
    }

    /// Largest number of multiply-adds that d of one entry and its outer product take.
    pub(crate) fn operations_per_entry(&self) -> usize {
        let derivative = match self.core {
            None => self.others.len() * self.rank,
            Some(core) => core.len() + self.contractions_len(),
        };
        derivative + self.rank * padded_len(self.rank)
    }

    /// Checks that rows, biases and core are as large as `csr` and the ranks require.
    ///
    /// # Panics
    /// If they are not, or the machine does not have the level.
    pub(crate) fn check(&self, csr: &ModeCsr) {
        assert!(self.level.is_available());
        assert_eq!(self.others.len(), csr.other_modes().len());
        for (other, &row_count) in self.others.iter().zip(csr.other_row_counts()) {
            assert!(other.rows.len() >= row_count * padded_len(other.rank));
            assert!(other.biases.is_empty() || other.biases.len() >= row_count);
            assert!(self.core.is_some() || other.rank == self.rank);
        }
        if let Some(core) = self.core {
            assert_eq!(core.len(), self.contracted_len(0));
        }
    }
}

/// Buffers for a batch of entries. One per thread.
#[derive(Default)]
pub struct PartialsScratch {
    /// d of each entry, padded.
    pub(crate) partials: AlignedVec,
    /// w d of each entry; unused if entries are unweighted.
    pub(crate) weighted: AlignedVec,
    /// r of each entry.
    pub(crate) residuals: Vec<f32>,
    /// The core contracted with the first 1, 2, ... of an entry's other rows.
    contractions: AlignedVec,
    pub(crate) contracted: ContractedRows,
}

impl PartialsScratch {
    /// Makes the buffers large enough for a batch, and forgets contractions.
    pub(crate) fn reserve(&mut self, partials: &Partials<'_>) -> Result<()> {
        let width = padded_len(partials.rank);
        if self.partials.len() < BATCH_ENTRIES * width {
            self.partials = AlignedVec::try_zeroed(BATCH_ENTRIES * width, "partial derivatives")?;
        }
        self.residuals.resize(BATCH_ENTRIES, 0.0);
        self.contracted = ContractedRows::default();
        let contractions = partials.contractions_len();
        if self.contractions.len() < contractions {
            self.contractions = AlignedVec::try_zeroed(contractions, CORE_ENTRIES)?;
        }
        Ok(())
    }
}

/// The other rows that [`PartialsScratch::contractions`] belong to, so that entries which share their
/// first rows share the contractions.
#[derive(Default)]
pub(crate) struct ContractedRows {
    rows: [u32; MAX_ORDER],
    count: usize,
}

/// Computes d of a batch of at most [`BATCH_ENTRIES`] entries into `scratch`.
///
/// # Safety
/// Rows and biases must exist for every index in `records`, and core and scratch buffers must have the
/// lengths that [`Partials::check`] and [`PartialsScratch::reserve`] establish.
#[inline(always)]
pub(crate) unsafe fn fill<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    scratch: &mut PartialsScratch,
    cached: &mut ContractedRows,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match (partials.core, &partials.others[..]) {
            (Some(core), _) => fill_full::<V>(partials, core, records, scratch, cached),
            (None, &[a]) => fill_products::<V, 1>(partials, &[a], records, scratch),
            (None, &[a, b]) => fill_products::<V, 2>(partials, &[a, b], records, scratch),
            (None, &[a, b, c]) => fill_products::<V, 3>(partials, &[a, b, c], records, scratch),
            _ => fill_any::<V>(partials, records, scratch),
        }
    }
}

/// Computes r of a batch of at most [`BATCH_ENTRIES`] entries into `scratch`.
///
/// # Safety
/// As for [`fill`].
#[inline(always)]
pub(crate) unsafe fn fill_residuals(
    partials: &Partials<'_>,
    records: &[u32],
    scratch: &mut PartialsScratch,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        let width = partials.others.len() + 1;
        for (k, entry) in records.chunks_exact(width).enumerate() {
            let mut r = f32::from_bits(*entry.get_unchecked(width - 1));
            for (m, other) in partials.others.iter().enumerate() {
                if !other.biases.is_empty() {
                    r -= other.biases.get_unchecked(*entry.get_unchecked(m) as usize);
                }
            }
            scratch.residuals[k] = r;
        }
    }
}

/// Computes d as the product of `N` rows.
#[inline(always)]
unsafe fn fill_products<V: F32x16, const N: usize>(
    partials: &Partials<'_>,
    others: &[OtherMode<'_>; N],
    records: &[u32],
    scratch: &mut PartialsScratch,
) {
    let width = padded_len(partials.rank);
    let out = scratch.partials.as_mut_ptr();
    let count = records.len() / (N + 1);
    // SAFETY: the caller's obligations.
    unsafe {
        for k in 0..count {
            let entry = records.as_ptr().add(k * (N + 1));
            if k + PREFETCH_ENTRIES < count {
                let row_ahead = *entry.add(PREFETCH_ENTRIES * (N + 1) + N - 1) as usize * width;
                for at in (0..width).step_by(LANES) {
                    prefetch(others[N - 1].rows.as_ptr().add(row_ahead + at));
                }
            }
            for at in (0..width).step_by(LANES) {
                let row = |n: usize| {
                    let row = *entry.add(n) as usize * width;
                    V::load(others[n].rows.as_ptr().add(row + at))
                };
                let mut x = row(0);
                for n in 1..N {
                    x = x * row(n);
                }
                x.store(out.add(k * width + at));
            }
        }
    }
}

/// Computes d as the product of any number of rows.
#[inline(always)]
unsafe fn fill_any<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    scratch: &mut PartialsScratch,
) {
    let (width, n) = (padded_len(partials.rank), partials.others.len());
    let out = scratch.partials.as_mut_ptr();
    // SAFETY: the caller's obligations.
    unsafe {
        for (k, entry) in records.chunks_exact(n + 1).enumerate() {
            for at in (0..width).step_by(LANES) {
                let mut x = V::splat(1.0);
                for (m, other) in partials.others.iter().enumerate() {
                    x = x * V::load(other.rows.as_ptr().add(entry[m] as usize * width + at));
                }
                x.store(out.add(k * width + at));
            }
        }
    }
}

/// Computes d by contracting the core with one row after the other. Contractions that neighbouring
/// entries share are kept.
#[inline(always)]
unsafe fn fill_full<V: F32x16>(
    partials: &Partials<'_>,
    core: &[f32],
    records: &[u32],
    scratch: &mut PartialsScratch,
    cached: &mut ContractedRows,
) {
    let n = partials.others.len();
    let width = padded_len(partials.rank);
    // SAFETY: the caller's obligations; the contractions do not overlap.
    unsafe {
        for (k, entry) in records.chunks_exact(n + 1).enumerate() {
            let mut same = 0;
            while same < cached.count && cached.rows[same] == entry[same] {
                same += 1;
            }
            let mut from = core.as_ptr();
            let mut to = scratch.contractions.as_mut_ptr();
            for (m, other) in partials.others.iter().enumerate() {
                let len = partials.contracted_len(m + 1);
                let target = if m + 1 == n {
                    scratch.partials.as_mut_ptr().add(k * width)
                } else {
                    to
                };
                if m >= same || m + 1 == n {
                    let row = other
                        .rows
                        .as_ptr()
                        .add(entry[m] as usize * padded_len(other.rank));
                    contract::<V>(from, row, other.rank, len / LANES, target);
                    cached.rows[m] = entry[m];
                }
                from = to;
                to = to.add(if m + 1 == n { 0 } else { len });
            }
            cached.count = n - 1;
        }
    }
}
