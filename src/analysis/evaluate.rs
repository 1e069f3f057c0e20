//! How far predictions are from listed values.

use crate::error::Result;
use crate::format::CooView;
use crate::model::Predict;
use crate::monitor::{Monitor, step};

/// Errors of a model on listed entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// The number of entries.
    pub count: u64,
    /// Whether predictions were clipped to a range.
    pub clipped: bool,
}

/// Predicts every entry of `view` and compares; `clip` limits predictions to a range, usually that
/// of the training values. Without entries the errors are 0.
pub fn evaluate(
    model: &mut dyn Predict,
    view: &CooView<'_>,
    clip: Option<(f64, f64)>,
    monitor: &dyn Monitor,
) -> Result<Evaluation> {
    const CHUNK: usize = 1 << 16;
    let n = view.len();
    let mut index = vec![0; view.order()];
    let (mut squares, mut absolutes) = (0.0, 0.0);
    for start in (0..n).step_by(CHUNK) {
        step(monitor, "evaluating", start as u64, n as u64)?;
        // Summed chunk by chunk in f64, so that the result does not drift with the count.
        let (mut s, mut a) = (0.0, 0.0);
        for i in start..(start + CHUNK).min(n) {
            for (m, slot) in index.iter_mut().enumerate() {
                *slot = view.column(m)[i];
            }
            let mut x = model.predict(&index);
            if let Some((low, high)) = clip {
                x = x.clamp(low, high);
            }
            let error = view.values().get(i) - x;
            s += error * error;
            a += error.abs();
        }
        squares += s;
        absolutes += a;
    }
    let count = (n as f64).max(1.0);
    Ok(Evaluation {
        rmse: (squares / count).sqrt(),
        mae: absolutes / count,
        count: n as u64,
        clipped: clip.is_some(),
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
        let view = CooView::new(
            "t",
            &[9, 9],
            &[&[1, 2, 3], &[1, 2, 3]],
            Values::F64(&[2.0, 5.0, 4.0]),
        )
        .unwrap();
        let e = evaluate(&mut Sum, &view, None, &()).unwrap();
        assert_eq!((e.rmse, e.mae, e.count), ((5.0f64 / 3.0).sqrt(), 1.0, 3));
        let e = evaluate(&mut Sum, &view, Some((0.0, 4.0)), &()).unwrap();
        assert_eq!((e.rmse, e.clipped), ((1.0f64 / 3.0).sqrt(), true));
    }
}
