//! Errors on entries that a fit measures itself by, of one model or of the mean of many.

use super::work::{Source, Work, errors};
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr};
use crate::parallel::ThreadPool;

/// Entries, and the sum of the predictions of several models for each.
pub(super) struct HeldOut {
    /// The mode they are listed by.
    pub mode: usize,
    pub lists: ModeCsr,
    work: Work,
    sums: Vec<f32>,
    models: usize,
}

/// How values here become values of the data: times the first, plus the second, within a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undo {
    pub by: f64,
    pub plus: f64,
    pub range: (f64, f64),
}

/// Sums of squared errors by weight, in the units of the data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Squares {
    pub plain: f64,
    pub clipped: f64,
}

impl HeldOut {
    /// `rows` holds the rows of one entry after the other; `limits` says how many each mode has. The
    /// numbers are values and, unless there are none, weights.
    pub(super) fn new(
        limits: &[usize],
        rows: &[u32],
        (values, weights): (&[f32], &[f32]),
    ) -> Result<HeldOut> {
        // Long lists are quicker than many.
        let mode = (0..limits.len()).min_by_key(|&m| limits[m]).unwrap_or(0);
        let entries = CooSlices {
            row_counts: limits,
            rows,
            values,
            weights,
        };
        let lists = ModeCsr::new(mode, entries)?;
        Ok(HeldOut {
            mode,
            work: Work::new(&[&lists]),
            lists,
            sums: Vec::new(),
            models: 0,
        })
    }

    /// What all weigh together.
    pub(super) fn total(&self) -> f64 {
        self.lists.total_weight()
    }

    /// The errors of one model, whose slopes by the rows of the mode `source` says; `rows` and `biases`
    /// are those of the mode. Also its predictions, if asked for, piece by piece.
    pub(super) fn measure(
        &self,
        source: &Source<'_>,
        (rows, biases): (&[f32], &[f32]),
        undo: Undo,
        predictions: bool,
        pool: &ThreadPool,
    ) -> Result<(Squares, Vec<Vec<f32>>)> {
        let pieces = errors(&self.work, source, rows, biases, pool, |range, errors| {
            let mut squares = Squares::default();
            let mut predicted = Vec::with_capacity(if predictions { errors.len() } else { 0 });
            for (entry, &e) in range.zip(errors) {
                let value = f64::from(self.lists.value(entry));
                let weight = self.lists.weight(entry);
                squares.add((value, weight), value - f64::from(e), undo);
                if predictions {
                    predicted.push((value - f64::from(e)) as f32);
                }
            }
            (squares, predicted)
        })?;
        let mut total = Squares::default();
        for (squares, _) in &pieces {
            total.plain += squares.plain;
            total.clipped += squares.clipped;
        }
        Ok((total, pieces.into_iter().map(|p| p.1).collect()))
    }

    /// No model counts any more.
    pub(super) fn forget(&mut self) {
        self.sums.clear();
        self.models = 0;
    }

    /// Counts the predictions of one model towards the mean.
    pub(super) fn keep(&mut self, predictions: Vec<Vec<f32>>) {
        self.sums.resize(self.lists.len(), 0.0);
        self.models += 1;
        let all = predictions.iter().flatten();
        self.sums.iter_mut().zip(all).for_each(|(s, p)| *s += p);
    }

    /// The errors of the mean of the predictions kept; `None` if there are none.
    pub(super) fn of_mean(&self, undo: Undo) -> Option<Squares> {
        if self.models == 0 {
            return None;
        }
        let mut total = Squares::default();
        for (entry, &sum) in self.sums.iter().enumerate() {
            let value = f64::from(self.lists.value(entry));
            let weight = self.lists.weight(entry);
            total.add((value, weight), f64::from(sum) / self.models as f64, undo);
        }
        Some(total)
    }
}

impl Squares {
    fn add(&mut self, (value, weight): (f64, f32), predicted: f64, undo: Undo) {
        let weight = f64::from(weight);
        let (value, predicted) = (value * undo.by + undo.plus, predicted * undo.by + undo.plus);
        self.plain += weight * ((value - predicted) * (value - predicted));
        let clipped = value - predicted.max(undo.range.0).min(undo.range.1);
        self.clipped += weight * (clipped * clipped);
    }
}
