//! Errors and scores of the predictions of a model.
#![allow(unsafe_code)]

use super::arg::{SizedStruct, require_struct, struct_out, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::CooHandle;
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::model::{ModelHandle, with_entries};
use super::status::Failure;
use crate::predict::{evaluate, evaluate_distributions};

/// The errors of a model on a set of entries.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Evaluation {
    /// sizeof(s3cmtf_evaluation).
    pub size: u64,
    /// The number of entries. Without entries all errors are 0.
    pub entries: u64,
    /// The root-mean-square error of predictions that are not clipped.
    pub rmse: f64,
    /// The mean absolute error of predictions that are not clipped.
    pub mae: f64,
    /// The root-mean-square error of predictions that are clipped to the range of the training values.
    pub clipped_rmse: f64,
    /// The mean absolute error of predictions that are clipped to the range of the training values.
    pub clipped_mae: f64,
}

/// Scores of the predictive distributions of a model on a set of entries; lower is better. Values are treated as discrete, like
/// ratings or counts, if there are 2 to 32 distinct values, or up to 4,096 that occur 20 times on average. The probability of a
/// discrete value is that of the range between the midpoints to its neighbours. If only part of that range lies inside an
/// interval, the value counts as covered by the corresponding fraction of its probability.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DistributionScores {
    /// sizeof(s3cmtf_distribution_scores).
    pub size: u64,
    /// The number of entries. Without entries all scores are 0.
    pub entries: u64,
    /// The number of levels of the values; 0 if the values are continuous.
    pub levels: u64,
    /// The mean of -ln p, with p the predictive density of the value or the probability of its level.
    pub log_score: f64,
    /// The mean continuous ranked probability score, in the unit of the values.
    pub crps: f64,
    /// The fraction of the values inside their central 50% interval.
    pub coverage_50: f64,
    /// The fraction of the values inside their central 90% interval.
    pub coverage_90: f64,
    /// The mean width of the central 90% intervals.
    pub width_90: f64,
}

/// Scores of a model on entries with exactly two values, low and high. Entries count by weight.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BinaryScores {
    /// sizeof(s3cmtf_binary_scores).
    pub size: u64,
    /// The number of entries.
    pub entries: u64,
    /// The smaller value.
    pub low: f64,
    /// The larger value.
    pub high: f64,
    /// The fraction of the entries with the high value.
    pub high_fraction: f64,
    /// The area under the ROC curve: the probability that an entry of the high value has a larger prediction than one of the
    /// low value, where equal predictions count one half. Predictions are not clipped.
    pub auc: f64,
    /// The mean of -ln p, with p the predicted probability of the value. That of the high value is
    /// (prediction - low) / (high - low), limited to 0.000001 and 0.999999.
    pub log_loss: f64,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Evaluation, entries) == 8);
    assert!(offset_of!(Evaluation, rmse) == 16);
    assert!(offset_of!(Evaluation, clipped_mae) == 40);
    assert!(size_of::<Evaluation>() == 48);
    assert!(offset_of!(DistributionScores, entries) == 8);
    assert!(offset_of!(DistributionScores, log_score) == 24);
    assert!(offset_of!(DistributionScores, width_90) == 56);
    assert!(size_of::<DistributionScores>() == 64);
    assert!(offset_of!(BinaryScores, entries) == 8);
    assert!(offset_of!(BinaryScores, auc) == 40);
    assert!(size_of::<BinaryScores>() == 56);
};

// SAFETY: `repr(C)`, the size first, numbers only.
unsafe impl SizedStruct for Evaluation {}
// SAFETY: the same.
unsafe impl SizedStruct for DistributionScores {}
// SAFETY: the same.
unsafe impl SizedStruct for BinaryScores {}

/// Predicts every entry of `coo` and writes the errors. `threads` 0 means all CPUs that the process may use; `cancel` may
/// be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_evaluate(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    threads: u64,
    cancel: Option<&CancelHandle>,
    evaluation: *mut Evaluation,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, entries) = with_entries(model, coo)?;
        let view = entries.view();
        // SAFETY: a struct of the caller, for this call; rejected before the work.
        unsafe { require_struct(evaluation, "evaluation") }?;
        let threads = self::threads(threads, "threads")?;
        let found = evaluate(model, &view, model.range(), threads, &Token(cancel))?;
        let own = Evaluation {
            size: size_of::<Evaluation>() as u64,
            entries: view.len() as u64,
            rmse: found.unclipped.rmse,
            mae: found.unclipped.mae,
            clipped_rmse: found.clipped.rmse,
            clipped_mae: found.clipped.mae,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, evaluation, "evaluation") }
    })
}

/// Predicts every entry of `coo` and writes the scores of the predictions. Entries of positive weight that do not have exactly two
/// values are S3CMTF_BAD_ARGUMENT. `threads` 0 means all CPUs that the process may use; `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_evaluate_binary(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    threads: u64,
    cancel: Option<&CancelHandle>,
    scores: *mut BinaryScores,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, entries) = with_entries(model, coo)?;
        let view = entries.view();
        // SAFETY: a struct of the caller, for this call; rejected before the work.
        unsafe { require_struct(scores, "scores") }?;
        let threads = self::threads(threads, "threads")?;
        let found = evaluate(model, &view, model.range(), threads, &Token(cancel))?;
        let Some(binary) = found.binary else {
            let name = view.name();
            return Err(Failure::argument(format!(
                "{name}: AUC and log loss need entries with exactly two values"
            )));
        };
        let own = BinaryScores {
            size: size_of::<BinaryScores>() as u64,
            entries: view.len() as u64,
            low: binary.low,
            high: binary.high,
            high_fraction: binary.high_fraction,
            auc: binary.auc,
            log_loss: binary.log_loss,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, scores, "scores") }
    })
}

/// Predicts the distribution of every entry of `coo` and writes the scores. A model without posterior samples is
/// S3CMTF_BAD_ARGUMENT. `threads` 0 means all CPUs that the process may use; `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_evaluate_distributions(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    threads: u64,
    cancel: Option<&CancelHandle>,
    scores: *mut DistributionScores,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, entries) = with_entries(model, coo)?;
        let view = entries.view();
        // SAFETY: a struct of the caller, for this call; rejected before the work.
        unsafe { require_struct(scores, "scores") }?;
        let threads = self::threads(threads, "threads")?;
        let found = evaluate_distributions(model, &view, threads, &Token(cancel))?.all;
        let own = DistributionScores {
            size: size_of::<DistributionScores>() as u64,
            entries: view.len() as u64,
            levels: found.levels as u64,
            log_score: found.log_score,
            crps: found.crps,
            coverage_50: found.coverage_50,
            coverage_90: found.coverage_90,
            width_90: found.width_90,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, scores, "scores") }
    })
}
