//! The interval between merges of replicas, which is adapted from pass to pass.
//!
//! Blocks that work on their own for long each find a model of their own, and the average of two models is no model. So
//! replicas must be merged before they diverge, and often while the error still falls fast. An epoch therefore consists of
//! one or more partial passes over all strata, each with a fraction of every block's entries.

use super::plan::BlockingPlan;
use super::replica_divergence::prediction_variance;
use super::replicas::BlockReplicas;
use crate::kernel::ConflictFreeClasses;
use crate::options::Options;
use crate::solver::algorithm_state::{NamedFields, StateField};
use crate::solver::data::Data;

/// Number of units into which partial passes divide the entries of a block: the resolution of their limits.
pub(super) const UNITS_PER_BLOCK: usize = 1 << 10;

/// Divergence, as a fraction of the mean squared error, above which replicas are merged more often.
const HIGH_DIVERGENCE: f64 = 0.006;

/// Divergence below which replicas are merged less often.
const LOW_DIVERGENCE: f64 = 0.0035;

/// Relative decreases of the mean squared error per pass that shorten and lengthen the interval.
struct DecreaseLimits {
    /// Above, replicas are merged more often.
    fast: f64,
    /// Below, replicas are merged less often.
    slow: f64,
}

/// While a block has many entries between two merges, which then cost little.
const LONG_INTERVAL: DecreaseLimits = DecreaseLimits {
    fast: 0.01,
    slow: 0.003,
};

/// For short intervals, whose merges cost as much as the updates between them.
const SHORT_INTERVAL: DecreaseLimits = DecreaseLimits {
    fast: 0.03,
    slow: 0.01,
};

/// Factors by which the number of passes grows and shrinks.
const PASS_GROWTH: usize = 4;
const PASS_SHRINKAGE: usize = 2;

/// Passes per epoch at most if the initialization is also the prior mean: more do not lower its error.
const MAX_PASSES_WITH_PRIOR_MEAN: usize = 2;

/// Entries that a block should process between two merges.
const MIN_ENTRIES_BETWEEN_MERGES: usize = 128;

/// Multiple of that number from which on an interval is long.
const LONG_INTERVAL_FACTOR: usize = 4;

/// Entries of a block between two measurements of its curvature, and of the divergence of its replicas. Each measurement takes
/// as long as the updates of about a hundred entries.
pub(super) const ENTRIES_PER_MEASUREMENT: usize = 1024;

/// Entries that the classes of a pass should have on average.
const MIN_CLASS_ENTRIES_PER_PASS: usize = 4096;

/// State of `blocked` between two epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BlockedState {
    /// Number of partial passes of the next epoch, if that many are possible. Replicas are merged at least once per pass.
    pub passes_per_epoch: u64,
    /// Mean squared error of the last pass.
    pub last_pass_error: f64,
    /// Divergence of the replicas in the last pass, as a fraction of it.
    pub last_pass_divergence: f64,
    /// Fraction of an epoch between two measurements of the curvature.
    pub curvature_interval: f64,
}

impl Default for BlockedState {
    /// Returns the state before the first epoch. Replicas diverge fastest at the start, and the curvature changes fastest, so
    /// both intervals begin with their shortest length.
    fn default() -> Self {
        BlockedState {
            passes_per_epoch: u64::MAX,
            last_pass_error: f64::INFINITY,
            last_pass_divergence: 0.0,
            curvature_interval: 0.0,
        }
    }
}

impl NamedFields for BlockedState {
    fn fields(&mut self) -> Vec<(&'static str, StateField<'_>)> {
        vec![
            ("sweeps", StateField::Integer(&mut self.passes_per_epoch)),
            ("sweep_error", StateField::Real(&mut self.last_pass_error)),
            (
                "pass_divergence",
                StateField::Real(&mut self.last_pass_divergence),
            ),
            (
                "curvature_interval",
                StateField::Real(&mut self.curvature_interval),
            ),
        ]
    }

    fn invalid_field(&self) -> Option<&'static str> {
        let is_error = |x: f64| x.is_nan() || x >= 0.0;
        let (passes, interval) = (self.passes_per_epoch, self.curvature_interval);
        let is_initial = passes == BlockedState::default().passes_per_epoch;
        let fields = [
            ("sweeps", passes.is_power_of_two() || is_initial),
            ("sweep_error", is_error(self.last_pass_error)),
            ("pass_divergence", is_error(self.last_pass_divergence)),
            (
                "curvature_interval",
                interval.is_finite() && interval >= 0.0,
            ),
        ];
        let invalid = fields.into_iter().find(|(_, is_valid)| !is_valid);
        invalid.map(|(name, _)| name)
    }
}

/// The current interval between merges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct MergeInterval {
    /// Number of partial passes per epoch: a power of two.
    pub passes_per_epoch: usize,
    /// Mean squared error of the last pass.
    pub last_error: f64,
    /// Divergence of the replicas in the last pass, as a fraction of the mean squared error.
    pub last_divergence: f64,
    /// Units between two measurements of the curvature.
    pub curvature_units: f64,
}

