//! The divergence of replicas: how much predictions of a few entries differ between them.

use super::config::Parameters;
use super::entry_sample::sample_entries;
use crate::error::Result;
use crate::kernel::{CoreLayout, CoreShape, EntryBlock, MAX_ORDER, Method, TensorKernel};
use crate::progress::StopFlag;
use crate::simd::Level;
use crate::solver::data::Data;

/// Number of entries that are predicted with every replica.
const PREDICTED_ENTRIES: usize = 16;

/// Number of entries of a block on which its curvature is measured.
const CURVATURE_ENTRIES: usize = 12;

/// Sampled entries with their rows as they were at the start of the segment.
pub(super) struct DivergenceSample {
    /// For each entry, the rows of all modes in `mode_order`.
    rows: Vec<f32>,
    /// For each entry, the row index of each mode.
    entries: Vec<Vec<u32>>,
    /// The shape of the core with its modes in `mode_order`.
    shape: CoreShape,
    /// The modes in the order of the core's layout during an epoch: the fiber mode first.
    mode_order: Vec<usize>,
}

/// Computes predictions and derivatives of sampled entries. Each thread has its own.
pub(super) struct SampleKernel {
    kernel: TensorKernel,
    rows: Vec<f32>,
    partials: Vec<f32>,
}

/// Mean squared derivatives of the prediction at entries of a block, by weight.
pub(super) struct BlockCurvature {
    /// By the row of the fiber mode.
    pub fiber_row: f64,
    /// By the core.
    pub core: f64,
}

impl DivergenceSample {
    /// Copies the rows of sampled entries from the current parameters. `layout` is that of the tensor, `shape` the shape of the
    /// model.
    pub(super) fn new(
        parameters: &Parameters<'_>,
        data: &Data,
        layout: &CoreLayout,
        shape: &CoreShape,
    ) -> DivergenceSample {
        let mode_order = layout.mode_order();
        let shape = layout.permuted_shape(shape);
        let entries = sample_entries(data.tensor.blocks(), mode_order.len(), PREDICTED_ENTRIES);
        let entries: Vec<Vec<u32>> = entries.into_iter().map(|entry| entry.rows).collect();
        let mut rows = vec![0.0; entries.len() * shape.rows_len()];
        for (k, &n) in mode_order.iter().enumerate() {
            let (factor, stride) = (parameters.factors[n].borrow_all(), shape.row(k).len());
            for (entry, rows) in entries.iter().zip(rows.chunks_exact_mut(shape.rows_len())) {
                let row = &factor.rows()[entry[n] as usize * stride..][..stride];
                rows[shape.row(k)].copy_from_slice(row);
            }
        }
        DivergenceSample {
            rows,
            entries,
            shape,
            mode_order,
        }
    }
}

impl SampleKernel {
    /// `shape` has the modes in the order of the core's layout.
    pub(super) fn new(shape: &CoreShape, level: Level) -> Result<SampleKernel> {
        Ok(SampleKernel {
            kernel: TensorKernel::new(shape, Method::Shared(level))?,
            rows: vec![0.0; shape.rows_len()],
            partials: vec![0.0; shape.rows_len()],
        })
    }

    /// Predicts all sampled entries with replicas of the core and of some modes; the other modes have the rows of the
    /// sample. There are fewer predictions if `stop` is requested.
    pub(super) fn predict<'a>(
        &mut self,
        sample: &DivergenceSample,
        core: &[f32],
        mode_replicas: impl Iterator<Item = Option<&'a [f32]>>,
        stop: &StopFlag,
        predictions: &mut Vec<f32>,
    ) {
        let shape = &sample.shape;
        let mode_replicas: Vec<Option<&[f32]>> = mode_replicas.collect();
        predictions.clear();
        let rows_of_entries = sample.rows.chunks_exact(shape.rows_len());
        for (entry, rows) in sample.entries.iter().zip(rows_of_entries) {
            if stop.requested() {
                break;
            }
            self.rows.copy_from_slice(rows);
            for (k, &n) in sample.mode_order.iter().enumerate() {
                if let Some(replica) = mode_replicas[n] {
                    let (to, stride) = (shape.row(k), shape.row(k).len());
                    let from = entry[n] as usize * stride;
                    self.rows[to].copy_from_slice(&replica[from..from + stride]);
                }
            }
            predictions.push(self.kernel.value(core, &self.rows));
        }
    }

    /// Computes the derivatives of the prediction of an entry. `row` returns the row of the mode at a position of the core's
    /// layout. Returns the rows and the derivatives by each, one after the other.
    pub(super) fn gradients<'a>(
        &mut self,
        core: &[f32],
        row: impl Fn(usize) -> &'a [f32],
    ) -> (&[f32], &[f32]) {
        let shape = self.kernel.shape();
        for k in 0..shape.order() {
            self.rows[shape.row(k)].copy_from_slice(row(k));
        }
        self.kernel.gradients(core, &self.rows, &mut self.partials);
        (&self.rows, &self.partials)
    }

    /// Measures the curvature at some entries of a block. `row` returns the current row of a mode. Ends early if `stop` is
    /// requested.
    pub(super) fn block_curvature<'a>(
        &mut self,
        sample: &DivergenceSample,
        block: &EntryBlock,
        core: &[f32],
        row: impl Fn(usize, u32) -> &'a [f32],
        stop: &StopFlag,
    ) -> BlockCurvature {
        let shape = &sample.shape;
        let squared_norm = |x: &[f32]| -> f64 { f64::from(x.iter().map(|&x| x * x).sum::<f32>()) };
        let entry = &mut [0; MAX_ORDER][..shape.order()];
        let mut sums = BlockCurvature {
            fiber_row: 0.0,
            core: 0.0,
        };
        let count = CURVATURE_ENTRIES.min(block.len());
        for k in 0..count {
            if stop.requested() {
                break;
            }
            let i = k * block.len() / count;
            block.rows_of_entry(i, entry);
            let weight = f64::from(block.weight(i));
            let mut outer_product = 1.0;
            for (k, &n) in sample.mode_order.iter().enumerate() {
                let row = row(n, entry[n]);
                self.rows[shape.row(k)].copy_from_slice(row);
                outer_product *= squared_norm(row);
            }
            self.kernel.gradients(core, &self.rows, &mut self.partials);
            sums.fiber_row += weight * squared_norm(&self.partials[shape.row(0)]);
            sums.core += weight * outer_product;
        }
        let n = (count as f64).max(1.0);
        BlockCurvature {
            fiber_row: sums.fiber_row / n,
            core: sums.core / n,
        }
    }
}

/// Returns the variance of predictions between replicas, averaged over the entries.
pub(super) fn prediction_variance(predictions: &[&[f32]]) -> f64 {
    let (n, entries) = (predictions.len() as f64, predictions[0].len());
    let variance = |i: usize| {
        let x = predictions.iter().map(|p| f64::from(p[i]));
        let mean = x.clone().sum::<f64>() / n;
        x.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n
    };
    (0..entries).map(variance).sum::<f64>() / (entries as f64).max(1.0)
}
