//! SGD updates, residuals and predictions of entry blocks. These functions are safe: they check levels, lengths
//! and row ownership before they call kernels.
#![allow(unsafe_code)]

use std::ops::Range;

use super::batch;
use super::batch_job::{BatchJob, FiberMode, MAX_BATCH_LEN, ModeRows, Regularizer};
use super::blocking::BlockingSpec;
use super::entry_block::{EntryBlock, FiberBatch};
use super::exclusive_rows::RowsMut;
use super::graph_update;
use super::packed_core_layout::PackedLayout;
use super::predict_batches::predict;
use crate::kernel::MAX_ORDER;
use crate::simd::Level;
use crate::simd::{AlignedVec, padded_len};

use crate::kernel::{CoreKind, CoreShape};
use crate::value_range::ValueRange;

/// Layout of the core of a block, with the fiber mode first.
#[derive(Debug, Clone)]
pub(crate) struct CoreLayout {
    /// `None` for a matrix, which has no core.
    core_kind: Option<CoreKind>,
    /// Rank of each mode.
    ranks: Vec<usize>,
    fiber: Option<usize>,
    /// Shape of the core over the non-fiber modes.
    shape: CoreShape,
    /// Layout of a full core while entries are processed one by one.
    packed: Option<PackedLayout>,
}

impl CoreLayout {
    /// Returns the layout for a tensor.
    pub(crate) fn tensor(shape: &CoreShape, fiber: Option<usize>) -> CoreLayout {
        let non_fiber: Vec<usize> = (0..shape.order())
            .filter(|&n| fiber != Some(n))
            .map(|n| shape.ranks[n])
            .collect();
        CoreLayout {
            core_kind: Some(shape.kind),
            ranks: shape.ranks.clone(),
            fiber,
            packed: (shape.kind == CoreKind::Full && fiber.is_none())
                .then(|| PackedLayout::new(shape)),
            shape: CoreShape::new(shape.kind, &non_fiber),
        }
    }

    /// Returns the layout for a matrix, whose fiber mode is its column mode.
    pub(crate) fn matrix(rank: usize) -> CoreLayout {
        CoreLayout {
            core_kind: None,
            ranks: vec![rank; 2],
            fiber: Some(1),
            shape: CoreShape::new(CoreKind::Diagonal, &[rank]),
            packed: None,
        }
    }

    /// Returns the number of floats of one slab: the part of the core that belongs to one component of the fiber
    /// mode.
    pub(crate) fn slab_len(&self) -> usize {
        self.shape.core_len()
    }

    /// Returns the number of slabs of the core.
    pub(crate) fn slab_count(&self) -> usize {
        match (self.core_kind, self.fiber) {
            (Some(CoreKind::Full), Some(f)) => self.ranks[f],
            (None, _) => 0,
            _ => 1,
        }
    }

    /// Copies a core in the layout of [`CoreShape`] to the fiber-first layout.
    pub(crate) fn to_fiber_first(&self, core: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.slab_count() * self.slab_len()];
        self.for_each_position(|model_position, position| out[position] = core[model_position]);
        out
    }

    /// Copies a core in the fiber-first layout to that of [`CoreShape`].
    pub(crate) fn copy_from_fiber_first(&self, from: &[f32], core: &mut [f32]) {
        self.for_each_position(|model_position, position| core[model_position] = from[position]);
    }

    /// Calls `visit` for every entry of the core, with its position in the layout of [`CoreShape`] and in this
    /// one.
    fn for_each_position(&self, mut visit: impl FnMut(usize, usize)) {
        let Some(f) = self
            .fiber
            .filter(|_| self.core_kind == Some(CoreKind::Full))
        else {
            (0..self.slab_len()).for_each(|k| visit(k, k));
            return;
        };
        let order = self.ranks.len();
        let last_width = |ranks: &[usize]| ranks.last().map_or(1, |&j| padded_len(j));
        let (width, slab_width) = (last_width(&self.ranks), last_width(&self.shape.ranks));
        let mut at = vec![0; order];
        for k in 0..self.ranks.iter().product::<usize>() {
            let mut rest = k;
            for n in (0..order).rev() {
                (at[n], rest) = (rest % self.ranks[n], rest / self.ranks[n]);
            }
            let model_position =
                (0..order - 1).fold(0, |p, n| p * self.ranks[n] + at[n]) * width + at[order - 1];
            let non_fiber: Vec<usize> = (0..order).filter(|&n| n != f).collect();
            let (&last, before) = non_fiber.split_last().expect("an order of 2 or more");
            let inner =
                before.iter().fold(0, |p, &n| p * self.ranks[n] + at[n]) * slab_width + at[last];
            visit(model_position, at[f] * self.slab_len() + inner);
        }
    }

    /// Returns the modes in the order of this layout.
    pub(crate) fn mode_order(&self) -> Vec<usize> {
        let non_fiber = (0..self.ranks.len()).filter(|&n| self.fiber != Some(n));
        self.fiber.into_iter().chain(non_fiber).collect()
    }

    fn check(&self, spec: &BlockingSpec, core: usize) {
        assert_eq!(
            (spec.fiber_mode, spec.row_counts.len()),
            (self.fiber, self.ranks.len())
        );
        assert_eq!(core, self.slab_count() * self.slab_len());
    }
}

