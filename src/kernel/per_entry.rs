//! Entries one by one, with the whole core, which steps at once: where so few entries share a row that
//! batches do not pay.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Singles, first_of, one_line, pulling};
use super::batch_job::{Job, ModeRows, Rule, moved, moved_to};
use super::entry::diagonal_slopes;
use super::entry_block::FiberBatch;
use super::hogwild_rows::HogwildVector;
use super::hyper_diagonal::{Around, around, around_at, between};
use super::packed_core::{self, ADD, CoreStep, Flatten, NO_STEP, STEP, Turns};
use super::packed_core_layout::Flat;
use crate::simd::LANES;
use crate::simd::{leaf, prefetch};

/// Rows of so many entries ahead are asked for, and their penalties: both come from far away.
const AHEAD: usize = 16;

const PLAIN: Rule = Rule {
    l1: false,
    nonneg: false,
};

/// Runs the entries of batches.
pub(super) unsafe fn single<L: HogwildVector + Flatten>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        match job.flat {
            Some(flat) => full::<L>(job, flat, batches),
            None => match job.listed.len() {
                2 => strips::<L, 2>(job, batches),
                3 => strips::<L, 3>(job, batches),
                4 => strips::<L, 4>(job, batches),
                _ => lines::<L>(job, batches),
            },
        }
    }
}

/// All entries of a job, with the rows of those that come later asked for.
struct Ahead<'a> {
    listed: &'a [ModeRows],
    here: Singles<'a>,
    ahead: Singles<'a>,
}

