//! The starting values of `gibbs`.

use super::core_layout::hyper_diagonal_core;
use super::default_priors::{FACTOR_VARIANCE, INITIAL_VARIANCE, small_modes};
use super::problem::RowwiseProblem;
use super::spectral::{CenteredValues, SpectralColumns, UnfoldingGram, used_entry_count};
use super::stream_ids;
use crate::error::Result;
use crate::kernel::{CoreKind, ModeCsr};
use crate::model::Model;
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::try_alloc::try_collect;

impl RowwiseProblem {
    /// Finds the pairs of entries that spectral initialization of the smaller modes uses.
    pub(super) fn find_unfolding_grams(&mut self, pool: &ThreadPool<'_>) -> Result<()> {
        self.unfolding_grams.clear();
        for &n in small_modes(&self.modes_by_size) {
            let rows = self.tensor[n].row_count();
            let gram = UnfoldingGram::new(self.by_largest_mode(), n, rows, pool)?;
            self.unfolding_grams.extend(gram);
        }
        Ok(())
    }

    /// The entries grouped by the rows of the largest mode, as spectral initialization reads them.
    pub(super) fn by_largest_mode(&self) -> &ModeCsr {
        &self.tensor[self.largest_mode()]
    }

    /// Returns spectral columns for each mode that has some. `values` are those of the first entries,
    /// `count` the number of columns of a mode.
    pub(super) fn spectral_columns(
        &self,
        values: Vec<f64>,
        count: impl Fn(usize) -> usize,
        seed: u64,
        sweep: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<Option<SpectralColumns>>> {
        let mut columns: Vec<Option<SpectralColumns>> =
            self.modes_by_size.iter().map(|_| None).collect();
        let values = CenteredValues::new(self.by_largest_mode(), values, pool)?;
        for gram in &self.unfolding_grams {
            let n = gram.mode;
            let key = [seed, stream_ids::SPECTRAL, sweep, n as u64];
            columns[n] = gram.columns(&values, count(n), &key, pool)?;
        }
        Ok(columns)
    }

    /// Fills a model with the starting values of the chain.
    ///
    /// Rows of the two largest modes are small and random around 0; rows of the others are random around spectral
    /// columns, or around 1 where there are none. The core is hyper-diagonal, and matrix columns are 0.
    pub(super) fn initialize(
        &mut self,
        model: &mut Model,
        seed: u64,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let csr = self.by_largest_mode();
        let spectral = if self.unfolding_grams.is_empty() {
            Vec::new()
        } else {
            let values = (0..used_entry_count(csr)).map(|e| f64::from(csr.value(e)));
            let rank = |n: usize| model.shape.ranks()[n];
            let values = try_collect(used_entry_count(csr), values, "entries")?;
            self.spectral_columns(values, rank, seed, 0, pool)?
        };
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            let prior_mean = self.hyperpriors[n].mean;
            let columns = spectral.get(n).and_then(|c| c.as_ref());
            let deviation = match columns {
                // As uncertain as the rows that the first sweep samples.
                Some(_) => INITIAL_VARIANCE.sqrt(),
                None if prior_mean == 0.0 => FACTOR_VARIANCE.sqrt(),
                None => 0.1 * FACTOR_VARIANCE.sqrt(),
            };
            if columns.is_some() {
                self.spectral_modes.push(n);
            }
            let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
            for (i, row) in rows.enumerate() {
                let key = [seed, stream_ids::ROWS, 0, n as u64, i as u64];
                let mut s = RandomStream::new(&key);
                let spectral_row = columns.and_then(|c| c.values.get(i * rank..(i + 1) * rank));
                for (j, x) in row[..rank].iter_mut().enumerate() {
                    let mean = spectral_row.map_or(prior_mean, |row| f64::from(row[j]));
                    *x = (mean + deviation * s.standard_normal()) as f32;
                }
            }
        }
        let scale = self.scaling.scale as f32;
        match model.shape.kind() {
            CoreKind::Diagonal => model.core[..model.shape.ranks()[0]].fill(scale),
            CoreKind::Full => {
                let mut dense = hyper_diagonal_core(&model.shape, &self.modes_by_size)?;
                dense.iter_mut().for_each(|g| *g *= scale);
                model
                    .core
                    .copy_from_slice(&model.shape.padded_core(&dense)?);
            }
        }
        model
            .matrices
            .iter_mut()
            .try_for_each(|m| m.factor.as_mut_slice().map(|f| f.fill(0.0)))
    }
}
