//! Random sparse entries.

use crate::format::{CooView, Values};
use crate::random::RandomStream;

/// Entries at distinct random positions.
pub(super) struct RandomEntries {
    pub columns: Vec<Vec<u32>>,
    pub values: Vec<f64>,
    /// Empty if entries are not weighted.
    pub weights: Vec<f64>,
}

impl RandomEntries {
    /// Samples `count` standard normal values, or their absolute values if `positive`.
    pub(super) fn new(dims: &[u64], count: usize, seed: u64, positive: bool) -> RandomEntries {
        let mut s = RandomStream::new(&[seed]);
        let mut entries = RandomEntries {
            columns: vec![Vec::new(); dims.len()],
            values: Vec::new(),
            weights: Vec::new(),
        };
        let mut seen = std::collections::HashSet::new();
        while entries.values.len() < count {
            let position: Vec<u32> = dims.iter().map(|&d| s.below(d) as u32).collect();
            if seen.insert(position.clone()) {
                entries
                    .columns
                    .iter_mut()
                    .zip(position)
                    .for_each(|(c, i)| c.push(i));
                let x = s.standard_normal();
                entries.values.push(if positive { x.abs() } else { x });
            }
        }
        entries
    }

    /// Adds weights, some of them 0, if `weighted`.
    pub(super) fn weighted(mut self, weighted: bool) -> RandomEntries {
        let weight = |i: usize| [0.5, 2.0, 1.0, 0.0, 1.25][i % 5];
        self.weights = (0..if weighted { self.values.len() } else { 0 })
            .map(weight)
            .collect();
        self
    }

    pub(super) fn view(&self, name: &str, dims: &[u64]) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new(name, dims, &columns, Values::F64(&self.values)).unwrap();
        if self.weights.is_empty() {
            view
        } else {
            view.with_weights(Values::F64(&self.weights)).unwrap()
        }
    }
}
