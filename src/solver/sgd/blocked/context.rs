//! A partial pass and its inputs, as all threads see them.

use std::ops::Range;
use std::sync::Arc;

use super::batch_limit::TensorBatchLimit;
use super::class_groups::ClassGroup;
use super::config::{FitInputs, Parameters};
use super::merge_interval::{ENTRIES_PER_MEASUREMENT, UNITS_PER_BLOCK};
use super::replica_divergence::SampleKernel;
use super::replicas::BlockReplicas;
use super::row_merge::DeltaWeights;
use super::segment_settings::SegmentSettings;
use super::strata::Stratum;
use super::task_order::RoundTasks;
use crate::kernel::{BlockScratch, BlockUpdateSettings, CoreLayout, ExclusiveCells, MAX_BATCH_LEN};
use crate::progress::StopFlag;
use crate::random::splitmix64;
use crate::simd::AlignedVec;
use crate::solver::stream_ids;

/// A pass over all strata that processes a fraction of the entries of each block.
pub(super) struct PartialPass<'a> {
    pub settings: Arc<SegmentSettings<'a>>,
    /// The unit at which its segment ends.
    pub segment_end: usize,
    /// The entries of each block, out of [`UNITS_PER_BLOCK`].
    pub units: Range<usize>,
    pub strata: Vec<Stratum>,
    /// The groups of a tensor in conflict-free classes.
    pub class_groups: Vec<ClassGroup>,
    /// For each direction of the core, the factor of summed deltas.
    pub core_merge_factors: Vec<f32>,
    /// The merges from this position on give all blocks equal weights.
    pub first_equal_merge: usize,
    /// The divergence of replicas is measured at every so many merges.
    pub merges_per_measurement: usize,
}

impl PartialPass<'_> {
    /// Returns the fraction of all entries.
    pub(super) fn fraction(&self) -> f64 {
        self.units.len() as f64 / UNITS_PER_BLOCK as f64
    }

    /// Whether a block of so many entries measures its curvature in this pass.
    pub(super) fn measures_curvature(&self, entries: usize) -> bool {
        let measurements =
            |units: usize| entries * units / UNITS_PER_BLOCK / ENTRIES_PER_MEASUREMENT;
        self.units.start == 0 || measurements(self.units.start) < measurements(self.units.end)
    }

    /// Whether the divergence of replicas is measured at the merge at `position`.
    pub(super) fn measures_divergence(&self, position: usize) -> bool {
        position.is_multiple_of(self.merges_per_measurement)
    }

    /// Returns the limits of the batches of a block as fractions of their number.
    pub(super) fn batch_range(&self) -> Range<f64> {
        let fraction = |units: usize| units as f64 / UNITS_PER_BLOCK as f64;
        fraction(self.units.start)..fraction(self.units.end)
    }
}

/// Everything that the tasks of a pass share.
pub(super) struct PassContext<'a> {
    pub inputs: &'a FitInputs<'a>,
    pub layout: &'a CoreLayout,
    pub parameters: &'a Parameters<'a>,
    /// For each block of a stratum, its replicas.
    pub replicas: &'a ExclusiveCells<BlockReplicas>,
    pub segment: &'a SegmentSettings<'a>,
    pub pass: &'a PartialPass<'a>,
    pub tasks: &'a RoundTasks,
    /// For each tensor block, the batches that it can have.
    pub batch_limits: &'a [TensorBatchLimit],
    /// Ends updates early.
    pub stop: &'a StopFlag,
}

/// Memory of one thread.
pub(super) struct ThreadScratch {
    pub kernel: BlockScratch,
    pub sample: SampleKernel,
    /// A replica of the core, for blocks of conflict-free classes.
    pub core_replica: AlignedVec,
}

impl PassContext<'_> {
    /// Returns the settings of a kernel call without core, batch limit and damping.
    pub(super) fn kernel_settings<'a>(
        &'a self,
        weight: f32,
        penalties: &'a [&'a [f32]],
        prior_means: &'a [&'a [f32]],
    ) -> BlockUpdateSettings<'a> {
        BlockUpdateSettings {
            level: self.inputs.level,
            eta: self.segment.eta,
            loss_weight: weight,
            regularizer: self.segment.regularizer,
            core_eta: 0.0,
            core_update_interval: 1,
            penalties,
            prior_means,
            batch_len: MAX_BATCH_LEN,
            max_batch_len: MAX_BATCH_LEN,
            curvature_direction: &[],
            curvature: 0.0,
            batch_range: 0.0..1.0,
            stop: self.stop,
        }
    }

    /// Returns the weights of the blocks' deltas in the merge at `position` among those of the pass.
    pub(super) fn delta_weights(&self, position: usize) -> DeltaWeights {
        if position >= self.pass.first_equal_merge {
            return DeltaWeights::Equal;
        }
        let merge = (self.pass.units.start * self.pass.strata.len() + position) as u64;
        let first = splitmix64(self.segment.stream_key ^ merge) % self.replicas.len() as u64;
        DeltaWeights::Sequential {
            first: first as usize,
        }
    }

    /// Returns the identifier of the random stream of a tensor block.
    pub(super) fn tensor_stream_id(&self, block: usize) -> [u64; 4] {
        self.stream_id(0, block)
    }

    /// Returns the identifier of the random stream of a block of matrix `m`.
    pub(super) fn matrix_stream_id(&self, m: usize, block: usize) -> [u64; 4] {
        self.stream_id(m + 1, block)
    }

    fn stream_id(&self, component: usize, block: usize) -> [u64; 4] {
        [
            self.inputs.options.seed ^ stream_ids::BLOCK,
            self.segment.stream_key,
            component as u64,
            block as u64,
        ]
    }
}
