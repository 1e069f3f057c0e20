//! Scores of predictions for values that are one of two, such as 0 and 1.

use crate::error::Result;
use crate::format::CooView;
use crate::progress::{Monitor, StepPolls};

/// Predicted probabilities are at least this, and at most 1 less this, in the log loss.
pub const MIN_PROBABILITY: f64 = 1e-6;

/// Scores of predictions on entries with exactly two values, low and high. Entries count by weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryScores {
    /// The smaller value.
    pub low: f64,
    /// The larger value.
    pub high: f64,
    /// Area under the ROC curve: the probability that a random entry of the high value has a larger prediction than a
    /// random entry of the low value, where equal predictions count one half. Predictions are not clipped.
    pub auc: f64,
    /// Mean of -ln p, with p the predicted probability of the value. That of the high value is
    /// (prediction - low) / (high - low), limited to [`MIN_PROBABILITY`] and 1 - [`MIN_PROBABILITY`].
    pub log_loss: f64,
    /// Fraction of the entries with the high value.
    pub high_fraction: f64,
}

/// The two values of entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TwoValues {
    pub low: f64,
    pub high: f64,
}

impl TwoValues {
    /// Returns the values of the entries of positive weight; `None` unless there are exactly two.
    pub(super) fn of(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Option<TwoValues>> {
        let mut range: Option<(f64, f64)> = None;
        let mut polls = StepPolls::new(monitor, 1);
        for i in 0..view.len() {
            polls.step()?;
            if view.weight(i)? == Some(0.0) {
                continue;
            }
            let value = view.values().get(i);
            range = match range {
                None => Some((value, value)),
                Some((low, high)) if value == low || value == high => range,
                Some((low, high)) if low == high => Some((low.min(value), low.max(value))),
                Some(_) => return Ok(None),
            };
        }
        let two = range.filter(|(low, high)| low < high && low.is_finite() && high.is_finite());
        Ok(two.map(|(low, high)| TwoValues { low, high }))
    }

    /// Returns the predicted probability of the high value.
    pub(super) fn probability(self, prediction: f64) -> f64 {
        // Halves do not overflow.
        let range = 0.5 * self.high - 0.5 * self.low;
        let probability = (0.5 * prediction - 0.5 * self.low) / range;
        probability.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    }
}

/// The prediction for an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoredEntry {
    pub prediction: f64,
    /// The weight of the entry, negative if its value is the low one.
    pub signed_weight: f64,
}

/// Computes the scores of entries of both values.
pub(super) fn binary_scores(values: TwoValues, mut entries: Vec<ScoredEntry>) -> BinaryScores {
    // In the order of the entries, so that the sums do not depend on the sort.
    let (mut log_loss, mut low_weight, mut high_weight) = (0.0, 0.0, 0.0);
    for e in &entries {
        let probability = values.probability(e.prediction);
        if e.signed_weight > 0.0 {
            high_weight += e.signed_weight;
            log_loss -= e.signed_weight * probability.ln();
        } else {
            low_weight -= e.signed_weight;
            log_loss += e.signed_weight * (1.0 - probability).ln();
        }
    }
    entries.sort_by(|a, b| a.prediction.total_cmp(&b.prediction));
    // Weight of the pairs in which the entry of the high value has the larger prediction.
    let (mut ordered, mut low_below) = (0.0, 0.0);
    for ties in entries.chunk_by(|a, b| a.prediction == b.prediction) {
        let weights = ties.iter().map(|e| e.signed_weight);
        let high: f64 = weights.clone().filter(|w| *w > 0.0).sum();
        let low: f64 = -weights.filter(|w| *w < 0.0).sum::<f64>();
        ordered += high * (low_below + 0.5 * low);
        low_below += low;
    }
    let total = low_weight + high_weight;
    BinaryScores {
        low: values.low,
        high: values.high,
        auc: ordered / (low_weight * high_weight),
        log_loss: log_loss / total,
        high_fraction: high_weight / total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;
    use crate::random::RandomStream;

    const ZERO_ONE: TwoValues = TwoValues {
        low: 0.0,
        high: 1.0,
    };

    #[test]
    fn the_auc_counts_ordered_pairs_and_half_of_the_ties() {
        let mut s = RandomStream::new(&[5]);
        let entries: Vec<ScoredEntry> = (0..300)
            .map(|_| {
                let is_high = s.uniform() < 0.3;
                let weight = 1.0 + s.below(3) as f64;
                ScoredEntry {
                    // Few distinct predictions, so that there are ties.
                    prediction: (s.below(20) + 4 * u64::from(is_high)) as f64 / 24.0,
                    signed_weight: if is_high { weight } else { -weight },
                }
            })
            .collect();
        let (mut ordered, mut pairs) = (0.0, 0.0);
        for a in entries.iter().filter(|e| e.signed_weight > 0.0) {
            for b in entries.iter().filter(|e| e.signed_weight < 0.0) {
                let weight = -a.signed_weight * b.signed_weight;
                pairs += weight;
                if a.prediction == b.prediction {
                    ordered += 0.5 * weight;
                } else if a.prediction > b.prediction {
                    ordered += weight;
                }
            }
        }
        let found = binary_scores(ZERO_ONE, entries).auc;
        assert!((found - ordered / pairs).abs() < 1e-12 && found > 0.5);
    }

    #[test]
    fn the_log_loss_is_that_of_the_predicted_probabilities() {
        let values = TwoValues {
            low: -1.0,
            high: 3.0,
        };
        // Probabilities 0.25, 0.75, and two that are limited.
        let entries = [(0.0, -1.0), (2.0, 2.0), (9.0, 1.0), (-9.0, 1.0)];
        let entries = entries.map(|(prediction, signed_weight)| ScoredEntry {
            prediction,
            signed_weight,
        });
        let found = binary_scores(values, entries.to_vec());
        let expected = -(3.0 * 0.75f64.ln() + (1.0 - MIN_PROBABILITY).ln() + MIN_PROBABILITY.ln());
        assert!((found.log_loss - expected / 5.0).abs() < 1e-12);
        assert_eq!(
            (found.low, found.high, found.high_fraction),
            (-1.0, 3.0, 0.8)
        );
        assert_eq!(found.auc, 0.75);
    }

    #[test]
    fn only_exactly_two_values_are_binary() {
        let of = |values: &[f64]| {
            let column: Vec<u32> = (0..values.len() as u32).collect();
            let dims = [values.len() as u64 + 1; 2];
            let view = CooView::new("t", &dims, &[&column, &column], Values::F64(values));
            TwoValues::of(&view.unwrap(), &()).unwrap()
        };
        assert_eq!(of(&[1.0, 0.0, 1.0, 0.0]), Some(ZERO_ONE));
        assert_eq!(of(&[2.0, 1.0]).map(|v| (v.low, v.high)), Some((1.0, 2.0)));
        assert_eq!(of(&[0.0, 1.0, 2.0]), None);
        assert_eq!(of(&[1.0, 1.0]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0.0, f64::NAN, 0.0]), None);
    }
}
