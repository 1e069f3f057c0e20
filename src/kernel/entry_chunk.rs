//! A chunk of entries between a problem and the layout of a solver.

/// Entries in structure-of-arrays form: compact, validated row indices and `f32` values.
#[derive(Debug, Default)]
pub struct EntryChunk {
    /// One column of compact row indices per mode.
    pub rows: Vec<Vec<u32>>,
    /// One value per entry.
    pub values: Vec<f32>,
    /// One weight per entry; empty if the data has none.
    pub weights: Vec<f32>,
}

impl EntryChunk {
    /// Returns the weight of entry `k`: 1 if the data has no weights.
    pub(crate) fn weight(&self, k: usize) -> f32 {
        self.weights.get(k).copied().unwrap_or(1.0)
    }

    /// Keeps the entries for which `stays` returns true.
    pub(crate) fn retain(&mut self, stays: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for k in (0..self.values.len()).filter(|&k| stays(k)) {
            for column in &mut self.rows {
                column[kept] = column[k];
            }
            self.values[kept] = self.values[k];
            if let Some(&weight) = self.weights.get(k) {
                self.weights[kept] = weight;
            }
            kept += 1;
        }
        for column in &mut self.rows {
            column.truncate(kept);
        }
        self.values.truncate(kept);
        self.weights.truncate(kept);
    }

    /// Removes entries of weight 0.
    pub(crate) fn retain_weighted(&mut self) {
        if self.weights.contains(&0.0) {
            let weights = std::mem::take(&mut self.weights);
            self.retain(|k| weights[k] > 0.0);
            self.weights = weights;
            self.weights.retain(|&w| w > 0.0);
        }
    }
}
