//! Lock-free (HOGWILD!) SGD updates with tensor entries, one after the other as in Algorithm 1.
//!
//! Safe functions check the arguments; the kernels check every row index.
#![allow(unsafe_code)]

use super::row_cache::RowCache;
use super::rows::HogwildVector;
use super::walk::{EntryWalk, HogwildSettings, PREFETCH_DISTANCE, SharedMode, prefetch_ahead};
use crate::batch::job::RowUpdate;
use crate::error::Result;
use crate::per_entry::gradient;
use crate::per_entry::packed_core::{self, CORE_ADD, CORE_FIXED, CORE_NONNEG, OuterBuffers};
use crate::per_entry::packed_core_layout::PackedLayout;
use crate::progress::count_operations;
use crate::shape::core_shape::{CoreKind, CoreShape, MAX_ORDER};
use crate::simd::packed_vector::PackedVector;
use crate::simd::{AlignedVec, LANES, Level, dispatched, leaf};
use crate::try_alloc::CORE_ENTRIES;

/// Result of processing some entries of a tensor walk.
pub struct WalkOutcome {
    /// Position of the next entry.
    pub next_position: usize,
    /// Weighted sum of squared residuals, each taken before the updates of its own entry.
    pub squared_error: f64,
}

/// The core replica of a thread, in the layout of the kernel, and the kernel's buffers.
pub struct HogwildKernel {
    shape: CoreShape,
    level: Level,
    layout: Option<PackedLayout>,
    core: AlignedVec,
    work: AlignedVec,
}

impl HogwildKernel {
    /// Creates a kernel with a core of zeros.
    ///
    /// # Panics
    /// If the machine does not have the level.
    pub fn new(shape: &CoreShape, level: Level) -> Result<HogwildKernel> {
        assert!(level.is_available());
        let layout = (shape.kind() == CoreKind::Full).then(|| PackedLayout::new(shape));
        let (core, work) = match &layout {
            Some(layout) => (layout.core_len(), layout.work_len),
            None => (shape.core_len(), 2 * shape.rows_len()),
        };
        Ok(HogwildKernel {
            shape: shape.clone(),
            level,
            layout,
            core: AlignedVec::try_zeroed(core, CORE_ENTRIES)?,
            work: AlignedVec::try_zeroed(work, CORE_ENTRIES)?,
        })
    }

    /// Returns the core in the layout of the kernel.
    pub fn core(&mut self) -> &mut [f32] {
        &mut self.core
    }

    /// Copies a core in the layout of [`CoreShape`] to that of the kernel.
    pub fn pack(&self, core: &[f32]) -> Result<AlignedVec> {
        let mut packed = AlignedVec::try_zeroed(self.core.len(), CORE_ENTRIES)?;
        match &self.layout {
            Some(layout) => layout.pack(core, &mut packed),
            None => packed.copy_from_slice(core),
        }
        Ok(packed)
    }

    /// Copies a core in the layout of the kernel to that of [`CoreShape`].
    pub fn unpack(&self, packed: &AlignedVec, core: &mut [f32]) {
        match &self.layout {
            Some(layout) => layout.unpack(packed, core),
            None => core.copy_from_slice(packed),
        }
    }

    /// Updates rows and core with `count` entries of a tensor.
    ///
    /// # Panics
    /// If a length is wrong, or an entry names a row that does not exist.
    pub fn update_tensor_entries(
        &mut self,
        row_caches: &mut [RowCache<'_>],
        walk: &EntryWalk<'_>,
        count: usize,
        settings: &HogwildSettings<'_>,
    ) -> WalkOutcome {
        let order = self.shape.order();
        walk.check(order);
        count_operations(3 * count * self.core.len());
        assert_eq!((row_caches.len(), settings.penalties.len()), (order, order));
        assert_eq!(settings.prior_means.len(), order);
        let mut modes = [SharedMode::default(); MAX_ORDER];
        for (n, cache) in row_caches.iter_mut().enumerate() {
            assert_eq!(cache.stride(), self.shape.row(n).len());
            assert!(
                cache.level() == self.level,
                "atomics would race with assembly"
            );
            modes[n] = SharedMode::new(cache, settings, n);
        }
        let job = TensorJob {
            shape: &self.shape,
            layout: self.layout.as_ref(),
            core: self.core.as_mut_ptr(),
            modes: &modes[..order],
            walk,
            count,
            settings,
        };
        // Sets the rows of leading modes and clears the queued core update.
        let work = match &self.layout {
            Some(layout) => {
                layout.prepare_work(&mut self.work);
                self.work.as_mut_ptr()
            }
            None => self.work.as_mut_ptr(),
        };
        // SAFETY: the lengths were checked here, the level by `new`; the kernels check every row index.
        unsafe { update_tensor(self.level, &job, work) }
    }
}

struct TensorJob<'a> {
    shape: &'a CoreShape,
    layout: Option<&'a PackedLayout>,
    core: *mut f32,
    modes: &'a [SharedMode<'a>],
    walk: &'a EntryWalk<'a>,
    count: usize,
    settings: &'a HogwildSettings<'a>,
}

