//! Update of the biases after an epoch: damped least squares given all other parameters, one mode after the other.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::chunked_sum::{CHUNK, accumulator_count, sum_chunks};
use super::entries::{Entries, EntryList};
use super::loss::SquaredErrors;
use super::standardization::Standardization;
use crate::error::Result;
use crate::kernel::{
    BlockModel, BlockScratch, CoreLayout, EntryBlock, Method, TensorKernel, residuals,
};
use crate::model::{Model, ModelMode};
use crate::parallel::ThreadPool;
use crate::progress::steps_per_poll;
use crate::simd::Level;
use crate::try_alloc::{try_collect, try_zeroed};
use crate::value_range::ValueRange;

/// Solves for the biases of `standardization`, given the residuals of the model on `entries`. Returns the squared errors
/// after the update. After a cancellation only some biases have been updated.
pub(super) fn update_biases(
    model: &Model,
    entries: &Entries,
    standardization: &mut Standardization,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<SquaredErrors> {
    let units = Units::new(entries);
    let mut residuals = Residuals {
        units,
        values: units.residuals(model, level, pool)?,
        pending: None,
    };
    for (n, biases) in standardization.biases.iter_mut().enumerate() {
        let sums = residuals.sums_by_row(n, biases.len(), pool)?;
        let damping = standardization.bias_damping[n];
        let changes = solve_mode(biases, &model.modes[n], &sums, damping);
        residuals.pending = Some(BiasChanges { mode: n, changes });
    }
    let clip = standardization.standardized_range(model.range);
    residuals.squared_errors(clip, pool)
}

/// Changes of the biases of one mode, one per row.
struct BiasChanges {
    mode: usize,
    changes: Vec<f32>,
}

/// Residuals of all entries, unit by unit.
struct Residuals<'a> {
    units: Units<'a>,
    values: Vec<Mutex<Vec<f32>>>,
    /// Changes that are not yet subtracted. The next pass over the units subtracts them, which saves a pass of their own.
    pending: Option<BiasChanges>,
}

impl Residuals<'_> {
    /// Locks the residuals of a unit and subtracts the pending changes. A pass calls it once for each unit.
    fn unit(&self, u: usize) -> MutexGuard<'_, Vec<f32>> {
        let mut guard = self.values[u].lock().unwrap_or_else(|e| e.into_inner());
        if let Some(BiasChanges { mode, changes }) = &self.pending {
            let (residuals, changes) = (&mut guard[..], &changes[..]);
            self.units
                .for_each(u, *mode, |i, row, _| residuals[i] -= changes[row as usize]);
        }
        guard
    }

    /// Computes the weighted sum of the residuals of each row of mode `n`.
    fn sums_by_row(&self, n: usize, rows: usize, pool: &ThreadPool<'_>) -> Result<Vec<f64>> {
        let (units, stop) = (self.units, pool.stop());
        if let Some((parts, part_of)) = units.parts(n) {
            // Each part has rows of its own, so its units add to sums that no other part touches.
            let none = (0..rows).map(|_| AtomicU64::new(0));
            let sums: Vec<AtomicU64> = try_collect(rows, none, "rows")?;
            let add_part = |(): &mut (), part: usize| {
                for u in (0..units.count()).filter(|u| part_of(*u) == part) {
                    if stop.requested() {
                        return;
                    }
                    let unit = self.unit(u);
                    let (residuals, sums) = (&unit[..], &sums[..]);
                    units.for_each(u, n, |i, row, weight| {
                        let sum = &sums[row as usize];
                        let old = f64::from_bits(sum.load(Ordering::Relaxed));
                        let new = old + weight * f64::from(residuals[i]);
                        sum.store(new.to_bits(), Ordering::Relaxed);
                    });
                }
            };
            pool.map(parts, || (), add_part)?;
            let sums = sums.iter();
            let sums = sums.map(|sum| f64::from_bits(sum.load(Ordering::Relaxed)));
            return try_collect(rows, sums, "rows");
        }
        let count = accumulator_count(rows);
        let accumulate = |(): &mut (), first: usize| -> Result<Vec<f64>> {
            let mut sums: Vec<f64> = try_zeroed(rows, "rows")?;
            for u in (first..units.count()).step_by(count) {
                if stop.requested() {
                    break;
                }
                let unit = self.unit(u);
                let (residuals, sums) = (&unit[..], &mut sums[..]);
                units.for_each(u, n, |i, row, weight| {
                    sums[row as usize] += weight * f64::from(residuals[i]);
                });
            }
            Ok(sums)
        };
        let partial: Vec<Vec<f64>> = pool.try_map(count, || Ok(()), accumulate)?;
        let sum = |i: usize| partial.iter().map(|sums| sums[i]).sum();
        try_collect(rows, (0..rows).map(sum), "rows")
    }

    /// Computes the squared errors of the predictions, and of those clipped to a range of values with biases.
    fn squared_errors(&self, clip: ValueRange, pool: &ThreadPool<'_>) -> Result<SquaredErrors> {
        let units = self.units;
        let unit_sums = |(): &mut (), u: usize| {
            let unit = self.unit(u);
            let residuals = &unit[..];
            let mut sums = [0.0; 2];
            units.for_each_value(u, |i, value, weight| {
                let (error, value) = (f64::from(residuals[i]), f64::from(value));
                let clipped = value - clip.clip(value - error);
                sums[0] += weight * (error * error);
                sums[1] += weight * (clipped * clipped);
            });
            Ok(sums)
        };
        let [plain, clipped] = sum_chunks(units.count(), pool, || Ok(()), unit_sums)?;
        Ok(SquaredErrors { plain, clipped })
    }
}

