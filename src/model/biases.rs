//! The mean and one number per row of every mode: the yardstick for every factor model.

use std::sync::Arc;

use super::Predict;
use crate::error::Result;
use crate::format::RowMap;

/// `x^ = mean + sum over modes n of b(n)[i_n]`.
pub struct BiasModel {
    mean: f64,
    modes: Vec<(Arc<RowMap>, Vec<f64>)>,
}

impl BiasModel {
    /// A model of these biases: for each mode its rows and one bias per compact row.
    ///
    /// # Panics
    /// If a mode has not as many biases as rows.
    pub fn new(mean: f64, modes: Vec<(Arc<RowMap>, Vec<f64>)>) -> Self {
        assert!(
            modes
                .iter()
                .all(|(rows, biases)| rows.len() == biases.len())
        );
        BiasModel { mean, modes }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The biases of mode `n`, by compact row.
    pub fn biases(&self, n: usize) -> &[f64] {
        &self.modes[n].1
    }
}

impl Predict for BiasModel {
    /// Rows that were never seen have bias 0.
    fn predictor(&self) -> Result<impl FnMut(&[u32]) -> f64> {
        let bias = |((rows, biases), &i): (&(Arc<RowMap>, Vec<f64>), &u32)| {
            rows.compact(i).map_or(0.0, |row| biases[row as usize])
        };
        Ok(move |index: &[u32]| self.mean + self.modes.iter().zip(index).map(bias).sum::<f64>())
    }
}
