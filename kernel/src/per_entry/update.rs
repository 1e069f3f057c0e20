//! Entries processed one by one, with an update of the whole core per entry, as in Algorithm 1. Used where too
//! few entries share a row for batches to pay.
//!
//! # Safety
//! The obligations are those of [`crate::batch::dispatch`].
#![allow(unsafe_code)]

use super::gradient::gradients_diagonal;
use super::packed_core::{self, CORE_ADD, CORE_FIXED, CORE_NONNEG, OuterBuffers};
use super::packed_core_layout::PackedLayout;
use crate::batch::entry_rows::{
    EntryRows, RowProducts, RowSettings, constant_vectors, row_products,
};
use crate::batch::iter::{
    EntryStream, single_vector_modes, weighted_residual, weighted_residual_vector,
};
use crate::batch::job::{BatchJob, ModeRows, RowUpdate};
use crate::entries::block::FiberBatch;
use crate::hogwild::rows::HogwildVector;
use crate::simd::LANES;
use crate::simd::packed_vector::PackedVector;
use crate::simd::{leaf, prefetch};

/// Prefetch distance of rows and penalties, in entries.
const PREFETCH_DISTANCE: usize = 16;

/// Processes the entries of all batches.
pub(crate) unsafe fn run<V: HogwildVector + PackedVector>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job and the instruction set.
    unsafe {
        match job.packed {
            Some(layout) => full::<V>(job, layout, batches),
            None => match job.non_fiber.len() {
                2 => diagonal_fixed_order::<V, 2, 0>(job, batches),
                3 => match constant_vectors(job) {
                    2 if const { V::VECTOR_REGISTERS >= 8 } => {
                        diagonal_fixed_order::<V, 3, 2>(job, batches)
                    }
                    4 if const { V::VECTOR_REGISTERS >= 8 } => {
                        diagonal_fixed_order::<V, 3, 4>(job, batches)
                    }
                    _ => diagonal_fixed_order::<V, 3, 0>(job, batches),
                },
                4 => diagonal_fixed_order::<V, 4, 0>(job, batches),
                _ => diagonal_any_order::<V>(job, batches),
            },
        }
    }
}

/// Iterator over the entries of a job that prefetches the rows of later ones. `N` and `K` are as in
/// [`crate::batch::iter::BatchIter`].
struct PrefetchedEntries<'a, const N: usize, const K: usize> {
    non_fiber: &'a [ModeRows],
    current: EntryStream<'a>,
    ahead: EntryStream<'a>,
}

