//! Runs of entries of a lock-free fit, one entry after the other as Algorithm 1 has it.
#![allow(unsafe_code)]

use super::batch_job::{Rule, moved, moved_to};
use super::entry;
use super::hogwild_rows::HogwildVector;
use super::packed_core::{self, ADD, CoreStep, Flatten, NO_STEP, STEP, Turns};
use super::packed_core_layout::Flat;
use super::row_cache::RowCache;
use crate::kernel::MAX_ORDER;
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES};
use crate::simd::{dispatched, leaf, prefetch};

use crate::kernel::{CoreKind, CoreShape};

/// Entries of one block, and a walk through them.
pub(crate) struct Walk<'a> {
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

impl Walk<'_> {
    fn check(&self, order: usize) {
        let len = self.values.len();
        assert!(self.order == order && self.rows.len() == len * order);
        assert!(self.weights.is_empty() || self.weights.len() == len);
        assert!(self.at < len && self.stride <= len);
    }

    /// What the error of an entry is by weight: what rows and core step by.
    ///
    /// # Safety
    /// The walk was checked, and `at` is below the number of entries.
    #[inline(always)]
    unsafe fn pulling(&self, error: f32, at: usize) -> f32 {
        // Always the same way, so that the machine foresees it.
        if self.weights.is_empty() {
            return error;
        }
        // SAFETY: there is a weight for every entry.
        error * unsafe { *self.weights.get_unchecked(at) }
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

/// Steps of a run.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub eta: f32,
    /// The weight of the errors.
    pub weight: f32,
    pub rule: Rule,
    /// The step of the core and its penalty; `None` on threads that leave the core alone.
    pub core: Option<(f32, f32)>,
    /// For each mode, the penalty of each row per entry.
    pub penalties: &'a [&'a [f32]],
    /// The row that penalties pull to, of each mode, padded with zeros.
    pub priors: &'a [&'a [f32]],
    /// The step of the rows of each mode, as a share of `eta`.
    pub modes: &'a [f32],
}

/// What a thread needs to run entries of a tensor: its core, laid out for that, and memory.
pub(crate) struct Runner {
    shape: CoreShape,
    level: Level,
    flat: Option<Flat>,
    core: AlignedVec,
    work: AlignedVec,
}

impl Runner {
    /// # Panics
    /// If the machine does not have the level.
    pub(crate) fn new(shape: &CoreShape, level: Level) -> Runner {
        assert!(level.is_available());
        let flat = (shape.kind == CoreKind::Full).then(|| Flat::new(shape));
        let (core, work) = match &flat {
            Some(flat) => (flat.core_len(), flat.work),
            None => (shape.core_len(), 2 * shape.rows_len()),
        };
        Runner {
            shape: shape.clone(),
            level,
            flat,
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
        match &self.flat {
            Some(flat) => flat.pack(core, &mut packed),
            None => packed.copy_from_slice(core),
        }
        packed
    }

    /// The way back.
    pub(crate) fn unpack(&self, packed: &AlignedVec, core: &mut [f32]) {
        match &self.flat {
            Some(flat) => flat.unpack(packed, core),
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
        walk: &Walk<'_>,
        count: usize,
        steps: &Steps<'_>,
    ) -> (usize, f64) {
        let order = self.shape.order();
        walk.check(order);
        assert_eq!((row_caches.len(), steps.penalties.len()), (order, order));
        assert_eq!((steps.priors.len(), steps.modes.len()), (order, order));
        let mut sides = [Side::default(); MAX_ORDER];
        for (n, cache) in row_caches.iter_mut().enumerate() {
            assert_eq!(cache.stride(), self.shape.row(n).len());
            sides[n] = Side::new(cache, steps, n);
        }
        let job = Job {
            shape: &self.shape,
            flat: self.flat.as_ref(),
            core: self.core.as_mut_ptr(),
            sides: &sides[..order],
            walk,
            count,
            steps,
        };
        // The rows of modes put in front, and no step that is due.
        let work = match &self.flat {
            Some(flat) => {
                flat.prepare(&mut self.work);
                self.work.as_mut_ptr()
            }
            None => self.work.as_mut_ptr(),
        };
        // SAFETY: the lengths were checked here, the level when this was made; rows of entries are
        // checked one by one.
        unsafe { run_tensor(self.level, &job, work) }
    }
}

/// Runs `count` entries of a matrix between `rows` and `columns`; returns where the walk then is.
///
/// # Panics
/// If something does not fit together, or an entry names a row that is not there.
pub(crate) fn run_matrix(
    level: Level,
    rows: &mut RowCache<'_>,
    columns: &mut RowCache<'_>,
    walk: &Walk<'_>,
    count: usize,
    steps: &Steps<'_>,
) -> usize {
    walk.check(2);
    assert!(level.is_available() && rows.stride() == columns.stride());
    let sides = [Side::new(rows, steps, 0), Side::new(columns, steps, 1)];
    // SAFETY: all checked above; rows of entries are checked one by one.
    unsafe { run_pairs(level, &sides, walk, count, steps, false) }
}

/// Runs `count` edges of a graph between rows of one mode; returns where the walk then is.
///
/// # Panics
/// If something does not fit together, or an edge names a row that is not there.
pub(crate) fn run_edges(
    level: Level,
    rows: &mut RowCache<'_>,
    walk: &Walk<'_>,
    count: usize,
    steps: &Steps<'_>,
) -> usize {
    walk.check(2);
    assert!(level.is_available());
    let side = Side::new(rows, steps, 0);
    // SAFETY: as above.
    unsafe { run_pairs(level, &[side; 2], walk, count, steps, true) }
}

/// The rows of a mode as a thread sees them.
#[derive(Clone, Copy)]
struct Side<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    penalty: &'a [f32],
    prior: &'a [f32],
    eta: f32,
}

impl Default for Side<'_> {
    fn default() -> Self {
        Side {
            start: std::ptr::null_mut(),
            rows: 0,
            stride: 0,
            penalty: &[],
            prior: &[],
            eta: 0.0,
        }
    }
}

