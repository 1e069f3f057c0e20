//! Latent values of two-valued tensor entries.

use super::probit::Probit;
use super::problem::RowwiseProblem;
use super::state::SweepState;
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::random::hash_words;

impl RowwiseProblem {
    /// Samples the latent values of the entries of mode `n`, given everything else, if the likelihood is probit. `target`
    /// identifies the random streams, together with the sweep.
    pub(super) fn sample_latent_values(
        &mut self,
        n: usize,
        model: &Model,
        state: &SweepState,
        sweep: u64,
        target: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let (Some(probit), Update::Sample { seed }) = (self.probit, self.update) else {
            return Ok(());
        };
        // Residuals of the latent values of the last sweep would have other rounding errors than those of a resumed fit.
        self.tensor[n].map_values(|latent| probit.label(latent));
        let csr = &self.tensor[n];
        let stream = hash_words(&[seed, stream_ids::LATENT_VALUES, sweep, target]);
        let parts = self.map_tensor_residuals(n, model, state, pool, |range, residuals| {
            let sample = |(entry, &e): (usize, &f32)| {
                let label = csr.value(entry);
                let x = f64::from(label) - f64::from(e);
                probit.sample(x, label, hash_words(&[stream, entry as u64]))
            };
            range.zip(residuals).map(sample).collect::<Vec<f32>>()
        })?;
        self.tensor[n].set_values(parts.into_iter().flatten());
        Ok(())
    }

    /// Replaces latent values by the scaled values of the entries.
    pub(super) fn restore_values(&mut self, probit: Probit) {
        for csr in &mut self.tensor {
            csr.map_values(|latent| probit.label(latent));
        }
    }
}
