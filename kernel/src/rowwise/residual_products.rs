//! Sums of residuals times partial derivatives over the entries of a row: the gradient of squared errors by that row.
//!
//! With d the partial derivative of the model's value by the row u ([`Partials`]), r the value of an entry less its biases and
//! w its weight, the squared errors sum w (r - d . u)^2 / 2 have the gradient - sum w (r - d . u) d. Products are summed in `f32`
//! over a batch of entries, which stays in the L1 cache, and in `f64` beyond.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::entries::by_row::ModeCsr;
use crate::error::Result;
use crate::progress::StopFlag;
use crate::rowwise::normal_equations::BiasedRow;
use crate::rowwise::partials::{
    BATCH_ENTRIES, OtherMode, Partials, PartialsScratch, fill, fill_residuals,
};
use crate::simd::{F32x16, LANES, dispatched, padded_len, prefetch};

/// Fewest remaining entries whose values are summed 16 at a time.
const MIN_GROUP: usize = 6;

impl Partials<'_> {
    /// Adds the sum of w e d over `entries`, all of one row, to `sums`, and returns the sum of w e^2, where e = r - bias - d . u
    /// is the residual. The sums are incomplete if `stop` is requested.
    ///
    /// # Panics
    /// If row and sums are not as long as a padded row.
    pub fn add_residual_products(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        row: BiasedRow<'_>,
        scratch: &mut PartialsScratch,
        sums: &mut [f64],
        stop: &StopFlag,
    ) -> Result<f64> {
        assert_eq!(row.row.len(), padded_len(self.rank));
        self.add_products(csr, entries, Some(row), scratch, sums, stop)
    }

    /// Adds the sum of w r d over `entries`, all of one row, to `sums`. The sums are incomplete if `stop` is requested.
    ///
    /// # Panics
    /// If the sums are not as long as a padded row.
    pub fn add_value_products(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        scratch: &mut PartialsScratch,
        sums: &mut [f64],
        stop: &StopFlag,
    ) -> Result<()> {
        self.add_products(csr, entries, None, scratch, sums, stop)?;
        Ok(())
    }

    fn add_products(
        &self,
        csr: &ModeCsr,
        entries: Range<usize>,
        row: Option<BiasedRow<'_>>,
        scratch: &mut PartialsScratch,
        sums: &mut [f64],
        stop: &StopFlag,
    ) -> Result<f64> {
        self.check(csr);
        assert_eq!(sums.len(), padded_len(self.rank));
        scratch.reserve(self)?;
        let mut squares = 0.0;
        for part in self.parts_between_polls(entries) {
            if stop.requested() {
                break;
            }
            let (records, weights) = (csr.records(part.clone()), csr.weights(part));
            // SAFETY: every row index of `csr` has a row, the core, the scratch buffers, the row and the sums are as long as the
            // ranks require; there are as many weights as entries, or none; the level is available.
            squares += unsafe {
                add_products(
                    self.level,
                    self,
                    records,
                    weights,
                    row.as_ref(),
                    scratch,
                    sums,
                )
            };
        }
        Ok(squares)
    }
}

dispatched! {
    unsafe fn add_products(partials: &Partials<'_>, records: &[u32], weights: &[f32], row: Option<&BiasedRow<'_>>, scratch: &mut PartialsScratch, sums: &mut [f64]) -> f64 = any_add_products;
}

#[inline(always)]
unsafe fn any_add_products<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    weights: &[f32],
    row: Option<&BiasedRow<'_>>,
    scratch: &mut PartialsScratch,
    sums: &mut [f64],
) -> f64 {
    // SAFETY: the caller's obligations.
    unsafe {
        match (&partials.others[..], sums.len() / LANES) {
            _ if partials.core.is_some() => {
                add_batches::<V>(partials, records, weights, row, scratch, sums)
            }
            (&[a], 1) => add_groups::<V, 1, 1>(&[a], records, weights, row, sums),
            (&[a], 2) => add_groups::<V, 1, 2>(&[a], records, weights, row, sums),
            (&[a, b], 1) => add_groups::<V, 2, 1>(&[a, b], records, weights, row, sums),
            (&[a, b], 2) => add_groups::<V, 2, 2>(&[a, b], records, weights, row, sums),
            (&[a, b, c], 1) => add_groups::<V, 3, 1>(&[a, b, c], records, weights, row, sums),
            _ => add_batches::<V>(partials, records, weights, row, scratch, sums),
        }
    }
}