/// Solves for the biases of one mode, given the sum of the residuals of each row, and returns their changes. The last bias,
/// that of rows without entries, becomes the mean bias of the mode.
fn solve_mode(biases: &mut [f32], mode: &ModelMode, sums: &[f64], damping: f64) -> Vec<f32> {
    let mut changes = vec![0.0; biases.len()];
    let rows = biases.iter_mut().zip(mode.counts.iter()).zip(&mut changes);
    for (i, ((bias, _), change)) in rows.enumerate().filter(|(_, ((_, count), _))| **count > 0) {
        let (old, weight) = (f64::from(*bias), mode.row_weight(i));
        *bias = ((sums[i] + weight * old) / (weight + damping)) as f32;
        *change = (f64::from(*bias) - old) as f32;
    }
    if let Some((without_entries, with_entries)) = biases.split_last_mut() {
        *without_entries = mode.mean_bias(with_entries);
    }
    changes
}

/// Entries in units of work for a thread: blocks, or chunks of shuffled entries.
#[derive(Clone, Copy)]
enum Units<'a> {
    Blocks(&'a [EntryBlock]),
    Chunks(&'a EntryList),
}

impl<'a> Units<'a> {
    fn new(entries: &'a Entries) -> Units<'a> {
        match entries {
            Entries::Blocks(_) | Entries::Classes(_) => Units::Blocks(entries.blocks()),
            Entries::List(entries) => Units::Chunks(entries),
        }
    }

    fn count(self) -> usize {
        match self {
            Units::Blocks(blocks) => blocks.len(),
            Units::Chunks(entries) => entries.len().div_ceil(CHUNK),
        }
    }

    /// Returns the entries of a chunk.
    fn chunk(entries: &EntryList, u: usize) -> Range<usize> {
        u * CHUNK..((u + 1) * CHUNK).min(entries.len())
    }

    /// Returns the number of parts into which the rows of mode `n` are cut and the part of each unit, if every unit has rows
    /// of one part only.
    fn parts(self, n: usize) -> Option<(usize, impl Fn(usize) -> usize)> {
        let Units::Blocks(blocks) = self else {
            return None;
        };
        let spec = blocks.first()?.spec();
        let axis = spec.cuts[n].as_ref()?.axis;
        Some((spec.parts_per_axis, move |u: usize| {
            blocks[u].coordinates()[axis]
        }))
    }

    /// Computes the residual of every entry of every unit.
    fn residuals(
        self,
        model: &Model,
        level: Level,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<Mutex<Vec<f32>>>> {
        let shape = &model.shape;
        let stop = pool.stop();
        match self {
            Units::Blocks(blocks) => {
                let Some(first) = blocks.first() else {
                    return Ok(Vec::new());
                };
                let layout = CoreLayout::tensor(shape, first.spec().fiber_mode);
                let core = layout.to_fiber_first(&model.core, pool.monitor())?;
                let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
                let model = BlockModel {
                    layout: &layout,
                    core: &core,
                    rows: &rows,
                    level,
                };
                let scratch = || Ok(BlockScratch::default());
                pool.try_map(blocks.len(), scratch, |scratch, b| {
                    residuals(&blocks[b], &model, scratch, stop).map(Mutex::new)
                })
            }
            Units::Chunks(entries) => {
                let state = || {
                    let kernel = TensorKernel::new(shape, Method::Shared(level))?;
                    Ok((kernel, vec![0.0f32; shape.rows_len()]))
                };
                let entries_per_poll = steps_per_poll(shape.core_len());
                pool.try_map(self.count(), state, |(kernel, rows), u| {
                    let chunk = Self::chunk(entries, u).enumerate();
                    let until_stop =
                        chunk.take_while(|(k, _)| k % entries_per_poll > 0 || !stop.requested());
                    let each = until_stop.map(|(_, i)| {
                        for (n, &row) in entries.row(i).iter().enumerate() {
                            let row = model.modes[n].factor.padded_row(row as usize);
                            rows[shape.row(n)].copy_from_slice(row);
                        }
                        entries.values[i] - kernel.value(&model.core, rows)
                    });
                    Ok(Mutex::new(each.collect()))
                })
            }
        }
    }

    /// Calls `visit` with the number of every entry of a unit, its row of mode `n` and its weight.
    #[inline]
    fn for_each(self, u: usize, n: usize, mut visit: impl FnMut(usize, u32, f64)) {
        match self {
            Units::Blocks(blocks) => blocks[u].for_each_row_of_mode(n, visit),
            Units::Chunks(entries) => {
                let chunk = Self::chunk(entries, u).enumerate();
                chunk.for_each(|(i, e)| visit(i, entries.row(e)[n], f64::from(entries.weight(e))));
            }
        }
    }

    /// Calls `visit` with the number of every entry of a unit, its value before biases were subtracted and its weight.
    #[inline]
    fn for_each_value(self, u: usize, mut visit: impl FnMut(usize, f32, f64)) {
        match self {
            Units::Blocks(blocks) => blocks[u].for_each_original_value(visit),
            Units::Chunks(entries) => {
                let chunk = Self::chunk(entries, u).enumerate();
                chunk.for_each(|(i, e)| {
                    let value = entries.values_with_biases[e];
                    visit(i, value, f64::from(entries.weight(e)));
                });
            }
        }
    }
}
