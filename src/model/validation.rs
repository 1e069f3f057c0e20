//! The numbers that a model can have: what loading a file checks beyond the sizes of its sections.
//!
//! A file with right checksums may still hold any number. A model that passes has predictions that are finite or an error, and
//! everything that reads it can divide by its scales, add up its counts and print its history.

use super::factor_model::Model;
use super::factors::{ModelMatrix, ModelMode};
use super::fit_record::{EpochMetrics, FitEvent, FitOutcome, FitRecord};
use super::posterior_samples::{PosteriorSample, PosteriorSamples};
use crate::value_range::ValueRange;

/// Largest number of entries: a binary COO file has less than 2^63 bytes, and an entry takes at least 12.
const MAX_ENTRIES: u64 = 1 << 59;

/// Largest number of an epoch. Options allow fewer; epochs up to it are exact as `f64`.
pub(crate) const MAX_EPOCH: u64 = 1 << 53;

impl Model {
    /// Returns what is wrong with a number that no fit and no fold-in gives a model; `None` if there is none.
    pub(crate) fn invalid_number(&self) -> Option<String> {
        // A new field has to be considered here.
        let Model {
            shape: _,
            core: _,
            modes,
            matrices,
            mean,
            precision,
            weight_unit,
            range: ValueRange { min, max },
            clips: _,
            options: _,
            plan: _,
            history,
            record,
            orthogonal: _,
            samples,
            core_prior_mean,
        } = self;
        if !(is_value(*min) && is_value(*max) && min <= max) {
            return Some(format!(
                "the range of the training values is {min} to {max}"
            ));
        }
        if !self.is_finite() || !core_prior_mean.iter().all(|x| x.is_finite()) {
            return Some("it holds values that are not finite".into());
        }
        if !is_value(*mean) {
            return Some(format!("'mean' is {mean}"));
        }
        if !is_positive(*weight_unit) {
            return Some(format!("'weight_unit' is {weight_unit}"));
        }
        if !is_positive_if_any(*precision) {
            return Some(format!("'precision' is {}", precision.unwrap_or_default()));
        }
        let precisions = matrices.iter().map(|matrix| matrix.precision);
        for (m, precision) in precisions.enumerate() {
            if !is_positive_if_any(precision) {
                let precision = precision.unwrap_or_default();
                return Some(format!("'matrix{m}.precision' is {precision}"));
            }
        }
        let modes = modes.iter().enumerate();
        let matrices = matrices.iter().enumerate();
        modes
            .filter_map(|(n, mode)| invalid_mode(n, mode))
            .chain(matrices.filter_map(|(m, matrix)| invalid_matrix(m, matrix)))
            .chain(samples.as_ref().and_then(invalid_samples))
            .chain(history.iter().find_map(invalid_epoch))
            .chain(invalid_record(record))
            .next()
    }
}

/// Returns whether a number can be a value of a tensor or matrix: it is finite as `f32`.
fn is_value(x: f64) -> bool {
    (x as f32).is_finite()
}

