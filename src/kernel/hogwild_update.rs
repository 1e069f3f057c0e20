//! Runs of entries of a lock-free fit, one entry after the other as Algorithm 1 has it.
#![allow(unsafe_code)]

use super::batch_job::{Regularizer, updated, updated_towards};
use super::entry_gradient;
use super::hogwild_rows::HogwildVector;
use super::packed_core::{
    self, CORE_ADD, CORE_FIXED, CORE_REGULARIZED, CoreUpdate, OuterBuffers, PackedVector,
};
use super::packed_core_layout::PackedLayout;
use super::row_cache::RowCache;
use crate::kernel::MAX_ORDER;
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES};
use crate::simd::{dispatched, leaf, prefetch};

use crate::kernel::{CoreKind, CoreShape};

/// EntryIter of one block, and a walk through them.
pub(crate) struct EntryWalk<'a> {
    /// Rows of an entry.
    pub order: usize,
    pub rows: &'a [u32],
    pub values: &'a [f32],
    /// Empty if entries have no weights.
    pub weights: &'a [f32],
    /// The entry the walk is at, below the number of entries, and how far it goes from each to the next,
    /// at most that number.
    pub at: usize,
    pub stride: usize,
    /// The block that comes after this one, to be brought near.
    pub next: Option<(&'a [u32], &'a [f32])>,
}

impl EntryWalk<'_> {
    fn check(&self, order: usize) {
        let len = self.values.len();
        assert!(self.order == order && self.rows.len() == len * order);
        assert!(self.weights.is_empty() || self.weights.len() == len);
        assert!(self.at < len && self.stride <= len);
    }

    /// What the residual of an entry is by weight: what rows and core step by.
    ///
    /// # Safety
    /// The walk was checked, and `at` is below the number of entries.
    #[inline(always)]
    unsafe fn weighted_residual(&self, residual: f32, at: usize) -> f32 {
        // Always the same way, so that the machine foresees it.
        if self.weights.is_empty() {
            return residual;
        }
        // SAFETY: there is a weight for every entry.
        residual * unsafe { *self.weights.get_unchecked(at) }
    }

    /// The entry after this one.
    #[inline(always)]
    pub(crate) fn after(&self, at: usize) -> usize {
        let next = at + self.stride;
        next - if next >= self.values.len() {
            self.values.len()
        } else {
            0
        }
    }
}

/// HogwildSettings of a run.
#[derive(Clone, Copy)]
pub(crate) struct HogwildSettings<'a> {
    pub eta: f32,
    /// The weight of the errors.
    pub weight: f32,
    pub rule: Regularizer,
    /// The step of the core and its penalty; `None` on threads that leave the core alone.
    pub core: Option<(f32, f32)>,
    /// For each mode, the penalty of each row per entry.
    pub penalties: &'a [&'a [f32]],
    /// The row that penalties weighted_residual to, of each mode, padded with zeros.
    pub priors: &'a [&'a [f32]],
    /// The step of the rows of each mode, as a share of `eta`.
    pub modes: &'a [f32],
}

/// What a thread needs to run entries of a tensor: its core, laid out for that, and memory.
pub(crate) struct HogwildKernel {
    shape: CoreShape,
    level: Level,
    layout: Option<PackedLayout>,
    core: AlignedVec,
    work: AlignedVec,
}

impl HogwildKernel {
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

    /// The core, as it lies here.
    pub(crate) fn core(&mut self) -> &mut [f32] {
        &mut self.core
    }

    /// A core as it lies here, from one as the shape has it.
    pub(crate) fn pack(&self, core: &[f32]) -> AlignedVec {
        let mut packed = AlignedVec::zeroed(self.core.len());
        match &self.layout {
            Some(layout) => layout.pack(core, &mut packed),
            None => packed.copy_from_slice(core),
        }
        packed
    }

    /// The way back.
    pub(crate) fn unpack(&self, packed: &AlignedVec, core: &mut [f32]) {
        match &self.layout {
            Some(layout) => layout.unpack(packed, core),
            None => core.copy_from_slice(packed),
        }
    }

