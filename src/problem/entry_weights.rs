//! The weights of entries as solvers see them.
//!
//! Only the ratios of the weights of a tensor or matrix matter: a factor of all of them is a factor of its squared errors. Hardly
//! any penalty, damping or learning rate suits weights of 1e-20, and their products underflow in `f32`. So weights whose mean is far
//! from 1 are divided by it, and others stay as they are.

use std::ops::RangeInclusive;

use crate::error::Result;
use crate::format::{CooView, Values};
use crate::progress::{Monitor, report_progress};

/// Mean weights that solvers take as they are.
const ORDINARY_MEANS: RangeInclusive<f64> = 1.0 / 256.0..=256.0;

/// Entries between two progress reports.
const REPORT_INTERVAL: usize = 1 << 16;

/// Entries per entry that has the total weight, from which on the others hardly count.
const MAX_CONCENTRATION: f64 = 100.0;

/// The weights of the entries of a view, divided by their unit.
#[derive(Clone, Copy)]
pub(crate) struct EntryWeights<'a> {
    weights: Option<Values<'a>>,
    unit: f64,
    /// Whether few entries have nearly all of the weight.
    pub is_concentrated: bool,
}

impl<'a> EntryWeights<'a> {
    /// Validates all weights and finds their unit.
    pub(crate) fn of(view: &CooView<'a>, monitor: &dyn Monitor) -> Result<EntryWeights<'a>> {
        let mut all = EntryWeights {
            weights: view.weights(),
            unit: 1.0,
            is_concentrated: false,
        };
        if all.weights.is_none() {
            return Ok(all);
        }
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for i in 0..view.len() {
            if i % REPORT_INTERVAL == 0 {
                report_progress(monitor, "checking weights", i as u64, view.len() as u64)?;
            }
            let weight = view.weight(i)?.unwrap_or(1.0);
            count += f64::from(u8::from(weight > 0.0));
            sum += weight;
            squares += weight * weight;
        }
        let mean = sum / count;
        if count > 0.0 && !ORDINARY_MEANS.contains(&mean) {
            all.unit = mean;
        }
        // The number of entries of equal weight that would have as precise a mean (Kish 1965).
        let effective_count = sum * sum / squares;
        all.is_concentrated = effective_count * MAX_CONCENTRATION < count;
        Ok(all)
    }

    /// Returns what weights are divided by: their mean, or 1 if that is ordinary.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// Returns whether entries have weights.
    pub(crate) fn are_given(&self) -> bool {
        self.weights.is_some()
    }

    /// Returns the weight of entry `i`; 1 without weights.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> f32 {
        self.weights.map_or(1.0, |w| (w.get(i) / self.unit) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_and_weights(weights: &[f64]) -> (f64, Vec<f32>, bool) {
        let column: Vec<u32> = (0..weights.len() as u32).collect();
        let values = vec![1.0f32; weights.len()];
        let dims = [weights.len() as u64; 2];
        let view = CooView::new("t", &dims, &[&column, &column], Values::F32(&values)).unwrap();
        let view = view.with_weights(Values::F64(weights)).unwrap();
        let found = EntryWeights::of(&view, &()).unwrap();
        let weights = (0..weights.len()).map(|i| found.get(i)).collect();
        (found.unit(), weights, found.is_concentrated)
    }

    #[test]
    fn weights_far_from_1_are_divided_by_their_mean() {
        assert_eq!(
            unit_and_weights(&[0.5, 0.0, 30.0]),
            (1.0, vec![0.5, 0.0, 30.0], false)
        );
        for unit in [1e-300, 1e-46, 1e-20, 1e-3, 1e3, 1e20, 1e38] {
            let (found, weights, _) = unit_and_weights(&[1.5 * unit, 0.0, 0.5 * unit]);
            assert!((found / unit - 1.0).abs() < 1e-12, "{unit}");
            assert_eq!(weights, [1.5, 0.0, 0.5]);
        }
        assert_eq!(unit_and_weights(&[0.0, 0.0]), (1.0, vec![0.0, 0.0], false));
    }

    #[test]
    fn a_weight_beside_which_the_others_do_not_count_is_noticed() {
        let mut weights = vec![1.0; 1000];
        weights[3] = 50.0;
        assert!(!unit_and_weights(&weights).2);
        weights[3] = 1e5;
        assert!(unit_and_weights(&weights).2);
    }
}
