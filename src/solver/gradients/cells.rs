//! Entries for tests.

use crate::format::{CooView, Values};
use crate::random::RandomStream;

/// Entries drawn at random, all different cells.
pub(super) struct Cells {
    columns: Vec<Vec<u32>>,
    pub values: Vec<f64>,
    /// Empty if they have none.
    pub weights: Vec<f64>,
}

impl Cells {
    pub(super) fn new(dims: &[u64], count: usize, seed: u64, positive: bool) -> Cells {
        let mut s = RandomStream::new(&[seed]);
        let mut cells = Cells {
            columns: vec![Vec::new(); dims.len()],
            values: Vec::new(),
            weights: Vec::new(),
        };
        let mut seen = std::collections::HashSet::new();
        while cells.values.len() < count {
            let cell: Vec<u32> = dims.iter().map(|&d| s.below(d) as u32).collect();
            if seen.insert(cell.clone()) {
                cells
                    .columns
                    .iter_mut()
                    .zip(cell)
                    .for_each(|(c, i)| c.push(i));
                let x = s.standard_normal();
                cells.values.push(if positive { x.abs() } else { x });
            }
        }
        cells
    }

    /// With weights, some of them 0, or without.
    pub(super) fn weighted(mut self, weighted: bool) -> Cells {
        let weight = |i: usize| [0.5, 2.0, 1.0, 0.0, 1.25][i % 5];
        self.weights = (0..if weighted { self.values.len() } else { 0 })
            .map(weight)
            .collect();
        self
    }

    pub(super) fn view(&self, name: &str, dims: &[u64]) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new(name, dims, &columns, Values::F64(&self.values)).unwrap();
        match self.weights.is_empty() {
            true => view,
            false => view.with_weights(Values::F64(&self.weights)).unwrap(),
        }
    }
}
