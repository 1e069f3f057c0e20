//! Predictions at the entries of whole runs: M once per run, then one product per entry.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`]; batches are consecutive parts of whole runs. Only `work` and the output
//! are written; penalties and prior means are not read.
#![allow(unsafe_code)]

use super::entry_rows::{RowSettings, constant_vectors, multiway_dot};
use super::hyper_diagonal::fiber_product;
use super::iter::{BatchIter, RecordIter, single_vector_modes};
use super::job::{BatchJob, FiberMode, ModeRows};
use super::order_n::load_rows;
use super::order3_large;
use super::order4;
use crate::entries::block::FiberBatch;
use crate::hogwild::rows::HogwildVector;
use crate::per_entry::gradient::{contract, value_body};
use crate::shape::core_shape::CoreKind;
use crate::simd::{F32x16, LANES, dispatched, leaf, padded_len, prefetch};

dispatched! {
    /// Writes the prediction of every entry to `to`, in the order of the batches.
    ///
    /// # Safety
    /// `to` has room for one float per entry.
    pub(super) unsafe fn predict(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = predict_level;
}

leaf! {
    /// Predicts with a full core of order 2, without a fiber mode, and rows of one vector.
    unsafe fn order2<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = order2_body;
}

leaf! {
    /// Predicts with a full core of order 3 and rows of one vector; the first non-fiber rank is at most `J`.
    unsafe fn order3<V: F32x16, const J: usize>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = order3_body;
}

leaf! {
    /// Predicts where M is a vector, with `N` non-fiber rows of `K` vectors per entry; see [`RowSettings`].
    unsafe fn diagonal<V: F32x16, const N: usize, const K: usize>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = diagonal_body;
}

leaf! {
    /// Predicts with a full core of order 3 and rows of any length.
    unsafe fn order3_long_rows<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = order3_long_rows_body;
}

leaf! {
    /// Predicts with a full core over three non-fiber modes that [`order4::supports`].
    unsafe fn three_modes<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = three_modes_body;
}

leaf! {
    /// Predicts with any core.
    unsafe fn any_core<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) = any_core_body;
}

/// Selects the leaf for a job.
unsafe fn predict_level<V: HogwildVector>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let shape = job.shape;
        let one_vector = shape.rows_len() == shape.order() * LANES;
        let is_full = job.core_kind == Some(CoreKind::Full);
        if is_full && one_vector && job.fiber.is_none() && shape.order() == 2 {
            return order2::<V>(job, batches, to);
        }
        if is_full && job.fiber.is_some() && shape.order() == 2 {
            if !one_vector {
                return order3_long_rows::<V>(job, batches, to);
            }
            // Rows of M beyond the rank are 0, so the scalar level needs only the largest size.
            return match shape.ranks()[0].div_ceil(4) {
                1 if const { V::VECTOR_REGISTERS > 1 } => order3::<V, 4>(job, batches, to),
                2 if const { V::VECTOR_REGISTERS > 1 } => order3::<V, 8>(job, batches, to),
                3 if const { V::VECTOR_REGISTERS > 1 } => order3::<V, 12>(job, batches, to),
                _ => order3::<V, 16>(job, batches, to),
            };
        }
        if const { V::VECTOR_REGISTERS >= 4 } && is_full && order4::supports(shape) {
            return three_modes::<V>(job, batches, to);
        }
        if shape.kind() == CoreKind::Diagonal {
            match (job.non_fiber.len(), constant_vectors(job)) {
                (1, 1) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 1, 1>(job, batches, to);
                }
                (2, 1) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 2, 1>(job, batches, to);
                }
                (2, 2) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 2, 2>(job, batches, to);
                }
                (2, 4) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 2, 4>(job, batches, to);
                }
                (3, 1) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 3, 1>(job, batches, to);
                }
                (3, 2) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 3, 2>(job, batches, to);
                }
                (3, 4) if const { V::VECTOR_REGISTERS >= 8 } => {
                    return diagonal::<V, 3, 4>(job, batches, to);
                }
                (1, _) => return diagonal::<V, 1, 0>(job, batches, to),
                (2, _) => return diagonal::<V, 2, 0>(job, batches, to),
                (3, _) => return diagonal::<V, 3, 0>(job, batches, to),
                (4, _) => return diagonal::<V, 4, 0>(job, batches, to),
                _ => {}
            }
        }
        any_core::<V>(job, batches, to);
    }
}

/// Products of the rows of entries that are not yet summed over lanes. Sums of [`LANES`] entries together take fewer
/// instructions.
struct Products {
    vectors: ProductVectors,
    count: usize,
    to: *mut f32,
}

#[repr(C, align(64))]
struct ProductVectors([f32; LANES * LANES]);

impl Products {
    /// Predictions are written to `to`.
    #[inline(always)]
    fn new(to: *mut f32) -> Products {
        Products {
            vectors: ProductVectors([0.0; LANES * LANES]),
            count: 0,
            to,
        }
    }