impl From<BlockedState> for MergeInterval {
    fn from(state: BlockedState) -> Self {
        MergeInterval {
            passes_per_epoch: state.passes_per_epoch as usize,
            last_error: state.last_pass_error,
            last_divergence: state.last_pass_divergence,
            curvature_units: state.curvature_interval * UNITS_PER_BLOCK as f64,
        }
    }
}

impl From<MergeInterval> for BlockedState {
    fn from(interval: MergeInterval) -> Self {
        BlockedState {
            passes_per_epoch: interval.passes_per_epoch as u64,
            last_pass_error: interval.last_error,
            last_pass_divergence: interval.last_divergence,
            curvature_interval: interval.curvature_units / UNITS_PER_BLOCK as f64,
        }
    }
}

/// Measurements of one pass.
#[derive(Default)]
pub(super) struct PassStatistics {
    /// Sum over merges of the variance of predictions between replicas.
    divergence: f64,
    /// Number of these merges.
    merges: f64,
    /// Weighted sum of squared errors.
    pub squared_error: f64,
    /// Sum of the weights of the entries.
    total_weight: f64,
}

impl PassStatistics {
    /// Adds a merge of replicas that saw too few entries to diverge.
    pub(super) fn add_merge(&mut self, squared_error: f64, total_weight: f64) {
        self.merges += 1.0;
        self.squared_error += squared_error;
        self.total_weight += total_weight;
    }

    /// Adds the measurements of all blocks at a merge.
    pub(super) fn add_replicas<'a>(
        &mut self,
        replicas: impl Iterator<Item = &'a BlockReplicas> + Clone,
    ) {
        let predictions = replicas.clone().map(|r| r.sample_predictions.as_slice());
        let predictions: Vec<&[f32]> = predictions.collect();
        if !predictions[0].is_empty() {
            self.divergence += prediction_variance(&predictions);
            self.merges += 1.0;
        }
        for block in replicas {
            self.squared_error += block.squared_error;
            self.total_weight += block.total_weight;
        }
    }
}

/// Returns the largest number of passes per epoch with which a block still has entries between two merges.
pub(super) fn max_passes_per_epoch(data: &Data, plan: &BlockingPlan, options: &Options) -> usize {
    if let Some(classes) = data.tensor.classes() {
        return max_passes_over_classes(classes);
    }
    let entries = data.tensor.len() / plan.blocking.block_count() * plan.strata_per_merge;
    let max_passes = power_of_two_below(entries / MIN_ENTRIES_BETWEEN_MERGES);
    if options.start.defines_prior_mean() {
        // The replicated parameters stay near their prior mean, so replicas hardly diverge.
        max_passes.min(MAX_PASSES_WITH_PRIOR_MEAN)
    } else {
        max_passes
    }
}

fn max_passes_over_classes(classes: &ConflictFreeClasses) -> usize {
    let mean_class = classes.len() / classes.count().max(1);
    power_of_two_below(mean_class / MIN_CLASS_ENTRIES_PER_PASS)
}

/// Returns the largest power of two that is at most `x`, between 1 and [`UNITS_PER_BLOCK`].
fn power_of_two_below(x: usize) -> usize {
    1 << x.clamp(1, UNITS_PER_BLOCK).ilog2()
}

impl MergeInterval {
    /// Whether replicas differ so little that merges may keep the noise of one of them: it adds up to the divergence to the
    /// mean squared error.
    pub(super) fn tolerates_noise(&self) -> bool {
        self.last_divergence < HIGH_DIVERGENCE
    }

    /// Adapts the interval after a pass: shorter if replicas diverged or the error fell fast, longer if neither.
    pub(super) fn adapt(&mut self, pass: &PassStatistics, max_passes: usize) {
        let error = (pass.squared_error / pass.total_weight).max(f64::MIN_POSITIVE);
        let divergence = pass.divergence / pass.merges.max(1.0) / error;
        let decrease = 1.0 - error / self.last_error;
        (self.last_error, self.last_divergence) = (error, divergence);
        let passes = self.passes_per_epoch.min(max_passes);
        let max_long = (max_passes / LONG_INTERVAL_FACTOR).max(1);
        let slow = if passes > max_long {
            SHORT_INTERVAL.slow
        } else {
            LONG_INTERVAL.slow
        };
        if divergence > HIGH_DIVERGENCE || decrease > SHORT_INTERVAL.fast {
            self.passes_per_epoch = (passes * PASS_GROWTH).min(max_passes);
        } else if decrease > LONG_INTERVAL.fast && passes < max_long {
            self.passes_per_epoch = (passes * PASS_GROWTH).min(max_long);
        } else if divergence < LOW_DIVERGENCE && decrease < slow {
            self.passes_per_epoch = (passes / PASS_SHRINKAGE).max(1);
        }
    }
}
