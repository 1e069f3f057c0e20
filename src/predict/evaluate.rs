//! Errors of predictions on observed entries.

use super::binary_scores::{BinaryScores, ScoredEntry, TwoValues, binary_scores};
use super::parallel_chunks::{ChunkRun, Positions, check_prediction};
use crate::error::Result;
use crate::format::CooView;
use crate::model::{Predict, check_order};
use crate::progress::Monitor;
use crate::try_alloc::try_with_capacity;
use crate::value_range::ValueRange;

/// Error metrics over entries with values x, predictions p and weights w (1 without weights).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorMetrics {
    /// Root mean squared error: sqrt(sum w (x - p)^2 / sum w).
    pub rmse: f64,
    /// Mean absolute error: sum w |x - p| / sum w.
    pub mae: f64,
}

/// Errors of a model on observed entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Errors of the predictions as they are.
    pub unclipped: ErrorMetrics,
    /// Errors of the predictions clipped to a range.
    pub clipped: ErrorMetrics,
    /// The number of entries, without those of weight 0.
    pub count: u64,
    /// Scores of entries with exactly two values, such as 0 and 1; `None` for others.
    pub binary: Option<BinaryScores>,
}

/// Sums over entries, in double precision and chunk by chunk.
#[derive(Default)]
struct ErrorSums {
    unclipped: WeightedErrors,
    clipped: WeightedErrors,
    weight: f64,
    count: f64,
    /// The predictions, if there are two values.
    scored: Vec<ScoredEntry>,
}

#[derive(Default)]
struct WeightedErrors {
    squared: f64,
    absolute: f64,
}

impl WeightedErrors {
    fn add(&mut self, weight: f64, error: f64) {
        self.squared += weight * (error * error);
        self.absolute += weight * error.abs();
    }

    fn add_sums(&mut self, other: &WeightedErrors) {
        self.squared += other.squared;
        self.absolute += other.absolute;
    }

    fn metrics(&self, weight: f64) -> ErrorMetrics {
        ErrorMetrics {
            rmse: (self.squared / weight).sqrt(),
            mae: self.absolute / weight,
        }
    }
}

