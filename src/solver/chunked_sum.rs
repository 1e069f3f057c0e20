//! Sums in `f64` over fixed chunks, so that the result is independent of the thread count.

use crate::error::Result;
use crate::parallel::ThreadPool;

/// Number of entries, or floats, per chunk where entries are not in blocks.
pub const CHUNK: usize = 1 << 13;

/// Largest number of partial sums per row in [`accumulator_count`].
const MAX_ACCUMULATORS: usize = 16;

/// Largest number of partial sums over all rows: 32 MiB of `f64`.
const MAX_PARTIAL_SUMS: usize = 1 << 22;

/// Adds up the sums of `count` chunks in chunk order. `sum` computes one chunk on a thread of `pool`; each
/// thread creates its own state first.
pub fn sum_chunks<S, const K: usize>(
    count: usize,
    pool: &ThreadPool<'_>,
    state: impl Fn() -> Result<S> + Sync,
    sum: impl Fn(&mut S, usize) -> Result<[f64; K]> + Sync,
) -> Result<[f64; K]> {
    Ok(total(&pool.try_map(count, state, sum)?))
}

/// Adds up `sums` in order.
fn total<const K: usize>(sums: &[[f64; K]]) -> [f64; K] {
    let mut total = [0.0; K];
    for sum in sums {
        for (total, x) in total.iter_mut().zip(sum) {
            *total += x;
        }
    }
    total
}

/// Returns how many sets of partial sums to keep when `rows` rows are summed in parallel. It depends on the
/// number of rows only, never on the thread count, and bounds the memory.
pub(super) fn accumulator_count(rows: usize) -> usize {
    (MAX_PARTIAL_SUMS / rows.max(1)).clamp(1, MAX_ACCUMULATORS)
}