    /// Runs `count` entries of a tensor; returns where the walk then is and the sum of squared errors as
    /// they were met.
    ///
    /// # Panics
    /// If something does not fit together, or an entry names a row that is not there.
    pub(crate) fn tensor(
        &mut self,
        row_caches: &mut [RowCache<'_>],
        walk: &EntryWalk<'_>,
        count: usize,
        settings: &HogwildSettings<'_>,
    ) -> (usize, f64) {
        let order = self.shape.order();
        walk.check(order);
        assert_eq!((row_caches.len(), settings.penalties.len()), (order, order));
        assert_eq!(
            (settings.priors.len(), settings.modes.len()),
            (order, order)
        );
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
        // The rows of modes put in front, and no step that is due.
        let work = match &self.layout {
            Some(layout) => {
                layout.prepare_work(&mut self.work);
                self.work.as_mut_ptr()
            }
            None => self.work.as_mut_ptr(),
        };
        // SAFETY: the lengths were checked here, the level when this was made; rows of entries are
        // checked one by one.
        unsafe { update_tensor(self.level, &job, work) }
    }
}

/// Runs `count` entries of a matrix between `rows` and `columns`; returns where the walk then is.
///
/// # Panics
/// If something does not fit together, or an entry names a row that is not there.
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
    // SAFETY: all checked above; rows of entries are checked one by one.
    unsafe { update_pairs(level, &modes, walk, count, settings, false) }
}

/// Runs `count` edges of a graph between rows of one mode; returns where the walk then is.
///
/// # Panics
/// If something does not fit together, or an edge names a row that is not there.
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
    // SAFETY: as above.
    unsafe { update_pairs(level, &[mode; 2], walk, count, settings, true) }
}

/// The rows of a mode as a thread sees them.
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
        let (penalty, prior) = (settings.penalties[n], settings.priors[n]);
        // A factor has the mean of its rows as one more.
        assert!(penalty.len() <= cache.rows() && prior.len() >= cache.stride());
        SharedMode {
            start: cache.start(),
            rows: penalty.len(),
            stride: cache.stride(),
            penalty,
            prior,
            eta: settings.eta * settings.modes[n],
        }
    }

    /// The start of a row and what it shrinks by.
    #[inline(always)]
    fn row(&self, row: u32) -> (*mut f32, f32) {
        let row = row as usize;
        assert!(row < self.rows, "an entry in a row that is not there");
        // SAFETY: there are as many penalties as rows, `stride` floats each.
        unsafe {
            let shrink = self.eta * *self.penalty.get_unchecked(row);
            (self.start.add(row * self.stride), shrink)
        }
    }

    /// Floats `k..` of the row that penalties weighted_residual to.
    ///
    /// # Safety
    /// `k` and the line after it are within the stride.
    #[inline(always)]
    unsafe fn prior<V: HogwildVector>(&self, k: usize) -> V {
        // SAFETY: as long as a row, which was checked.
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
    /// Runs entries of a tensor.
    unsafe fn update_tensor(job: &TensorJob<'_>, work: *mut f32) -> (usize, f64) = update_tensor_level;
}

dispatched! {
    /// Runs entries of a matrix, or edges of a graph.
    unsafe fn update_pairs(modes: &[SharedMode<'_>; 2], walk: &EntryWalk<'_>, count: usize, settings: &HogwildSettings<'_>, edges: bool) -> usize
        = update_pairs_body;
}

/// Rows of so many entries ahead are asked for.
const PREFETCH_DISTANCE: usize = 6;

/// Asks for what comes: rows of the entry at `at`, and a part of the next block.
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
    if let Some((rows, values)) = walk.next {
        prefetch(rows.as_ptr().wrapping_add(done * walk.order).cast());
        prefetch(values.as_ptr().wrapping_add(done));
    }
}

leaf! {
    unsafe fn full<V: HogwildVector + PackedVector, const CORE_UPDATE: u8>(job: &TensorJob<'_>, layout: &PackedLayout, work: *mut f32) -> (usize, f64) = full_body;
}

leaf! {
    /// A hyper-diagonal core.
    unsafe fn diagonal<V: HogwildVector>(job: &TensorJob<'_>, work: *mut f32) -> (usize, f64) = diagonal_body;
}

unsafe fn update_tensor_level<V: HogwildVector + PackedVector>(
    job: &TensorJob<'_>,
    work: *mut f32,
) -> (usize, f64) {
    let plain = match job.settings.core {
        None => CORE_FIXED,
        Some((eta, penalty)) => {
            let regularizer = job.settings.rule;
            // lambda / |Omega| is nearly always too small to be seen next to 1.
            if !regularizer.l1 && !regularizer.nonneg && 1.0 - eta * penalty == 1.0 {
                CORE_ADD
            } else {
                CORE_REGULARIZED
            }
        }
    };
    // SAFETY: the caller's promises.
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
) -> (usize, f64) {
    let (walk, settings) = (job.walk, job.settings);
    let (core_eta, core_penalty) = settings.core.unwrap_or((0.0, 0.0));
    let by = CoreUpdate {
        shrink: core_eta * core_penalty,
        regularizer: settings.rule,
    };
    let mut buffers = OuterBuffers::new(layout);
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.after(ahead);
    }
    let mut squared_error = 0.0f64;
    // SAFETY: the walk stays inside its block; rows are checked; the parts of `work` do not overlap.
    unsafe {
        for done in 0..job.count {
            prefetch_ahead::<V>(job.modes, walk, ahead, done);
            ahead = walk.after(ahead);
            let entry = walk.rows.as_ptr().add(at * walk.order);
            for (n, mode) in job.modes.iter().enumerate() {
                let (from, _) = mode.row(*entry.add(n));
                let to = work.add(layout.row(n).0);
                for k in (0..mode.stride).step_by(LANES) {
                    V::load_shared(from.add(k)).store(to.add(k));
                }
            }
            // No step is due at the first entry, so that nothing shrinks either.
            let by = CoreUpdate {
                shrink: if done == 0 { 0.0 } else { by.shrink },
                ..by
            };
            let value =
                packed_core::gradients::<V, CORE_UPDATE>(layout, buffers, job.core, work, by);
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
                    updated_towards(x, mode.prior(k), d, scale, shrink, settings.rule)
                        .store_shared(to.add(k));
                }
            }
            at = walk.after(at);
        }
        if CORE_UPDATE != CORE_FIXED && job.count > 0 {
            packed_core::flush_core_update::<V>(layout, buffers, job.core, work, by);
        }
    }
    (at, squared_error)
}

#[inline(always)]
unsafe fn diagonal_body<V: HogwildVector>(job: &TensorJob<'_>, work: *mut f32) -> (usize, f64) {
    let (walk, settings) = (job.walk, job.settings);
    let width = job.shape.core_len();
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.after(ahead);
    }
    let mut squared_error = 0.0f64;
    // SAFETY: the walk stays inside its block; rows are checked and as long as the core.
    unsafe {
        let gradients = work.add(job.shape.rows_len());
        for done in 0..job.count {
            prefetch_ahead::<V>(job.modes, walk, ahead, done);
            ahead = walk.after(ahead);
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
                        settings.rule,
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
                    updated_towards(x, mode.prior(k), d, scale, shrink, settings.rule)
                        .store_shared(to.add(k));
                }
            }
            at = walk.after(at);
        }
    }
    (at, squared_error)
}