impl<'a, const N: usize, const K: usize> PrefetchedEntries<'a, N, K> {
    #[inline(always)]
    unsafe fn new<V: HogwildVector>(
        job: &BatchJob<'a>,
        non_fiber: &'a [ModeRows],
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> Self {
        // SAFETY: the caller guarantees the records of the job.
        unsafe {
            let current = EntryStream::new(job, non_fiber.len(), batches, weighted);
            let ahead = current.clone();
            let mut entries = PrefetchedEntries {
                non_fiber,
                current,
                ahead,
            };
            for _ in 0..PREFETCH_DISTANCE {
                entries.prefetch_next::<V>();
            }
            entries
        }
    }

    #[inline(always)]
    unsafe fn prefetch_next<V: HogwildVector>(&mut self) {
        // SAFETY: the record is inside a run and names rows that exist.
        unsafe {
            if let Some(entry) = self.ahead.next() {
                let count = if N > 0 { N } else { self.non_fiber.len() };
                for n in 0..count {
                    let mut mode = self.non_fiber[n];
                    if K > 0 {
                        mode.stride = K * LANES;
                    }
                    let row_index = *entry.add(n);
                    let row = mode.row(row_index);
                    for k in (0..mode.stride).step_by(LANES) {
                        V::prefetch_for_write(row.add(k));
                    }
                    prefetch(mode.penalty.add(row_index as usize));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn next<V: HogwildVector>(&mut self) -> Option<*const u32> {
        // SAFETY: the caller guarantees the records of the job.
        unsafe {
            self.prefetch_next::<V>();
            self.current.next()
        }
    }
}

leaf! {
    /// Processes entries with a full core. The core is packed in `work` while the first `core_entries` entries
    /// update it.
    unsafe fn full<V: HogwildVector + PackedVector>(job: &BatchJob<'_>, layout: &PackedLayout, batches: &[FiberBatch]) -> f64 = full_body;
}

leaf! {
    /// Processes entries with a hyper-diagonal core of one vector and `N` rows per entry.
    pub(crate) unsafe fn diagonal_one_vector<V: HogwildVector, const N: usize>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = diagonal_one_vector_body;
}

leaf! {
    /// Processes entries with a hyper-diagonal core and `N` rows of `K` vectors per entry; see [`RowSettings`].
    unsafe fn diagonal_fixed_order<V: HogwildVector, const N: usize, const K: usize>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = diagonal_fixed_order_body;
}

leaf! {
    /// Processes entries with a hyper-diagonal core of any length and any number of rows per entry.
    unsafe fn diagonal_any_order<V: HogwildVector>(job: &BatchJob<'_>, batches: &[FiberBatch]) -> f64 = diagonal_any_order_body;
}

#[inline(always)]
unsafe fn full_body<V: HogwildVector + PackedVector>(
    job: &BatchJob<'_>,
    layout: &PackedLayout,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller guarantees the pointers of the job; a packed core fits behind the other buffers.
    unsafe {
        let mut entries =
            PrefetchedEntries::<0, 0>::new::<V>(job, job.non_fiber, batches, job.weighted);
        let core = if layout.is_packed() {
            let packed = job.work.add(layout.work_len);
            packed_core::pack::<V>(layout, job.core, packed);
            packed
        } else {
            job.core
        };
        let count = job.core_entries;
        let mut total = if job.regularizer.nonneg {
            process_entries::<V, CORE_NONNEG>(job, layout, core, &mut entries, count)
        } else {
            process_entries::<V, CORE_ADD>(job, layout, core, &mut entries, count)
        };
        if layout.is_packed() {
            packed_core::unpack::<V>(layout, core, job.core);
        }
        total += process_entries::<V, CORE_FIXED>(job, layout, core, &mut entries, usize::MAX);
        total
    }
}

/// Processes at most `count` further entries. Returns the weighted sum of squared residuals.
#[inline(always)]
unsafe fn process_entries<V: HogwildVector + PackedVector, const CORE_UPDATE: u8>(
    job: &BatchJob<'_>,
    layout: &PackedLayout,
    core: *mut f32,
    entries: &mut PrefetchedEntries<'_, 0, 0>,
    count: usize,
) -> f64 {
    let update = RowUpdate::<V>::new(job.eta, job.regularizer);
    let mut buffers = OuterBuffers::new(layout);
    let mut total = 0.0f64;
    let mut remaining = count;
    // SAFETY: the caller guarantees the pointers of the job; `work` has the layout `layout`.
    unsafe {
        let work = job.work;
        while remaining > 0 {
            let Some(entry) = entries.next::<V>() else {
                break;
            };
            remaining -= 1;
            for (n, mode) in job.non_fiber.iter().enumerate() {
                let (from, to) = (mode.row(*entry.add(n)), work.add(layout.row(n).0));
                for k in (0..mode.stride).step_by(LANES) {
                    V::load(from.add(k)).store(to.add(k));
                }
            }
            let value = packed_core::gradients::<V, CORE_UPDATE>(layout, buffers, core, work);
            let residual = f32::from_bits(*entry.add(job.non_fiber.len())) - value;
            let weighted_residual =
                weighted_residual(residual, entry, job.non_fiber.len(), job.weighted);
            total += f64::from(residual) * f64::from(weighted_residual);
            if CORE_UPDATE != CORE_FIXED {
                packed_core::queue_core_update::<V>(
                    layout,
                    &mut buffers,
                    work,
                    job.core_eta * weighted_residual,
                );
            }
            let scale = V::splat(-weighted_residual);
            for (n, mode) in job.non_fiber.iter().enumerate() {
                let row_index = *entry.add(n);
                let (to, penalty) = (mode.row(row_index), mode.penalty(row_index));
                let (row, gradient) = layout.row(n);
                for k in (0..mode.stride).step_by(LANES) {
                    let (x, d) = (V::load(work.add(row + k)), V::load(work.add(gradient + k)));
                    update.apply(x, mode.prior_at(k), d, scale, penalty, to.add(k));
                }
            }
        }
        if CORE_UPDATE != CORE_FIXED && remaining < count {
            packed_core::flush_core_update::<V, CORE_UPDATE>(layout, buffers, core, work);
        }
    }
    total
}

#[inline(always)]
unsafe fn diagonal_one_vector_body<V: HogwildVector, const N: usize>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let update = RowUpdate::<V>::new(job.eta, job.regularizer);
    let mut total = 0.0f64;
    // SAFETY: the caller guarantees the pointers of the job; rows are one vector long.
    unsafe {
        let non_fiber = single_vector_modes::<N>(job);
        let mut core = V::load(job.core);
        let mut entries =
            PrefetchedEntries::<N, 1>::new::<V>(job, &non_fiber, batches, job.weighted);
        while let Some(entry) = entries.next::<V>() {
            let RowProducts {
                at,
                rows,
                product,
                gradients,
            } = row_products(core, &non_fiber, entry);
            let residual = f32::from_bits(*entry.add(N)) - (core * product).sum();
            let weighted_residual = weighted_residual(residual, entry, N, job.weighted);
            total += f64::from(residual) * f64::from(weighted_residual);
            let core_scale = V::splat(job.core_eta * weighted_residual);
            core = job.regularizer.projected(product.mul_add(core_scale, core));
            let scale = V::splat(-weighted_residual);
            for n in 0..N {
                let penalty = non_fiber[n].penalty(*entry.add(n));
                update.apply(
                    rows[n],
                    non_fiber[n].prior_at(0),
                    gradients[n],
                    scale,
                    penalty,
                    at[n],
                );
            }
        }
        core.store(job.core);
    }
    total
}

#[inline(always)]
unsafe fn diagonal_fixed_order_body<V: HogwildVector, const N: usize, const K: usize>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let mut total = 0.0f64;
    // SAFETY: the caller guarantees the pointers of the job; rows are as long as the core.
    unsafe {
        let RowSettings {
            non_fiber,
            width,
            regularizer,
        } = RowSettings::<N>::new::<K>(job);
        let update = RowUpdate::<V>::new(job.eta, regularizer);
        let mut entries =
            PrefetchedEntries::<N, K>::new::<V>(job, &non_fiber, batches, job.weighted);
        while let Some(entry) = entries.next::<V>() {
            let mut at = [std::ptr::null_mut::<f32>(); N];
            let mut penalties = [0.0; N];
            for n in 0..N {
                at[n] = non_fiber[n].row(*entry.add(n));
                penalties[n] = non_fiber[n].penalty(*entry.add(n));
            }
            let kept = EntryRows::<V, N, K>::new(job.core, &at, width);
            let value = V::splat(f32::from_bits(*entry.add(N)));
            let residual = value - kept.dot.splat_sum();
            let weighted_residual = weighted_residual_vector(residual, entry, N, job.weighted);
            total += f64::from(residual.first_lane()) * f64::from(weighted_residual.first_lane());
            let scale = weighted_residual * V::splat(-1.0);
            let core_scale = weighted_residual * V::splat(job.core_eta);
            for k in 0..width / LANES {
                let core = job.core.add(k * LANES);
                let (rows, gradients) = kept.vectors(core, &at, k);
                if job.core_eta != 0.0 {
                    let mut product = rows[0];
                    for n in 1..N {
                        product = product * rows[n];
                    }
                    let new = product.mul_add(core_scale, V::load(core));
                    regularizer.projected(new).store(core);
                }
                for n in 0..N {
                    let (prior, to) = (non_fiber[n].prior_at(k * LANES), at[n].add(k * LANES));
                    update.apply(rows[n], prior, gradients[n], scale, penalties[n], to);
                }
            }
        }
    }
    total
}

#[inline(always)]
unsafe fn diagonal_any_order_body<V: HogwildVector>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let (width, order) = (job.shape.core_len(), job.non_fiber.len());
    let update = RowUpdate::<V>::new(job.eta, job.regularizer);
    let mut total = 0.0f64;
    // SAFETY: the caller guarantees the pointers of the job; rows are as long as the core.
    unsafe {
        let rows = job.work;
        let gradients = rows.add(job.shape.rows_len());
        let mut entries =
            PrefetchedEntries::<0, 0>::new::<V>(job, job.non_fiber, batches, job.weighted);
        while let Some(entry) = entries.next::<V>() {
            for (n, mode) in job.non_fiber.iter().enumerate() {
                let from = mode.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    V::load(from.add(k)).store(rows.add(n * width + k));
                }
            }
            let value = gradients_diagonal::<V>(job.shape, job.core, rows, gradients);
            let residual = f32::from_bits(*entry.add(order)) - value;
            let weighted_residual = weighted_residual(residual, entry, order, job.weighted);
            total += f64::from(residual) * f64::from(weighted_residual);
            let core_scale = V::splat(job.core_eta * weighted_residual);
            for k in (0..width).step_by(LANES) {
                let mut product = V::load(rows.add(k));
                for n in 1..order {
                    product = product * V::load(rows.add(n * width + k));
                }
                let g = job.core.add(k);
                let new = product.mul_add(core_scale, V::load(g));
                job.regularizer.projected(new).store(g);
            }
            let scale = V::splat(-weighted_residual);
            for (n, mode) in job.non_fiber.iter().enumerate() {
                let row_index = *entry.add(n);
                let (to, penalty) = (mode.row(row_index), mode.penalty(row_index));
                for k in (0..width).step_by(LANES) {
                    let at = n * width + k;
                    let (x, d) = (V::load(rows.add(at)), V::load(gradients.add(at)));
                    update.apply(x, mode.prior_at(k), d, scale, penalty, to.add(k));
                }
            }
        }
    }
    total
}
