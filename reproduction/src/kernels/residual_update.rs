//! Residuals of the entries of a CP model when a block of columns takes the place of another.
#![allow(unsafe_code)]

use std::ops::Range;

use super::packed_columns::{PackedColumns, row};
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::progress::{StopFlag, count_operations, steps_per_poll};
use s3cmtf_kernel::simd::{F32x16, LANES, Level, dispatched};

/// The part of the model's value that a block of columns has at entries.
#[derive(Clone)]
pub struct BlockValue<'a> {
    /// The columns of the other modes.
    pub columns: PackedColumns<'a>,
    /// The columns of the mode that entries are grouped by, one row after the other.
    pub own: &'a [f32],
}

impl BlockValue<'_> {
    /// Checks that there is a row for every index in `csr`.
    ///
    /// # Panics
    /// If there is not.
    fn check(&self, csr: &ModeCsr) {
        self.columns.check(csr);
        assert!(self.own.len() >= csr.row_count() * self.columns.width);
    }
}

/// Subtracts the values of block `from` from the residuals of `entries` and adds those of block `to`. After a request of
/// `stop` the remaining residuals are left unchanged.
///
/// # Panics
/// If a block has too few rows, their widths differ, or there is not one residual per entry.
pub fn exchange_values(
    csr: &ModeCsr,
    entries: Range<usize>,
    from: &BlockValue<'_>,
    to: &BlockValue<'_>,
    level: Level,
    residuals: &mut [f32],
    stop: &StopFlag,
) {
    to.check(csr);
    assert_eq!(from.columns.width, to.columns.width);
    let change = Change::Exchange(to);
    update_values(csr, entries, from, change, level, residuals, stop);
}

/// Subtracts the values of a block from the residuals of `entries`, without its columns `excluded`. After a request of `stop` the
/// remaining residuals are left unchanged.
///
/// # Panics
/// If the block is narrow or has too few rows, or there is not one residual per entry.
pub fn subtract_values(
    csr: &ModeCsr,
    entries: Range<usize>,
    block: &BlockValue<'_>,
    excluded: Range<usize>,
    level: Level,
    residuals: &mut [f32],
    stop: &StopFlag,
) {
    assert!(!block.columns.is_narrow());
    let mut mask = vec![1.0; block.columns.width];
    mask[excluded].fill(0.0);
    let change = Change::Subtract(&mask);
    update_values(csr, entries, block, change, level, residuals, stop);
}

/// What happens to residuals besides the subtraction of the values of a block.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// The values of another block of the same width are added.
    Exchange(&'a BlockValue<'a>),
    /// Each column of the subtracted block is multiplied by a number, and nothing is added.
    Subtract(&'a [f32]),
}

fn update_values(
    csr: &ModeCsr,
    entries: Range<usize>,
    block: &BlockValue<'_>,
    change: Change<'_>,
    level: Level,
    residuals: &mut [f32],
    stop: &StopFlag,
) {
    block.check(csr);
    assert!(level.is_available() && residuals.len() == entries.len());
    let cost = 2 * (block.columns.others.len() + 1) * block.columns.width;
    let (first, end, len) = (entries.start, entries.end, steps_per_poll(cost));
    for start in entries.step_by(len) {
        if stop.requested() {
            return;
        }
        let part = start..(start + len).min(end);
        count_operations(part.len() * cost);
        let residuals = &mut residuals[part.start - first..part.end - first];
        // SAFETY: every row index of `csr` has a row in the blocks, whose widths agree; the mask has that width, which is whole
        // vectors; there is one residual per entry, and the level is available.
        unsafe { update(level, csr, part, block, change, residuals) }
    }
}

dispatched! {
    unsafe fn update(csr: &ModeCsr, entries: Range<usize>, block: &BlockValue<'_>, change: Change<'_>, residuals: &mut [f32]) = any_update;
}

