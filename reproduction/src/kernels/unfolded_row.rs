//! Rows of an unfolded tensor times the factors of all other modes, compiled for every instruction set.
#![allow(unsafe_code)]

use std::ops::Range;

use s3cmtf_kernel::error::Result;
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::kernel::OtherMode;
use s3cmtf_kernel::progress::{StopFlag, count_operations, steps_per_poll};
use s3cmtf_kernel::simd::{F32x16, Level, dispatched, padded_len};
use s3cmtf_kernel::try_alloc::{CORE_ENTRIES, try_zeroed};

/// Elements in one array, which becomes one or several vectors.
const LANES: usize = 8;

/// Partial sums of the entries of a row.
#[derive(Default)]
pub struct UnfoldedRowScratch {
    /// Level d has the sum over the latest entries with equal rows of the first d other modes: one element for each
    /// combination of columns of the remaining modes, with those of the last padded to whole arrays.
    levels: Vec<Vec<[f64; LANES]>>,
}

impl UnfoldedRowScratch {
    /// Allocates the sums for some other modes.
    pub fn new(others: &[OtherMode<'_>]) -> Result<UnfoldedRowScratch> {
        let mut levels = Vec::new();
        let mut arrays = 1;
        for (d, other) in others.iter().enumerate().rev() {
            arrays *= match d + 1 == others.len() {
                true => other.rank.div_ceil(LANES),
                false => other.rank,
            };
            levels.insert(0, try_zeroed(arrays, CORE_ENTRIES)?);
        }
        Ok(UnfoldedRowScratch { levels })
    }
}

/// Adds the sum over `entries`, all of one row, of the value times the Kronecker product of the other modes' rows. The columns
/// of the last of [`ModeCsr::other_modes`] vary fastest. Entries that share rows of the first of these modes share the
/// products with them. Terms are added in the order of the entries, so all instruction sets give the same bits. The sum is
/// incomplete after a request of `stop`.
///
/// # Panics
/// If lengths do not match, or the machine does not have the level.
pub fn add_unfolded_row(
    level: Level,
    csr: &ModeCsr,
    entries: Range<usize>,
    others: &[OtherMode<'_>],
    scratch: &mut UnfoldedRowScratch,
    stop: &StopFlag,
    out: &mut [f64],
) {
    assert!(level.is_available());
    assert!(!others.is_empty() && others.len() == csr.other_modes().len());
    for (other, &rows) in others.iter().zip(csr.other_row_counts()) {
        assert!(other.rows.len() >= rows * padded_len(other.rank));
    }
    let UnfoldedRowScratch { levels } = scratch;
    let cost = LANES * levels.iter().map(Vec::len).sum::<usize>();
    let (end, len) = (entries.end, steps_per_poll(cost));
    for start in entries.step_by(len) {
        if stop.requested() {
            return;
        }
        let part = start..(start + len).min(end);
        count_operations(part.len() * cost);
        // SAFETY: the level is available; the kernel checks all indices.
        unsafe { accumulate(level, csr.records(part), others, levels) }
    }
    let rank = others[others.len() - 1].rank;
    let sums = levels[0].chunks_exact(rank.div_ceil(LANES));
    assert_eq!(out.len(), sums.len() * rank);
    for (out, sums) in out.chunks_exact_mut(rank).zip(sums) {
        let sums = sums.as_flattened();
        out.iter_mut().zip(sums).for_each(|(out, x)| *out += x);
    }
    levels[0].fill([0.0; LANES]);
}

dispatched! {
    unsafe fn accumulate(records: &[u32], others: &[OtherMode<'_>], levels: &mut [Vec<[f64; LANES]>]) = any_accumulate;
}

/// Adds entries to the first level and leaves zeros in the others.
#[inline(always)]
unsafe fn any_accumulate<V: F32x16>(
    records: &[u32],
    others: &[OtherMode<'_>],
    levels: &mut [Vec<[f64; LANES]>],
) {
    let last = others.len() - 1;
    let (factor, stride) = (others[last].rows, padded_len(others[last].rank));
    let mut previous = &records[..last];
    for record in records.chunks_exact(last + 2) {
        let rows = &record[..last];
        if rows != previous {
            let changed = (0..last).find(|&d| rows[d] != previous[d]);
            multiply_levels(others, levels, previous, changed.unwrap_or(last));
            previous = rows;
        }
        let value = f64::from(f32::from_bits(record[last + 1]));
        let row = &factor[record[last] as usize * stride..][..stride];
        add_multiple(&mut levels[last], value, row.as_chunks().0);
    }
    multiply_levels(others, levels, previous, 0);
}

/// Adds `scale` times a row to a sum, which may have fewer arrays.
#[inline(always)]
fn add_multiple(sum: &mut [[f64; LANES]], scale: f64, row: &[[f32; LANES]]) {
    for (to, x) in sum.iter_mut().zip(row) {
        // A copy, which the compiler knows not to overlap.
        let mut sums = *to;
        for l in 0..LANES {
            sums[l] += scale * f64::from(x[l]);
        }
        *to = sums;
    }
}

/// Multiplies the sums of the levels beyond `first` by the rows of their modes, adds the products to the levels before them
/// and sets them to zero.
#[inline(always)]
fn multiply_levels(
    others: &[OtherMode<'_>],
    levels: &mut [Vec<[f64; LANES]>],
    rows: &[u32],
    first: usize,
) {
    for d in (first..others.len() - 1).rev() {
        let (before, after) = levels.split_at_mut(d + 1);
        let (to, from) = (&mut before[d], &mut after[0]);
        let (rank, stride) = (others[d].rank, padded_len(others[d].rank));
        let row = &others[d].rows[rows[d] as usize * stride..][..rank];
        for (to, &u) in to.chunks_exact_mut(from.len()).zip(row) {
            let u = f64::from(u);
            for (to, from) in to.iter_mut().zip(&*from) {
                let mut sums = *to;
                for l in 0..LANES {
                    sums[l] += u * from[l];
                }
                *to = sums;
            }
        }
        from.fill([0.0; LANES]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3cmtf_kernel::kernel::CooSlices;
    use s3cmtf_kernel::random::splitmix64;

    #[test]
    fn rows_are_sums_of_kronecker_products() {
        let number = |k: usize| (splitmix64(k as u64) % 1000) as f32 / 500.0 - 1.0;
        for (sizes, ranks) in [
            (&[4, 6][..], &[3, 9][..]),
            (&[3, 5, 4], &[2, 9, 3]),
            (&[3, 4, 2, 5], &[2, 3, 2, 17]),
            (&[3, 4, 2, 5, 2], &[1, 2, 1, 3, 2]),
        ] {
            let (order, count) = (sizes.len(), 60);
            let row = |i: usize, m: usize| splitmix64((order * i + m) as u64) as usize % sizes[m];
            let rows = (0..order * count).map(|k| row(k / order, k % order) as u32);
            let rows: Vec<u32> = rows.collect();
            let values: Vec<f32> = (0..count).map(number).collect();
            let entries = CooSlices {
                row_counts: sizes,
                rows: &rows,
                values: &values,
                weights: &[],
            };
            let factors: Vec<Vec<f32>> = (0..order)
                .map(|m| {
                    let stride = padded_len(ranks[m]);
                    let element = |k: usize| match k % stride < ranks[m] {
                        true => number(1000 * m + k),
                        false => 0.0,
                    };
                    (0..sizes[m] * stride).map(element).collect()
                })
                .collect();
            for mode in 0..order {
                let csr = ModeCsr::new(mode, entries, &()).unwrap();
                let others: Vec<OtherMode<'_>> = csr
                    .other_modes()
                    .iter()
                    .map(|&m| OtherMode {
                        rows: &factors[m],
                        rank: ranks[m],
                        biases: &[],
                    })
                    .collect();
                let mut scratch = UnfoldedRowScratch::new(&others).unwrap();
                let columns: usize = others.iter().map(|o| o.rank).product();
                for i in 0..sizes[mode] {
                    let mut expected = vec![1.0; columns];
                    for e in (0..count).filter(|&e| row(e, mode) == i) {
                        for (c, sum) in expected.iter_mut().enumerate() {
                            let (mut rest, mut product) = (c, f64::from(values[e]));
                            for (other, &m) in others.iter().zip(csr.other_modes()).rev() {
                                let k = row(e, m) * padded_len(other.rank) + rest % other.rank;
                                product *= f64::from(other.rows[k]);
                                rest /= other.rank;
                            }
                            *sum += product;
                        }
                    }
                    for level in Level::available() {
                        let mut found = vec![1.0; columns];
                        let (stop, of_row) = (StopFlag::new(), csr.row_entries(i));
                        let (scratch, to) = (&mut scratch, &mut found);
                        add_unfolded_row(level, &csr, of_row, &others, scratch, &stop, to);
                        for (a, b) in found.iter().zip(&expected) {
                            assert!((a - b).abs() < 1e-12, "{level:?} {sizes:?}: {a} {b}");
                        }
                    }
                }
            }
        }
    }
}
