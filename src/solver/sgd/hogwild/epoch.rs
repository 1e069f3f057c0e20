//! One lock-free epoch.

use super::exchange_period::exchange_period;
use super::segments::{Component, SegmentOrder};
use super::worker::{EpochInputs, SharedFactor, SharedParameters, Worker};
use crate::error::Result;
use crate::kernel::HogwildKernel;
use crate::kernel::hogwild_rows::HogwildRows;
use crate::model::Model;
use crate::options::{Algorithm, Options};
use crate::parallel::ThreadPool;
use crate::problem::MatrixKind;
use crate::simd::{AlignedVec, Level};
use crate::solver::data::Data;
use crate::trace::{self, SpanKind};
use crate::try_alloc::CORE_ENTRIES;

/// Segments of a thread that have one span in a trace.
const SEGMENTS_PER_SPAN: usize = 64;

/// The inputs of a fit, the same in all epochs.
pub(in crate::solver) struct HogwildInputs<'a> {
    pub data: &'a Data,
    pub options: &'a Options,
    pub level: Level,
}

impl HogwildInputs<'_> {
    /// Runs one epoch. `stream_id` identifies its random streams. Returns the weighted sum of squared errors of the tensor
    /// entries, each before its update.
    pub(in crate::solver) fn run_epoch(
        &self,
        model: &mut Model,
        eta: f64,
        stream_id: &[u64],
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let order = SegmentOrder::new(self.data, self.options.seed, stream_id);
        let assigned = order.distribute(pool.threads());
        let threads = assigned.len();
        let is_naive = self.options.algorithm == Algorithm::Naive;
        let level = if is_naive { Level::Scalar } else { self.level };
        let mut factors = Vec::new();
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (row_count, stride) = (mode.factor.len(), mode.factor.stride());
            let entries = self.data.tensor.list();
            factors.push(SharedFactor {
                rows: HogwildRows::new(mode.factor.as_mut_slice()?, stride, level),
                exchange_period: exchange_period(entries, n, row_count, stride, threads),
            });
        }
        let mut columns = Vec::new();
        for (matrix, data) in model.matrices.iter_mut().zip(&self.data.matrices) {
            let (row_count, stride) = (matrix.factor.len(), matrix.factor.stride());
            columns.push(SharedFactor {
                rows: HogwildRows::new(matrix.factor.as_mut_slice()?, stride, level),
                exchange_period: match data.kind {
                    // The columns of a graph are rows of its mode; those of a full matrix do not change.
                    MatrixKind::Graph | MatrixKind::Full => None,
                    _ => {
                        let entries = data.entries.list();
                        exchange_period(entries, 1, row_count, stride, threads)
                    }
                },
            });
        }
        let mut core = if is_naive {
            let mut core = AlignedVec::try_zeroed(model.core.len(), CORE_ENTRIES)?;
            core.copy_from_slice(&model.core);
            core
        } else {
            HogwildKernel::new(&model.shape, self.level)?.pack(&model.core)?
        };
        let core_len = core.len();
        let shared = SharedParameters {
            shape: &model.shape,
            core: HogwildRows::new(&mut core, core_len, level),
            factors,
            columns,
        };
        // The first thread updates the core with eta P, where P is the inverse of its fraction of the tensor entries.
        let own_entries: usize = assigned[0]
            .iter()
            .map(|&k| order.segments[k])
            .filter(|segment| segment.component == Component::Tensor)
            .map(|segment| segment.len)
            .sum();
        let scaled_entries = self.data.tensor.len() as f64 * self.data.core_eta_scale;
        let core_eta = eta * scaled_entries / own_entries.max(1) as f64;
        let inputs = EpochInputs {
            data: self.data,
            options: self.options,
            level: self.level,
            eta: eta as f32,
            core_eta,
        };
        let squared_errors = pool.run(threads, |thread| {
            let mut worker = Worker::new(&inputs, &shared, &thread)?;
            let own = &assigned[thread.index];
            let mut span = None;
            for (i, &k) in own.iter().enumerate() {
                if i.is_multiple_of(SEGMENTS_PER_SPAN) {
                    drop(span.take());
                    span = Some(trace::span(SpanKind::Block));
                }
                if thread.stop.requested() {
                    break;
                }
                let next = own.get(i + 1).map(|&next| &order.segments[next]);
                worker.update_segment(&order.segments[k], order.walk(k), next);
            }
            drop(span);
            Ok(worker.finish())
        })?;
        let squared_errors: Result<Vec<f64>> = squared_errors.into_iter().collect();
        let squared_errors = squared_errors?;
        drop(shared);
        if is_naive {
            model.core.copy_from_slice(&core);
        } else {
            HogwildKernel::new(&model.shape, self.level)?.unpack(&core, &mut model.core);
        }
        Ok(squared_errors.iter().sum())
    }
}
