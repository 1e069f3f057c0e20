//! Merging the replicas of a row: how the deltas of the blocks become one delta.

// One index runs over several arrays.
#![allow(clippy::needless_range_loop)]

use super::curvature_basis::{CURVATURE_SAFETY_FACTOR, CurvatureBasis, EntryCounts, MergeScratch};
use super::replicas::Replica;
use crate::kernel::decayed_sum;
use crate::simd::Level;

/// The weights of the blocks' deltas along a direction. Their sum is the same in both cases
/// ([`merge_factor`](super::curvature_basis::merge_factor)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DeltaWeights {
    /// Those of blocks that are processed one after the other, in cyclic order from block `first` on, which is random.
    Sequential { first: usize },
    /// The same for all blocks, by which their noise cancels.
    Equal,
}

/// Merges rows of one factor.
pub(super) struct RowMerge<'a> {
    level: Level,
    basis: &'a CurvatureBasis,
    /// The learning rate, times the fraction of the counted entries that were processed.
    eta: f32,
    weights: DeltaWeights,
    delta: Vec<f32>,
    /// For each replica that saw the row, its number of entries.
    counts: Vec<f32>,
    /// For each of them, its delta.
    deltas: Vec<f32>,
    /// For each of them, the components of its delta along the directions.
    components: Vec<f32>,
    /// For each direction, how fast an entry makes a row forget earlier deltas.
    rates: Vec<f32>,
    /// For each direction, the weighted sum of components.
    sums: Vec<f32>,
    scratch: MergeScratch,
}

impl<'a> RowMerge<'a> {
    pub(super) fn new(
        level: Level,
        basis: &'a CurvatureBasis,
        eta: f32,
        weights: DeltaWeights,
    ) -> RowMerge<'a> {
        RowMerge {
            level,
            basis,
            eta,
            weights,
            delta: Vec::new(),
            counts: Vec::new(),
            deltas: Vec::new(),
            components: Vec::new(),
            rates: Vec::new(),
            sums: Vec::new(),
            scratch: MergeScratch::default(),
        }
    }

    /// Returns the merged delta of a row that is `current` now. `penalty` is that of the row, per entry. Returns `None` if no
    /// replica saw an entry.
    pub(super) fn merged_delta(
        &mut self,
        replicas: &[&Replica],
        row: usize,
        current: &[f32],
        penalty: f32,
    ) -> Option<&[f32]> {
        self.delta.resize(current.len(), 0.0);
        match self.weights {
            DeltaWeights::Equal => {
                let entries = sum_deltas(replicas, row, current, &mut self.delta)?;
                let (delta, scratch) = (&mut self.delta, &mut self.scratch);
                self.basis
                    .merge_row(delta, self.eta, penalty, entries, scratch);
            }
            DeltaWeights::Sequential { first } => {
                self.merge_sequentially(replicas, first, row, current, penalty)?;
            }
        }
        Some(&self.delta)
    }

    /// Every further block forgets a part of the deltas before it, and adds its own.
    fn merge_sequentially(
        &mut self,
        replicas: &[&Replica],
        first: usize,
        row: usize,
        current: &[f32],
        penalty: f32,
    ) -> Option<()> {
        self.read_deltas(replicas, first, row, current);
        let components = match &self.basis.rotation {
            None => &self.deltas,
            Some(rotation) => {
                self.components.resize(self.deltas.len(), 0.0);
                rotation.to_basis.apply(&self.deltas, &mut self.components);
                &self.components
            }
        };
        let scale = CURVATURE_SAFETY_FACTOR * self.eta;
        self.rates.clear();
        let rates = self.basis.curvature.iter().map(|c| scale * (c + penalty));
        self.rates.extend(rates);
        self.rates.resize(current.len(), 0.0);
        self.sums.resize(current.len(), 0.0);
        decayed_sum(
            self.level,
            components,
            &self.counts,
            &self.rates,
            &mut self.sums,
        );
        match &self.basis.rotation {
            None => self.delta.copy_from_slice(&self.sums),
            Some(rotation) => rotation.from_basis.apply(&self.sums, &mut self.delta),
        }
        (!self.counts.is_empty()).then_some(())
    }

    /// Reads the deltas of the replicas that saw the row, in cyclic order from replica `first` on.
    fn read_deltas(&mut self, replicas: &[&Replica], first: usize, row: usize, current: &[f32]) {
        let stride = current.len();
        self.counts.clear();
        self.deltas.resize(replicas.len() * stride, 0.0);
        for k in 0..replicas.len() {
            let replica = replicas[(first + k) % replicas.len()];
            let count = replica.entry_counts[row];
            if count > 0 {
                let delta = &mut self.deltas[self.counts.len() * stride..][..stride];
                let replica = &replica.rows[row * stride..][..stride];
                for j in 0..stride {
                    delta[j] = replica[j] - current[j];
                }
                self.counts.push(count as f32);
            }
        }
        self.deltas.truncate(self.counts.len() * stride);
    }
}

