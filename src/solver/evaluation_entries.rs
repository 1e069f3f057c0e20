//! Entries that a fit measures its error on: given test and validation entries, and the held-out part of a split.

use std::ops::Range;
use std::sync::Arc;

use super::entries::Entries;
use super::entry_layout::sort_into_blocks;
use super::holdout_split::HoldoutSplit;
use super::standardization::Standardization;
use crate::error::Result;
use crate::format::CooView;
use crate::kernel::BlockingSpec;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::problem::{EntryChunk, EntryWeights, Problem};
use crate::progress::Monitor;

/// Number of entries per block.
const ENTRIES_PER_BLOCK: usize = 1 << 15;

/// Entries per fiber of a block below which entries are predicted one by one.
const MIN_FIBER_ENTRIES: usize = 4;

/// Copies the held-out entries of the tensor.
pub(super) fn held_out_entries(
    problem: &Problem<'_>,
    model: &Model,
    standardization: &Standardization,
    split: HoldoutSplit,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
) -> Result<Entries> {
    let (maps, tensor) = (problem.row_maps(), problem.tensor());
    let spec = blocking(model, tensor.len(), tensor.is_weighted());
    let is_held_out = |entry: usize| split.is_held_out(entry);
    let read = |range: Range<usize>, chunk: &mut EntryChunk| {
        standardization.read_tensor(tensor, &maps, Some(&is_held_out), range, chunk)
    };
    sort_into_blocks(&spec, tensor.len(), pool, monitor, &read).map(Entries::Blocks)
}

/// Copies given entries, which are validated. A row that the model does not have, also one beyond its sizes, becomes the mean row
/// of its mode.
pub(super) fn given_entries(
    view: &CooView<'_>,
    model: &Model,
    standardization: &Standardization,
    pool: &ThreadPool<'_>,
    monitor: &dyn Monitor,
) -> Result<Entries> {
    let order = model.order();
    model.check_order(view)?;
    let weights = EntryWeights::of(view, monitor)?;
    let spec = blocking(model, view.len(), weights.are_given());
    let values = standardization.value_map();
    let read = |range: Range<usize>, chunk: &mut EntryChunk| {
        view.validate(range.clone())?;
        chunk.rows.resize(order, Vec::new());
        for (m, column) in chunk.rows.iter_mut().enumerate() {
            column.clear();
            let indices = &view.column(m)[range.clone()];
            column.extend(indices.iter().map(|&i| model.row_of(m, i)));
        }
        chunk.values.clear();
        chunk.weights.clear();
        for i in range {
            let value = view.values().get(i);
            if !(value as f32).is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            chunk.values.push(values.apply(value) as f32);
            if weights.are_given() {
                chunk.weights.push(weights.get(i));
            }
        }
        chunk.retain_weighted();
        Ok(())
    };
    sort_into_blocks(&spec, view.len(), pool, monitor, &read).map(Entries::Blocks)
}

/// Returns a blocking without cuts, in blocks of nearly equal size.
fn blocking(model: &Model, count: usize, weighted: bool) -> Arc<BlockingSpec> {
    let rows: Vec<usize> = model.modes.iter().map(|m| m.factor.len()).collect();
    let blocks = count.div_ceil(ENTRIES_PER_BLOCK).max(1);
    let fiber_mode = fiber_mode(model, count.div_ceil(blocks));
    Arc::new(BlockingSpec::uncut(&rows, fiber_mode, blocks, weighted))
}

/// Returns the mode whose fibers group the entries of a block of this size: the one with the fewest rows, which has the longest
/// fibers. Predictions grouped by it take the fewest operations. `None` if fibers are so short that grouping does not pay.
pub(super) fn fiber_mode(model: &Model, block_entries: usize) -> Option<usize> {
    let rows = |m: usize| model.modes[m].factor.len();
    let longest = (0..model.order()).min_by_key(|&m| rows(m))?;
    (block_entries >= MIN_FIBER_ENTRIES * rows(longest)).then_some(longest)
}