/// The products of a hyper-diagonal core for `N` other modes and rows of `L` vectors. The derivatives of 16 entries stay in
/// registers or in the L1 cache.
#[inline(always)]
unsafe fn add_groups<V: F32x16, const N: usize, const L: usize>(
    others: &[OtherMode<'_>; N],
    records: &[u32],
    weights: &[f32],
    row: Option<&BiasedRow<'_>>,
    sums: &mut [f64],
) -> f64 {
    let count = records.len() / (N + 1);
    let has_biases = others.iter().any(|other| !other.biases.is_empty());
    let mut squares = [0.0f64; LANES];
    let mut products = [0.0f32; LANES * LANES];
    let mut derivatives = [[V::zero(); L]; LANES];
    // SAFETY: the caller's obligations; groups have at most 16 entries.
    unsafe {
        let row_start = |entry: usize, n: usize| {
            let row = *records.as_ptr().add(entry * (N + 1) + n) as usize;
            others[n].rows.as_ptr().add(row * L * LANES)
        };
        let mut u = [V::zero(); L];
        if let Some(row) = row {
            for l in 0..L {
                u[l] = V::load(row.row.as_ptr().add(l * LANES));
            }
        }
        for batch in (0..count).step_by(BATCH_ENTRIES) {
            let mut totals = [[V::zero(); L]; 2];
            let end = (batch + BATCH_ENTRIES).min(count);
            for first in (batch..end).step_by(LANES) {
                let len = LANES.min(end - first);
                let mut residuals = [0.0f32; LANES];
                for k in 0..len {
                    let entry = first + k;
                    if entry + LANES < count {
                        let ahead = row_start(entry + LANES, N - 1);
                        for l in 0..L {
                            prefetch(ahead.add(l * LANES));
                        }
                    }
                    let mut product = V::zero();
                    for l in 0..L {
                        let mut d = V::load(row_start(entry, 0).add(l * LANES));
                        for n in 1..N {
                            d = d * V::load(row_start(entry, n).add(l * LANES));
                        }
                        derivatives[k][l] = d;
                        product = d.mul_add(u[l], product);
                    }
                    if row.is_some() {
                        product.store(products.as_mut_ptr().add(k * LANES));
                    }
                    let record = records.as_ptr().add(entry * (N + 1));
                    residuals[k] = f32::from_bits(*record.add(N));
                    if has_biases {
                        residuals[k] -= other_biases(others, record);
                    }
                }
                if let Some(row) = row {
                    subtract_products::<V>(&products, row.bias, &mut residuals, len);
                }
                let mut factors = residuals;
                if !weights.is_empty() {
                    let weights = &weights[first..first + len];
                    factors.iter_mut().zip(weights).for_each(|(f, w)| *f *= w);
                }
                for k in 0..LANES {
                    squares[k] += f64::from(residuals[k]) * f64::from(factors[k]);
                }
                for k in 0..len {
                    let factor = V::splat(factors[k]);
                    for l in 0..L {
                        totals[k % 2][l] = derivatives[k][l].mul_add(factor, totals[k % 2][l]);
                    }
                }
            }
            for l in 0..L {
                add_vector(totals[0][l] + totals[1][l], &mut sums[l * LANES..]);
            }
        }
    }
    squares.iter().sum()
}

/// Returns the biases of an entry in the other modes.
///
/// # Safety
/// Modes with biases must have one for every row in the record.
#[inline(always)]
unsafe fn other_biases<const N: usize>(others: &[OtherMode<'_>; N], record: *const u32) -> f32 {
    let mut sum = 0.0;
    for (n, other) in others.iter().enumerate() {
        if !other.biases.is_empty() {
            // SAFETY: the caller's obligations.
            sum += unsafe { *other.biases.get_unchecked(*record.add(n) as usize) };
        }
    }
    sum
}

/// Subtracts the bias and the sums of the first `len` vectors of products from the residuals, whose other elements stay 0.
///
/// # Safety
/// The machine must have the instruction set.
#[inline(always)]
unsafe fn subtract_products<V: F32x16>(
    products: &[f32; LANES * LANES],
    bias: f32,
    residuals: &mut [f32; LANES],
    len: usize,
) {
    // SAFETY: there are 16 vectors of products and 16 residuals.
    unsafe {
        if len < MIN_GROUP {
            for k in 0..len {
                residuals[k] -= bias + V::load(products.as_ptr().add(k * LANES)).sum();
            }
            return;
        }
        let values = V::splat(bias) + V::sums16(products.as_ptr());
        (V::load(residuals.as_ptr()) - values).store(residuals.as_mut_ptr());
        residuals[len..].fill(0.0);
    }
}

/// The products of any core, order and rank, with the derivatives of a batch in `scratch`.
#[inline(always)]
unsafe fn add_batches<V: F32x16>(
    partials: &Partials<'_>,
    records: &[u32],
    weights: &[f32],
    row: Option<&BiasedRow<'_>>,
    scratch: &mut PartialsScratch,
    sums: &mut [f64],
) -> f64 {
    let width = partials.others.len() + 1;
    let mut cached = std::mem::take(&mut scratch.contracted);
    let mut squares = [0.0f64; LANES];
    for (number, batch) in records.chunks(BATCH_ENTRIES * width).enumerate() {
        let count = batch.len() / width;
        // SAFETY: the caller's obligations; a batch fits into the scratch buffers.
        unsafe {
            fill::<V>(partials, batch, scratch, &mut cached);
            fill_residuals(partials, batch, scratch);
            if let Some(row) = row {
                subtract_values::<V>(row, count, scratch);
            }
        }
        let factors = &mut scratch.residuals[..count];
        if weights.is_empty() {
            for (k, &e) in factors.iter().enumerate() {
                squares[k % LANES] += f64::from(e) * f64::from(e);
            }
        } else {
            let weights = &weights[number * BATCH_ENTRIES..][..count];
            for (k, (e, &w)) in factors.iter_mut().zip(weights).enumerate() {
                squares[k % LANES] += f64::from(*e) * f64::from(*e * w);
                *e *= w;
            }
        }
        let (d, vectors) = (scratch.partials.as_ptr(), sums.len() / LANES);
        for line in 0..vectors {
            // SAFETY: the caller's obligations.
            unsafe {
                let mut total = V::zero();
                for (k, &factor) in factors.iter().enumerate() {
                    let d = V::load(d.add((k * vectors + line) * LANES));
                    total = d.mul_add(V::splat(factor), total);
                }
                add_vector(total, &mut sums[line * LANES..]);
            }
        }
    }
    scratch.contracted = cached;
    squares.iter().sum()
}

/// Subtracts the bias of the row and d . u from the residuals of a batch.
#[inline(always)]
unsafe fn subtract_values<V: F32x16>(
    row: &BiasedRow<'_>,
    count: usize,
    scratch: &mut PartialsScratch,
) {
    let (d, width) = (scratch.partials.as_ptr(), row.row.len());
    let mut products = [0.0f32; LANES * LANES];
    for (group, residuals) in scratch.residuals[..count].chunks_mut(LANES).enumerate() {
        let len = residuals.len();
        let mut padded = [0.0; LANES];
        padded[..len].copy_from_slice(residuals);
        // SAFETY: the caller's obligations.
        unsafe {
            for k in 0..len {
                let d = d.add((group * LANES + k) * width);
                let mut product = V::zero();
                for at in (0..width).step_by(LANES) {
                    let u = V::load(row.row.as_ptr().add(at));
                    product = V::load(d.add(at)).mul_add(u, product);
                }
                product.store(products.as_mut_ptr().add(k * LANES));
            }
            subtract_products::<V>(&products, row.bias, &mut padded, len);
        }
        residuals.copy_from_slice(&padded[..len]);
    }
}

/// Adds a vector to the first 16 of `sums`.
///
/// # Safety
/// The machine must have the instruction set.
#[inline(always)]
unsafe fn add_vector<V: F32x16>(vector: V, sums: &mut [f64]) {
    let mut elements = [0.0f32; LANES];
    // SAFETY: there are 16 elements.
    unsafe { vector.store(elements.as_mut_ptr()) };
    for (sum, &x) in sums.iter_mut().zip(&elements) {
        *sum += f64::from(x);
    }
}