/// Parameters of the update of a block.
pub(crate) struct BlockUpdateSettings<'a> {
    pub level: Level,
    pub eta: f32,
    /// Weight of the loss of this tensor or matrix.
    pub loss_weight: f32,
    pub regularizer: Regularizer,
    /// Penalty of a core entry per tensor entry.
    pub core_penalty: f32,
    /// Learning rate of the core.
    pub core_eta: f32,
    /// Interval of core updates, in entries, if entries are processed one by one. The core learning rate is
    /// multiplied by it.
    pub core_update_interval: usize,
    /// For each mode, the penalty per entry of each row.
    pub penalties: &'a [&'a [f32]],
    /// For each mode, the prior mean towards which penalties shrink rows, padded with zeros.
    pub prior_means: &'a [&'a [f32]],
    /// Maximum number of entries in a batch.
    pub max_batch_len: usize,
    /// Direction of the highest curvature among rows of the fiber mode, as long as a row.
    pub curvature_direction: &'a [f32],
    /// Curvature along `curvature_direction`.
    pub curvature: f32,
    /// Range of the batches to process, as fractions of their number.
    pub batch_range: Range<f64>,
}

/// Buffers for the update of blocks. One per thread.
#[derive(Default)]
pub(crate) struct BlockScratch {
    batches: Vec<FiberBatch>,
    predictions: Vec<f32>,
    work: AlignedVec,
}

impl BlockScratch {
    fn work(&mut self, layout: &CoreLayout) {
        let fiber = layout.fiber.map_or(0, |f| layout.ranks[f]);
        let len = batch::work_len(&layout.shape, layout.ranks.len(), fiber).max(
            layout
                .packed
                .as_ref()
                .map_or(0, PackedLayout::work_and_core_len),
        );
        if self.work.len() < len {
            self.work = AlignedVec::zeroed(len);
        }
    }
}

/// Returns the modes other than the fiber mode.
fn non_fiber<'a>(
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
/// Returns the weighted sum of squared residuals, each taken before the updates of its own entry.
///
/// # Panics
/// If `rows` do not cover the rows of the block, or a length is wrong.
pub(crate) fn update_block(
    block: &EntryBlock,
    layout: &CoreLayout,
    core: &mut [f32],
    rows: &mut [RowsMut<'_>],
    settings: &BlockUpdateSettings<'_>,
    name: &[u64],
    scratch: &mut BlockScratch,
) -> f64 {
    if block.len() == 0 {
        return 0.0;
    }
    let spec = block.spec();
    layout.check(spec, core.len());
    assert!(settings.level.is_available() && settings.max_batch_len >= 1);
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
    scratch.work(layout);
    block.shuffled_batches(
        settings.max_batch_len.min(MAX_BATCH_LEN),
        name,
        &mut scratch.batches,
    );
    let cut = |share: f64| (scratch.batches.len() as f64 * share) as usize;
    let batches = &scratch.batches[cut(settings.batch_range.start)..cut(settings.batch_range.end)];
    if batches.is_empty() {
        return 0.0;
    }
    if let Some(packed) = &layout.packed {
        packed.prepare_work(&mut scratch.work[..packed.work_len]);
    }
    let entries: usize = batches.iter().map(FiberBatch::len).sum();
    let core_entries = match layout.packed {
        Some(_) => entries.div_ceil(settings.core_update_interval.max(1)),
        None => entries,
    };
    let job = BatchJob {
        core_kind: layout.core_kind,
        shape: &layout.shape,
        packed: layout.packed.as_ref(),
        core: core.as_mut_ptr(),
        core_penalty: settings.core_penalty,
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
    // SAFETY: the level is available. The constructor of the block checked the rows of its entries against the parts and
    // row counts of the spec, and `rows` were checked to cover them. Rows, core and scratch memory are mutably borrowed, so
    // no one else accesses them. The batches are those of the block.
    unsafe { batch::run(settings.level, &job, batches) }
}

/// Updates with the edges of a graph in a block. Both rows of an edge belong to the same mode; `rows` has the part of
/// both, once if it is the same.
///
/// # Panics
/// If `rows` do not cover the rows of the block, or a length is wrong.
pub(crate) fn update_graph_block(
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
    let level = settings.level;
    let settings = graph_update::GraphUpdateSettings {
        eta: settings.eta,
        weight: settings.loss_weight,
        regularizer: settings.regularizer,
    };
    for batch in &scratch.batches {
        for edges in batch.record_slices(block) {
            // SAFETY: the level is available. Both rows of every edge are in borrowed parts, whose memory starts
            // at the same address.
            unsafe { graph_update::update_edges(level, &rows, edges, &settings) };
        }
    }
}

/// The parameters that predict the entries of a block.
#[derive(Clone, Copy)]
pub(crate) struct BlockModel<'a> {
    pub layout: &'a CoreLayout,
    /// The core as [`CoreLayout::to_fiber_first`] lays it out; empty for a matrix.
    pub core: &'a [f32],
    /// All rows of each mode.
    pub rows: &'a [&'a [f32]],
    pub level: Level,
}

