//! The entries that are held out while the noise is chosen.

use super::holdout::HoldoutEntries;
use super::stream_ids;
use super::value_scaling::ValueScaling;
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr};
use crate::parallel::ThreadPool;
use crate::random::hash_words;
use crate::solver::entries::EntryList;
use crate::solver::holdout_split::HoldoutSplit;
use crate::try_alloc::try_collect;

/// Fraction of the entries that is held out.
const HOLDOUT_FRACTION: f64 = 0.05;

/// At least this many entries are held out if they are at most [`MAX_HOLDOUT_FRACTION`] of all.
const MIN_HOLDOUT_ENTRIES: f64 = 3000.0;
const MAX_HOLDOUT_FRACTION: f64 = 0.2;

/// Fraction that is held out of smaller data, where a chain needs most entries to find structure at all.
const SMALL_HOLDOUT_FRACTION: f64 = 0.1;

/// Largest number of held-out entries.
const MAX_HOLDOUT_ENTRIES: f64 = 1e5;

/// Data with fewer entries holds out none.
const MIN_ENTRIES: f64 = 300.0;

/// Held-out training entries, whose weight is 0 in the problem until the noise is chosen.
pub(super) struct NoisePilot {
    pub holdout: HoldoutEntries,
    /// The weights of all entries, for each mode as it groups them; empty if entries are unweighted.
    pub weights: Vec<Vec<f32>>,
}

/// Returns the split of `count` entries; `None` if there are too few.
pub(super) fn pilot_split(count: usize, seed: u64) -> Option<HoldoutSplit> {
    let count = count as f64;
    let least = MIN_HOLDOUT_ENTRIES / count;
    let fraction = if least > MAX_HOLDOUT_FRACTION {
        SMALL_HOLDOUT_FRACTION
    } else {
        HOLDOUT_FRACTION.max(least).min(MAX_HOLDOUT_ENTRIES / count)
    };
    let seed = hash_words(&[seed, stream_ids::NOISE_PILOT]);
    (count >= MIN_ENTRIES).then(|| HoldoutSplit::new(fraction, 1.0 - fraction, seed))
}

/// Returns the weights of the entries while some are held out.
pub(super) fn pilot_weights(entries: &EntryList, split: HoldoutSplit) -> Result<Vec<f32>> {
    let weight = |i| match split.is_held_out(i) {
        true => 0.0,
        false => entries.weight(i),
    };
    try_collect(entries.len(), (0..entries.len()).map(weight), "entries")
}

impl NoisePilot {
    /// Copies the held-out entries. `row_counts` are the numbers of rows of the modes.
    pub(super) fn new(
        entries: &EntryList,
        row_counts: &[usize],
        scaling: ValueScaling,
        split: HoldoutSplit,
        pool: &ThreadPool<'_>,
    ) -> Result<NoisePilot> {
        let values = entries.original_values();
        let (mut rows, mut held_out, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for i in (0..entries.len()).filter(|&i| split.is_held_out(i)) {
            rows.extend_from_slice(entries.row(i));
            held_out.push(values[i]);
            weights.extend(entries.weights.get(i));
        }
        // The mean row of each mode is the last.
        let with_mean_rows: Vec<usize> = row_counts.iter().map(|n| n + 1).collect();
        let coo = CooSlices {
            row_counts: &with_mean_rows,
            rows: &rows,
            values: &scaling.scaled(&held_out)?,
            weights: &weights,
        };
        let all = CooSlices {
            row_counts,
            rows: &entries.rows,
            values,
            weights: &entries.weights,
        };
        let modes = 0..if entries.is_weighted() {
            row_counts.len()
        } else {
            0
        };
        let weights = modes.map(|n| Ok(ModeCsr::new(n, all, pool.monitor())?.into_weights()));
        Ok(NoisePilot {
            weights: weights.collect::<Result<_>>()?,
            holdout: HoldoutEntries::new(coo, pool)?,
        })
    }
}
