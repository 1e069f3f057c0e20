//! How far predictions are from listed values.

use crate::error::Result;
use crate::format::CooView;
use crate::model::Predict;
use crate::monitor::{Monitor, step};

/// Sizes of errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

/// Errors of a model on listed entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Of predictions as they are.
    pub plain: Errors,
    /// Of predictions clipped to a range.
    pub clipped: Errors,
    /// The number of entries.
    pub count: u64,
}

/// Predicts every entry of `view` and compares; `clip` is the range for the clipped errors, usually
/// that of the training values. Without entries the errors are 0.
pub fn evaluate(
    model: &mut dyn Predict,
    view: &CooView<'_>,
    clip: (f64, f64),
    monitor: &dyn Monitor,
) -> Result<Evaluation> {
    const CHUNK: usize = 1 << 16;
    let n = view.len();
    let mut index = vec![0; view.order()];
    // Squared and absolute errors, as they are and clipped; summed chunk by chunk in f64, so that the
    // result does not drift with the count.
    let mut totals = [0.0f64; 4];
    for start in (0..n).step_by(CHUNK) {
        step(monitor, "evaluating", start as u64, n as u64)?;
        let mut sums = [0.0f64; 4];
        for i in start..(start + CHUNK).min(n) {
            for (m, slot) in index.iter_mut().enumerate() {
                *slot = view.column(m)[i];
            }
            let value = view.values().get(i);
            if !value.is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            let x = model.predict(&index);
            for (k, error) in [value - x, value - x.clamp(clip.0, clip.1)]
                .into_iter()
                .enumerate()
            {
                sums[2 * k] += error * error;
                sums[2 * k + 1] += error.abs();
            }
        }
        totals.iter_mut().zip(sums).for_each(|(t, s)| *t += s);
    }
    let count = (n as f64).max(1.0);
    let errors = |k: usize| Errors {
        rmse: (totals[2 * k] / count).sqrt(),
        mae: totals[2 * k + 1] / count,
    };
    Ok(Evaluation {
        plain: errors(0),
        clipped: errors(1),
        count: n as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;

    struct Sum;

    impl Predict for Sum {
        fn predict(&mut self, index: &[u32]) -> f64 {
            index.iter().map(|&i| f64::from(i)).sum()
        }
    }

    #[test]
    fn errors_are_those_of_the_definition() {
        let columns: [&[u32]; 2] = [&[1, 2, 3], &[1, 2, 3]];
        let view = CooView::new("t", &[9, 9], &columns, Values::F64(&[2.0, 5.0, 4.0])).unwrap();
        let e = evaluate(&mut Sum, &view, (0.0, 4.0), &()).unwrap();
        assert_eq!(
            (e.plain.rmse, e.plain.mae, e.count),
            ((5.0f64 / 3.0).sqrt(), 1.0, 3)
        );
        assert_eq!(
            (e.clipped.rmse, e.clipped.mae),
            ((1.0f64 / 3.0).sqrt(), 1.0 / 3.0)
        );
    }
}
