//! Errors on grouped entries: M once per run, then one product per entry.
//!
//! # Safety
//! As in [`super::batch`]; nothing but `work` is written.
#![allow(unsafe_code)]

use super::batch::{Between, Job};
use super::entry::{any_value, contract};
use super::general::load_rows;
use super::grid::Batch;
use super::lines::{Line, stamped};
use super::vector::vector;
use super::walk::{Batches, one_line};
use crate::model::{STRIDE, padded};

stamped! {
    /// The sums of squared errors of predictions as they are, and clipped to a range.
    pub(super) unsafe fn squares(job: &Job<'_>, batches: &[Batch], clip: (f64, f64)) -> [f64; 2] = any_squares;
}

#[inline(always)]
unsafe fn any_squares<L: Line>(job: &Job<'_>, batches: &[Batch], clip: (f64, f64)) -> [f64; 2] {
    // SAFETY: the caller's promises.
    unsafe {
        let shape = job.shape;
        let one_line = shape.rows_len() == shape.order() * STRIDE;
        if job.between == Between::Full && job.fiber.is_some() && shape.order() == 2 && one_line {
            return match shape.ranks[0].div_ceil(4) {
                1 => small3::<L, 4>(job, batches, clip),
                2 => small3::<L, 8>(job, batches, clip),
                3 => small3::<L, 12>(job, batches, clip),
                _ => small3::<L, 16>(job, batches, clip),
            };
        }
        let mut sums = [0.0; 2];
        let m = job.work;
        let full = job.between == Between::Full;
        let rows = m.add(shape.core_len());
        let work = rows.add(shape.rows_len());
        for (batch, entries) in Batches::new(job, job.listed, batches) {
            let core = match job.fiber {
                None => job.core.cast_const(),
                Some((fiber, rank)) => {
                    let u = fiber.row(batch.run.fiber);
                    if full {
                        contract::<L>(job.core, u, rank, shape.core_len() / STRIDE, m);
                    } else {
                        vector::<L>(job, u, rank, shape.core_len() / STRIDE, m);
                    }
                    m.cast_const()
                }
            };
            for entry in entries {
                load_rows::<L>(job, entry, rows);
                let value = any_value::<L>(shape, core, rows, work);
                add(&mut sums, *entry.add(job.listed.len()), value, clip);
            }
        }
        sums
    }
}

#[inline(always)]
fn add(sums: &mut [f64; 2], bits: u32, value: f32, clip: (f64, f64)) {
    let (x, value) = (f64::from(f32::from_bits(bits)), f64::from(value));
    sums[0] += (x - value) * (x - value);
    let clipped = x - value.max(clip.0).min(clip.1);
    sums[1] += clipped * clipped;
}

/// Order 3, both listed rows one line, at most `J` of the first used.
#[inline(always)]
unsafe fn small3<L: Line, const J: usize>(
    job: &Job<'_>,
    batches: &[Batch],
    clip: (f64, f64),
) -> [f64; 2] {
    // SAFETY: the caller's promises.
    unsafe {
        let Some((fiber, rank)) = job.fiber else {
            return [0.0; 2];
        };
        debug_assert_eq!(padded(job.shape.ranks[1]), STRIDE);
        let listed = one_line(job);
        let [a, b] = listed;
        let m = job.work;
        for i in 0..STRIDE {
            L::zero().store(m.add(i * STRIDE));
        }
        let mut sums = [0.0; 2];
        for (batch, entries) in Batches::new(job, &listed, batches) {
            let u = fiber.row(batch.run.fiber);
            contract::<L>(job.core, u, rank, job.shape.ranks[0], m);
            let mut mi = [L::zero(); J];
            for i in 0..J {
                mi[i] = L::load(m.add(i * STRIDE));
            }
            for entry in entries {
                let (v, w) = (a.row(*entry), b.row(*entry.add(1)));
                let (mut even, mut odd) = (L::zero(), L::zero());
                for i in (0..J).step_by(2) {
                    even = L::splat(*v.add(i)).times_plus(mi[i], even);
                    odd = L::splat(*v.add(i + 1)).times_plus(mi[i + 1], odd);
                }
                let value = even.plus(odd).times(L::load(w)).sum();
                add(&mut sums, *entry.add(2), value, clip);
            }
        }
        sums
    }
}