#[inline(always)]
unsafe fn any_update<V: F32x16>(
    csr: &ModeCsr,
    entries: Range<usize>,
    block: &BlockValue<'_>,
    change: Change<'_>,
    residuals: &mut [f32],
) {
    let mut rest = residuals;
    let mut at = entries.start;
    let mut row = if at < entries.end { csr.row_of(at) } else { 0 };
    while at < entries.end {
        let end = csr.row_entries(row).end.min(entries.end);
        let of_row;
        (of_row, rest) = rest.split_at_mut(end - at);
        let records = csr.records(at..end);
        // SAFETY: the caller's obligations.
        unsafe {
            match (block.columns.width, change) {
                (1, Change::Exchange(to)) => narrow::<1>(block, to, row, records, of_row),
                (2, Change::Exchange(to)) => narrow::<2>(block, to, row, records, of_row),
                (4, Change::Exchange(to)) => narrow::<4>(block, to, row, records, of_row),
                (8, Change::Exchange(to)) => narrow::<8>(block, to, row, records, of_row),
                _ => wide::<V>(block, change, row, records, of_row),
            }
        }
        (at, row) = (end, row + 1);
    }
}

/// The update of the entries of row `index` by narrow blocks.
#[inline(always)]
unsafe fn narrow<const W: usize>(
    from: &BlockValue<'_>,
    to: &BlockValue<'_>,
    index: usize,
    records: &[u32],
    residuals: &mut [f32],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match (&from.columns.others[..], &to.columns.others[..]) {
            (&[a], &[b]) => narrow_order::<W, 1>(from, to, &[a], &[b], index, records, residuals),
            (&[a, b], &[c, d]) => {
                narrow_order::<W, 2>(from, to, &[a, b], &[c, d], index, records, residuals);
            }
            (&[a, b, c], &[d, e, f]) => {
                let (old, new) = (&[a, b, c], &[d, e, f]);
                narrow_order::<W, 3>(from, to, old, new, index, records, residuals);
            }
            (old, new) => narrow_any::<W>(from, to, old, new, index, records, residuals),
        }
    }
}

/// The update for `N` other modes.
#[inline(always)]
unsafe fn narrow_order<const W: usize, const N: usize>(
    from: &BlockValue<'_>,
    to: &BlockValue<'_>,
    old: &[&[f32]; N],
    new: &[&[f32]; N],
    index: usize,
    records: &[u32],
    residuals: &mut [f32],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        let own = [row::<W>(from.own, index), row::<W>(to.own, index)];
        for (k, residual) in residuals.iter_mut().enumerate() {
            let record = records.as_ptr().add(k * (N + 1));
            let mut products = own;
            for n in 0..N {
                let at = *record.add(n) as usize;
                let rows = [row::<W>(old[n], at), row::<W>(new[n], at)];
                for j in 0..W {
                    products[0][j] *= rows[0][j];
                    products[1][j] *= rows[1][j];
                }
            }
            *residual -= difference(products);
        }
    }
}

/// The update for any number of other modes.
#[inline(always)]
unsafe fn narrow_any<const W: usize>(
    from: &BlockValue<'_>,
    to: &BlockValue<'_>,
    old: &[&[f32]],
    new: &[&[f32]],
    index: usize,
    records: &[u32],
    residuals: &mut [f32],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        let own = [row::<W>(from.own, index), row::<W>(to.own, index)];
        let records = records.chunks_exact(old.len() + 1);
        for (residual, record) in residuals.iter_mut().zip(records) {
            let mut products = own;
            for ((old, new), &at) in old.iter().zip(new).zip(record) {
                let rows = [row::<W>(old, at as usize), row::<W>(new, at as usize)];
                for j in 0..W {
                    products[0][j] *= rows[0][j];
                    products[1][j] *= rows[1][j];
                }
            }
            *residual -= difference(products);
        }
    }
}

