//! The partial passes of an epoch.

use std::ops::Range;
use std::sync::Arc;

use super::class_groups::groups_of_pass;
use super::config::FitInputs;
use super::context::PartialPass;
use super::curvature_basis::EntryCounts;
use super::merge_interval::{ENTRIES_PER_MEASUREMENT, MergeInterval, UNITS_PER_BLOCK};
use super::plan::MatrixPlacement;
use super::segment_settings::SegmentSettings;
use super::strata::{MatrixStrata, Stratum, TensorStrata, merge_runs, shuffled_strata};
use crate::solver::stream_ids;

/// Blocks of a stratum from which on merges may have the weights of sequential blocks: the mean of fewer blocks has enough noise
/// of its own.
const MIN_SEQUENTIAL_BLOCKS: usize = 8;

/// Merges at the end of an epoch that give all blocks equal weights, at most. A few suffice: along steep directions each
/// forgets most of the earlier deltas.
const MAX_EQUAL_MERGES: usize = 8;

/// Returns the number of entries between two merges of a pass over so many units of each block.
pub(super) fn entries_between_merges(inputs: &FitInputs<'_>, units: usize) -> EntryCounts {
    let FitInputs { data, plan, .. } = inputs;
    // All blocks have nearly the same number of entries.
    let entries = data.tensor.len() as f64 * units as f64 / UNITS_PER_BLOCK as f64;
    let merged = entries / plan.strata() as f64 * plan.strata_per_merge as f64;
    EntryCounts {
        total: merged as f32,
        per_replica: (merged / plan.blocks_per_stratum as f64) as f32,
    }
}

/// Creates the first pass over the rest of a segment, `units` of each block. There are at most `max_passes` per epoch.
pub(super) fn new_pass<'a>(
    inputs: &FitInputs<'_>,
    settings: Arc<SegmentSettings<'a>>,
    units: Range<usize>,
    interval: &MergeInterval,
    max_passes: usize,
) -> PartialPass<'a> {
    let FitInputs { data, plan, .. } = inputs;
    let len = UNITS_PER_BLOCK / interval.passes_per_epoch.min(max_passes);
    let start = units.start;
    // There is no short last pass, whose error would say little.
    let end = if units.len() < len + len / 2 {
        units.end
    } else {
        start + len
    };
    let entries = entries_between_merges(inputs, end - start);
    let class_groups = match data.tensor.classes() {
        Some(classes) => {
            let stream = [inputs.options.seed, stream_ids::ENTRY_ORDER];
            let stream_id = [&stream[..], settings.stream_id].concat();
            groups_of_pass(classes, start..end, settings.max_group_blocks, &stream_id)
        }
        None => Vec::new(),
    };
    let strata = strata_of_pass(inputs, &settings, start, class_groups.len());
    PartialPass {
        segment_end: units.end,
        units: start..end,
        core_merge_factors: settings.core_merge_factors(data, entries),
        class_groups,
        first_equal_merge: if plan.blocks_per_stratum < MIN_SEQUENTIAL_BLOCKS
            || !interval.tolerates_noise()
        {
            0
        } else if end < UNITS_PER_BLOCK {
            usize::MAX
        } else {
            let merges = merge_runs(&strata, plan.strata_per_merge).count();
            merges - MAX_EQUAL_MERGES.min(merges.div_ceil(2))
        },
        // Merges are counted together with the strata of matrices: with those, any merge may be the only one that counts.
        merges_per_measurement: if strata.iter().all(Stratum::has_tensor_blocks) {
            (ENTRIES_PER_MEASUREMENT as f32 / entries.per_replica).max(1.0) as usize
        } else {
            1
        },
        strata,
        settings,
    }
}

/// Returns the strata of the pass that starts at unit `start`, in random order. Matrices and graphs with strata of their own
/// are processed once per epoch, in its first pass.
fn strata_of_pass(
    inputs: &FitInputs<'_>,
    settings: &SegmentSettings<'_>,
    start: usize,
    class_groups: usize,
) -> Vec<Stratum> {
    let plan = inputs.plan;
    let matrices: Vec<MatrixStrata> = plan
        .matrices
        .iter()
        .enumerate()
        .filter(|(_, plan)| start == 0 && matches!(plan.placement, MatrixPlacement::OwnStrata))
        .map(|(m, plan)| MatrixStrata {
            matrix: m,
            kind: inputs.data.matrices[m].kind,
            parts: plan.blocking.parts_per_axis,
        })
        .collect();
    let stream = [inputs.options.seed, stream_ids::BLOCK_ORDER];
    let stream_id = [&stream[..], settings.stream_id, &[start as u64]].concat();
    let tensor = if plan.longest_row.is_some() {
        TensorStrata {
            count: class_groups,
            chain_len: 1,
            stratum: |group| Stratum::ClassGroup { group },
        }
    } else {
        TensorStrata {
            count: plan.strata(),
            chain_len: if plan.strata_per_merge == 1 {
                1
            } else {
                plan.blocking.parts_per_axis
            },
            stratum: |number| Stratum::TensorBlocks { number },
        }
    };
    shuffled_strata(&tensor, &matrices, &stream_id)
}
