//! Predictions and residuals of entry blocks. These functions are safe: they check levels and lengths before they call
//! kernels, those of `predict` and the sums of squares below.
#![allow(unsafe_code)]

use super::block_update::{BlockScratch, non_fiber};
use super::core_layout::CoreLayout;
use super::job::{BatchJob, FiberMode, ModeRows, Regularizer};
use super::predict::predict;
use crate::entries::block::{EntryBlock, FiberBatch};
use crate::entries::grid::BlockingSpec;
use crate::error::Result;
use crate::graph_update::{self, Edges};
use crate::progress::{StopFlag, count_operations, operations_per_poll, steps_per_poll};
use crate::shape::core_shape::MAX_ORDER;
use crate::simd::{F32x16, LANES, Level, dispatched, padded_len};
use crate::try_alloc::try_with_capacity;
use crate::value_range::ValueRange;

/// The parameters that predict the entries of a block.
#[derive(Clone, Copy)]
pub struct BlockModel<'a> {
    /// Shape of the core and its order in memory.
    pub layout: &'a CoreLayout,
    /// The core as [`CoreLayout::to_fiber_first`] lays it out; empty for a matrix.
    pub core: &'a [f32],
    /// All rows of each mode.
    pub rows: &'a [&'a [f32]],
    /// Instruction set.
    pub level: Level,
}

impl BlockModel<'_> {
    /// Returns the blocking of all entries into one block, with the fiber mode of the layout.
    pub fn blocking(&self, weighted: bool) -> BlockingSpec {
        let counts = self.rows.iter().zip(&self.layout.ranks);
        let counts: Vec<usize> = counts.map(|(r, &j)| r.len() / padded_len(j)).collect();
        BlockingSpec::uncut(&counts, self.layout.fiber, 1, weighted)
    }
}

/// Number of rows in the record of an entry: the fiber mode's row is stored once per run.
fn non_fiber_count(spec: &BlockingSpec) -> usize {
    spec.row_counts.len() - usize::from(spec.fiber_mode.is_some())
}

/// Returns the weighted sums of squared residuals of a block: of predictions as they are, and of predictions that
/// are clipped to a range after the biases of each mode, if any, are added. The sums are incomplete if `stop` is requested.
///
/// # Panics
/// If a length is wrong.
pub fn squared_residuals(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    clip: ValueRange,
    biases: &[&[f32]],
    scratch: &mut BlockScratch,
    stop: &StopFlag,
) -> Result<[f64; 2]> {
    if biases.is_empty() {
        return squared_residuals_without_biases(block, model, clip, scratch, stop);
    }
    let spec = block.spec();
    for (m, bias) in biases.iter().enumerate() {
        assert!(bias.len() >= spec.row_counts[m]);
    }
    let non_fiber: Vec<&[f32]> = (0..biases.len())
        .filter(|&m| spec.fiber_mode != Some(m))
        .map(|m| biases[m])
        .collect();
    let fiber_biases = spec.fiber_mode.and_then(|f| biases.get(f));
    let (order, width) = (non_fiber_count(spec), block.record_words());
    let mut sums = [0.0; 2];
    // Plain loops, which the compiler optimizes better than nested iterator adapters.
    predictions(block, model, scratch, stop, |batches, values| {
        let mut values = values;
        for batch in batches {
            let fiber_bias =
                fiber_biases.map_or(0.0, |b| f64::from(b[batch.run.fiber_row as usize]));
            for records in batch.record_slices(block) {
                let (of_records, rest) = values.split_at(records.len() / width);
                values = rest;
                for (k, &value) in of_records.iter().enumerate() {
                    let record = &records[k * width..(k + 1) * width];
                    let mut bias = 0.0;
                    for (n, biases) in non_fiber.iter().enumerate() {
                        bias += f64::from(biases[record[n] as usize]);
                    }
                    bias += fiber_bias;
                    let weight = if spec.weighted {
                        f64::from(f32::from_bits(record[order + 1]))
                    } else {
                        1.0
                    };
                    let (x, value) = (f64::from(f32::from_bits(record[order])), f64::from(value));
                    sums[0] += weight * ((x - value) * (x - value));
                    let clipped = x + bias - clip.clip(value + bias);
                    sums[1] += weight * (clipped * clipped);
                }
            }
        }
    })?;
    Ok(sums)
}

/// Computes [`squared_residuals`] without biases.
fn squared_residuals_without_biases(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    clip: ValueRange,
    scratch: &mut BlockScratch,
    stop: &StopFlag,
) -> Result<[f64; 2]> {
    let width = block.record_words();
    let mut sums = [0.0; 2];
    let mut records = block.records();
    // Whole runs follow one another, and so do their records.
    predictions(block, model, scratch, stop, |_, values| {
        let (of_values, rest) = records.split_at(values.len() * width);
        records = rest;
        let residuals = ResidualSums {
            records: of_values,
            width,
            weighted: block.spec().weighted,
            values,
            clip,
        };
        // SAFETY: `predictions` checked that the level is available.
        let [plain, clipped] = unsafe { residual_sums(model.level, &residuals) };
        sums = [sums[0] + plain, sums[1] + clipped];
    })?;
    Ok(sums)
}

