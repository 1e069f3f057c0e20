//! SGD updates of entry blocks. These functions are safe: they check levels, lengths and row ownership before they
//! call kernels.
#![allow(unsafe_code)]

use std::ops::Range;

use super::core_layout::CoreLayout;
use super::dispatch;
use super::job::{BatchJob, FiberMode, MAX_BATCH_LEN, ModeRows, Regularizer};
use crate::entries::block::{EntryBlock, FiberBatch};
use crate::entries::exclusive_rows::RowsMut;
use crate::entries::grid::BlockingSpec;
use crate::error::Result;
use crate::graph_update;
use crate::per_entry::packed_core_layout::PackedLayout;
use crate::progress::{StopFlag, count_operations, steps_per_poll};
use crate::shape::core_shape::MAX_ORDER;
use crate::simd::{AlignedVec, Level, padded_len};
use crate::try_alloc::CORE_ENTRIES;

/// Parameters of the update of a block.
pub struct BlockUpdateSettings<'a> {
    /// Instruction set.
    pub level: Level,
    /// Learning rate of the rows.
    pub eta: f32,
    /// Weight of the loss of this tensor or matrix.
    pub loss_weight: f32,
    /// Penalty of the rows.
    pub regularizer: Regularizer,
    /// Learning rate of the core. Its penalty is applied elsewhere ([`crate::shape::core_penalty::CorePenalty`]).
    pub core_eta: f32,
    /// Interval of core updates, in entries, if entries are processed one by one. The core learning rate is
    /// multiplied by it.
    pub core_update_interval: usize,
    /// For each mode, the penalty per entry of each row.
    pub penalties: &'a [&'a [f32]],
    /// For each mode, the prior mean towards which penalties shrink rows, padded with zeros.
    pub prior_means: &'a [&'a [f32]],
    /// Number of entries at which runs are cut into batches. Equal for all updates with ranges of the same batches, so that
    /// no entry is in two of them.
    pub batch_len: usize,
    /// Maximum number of entries in a batch: longer ones are cut again.
    pub max_batch_len: usize,
    /// Direction of the highest curvature among rows of the fiber mode, as long as a row.
    pub curvature_direction: &'a [f32],
    /// Curvature along `curvature_direction`.
    pub curvature: f32,
    /// Range of the batches to process, as fractions of their number.
    pub batch_range: Range<f64>,
    /// Ends the update early when it is requested.
    pub stop: &'a StopFlag,
}

/// Buffers for updates and predictions of blocks. One per thread.
#[derive(Default)]
pub struct BlockScratch {
    pub(crate) batches: Vec<FiberBatch>,
    pub(super) predictions: Vec<f32>,
    pub(crate) work: AlignedVec,
}

impl BlockScratch {
    /// Grows the scratch buffer `work` to the length that the kernels need.
    pub(super) fn reserve_work(&mut self, layout: &CoreLayout) -> Result<()> {
        let fiber = layout.fiber.map_or(0, |f| layout.ranks[f]);
        let len = dispatch::work_len(&layout.shape, layout.ranks.len(), fiber).max(
            layout
                .packed
                .as_ref()
                .map_or(0, PackedLayout::work_and_core_len),
        );
        if self.work.len() < len {
            self.work = AlignedVec::try_zeroed(len, CORE_ENTRIES)?;
        }
        Ok(())
    }
}

/// Returns the modes other than the fiber mode.
pub(crate) fn non_fiber<'a>(
    spec: &BlockingSpec,
    modes: &[ModeRows],
    memory: &'a mut [ModeRows; MAX_ORDER],
) -> &'a [ModeRows] {
    let mut count = 0;
    for (m, mode) in modes[..spec.row_counts.len()].iter().enumerate() {
        if spec.fiber_mode != Some(m) {
            memory[count] = *mode;
            count += 1;
        }
    }
    &memory[..count]
}

