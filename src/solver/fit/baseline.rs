//! What is taken out of the values and put back, and where things are pulled to, during a fit.

use super::super::bias_update::refit;
use super::super::full_matrices;
use super::super::loss::Sums;
use super::super::standardization::Centre;
use super::Fit;
use crate::error::Result;
use crate::kernel::Rule;
use crate::model::{FactorMatrix, ParameterSnapshot};
use crate::options::Penalty;

/// The penalty per entry of a core off where it started, for values of deviation 1.
const CORE_PENALTY: f64 = 0.1;

impl Fit<'_> {
    /// Pulls a full core back towards where it started, by all that the entries of an epoch do: so little
    /// of the way that once per epoch is often enough.
    pub(super) fn pull_core(&mut self, eta: f64) {
        let eta = eta * self.data.core_step;
        let entries = self.data.tensor.total();
        let pull = CORE_PENALTY * self.centre.deviation.powi(2) * eta * entries;
        let keep = (1.0 / (1.0 + pull)) as f32;
        for (g, t) in self.model.core.iter_mut().zip(&self.model.core_prior_mean) {
            *g = t + keep * (*g - t);
        }
    }

    /// Before an epoch of SGD (and `after` it): what it does for matrices all of whose cells count.
    pub(super) fn full_matrices(&mut self, eta: f64, after: bool) -> Result<()> {
        if self.data.matrices.iter().all(|m| m.full.is_none()) {
            return Ok(());
        }
        let (model, data, pool) = (&mut self.model, &self.data, &self.pool);
        let rule = Rule {
            l1: self.options.penalty == Penalty::L1,
            nonneg: self.options.nonneg,
        };
        full_matrices::epoch_side(model, data, eta, after, rule, pool)
    }

    /// Moves the biases to where the rest of the model leaves them. Returns the squared errors on the training entries,
    /// which that finds; `None` if there are no biases.
    pub(super) fn refit_biases(&mut self) -> Result<Option<Sums>> {
        let (model, pool) = (&mut self.model, &self.pool);
        if self.centre.biases.is_empty() {
            return Ok(None);
        }
        let sums = refit(model, &self.data.tensor, &mut self.centre, self.level, pool)?;
        self.centre.describe(model)?;
        self.take_biases_out()?;
        Ok(Some(sums))
    }

    /// Takes the biases out of all entries.
    pub(super) fn take_biases_out(&mut self) -> Result<()> {
        let others = self.test.iter_mut().chain(&mut self.valid);
        for entries in others.chain([&mut self.data.tensor]) {
            entries.take_out(&self.centre.biases, &self.pool)?;
        }
        Ok(())
    }

    /// Goes back to the last good epoch.
    pub(super) fn restore_good(&mut self) -> Result<()> {
        self.model.restore(&self.good)?;
        self.centre.take_biases(&self.model);
        self.take_biases_out()
    }

    /// Brings the model, and the best so far, to the scale of the values (`out`) or back.
    pub(super) fn scale(&mut self, out: bool) -> Result<()> {
        let columns = self.model.matrices.iter_mut().map(|m| &mut m.factor);
        let mut columns: Vec<&mut FactorMatrix> = columns.collect();
        self.centre
            .rescale(&mut self.model.core, &mut columns, out)?;
        match &mut self.best {
            Some(best) => rescale(&self.centre, best, out),
            None => Ok(()),
        }
    }
}

/// Brings parameters to the scale of the values (`out`) or back.
pub(super) fn rescale(
    centre: &Centre,
    parameters: &mut ParameterSnapshot,
    out: bool,
) -> Result<()> {
    let mut columns: Vec<&mut FactorMatrix> = parameters.columns.iter_mut().collect();
    centre.rescale(&mut parameters.core, &mut columns, out)
}
