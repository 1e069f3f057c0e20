//! Axes: values to pixels, with ticks at round values.

/// How an axis shows its values.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Scale {
    Linear,
    /// Linear with ticks at whole numbers.
    Whole,
    Log,
    /// Logarithmic with ticks at these values.
    LogAt(Vec<f64>),
}

/// The part of a broken axis, from its low end, that has the scale of the near values.
const NEAR_PART: f64 = 0.7;
/// The part of the values' span that is free at each end.
const MARGIN: f64 = 0.04;

/// An axis of a given length in pixels.
pub(super) struct Axis {
    is_log: bool,
    /// Positions on the scale (logarithms where it is logarithmic) and their distances in pixels from the low end: those of
    /// the ends, and of the break between them.
    knots: Vec<(f64, f64)>,
    pub ticks: Vec<f64>,
}

impl Axis {
    /// Returns an axis for some values; `None` if none can be shown. The label of a tick takes `room` pixels along the axis. A
    /// broken axis has another scale above the value `broken_at`.
    pub fn new(
        scale: &Scale,
        values: impl Iterator<Item = f64>,
        length: f64,
        room: &dyn Fn(&str) -> f64,
        broken_at: Option<f64>,
    ) -> Option<Axis> {
        let is_log = matches!(scale, Scale::Log | Scale::LogAt(_));
        let scaled = |x: f64| if is_log { x.log10() } else { x };
        let finite = values.map(scaled).filter(|x| x.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
            (l.min(x), h.max(x))
        });
        if low > high {
            return None;
        }
        let free = match broken_at.map(scaled) {
            Some(at) => (MARGIN * (at - low), MARGIN * (high - at)),
            None if high > low => (MARGIN * (high - low), MARGIN * (high - low)),
            None if is_log => (0.2, 0.2),
            None => (0.5 * low.abs().max(0.1), 0.5 * low.abs().max(0.1)),
        };
        let mut knots = vec![(low - free.0, 0.0), (high + free.1, length)];
        if let Some(at) = broken_at {
            knots.insert(1, (scaled(at), NEAR_PART * length));
        }
        let mut axis = Axis {
            is_log,
            knots,
            ticks: Vec::new(),
        };
        if let Scale::LogAt(ticks) = scale {
            axis.ticks = ticks.clone();
            return Some(axis);
        }
        for k in 1..axis.knots.len() {
            let part = (axis.knots[k - 1].0, axis.knots[k].0);
            let ticks = axis.round_values(part, *scale == Scale::Whole, room);
            let last = axis.ticks.last().copied();
            let is_free = |x: &f64| last.is_none_or(|last| axis.are_apart(&[last, *x], room));
            let ticks: Vec<f64> = ticks.into_iter().filter(is_free).collect();
            axis.ticks.extend(ticks);
        }
        Some(axis)
    }

    /// Returns the distance of a value from the low end, in pixels.
    pub fn pixel(&self, x: f64) -> f64 {
        let x = if self.is_log { x.log10() } else { x };
        let is_before_end = |k: &usize| x <= self.knots[*k].0 || k + 1 == self.knots.len();
        let k = (1..self.knots.len()).find(is_before_end).unwrap_or(1);
        let (from, to) = (self.knots[k - 1], self.knots[k]);
        from.1 + (x - from.0) / (to.0 - from.0) * (to.1 - from.1)
    }

    /// Returns where the scale changes, in pixels.
    pub fn break_pixel(&self) -> Option<f64> {
        (self.knots.len() > 2).then(|| self.knots[1].1)
    }

    /// Returns whether the labels of ticks do not overlap.
    fn are_apart(&self, ticks: &[f64], room: &dyn Fn(&str) -> f64) -> bool {
        ticks.windows(2).all(|w| {
            let needed = 0.5 * (room(&label(w[0])) + room(&label(w[1])));
            self.pixel(w[1]) - self.pixel(w[0]) >= needed
        })
    }

    /// Returns the densest round values in a part of the scale that are far enough apart: multiples of 1, 2 or 5 times a power
    /// of ten; on logarithmic axes of more than a decade 1, 2 and 5 times all powers of ten, or only powers of ten.
    fn round_values(
        &self,
        part: (f64, f64),
        is_whole: bool,
        room: &dyn Fn(&str) -> f64,
    ) -> Vec<f64> {
        let value = |x: f64| if self.is_log { 10f64.powf(x) } else { x };
        let (low, high) = (value(part.0), value(part.1));
        let are_apart = |ticks: &Vec<f64>| self.are_apart(ticks, room);
        if self.is_log {
            let decades = part.0.floor() as i32..=part.1.ceil() as i32;
            let fine = decades
                .clone()
                .flat_map(|e| [1.0, 2.0, 5.0].map(|m| decimal(m, e)));
            let fine: Vec<f64> = fine.filter(|x| (low..=high).contains(x)).collect();
            if fine.len() > 2 && are_apart(&fine) {
                return fine;
            }
            if part.1 - part.0 > 1.0 {
                let powers = |step: usize| {
                    let chosen = decades.clone().filter(move |e| e % step as i32 == 0);
                    let powers = chosen.map(|e| decimal(1.0, e));
                    powers.filter(|x| (low..=high).contains(x)).collect()
                };
                return (1..).map(powers).find(are_apart).unwrap_or_default();
            }
        }
        let smallest = ((high - low).log10().floor() as i32).saturating_sub(2);
        let smallest = if is_whole { smallest.max(0) } else { smallest };
        let steps = (smallest..).flat_map(|e| [(1.0, e), (2.0, e), (5.0, e)]);
        let multiples = steps.map(|(m, e)| {
            let step = decimal(m, e);
            let all = (low / step).ceil() as i64..=(high / step).floor() as i64;
            all.map(|k| decimal(k as f64 * m, e)).collect()
        });
        multiples.into_iter().find(are_apart).unwrap_or_default()
    }
}

