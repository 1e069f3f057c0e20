//! How far predictions are from listed values.

use super::chunks::{cells_of, predict_chunks};
use crate::error::Result;
use crate::format::CooView;
use crate::model::Predict;
use crate::progress::Monitor;

/// Sizes of errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

/// Errors of a model on listed entries, by weight if those have weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Of predictions as they are.
    pub plain: Errors,
    /// Of predictions clipped to a range.
    pub clipped: Errors,
    /// The number of entries, without those of weight 0.
    pub count: u64,
}

/// Predicts every entry of `view` on `threads` threads and compares; `clip` is the range for the
/// clipped errors, usually that of the training values. 0 threads means all this process may use; the
/// errors do not depend on the number. Where entries have weights, squared and absolute errors count by
/// weight. Without entries errors are 0.
pub fn evaluate(
    model: &impl Predict,
    view: &CooView<'_>,
    clip: (f64, f64),
    threads: usize,
    monitor: &dyn Monitor,
) -> Result<Evaluation> {
    // Squared and absolute errors, as they are and clipped, weights, and entries; summed chunk by chunk in
    // f64, so that the result does not drift with the count.
    let mut totals = [0.0f64; 6];
    predict_chunks(
        model,
        &cells_of(view),
        threads,
        "evaluating",
        monitor,
        |sums: &mut [f64; 6], i, x| {
            let value = view.values().get(i);
            if !value.is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            let weight = view.weight(i)?.unwrap_or(1.0);
            if weight == 0.0 {
                return Ok(());
            }
            sums[4] += weight;
            sums[5] += 1.0;
            for (k, error) in [value - x, value - x.clamp(clip.0, clip.1)]
                .into_iter()
                .enumerate()
            {
                sums[2 * k] += weight * (error * error);
                sums[2 * k + 1] += weight * error.abs();
            }
            Ok(())
        },
        |_, sums| {
            totals.iter_mut().zip(sums).for_each(|(t, s)| *t += s);
            Ok(())
        },
    )?;
    let weight = if totals[5] > 0.0 { totals[4] } else { 1.0 };
    let errors = |k: usize| Errors {
        rmse: (totals[2 * k] / weight).sqrt(),
        mae: totals[2 * k + 1] / weight,
    };
    Ok(Evaluation {
        plain: errors(0),
        clipped: errors(1),
        count: totals[5] as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::format::Values;
    use crate::predict::chunks::CHUNK;

    struct Sum;

    impl Predict for Sum {
        fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
            Ok(|index: &[u32]| index.iter().map(|&i| f64::from(i)).sum())
        }
    }

    /// Entries on a diagonal, with these values and indices 0 to 99 again and again.
    fn check(values: &[f64], see: impl Fn(&CooView<'_>)) {
        let column: Vec<u32> = (0..values.len() as u32).map(|i| i % 100).collect();
        see(&CooView::new("t", &[100, 100], &[&column, &column], Values::F64(values)).unwrap());
    }

    #[test]
    fn errors_are_those_of_the_definition() {
        let columns: [&[u32]; 2] = [&[1, 2, 3], &[1, 2, 3]];
        let view = CooView::new("t", &[9, 9], &columns, Values::F64(&[2.0, 5.0, 4.0])).unwrap();
        let e = evaluate(&Sum, &view, (0.0, 4.0), 1, &()).unwrap();
        assert_eq!(
            (e.plain.rmse, e.plain.mae, e.count),
            ((5.0f64 / 3.0).sqrt(), 1.0, 3)
        );
        assert_eq!(
            (e.clipped.rmse, e.clipped.mae),
            ((1.0f64 / 3.0).sqrt(), 1.0 / 3.0)
        );
    }

    #[test]
    fn errors_do_not_depend_on_the_threads() {
        let values: Vec<f64> = (0..4 * CHUNK + 77)
            .map(|i| 99.0 / i.max(1) as f64)
            .collect();
        check(&values, |view| {
            let one = evaluate(&Sum, view, (3.0, 60.0), 1, &()).unwrap();
            assert!(one.clipped.rmse < one.plain.rmse && one.count == values.len() as u64);
            for threads in [0, 2, 5] {
                // Floats that are equal and not 0 are the same bits.
                assert_eq!(
                    evaluate(&Sum, view, (3.0, 60.0), threads, &()).unwrap(),
                    one
                );
            }
        });
    }

    #[test]
    fn the_first_bad_value_is_named() {
        let mut values = vec![1.0; 5 * CHUNK];
        let first = 2 * CHUNK - 1;
        // Later chunks meet theirs sooner.
        for i in [first, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK] {
            values[i] = f64::NAN;
        }
        check(&values, |view| {
            let expected = view.not_finite(first, "value", f64::NAN).to_string();
            for threads in [1, 2, 5] {
                let e = evaluate(&Sum, view, (0.0, 1.0), threads, &()).unwrap_err();
                assert_eq!(e.to_string(), expected);
            }
        });
    }

    #[test]
    fn a_cancellation_ends_it() {
        struct Cancelled;
        impl Monitor for Cancelled {
            fn cancelled(&self) -> bool {
                true
            }
        }
        check(&vec![1.0; 3 * CHUNK], |view| {
            let result = evaluate(&Sum, view, (0.0, 1.0), 2, &Cancelled);
            assert!(matches!(result, Err(Error::Cancelled)));
        });
    }
}
