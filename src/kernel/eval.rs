//! Errors on grouped entries: M once per run, then one product per entry.
//!
//! # Safety
//! As in [`super::batch`]; nothing but `work` is written.
#![allow(unsafe_code)]

use super::batch::{Between, Job, ModeRows};
use super::batch_iter::{Batches, first_of, one_line};
use super::entry::{any_value, contract};
use super::entry_block::FiberBatch;
use super::hyper_diagonal::{between, vector};
use super::order_n::load_rows;
use crate::kernel::CoreKind;
use crate::simd::{F32x16, dispatched};

use crate::simd::{LANES, padded_len};

dispatched! {
    /// The sums of squared errors, by weight, of predictions as they are, and clipped to a range after
    /// biases are added, which are where penalties are while fitting.
    pub(super) unsafe fn squares(job: &Job<'_>, batches: &[FiberBatch], clip: (f64, f64)) -> [f64; 2] = any_squares;
}

dispatched! {
    /// The error of every entry, one after the other.
    ///
    /// # Safety
    /// There is room for all of them.
    pub(super) unsafe fn errors(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) = any_errors;
}

#[inline(always)]
unsafe fn any_errors<L: F32x16>(job: &Job<'_>, batches: &[FiberBatch], to: *mut f32) {
    let mut at = 0;
    // SAFETY: the caller's promises.
    unsafe {
        each::<L>(job, batches, |_, _, bits, value| {
            *to.add(at) = f32::from_bits(bits) - value;
            at += 1;
        });
    }
}

#[inline(always)]
unsafe fn any_squares<L: F32x16>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    clip: (f64, f64),
) -> [f64; 2] {
    let mut sums = [0.0; 2];
    // SAFETY: the caller's promises.
    unsafe {
        each::<L>(job, batches, |batch, entry, bits, value| {
            let bias = bias(job, job.listed, batch, entry);
            let weight = match job.weighted {
                true => f32::from_bits(*entry.add(job.listed.len() + 1)),
                false => 1.0,
            };
            add(&mut sums, (bits, weight), value, bias, clip);
        });
    }
    sums
}

/// Hands over every entry with its batch, the bits of its value, and its prediction.
#[inline(always)]
unsafe fn each<L: F32x16>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    mut take: impl FnMut(&FiberBatch, *const u32, u32, f32),
) {
    // SAFETY: the caller's promises.
    unsafe {
        let shape = job.shape;
        let one_line = shape.rows_len() == shape.order() * LANES;
        if job.between == Between::Full && job.fiber.is_some() && shape.order() == 2 && one_line {
            return match shape.ranks[0].div_ceil(4) {
                1 => small3::<L, 4>(job, batches, take),
                2 => small3::<L, 8>(job, batches, take),
                3 => small3::<L, 12>(job, batches, take),
                _ => small3::<L, 16>(job, batches, take),
            };
        }
        if shape.kind == CoreKind::Diagonal {
            match job.listed.len() {
                1 => return strips::<L, 1>(job, batches, take),
                2 => return strips::<L, 2>(job, batches, take),
                3 => return strips::<L, 3>(job, batches, take),
                4 => return strips::<L, 4>(job, batches, take),
                _ => {}
            }
        }
        let m = job.work;
        let full = job.between == Between::Full;
        let rows = m.add(shape.core_len());
        let work = rows.add(shape.rows_len());
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
                let value = any_value::<L>(shape, core, rows, work);
                take(batch, entry, *entry.add(job.listed.len()), value);
            }
        }
    }
}

/// The sum of the biases of an entry.
#[inline(always)]
unsafe fn bias(job: &Job<'_>, listed: &[ModeRows], batch: &FiberBatch, entry: *const u32) -> f64 {
    let mut sum = 0.0;
    // SAFETY: the caller's promises: biases are there for every row, or not at all.
    unsafe {
        for (n, mode) in listed.iter().enumerate() {
            if !mode.penalty.is_null() {
                sum += f64::from(mode.penalty(*entry.add(n)));
            }
        }
        if let Some((fiber, _)) = job.fiber
            && !fiber.penalty.is_null()
        {
            sum += f64::from(fiber.penalty(batch.run.fiber_row));
        }
    }
    sum
}

#[inline(always)]
fn add(sums: &mut [f64; 2], (bits, weight): (u32, f32), value: f32, bias: f64, clip: (f64, f64)) {
    let weight = f64::from(weight);
    let (x, value) = (f64::from(f32::from_bits(bits)), f64::from(value));
    sums[0] += weight * ((x - value) * (x - value));
    let clipped = x + bias - (value + bias).max(clip.0).min(clip.1);
    sums[1] += weight * (clipped * clipped);
}

/// A vector between `N` listed rows.
#[inline(always)]
unsafe fn strips<L: F32x16, const N: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    mut take: impl FnMut(&FiberBatch, *const u32, u32, f32),
) {
    // SAFETY: the caller's promises.
    unsafe {
        let listed = first_of::<N>(job);
        let width = listed[0].stride;
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
                let value = between::<L, N>(m, &rows, width).sum();
                take(batch, entry, *entry.add(N), value);
            }
        }
    }
}

/// Order 3, both listed rows one line, at most `J` of the first used.
#[inline(always)]
unsafe fn small3<L: F32x16, const J: usize>(
    job: &Job<'_>,
    batches: &[FiberBatch],
    mut take: impl FnMut(&FiberBatch, *const u32, u32, f32),
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
                let value = ((even + odd) * L::load(w)).sum();
                take(batch, entry, *entry.add(2), value);
            }
        }
    }
}
