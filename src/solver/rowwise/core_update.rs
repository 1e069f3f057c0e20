//! The update of a full core given all rows.
//!
//! The values of all entries are linear in the core g: x^ = A g, where the row of A for an entry is the outer product of
//! the entry's rows. Given the rows, the core has the normal distribution with precision and mean
//!
//! ```text
//! P = alpha A^T W A + ridge I,   P^-1 (alpha A^T W r + ridge g0)
//! ```
//!
//! with alpha the precision of the noise, W the weights, r the values less biases, and g0 the prior mean: the
//! hyper-diagonal core for `gibbs`, 0 for `als`. P is too large to factorize, so `als` solves by conjugate gradients,
//! preconditioned with the diagonal of P. `gibbs` samples by solving for a perturbed right-hand side
//!
//! ```text
//! P g = alpha A^T W r + ridge g0 + A^T (alpha W)^(1/2) z_1 + ridge^(1/2) z_2
//! ```
//!
//! with standard normal z_1 and z_2: the perturbation has covariance P, so the solution has covariance P^-1
//! (perturbation optimization: Papandreou and Yuille, NIPS 2010). Non-negative cores take multiplicative updates instead.

use super::core_layout::{hyper_diagonal_core, permute_core, unpermute_core};
use super::core_sums::{CoreFactors, CoreSums, EntryCoefficient, FactorRows};
use super::normal_wishart::sample_gamma;
use super::stream_ids;
use super::update::Update;
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::linalg::{ConjugateGradient, Operator};
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::progress::{OPERATIONS_PER_NORMAL_SAMPLE, count_operations, steps_per_poll};
use crate::random::RandomStream;
use crate::simd::{Level, padded_len};
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Accuracy of the core: the next sweep continues from there.
const CONJUGATE_GRADIENT: ConjugateGradient = ConjugateGradient {
    iterations: 20,
    tolerance: 1e-2,
};

/// Prior variance of the core's elements around the hyper-diagonal core.
const CORE_VARIANCE: f64 = 0.01;

/// Number of multiplicative updates of a non-negative core per sweep.
const MULTIPLICATIVE_UPDATES: usize = 4;

/// The fixed inputs of an update of the core.
pub(super) struct CoreUpdate<'a> {
    pub update: Update,
    /// alpha: the precision of the noise.
    pub noise_precision: f64,
    pub sweep: u64,
    /// The model's core is `scale` times that of scaled values.
    pub scale: f64,
    pub modes_by_size: &'a [usize],
    pub level: Level,
    /// The entries grouped by `mode`, and their division into parts.
    pub csr: &'a ModeCsr,
    pub mode: usize,
    pub sums: &'a CoreSums,
}

