//! Predictions at the entries of whole runs: M once per run, then one product per entry.
//!
//! # Safety
//! As in [`super::batch`]; nothing but `work` and the output is written, and penalties and priors are not read.
#![allow(unsafe_code)]

use super::batch_iter::{Batches, first_of, one_line};
use super::batch_job::{Between, Job};
use super::entry::{any_value, contract};
use super::entry_block::FiberBatch;
use super::hogwild_rows::HogwildVector;
use super::hyper_diagonal::{between, vector};
use super::order_n::load_rows;
use crate::kernel::CoreKind;
use crate::simd::{F32x16, LANES, dispatched, leaf, padded_len};

dispatched! {
    /// Writes the prediction at every entry, in the order of the batches.
    ///
    /// # Safety
    /// `to` has room for all of them.
    pub(super) unsafe fn predict(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) = predict_level;
}

leaf! {
    /// Predicts with a full core of order 3 between rows of one vector, at most `J` of the first used.
    unsafe fn order3<L: F32x16, const J: usize>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) = order3_body;
}

leaf! {
    /// Predicts with a vector between `N` non-fiber rows.
    unsafe fn diagonal<L: F32x16, const N: usize>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) = diagonal_body;
}

leaf! {
    /// Predicts with any core.
    unsafe fn any_core<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) = any_core_body;
}

/// Chooses the leaf for a job.
unsafe fn predict_level<L: HogwildVector>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) {
    // SAFETY: the caller's promises.
    unsafe {
        let shape = job.shape;
        let one_vector = shape.rows_len() == shape.order() * LANES;
        if job.between == Between::Full && job.fiber.is_some() && shape.order() == 2 && one_vector {
            // Rows of M beyond the rank are 0: the scalar level does without the smaller sizes.
            return match shape.ranks[0].div_ceil(4) {
                1 if const { L::REGISTERS > 1 } => order3::<L, 4>(job, batches, to),
                2 if const { L::REGISTERS > 1 } => order3::<L, 8>(job, batches, to),
                3 if const { L::REGISTERS > 1 } => order3::<L, 12>(job, batches, to),
                _ => order3::<L, 16>(job, batches, to),
            };
        }
        if shape.kind == CoreKind::Diagonal {
            match job.listed.len() {
                1 => return diagonal::<L, 1>(job, batches, to),
                2 => return diagonal::<L, 2>(job, batches, to),
                3 => return diagonal::<L, 3>(job, batches, to),
                4 => return diagonal::<L, 4>(job, batches, to),
                _ => {}
            }
        }
        any_core::<L>(job, batches, to);
    }
}

#[inline(always)]
unsafe fn any_core_body<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) {
    // SAFETY: the caller's promises.
    unsafe {
        let shape = job.shape;
        let m = job.work;
        let full = job.between == Between::Full;
        let rows = m.add(shape.core_len());
        let work = rows.add(shape.rows_len());
        let mut to = to;
        for (batch, entries) in Batches::new(job, job.listed, batches, job.weighted) {
            let core = match job.fiber {
                None => job.core.cast_const(),
                Some((fiber, rank)) => {
                    let u = fiber.row(batch.run.fiber_row);
                    if full {
                        contract::<L>(job.core, u, rank, shape.core_len() / LANES, m);
                    } else {
                        vector::<L>(job, u, rank, shape.core_len() / LANES, m);
                    }
                    m.cast_const()
                }
            };
            for entry in entries {
                load_rows::<L>(job, entry, rows);
                *to = any_value::<L>(shape, core, rows, work);
                to = to.add(1);
            }
        }
    }
}

#[inline(always)]
unsafe fn diagonal_body<L: F32x16, const N: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let listed = first_of::<N>(job);
        let width = listed[0].stride;
        let mut to = to;
        for (batch, entries) in Batches::new(job, &listed, batches, job.weighted) {
            let m = match job.fiber {
                None => job.core,
                Some((fiber, rank)) => {
                    let u = fiber.row(batch.run.fiber_row);
                    vector::<L>(job, u, rank, width / LANES, job.work);
                    job.work
                }
            };
            for entry in entries {
                let mut rows = [std::ptr::null_mut::<f32>(); N];
                for n in 0..N {
                    rows[n] = listed[n].row(*entry.add(n));
                }
                *to = between::<L, N>(m, &rows, width).sum();
                to = to.add(1);
            }
        }
    }
}

#[inline(always)]
unsafe fn order3_body<L: F32x16, const J: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return;
        };
        debug_assert_eq!(padded_len(job.shape.ranks[1]), LANES);
        let listed = one_line(job);
        let [a, b] = listed;
        let m = job.work;
        for i in 0..LANES {
            L::zero().store(m.add(i * LANES));
        }
        let mut to = to;
        for (batch, entries) in Batches::new(job, &listed, batches, job.weighted) {
            let u = fiber.row(batch.run.fiber_row);
            contract::<L>(job.core, u, rank, job.shape.ranks[0], m);
            let mut mi = [L::zero(); J];
            for i in 0..J {
                mi[i] = L::load(m.add(i * LANES));
            }
            for entry in entries {
                let (v, w) = (a.row(*entry), b.row(*entry.add(1)));
                let (mut even, mut odd) = (L::zero(), L::zero());
                for i in (0..J).step_by(2) {
                    even = L::splat(*v.add(i)).mul_add(mi[i], even);
                    odd = L::splat(*v.add(i + 1)).mul_add(mi[i + 1], odd);
                }
                *to = ((even + odd) * L::load(w)).sum();
                to = to.add(1);
            }
        }
    }
}
