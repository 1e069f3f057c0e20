//! The settings of a segment of an epoch, measured on the model at its start.

use super::batch_limit::{MatrixBatchLimit, matrix_batch_limits};
use super::class_groups::{core_update_period, max_group_blocks};
use super::config::{EpochArguments, FitInputs};
use super::core_merge::CoreMerge;
use super::curvature::Curvature;
use super::curvature_basis::{CurvatureBasis, EntryCounts, SteepestDirection};
use super::replica_divergence::DivergenceSample;
use crate::error::Result;
use crate::kernel::{CoreKind, CoreLayout, CoreShape, Regularizer};
use crate::random::hash_words;
use crate::solver::data::Data;
use crate::solver::sgd::outer_updates::regularizer;

/// The settings of a segment of an epoch.
pub(super) struct SegmentSettings<'a> {
    pub eta: f32,
    pub core_eta: f32,
    /// Identifies the random streams of the epoch.
    pub stream_id: &'a [u64],
    /// Hash of `stream_id`.
    pub stream_key: u64,
    /// For each mode, the penalty of each row per entry.
    pub penalties: Vec<&'a [f32]>,
    /// For each mode, the row that penalties shrink to.
    pub prior_means: Vec<&'a [f32]>,
    /// For each matrix, its layout.
    pub matrix_layouts: Vec<CoreLayout>,
    /// For each matrix, its longest stable batches.
    pub matrix_batch_limits: Vec<MatrixBatchLimit>,
    /// The direction of the fiber mode's rows with the highest curvature.
    pub fiber_steepest: SteepestDirection,
    pub divergence_sample: DivergenceSample,
    pub regularizer: Regularizer,
    pub curvature: Curvature,
    pub core_merge: CoreMerge,
    /// Largest number of blocks of a group of a conflict-free class.
    pub max_group_blocks: usize,
    /// Number of entries per update of a full core, for blocks of conflict-free classes.
    pub core_update_period: usize,
}

impl<'a> SegmentSettings<'a> {
    /// Derives the settings from the curvature.
    pub(super) fn new(
        epoch: &EpochArguments<'a>,
        curvature: Curvature,
    ) -> Result<SegmentSettings<'a>> {
        let EpochArguments {
            inputs,
            layout,
            shape,
            parameters,
            eta,
            stream_id,
        } = *epoch;
        let FitInputs { data, plan, .. } = inputs;
        let core_eta = eta * data.core_eta_scale;
        Ok(SegmentSettings {
            eta: eta as f32,
            core_eta: core_eta as f32,
            stream_id,
            stream_key: hash_words(stream_id),
            penalties: data.row_penalty.iter().map(Vec::as_slice).collect(),
            prior_means: data.prior_means.iter().map(Vec::as_slice).collect(),
            matrix_layouts: data
                .matrices
                .iter()
                .map(|m| CoreLayout::matrix(m.rank))
                .collect(),
            matrix_batch_limits: matrix_batch_limits(&curvature, eta),
            fiber_steepest: match plan.blocking.fiber_mode {
                Some(f) => curvature.rows[f].steepest(),
                None => SteepestDirection {
                    direction: Vec::new(),
                    fraction: 0.0,
                },
            },
            divergence_sample: DivergenceSample::new(parameters, data, layout, shape),
            regularizer: regularizer(inputs.options),
            core_merge: core_merge(inputs, layout, shape, &curvature)?,
            max_group_blocks: max_group_blocks(layout.slab_count() * layout.slab_len()),
            core_update_period: core_update_period(&curvature, core_eta),
            curvature,
        })
    }

    /// Returns the factors that merge core deltas of so many entries.
    pub(super) fn core_merge_factors(&self, data: &Data, entries: EntryCounts) -> Vec<f32> {
        self.core_merge
            .factors(self.core_eta, data.core_penalty as f32, entries)
    }
}

/// Prepares the merge of core replicas, whose modes are in the order of `layout`.
fn core_merge(
    inputs: &FitInputs<'_>,
    layout: &CoreLayout,
    shape: &CoreShape,
    curvature: &Curvature,
) -> Result<CoreMerge> {
    let order = layout.mode_order();
    let bases: Vec<&CurvatureBasis> = match shape.kind() {
        CoreKind::Full => order.iter().map(|&n| &curvature.core[n]).collect(),
        CoreKind::Diagonal => curvature.core.iter().collect(),
    };
    CoreMerge::new(inputs.level, &layout.permuted_shape(shape), &bases)
}
