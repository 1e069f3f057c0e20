//! Predictions of a model at given positions, and their errors.
//!
//! A fitted [`Model`](crate::model::Model) enters, with the positions to predict: the entries of a COO view, or a closure
//! that writes indices. Predictions leave in order, in pieces that a callback takes on the calling thread.
//!
//! - [`predict_entries`], [`predict_at`]: point predictions.
//! - [`predict_intervals`], [`predict_intervals_at`]: predictive means, standard deviations and quantiles, of models with
//!   posterior samples.
//! - [`evaluate`]: RMSE and MAE on observed entries, and AUC and log loss of two values; [`evaluate_distributions`]: log score, CRPS and coverage of
//!   intervals.
//! - [`export`]: factors and core as plain files.
//!
//! Start with `predictions.rs`. `parallel_chunks.rs` holds the loop that all of them share.

mod binary_scores;
mod distribution_scores;
mod evaluate;
mod export;
mod intervals;
mod parallel_chunks;
mod predictions;
mod unseen_variance;

pub use binary_scores::{BinaryScores, MIN_PROBABILITY};
pub use distribution_scores::{
    DistributionEvaluation, DistributionScores, RowLengthGroup, evaluate_distributions,
};
pub use evaluate::{ErrorMetrics, Evaluation, evaluate};
pub use export::{MAX_EXPORTED_TEXT, export};
pub use intervals::{PredictiveDistribution, predict_intervals, predict_intervals_at};
pub(crate) use intervals::{quantile_predictor, require_samples};
pub(crate) use parallel_chunks::check_prediction;
pub use predictions::{PredictOptions, predict_at, predict_entries};