impl<'a> Ahead<'a> {
    #[inline(always)]
    unsafe fn new<L: HogwildVector>(
        job: &Job<'a>,
        listed: &'a [ModeRows],
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> Self {
        // SAFETY: the caller's promises.
        unsafe {
            let here = Singles::new(job, listed.len(), batches, weighted);
            let ahead = here.clone();
            let mut all = Ahead {
                listed,
                here,
                ahead,
            };
            for _ in 0..AHEAD {
                all.ask::<L>();
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn ask<L: HogwildVector>(&mut self) {
        // SAFETY: the entry is in a run; asking for its rows reads nothing.
        unsafe {
            if let Some(entry) = self.ahead.next() {
                for (n, mode) in self.listed.iter().enumerate() {
                    let number = *entry.add(n);
                    let row = mode.row(number);
                    for k in (0..mode.stride).step_by(LANES) {
                        L::prefetch_for_write(row.add(k));
                    }
                    prefetch(mode.penalty.add(number as usize));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn next<L: HogwildVector>(&mut self) -> Option<*const u32> {
        // SAFETY: the caller's promises.
        unsafe {
            self.ask::<L>();
            self.here.next()
        }
    }
}

leaf! {
    /// Runs entries of a full core. It lies packed in memory of its own meanwhile, and steps with the first entries.
    unsafe fn full<L: HogwildVector + Flatten>(job: &Job<'_>, flat: &Flat, batches: &[FiberBatch]) -> f64 = full_body;
}

leaf! {
    /// Runs entries of a hyper-diagonal core of one line between `N` rows.
    pub(super) unsafe fn line<L: HogwildVector, const N: usize>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = line_body;
}

leaf! {
    /// Runs entries of a hyper-diagonal core of any length between `N` rows.
    unsafe fn strips<L: HogwildVector, const N: usize>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = strips_body;
}

leaf! {
    /// Runs entries of a hyper-diagonal core of any length between any number of rows.
    unsafe fn lines<L: HogwildVector>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = lines_body;
}

#[inline(always)]
unsafe fn full_body<L: HogwildVector + Flatten>(
    job: &Job<'_>,
    flat: &Flat,
    batches: &[FiberBatch],
) -> f64 {
    // SAFETY: the caller's promises.
    unsafe {
        let mut entries = Ahead::new::<L>(job, job.listed, batches, job.weighted);
        let core = if flat.is_packed() {
            let packed = job.work.add(flat.work);
            packed_core::pack::<L>(flat, job.core, packed);
            packed
        } else {
            job.core
        };
        // lambda / |Omega| is nearly always too small to be seen next to 1.
        let mut total = if job.rule == PLAIN && 1.0 - job.core_eta * job.core_penalty == 1.0 {
            some::<L, ADD>(job, flat, core, &mut entries, job.core_entries)
        } else {
            some::<L, STEP>(job, flat, core, &mut entries, job.core_entries)
        };
        if flat.is_packed() {
            packed_core::unpack::<L>(flat, core, job.core);
        }
        total += some::<L, NO_STEP>(job, flat, core, &mut entries, usize::MAX);
        total
    }
}

/// The next entries, at most `count` of them.
#[inline(always)]
unsafe fn some<L: HogwildVector + Flatten, const HOW: u8>(
    job: &Job<'_>,
    flat: &Flat,
    core: *mut f32,
    entries: &mut Ahead<'_>,
    count: usize,
) -> f64 {
    let rule = if HOW == ADD { PLAIN } else { job.rule };
    let mut by = CoreStep { shrink: 0.0, rule };
    let mut turns = Turns::new(flat);
    let mut total = 0.0f64;
    let mut left = count;
    // SAFETY: the caller's promises; rows lie in `work` as the pass wants them.
    unsafe {
        let work = job.work;
        while left > 0 {
            let Some(entry) = entries.next::<L>() else {
                break;
            };
            left -= 1;
            for (n, mode) in job.listed.iter().enumerate() {
                let (from, to) = (mode.row(*entry.add(n)), work.add(flat.row(n).0));
                for k in (0..mode.stride).step_by(LANES) {
                    L::load(from.add(k)).store(to.add(k));
                }
            }
            let value = packed_core::slopes::<L, HOW>(flat, turns, core, work, by);
            let error = f32::from_bits(*entry.add(job.listed.len())) - value;
            let pull = pulling(error, entry, job.listed.len(), job.weighted);
            total += f64::from(error) * f64::from(pull);
            if HOW != NO_STEP {
                packed_core::due::<L>(flat, &mut turns, work, job.core_eta * pull);
            }
            // Nothing was due, nor shrinks, before the first entry.
            by.shrink = job.core_eta * job.core_penalty;
            for (n, mode) in job.listed.iter().enumerate() {
                let (number, eta) = (*entry.add(n), job.eta * mode.step);
                let (to, scale) = (mode.row(number), eta * pull);
                let shrink = eta * mode.penalty(number);
                let (row, slope) = flat.row(n);
                for k in (0..mode.stride).step_by(LANES) {
                    let (x, d) = (L::load(work.add(row + k)), L::load(work.add(slope + k)));
                    let prior = L::load(mode.prior.add(k));
                    moved_to(x, prior, d, scale, shrink, rule).store(to.add(k));
                }
            }
        }
        if HOW != NO_STEP && left < count {
            packed_core::finish::<L>(flat, turns, core, work, by);
        }
    }
    total
}

#[inline(always)]
unsafe fn line_body<L: HogwildVector, const N: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let core_shrink = job.core_eta * job.core_penalty;
    let mut total = 0.0f64;
    // SAFETY: the caller's promises; all rows are one line.
    unsafe {
        let listed = one_line::<N>(job);
        let mut core = L::load(job.core);
        let mut entries = Ahead::new::<L>(job, &listed, batches, job.weighted);
        while let Some(entry) = entries.next::<L>() {
            let Around {
                at,
                rows,
                product,
                slopes,
            } = around(core, &listed, entry);
            let error = f32::from_bits(*entry.add(N)) - (core * product).sum();
            let pull = pulling(error, entry, N, job.weighted);
            total += f64::from(error) * f64::from(pull);
            core = moved(core, product, job.core_eta * pull, core_shrink, job.rule);
            for n in 0..N {
                let (prior, step) = (L::load(listed[n].prior), listed[n].step);
                let (eta, penalty) = (job.eta * step, listed[n].penalty(*entry.add(n)));
                let (scale, shrink) = (eta * pull, eta * penalty);
                moved_to(rows[n], prior, slopes[n], scale, shrink, job.rule).store(at[n]);
            }
        }
        core.store(job.core);
    }
    total
}

#[inline(always)]
unsafe fn strips_body<L: HogwildVector, const N: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
) -> f64 {
    let width = job.shape.core_len();
    let core_shrink = job.core_eta * job.core_penalty;
    let mut total = 0.0f64;
    // SAFETY: the caller's promises; all rows are as long as the core.
    unsafe {
        let listed = first_of::<N>(job);
        let mut entries = Ahead::new::<L>(job, &listed, batches, job.weighted);
        while let Some(entry) = entries.next::<L>() {
            let mut at = [std::ptr::null_mut::<f32>(); N];
            for n in 0..N {
                at[n] = listed[n].row(*entry.add(n));
            }
            let value = between::<L, N>(job.core, &at, width).sum();
            let error = f32::from_bits(*entry.add(N)) - value;
            let pull = pulling(error, entry, N, job.weighted);
            total += f64::from(error) * f64::from(pull);
            let (mut scales, mut shrinks) = ([0.0; N], [0.0; N]);
            for n in 0..N {
                let eta = job.eta * listed[n].step;
                scales[n] = eta * pull;
                shrinks[n] = eta * listed[n].penalty(*entry.add(n));
            }
            let core_scale = job.core_eta * pull;
            // The rows are near by now: once more from there is faster than copies of them.
            for k in (0..width).step_by(LANES) {
                let core = job.core.add(k);
                let old = L::load(core);
                let Around {
                    at,
                    rows,
                    product,
                    slopes,
                } = around_at(old, &at, k);
                if job.core_eta != 0.0 {
                    moved(old, product, core_scale, core_shrink, job.rule).store(core);
                }
                for n in 0..N {
                    let prior = L::load(listed[n].prior.add(k));
                    moved_to(rows[n], prior, slopes[n], scales[n], shrinks[n], job.rule)
                        .store(at[n]);
                }
            }
        }
    }
    total
}

#[inline(always)]
unsafe fn lines_body<L: HogwildVector>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    let (width, order) = (job.shape.core_len(), job.listed.len());
    let core_shrink = job.core_eta * job.core_penalty;
    let mut total = 0.0f64;
    // SAFETY: the caller's promises; all rows are as long as the core.
    unsafe {
        let rows = job.work;
        let slopes = rows.add(job.shape.rows_len());
        let mut entries = Ahead::new::<L>(job, job.listed, batches, job.weighted);
        while let Some(entry) = entries.next::<L>() {
            for (n, mode) in job.listed.iter().enumerate() {
                let from = mode.row(*entry.add(n));
                for k in (0..width).step_by(LANES) {
                    L::load(from.add(k)).store(rows.add(n * width + k));
                }
            }
            let value = diagonal_slopes::<L>(job.shape, job.core, rows, slopes);
            let error = f32::from_bits(*entry.add(order)) - value;
            let pull = pulling(error, entry, order, job.weighted);
            total += f64::from(error) * f64::from(pull);
            let core_scale = job.core_eta * pull;
            for k in (0..width).step_by(LANES) {
                let mut product = L::load(rows.add(k));
                for n in 1..order {
                    product = product * L::load(rows.add(n * width + k));
                }
                let g = job.core.add(k);
                moved(L::load(g), product, core_scale, core_shrink, job.rule).store(g);
            }
            for (n, mode) in job.listed.iter().enumerate() {
                let (number, eta) = (*entry.add(n), job.eta * mode.step);
                let (to, scale) = (mode.row(number), eta * pull);
                let shrink = eta * mode.penalty(number);
                for k in (0..width).step_by(LANES) {
                    let at = n * width + k;
                    let (x, d) = (L::load(rows.add(at)), L::load(slopes.add(at)));
                    let prior = L::load(mode.prior.add(k));
                    moved_to(x, prior, d, scale, shrink, job.rule).store(to.add(k));
                }
            }
        }
    }
    total
}