/// Returns the sum over the edges of a graph of the similarity times the squared distance of the two rows. `rows` has all rows
/// of the mode.
///
/// # Panics
/// If a row does not exist or a length is wrong.
pub fn squared_distances(edges: &Edges<'_>, rows: &[f32], stride: usize, level: Level) -> f64 {
    assert!(level.is_available() && stride.is_multiple_of(LANES) && stride > 0);
    let row_count = rows.len() / stride;
    let exist = |row: u32| (row as usize) < row_count;
    // Loops without branches, which the compiler vectorizes.
    let all_exist = match *edges {
        Edges::Records(records) => {
            let edges = records.as_chunks::<3>().0.iter();
            edges.fold(true, |all, &[a, b, _]| all & exist(a) & exist(b))
        }
        Edges::Lists(pairs, similarities) => {
            assert_eq!(pairs.len(), similarities.len());
            let edges = pairs.iter();
            edges.fold(true, |all, &[a, b]| all & exist(a) & exist(b))
        }
    };
    assert!(all_exist, "an edge with a row that does not exist");
    let rows = ModeRows {
        start: rows.as_ptr().cast_mut(),
        stride,
        ..ModeRows::NONE
    };
    // SAFETY: the level is available. All rows exist and are only read.
    unsafe { graph_update::squared_distances(level, &rows, edges) }
}

/// Returns the residual of every entry of a block, in the order of [`EntryBlock::for_each_row_of_mode`]; of fewer entries if
/// `stop` is requested.
///
/// # Panics
/// If a length is wrong.
pub fn residuals(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    scratch: &mut BlockScratch,
    stop: &StopFlag,
) -> Result<Vec<f32>> {
    let mut found = try_with_capacity(block.len(), "entries")?;
    let order = non_fiber_count(block.spec());
    let width = block.record_words();
    // Plain loops, as in `squared_residuals`.
    predictions(block, model, scratch, stop, |batches, values| {
        let mut values = values;
        for batch in batches {
            for records in batch.record_slices(block) {
                let (of_records, rest) = values.split_at(records.len() / width);
                values = rest;
                let start = found.len();
                found.resize(start + of_records.len(), 0.0);
                for (k, residual) in found[start..].iter_mut().enumerate() {
                    *residual = f32::from_bits(records[k * width + order]) - of_records[k];
                }
            }
        }
    })?;
    Ok(found)
}

/// Maximum number of entries predicted before [`predictions`] calls `visit`, unless one run is longer.
const PREDICTION_CHUNK: usize = 4096;

/// Predicts all entries of a block, in order, and calls `visit` with a few batches and their predictions at a
/// time. Ends early if `stop` is requested.
fn predictions(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    scratch: &mut BlockScratch,
    stop: &StopFlag,
    mut visit: impl FnMut(&[FiberBatch], &[f32]),
) -> Result<()> {
    if block.len() == 0 {
        return Ok(());
    }
    let BlockModel {
        layout,
        core,
        rows,
        level,
    } = *model;
    let spec = block.spec();
    layout.check(spec, core.len());
    assert!(level.is_available() && rows.len() == spec.row_counts.len());
    let mut modes = [ModeRows::NONE; MAX_ORDER];
    for (m, rows) in rows.iter().enumerate() {
        let stride = padded_len(layout.ranks[m]);
        assert!(rows.len() >= spec.row_counts[m] * stride);
        modes[m] = ModeRows {
            start: rows.as_ptr().cast_mut(),
            stride,
            ..ModeRows::NONE
        };
    }
    let mut memory = [ModeRows::NONE; MAX_ORDER];
    let non_fiber = non_fiber(spec, &modes, &mut memory);
    scratch.reserve_work(layout)?;
    scratch.batches.clear();
    // A run with more operations than fit between two polls is predicted in parts.
    let (per_run, per_entry) = (layout.operations_per_run(), layout.slab_len());
    let runs = block.whole_runs(steps_per_poll(per_entry));
    scratch.batches.extend(runs);
    let operations = |batch: &FiberBatch| per_run + batch.len() * per_entry;
    let job = BatchJob {
        core_kind: layout.core_kind,
        shape: &layout.shape,
        packed: None,
        core: core.as_ptr().cast_mut(),
        core_eta: 0.0,
        core_entries: 0,
        fiber: spec.fiber_mode.map(|f| FiberMode {
            rows: modes[f],
            rank: layout.ranks[f],
        }),
        non_fiber,
        has_priors: false,
        entries: block.records().as_ptr(),
        weighted: spec.weighted,
        eta: 0.0,
        loss_weight: 1.0,
        regularizer: Regularizer {
            l1: false,
            nonneg: false,
        },
        curvature_direction: std::ptr::null(),
        curvature_step: 0.0,
        work: scratch.work.as_mut_ptr(),
    };
    let mut rest = &scratch.batches[..];
    while !rest.is_empty() {
        if stop.requested() {
            break;
        }
        let (mut count, mut entries, mut total) = (0, 0, 0);
        while let Some(batch) = rest.get(count) {
            let is_full = entries + batch.len() > PREDICTION_CHUNK
                || total + operations(batch) > operations_per_poll();
            if count > 0 && is_full {
                break;
            }
            entries += batch.len();
            total += operations(batch);
            count += 1;
        }
        count_operations(total);
        let (some, others) = rest.split_at(count);
        rest = others;
        if scratch.predictions.len() < entries {
            scratch.predictions.resize(entries, 0.0);
        }
        // SAFETY: the level is available. Rows and core have the checked lengths and are only read. The buffer
        // has room for every prediction. The block's constructor checked the rows of its entries against the row
        // counts.
        unsafe { predict(level, &job, some, scratch.predictions.as_mut_ptr()) };
        visit(some, &scratch.predictions[..entries]);
    }
    Ok(())
}