impl<'a> Side<'a> {
    fn new(cache: &mut RowCache<'_>, steps: &Steps<'a>, n: usize) -> Side<'a> {
        let (penalty, prior) = (steps.penalties[n], steps.priors[n]);
        // A factor has the mean of its rows as one more.
        assert!(penalty.len() <= cache.rows() && prior.len() >= cache.stride());
        Side {
            start: cache.start(),
            rows: penalty.len(),
            stride: cache.stride(),
            penalty,
            prior,
            eta: steps.eta * steps.modes[n],
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

    /// Floats `k..` of the row that penalties pull to.
    ///
    /// # Safety
    /// `k` and the line after it are within the stride.
    #[inline(always)]
    unsafe fn prior<L: HogwildVector>(&self, k: usize) -> L {
        // SAFETY: as long as a row, which was checked.
        unsafe { L::load(self.prior.as_ptr().add(k)) }
    }

    #[inline(always)]
    fn prefetch_for_write<L: HogwildVector>(&self, row: u32) {
        let at = self.start.wrapping_add(row as usize * self.stride);
        for k in (0..self.stride).step_by(LANES) {
            L::prefetch_for_write(at.wrapping_add(k));
        }
        prefetch(self.penalty.as_ptr().wrapping_add(row as usize));
    }
}

struct Job<'a> {
    shape: &'a CoreShape,
    flat: Option<&'a Flat>,
    core: *mut f32,
    sides: &'a [Side<'a>],
    walk: &'a Walk<'a>,
    count: usize,
    steps: &'a Steps<'a>,
}

