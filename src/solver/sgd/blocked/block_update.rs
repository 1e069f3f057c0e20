//! The tasks of a stratum: SGD updates of a tensor block, a matrix block or a pair of parts of a graph.

use std::array;
use std::ops::Range;

use super::batch_limit::{TensorBatchLimit, max_batch_len};
use super::context::{PassContext, ThreadScratch};
use super::plan::MatrixPlacement;
use super::replica_divergence::SampleKernel;
use super::replicas::{BlockReplicas, Replica};
use super::strata::{Stratum, tournament_pair};
use crate::error::Result;
use crate::kernel::{
    self, BlockUpdateSettings, EntryBlock, MAX_BATCH_LEN, MAX_ORDER, PartRefMut, RowsMut,
};
use crate::random::splitmix64;
use crate::trace::{self, SpanKind};

impl PassContext<'_> {
    /// Runs one task of a round of strata that share the merge at `position` among those of the pass. Returns `false` if `stop`
    /// does before the task may start.
    pub(super) fn run_task(
        &self,
        strata: &[Stratum],
        round: usize,
        position: usize,
        task: usize,
        stop: impl Fn() -> bool,
        scratch: &mut ThreadScratch,
    ) -> Result<bool> {
        // Loading replicas of a large core takes long.
        if self.stop.requested() {
            return Ok(false);
        }
        match strata[round] {
            Stratum::TensorBlocks { number } => {
                let blocking = &self.inputs.plan.blocking;
                let block = self.inputs.plan.block(number, task);
                let coordinates = blocking.coordinates(block);
                let coordinates = &coordinates[..blocking.axes];
                let wait = trace::span(SpanKind::Wait);
                if !self.tasks.wait_for_earlier_rounds(coordinates, round, stop) {
                    return Ok(false);
                }
                drop(wait);
                let _span = trace::numbered_span(SpanKind::Block, block as u64);
                let mut replicas = self.replicas.borrow_mut(task);
                if round == 0 {
                    replicas.load(self.parameters);
                }
                self.update_block(block, &mut replicas, scratch)?;
                if round + 1 == strata.len() && self.pass.measures_divergence(position) {
                    self.predict_sample(&mut replicas, scratch);
                }
                drop(replicas);
                self.tasks.finish(coordinates, round);
            }
            Stratum::ClassGroup { .. } => unreachable!("class groups have tasks of their own"),
            Stratum::MatrixBlocks { matrix, shift } => {
                let _span = trace::span(SpanKind::Block);
                self.update_matrix_block(matrix, shift, task, scratch)?;
            }
            Stratum::GraphPairs { matrix, round } => {
                let _span = trace::span(SpanKind::Block);
                self.update_graph_pair(matrix, round, task, scratch);
            }
        }
        Ok(true)
    }

    /// Updates with the entries of a tensor block and the matrix entries that go with it.
    fn update_block(
        &self,
        block: usize,
        replicas: &mut BlockReplicas,
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        let coordinates = self.inputs.plan.blocking.coordinates(block);
        let modes = &self.inputs.plan.modes;
        let mut parts: [Option<PartRefMut<'_>>; MAX_ORDER] = array::from_fn(|n| {
            let axis = modes.get(n)?.axis?;
            Some(self.parameters.factors[n].borrow_part_mut(coordinates[axis]))
        });
        let parts = &mut parts[..modes.len()];
        // Matrices come before or after the tensor at random.
        let matrices_first = splitmix64(self.segment.stream_key ^ block as u64) & 1 == 1;
        if matrices_first {
            self.update_block_matrices(block, replicas, parts, scratch)?;
        }
        self.update_tensor_block(block, replicas, parts, scratch)?;
        if !matrices_first {
            self.update_block_matrices(block, replicas, parts, scratch)?;
        }
        Ok(())
    }

    /// Predicts the divergence sample with the replicas of a block.
    fn predict_sample(&self, replicas: &mut BlockReplicas, scratch: &mut ThreadScratch) {
        let modes = replicas.modes.iter();
        let modes = modes.map(|mode| mode.as_ref().map(|replica| &replica.rows[..]));
        scratch.sample.predict(
            &self.segment.divergence_sample,
            &replicas.core.rows,
            modes,
            self.stop,
            &mut replicas.sample_predictions,
        );
    }

    fn update_tensor_block(
        &self,
        index: usize,
        replicas: &mut BlockReplicas,
        parts: &mut [Option<PartRefMut<'_>>],
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        let data = self.inputs.data;
        let block = &data.tensor.blocks()[index];
        let limit = &self.batch_limits[index];
        if self.pass.measures_curvature(block.len()) {
            self.measure_batch_limit(block, replicas, parts, &mut scratch.sample, limit);
        }
        for (n, replica) in replicas.modes.iter_mut().enumerate() {
            replica
                .iter_mut()
                .for_each(|r| block.add_row_counts(n, &mut r.entry_counts));
        }
        let entries = block.len() as u32;
        let core_counts = replicas.core.entry_counts.iter_mut();
        core_counts.for_each(|c| *c += entries);
        let order = parts.len();
        let mut modes = parts.iter_mut().zip(&mut replicas.modes);
        let mut rows: [RowsMut<'_>; MAX_ORDER] = array::from_fn(|_| match modes.next() {
            Some((part, replica)) => rows_of(part.as_mut(), replica.as_mut()),
            None => RowsMut::none(),
        });
        let settings = BlockUpdateSettings {
            core_eta: self.segment.core_eta,
            batch_len: limit.batch_len(),
            max_batch_len: limit.max_len(),
            curvature_direction: &self.segment.fiber_steepest.direction,
            curvature: limit.steepness(),
            batch_range: self.pass.batch_range(),
            ..self.kernel_settings(1.0, &self.segment.penalties, &self.segment.prior_means)
        };
        replicas.squared_error += kernel::update_block(
            block,
            self.layout,
            &mut replicas.core.rows,
            &mut rows[..order],
            &settings,
            &self.tensor_stream_id(index),
            &mut scratch.kernel,
        )?;
        replicas.total_weight += block.total_weight() * self.pass.fraction();
        Ok(())
    }

    /// Updates with the matrix entries that go with a tensor block.
    fn update_block_matrices(
        &self,
        index: usize,
        replicas: &mut BlockReplicas,
        parts: &mut [Option<PartRefMut<'_>>],
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        for (m, plan) in self.inputs.plan.matrices.iter().enumerate() {
            if !matches!(plan.placement, MatrixPlacement::TensorBlocks) {
                continue;
            }
            let data = &self.inputs.data.matrices[m];
            let block = &data.entries.blocks()[index];
            if block.len() == 0 {
                continue;
            }
            let mut column_part = plan.blocking.cuts[1].as_ref().map(|cut| {
                self.parameters.columns[m].borrow_part_mut(block.coordinates()[cut.axis])
            });
            if let Some(replica) = replicas.columns[m].as_mut() {
                block.add_row_counts(1, &mut replica.entry_counts);
            }
            let mut rows = [
                rows_of(parts[data.mode].as_mut(), None),
                rows_of(column_part.as_mut(), replicas.columns[m].as_mut()),
            ];
            self.update_matrix(m, block, self.pass.batch_range(), &mut rows, scratch)?;
        }
        Ok(())
    }

    /// Updates with a block of a matrix that has strata of its own.
    fn update_matrix_block(
        &self,
        m: usize,
        shift: usize,
        task: usize,
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        let blocking = &self.inputs.plan.matrices[m].blocking;
        let data = &self.inputs.data.matrices[m];
        let coordinates = [task, (task + shift) % blocking.parts_per_axis];
        let block = &data.entries.blocks()[blocking.block_at(&coordinates)];
        if block.len() == 0 {
            return Ok(());
        }
        let mut rows = self.parameters.factors[data.mode].borrow_part_mut(coordinates[0]);
        let mut columns = self.parameters.columns[m].borrow_part_mut(coordinates[1]);
        let mut rows = [rows.rows_mut(), columns.rows_mut()];
        self.update_matrix(m, block, 0.0..1.0, &mut rows, scratch)
    }

    /// Updates with the edges of a graph between two parts, or within one.
    fn update_graph_pair(&self, m: usize, round: usize, task: usize, scratch: &mut ThreadScratch) {
        let data = &self.inputs.data.matrices[m];
        let blocking = &self.inputs.plan.matrices[m].blocking;
        let (p, q) = tournament_pair(blocking.parts_per_axis, round, task);
        let factor = &self.parameters.factors[data.mode];
        let mut parts = vec![factor.borrow_part_mut(p)];
        if q != p {
            parts.push(factor.borrow_part_mut(q));
        }
        let mut rows: Vec<RowsMut<'_>> = parts.iter_mut().map(PartRefMut::rows_mut).collect();
        let penalty = &self.inputs.data.matrix_row_penalty[data.mode][..];
        let penalties = [penalty; 2];
        let prior_means = [&self.inputs.data.prior_means[data.mode][..]; 2];
        let settings = self.kernel_settings(data.weight, &penalties, &prior_means);
        let blocks = [blocking.block_at(&[p, q]), blocking.block_at(&[q, p])];
        for &block in &blocks[..1 + usize::from(p != q)] {
            let stream_id = self.matrix_stream_id(m, block);
            let block = &data.entries.blocks()[block];
            kernel::update_graph_block(
                block,
                &mut rows,
                factor.stride(),
                &settings,
                &stream_id,
                &mut scratch.kernel,
            );
        }
    }

    fn update_matrix(
        &self,
        m: usize,
        block: &EntryBlock,
        batch_range: Range<f64>,
        rows: &mut [RowsMut<'_>],
        scratch: &mut ThreadScratch,
    ) -> Result<()> {
        let data = &self.inputs.data.matrices[m];
        let row_penalty = &self.inputs.data.matrix_row_penalty[data.mode];
        let penalties: [&[f32]; 2] = [row_penalty, &data.column_penalty];
        let prior_means: [&[f32]; 2] = [&self.inputs.data.prior_means[data.mode], &data.prior_mean];
        let limit = &self.segment.matrix_batch_limits[m];
        let settings = BlockUpdateSettings {
            batch_len: limit.max_len,
            max_batch_len: limit.max_len,
            curvature_direction: &limit.steepest,
            curvature: limit.steepness,
            batch_range,
            ..self.kernel_settings(data.weight, &penalties, &prior_means)
        };
        kernel::update_block(
            block,
            &self.segment.matrix_layouts[m],
            &mut [],
            rows,
            &settings,
            &self.matrix_stream_id(m, block.index()),
            &mut scratch.kernel,
        )?;
        Ok(())
    }

    /// Measures the longest stable batches of a tensor block. Partial derivatives change fast at the start of a fit, so
    /// every block measures the curvature at some of its own entries, several times per epoch. Along the steepest direction
    /// updates are damped instead, so it does not count here.
    fn measure_batch_limit(
        &self,
        block: &EntryBlock,
        replicas: &BlockReplicas,
        parts: &[Option<PartRefMut<'_>>],
        sample: &mut SampleKernel,
        limit: &TensorBatchLimit,
    ) {
        if self.inputs.plan.blocking.fiber_mode.is_none() {
            return limit.set(MAX_BATCH_LEN, 0.0);
        }
        let row = |n: usize, row: u32| match (&parts[n], &replicas.modes[n]) {
            (Some(part), _) => part.row(row),
            (None, Some(replica)) => replica.row(row),
            (None, None) => unreachable!("uncut modes have replicas"),
        };
        let core = &replicas.core.rows;
        let curvature =
            sample.block_curvature(&self.segment.divergence_sample, block, core, row, self.stop);
        let steepness = curvature.fiber_row * self.segment.fiber_steepest.fraction;
        let eta = f64::from(self.segment.eta);
        let core_eta = f64::from(self.segment.core_eta);
        let eta_curvature = eta * (curvature.fiber_row - steepness) + core_eta * curvature.core;
        let max_len = max_batch_len(eta_curvature, eta * steepness);
        limit.set(max_len, steepness as f32);
    }
}

/// Returns the rows that a block updates: its part of a cut mode, or its replica.
fn rows_of<'a>(
    part: Option<&'a mut PartRefMut<'_>>,
    replica: Option<&'a mut Replica>,
) -> RowsMut<'a> {
    match (part, replica) {
        (Some(part), _) => part.rows_mut(),
        (None, Some(replica)) => RowsMut::of_replica(&mut replica.rows),
        (None, None) => unreachable!("uncut modes have replicas"),
    }
}
