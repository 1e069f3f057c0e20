//! The normal equations of the rows of one mode, accumulated over entries with SIMD.
//!
//! Given all other parameters, the model's value at an entry is linear in the entry's row u of mode n:
//! x^ = biases + d . u, where d = G x_{-n} {u} is the partial derivative of the value by the row
//! (the elementwise product of the other rows for a hyper-diagonal core). With r the value less the
//! biases of the other modes and w the entry's weight, the least-squares problem of the row needs
//!
//! ```text
//! sum w d d^T,   sum w d r,   sum w d,   sum w r,   sum w
//! ```
//!
//! [`Partials`] computes d for a batch of entries at a time, which stays in the L1 cache. The outer
//! products are then summed in registers, one tile of 4 to 16 rows by one vector after the other.
//!
//! # Safety
//! The safe functions at the top check lengths; [`ModeCsr::new`] has checked row indices.
#![allow(unsafe_code)]

use std::ops::Range;

use super::partials::{BATCH_ENTRIES, Partials, PartialsScratch, fill, fill_residuals};
use crate::entries::by_row::ModeCsr;
use crate::error::Result;
use crate::progress::{StopFlag, count_operations, steps_per_poll};
use crate::simd::{AlignedVec, LANES, Level, padded_len};
use crate::simd::{F32x16, dispatched};

/// Sums over the entries of a row that make up its normal equations.
pub struct NormalEquations {
    rank: usize,
    /// Sum of w d d^T. Of each row, the vectors from the one with the diagonal on are valid.
    gram: AlignedVec,
    /// Sum of w d r.
    rhs: AlignedVec,
    /// Sum of w d.
    partial_sum: AlignedVec,
    /// Sum of w r.
    pub residual_sum: f64,
    /// Number of entries.
    pub entry_count: usize,
    /// Sum of w.
    pub weight_sum: f64,
}

impl NormalEquations {
    /// Makes normal equations of a row of `rank` columns, all zero.
    pub fn new(rank: usize) -> Result<NormalEquations> {
        let width = padded_len(rank);
        let zeroed = |len: usize| AlignedVec::try_zeroed(len, "elements of normal equations");
        Ok(NormalEquations {
            rank,
            gram: zeroed(rank.next_multiple_of(4) * width)?,
            rhs: zeroed(width)?,
            partial_sum: zeroed(width)?,
            residual_sum: 0.0,
            entry_count: 0,
            weight_sum: 0.0,
        })
    }

    /// Sets all sums to zero.
    pub fn clear(&mut self) {
        self.gram.fill(0.0);
        self.rhs.fill(0.0);
        self.partial_sum.fill(0.0);
        (self.residual_sum, self.entry_count, self.weight_sum) = (0.0, 0, 0.0);
    }

    /// Row `i` of the sum of w d d^T, from the diagonal on.
    #[inline]
    pub fn gram_row(&self, i: usize) -> &[f32] {
        &self.gram[i * padded_len(self.rank)..][i..self.rank]
    }

    /// Adds the upper triangle of `weight` times the sum of w d d^T to a matrix whose rows have `width` floats, a multiple of
    /// the vector length. Elements below the diagonal get arbitrary values.
    ///
    /// # Panics
    /// If the matrix is smaller, or the machine does not have the level.
    pub fn add_weighted_gram(&self, level: Level, weight: f32, to: &mut [f32], width: usize) {
        assert!(level.is_available() && width >= padded_len(self.rank));
        assert!(to.len() >= self.rank * width && width.is_multiple_of(LANES));
        // SAFETY: the lengths were checked, the level is available.
        unsafe { add_weighted_gram(level, self, weight, to.as_mut_ptr(), width) }
    }

    /// The sum of w d r.
    #[inline]
    pub fn rhs(&self) -> &[f32] {
        &self.rhs[..self.rank]
    }

    /// The sum of w d.
    #[inline]
    pub fn partial_sum(&self) -> &[f32] {
        &self.partial_sum[..self.rank]
    }