fn is_positive(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

/// Returns whether a number is positive where there is one. The number that stands for none is chosen before it is compared: memcheck
/// would report a comparison of what an absent number has in its place.
fn is_positive_if_any(x: Option<f64>) -> bool {
    is_positive(std::hint::black_box(x.unwrap_or(1.0)))
}

/// Returns whether a number is finite and not negative.
fn is_magnitude(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

/// Returns whether a number is not negative. Errors that were not measured are NaN; those of diverged epochs may be infinite.
fn is_error(x: f64) -> bool {
    x.is_nan() || x >= 0.0
}

fn invalid_mode(n: usize, mode: &ModelMode) -> Option<String> {
    let ModelMode {
        rows: _,
        counts,
        weights,
        factor: _,
        biases: _,
        prior: _,
    } = mode;
    // So that sums of counts and bounds of histogram bins do not overflow.
    let entries = counts.iter().try_fold(0u64, |sum, &c| sum.checked_add(c));
    if entries.is_none_or(|entries| entries > MAX_ENTRIES) {
        return Some(format!(
            "mode{n}.counts add up to more than {MAX_ENTRIES} entries"
        ));
    }
    let is_valid = weights.iter().all(|&w| is_magnitude(w)) && mode.total_weight().is_finite();
    (!is_valid).then(|| format!("mode{n}.weights must be finite numbers, 0 or more"))
}

fn invalid_matrix(m: usize, matrix: &ModelMatrix) -> Option<String> {
    let ModelMatrix {
        mode: _,
        weight,
        penalty,
        kind: _,
        columns: _,
        factor: _,
        offsets: _,
        precision: _,
        weight_unit,
    } = matrix;
    if !is_positive(*weight_unit) {
        return Some(format!("'matrix{m}.weight_unit' is {weight_unit}"));
    }
    let coefficients = [*weight, std::hint::black_box(penalty.unwrap_or(0.0))];
    let number = coefficients.into_iter().find(|x| !is_magnitude(*x))?;
    Some(format!(
        "'matrix{m}' has {number}; weights and penalties are finite and 0 or more"
    ))
}

fn invalid_samples(samples: &PosteriorSamples) -> Option<String> {
    let PosteriorSamples {
        mean,
        scale,
        has_biases: _,
        conditional_mode: _,
        samples,
        noise_ratio,
        noise_factors,
        link: _,
        biases: _,
    } = samples;
    let is_valid_sample = |sample: &PosteriorSample| {
        let PosteriorSample {
            noise_deviation,
            core: _,
            modes: _,
            conditional_means: _,
            columns: _,
            weights,
            cold_bias,
            unseen_rows: _,
        } = sample;
        // The last number of a regression is a standard deviation.
        is_magnitude(*noise_deviation)
            && weights.iter().all(|&w| is_magnitude(w))
            && cold_bias.iter().all(|c| c.last().is_none_or(|&d| d >= 0.0))
    };
    let invalid = |what: &str| Some(format!("'{what}' of the samples has an invalid value"));
    if !is_value(*mean) {
        return invalid("mean");
    }
    if !(is_positive(*scale) && is_value(*scale)) {
        return invalid("scale");
    }
    if !is_positive(*noise_ratio) {
        return invalid("noise_ratio");
    }
    if !noise_factors.levels.is_sorted_by_key(|level| level.0) {
        return invalid("noise_levels");
    }
    if !samples.iter().all(|sample| is_valid_sample(sample)) {
        return Some("a posterior sample has a negative variance or weight".into());
    }
    None
}

fn invalid_epoch(metrics: &EpochMetrics) -> Option<String> {
    let EpochMetrics {
        epoch,
        eta,
        loss,
        train_rmse,
        test_rmse,
        valid_rmse,
        update_seconds,
        eval_seconds,
        entries_per_second,
    } = *metrics;
    let is_valid = epoch <= MAX_EPOCH
        && [eta, loss, train_rmse, test_rmse, valid_rmse]
            .into_iter()
            .all(is_error)
        && [update_seconds, eval_seconds, entries_per_second]
            .into_iter()
            .all(is_magnitude);
    (!is_valid).then(|| format!("the history of epoch {epoch} has a number that is not possible"))
}

fn invalid_record(record: &FitRecord) -> Option<String> {
    let FitRecord { events, outcome } = record;
    let is_early = |event: &FitEvent| event.epoch <= MAX_EPOCH;
    let is_possible = |outcome: &FitOutcome| {
        let FitOutcome {
            reason: _,
            epochs,
            best_epoch,
            train_rmse,
            test_rmse,
            valid_rmse,
            clipped: _,
            threads: _,
            kernel: _,
            update_seconds,
            eval_seconds,
            seconds,
            read_seconds,
            init_seconds,
            thread_shares,
        } = outcome;
        let seconds = [
            *update_seconds,
            *eval_seconds,
            *seconds,
            *read_seconds,
            *init_seconds,
        ];
        let shares = thread_shares.iter().map(|(_, share)| *share);
        [*epochs, *best_epoch].iter().all(|&e| e <= MAX_EPOCH)
            && [*train_rmse, *test_rmse, *valid_rmse]
                .into_iter()
                .all(is_error)
            && seconds.into_iter().chain(shares).all(is_magnitude)
    };
    let is_valid = events.iter().all(is_early) && outcome.as_ref().is_none_or(is_possible);
    (!is_valid).then(|| "the record of the fit has a number that is not possible".into())
}
