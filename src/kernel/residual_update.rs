//! Residuals of the entries of a row when a block of columns of a CP model takes the place of another.
#![allow(unsafe_code)]

use std::ops::Range;

use super::mode_csr::ModeCsr;
use super::partials::Partials;
use crate::progress::{StopFlag, count_operations, steps_per_poll};
use crate::simd::{F32x16, LANES, Level, dispatched, padded_len};

/// The part of the model's value that a block of columns has at the entries of a row.
#[derive(Clone, Copy)]
pub(crate) struct BlockValue<'a> {
    /// The columns of the other modes. There is no core.
    pub partials: &'a Partials<'a>,
    /// The columns of the row, padded.
    pub row: &'a [f32],
}

/// Subtracts the values of block `from` from the residuals of `entries`, all of one row, and adds those of block `to`. After a
/// request of `stop` the remaining residuals are left unchanged.
///
/// # Panics
/// If the rows are not padded, there is a core, or there is not one residual per entry.
pub(crate) fn exchange_values(
    csr: &ModeCsr,
    entries: Range<usize>,
    from: BlockValue<'_>,
    to: BlockValue<'_>,
    residuals: &mut [f32],
    stop: &StopFlag,
) {
    for BlockValue { partials, row } in [from, to] {
        partials.check(csr);
        assert!(partials.core.is_none() && row.len() == padded_len(partials.rank));
    }
    assert_eq!(residuals.len(), entries.len());
    let cost = csr.other_modes().len() * (from.row.len() + to.row.len());
    let (first, end, len) = (entries.start, entries.end, steps_per_poll(cost));
    for start in entries.step_by(len) {
        if stop.requested() {
            return;
        }
        let part = start..(start + len).min(end);
        count_operations(part.len() * cost);
        let residuals = &mut residuals[part.start - first..part.end - first];
        let level: Level = from.partials.level;
        // SAFETY: every row index of `csr` has a row in both blocks, rows are padded, there is one residual per entry, and
        // the level is available.
        unsafe { exchange(level, csr.records(part), from, to, residuals) }
    }
}

dispatched! {
    unsafe fn exchange(records: &[u32], from: BlockValue<'_>, to: BlockValue<'_>, residuals: &mut [f32]) = any_exchange;
}

#[inline(always)]
unsafe fn any_exchange<V: F32x16>(
    records: &[u32],
    from: BlockValue<'_>,
    to: BlockValue<'_>,
    residuals: &mut [f32],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match from.partials.others.len() {
            1 => exchange_order::<V, 1>(records, from, to, residuals),
            2 => exchange_order::<V, 2>(records, from, to, residuals),
            3 => exchange_order::<V, 3>(records, from, to, residuals),
            _ => exchange_order::<V, 0>(records, from, to, residuals),
        }
    }
}

/// The exchange for `N` other modes, or for any number if `N` is 0.
#[inline(always)]
unsafe fn exchange_order<V: F32x16, const N: usize>(
    records: &[u32],
    from: BlockValue<'_>,
    to: BlockValue<'_>,
    residuals: &mut [f32],
) {
    let order = if N == 0 {
        from.partials.others.len()
    } else {
        N
    };
    let mut changes = [0.0f32; LANES * LANES];
    let whole = residuals.len() / LANES * LANES;
    let (groups, rest) = residuals.split_at_mut(whole);
    // SAFETY: the caller's obligations; `changes` holds 16 vectors.
    unsafe {
        let mut entry = records.as_ptr();
        for group in groups.chunks_exact_mut(LANES) {
            for k in 0..LANES {
                let change =
                    block_value::<V>(from, entry, order) - block_value::<V>(to, entry, order);
                change.store(changes.as_mut_ptr().add(k * LANES));
                entry = entry.add(order + 1);
            }
            let sums = V::sums16(changes.as_ptr());
            (V::load(group.as_ptr()) - sums).store(group.as_mut_ptr());
        }
        for residual in rest {
            let change = block_value::<V>(from, entry, order) - block_value::<V>(to, entry, order);
            *residual -= change.sum();
            entry = entry.add(order + 1);
        }
    }
}

/// Returns a vector whose lanes add up to the value of a block at an entry.
#[inline(always)]
unsafe fn block_value<V: F32x16>(block: BlockValue<'_>, entry: *const u32, order: usize) -> V {
    let width = block.row.len();
    let mut sum = V::zero();
    // SAFETY: the caller's obligations.
    unsafe {
        for at in (0..width).step_by(LANES) {
            let mut product = V::load(block.row.as_ptr().add(at));
            for m in 0..order {
                let row = *entry.add(m) as usize * width;
                let rows = block.partials.others.get_unchecked(m).rows.as_ptr();
                product = product * V::load(rows.add(row + at));
            }
            sum = sum + product;
        }
    }
    sum
}