    /// Adds the sums over other entries of the same row.
    pub fn add(&mut self, other: &NormalEquations) {
        let pairs = [
            (&mut self.gram, &other.gram),
            (&mut self.rhs, &other.rhs),
            (&mut self.partial_sum, &other.partial_sum),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from.iter()).for_each(|(t, f)| *t += f);
        }
        self.residual_sum += other.residual_sum;
        self.entry_count += other.entry_count;
        self.weight_sum += other.weight_sum;
    }
}

/// A row of the updated mode and its bias.
pub struct BiasedRow<'a> {
    /// The row, padded.
    pub row: &'a [f32],
    /// The bias.
    pub bias: f32,
}

impl Partials<'_> {
    /// Adds the sums over `entries` to `equations`. The sums are incomplete if `stop` is requested.
    pub fn accumulate(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        scratch: &mut PartialsScratch,
        equations: &mut NormalEquations,
        stop: &StopFlag,
    ) -> Result<()> {
        self.accumulate_terms(csr, entries, None, scratch, equations, stop)
    }

    /// Adds the sums over `entries` to `equations`, except for that of w r, with the elements of `residuals`, one per entry,
    /// as r. The sums are incomplete if `stop` is requested.
    pub fn accumulate_residuals(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        residuals: &[f32],
        scratch: &mut PartialsScratch,
        equations: &mut NormalEquations,
        stop: &StopFlag,
    ) -> Result<()> {
        assert_eq!(residuals.len(), entries.len());
        self.accumulate_terms(csr, entries, Some(residuals), scratch, equations, stop)
    }

    fn accumulate_terms(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        residuals: Option<&[f32]>,
        scratch: &mut PartialsScratch,
        equations: &mut NormalEquations,
        stop: &StopFlag,
    ) -> Result<()> {
        self.check(csr);
        assert_eq!(equations.rank, self.rank);
        scratch.reserve(self)?;
        let weights = csr.weights(entries.clone());
        if scratch.weighted.len() < scratch.partials.len() && !weights.is_empty() {
            scratch.weighted =
                AlignedVec::try_zeroed(scratch.partials.len(), "partial derivatives")?;
        }
        for part in self.parts_between_polls(entries.clone()) {
            if stop.requested() {
                break;
            }
            let of_part = part.start - entries.start..part.end - entries.start;
            // SAFETY: every row index of `csr` has a row, the core, the scratch buffers and `equations`
            // are as long as the ranks require; there are as many weights as entries, or none; the level
            // is available.
            unsafe {
                accumulate(
                    self.level,
                    self,
                    csr.records(part.clone()),
                    csr.weights(part),
                    residuals.map(|r| &r[of_part]),
                    scratch,
                    equations,
                )
            }
        }
        equations.entry_count += entries.len();
        equations.weight_sum += if weights.is_empty() {
            entries.len() as f64
        } else {
            weights.iter().map(|&w| f64::from(w)).sum()
        };
        Ok(())
    }

    /// Adds the sum of d r over `entries` of an unweighted matrix to the right-hand side alone.
    pub fn accumulate_rhs(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        equations: &mut NormalEquations,
    ) {
        self.check(csr);
        assert_eq!((equations.rank, self.others.len()), (self.rank, 1));
        equations.entry_count += entries.len();
        for entry in entries {
            let row = csr.other_rows(entry)[0] as usize * padded_len(self.rank);
            let row = &self.others[0].rows[row..][..self.rank];
            let value = csr.value(entry);
            equations
                .rhs
                .iter_mut()
                .zip(row)
                .for_each(|(r, d)| *r += value * d);
        }
    }

    /// Writes the residual r - bias - d . row of each of `entries`, all of one row, to `out`. After a request of `stop`
    /// the remaining elements of `out` are left unchanged.
    pub fn residuals(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        row: BiasedRow<'_>,
        scratch: &mut PartialsScratch,
        out: &mut [f32],
        stop: &StopFlag,
    ) -> Result<()> {
        self.check(csr);
        let BiasedRow { row, bias } = row;
        assert_eq!(
            (row.len(), out.len()),
            (padded_len(self.rank), entries.len())
        );
        scratch.reserve(self)?;
        let first = entries.start;
        for part in self.parts_between_polls(entries) {
            if stop.requested() {
                break;
            }
            let out = &mut out[part.start - first..part.end - first];
            // SAFETY: as in `accumulate`; the row is padded, and `out` has one element per entry.
            unsafe { residuals(self.level, self, csr.records(part), row, bias, scratch, out) }
        }
        Ok(())
    }

    /// Divides a range of entries into parts short enough to poll for a cancellation between them. Parts of several batches
    /// are whole batches.
    pub(crate) fn parts_between_polls(
        &self,
        entries: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let cost = self.operations_per_entry();
        let len = match steps_per_poll(cost) {
            few @ ..BATCH_ENTRIES => few,
            many => many / BATCH_ENTRIES * BATCH_ENTRIES,
        };
        let end = entries.end;
        entries.step_by(len).map(move |start| {
            let part = start..(start + len).min(end);
            count_operations(part.len() * cost);
            part
        })
    }
}

