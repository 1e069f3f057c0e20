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
        let kept: Vec<usize> = (0..self.values.len()).filter(|&k| stays(k)).collect();
        for column in &mut self.rows {
            keep(column, &kept);
        }
        keep(&mut self.values, &kept);
        if !self.weights.is_empty() {
            keep(&mut self.weights, &kept);
        }
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

/// Keeps the items at the ascending positions `kept`.
fn keep<T: Copy>(items: &mut Vec<T>, kept: &[usize]) {
    for (to, &k) in kept.iter().enumerate() {
        items[to] = items[k];
    }
    items.truncate(kept.len());
}