impl CoreUpdate<'_> {
    /// Updates the core of the model. A core that is not finite leaves the old one in place.
    pub(super) fn run(
        &self,
        model: &mut Model,
        biases: &[Vec<f32>],
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let csr = self.csr;
        let order: Vec<usize> = [self.mode]
            .into_iter()
            .chain(csr.other_modes().iter().copied())
            .collect();
        let shape = model.shape.clone();
        let start = permute_core(&shape, &model.core, &order, self.scale, pool.monitor())?;
        let (prior_mean, ridge) = self.prior(model, &order, &start, pool)?;
        let factors = CoreFactors {
            modes: order
                .iter()
                .map(|&m| FactorRows {
                    rows: model.modes[m].factor.as_slice(),
                    rank: shape.ranks()[m],
                })
                .collect(),
            level: self.level,
        };
        let biases: Vec<&[f32]> = order.iter().map(|&m| &biases[m][..]).collect();
        let mut rhs = self.perturbed_rhs(&factors, &biases, pool)?;
        let gram_diagonal = self.gram_diagonal(&factors, pool)?;
        let last_rank = factors.modes[factors.modes.len() - 1].rank;
        let is_padding = |k: usize| k % padded_len(last_rank) >= last_rank;
        for (k, q) in rhs.iter_mut().enumerate() {
            if k.is_multiple_of(steps_per_poll(OPERATIONS_PER_NORMAL_SAMPLE)) {
                pool.check_cancelled()?;
            }
            if is_padding(k) {
                *q = 0.0;
                continue;
            }
            *q += ridge * prior_mean[k];
            if let Update::Sample { seed } = self.update {
                let key = [seed, stream_ids::CORE, self.sweep, 2, k as u64];
                *q += ridge.sqrt() * RandomStream::new(&key).standard_normal();
                count_operations(OPERATIONS_PER_NORMAL_SAMPLE);
            }
        }
        let alpha = self.noise_precision;
        let mut times_p = |g: &[f64]| -> Result<Vec<f64>> {
            let core: Vec<f32> = try_collect(g.len(), g.iter().map(|&g| g as f32), CORE_ENTRIES)?;
            let values = EntryCoefficient::ModelValue(&core);
            let mut product = self.sums.compute(csr, &factors, &values, pool)?;
            for (k, p) in product.iter_mut().enumerate() {
                *p = if is_padding(k) {
                    0.0
                } else {
                    alpha * *p + ridge * g[k]
                };
            }
            Ok(product)
        };
        let mut inverse_diagonal = gram_diagonal;
        for d in &mut inverse_diagonal {
            *d = 1.0 / (alpha * *d + ridge).max(1e-30);
        }
        let start = start.iter().map(|&g| f64::from(g));
        let mut core: Vec<f64> = try_collect(rhs.len(), start, CORE_ENTRIES)?;
        match self.update {
            Update::LeastSquares { nonneg: true, .. } => {
                multiplicative_updates(&mut core, &rhs, &mut times_p)?
            }
            _ => CONJUGATE_GRADIENT.solve(&mut core, &rhs, &inverse_diagonal, &mut times_p)?,
        }
        if core.iter().all(|g| (*g as f32).is_finite()) {
            let core = unpermute_core(&shape, &core, &order, self.scale, pool.monitor())?;
            model.core.copy_from_slice(&core);
        }
        Ok(())
    }

    /// Returns the prior mean of the core, with its modes in this order, and its precision. `gibbs` samples the precision
    /// given the core, from its gamma distribution.
    fn prior(
        &self,
        model: &Model,
        order: &[usize],
        core: &[f32],
        pool: &ThreadPool<'_>,
    ) -> Result<(Vec<f64>, f64)> {
        let mut mean: Vec<f64> = try_zeroed(core.len(), CORE_ENTRIES)?;
        let seed = match self.update {
            Update::LeastSquares { core_ridge, .. } => return Ok((mean, core_ridge)),
            Update::Sample { seed } => seed,
        };
        let shape = &model.shape;
        let diagonal = hyper_diagonal_core(shape, self.modes_by_size)?;
        let diagonal = shape.padded_core(&diagonal)?;
        let diagonal = permute_core(shape, &diagonal, order, 1.0, pool.monitor())?;
        let deviations = mean.iter_mut().zip(diagonal).zip(core);
        let squares = deviations.map(|((mean, diagonal), &g)| {
            *mean = f64::from(diagonal);
            (f64::from(g) - *mean).powi(2)
        });
        let squares: f64 = squares.sum();
        let half = 0.5 * shape.ranks().iter().product::<usize>() as f64;
        let mut s = RandomStream::new(&[seed, stream_ids::CORE, self.sweep]);
        let precision = sample_gamma(&mut s, 1.5 * half) / (0.5 * (half * CORE_VARIANCE + squares));
        Ok((mean, precision))
    }

    /// Computes alpha A^T W r, for `gibbs` plus the perturbation A^T (alpha W)^(1/2) z_1.
    fn perturbed_rhs(
        &self,
        factors: &CoreFactors<'_>,
        biases: &[&[f32]],
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f64>> {
        let csr = self.csr;
        let residual = |entry: usize, row: usize| {
            let mut r = csr.value(entry);
            if let Some(bias) = biases[0].get(row) {
                r -= bias;
            }
            let rows = csr.other_rows(entry);
            for (m, biases) in biases[1..].iter().enumerate() {
                r -= biases.get(rows[m] as usize).copied().unwrap_or(0.0);
            }
            r
        };
        let coefficient = |entry: usize, row: usize| {
            let weight = self.noise_precision * f64::from(csr.weight(entry));
            let r = weight * f64::from(residual(entry, row));
            match self.update {
                Update::LeastSquares { .. } => r as f32,
                Update::Sample { seed } => {
                    let key = [seed, stream_ids::CORE, self.sweep, 1, entry as u64];
                    (r + weight.sqrt() * RandomStream::new(&key).standard_normal()) as f32
                }
            }
        };
        let coefficient = EntryCoefficient::Given(&coefficient);
        self.sums.compute(csr, factors, &coefficient, pool)
    }

    /// Computes the diagonal of A^T W A: the sum of products of squared rows.
    fn gram_diagonal(&self, factors: &CoreFactors<'_>, pool: &ThreadPool<'_>) -> Result<Vec<f64>> {
        let squares = factors.modes.iter().map(|m| {
            let squares = m.rows.iter().map(|u| u * u);
            try_collect(m.rows.len(), squares, "row elements")
        });
        let squares: Vec<Vec<f32>> = squares.collect::<Result<_>>()?;
        let squared_factors = CoreFactors {
            modes: squares
                .iter()
                .zip(&factors.modes)
                .map(|(rows, mode)| FactorRows {
                    rows,
                    rank: mode.rank,
                })
                .collect(),
            level: factors.level,
        };
        let weight = |entry: usize, _: usize| self.csr.weight(entry);
        let coefficient = EntryCoefficient::Given(&weight);
        self.sums
            .compute(self.csr, &squared_factors, &coefficient, pool)
    }
}

/// Improves a non-negative solution of P g = q by multiplying each element with the ratio of q to P g, which never
/// increases the objective (Lee and Seung, 2001).
fn multiplicative_updates(g: &mut [f64], q: &[f64], times_p: &mut Operator<'_>) -> Result<()> {
    for _ in 0..MULTIPLICATIVE_UPDATES {
        let product = times_p(g)?;
        for (g, (q, p)) in g.iter_mut().zip(q.iter().zip(product)) {
            *g = if p > 0.0 { *g * (q.max(0.0) / p) } else { 0.0 };
        }
    }
    Ok(())
}
