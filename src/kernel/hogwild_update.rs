//! Lock-free (HOGWILD!) SGD updates, one entry after the other as in Algorithm 1.
//!
//! Safe functions check the arguments; the kernels check every row index.
#![allow(unsafe_code)]

use super::batch_job::{Regularizer, updated, updated_towards};
use super::core_shape::MAX_ORDER;
use super::entry_gradient;
use super::hogwild_rows::HogwildVector;
use super::packed_core::{
    self, CORE_ADD, CORE_FIXED, CORE_REGULARIZED, CoreUpdate, OuterBuffers, PackedVector,
};
use super::packed_core_layout::PackedLayout;
use super::row_cache::RowCache;
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES};
use crate::simd::{dispatched, leaf, prefetch};

use super::core_shape::{CoreKind, CoreShape};

/// The entries of a block and the order in which they are visited: position `at`, then `at + stride`, cyclically.
pub(crate) struct EntryWalk<'a> {
    /// Number of row indices per entry.
    pub order: usize,
    pub rows: &'a [u32],
    pub values: &'a [f32],
    /// Empty if entries are unweighted.
    pub weights: &'a [f32],
    /// Current position, below the number of entries, and distance to the next one, at most that number.
    pub position: usize,
    pub stride: usize,
    /// Row indices and values of the next block, which are prefetched.
    pub next_block: Option<(&'a [u32], &'a [f32])>,
}

impl EntryWalk<'_> {
    fn check(&self, order: usize) {
        let len = self.values.len();
        assert!(self.order == order && self.rows.len() == len * order);
        assert!(self.weights.is_empty() || self.weights.len() == len);
        assert!(self.position < len && self.stride <= len);
    }

    /// Returns the residual times the weight of the entry at `at`.
    ///
    /// # Safety
    /// `check` passed, and `at` is below the number of entries.
    #[inline(always)]
    unsafe fn weighted_residual(&self, residual: f32, at: usize) -> f32 {
        // The branch goes the same way for all entries, so it is predicted.
        if self.weights.is_empty() {
            return residual;
        }
        // SAFETY: weighted walks have one weight per entry, and the caller guarantees `at`.
        residual * unsafe { *self.weights.get_unchecked(at) }
    }

    /// Returns the position after `at`.
    #[inline(always)]
    pub(crate) fn next_position(&self, at: usize) -> usize {
        let next = at + self.stride;
        next - if next >= self.values.len() {
            self.values.len()
        } else {
            0
        }
    }
}

/// Result of processing some entries of a tensor walk.
pub(crate) struct WalkOutcome {
    /// Position of the next entry.
    pub next_position: usize,
    /// Weighted sum of squared residuals, each taken before the updates of its own entry.
    pub squared_error: f64,
}

/// Parameters of lock-free updates.
#[derive(Clone, Copy)]
pub(crate) struct HogwildSettings<'a> {
    pub eta: f32,
    /// Weight of the loss of this tensor or matrix.
    pub loss_weight: f32,
    pub regularizer: Regularizer,
    /// Learning rate and penalty of the core; `None` on threads that do not update the core.
    pub core: Option<(f32, f32)>,
    /// For each mode, the penalty per entry of each row.
    pub penalties: &'a [&'a [f32]],
    /// For each mode, the prior mean towards which penalties shrink rows, padded with zeros.
    pub prior_means: &'a [&'a [f32]],
}

/// The core replica of a thread, in the layout of the kernel, and the kernel's buffers.
pub(crate) struct HogwildKernel {
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
    pub(crate) fn new(shape: &CoreShape, level: Level) -> HogwildKernel {
        assert!(level.is_available());
        let layout = (shape.kind == CoreKind::Full).then(|| PackedLayout::new(shape));
        let (core, work) = match &layout {
            Some(layout) => (layout.core_len(), layout.work_len),
            None => (shape.core_len(), 2 * shape.rows_len()),
        };
        HogwildKernel {
            shape: shape.clone(),
            level,
            layout,
            core: AlignedVec::zeroed(core),
            work: AlignedVec::zeroed(work),
        }
    }