/// Returns the sum of the first row less that of the second.
#[inline(always)]
fn difference<const W: usize>([a, b]: [[f32; W]; 2]) -> f32 {
    let mut differences = [0.0f32; W];
    for j in 0..W {
        differences[j] = a[j] - b[j];
    }
    let mut half = W / 2;
    while half > 0 {
        for j in 0..half {
            differences[j] += differences[j + half];
        }
        half /= 2;
    }
    differences[0]
}

/// The update of the entries of row `index` by blocks of whole vectors.
#[inline(always)]
unsafe fn wide<V: F32x16>(
    block: &BlockValue<'_>,
    change: Change<'_>,
    index: usize,
    records: &[u32],
    residuals: &mut [f32],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match block.columns.others.len() {
            1 => wide_order::<V, 1>(block, change, index, records, residuals),
            2 => wide_order::<V, 2>(block, change, index, records, residuals),
            3 => wide_order::<V, 3>(block, change, index, records, residuals),
            _ => wide_order::<V, 0>(block, change, index, records, residuals),
        }
    }
}

/// The update for `N` other modes, or for any number if `N` is 0.
#[inline(always)]
unsafe fn wide_order<V: F32x16, const N: usize>(
    block: &BlockValue<'_>,
    change: Change<'_>,
    index: usize,
    records: &[u32],
    residuals: &mut [f32],
) {
    let order = match N {
        0 => block.columns.others.len(),
        _ => N,
    };
    let mut changes = [0.0f32; LANES * LANES];
    let whole = residuals.len() / LANES * LANES;
    let (groups, rest) = residuals.split_at_mut(whole);
    // SAFETY: the caller's obligations; `changes` holds 16 vectors.
    unsafe {
        let mut entry = records.as_ptr();
        for group in groups.chunks_exact_mut(LANES) {
            for k in 0..LANES {
                let change = value_change::<V>(block, change, index, entry, order);
                change.store(changes.as_mut_ptr().add(k * LANES));
                entry = entry.add(order + 1);
            }
            let sums = V::sums16(changes.as_ptr());
            (V::load(group.as_ptr()) - sums).store(group.as_mut_ptr());
        }
        for residual in rest {
            *residual -= value_change::<V>(block, change, index, entry, order).sum();
            entry = entry.add(order + 1);
        }
    }
}

/// Returns a vector whose lanes add up to what is subtracted from the residual of an entry of row `index`.
#[inline(always)]
unsafe fn value_change<V: F32x16>(
    block: &BlockValue<'_>,
    change: Change<'_>,
    index: usize,
    entry: *const u32,
    order: usize,
) -> V {
    // SAFETY: the caller's obligations.
    unsafe {
        match change {
            Change::Exchange(to) => {
                let old = block_value::<V, false>(block, index, entry, order, &[]);
                old - block_value::<V, false>(to, index, entry, order, &[])
            }
            Change::Subtract(mask) => block_value::<V, true>(block, index, entry, order, mask),
        }
    }
}

/// Returns a vector whose lanes add up to the value of a block at an entry of row `index`, with its columns multiplied by `mask`
/// if there is one.
#[inline(always)]
unsafe fn block_value<V: F32x16, const MASKED: bool>(
    block: &BlockValue<'_>,
    index: usize,
    entry: *const u32,
    order: usize,
    mask: &[f32],
) -> V {
    let width = block.columns.width;
    let mut sum = V::zero();
    // SAFETY: the caller's obligations.
    unsafe {
        for at in (0..width).step_by(LANES) {
            let mut product = V::load(block.own.as_ptr().add(index * width + at));
            if MASKED {
                product = product * V::load(mask.as_ptr().add(at));
            }
            for m in 0..order {
                let row = *entry.add(m) as usize * width;
                let rows = block.columns.others.get_unchecked(m).as_ptr();
                product = product * V::load(rows.add(row + at));
            }
            sum = sum + product;
        }
    }
    sum
}
