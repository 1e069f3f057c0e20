//! The partial passes of an epoch.

use super::class_groups::groups_of_pass;
use super::context::PartialPass;
use super::curvature_basis::EntryCounts;
use super::epoch_settings::EpochSettings;
use super::fit_inputs::FitInputs;
use super::merge_interval::{ENTRIES_PER_MEASUREMENT, MergeInterval, UNITS_PER_BLOCK};
use super::plan::MatrixPlacement;
use super::strata::{MatrixStrata, Stratum, TensorStrata, merge_runs, shuffled_strata};
use crate::solver::stream_ids;

/// Blocks of a stratum from which on merges may have the weights of sequential blocks: the mean of fewer blocks has enough noise
/// of its own.
const MIN_SEQUENTIAL_BLOCKS: usize = 8;

/// Merges at the end of an epoch that give all blocks equal weights, at most. A few suffice: along steep directions each
/// forgets most of the earlier deltas.
const MAX_EQUAL_MERGES: usize = 8;

/// Creates the pass that starts at unit `start` of each block. There are at most `max_passes` per epoch.
pub(super) fn new_pass(
    inputs: &FitInputs<'_>,
    epoch: &EpochSettings<'_>,
    start: usize,
    interval: &MergeInterval,
    max_passes: usize,
) -> PartialPass {
    let FitInputs { data, plan, .. } = inputs;
    let passes_per_epoch = interval.passes_per_epoch.min(max_passes);
    let end = (start + UNITS_PER_BLOCK / passes_per_epoch).min(UNITS_PER_BLOCK);
    // All blocks have nearly the same number of entries.
    let entries = data.tensor.len() as f64 * (end - start) as f64 / UNITS_PER_BLOCK as f64;
    let merged = entries / plan.strata() as f64 * plan.strata_per_merge as f64;
    let entries = EntryCounts {
        total: merged as f32,
        per_replica: (merged / plan.blocks_per_stratum as f64) as f32,
    };
    let class_groups = match data.tensor.classes() {
        Some(classes) => {
            let stream = [inputs.options.seed, stream_ids::ENTRY_ORDER];
            let stream_id = [&stream[..], epoch.stream_id].concat();
            groups_of_pass(classes, start..end, epoch.max_group_blocks, &stream_id)
        }
        None => Vec::new(),
    };
    let strata = strata_of_pass(inputs, epoch, start, class_groups.len());
    PartialPass {
        units: start..end,
        core_merge_factors: epoch.core_merge_factors(data, entries),
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
    }
}

/// Returns the strata of the pass that starts at unit `start`, in random order. Matrices and graphs with strata of their own
/// are processed once per epoch, in its first pass.
fn strata_of_pass(
    inputs: &FitInputs<'_>,
    epoch: &EpochSettings<'_>,
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
    let stream_id = [&stream[..], epoch.stream_id, &[start as u64]].concat();
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