/// Returns `m` times ten to the power `e`, the closest number to this decimal.
fn decimal(m: f64, e: i32) -> f64 {
    match 10f64.powi(e.abs()) {
        power if e < 0 => m / power,
        power => m * power,
    }
}

/// Returns the label of a tick, which has all digits of its value.
pub(super) fn label(x: f64) -> String {
    match x.abs() {
        a if a >= 1e6 && a % 1e4 == 0.0 => format!("{}M", x / 1e6),
        a if a >= 1e3 && a % 10.0 == 0.0 => format!("{}K", x / 1e3),
        _ => x.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(label: &str) -> f64 {
        let (digits, unit) = match label.strip_suffix('K') {
            Some(digits) => (digits, 1e3),
            None => label.strip_suffix('M').map_or((label, 1.0), |d| (d, 1e6)),
        };
        digits.parse::<f64>().unwrap() * unit
    }

    #[test]
    fn ticks_are_at_the_values_of_their_labels() {
        const LENGTH: f64 = 240.0;
        const SPACING: f64 = 20.0;
        let ranges = [
            (0.885, 1.03),
            (0.977, 1.02),
            (0.3, 2.1),
            (0.02, 3.0),
            (1e-5, 20.0),
            (1e3, 1e8),
            (1.0, 50.0),
            (1.2253, 1.2541),
            (0.99999, 1.00001),
            (7.0, 7.0),
        ];
        for (low, high) in ranges {
            for scale in [Scale::Linear, Scale::Log] {
                for broken_at in [None, Some(low + 0.25 * (high - low))] {
                    let broken_at = broken_at.filter(|at| *at > low);
                    let values = [low, high].into_iter();
                    let axis = Axis::new(&scale, values, LENGTH, &|_| SPACING, broken_at).unwrap();
                    let case = format!("{low} to {high}, {scale:?}, {broken_at:?}");
                    assert!(
                        (2..=12).contains(&axis.ticks.len()),
                        "{case}: {:?}",
                        axis.ticks
                    );
                    for &tick in &axis.ticks {
                        let named = value(&label(tick));
                        assert!((named - tick).abs() <= 1e-14 * tick.abs(), "{case}: {tick}");
                        assert!((0.0..=LENGTH).contains(&axis.pixel(tick)), "{case}: {tick}");
                    }
                    for pair in axis.ticks.windows(2) {
                        let apart = axis.pixel(pair[1]) - axis.pixel(pair[0]);
                        assert!(apart >= SPACING, "{case}: {pair:?}");
                        assert_ne!(label(pair[0]), label(pair[1]), "{case}");
                    }
                    assert!(
                        axis.pixel(low) >= 0.0 && axis.pixel(high) <= LENGTH,
                        "{case}"
                    );
                }
            }
        }
    }

    #[test]
    fn whole_numbers_have_ticks_at_whole_numbers() {
        let values = [1.0, 3.0].into_iter();
        let axis = Axis::new(&Scale::Whole, values, 300.0, &|_| 30.0, None).unwrap();
        assert_eq!(axis.ticks, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn values_that_cannot_be_shown_are_left_out() {
        let axis = |values: [f64; 2]| {
            Axis::new(&Scale::Log, values.into_iter(), 100.0, &|_| 20.0, None).is_some()
        };
        assert!(!axis([0.0, f64::NAN]));
        assert!(axis([f64::INFINITY, 2.0]));
    }
}