    /// Adds the product of the next entry.
    ///
    /// # Safety
    /// There is room for another prediction.
    #[inline(always)]
    unsafe fn push<V: F32x16>(&mut self, product: V) {
        // SAFETY: `count` is below the number of vectors; the caller guarantees the room for predictions.
        unsafe {
            let vectors = self.vectors.0.as_mut_ptr();
            product.store(vectors.add(self.count * LANES));
            self.count += 1;
            if self.count == LANES {
                V::sums16(vectors).store(self.to);
                self.to = self.to.add(LANES);
                self.count = 0;
            }
        }
    }

    /// Writes the predictions of the last entries.
    ///
    /// # Safety
    /// As for [`Products::push`].
    #[inline(always)]
    unsafe fn finish<V: F32x16>(self) {
        for k in 0..self.count {
            // SAFETY: vectors below `count` were pushed, and there is room for their predictions.
            unsafe {
                *self.to.add(k) = V::load(self.vectors.0.as_ptr().add(k * LANES)).sum();
            }
        }
    }
}

/// Returns the fiber row of `batch`, which is number `current` of `batches`, and prefetches that of a later one. Short runs
/// would wait for it.
#[inline(always)]
unsafe fn fiber_row(
    fiber: &ModeRows,
    batch: &FiberBatch,
    batches: &[FiberBatch],
    current: usize,
) -> *mut f32 {
    const BATCHES_AHEAD: usize = 4;
    // SAFETY: the caller guarantees that the rows of all batches exist.
    unsafe {
        if let Some(later) = batches.get(current + BATCHES_AHEAD) {
            let row = fiber.row(later.run.fiber_row);
            for k in (0..fiber.stride).step_by(LANES) {
                prefetch(row.wrapping_add(k));
            }
        }
        fiber.row(batch.run.fiber_row)
    }
}

#[inline(always)]
unsafe fn any_core_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let shape = job.shape;
        let m = job.work;
        let full = job.core_kind == Some(CoreKind::Full);
        let rows = m.add(shape.core_len());
        let work = rows.add(shape.rows_len());
        let mut to = to;
        let batch_iter = BatchIter::<0, 0>::new(job, job.non_fiber, batches, job.weighted);
        for (current, (batch, entries)) in batch_iter.enumerate() {
            let core = match job.fiber {
                None => job.core.cast_const(),
                Some(FiberMode { rows: fiber, rank }) => {
                    let u = fiber_row(&fiber, batch, batches, current);
                    if full {
                        contract::<V>(job.core, u, rank, shape.core_len() / LANES, m);
                    } else {
                        fiber_product::<V>(job, u, rank, shape.core_len() / LANES, m);
                    }
                    m.cast_const()
                }
            };
            for entry in entries {
                load_rows::<V>(job, entry, rows);
                *to = value_body::<V>(shape, core, rows, work);
                to = to.add(1);
            }
        }
    }
}

#[inline(always)]
unsafe fn diagonal_body<V: F32x16, const N: usize, const K: usize>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let RowSettings {
            non_fiber, width, ..
        } = RowSettings::<N>::new::<K>(job);
        let mut products = Products::new(to);
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            for entry in RecordIter::<N, K>::new(job, &non_fiber, batches, job.weighted) {
                products.push(diagonal_product::<V, N>(job.core, &non_fiber, entry, width));
            }
            return products.finish::<V>();
        };
        let batch_iter = BatchIter::<N, K>::new(job, &non_fiber, batches, job.weighted);
        for (current, (batch, entries)) in batch_iter.enumerate() {
            let u = fiber_row(&fiber, batch, batches, current);
            fiber_product::<V>(job, u, rank, width / LANES, job.work);
            for entry in entries {
                products.push(diagonal_product::<V, N>(job.work, &non_fiber, entry, width));
            }
        }
        products.finish::<V>();
    }
}

/// Returns the product of `m` and the rows of an entry, not yet summed over lanes.
#[inline(always)]
unsafe fn diagonal_product<V: F32x16, const N: usize>(
    m: *const f32,
    non_fiber: &[ModeRows; N],
    entry: *const u32,
    width: usize,
) -> V {
    // SAFETY: the caller guarantees that the entry names rows that exist, of `width` floats like `m`.
    unsafe {
        let mut rows = [std::ptr::null_mut::<f32>(); N];
        for n in 0..N {
            rows[n] = non_fiber[n].row(*entry.add(n));
        }
        multiway_dot::<V, N>(m, &rows, width)
    }
}

#[inline(always)]
unsafe fn order2_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let non_fiber = single_vector_modes(job);
        let [a, b] = non_fiber;
        let rank = job.shape.ranks()[0];
        let mut products = Products::new(to);
        for entry in RecordIter::<2, 1>::new(job, &non_fiber, batches, job.weighted) {
            let (v, w) = (a.row(*entry), b.row(*entry.add(1)));
            let mut sum = V::zero();
            for i in 0..rank {
                let row = V::load(job.core.add(i * LANES));
                sum = V::splat(*v.add(i)).mul_add(row, sum);
            }
            products.push(sum * V::load(w));
        }
        products.finish::<V>();
    }
}