dispatched! {
    /// Runs entries of a tensor.
    unsafe fn run_tensor(job: &Job<'_>, work: *mut f32) -> (usize, f64) = any_tensor;
}

dispatched! {
    /// Runs entries of a matrix, or edges of a graph.
    unsafe fn run_pairs(sides: &[Side<'_>; 2], walk: &Walk<'_>, count: usize, steps: &Steps<'_>, edges: bool) -> usize
        = any_pairs;
}

/// Rows of so many entries ahead are asked for.
const AHEAD: usize = 6;

/// Asks for what comes: rows of the entry at `at`, and a part of the next block.
#[inline(always)]
fn look_ahead<L: HogwildVector>(sides: &[Side<'_>], walk: &Walk<'_>, at: usize, done: usize) {
    let rows = &walk.rows[at * walk.order..(at + 1) * walk.order];
    for (side, &row) in sides.iter().zip(rows) {
        side.prefetch_for_write::<L>(row);
    }
    if let Some((rows, values)) = walk.next {
        prefetch(rows.as_ptr().wrapping_add(done * walk.order).cast());
        prefetch(values.as_ptr().wrapping_add(done));
    }
}

leaf! {
    unsafe fn full<L: HogwildVector + Flatten, const HOW: u8>(job: &Job<'_>, flat: &Flat, work: *mut f32) -> (usize, f64) = full_body;
}

leaf! {
    /// A hyper-diagonal core.
    unsafe fn diagonal<L: HogwildVector>(job: &Job<'_>, work: *mut f32) -> (usize, f64) = diagonal_body;
}

unsafe fn any_tensor<L: HogwildVector + Flatten>(job: &Job<'_>, work: *mut f32) -> (usize, f64) {
    let plain = match job.steps.core {
        None => NO_STEP,
        Some((eta, penalty)) => {
            let rule = job.steps.rule;
            // lambda / |Omega| is nearly always too small to be seen next to 1.
            if !rule.l1 && !rule.nonneg && 1.0 - eta * penalty == 1.0 {
                ADD
            } else {
                STEP
            }
        }
    };
    // SAFETY: the caller's promises.
    unsafe {
        match (job.flat, plain) {
            (None, _) => diagonal::<L>(job, work),
            (Some(flat), NO_STEP) => full::<L, NO_STEP>(job, flat, work),
            (Some(flat), ADD) => full::<L, ADD>(job, flat, work),
            (Some(flat), _) => full::<L, STEP>(job, flat, work),
        }
    }
}

#[inline(always)]
unsafe fn full_body<L: HogwildVector + Flatten, const HOW: u8>(
    job: &Job<'_>,
    flat: &Flat,
    work: *mut f32,
) -> (usize, f64) {
    let (walk, steps) = (job.walk, job.steps);
    let (core_eta, core_penalty) = steps.core.unwrap_or((0.0, 0.0));
    let by = CoreStep {
        shrink: core_eta * core_penalty,
        rule: steps.rule,
    };
    let mut turns = Turns::new(flat);
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..AHEAD {
        ahead = walk.after(ahead);
    }
    let mut squares = 0.0f64;
    // SAFETY: the walk stays inside its block; rows are checked; the parts of `work` do not overlap.
    unsafe {
        for done in 0..job.count {
            look_ahead::<L>(job.sides, walk, ahead, done);
            ahead = walk.after(ahead);
            let entry = walk.rows.as_ptr().add(at * walk.order);
            for (n, side) in job.sides.iter().enumerate() {
                let (from, _) = side.row(*entry.add(n));
                let to = work.add(flat.row(n).0);
                for k in (0..side.stride).step_by(LANES) {
                    L::load_shared(from.add(k)).store(to.add(k));
                }
            }
            // No step is due at the first entry, so that nothing shrinks either.
            let by = CoreStep {
                shrink: if done == 0 { 0.0 } else { by.shrink },
                ..by
            };
            let value = packed_core::slopes::<L, HOW>(flat, turns, job.core, work, by);
            let error = *walk.values.as_ptr().add(at) - value;
            let pull = walk.pulling(error, at);
            squares += f64::from(error) * f64::from(pull);
            if HOW != NO_STEP {
                packed_core::due::<L>(flat, &mut turns, work, core_eta * pull);
            }
            for (n, side) in job.sides.iter().enumerate() {
                let (to, shrink) = side.row(*entry.add(n));
                let (row, slope) = flat.row(n);
                for k in (0..side.stride).step_by(LANES) {
                    let (x, d) = (L::load(work.add(row + k)), L::load(work.add(slope + k)));
                    let scale = side.eta * pull;
                    moved_to(x, side.prior(k), d, scale, shrink, steps.rule)
                        .store_shared(to.add(k));
                }
            }
            at = walk.after(at);
        }
        if HOW != NO_STEP && job.count > 0 {
            packed_core::finish::<L>(flat, turns, job.core, work, by);
        }
    }
    (at, squares)
}

#[inline(always)]
unsafe fn diagonal_body<L: HogwildVector>(job: &Job<'_>, work: *mut f32) -> (usize, f64) {
    let (walk, steps) = (job.walk, job.steps);
    let width = job.shape.core_len();
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..AHEAD {
        ahead = walk.after(ahead);
    }
    let mut squares = 0.0f64;
    // SAFETY: the walk stays inside its block; rows are checked and as long as the core.
    unsafe {
        let slopes = work.add(job.shape.rows_len());
        for done in 0..job.count {
            look_ahead::<L>(job.sides, walk, ahead, done);
            ahead = walk.after(ahead);
            let entry = walk.rows.as_ptr().add(at * walk.order);
            for (n, side) in job.sides.iter().enumerate() {
                let (from, _) = side.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    L::load_shared(from.add(k)).store(work.add(n * width + k));
                }
            }
            let value = entry::diagonal_slopes::<L>(job.shape, job.core, work, slopes);
            let error = *walk.values.as_ptr().add(at) - value;
            let pull = walk.pulling(error, at);
            squares += f64::from(error) * f64::from(pull);
            if let Some((eta, penalty)) = steps.core {
                for k in (0..width).step_by(LANES) {
                    let mut product = L::load(work.add(k));
                    for n in 1..job.sides.len() {
                        product = product * L::load(work.add(n * width + k));
                    }
                    let g = job.core.add(k);
                    moved(L::load(g), product, eta * pull, eta * penalty, steps.rule).store(g);
                }
            }
            for (n, side) in job.sides.iter().enumerate() {
                let (to, shrink) = side.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    let (x, d) = (
                        L::load(work.add(n * width + k)),
                        L::load(slopes.add(n * width + k)),
                    );
                    let scale = side.eta * pull;
                    moved_to(x, side.prior(k), d, scale, shrink, steps.rule)
                        .store_shared(to.add(k));
                }
            }
            at = walk.after(at);
        }
    }
    (at, squares)
}

/// y^ = u . v for a matrix; w |u - v|^2 pulls the two rows of an edge together.
#[inline(always)]
unsafe fn any_pairs<L: HogwildVector>(
    sides: &[Side<'_>; 2],
    walk: &Walk<'_>,
    count: usize,
    steps: &Steps<'_>,
    edges: bool,
) -> usize {
    let stride = sides[0].stride;
    let mut at = walk.at;
    let mut ahead = at;
    for _ in 0..AHEAD {
        ahead = walk.after(ahead);
    }
    // SAFETY: the walk stays inside its block; rows are checked; both are `stride` long.
    unsafe {
        for done in 0..count {
            look_ahead::<L>(sides, walk, ahead, done);
            ahead = walk.after(ahead);
            let entry = walk.rows.as_ptr().add(2 * at);
            let (here, value) = (at, *walk.values.as_ptr().add(at));
            at = walk.after(at);
            let (u, shrink_u) = sides[0].row(*entry);
            let (v, shrink_v) = sides[1].row(*entry.add(1));
            if edges && u == v {
                continue;
            }
            let scale = if edges {
                value
            } else {
                let mut sum = L::zero();
                for k in (0..stride).step_by(LANES) {
                    sum = L::load_shared(u.add(k)).mul_add(L::load_shared(v.add(k)), sum);
                }
                walk.pulling(value - sum.sum(), here)
            };
            let by = |n: usize| sides[n].eta * steps.weight * scale;
            let (scale_u, scale_v) = (by(0), by(1));
            for k in (0..stride).step_by(LANES) {
                let (x, y) = (L::load_shared(u.add(k)), L::load_shared(v.add(k)));
                let (pull_x, pull_y) = if edges {
                    let gap = x.mul_add(L::splat(-1.0), y);
                    (gap, gap * L::splat(-1.0))
                } else {
                    (y, x)
                };
                let (prior_x, prior_y) = (sides[0].prior(k), sides[1].prior(k));
                moved_to(x, prior_x, pull_x, scale_u, shrink_u, steps.rule).store_shared(u.add(k));
                moved_to(y, prior_y, pull_y, scale_v, shrink_v, steps.rule).store_shared(v.add(k));
            }
        }
    }
    at
}