dispatched! {
    /// Processes entries of a tensor.
    unsafe fn update_tensor(job: &TensorJob<'_>, work: *mut f32) -> WalkOutcome = update_tensor_level;
}

leaf! {
    unsafe fn full<V: HogwildVector + PackedVector, const CORE_UPDATE: u8>(job: &TensorJob<'_>, layout: &PackedLayout, work: *mut f32) -> WalkOutcome = full_body;
}

leaf! {
    /// Processes entries with a hyper-diagonal core.
    unsafe fn diagonal<V: HogwildVector>(job: &TensorJob<'_>, work: *mut f32) -> WalkOutcome = diagonal_body;
}

unsafe fn update_tensor_level<V: HogwildVector + PackedVector>(
    job: &TensorJob<'_>,
    work: *mut f32,
) -> WalkOutcome {
    let core_update = match job.settings.core_eta {
        None => CORE_FIXED,
        Some(_) if job.settings.regularizer.nonneg => CORE_NONNEG,
        Some(_) => CORE_ADD,
    };
    // SAFETY: the caller guarantees the pointers of the job and the instruction set.
    unsafe {
        match (job.layout, core_update) {
            (None, _) => diagonal::<V>(job, work),
            (Some(layout), CORE_FIXED) => full::<V, CORE_FIXED>(job, layout, work),
            (Some(layout), CORE_ADD) => full::<V, CORE_ADD>(job, layout, work),
            (Some(layout), _) => full::<V, CORE_NONNEG>(job, layout, work),
        }
    }
}

#[inline(always)]
unsafe fn full_body<V: HogwildVector + PackedVector, const CORE_UPDATE: u8>(
    job: &TensorJob<'_>,
    layout: &PackedLayout,
    work: *mut f32,
) -> WalkOutcome {
    let (walk, settings) = (job.walk, job.settings);
    let core_eta = settings.core_eta.unwrap_or(0.0);
    let update = RowUpdate::<V>::new(settings.eta, settings.regularizer);
    let mut buffers = OuterBuffers::new(layout);
    let mut at = walk.position;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.next_position(ahead);
    }
    let mut squared_error = 0.0f64;
    // SAFETY: positions stay inside the block; row indices are checked; the buffers in `work` do not overlap.
    unsafe {
        for done in 0..job.count {
            prefetch_ahead::<V>(job.modes, walk, ahead, done);
            ahead = walk.next_position(ahead);
            let entry = walk.rows.as_ptr().add(at * walk.order);
            for (n, mode) in job.modes.iter().enumerate() {
                let (from, _) = mode.row(*entry.add(n));
                let to = work.add(layout.row(n).0);
                for k in (0..mode.stride).step_by(LANES) {
                    V::load_shared(from.add(k)).store(to.add(k));
                }
            }
            let value = packed_core::gradients::<V, CORE_UPDATE>(layout, buffers, job.core, work);
            let residual = *walk.values.as_ptr().add(at) - value;
            let weighted_residual = walk.weighted_residual(residual, at);
            squared_error += f64::from(residual) * f64::from(weighted_residual);
            let scale = V::splat(-weighted_residual);
            if CORE_UPDATE != CORE_FIXED {
                packed_core::queue_core_update::<V>(
                    layout,
                    &mut buffers,
                    work,
                    core_eta * weighted_residual,
                );
            }
            for (n, mode) in job.modes.iter().enumerate() {
                let (to, penalty) = mode.row(*entry.add(n));
                let (row, gradient) = layout.row(n);
                for k in (0..mode.stride).step_by(LANES) {
                    let (x, d) = (V::load(work.add(row + k)), V::load(work.add(gradient + k)));
                    update
                        .updated(x, x - mode.prior(k), d, scale, penalty)
                        .store_shared(to.add(k));
                }
            }
            at = walk.next_position(at);
        }
        if CORE_UPDATE != CORE_FIXED && job.count > 0 {
            packed_core::flush_core_update::<V, CORE_UPDATE>(layout, buffers, job.core, work);
        }
    }
    WalkOutcome {
        next_position: at,
        squared_error,
    }
}

#[inline(always)]
unsafe fn diagonal_body<V: HogwildVector>(job: &TensorJob<'_>, work: *mut f32) -> WalkOutcome {
    let (walk, settings) = (job.walk, job.settings);
    let width = job.shape.core_len();
    let update = RowUpdate::<V>::new(settings.eta, settings.regularizer);
    let mut at = walk.position;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.next_position(ahead);
    }
    let mut squared_error = 0.0f64;
    // SAFETY: positions stay inside the block; row indices are checked; rows are as long as the core.
    unsafe {
        let gradients = work.add(job.shape.rows_len());
        for done in 0..job.count {
            prefetch_ahead::<V>(job.modes, walk, ahead, done);
            ahead = walk.next_position(ahead);
            let entry = walk.rows.as_ptr().add(at * walk.order);
            for (n, mode) in job.modes.iter().enumerate() {
                let (from, _) = mode.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    V::load_shared(from.add(k)).store(work.add(n * width + k));
                }
            }
            let value = gradient::gradients_diagonal::<V>(job.shape, job.core, work, gradients);
            let residual = *walk.values.as_ptr().add(at) - value;
            let weighted_residual = walk.weighted_residual(residual, at);
            squared_error += f64::from(residual) * f64::from(weighted_residual);
            let scale = V::splat(-weighted_residual);
            if let Some(eta) = settings.core_eta {
                for k in (0..width).step_by(LANES) {
                    let mut product = V::load(work.add(k));
                    for n in 1..job.modes.len() {
                        product = product * V::load(work.add(n * width + k));
                    }
                    let g = job.core.add(k);
                    let new = product.mul_add(V::splat(eta * weighted_residual), V::load(g));
                    settings.regularizer.projected(new).store(g);
                }
            }
            for (n, mode) in job.modes.iter().enumerate() {
                let (to, penalty) = mode.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    let (x, d) = (
                        V::load(work.add(n * width + k)),
                        V::load(gradients.add(n * width + k)),
                    );
                    update
                        .updated(x, x - mode.prior(k), d, scale, penalty)
                        .store_shared(to.add(k));
                }
            }
            at = walk.next_position(at);
        }
    }
    WalkOutcome {
        next_position: at,
        squared_error,
    }
}
