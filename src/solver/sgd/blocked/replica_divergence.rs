//! Whether the copies of blocks still say the same: predictions at a few entries with each of them.

use super::curvature::sample;
use crate::kernel::MAX_ORDER;
use crate::kernel::{BlockingSpec, EntryBlock, Form, Method, TensorKernel};
use crate::solver::data::Data;

use crate::model::Model;
use crate::simd::Level;

use crate::kernel::CoreShape;

/// Entries that are predicted.
const PROBES: usize = 16;

/// Entries of a cell whose slopes are looked at.
const LOOKS: usize = 12;

/// Some entries with their rows as they were at the start of an epoch.
pub(super) struct Probe {
    /// The rows of the modes, in the order in which a form has them.
    rows: Vec<f32>,
    /// The row of each mode for each entry.
    entries: Vec<Vec<u32>>,
    shape: CoreShape,
    /// The modes in that order.
    order: Vec<usize>,
}

/// What predicting them takes. One per thread.
pub(super) struct ProbeKernel {
    kernel: TensorKernel,
    rows: Vec<f32>,
    slopes: Vec<f32>,
}

impl Probe {
    pub(super) fn new(model: &Model, data: &Data, spec: &BlockingSpec) -> Probe {
        let order = Form::tensor(&model.shape, spec.fiber_mode).mode_order();
        let ranks: Vec<usize> = order.iter().map(|&n| model.shape.ranks[n]).collect();
        let shape = CoreShape::new(model.shape.kind, &ranks);
        let entries = sample(data.tensor.blocks(), order.len(), PROBES);
        let entries: Vec<Vec<u32>> = entries.into_iter().map(|(rows, _)| rows).collect();
        let mut rows = vec![0.0; entries.len() * shape.rows_len()];
        for (entry, rows) in entries.iter().zip(rows.chunks_exact_mut(shape.rows_len())) {
            for (k, &n) in order.iter().enumerate() {
                let row = model.modes[n].factor.padded_row(entry[n] as usize);
                rows[shape.row(k)].copy_from_slice(row);
            }
        }
        Probe {
            rows,
            entries,
            shape,
            order,
        }
    }

    pub(super) fn kernel(&self, level: Level) -> ProbeKernel {
        ProbeKernel {
            kernel: TensorKernel::new(&self.shape, Method::Shared(level)),
            rows: vec![0.0; self.shape.rows_len()],
            slopes: vec![0.0; self.shape.rows_len()],
        }
    }
}

impl ProbeKernel {
    /// Predicts all entries with a copy of the core and of the rows of some modes.
    pub(super) fn predict<'a>(
        &mut self,
        probe: &Probe,
        core: &[f32],
        copies: impl Iterator<Item = Option<&'a [f32]>>,
        out: &mut Vec<f32>,
    ) {
        let shape = &probe.shape;
        let copies: Vec<Option<&[f32]>> = copies.collect();
        out.clear();
        let all = probe.rows.chunks_exact(shape.rows_len());
        for (entry, rows) in probe.entries.iter().zip(all) {
            self.rows.copy_from_slice(rows);
            for (k, &n) in probe.order.iter().enumerate() {
                if let Some(copy) = copies[n] {
                    let (to, stride) = (shape.row(k), shape.row(k).len());
                    let from = entry[n] as usize * stride;
                    self.rows[to].copy_from_slice(&copy[from..from + stride]);
                }
            }
            out.push(self.kernel.value(core, &self.rows));
        }
    }

    /// The mean squared slope of the fiber mode's row, and that of the core, by weight at some entries of
    /// a cell: `row` gives the rows of modes.
    pub(super) fn curvature<'a>(
        &mut self,
        probe: &Probe,
        cell: &EntryBlock,
        core: &[f32],
        row: impl Fn(usize, u32) -> &'a [f32],
    ) -> (f64, f64) {
        let shape = &probe.shape;
        let size = |x: &[f32]| -> f64 { f64::from(x.iter().map(|&x| x * x).sum::<f32>()) };
        let entry = &mut [0; MAX_ORDER][..shape.order()];
        let (mut rows, mut cores) = (0.0, 0.0);
        let count = LOOKS.min(cell.len());
        for k in 0..count {
            let number = k * cell.len() / count;
            cell.rows_of_entry(number, entry);
            let weight = f64::from(cell.weight(number));
            let mut outer = 1.0;
            for (k, &n) in probe.order.iter().enumerate() {
                let row = row(n, entry[n]);
                self.rows[shape.row(k)].copy_from_slice(row);
                outer *= size(row);
            }
            self.kernel.slopes(core, &self.rows, &mut self.slopes);
            rows += weight * size(&self.slopes[shape.row(0)]);
            cores += weight * outer;
        }
        let n = (count as f64).max(1.0);
        (rows / n, cores / n)
    }
}

/// How far predictions are apart: the mean over entries of their variance.
pub(super) fn apart(predictions: &[&[f32]]) -> f64 {
    let (n, entries) = (predictions.len() as f64, predictions[0].len());
    let variance = |i: usize| {
        let x = predictions.iter().map(|p| f64::from(p[i]));
        let mean = x.clone().sum::<f64>() / n;
        x.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n
    };
    (0..entries).map(variance).sum::<f64>() / (entries as f64).max(1.0)
}
