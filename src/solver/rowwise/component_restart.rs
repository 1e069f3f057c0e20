//! Restarts of CP components that the chain has not found during burn-in.

use std::ops::Range;

use super::default_priors::INITIAL_VARIANCE;
use super::problem::RowwiseProblem;
use super::spectral::{SpectralColumns, used_entry_count};
use super::state::SweepState;
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::kernel::CoreKind;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::solver::reparametrization::column_norms;
use crate::sort::stable_sort_by;

/// Sweeps before which residuals are checked. The later sweeps of the burn-in leave the chain time to converge.
const RESTART_SWEEPS: [u64; 2] = [4, 7];

/// Least signal-to-noise ratio of the residuals' first eigenvector, and least fraction of their variance that it explains,
/// for a restart.
const MIN_SIGNAL_TO_NOISE: f64 = 1.3;
const MIN_EXPLAINED_FRACTION: f64 = 0.25;

/// Fraction of the components that restart: the smallest.
const RESTARTED_FRACTION: f64 = 0.25;

impl RowwiseProblem {
    /// Restarts the smallest components of a CP model along the spectral columns of the residuals, if the residuals have
    /// strong structure.
    ///
    /// A component whose starting values in several modes did not fit together can take the chain long to find. Its
    /// residuals have structure in all modes; structure in one mode alone has other causes, too.
    pub(super) fn restart_components(
        &self,
        model: &mut Model,
        state: &SweepState,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let Update::Sample { seed } = self.update else {
            return Ok(());
        };
        let is_cp = model.shape.kind() == CoreKind::Diagonal;
        if !RESTART_SWEEPS.contains(&sweep) || !is_cp || self.unfolding_grams.len() < 2 {
            return Ok(());
        }
        let rank = model.shape.ranks()[0];
        let count = (RESTARTED_FRACTION * rank as f64) as usize;
        let residuals = self.first_residuals(model, state, pool)?;
        let columns = self.spectral_columns(residuals, |_| count, seed, sweep, pool)?;
        let has_structure = |c: &&SpectralColumns| {
            c.signal_to_noise > MIN_SIGNAL_TO_NOISE && c.explained_fraction > MIN_EXPLAINED_FRACTION
        };
        let structured = columns.iter().flatten().filter(has_structure).count();
        if count == 0 || structured < self.unfolding_grams.len() {
            return Ok(());
        }
        let restarted = smallest_components(model, count);
        let deviation = INITIAL_VARIANCE.sqrt();
        for (n, (mode, columns)) in model.modes.iter_mut().zip(&columns).enumerate() {
            let stride = mode.factor.stride();
            let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
            for (i, row) in rows.enumerate() {
                let key = [seed, stream_ids::SPECTRAL, sweep, n as u64, i as u64];
                let mut s = RandomStream::new(&key);
                let spectral_row = columns
                    .as_ref()
                    .and_then(|c| c.values.get(i * count..(i + 1) * count));
                for (k, &j) in restarted.iter().enumerate() {
                    let prior_mean = self.hyperpriors[n].mean;
                    let mean = spectral_row.map_or(prior_mean, |row| f64::from(row[k]));
                    row[j] = (mean + deviation * s.standard_normal()) as f32;
                }
            }
        }
        for matrix in &mut model.matrices {
            let stride = matrix.factor.stride();
            let rows = matrix.factor.as_mut_slice()?.chunks_exact_mut(stride);
            rows.for_each(|row| restarted.iter().for_each(|&j| row[j] = 0.0));
        }
        Ok(())
    }

    /// Computes the residuals of the entries that spectral initialization uses: the first ones by the largest mode.
    fn first_residuals(
        &self,
        model: &Model,
        state: &SweepState,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f64>> {
        let mut residuals = vec![0.0; used_entry_count(self.by_largest_mode())];
        let keep_used = |range: Range<usize>, e: &[f32]| {
            let used = residuals.len().saturating_sub(range.start).min(e.len());
            (range.start, e[..used].to_vec())
        };
        let n = self.largest_mode();
        let parts = self.map_tensor_residuals(n, model, state, pool, keep_used)?;
        for (start, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            residuals[start..]
                .iter_mut()
                .zip(part)
                .for_each(|(to, e)| *to = f64::from(e));
        }
        Ok(residuals)
    }
}

/// Returns the components with the smallest products of their columns' norms.
fn smallest_components(model: &Model, count: usize) -> Vec<usize> {
    let rank = model.shape.ranks()[0];
    let mut sizes = vec![1.0; rank];
    for n in 0..model.modes.len() {
        let norms = column_norms(model, n);
        sizes.iter_mut().zip(norms).for_each(|(s, x)| *s *= x);
    }
    let mut components: Vec<usize> = (0..rank).collect();
    stable_sort_by(&mut components, &|&a, &b| sizes[a].total_cmp(&sizes[b]));
    components.truncate(count);
    components
}