dispatched! {
    unsafe fn accumulate(partials: &Partials<'_>, records: &[u32], weights: &[f32], residuals: Option<&[f32]>, scratch: &mut PartialsScratch, equations: &mut NormalEquations) = any_accumulate;
}

dispatched! {
    unsafe fn residuals(partials: &Partials<'_>, records: &[u32], row: &[f32], bias: f32, scratch: &mut PartialsScratch, out: &mut [f32]) = any_residuals;
}

dispatched! {
    unsafe fn add_weighted_gram(equations: &NormalEquations, weight: f32, to: *mut f32, width: usize) = any_add_weighted_gram;
}

#[inline(always)]
unsafe fn any_add_weighted_gram<V: F32x16>(
    equations: &NormalEquations,
    weight: f32,
    to: *mut f32,
    width: usize,
) {
    let (rank, weight) = (equations.rank, V::splat(weight));
    let stride = padded_len(rank);
    // SAFETY: the caller's obligations.
    unsafe {
        for i in 0..rank {
            let (from, to) = (equations.gram.as_ptr().add(i * stride), to.add(i * width));
            for at in (i / LANES * LANES..stride).step_by(LANES) {
                let sum = V::load(to.add(at)) + weight * V::load(from.add(at));
                sum.store(to.add(at));
            }
        }
    }
}

#[inline(always)]
unsafe fn any_accumulate<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    weights: &[f32],
    residuals: Option<&[f32]>,
    scratch: &mut PartialsScratch,
    equations: &mut NormalEquations,
) {
    let width = partials.others.len() + 1;
    let mut cached = std::mem::take(&mut scratch.contracted);
    for (number, batch) in records.chunks(BATCH_ENTRIES * width).enumerate() {
        let count = batch.len() / width;
        let weights = if weights.is_empty() {
            weights
        } else {
            &weights[number * BATCH_ENTRIES..][..count]
        };
        // SAFETY: the caller's obligations; a batch fits into the scratch buffers.
        unsafe {
            fill::<V>(partials, batch, scratch, &mut cached);
            match residuals {
                None => fill_residuals(partials, batch, scratch),
                Some(residuals) => {
                    let of_batch = &residuals[number * BATCH_ENTRIES..][..count];
                    scratch.residuals[..count].copy_from_slice(of_batch);
                }
            }
            let (d, lines) = (scratch.partials.as_ptr(), padded_len(partials.rank) / LANES);
            // Every sum contains the weight once.
            let weighted = if weights.is_empty() {
                d
            } else {
                let to = scratch.weighted.as_mut_ptr();
                for (k, &w) in weights.iter().enumerate() {
                    for at in (k * lines..(k + 1) * lines).map(|line| line * LANES) {
                        (V::load(d.add(at)) * V::splat(w)).store(to.add(at));
                    }
                }
                to.cast_const()
            };
            let stride = lines * LANES;
            let gram = equations.gram.as_mut_ptr();
            let mut i = 0;
            while i < partials.rank {
                for line in i / LANES..lines {
                    let (left, right) = (weighted.add(i), d.add(line * LANES));
                    let to = gram.add((i * lines + line) * LANES);
                    if V::VECTOR_REGISTERS >= 32 && i + 16 <= partials.rank {
                        tile::<V, 16>(left, right, stride, count, to);
                    } else if V::VECTOR_REGISTERS >= 32 && i + 8 <= partials.rank {
                        tile::<V, 8>(left, right, stride, count, to);
                    } else {
                        tile::<V, 4>(left, right, stride, count, to);
                    }
                }
                i += match partials.rank - i {
                    16.. if V::VECTOR_REGISTERS >= 32 => 16,
                    8.. if V::VECTOR_REGISTERS >= 32 => 8,
                    _ => 4,
                };
            }
            for line in 0..lines {
                let rhs = equations.rhs.as_mut_ptr().add(line * LANES);
                let partial_sum = equations.partial_sum.as_mut_ptr().add(line * LANES);
                let (mut q, mut s) = (V::load(rhs), V::load(partial_sum));
                for (k, &r) in scratch.residuals[..count].iter().enumerate() {
                    let x = V::load(weighted.add((k * lines + line) * LANES));
                    q = x.mul_add(V::splat(r), q);
                    s = s + x;
                }
                q.store(rhs);
                s.store(partial_sum);
            }
        }
        if residuals.is_some() {
            continue;
        }
        let residuals = scratch.residuals[..count].iter().map(|&r| f64::from(r));
        equations.residual_sum += if weights.is_empty() {
            residuals.sum::<f64>()
        } else {
            let weighted = residuals.zip(weights).map(|(r, &w)| f64::from(w) * r);
            weighted.sum()
        };
    }
    scratch.contracted = cached;
}

/// Adds the outer products of `R` elements of `left` and one vector of `right` over `count` entries to a
/// tile of `R` vectors. `stride` is the number of floats per entry, and per row of the tile.
///
/// # Safety
/// `left`, `right` and `to` must be valid for these extents.
#[inline(always)]
unsafe fn tile<V: F32x16, const R: usize>(
    left: *const f32,
    right: *const f32,
    stride: usize,
    count: usize,
    to: *mut f32,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        let mut sums = [V::zero(); R];
        for i in 0..R {
            sums[i] = V::load(to.add(i * stride));
        }
        for k in 0..count {
            let (left, x) = (left.add(k * stride), V::load(right.add(k * stride)));
            for i in 0..R {
                sums[i] = x.mul_add(V::splat(*left.add(i)), sums[i]);
            }
        }
        for i in 0..R {
            sums[i].store(to.add(i * stride));
        }
    }
}

#[inline(always)]
unsafe fn any_residuals<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    row: &[f32],
    bias: f32,
    scratch: &mut PartialsScratch,
    out: &mut [f32],
) {
    let width = partials.others.len() + 1;
    let lines = row.len() / LANES;
    let mut cached = std::mem::take(&mut scratch.contracted);
    for (batch, out) in records
        .chunks(BATCH_ENTRIES * width)
        .zip(out.chunks_mut(BATCH_ENTRIES))
    {
        // SAFETY: the caller's obligations; a batch fits into the scratch buffers.
        unsafe {
            fill::<V>(partials, batch, scratch, &mut cached);
            fill_residuals(partials, batch, scratch);
            let d = scratch.partials.as_ptr();
            for (k, e) in out.iter_mut().enumerate() {
                let mut sum = V::zero();
                for line in 0..lines {
                    let x = V::load(d.add((k * lines + line) * LANES));
                    sum = x.mul_add(V::load(row.as_ptr().add(line * LANES)), sum);
                }
                *e = scratch.residuals[k] - bias - sum.sum();
            }
        }
    }
    scratch.contracted = cached;
}
