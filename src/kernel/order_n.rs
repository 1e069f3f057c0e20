//! Batches with a full core of order 4 or more.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_iter::{Batches, pulling};
use super::batch_job::{Job, Step};
use super::batch_update::{after_full, first_m};
use super::entry::{slopes_leaf, step_core_leaf};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, leaf};

leaf! {
    /// Runs batches with a full core of order 4 or more: M is a core of order 3 or more.
    pub(super) unsafe fn general<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 = general_body;
}

#[inline(always)]
unsafe fn general_body<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch]) -> f64 {
    // SAFETY: the caller's promises; the parts of `work` do not overlap.
    unsafe {
        let Some((fiber, _)) = job.fiber else {
            return 0.0;
        };
        let shape = job.shape;
        let lines = shape.core_len() / LANES;
        let m = job.work;
        let e = m.add(shape.core_len());
        let rows = e.add(shape.core_len());
        let slopes = rows.add(shape.rows_len());
        let fiber_slopes = slopes.add(shape.rows_len());
        let work = fiber_slopes.add(fiber.stride);
        let mut total = 0.0f64;
        first_m::<L>(job, batches, lines, m);
        for (number, (batch, entries)) in
            Batches::new(job, job.listed, batches, job.weighted).enumerate()
        {
            for k in 0..lines {
                L::zero().store(e.add(k * LANES));
            }
            let mut squares = 0.0f32;
            for entry in entries {
                load_rows::<L>(job, entry, rows);
                let value = slopes_leaf::<L>(shape, m, rows, slopes, work);
                let error = f32::from_bits(*entry.add(job.listed.len())) - value;
                let pull = pulling(error, entry, job.listed.len(), job.weighted);
                squares += error * pull;
                step_core_leaf::<L>(shape, e, rows, 1.0, pull);
                step_rows::<L>(job, entry, rows, slopes, pull);
            }
            total += f64::from(squares);
            let next = batches.get(number + 1);
            after_full::<L>(job, batch, next, e, m, fiber_slopes, lines);
        }
        total
    }
}

/// Copies the listed rows of an entry one after the other.
#[inline(always)]
pub(super) unsafe fn load_rows<L: F32x16>(job: &Job<'_>, entry: *const u32, rows: *mut f32) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut to = rows;
        for (n, mode) in job.listed.iter().enumerate() {
            let row = mode.row(*entry.add(n));
            for k in (0..mode.stride).step_by(LANES) {
                L::load(row.add(k)).store(to.add(k));
            }
            to = to.add(mode.stride);
        }
    }
}

/// Steps of the listed rows, given copies of them and their slopes.
#[inline(always)]
pub(super) unsafe fn step_rows<L: F32x16>(
    job: &Job<'_>,
    entry: *const u32,
    rows: *const f32,
    slopes: *const f32,
    error: f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let step = Step::<L>::new(job.eta, job.rule);
        let scale = L::splat(job.eta * error);
        let mut at = 0;
        for (n, mode) in job.listed.iter().enumerate() {
            let row = *entry.add(n);
            let (to, penalty) = (mode.row(row), mode.penalty(row));
            for k in (0..mode.stride).step_by(LANES) {
                let (x, d) = (L::load(rows.add(at + k)), L::load(slopes.add(at + k)));
                step.put(x, mode.own(k), d, scale, penalty, to.add(k));
            }
            at += mode.stride;
        }
    }
}