    /// Returns the core in the layout of the kernel.
    pub(crate) fn core(&mut self) -> &mut [f32] {
        &mut self.core
    }

    /// Copies a core in the layout of [`CoreShape`] to that of the kernel.
    pub(crate) fn pack(&self, core: &[f32]) -> AlignedVec {
        let mut packed = AlignedVec::zeroed(self.core.len());
        match &self.layout {
            Some(layout) => layout.pack(core, &mut packed),
            None => packed.copy_from_slice(core),
        }
        packed
    }

    /// Copies a core in the layout of the kernel to that of [`CoreShape`].
    pub(crate) fn unpack(&self, packed: &AlignedVec, core: &mut [f32]) {
        match &self.layout {
            Some(layout) => layout.unpack(packed, core),
            None => core.copy_from_slice(packed),
        }
    }

    /// Updates rows and core with `count` entries of a tensor.
    ///
    /// # Panics
    /// If a length is wrong, or an entry names a row that does not exist.
    pub(crate) fn update_tensor_entries(
        &mut self,
        row_caches: &mut [RowCache<'_>],
        walk: &EntryWalk<'_>,
        count: usize,
        settings: &HogwildSettings<'_>,
    ) -> WalkOutcome {
        let order = self.shape.order();
        walk.check(order);
        assert_eq!((row_caches.len(), settings.penalties.len()), (order, order));
        assert_eq!(settings.prior_means.len(), order);
        let mut modes = [SharedMode::default(); MAX_ORDER];
        for (n, cache) in row_caches.iter_mut().enumerate() {
            assert_eq!(cache.stride(), self.shape.row(n).len());
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

/// Updates rows and columns with `count` entries of a matrix. Returns the next position of the walk.
///
/// # Panics
/// If a length is wrong, or an entry names a row that does not exist.
pub(crate) fn update_matrix_entries(
    level: Level,
    rows: &mut RowCache<'_>,
    columns: &mut RowCache<'_>,
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
) -> usize {
    walk.check(2);
    assert!(level.is_available() && rows.stride() == columns.stride());
    let modes = [
        SharedMode::new(rows, settings, 0),
        SharedMode::new(columns, settings, 1),
    ];
    // SAFETY: lengths and level were checked above; the kernel checks every row index.
    unsafe { update_pairs(level, &modes, walk, count, settings, false) }
}

/// Updates rows of one mode with `count` edges of a graph. Returns the next position of the walk.
///
/// # Panics
/// If a length is wrong, or an edge names a row that does not exist.
pub(crate) fn update_graph_edges(
    level: Level,
    rows: &mut RowCache<'_>,
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
) -> usize {
    walk.check(2);
    assert!(level.is_available());
    let mode = SharedMode::new(rows, settings, 0);
    // SAFETY: lengths and level were checked above; the kernel checks every row index.
    unsafe { update_pairs(level, &[mode; 2], walk, count, settings, true) }
}

/// The rows of a mode in the row cache of a thread.
#[derive(Clone, Copy)]
struct SharedMode<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    penalty: &'a [f32],
    prior: &'a [f32],
    eta: f32,
}

impl Default for SharedMode<'_> {
    fn default() -> Self {
        SharedMode {
            start: std::ptr::null_mut(),
            rows: 0,
            stride: 0,
            penalty: &[],
            prior: &[],
            eta: 0.0,
        }
    }
}

impl<'a> SharedMode<'a> {
    fn new(cache: &mut RowCache<'_>, settings: &HogwildSettings<'a>, n: usize) -> SharedMode<'a> {
        let (penalty, prior) = (settings.penalties[n], settings.prior_means[n]);
        // A factor ends with one more row: the mean of its rows.
        assert!(penalty.len() <= cache.rows() && prior.len() >= cache.stride());
        SharedMode {
            start: cache.start(),
            rows: penalty.len(),
            stride: cache.stride(),
            penalty,
            prior,
            eta: settings.eta,
        }
    }

    /// Returns the address of a row, and eta times its penalty.
    #[inline(always)]
    fn row(&self, row: u32) -> (*mut f32, f32) {
        let row = row as usize;
        assert!(row < self.rows, "an entry names a row that does not exist");
        // SAFETY: the assertion above; there are as many penalties as rows, of `stride` floats each.
        unsafe {
            let shrink = self.eta * *self.penalty.get_unchecked(row);
            (self.start.add(row * self.stride), shrink)
        }
    }

    /// Returns one vector of the prior mean from float `k` on.
    ///
    /// # Safety
    /// `k..k + LANES` is within the stride.
    #[inline(always)]
    unsafe fn prior<V: HogwildVector>(&self, k: usize) -> V {
        // SAFETY: `new` checked that the prior mean is as long as a row.
        unsafe { V::load(self.prior.as_ptr().add(k)) }
    }

    #[inline(always)]
    fn prefetch_for_write<V: HogwildVector>(&self, row: u32) {
        let at = self.start.wrapping_add(row as usize * self.stride);
        for k in (0..self.stride).step_by(LANES) {
            V::prefetch_for_write(at.wrapping_add(k));
        }
        prefetch(self.penalty.as_ptr().wrapping_add(row as usize));
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

dispatched! {
    /// Processes entries of a matrix, or edges of a graph.
    unsafe fn update_pairs(modes: &[SharedMode<'_>; 2], walk: &EntryWalk<'_>, count: usize, settings: &HogwildSettings<'_>, edges: bool) -> usize
        = update_pairs_body;
}

/// Prefetch distance, in entries.
const PREFETCH_DISTANCE: usize = 6;

/// Prefetches the rows of the entry at `at`, and a part of the next block.
#[inline(always)]
fn prefetch_ahead<V: HogwildVector>(
    modes: &[SharedMode<'_>],
    walk: &EntryWalk<'_>,
    at: usize,
    done: usize,
) {
    let rows = &walk.rows[at * walk.order..(at + 1) * walk.order];
    for (mode, &row) in modes.iter().zip(rows) {
        mode.prefetch_for_write::<V>(row);
    }
    if let Some((rows, values)) = walk.next_block {
        prefetch(rows.as_ptr().wrapping_add(done * walk.order).cast());
        prefetch(values.as_ptr().wrapping_add(done));
    }
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
    let plain = match job.settings.core {
        None => CORE_FIXED,
        Some((eta, penalty)) => {
            let regularizer = job.settings.regularizer;
            // The penalty lambda / |Omega| is nearly always below the rounding error of 1.
            if !regularizer.l1 && !regularizer.nonneg && 1.0 - eta * penalty == 1.0 {
                CORE_ADD
            } else {
                CORE_REGULARIZED
            }
        }
    };
    // SAFETY: the caller guarantees the pointers of the job and the instruction set.
    unsafe {
        match (job.layout, plain) {
            (None, _) => diagonal::<V>(job, work),
            (Some(layout), CORE_FIXED) => full::<V, CORE_FIXED>(job, layout, work),
            (Some(layout), CORE_ADD) => full::<V, CORE_ADD>(job, layout, work),
            (Some(layout), _) => full::<V, CORE_REGULARIZED>(job, layout, work),
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
    let (core_eta, core_penalty) = settings.core.unwrap_or((0.0, 0.0));
    let core_update = CoreUpdate {
        shrink: core_eta * core_penalty,
        regularizer: settings.regularizer,
    };
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
            // At the first entry no update is queued, so nothing shrinks either.
            let core_update = CoreUpdate {
                shrink: if done == 0 { 0.0 } else { core_update.shrink },
                ..core_update
            };
            let value = packed_core::gradients::<V, CORE_UPDATE>(
                layout,
                buffers,
                job.core,
                work,
                core_update,
            );
            let residual = *walk.values.as_ptr().add(at) - value;
            let weighted_residual = walk.weighted_residual(residual, at);
            squared_error += f64::from(residual) * f64::from(weighted_residual);
            if CORE_UPDATE != CORE_FIXED {
                packed_core::queue_core_update::<V>(
                    layout,
                    &mut buffers,
                    work,
                    core_eta * weighted_residual,
                );
            }
            for (n, mode) in job.modes.iter().enumerate() {
                let (to, shrink) = mode.row(*entry.add(n));
                let (row, gradient) = layout.row(n);
                for k in (0..mode.stride).step_by(LANES) {
                    let (x, d) = (V::load(work.add(row + k)), V::load(work.add(gradient + k)));
                    let scale = mode.eta * weighted_residual;
                    updated_towards(x, mode.prior(k), d, scale, shrink, settings.regularizer)
                        .store_shared(to.add(k));
                }
            }
            at = walk.next_position(at);
        }
        if CORE_UPDATE != CORE_FIXED && job.count > 0 {
            packed_core::flush_core_update::<V>(layout, buffers, job.core, work, core_update);
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
            let value =
                entry_gradient::gradients_diagonal::<V>(job.shape, job.core, work, gradients);
            let residual = *walk.values.as_ptr().add(at) - value;
            let weighted_residual = walk.weighted_residual(residual, at);
            squared_error += f64::from(residual) * f64::from(weighted_residual);
            if let Some((eta, penalty)) = settings.core {
                for k in (0..width).step_by(LANES) {
                    let mut product = V::load(work.add(k));
                    for n in 1..job.modes.len() {
                        product = product * V::load(work.add(n * width + k));
                    }
                    let g = job.core.add(k);
                    updated(
                        V::load(g),
                        product,
                        eta * weighted_residual,
                        eta * penalty,
                        settings.regularizer,
                    )
                    .store(g);
                }
            }
            for (n, mode) in job.modes.iter().enumerate() {
                let (to, shrink) = mode.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    let (x, d) = (
                        V::load(work.add(n * width + k)),
                        V::load(gradients.add(n * width + k)),
                    );
                    let scale = mode.eta * weighted_residual;
                    updated_towards(x, mode.prior(k), d, scale, shrink, settings.regularizer)
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

/// For a matrix, y^ = u . v. For an edge, the penalty w |u - v|^2 moves the two rows towards each other.
#[inline(always)]
unsafe fn update_pairs_body<V: HogwildVector>(
    modes: &[SharedMode<'_>; 2],
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
    edges: bool,
) -> usize {
    let stride = modes[0].stride;
    let mut at = walk.position;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.next_position(ahead);
    }
    // SAFETY: positions stay inside the block; row indices are checked; both rows have `stride` floats.
    unsafe {
        for done in 0..count {
            prefetch_ahead::<V>(modes, walk, ahead, done);
            ahead = walk.next_position(ahead);
            let entry = walk.rows.as_ptr().add(2 * at);
            let (entry_position, value) = (at, *walk.values.as_ptr().add(at));
            at = walk.next_position(at);
            let (u, shrink_u) = modes[0].row(*entry);
            let (v, shrink_v) = modes[1].row(*entry.add(1));
            if edges && u == v {
                continue;
            }
            let scale = if edges {
                value
            } else {
                let mut sum = V::zero();
                for k in (0..stride).step_by(LANES) {
                    sum = V::load_shared(u.add(k)).mul_add(V::load_shared(v.add(k)), sum);
                }
                walk.weighted_residual(value - sum.sum(), entry_position)
            };
            let scale = settings.eta * settings.loss_weight * scale;
            for k in (0..stride).step_by(LANES) {
                let (x, y) = (V::load_shared(u.add(k)), V::load_shared(v.add(k)));
                let (direction_x, direction_y) = if edges {
                    let gap = x.mul_add(V::splat(-1.0), y);
                    (gap, gap * V::splat(-1.0))
                } else {
                    (y, x)
                };
                let (prior_x, prior_y) = (modes[0].prior(k), modes[1].prior(k));
                updated_towards(
                    x,
                    prior_x,
                    direction_x,
                    scale,
                    shrink_u,
                    settings.regularizer,
                )
                .store_shared(u.add(k));
                updated_towards(
                    y,
                    prior_y,
                    direction_y,
                    scale,
                    shrink_v,
                    settings.regularizer,
                )
                .store_shared(v.add(k));
            }
        }
    }
    at
}