/// Number of partial sums, which are independent of one another.
const SUMS: usize = 8;

/// Entries and their predictions.
struct ResidualSums<'a> {
    /// Records of `width` words: rows, the bits of the value and, if weighted, of the weight.
    records: &'a [u32],
    width: usize,
    weighted: bool,
    /// One prediction per record.
    values: &'a [f32],
    clip: ValueRange,
}

dispatched! {
    /// Returns the weighted sums of squared residuals: of predictions as they are, and of clipped predictions.
    unsafe fn residual_sums(residuals: &ResidualSums<'_>) -> [f64; 2] = residual_sums_body;
}

// Plain loops, which the compiler vectorizes for the instruction set that is enabled where this function is inlined.
#[inline(always)]
unsafe fn residual_sums_body<V: F32x16>(residuals: &ResidualSums<'_>) -> [f64; 2] {
    let clips = residuals.clip != ValueRange::UNBOUNDED;
    match (residuals.weighted, residuals.width, clips) {
        (false, 2, false) => sums::<2, false, false>(residuals),
        (false, 3, false) => sums::<3, false, false>(residuals),
        (false, 3, true) => sums::<3, false, true>(residuals),
        (false, 4, false) => sums::<4, false, false>(residuals),
        (false, 4, true) => sums::<4, false, true>(residuals),
        (false, ..) => sums::<0, false, true>(residuals),
        (true, ..) => sums::<0, true, true>(residuals),
    }
}

/// Computes the sums with constants for the words of a record, any if `WIDTH` is 0, and for weights and clipping.
#[inline(always)]
fn sums<const WIDTH: usize, const WEIGHTED: bool, const CLIPS: bool>(
    residuals: &ResidualSums<'_>,
) -> [f64; 2] {
    let width = if WIDTH > 0 { WIDTH } else { residuals.width };
    let clip = residuals.clip;
    let (mut plain, mut clipped) = ([0.0; SUMS], [0.0; SUMS]);
    let records = residuals.records.chunks_exact(SUMS * width);
    let values = residuals.values.chunks_exact(SUMS);
    let last_records = records.remainder();
    let last_values = values.remainder();
    // With a constant number of entries the compiler vectorizes the inner loop.
    for (records, values) in records.zip(values) {
        for k in 0..SUMS {
            let record = &records[k * width..(k + 1) * width];
            let squares = squares::<WEIGHTED, CLIPS>(record, values[k], clip);
            plain[k] += squares[0];
            clipped[k] += squares[1];
        }
    }
    for (k, &value) in last_values.iter().enumerate() {
        let record = &last_records[k * width..(k + 1) * width];
        let squares = squares::<WEIGHTED, CLIPS>(record, value, clip);
        plain[k] += squares[0];
        clipped[k] += squares[1];
    }
    let plain = plain.iter().sum();
    [plain, if CLIPS { clipped.iter().sum() } else { plain }]
}

/// Returns the weighted squared residuals of one entry. The second one is 0 without `CLIPS`.
#[inline(always)]
fn squares<const WEIGHTED: bool, const CLIPS: bool>(
    record: &[u32],
    value: f32,
    clip: ValueRange,
) -> [f64; 2] {
    let value_at = record.len() - 1 - usize::from(WEIGHTED);
    let (x, value) = (
        f64::from(f32::from_bits(record[value_at])),
        f64::from(value),
    );
    let weight = if WEIGHTED {
        f64::from(f32::from_bits(record[value_at + 1]))
    } else {
        1.0
    };
    let residual = x - value;
    let clipped = if CLIPS { x - clip.clip(value) } else { 0.0 };
    [weight * (residual * residual), weight * (clipped * clipped)]
}