/// y^ = u . v for a matrix; w |u - v|^2 pulls the two rows of an edge together.
#[inline(always)]
unsafe fn update_pairs_body<V: HogwildVector>(
    modes: &[SharedMode<'_>; 2],
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
    edges: bool,
) -> usize {
    let stride = modes[0].stride;
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.after(ahead);
    }
    // SAFETY: the walk stays inside its block; rows are checked; both are `stride` long.
    unsafe {
        for done in 0..count {
            prefetch_ahead::<V>(modes, walk, ahead, done);
            ahead = walk.after(ahead);
            let entry = walk.rows.as_ptr().add(2 * at);
            let (here, value) = (at, *walk.values.as_ptr().add(at));
            at = walk.after(at);
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
                walk.weighted_residual(value - sum.sum(), here)
            };
            let by = |n: usize| modes[n].eta * settings.weight * scale;
            let (scale_u, scale_v) = (by(0), by(1));
            for k in (0..stride).step_by(LANES) {
                let (x, y) = (V::load_shared(u.add(k)), V::load_shared(v.add(k)));
                let (direction_x, direction_y) = if edges {
                    let gap = x.mul_add(V::splat(-1.0), y);
                    (gap, gap * V::splat(-1.0))
                } else {
                    (y, x)
                };
                let (prior_x, prior_y) = (modes[0].prior(k), modes[1].prior(k));
                updated_towards(x, prior_x, direction_x, scale_u, shrink_u, settings.rule)
                    .store_shared(u.add(k));
                updated_towards(y, prior_y, direction_y, scale_v, shrink_v, settings.rule)
                    .store_shared(v.add(k));
            }
        }
    }
    at
}