/// Sums the deltas of all replicas of a row against its current value. Returns the number of entries behind them, and the
/// entry-weighted mean of that number per replica; `None` if no replica saw an entry.
#[inline]
pub(super) fn sum_deltas(
    replicas: &[&Replica],
    row: usize,
    current: &[f32],
    delta: &mut [f32],
) -> Option<EntryCounts> {
    let delta = &mut delta[..current.len()];
    let (mut total, mut squares) = (0.0f64, 0.0f64);
    delta.fill(0.0);
    for replica in replicas {
        let count = f64::from(replica.entry_counts[row]);
        if count > 0.0 {
            let replica = &replica.rows[row * current.len()..][..current.len()];
            for j in 0..current.len() {
                delta[j] += replica[j] - current[j];
            }
            (total, squares) = (total + count, squares + count * count);
        }
    }
    (total > 0.0).then_some(EntryCounts {
        total: total as f32,
        per_replica: (squares / total) as f32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{AlignedVec, LANES};

    const ETA: f32 = 0.01;

    /// Two orthogonal directions that are not coordinate axes, with the given curvatures.
    fn basis(curvature: [f32; 2]) -> CurvatureBasis {
        let directions = vec![0.6, 0.8, -0.8, 0.6];
        let curvature = curvature.map(|c| c / CURVATURE_SAFETY_FACTOR).to_vec();
        CurvatureBasis::new(Level::best(), directions, curvature)
    }

    /// One row with `rows` as its values in each replica, after `entries` entries.
    fn replicas(rows: &[[f32; 2]], entries: &[u32]) -> Vec<Replica> {
        let replica = |(row, &n): (&[f32; 2], &u32)| {
            let mut values = AlignedVec::try_zeroed(LANES, "floats").unwrap();
            values[..2].copy_from_slice(row);
            Replica {
                rows: values,
                entry_counts: vec![n],
            }
        };
        rows.iter().zip(entries).map(replica).collect()
    }

    fn merged(basis: &CurvatureBasis, replicas: &[Replica], weights: DeltaWeights) -> [f32; 2] {
        let replicas: Vec<&Replica> = replicas.iter().collect();
        let mut merge = RowMerge::new(Level::best(), basis, ETA, weights);
        let delta = merge.merged_delta(&replicas, 0, &[0.0; LANES], 0.0);
        let delta = delta.expect("there are entries");
        assert!(delta[2..].iter().all(|&x| x == 0.0));
        [delta[0], delta[1]]
    }

    /// Row after `n` updates towards `optimum` along each direction of `basis`.
    fn updated(basis: &CurvatureBasis, row: [f32; 2], optimum: [f32; 2], n: u32) -> [f32; 2] {
        let mut result = row;
        for (k, d) in basis.directions.chunks_exact(2).enumerate() {
            let distance = (0..2).map(|j| d[j] * (optimum[j] - row[j])).sum::<f32>();
            let eta_curvature = ETA * basis.curvature[k] * CURVATURE_SAFETY_FACTOR;
            let progress = distance * (1.0 - (-eta_curvature * n as f32).exp());
            (0..2).for_each(|j| result[j] += d[j] * progress);
        }
        result
    }

    #[test]
    fn the_sequential_merge_of_a_quadratic_loss_is_exact() {
        let basis = basis([5.0, 0.03]);
        let optima = [[1.0, -2.0], [3.0, 0.5], [-1.0, 4.0], [0.2, 0.1]];
        let entries = [40, 10, 25, 0];
        for first in 0..4 {
            let mut sequential = [0.0; 2];
            let mut replica_rows = [[0.0; 2]; 4];
            for k in 0..4 {
                let j = (first + k) % 4;
                sequential = updated(&basis, sequential, optima[j], entries[j]);
                replica_rows[j] = updated(&basis, [0.0; 2], optima[j], entries[j]);
            }
            let replicas = replicas(&replica_rows, &entries);
            let result = merged(&basis, &replicas, DeltaWeights::Sequential { first });
            for j in 0..2 {
                assert!(
                    (result[j] - sequential[j]).abs() < 1e-4,
                    "{result:?} {sequential:?}"
                );
            }
        }
    }

    #[test]
    fn both_weights_have_the_same_sum() {
        for curvature in [[1e-6, 0.5], [3.0, 100.0]] {
            let basis = basis(curvature);
            let replicas = replicas(&[[1.0, 2.0]; 5], &[30; 5]);
            let equal = merged(&basis, &replicas, DeltaWeights::Equal);
            let sequential = merged(&basis, &replicas, DeltaWeights::Sequential { first: 2 });
            for j in 0..2 {
                assert!(
                    (equal[j] / sequential[j] - 1.0).abs() < 1e-3,
                    "{equal:?} {sequential:?}"
                );
            }
        }
    }

    #[test]
    fn rows_without_entries_are_not_merged() {
        let basis = basis([1.0, 1.0]);
        let replicas = replicas(&[[1.0, 2.0]; 2], &[0; 2]);
        let replicas: Vec<&Replica> = replicas.iter().collect();
        for weights in [DeltaWeights::Equal, DeltaWeights::Sequential { first: 1 }] {
            let mut merge = RowMerge::new(Level::best(), &basis, ETA, weights);
            assert!(
                merge
                    .merged_delta(&replicas, 0, &[0.0; LANES], 0.0)
                    .is_none()
            );
        }
    }
}