/// Predicts every entry of `view` and compares the predictions with the values.
///
/// `clip` is the range of the clipped predictions, usually that of the training values. 0 threads means all that this
/// process may use; the errors do not depend on the number. Entries with weights count by weight. Without entries the
/// errors are 0.
pub fn evaluate(
    model: &impl Predict,
    view: &CooView<'_>,
    clip: ValueRange,
    threads: usize,
    monitor: &dyn Monitor,
) -> Result<Evaluation> {
    if let Some(order) = model.predicted_order() {
        check_order(order, view)?;
    }
    let two_values = TwoValues::of(view, monitor)?;
    let mut totals = ErrorSums {
        scored: try_with_capacity(two_values.map_or(0, |_| view.len()), "entries")?,
        ..ErrorSums::default()
    };
    let run = ChunkRun {
        threads,
        phase: "evaluating",
        monitor,
    };
    run.predict(
        model,
        &Positions::of_entries(view),
        |sums: &mut ErrorSums, i, prediction| {
            let value = view.values().get(i);
            let weight = view.weight(i)?.unwrap_or(1.0);
            if weight == 0.0 {
                return Ok(());
            }
            check_prediction(i, prediction)?;
            sums.weight += weight;
            sums.count += 1.0;
            sums.unclipped.add(weight, value - prediction);
            let clipped = prediction.clamp(clip.min, clip.max);
            sums.clipped.add(weight, value - clipped);
            if let Some(TwoValues { high, .. }) = two_values {
                sums.scored.push(ScoredEntry {
                    prediction,
                    signed_weight: if value == high { weight } else { -weight },
                });
            }
            Ok(())
        },
        |_, sums| {
            totals.unclipped.add_sums(&sums.unclipped);
            totals.clipped.add_sums(&sums.clipped);
            totals.weight += sums.weight;
            totals.count += sums.count;
            totals.scored.extend_from_slice(&sums.scored);
            Ok(())
        },
    )?;
    let weight = if totals.count > 0.0 {
        totals.weight
    } else {
        1.0
    };
    Ok(Evaluation {
        unclipped: totals.unclipped.metrics(weight),
        clipped: totals.clipped.metrics(weight),
        count: totals.count as u64,
        binary: two_values.map(|values| binary_scores(values, totals.scored)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::format::Values;
    use crate::predict::parallel_chunks::CHUNK_POSITIONS;

    fn value_range(min: f64, max: f64) -> ValueRange {
        ValueRange { min, max }
    }

    struct IndexSum;

    impl Predict for IndexSum {
        fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
            Ok(|index: &[u32]| index.iter().map(|&i| f64::from(i)).sum())
        }
    }

    /// Calls `test` with entries on the diagonal of a matrix. Their indices repeat 0 to 99.
    fn with_diagonal(values: &[f64], test: impl Fn(&CooView<'_>)) {
        let column: Vec<u32> = (0..values.len() as u32).map(|i| i % 100).collect();
        test(&CooView::new("t", &[100, 100], &[&column, &column], Values::F64(values)).unwrap());
    }

    #[test]
    fn entries_of_another_order_are_an_error() {
        struct Order3;
        impl Predict for Order3 {
            fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
                Ok(|index: &[u32]| f64::from(index[2]))
            }

            fn predicted_order(&self) -> Option<usize> {
                Some(3)
            }
        }
        with_diagonal(&[1.0], |view| {
            let e = evaluate(&Order3, view, ValueRange::UNBOUNDED, 1, &()).err();
            let message = e.unwrap().to_string();
            assert!(
                message.contains("has 2 modes, the model has 3"),
                "{message}"
            );
        });
    }

    #[test]
    fn errors_match_their_definitions() {
        let columns: [&[u32]; 2] = [&[1, 2, 3], &[1, 2, 3]];
        let view = CooView::new("t", &[9, 9], &columns, Values::F64(&[2.0, 5.0, 4.0])).unwrap();
        let e = evaluate(&IndexSum, &view, value_range(0.0, 4.0), 1, &()).unwrap();
        assert_eq!(
            (e.unclipped.rmse, e.unclipped.mae, e.count),
            ((5.0f64 / 3.0).sqrt(), 1.0, 3)
        );
        assert_eq!(
            (e.clipped.rmse, e.clipped.mae),
            ((1.0f64 / 3.0).sqrt(), 1.0 / 3.0)
        );
    }

    #[test]
    fn errors_are_independent_of_the_thread_count() {
        let values: Vec<f64> = (0..4 * CHUNK_POSITIONS + 77)
            .map(|i| 99.0 / i.max(1) as f64)
            .collect();
        with_diagonal(&values, |view| {
            let one = evaluate(&IndexSum, view, value_range(3.0, 60.0), 1, &()).unwrap();
            assert!(one.clipped.rmse < one.unclipped.rmse && one.count == values.len() as u64);
            for threads in [0, 2, 5] {
                assert_eq!(
                    evaluate(&IndexSum, view, value_range(3.0, 60.0), threads, &()).unwrap(),
                    one
                );
            }
        });
    }

    #[test]
    fn the_first_value_that_is_not_finite_is_reported() {
        let mut values = vec![1.0; 5 * CHUNK_POSITIONS];
        let first = 2 * CHUNK_POSITIONS - 1;
        // The bad values of later chunks are at their beginning, so that they are found sooner.
        for i in [
            first,
            2 * CHUNK_POSITIONS,
            3 * CHUNK_POSITIONS,
            4 * CHUNK_POSITIONS,
        ] {
            values[i] = f64::NAN;
        }
        with_diagonal(&values, |view| {
            let expected = view.not_finite(first, "value", f64::NAN).to_string();
            for threads in [1, 2, 5] {
                let e = evaluate(&IndexSum, view, value_range(0.0, 1.0), threads, &()).unwrap_err();
                assert_eq!(e.to_string(), expected);
            }
        });
    }

    #[test]
    fn cancellation_stops_the_evaluation() {
        struct Cancelled;
        impl Monitor for Cancelled {
            fn cancelled(&self) -> bool {
                true
            }
        }
        with_diagonal(&vec![1.0; 3 * CHUNK_POSITIONS], |view| {
            let result = evaluate(&IndexSum, view, value_range(0.0, 1.0), 2, &Cancelled);
            assert!(matches!(result, Err(Error::Cancelled)));
        });
    }
}