/// Number of rows in the record of an entry: the fiber mode's row is stored once per run.
fn non_fiber_count(spec: &BlockingSpec) -> usize {
    spec.row_counts.len() - usize::from(spec.fiber_mode.is_some())
}

/// Returns the weighted sums of squared residuals of a block: of predictions as they are, and of predictions that
/// are clipped to a range after the biases of each mode, if any, are added.
///
/// # Panics
/// If a length is wrong.
pub(crate) fn squared_residuals(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    clip: ValueRange,
    biases: &[&[f32]],
    scratch: &mut BlockScratch,
) -> [f64; 2] {
    let spec = block.spec();
    for (m, bias) in biases.iter().enumerate() {
        assert!(bias.len() >= spec.row_counts[m]);
    }
    let non_fiber: Vec<&[f32]> = (0..biases.len())
        .filter(|&m| spec.fiber_mode != Some(m))
        .map(|m| biases[m])
        .collect();
    let fiber_biases = spec.fiber_mode.and_then(|f| biases.get(f));
    let order = non_fiber_count(spec);
    let mut sums = [0.0; 2];
    predictions(block, model, scratch, |batches, values| {
        let mut values = values.iter();
        for batch in batches {
            let fiber_bias = fiber_biases.map(|b| f64::from(b[batch.run.fiber_row as usize]));
            for record in batch
                .record_slices(block)
                .iter()
                .flat_map(|p| p.chunks_exact(block.record_words()))
            {
                let mut bias = 0.0;
                for (n, biases) in non_fiber.iter().enumerate() {
                    bias += f64::from(biases[record[n] as usize]);
                }
                if let Some(b) = fiber_bias {
                    bias += b;
                }
                let weight = if spec.weighted {
                    f64::from(f32::from_bits(record[order + 1]))
                } else {
                    1.0
                };
                let x = f64::from(f32::from_bits(record[order]));
                let value = values.next().map_or(0.0, |&v| f64::from(v));
                sums[0] += weight * ((x - value) * (x - value));
                let clipped = x + bias - clip.clip(value + bias);
                sums[1] += weight * (clipped * clipped);
            }
        }
    });
    sums
}

/// Returns the residual of every entry of a block, in the order of [`EntryBlock::for_each_row_of_mode`].
///
/// # Panics
/// If a length is wrong.
pub(crate) fn residuals(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    scratch: &mut BlockScratch,
) -> Vec<f32> {
    let mut found = Vec::with_capacity(block.len());
    let order = non_fiber_count(block.spec());
    predictions(block, model, scratch, |batches, values| {
        let records = batches
            .iter()
            .flat_map(|b| b.record_slices(block))
            .flat_map(|p| p.chunks_exact(block.record_words()));
        let residual = |(record, value): (&[u32], &f32)| f32::from_bits(record[order]) - value;
        found.extend(records.zip(values).map(residual));
    });
    found
}

/// Maximum number of entries predicted before [`predictions`] calls `visit`, unless one batch is longer.
const PREDICTION_CHUNK: usize = 4096;

/// Predicts all entries of a block, in order, and calls `visit` with a few batches and their predictions at a
/// time.
fn predictions(
    block: &EntryBlock,
    model: &BlockModel<'_>,
    scratch: &mut BlockScratch,
    mut visit: impl FnMut(&[FiberBatch], &[f32]),
) {
    if block.len() == 0 {
        return;
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
    scratch.work(layout);
    scratch.batches.clear();
    scratch.batches.extend(block.whole_runs());
    let job = BatchJob {
        core_kind: layout.core_kind,
        shape: &layout.shape,
        packed: None,
        core: core.as_ptr().cast_mut(),
        core_penalty: 0.0,
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
        let (mut count, mut entries) = (0, 0);
        while count < rest.len() && (count == 0 || entries + rest[count].len() <= PREDICTION_CHUNK)
        {
            entries += rest[count].len();
            count += 1;
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_goes_fiber_first_and_back() {
        for ranks in [vec![2, 3], vec![3, 2, 4], vec![2, 17, 3], vec![2, 3, 2, 5]] {
            let shape = CoreShape::new(CoreKind::Full, &ranks);
            let dense: Vec<f32> = (1..=ranks.iter().product::<usize>())
                .map(|x| x as f32)
                .collect();
            let core = shape.padded_core(&dense);
            for f in 0..ranks.len() {
                let layout = CoreLayout::tensor(&shape, Some(f));
                let first = layout.to_fiber_first(&core);
                assert_eq!(first.len(), layout.slab_count() * layout.slab_len());
                // Index (1, 0, ..., 0), fiber mode first, starts the second slab.
                let stride: usize = ranks[f + 1..].iter().product();
                assert_eq!(first[layout.slab_len()], dense[stride]);
                let mut back = vec![0.0; core.len()];
                layout.copy_from_fiber_first(&first, &mut back);
                assert_eq!(back, core);
            }
            let layout = CoreLayout::tensor(&shape, None);
            assert_eq!(layout.to_fiber_first(&core), core);
        }
    }
}