/// Updates rows and core with a range of the batches of a block, in the random order of the stream `name`.
/// Returns the weighted sum of squared residuals, each taken before the updates of its own entry; of fewer entries if a stop
/// is requested.
///
/// # Panics
/// If `rows` do not cover the rows of the block, or a length is wrong.
pub fn update_block(
    block: &EntryBlock,
    layout: &CoreLayout,
    core: &mut [f32],
    rows: &mut [RowsMut<'_>],
    settings: &BlockUpdateSettings<'_>,
    name: &[u64],
    scratch: &mut BlockScratch,
) -> Result<f64> {
    if block.len() == 0 {
        return Ok(0.0);
    }
    let spec = block.spec();
    layout.check(spec, core.len());
    assert!(settings.level.is_available() && settings.batch_len.min(settings.max_batch_len) >= 1);
    let order = spec.row_counts.len();
    assert!(rows.len() == order && settings.penalties.len() == order);
    assert_eq!(settings.prior_means.len(), order);
    let mut modes = [ModeRows::NONE; MAX_ORDER];
    for (m, rows) in rows.iter_mut().enumerate() {
        let stride = padded_len(layout.ranks[m]);
        assert!(rows.covers(block, m, stride));
        assert!(settings.penalties[m].len() >= spec.row_counts[m]);
        assert!(settings.prior_means[m].len() >= stride);
        modes[m] = ModeRows {
            start: rows.start(),
            stride,
            penalty: settings.penalties[m].as_ptr(),
            prior_mean: settings.prior_means[m].as_ptr(),
        };
    }
    let mut memory = [ModeRows::NONE; MAX_ORDER];
    let non_fiber = non_fiber(spec, &modes, &mut memory);
    let longest = spec.fiber_mode.map_or(0, |f| modes[f].stride);
    assert!(settings.curvature_direction.len() >= longest);
    scratch.reserve_work(layout)?;
    let polls = PollIntervals::new(layout, settings.batch_len.min(MAX_BATCH_LEN));
    block.shuffled_batches(polls.max_batch_len, name, &mut scratch.batches);
    select_batches(
        &mut scratch.batches,
        &settings.batch_range,
        settings.max_batch_len,
    );
    let batches = &scratch.batches[..];
    if batches.is_empty() {
        return Ok(0.0);
    }
    if let Some(packed) = &layout.packed {
        packed.prepare_work(&mut scratch.work[..packed.work_len]);
    }
    let entries: usize = batches.iter().map(FiberBatch::len).sum();
    let core_entries = match layout.packed {
        Some(_) => entries.div_ceil(settings.core_update_interval.max(1)),
        None => entries,
    };
    let mut job = BatchJob {
        core_kind: layout.core_kind,
        shape: &layout.shape,
        packed: layout.packed.as_ref(),
        core: core.as_mut_ptr(),
        core_eta: settings.core_eta * (entries as f32 / core_entries as f32),
        core_entries,
        fiber: spec.fiber_mode.map(|f| FiberMode {
            rows: modes[f],
            rank: layout.ranks[f],
        }),
        non_fiber,
        has_priors: (0..order)
            .filter(|&m| spec.fiber_mode != Some(m))
            .any(|m| settings.prior_means[m].iter().any(|&x| x != 0.0)),
        entries: block.records().as_ptr(),
        weighted: spec.weighted,
        eta: settings.eta,
        loss_weight: settings.loss_weight,
        regularizer: settings.regularizer,
        curvature_direction: settings.curvature_direction.as_ptr(),
        curvature_step: settings.eta * settings.curvature,
        work: scratch.work.as_mut_ptr(),
    };
    let mut squared_error = 0.0;
    for batches in batches.chunks(polls.batches) {
        if settings.stop.requested() {
            break;
        }
        count_operations(batches.len() * polls.operations_per_batch);
        // SAFETY: the level is available. The constructor of the block checked the rows of its entries against the parts
        // and row counts of the spec, and `rows` were checked to cover them. Rows, core and scratch memory are mutably
        // borrowed, so no one else accesses them. The batches are those of the block.
        squared_error += unsafe { dispatch::run(settings.level, &job, batches) };
        if layout.packed.is_some() {
            let entries: usize = batches.iter().map(FiberBatch::len).sum();
            job.core_entries = job.core_entries.saturating_sub(entries);
        }
    }
    Ok(squared_error)
}

/// Keeps a range of the batches, given as fractions of their number, and cuts those that are too long.
fn select_batches(batches: &mut Vec<FiberBatch>, range: &Range<f64>, max_len: usize) {
    let cut = |fraction: f64| (batches.len() as f64 * fraction) as usize;
    let (start, end) = (cut(range.start), cut(range.end));
    batches.truncate(end);
    batches.drain(..start);
    for i in 0..batches.len() {
        if batches[i].len() > max_len {
            let mut pieces = batches[i].pieces(max_len);
            batches[i] = pieces.next().expect("a batch has entries");
            batches.extend(pieces);
        }
    }
}

/// The batches of an update between two polls for a cancellation.
struct PollIntervals {
    max_batch_len: usize,
    /// Number of batches.
    batches: usize,
    operations_per_batch: usize,
}

impl PollIntervals {
    /// Fewest entries between two polls if entries are processed one by one: each call of the kernel packs and unpacks the
    /// core.
    const MIN_ENTRIES: usize = 8;

    fn new(layout: &CoreLayout, max_batch_len: usize) -> PollIntervals {
        // Value, gradients and core update of an entry, and contraction and update of the whole core of a fiber batch.
        let (per_run, per_entry) = (2 * layout.operations_per_run(), 3 * layout.slab_len());
        let max_batch_len = match layout.fiber {
            Some(_) => max_batch_len,
            None => max_batch_len.min(steps_per_poll(per_entry).max(Self::MIN_ENTRIES)),
        };
        let operations_per_batch = per_run + max_batch_len * per_entry;
        PollIntervals {
            max_batch_len,
            batches: steps_per_poll(operations_per_batch),
            operations_per_batch,
        }
    }
}

/// Updates with the edges of a graph in a block. Both rows of an edge belong to the same mode; `rows` has the part of
/// both, once if it is the same.
///
/// # Panics
/// If `rows` do not cover the rows of the block, or a length is wrong.
pub fn update_graph_block(
    block: &EntryBlock,
    rows: &mut [RowsMut<'_>],
    stride: usize,
    settings: &BlockUpdateSettings<'_>,
    name: &[u64],
    scratch: &mut BlockScratch,
) {
    let spec = block.spec();
    assert!(
        settings.level.is_available() && spec.fiber_mode.is_none() && spec.row_counts.len() == 2
    );
    assert!(
        !spec.weighted,
        "what an edge weighs is part of its similarity"
    );
    for m in 0..2 {
        let is_covered =
            |r: &RowsMut<'_>| r.covers(block, m, stride) && r.shares_memory_with(&rows[0]);
        assert!(rows.iter().any(is_covered));
        assert!(settings.penalties[m].len() >= spec.row_counts[m]);
    }
    assert!(settings.prior_means[0].len() >= stride);
    let rows = ModeRows {
        start: rows[0].start(),
        stride,
        penalty: settings.penalties[0].as_ptr(),
        prior_mean: settings.prior_means[0].as_ptr(),
    };
    block.shuffled_batches(MAX_BATCH_LEN, name, &mut scratch.batches);
    let (level, stop) = (settings.level, settings.stop);
    let settings = graph_update::GraphUpdateSettings {
        eta: settings.eta,
        weight: settings.loss_weight,
        regularizer: settings.regularizer,
    };
    let polls = steps_per_poll(MAX_BATCH_LEN * stride);
    for (k, batch) in scratch.batches.iter().enumerate() {
        if k % polls == 0 && stop.requested() {
            break;
        }
        for edges in batch.record_slices(block) {
            // SAFETY: the level is available. Both rows of every edge are in borrowed parts, whose memory starts
            // at the same address.
            unsafe { graph_update::update_edges(level, &rows, edges, &settings) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::block::FiberRun;

    #[test]
    fn ranges_of_batches_have_every_entry_once_even_if_batches_get_shorter() {
        let run = |fiber_row: u32, start: u32, len: u32| FiberRun {
            fiber_row,
            start,
            len,
        };
        let runs = [run(0, 0, 100), run(1, 100, 7), run(2, 107, 61)];
        let mut visits = vec![0; 168];
        for (k, max_len) in [32, 5, 16, 1].into_iter().enumerate() {
            let whole = |run: FiberRun| FiberBatch {
                run,
                first: run.len / 3,
                len: run.len,
            };
            let mut batches: Vec<FiberBatch> =
                runs.iter().flat_map(|&r| whole(r).pieces(32)).collect();
            select_batches(
                &mut batches,
                &(k as f64 / 4.0..(k + 1) as f64 / 4.0),
                max_len,
            );
            for b in batches {
                assert!(b.len() >= 1 && b.len() <= max_len);
                for i in 0..b.len {
                    visits[(b.run.start + (b.first + i) % b.run.len) as usize] += 1;
                }
            }
        }
        assert!(visits.iter().all(|&v| v == 1), "{visits:?}");
    }
}
