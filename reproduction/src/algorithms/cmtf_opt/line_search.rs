//! A line search for the strong Wolfe conditions (Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6).

use s3cmtf::error::Result;

/// A sufficient decrease is this fraction of the decrease of the tangent.
const SUFFICIENT_DECREASE: f64 = 1e-4;

/// The absolute slope must fall to this fraction. A quasi-Newton direction needs no more exact search.
const CURVATURE: f64 = 0.9;

/// Most evaluations of one search.
const MAX_EVALUATIONS: usize = 25;

/// The next step without an upper bound lies between these multiples of the last one.
const EXTRAPOLATION: (f64, f64) = (2.0, 10.0);

/// Closest that a step may come to either end of its interval, as a fraction of the interval.
const MARGIN: f64 = 0.1;

/// The search ends when the interval leaves less than this relative change of the objective: sums of `f32` products do not
/// resolve it.
const MIN_RELATIVE_CHANGE: f64 = 1e-11;

/// The objective along a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub step: f64,
    pub value: f64,
    /// Derivative by the step.
    pub slope: f64,
}

/// Finds a step with a lower value. It satisfies the strong Wolfe conditions unless rounding or the limit of evaluations end the
/// search before; then it is the best one found. Returns `None` if no step lowers the value. `start` is the point of step 0,
/// whose slope is negative.
pub(super) fn search(
    start: Point,
    first_step: f64,
    evaluate: &mut dyn FnMut(f64) -> Result<Point>,
) -> Result<Option<Point>> {
    // The best point so far, and the other end of the interval that contains acceptable steps, once it is known.
    let (mut low, mut high) = (start, None::<Point>);
    let mut step = first_step;
    for _ in 0..MAX_EVALUATIONS {
        let point = evaluate(step)?;
        let is_finite = point.value.is_finite() && point.slope.is_finite();
        let sufficient = start.value + SUFFICIENT_DECREASE * point.step * start.slope;
        if !is_finite || point.value > sufficient || point.value >= low.value {
            high = Some(point);
        } else if point.slope.abs() <= CURVATURE * start.slope.abs() {
            return Ok(Some(point));
        } else {
            let ascends_to_high = match high {
                Some(high) => point.slope * (high.step - low.step) >= 0.0,
                None => point.slope >= 0.0,
            };
            if ascends_to_high {
                high = Some(low);
            } else if high.is_none() {
                let next = minimum(low, point).filter(|s| s.is_finite() && *s > point.step);
                let (least, most) = EXTRAPOLATION;
                step = next
                    .unwrap_or(most * point.step)
                    .clamp(least * point.step, most * point.step);
            }
            low = point;
        }
        if let Some(high) = high {
            let width = (high.step - low.step).abs();
            if width * start.slope.abs() <= MIN_RELATIVE_CHANGE * start.value.abs() {
                break;
            }
            step = between(low, high);
        }
    }
    Ok((low.step > 0.0).then_some(low))
}

/// Returns a step inside the interval.
fn between(low: Point, high: Point) -> f64 {
    let (a, b) = (low.step.min(high.step), low.step.max(high.step));
    let margin = MARGIN * (b - a);
    if !high.value.is_finite() {
        return low.step + MARGIN * (high.step - low.step);
    }
    match minimum(low, high) {
        Some(step) if step.is_finite() => step.clamp(a + margin, b - margin),
        _ => 0.5 * (a + b),
    }
}

/// Returns the minimum of the cubic through two points with their slopes, if it has one.
fn minimum(a: Point, b: Point) -> Option<f64> {
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.step - b.step);
    let square = d1 * d1 - a.slope * b.slope;
    if !(square >= 0.0 && square.is_finite()) {
        return None;
    }
    let d2 = (b.step - a.step).signum() * square.sqrt();
    Some(b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches along a function and its derivative. Returns the step and the number of evaluations.
    fn search_along(f: impl Fn(f64) -> [f64; 2], first_step: f64) -> (Option<Point>, usize) {
        let point = |step: f64| {
            let [value, slope] = f(step);
            Point { step, value, slope }
        };
        let mut count = 0;
        let mut evaluate = |step: f64| {
            count += 1;
            Ok(point(step))
        };
        let found = search(point(0.0), first_step, &mut evaluate).unwrap();
        (found, count)
    }

    fn assert_strong_wolfe(f: impl Fn(f64) -> [f64; 2], first_step: f64) {
        let [value, slope] = f(0.0);
        let (found, count) = search_along(&f, first_step);
        let found = found.expect("a step");
        assert!(found.value <= value + SUFFICIENT_DECREASE * found.step * slope);
        assert!(found.slope.abs() <= CURVATURE * slope.abs(), "{found:?}");
        assert!(count <= 12, "{count} evaluations");
    }

    #[test]
    fn steps_satisfy_the_strong_wolfe_conditions() {
        for first_step in [1e-6, 1e-2, 1.0, 30.0, 1e4] {
            assert_strong_wolfe(|x| [(x - 3.0).powi(2), 2.0 * (x - 3.0)], first_step);
            assert_strong_wolfe(|x| [x.powi(4) - 9.0 * x, 4.0 * x.powi(3) - 9.0], first_step);
            // Many local minima.
            assert_strong_wolfe(
                |x| {
                    [
                        0.05 * x * x - x + (4.0 * x).sin() / 8.0,
                        0.1 * x - 1.0 + (4.0 * x).cos() / 2.0,
                    ]
                },
                first_step,
            );
            // Steep at the start, flat after it (Moré and Thuente 1994, function 1).
            assert_strong_wolfe(
                |x| {
                    let square = x * x + 2.0;
                    [-x / square, (x * x - 2.0) / (square * square)]
                },
                first_step,
            );
        }
    }

    #[test]
    fn steps_out_of_range_are_shortened() {
        let f = |x: f64| match x {
            ..2.0 => [(x - 1.0).powi(2), 2.0 * (x - 1.0)],
            _ => [f64::INFINITY, f64::NAN],
        };
        let (found, _) = search_along(f, 1e5);
        assert!(found.expect("a step").value < 1.0);
    }

    #[test]
    fn a_value_that_nothing_lowers_gives_no_step() {
        // The slope promises a decrease that rounding swallows.
        let (found, count) = search_along(|x| [1.0 + x, -1e-9], 1.0);
        assert!(found.is_none() && count <= MAX_EVALUATIONS);
        let (found, _) = search_along(|_| [1.0, -1e-9], 1.0);
        assert!(found.is_none());
    }
}