#[inline(always)]
unsafe fn order3_body<V: F32x16, const J: usize>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return;
        };
        debug_assert_eq!(padded_len(job.shape.ranks()[1]), LANES);
        let non_fiber = single_vector_modes(job);
        let [a, b] = non_fiber;
        let m = job.work;
        for i in 0..LANES {
            V::zero().store(m.add(i * LANES));
        }
        let mut products = Products::new(to);
        let batch_iter = BatchIter::<2, 1>::new(job, &non_fiber, batches, job.weighted);
        for (current, (batch, entries)) in batch_iter.enumerate() {
            let u = fiber_row(&fiber, batch, batches, current);
            contract::<V>(job.core, u, rank, job.shape.ranks()[0], m);
            let mut mi = [V::zero(); J];
            for i in 0..J {
                mi[i] = V::load(m.add(i * LANES));
            }
            for entry in entries {
                let (v, w) = (a.row(*entry), b.row(*entry.add(1)));
                let (mut even, mut odd) = (V::zero(), V::zero());
                for i in (0..J).step_by(2) {
                    even = V::splat(*v.add(i)).mul_add(mi[i], even);
                    odd = V::splat(*v.add(i + 1)).mul_add(mi[i + 1], odd);
                }
                products.push((even + odd) * V::load(w));
            }
        }
        products.finish::<V>();
    }
}

#[inline(always)]
unsafe fn order3_long_rows_body<V: F32x16>(
    job: &BatchJob<'_>,
    batches: &[FiberBatch],
    to: *mut f32,
) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            return;
        };
        let vectors = job.shape.core_len() / LANES;
        let m = job.work;
        let contracted = m.add(job.shape.core_len());
        let mut products = Products::new(to);
        let batch_iter = BatchIter::<2, 0>::new(job, job.non_fiber, batches, job.weighted);
        for (current, (batch, mut entries)) in batch_iter.enumerate() {
            let u = fiber_row(&fiber, batch, batches, current);
            contract::<V>(job.core, u, rank, vectors, m);
            while entries.remaining() >= order3_large::GROUP {
                let mut group = [std::ptr::null(); order3_large::GROUP];
                for entry in &mut group {
                    *entry = entries.next_record();
                }
                push_group::<V, { order3_large::GROUP }>(job, m, group, contracted, &mut products);
            }
            while entries.remaining() > 0 {
                let entry = [entries.next_record()];
                push_group::<V, 1>(job, m, entry, contracted, &mut products);
            }
        }
        products.finish::<V>();
    }
}

/// Adds the products of `N` entries. `contracted` is a buffer for M contracted with the first row of each.
#[inline(always)]
unsafe fn push_group<V: F32x16, const N: usize>(
    job: &BatchJob<'_>,
    m: *const f32,
    entries: [*const u32; N],
    contracted: *mut f32,
    products: &mut Products,
) {
    let (a, b) = (job.non_fiber[0], job.non_fiber[1]);
    // SAFETY: the caller guarantees records, rows and the buffer.
    unsafe {
        let mut rows = [a.start; N];
        for n in 0..N {
            rows[n] = a.row(*entries[n]);
        }
        let vectors = b.stride / LANES;
        order3_large::products::<V, N>(m, rows, job.shape.ranks()[0], vectors, contracted);
        for n in 0..N {
            let (contracted, w) = (contracted.add(n * b.stride), b.row(*entries[n].add(1)));
            let mut product = V::zero();
            for k in (0..b.stride).step_by(LANES) {
                product = V::load(contracted.add(k)).mul_add(V::load(w.add(k)), product);
            }
            products.push(product);
        }
    }
}

#[inline(always)]
unsafe fn three_modes_body<V: F32x16>(job: &BatchJob<'_>, batches: &[FiberBatch], to: *mut f32) {
    // SAFETY: the caller guarantees the obligations of the module docs and the room at `to`.
    unsafe {
        let non_fiber = single_vector_modes(job);
        let [ma, mb, mc] = non_fiber;
        let m = job.work;
        let packed = m.add(job.shape.core_len());
        order4::clear_packed::<V>(packed);
        let mut products = Products::new(to);
        let Some(FiberMode { rows: fiber, rank }) = job.fiber else {
            order4::pack::<V>(job.shape, job.core, packed);
            for entry in RecordIter::<3, 1>::new(job, &non_fiber, batches, job.weighted) {
                let (a, b, c) = (ma.row(*entry), mb.row(*entry.add(1)), mc.row(*entry.add(2)));
                products.push(order4::product::<V>(packed, a, b, c));
            }
            return products.finish::<V>();
        };
        let batch_iter = BatchIter::<3, 1>::new(job, &non_fiber, batches, job.weighted);
        for (current, (batch, entries)) in batch_iter.enumerate() {
            let u = fiber_row(&fiber, batch, batches, current);
            contract::<V>(job.core, u, rank, job.shape.core_len() / LANES, m);
            order4::pack::<V>(job.shape, m, packed);
            for entry in entries {
                let (a, b, c) = (ma.row(*entry), mb.row(*entry.add(1)), mc.row(*entry.add(2)));
                products.push(order4::product::<V>(packed, a, b, c));
            }
        }
        products.finish::<V>();
    }
}
