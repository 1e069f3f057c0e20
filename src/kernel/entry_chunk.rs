//! A chunk of entries on its way from a problem into a solver's own layout.

/// Entries in structure-of-arrays form: compact, validated row numbers and `f32` values.
#[derive(Debug, Default)]
pub struct EntryChunk {
    /// One column of compact row numbers per mode.
    pub rows: Vec<Vec<u32>>,
    /// The values.
    pub values: Vec<f32>,
    /// The weights; empty if the data has none.
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

/// Keeps the items at the positions `kept`, which must ascend.
fn keep<T: Copy>(numbers: &mut Vec<T>, kept: &[usize]) {
    for (to, &k) in kept.iter().enumerate() {
        numbers[to] = numbers[k];
    }
    numbers.truncate(kept.len());
}
