//! Where draws start: a matrix of the two largest modes, and what changes it. And where columns start anew that
//! draws have found nothing for.

use std::ops::Range;

use super::hyperpriors::{FACTOR_VARIANCE, FIRST_VARIANCE};
use super::normal_wishart::Belief;
use super::spectral_init::{Columns, Partners, Residuals, looked_at};
use super::sweep::{Exact, State, Way, stream};
use crate::error::Result;
use crate::kernel::ModeCsr;
use crate::model::Model;

use crate::kernel::CoreKind;
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::solver::reparametrization::column_norms;
use crate::sort::stable_sort_by;

/// Sweeps before which it is looked what draws have left over. Later ones are for coming to rest.
const LOOKS: [u64; 2] = [4, 7];

/// How far that must stand out of noise, and what share of all that is left it must be.
const STANDS_OUT: f64 = 1.3;
const MUCH: f64 = 0.25;

/// The share of columns that start anew then: the smallest.
const ANEW: f64 = 0.25;

impl Exact {
    /// Finds which entries of the smaller modes have others to agree with.
    pub(super) fn find_partners(&mut self, pool: &ThreadPool) -> Result<()> {
        for &n in small(&self.order) {
            let rows = self.tensor[n].row_count();
            let found = Partners::new(self.largest(), (n, rows), pool)?;
            self.partners.extend(found);
        }
        Ok(())
    }

    /// The entries by rows of the mode that has the most.
    fn largest(&self) -> &ModeCsr {
        &self.tensor[*self.order.last().unwrap_or(&0)]
    }

    /// Columns for modes whose entries agree along something, given numbers for those that are looked at.
    fn agreed(
        &self,
        numbers: Vec<f64>,
        count: impl Fn(usize) -> usize,
        (seed, number): (u64, u64),
        pool: &ThreadPool,
    ) -> Result<Vec<Option<Columns>>> {
        let mut found: Vec<Option<Columns>> = self.order.iter().map(|_| None).collect();
        let residuals = Residuals::new(self.largest(), numbers);
        for partners in &self.partners {
            let n = partners.mode;
            let name = [seed, stream::AGREE, number, n as u64];
            found[n] = partners.columns(&residuals, count(n), &name, pool)?;
        }
        Ok(found)
    }

    /// Small random rows around 0 in the two largest modes; in the others rows of what entries agree along, and where
    /// they do not tell, rows around 1. A core that lets each number of one of those two meet the same number of the other.
    pub(super) fn start(&mut self, model: &mut Model, seed: u64, pool: &ThreadPool) -> Result<()> {
        let lists = self.largest();
        let found = match self.partners.is_empty() {
            true => Vec::new(),
            false => {
                let values = (0..looked_at(lists)).map(|e| f64::from(lists.value(e)));
                let rank = |n: usize| model.shape.ranks[n];
                self.agreed(values.collect(), rank, (seed, 0), pool)?
            }
        };
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            let mean = self.beliefs[n].mean;
            let columns = found.get(n).and_then(|c| c.as_ref());
            let spread = match columns {
                // As unsure as the first sweep is of rows that it draws.
                Some(_) => FIRST_VARIANCE.sqrt(),
                None if mean == 0.0 => FACTOR_VARIANCE.sqrt(),
                None => 0.1 * FACTOR_VARIANCE.sqrt(),
            };
            if columns.is_some() {
                self.waits.push(n);
            }
            let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
            for (i, row) in rows.enumerate() {
                let mut s = RandomStream::new(&[seed, stream::ROWS, 0, n as u64, i as u64]);
                let found = columns.and_then(|c| c.numbers.get(i * rank..(i + 1) * rank));
                for (j, x) in row[..rank].iter_mut().enumerate() {
                    let around = found.map_or(mean, |row| f64::from(row[j]));
                    *x = (around + spread * s.standard_normal()) as f32;
                }
            }
        }
        let by = self.undo.by as f32;
        match model.shape.kind {
            CoreKind::Diagonal => model.core[..model.shape.ranks[0]].fill(by),
            CoreKind::Full => {
                let mut dense = super::core_update::diagonal(&model.shape, &self.order);
                dense.iter_mut().for_each(|g| *g *= by);
                model.core.copy_from_slice(&model.shape.padded_core(&dense));
            }
        }
        model
            .matrices
            .iter_mut()
            .try_for_each(|m| m.factor.as_mut_slice().map(|f| f.fill(0.0)))
    }

    /// Lets the smallest columns of a CP model start anew along what entries agree on beyond the model, if that is much: a column for
    /// which the starts of several modes did not meet could wait for long until chance finds it. What all modes show is
    /// such a column; entries agree along one mode for other reasons, too.
    pub(super) fn look(
        &self,
        model: &mut Model,
        state: &State,
        number: u64,
        pool: &ThreadPool,
    ) -> Result<()> {
        let Way::Draw { seed } = self.way else {
            return Ok(());
        };
        let diagonal = model.shape.kind == CoreKind::Diagonal;
        if !LOOKS.contains(&number) || !diagonal || self.partners.len() < 2 {
            return Ok(());
        }
        let rank = model.shape.ranks[0];
        let count = (ANEW * rank as f64) as usize;
        let left = self.left_over(model, state, pool)?;
        let found = self.agreed(left, |_| count, (seed, number), pool)?;
        let missed = |c: &Columns| c.strength > STANDS_OUT && c.share > MUCH;
        let shown = found.iter().flatten().filter(|c| missed(c)).count();
        if count == 0 || shown < self.partners.len() {
            return Ok(());
        }
        let mut sizes = vec![1.0; rank];
        for n in 0..model.modes.len() {
            let norms = column_norms(model, n);
            sizes.iter_mut().zip(norms).for_each(|(s, x)| *s *= x);
        }
        let mut anew: Vec<usize> = (0..rank).collect();
        stable_sort_by(&mut anew, &|&a, &b| sizes[a].total_cmp(&sizes[b]));
        anew.truncate(count);
        let spread = FIRST_VARIANCE.sqrt();
        for (n, (mode, columns)) in model.modes.iter_mut().zip(&found).enumerate() {
            let stride = mode.factor.stride();
            let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
            for (i, row) in rows.enumerate() {
                let mut s = RandomStream::new(&[seed, stream::AGREE, number, n as u64, i as u64]);
                let found = columns.as_ref().map(|c| &c.numbers[..]);
                let found = found.and_then(|c| c.get(i * count..(i + 1) * count));
                for (k, &j) in anew.iter().enumerate() {
                    let around = found.map_or(self.beliefs[n].mean, |row| f64::from(row[k]));
                    row[j] = (around + spread * s.standard_normal()) as f32;
                }
            }
        }
        for matrix in &mut model.matrices {
            let stride = matrix.factor.stride();
            let rows = matrix.factor.as_mut_slice()?.chunks_exact_mut(stride);
            rows.for_each(|row| anew.iter().for_each(|&j| row[j] = 0.0));
        }
        Ok(())
    }

    /// What the model leaves of the entries that are looked at.
    fn left_over(&self, model: &Model, state: &State, pool: &ThreadPool) -> Result<Vec<f64>> {
        let mut all = vec![0.0; looked_at(self.largest())];
        let keep = |range: Range<usize>, e: &[f32]| {
            let kept = all.len().saturating_sub(range.start).min(e.len());
            (range.start, e[..kept].to_vec())
        };
        let largest = *self.order.last().unwrap_or(&0);
        let pieces = self.errors_by(largest, model, state, pool, keep)?;
        for (first, piece) in pieces.into_iter().filter(|p| !p.1.is_empty()) {
            let place = all[first..].iter_mut().zip(piece);
            place.for_each(|(to, e)| *to = f64::from(e));
        }
        Ok(all)
    }
}

/// All but the two largest modes, given the modes by size.
fn small(by_size: &[usize]) -> &[usize] {
    &by_size[..by_size.len().saturating_sub(2)]
}

/// What the rows of mode `n` are thought to be like, given the modes by size.
pub(super) fn belief(by_size: &[usize], n: usize) -> Belief {
    Belief {
        mean: if small(by_size).contains(&n) {
            1.0
        } else {
            0.0
        },
        mean_rows: 2.0,
        variance: 0.3 * FACTOR_VARIANCE,
        rows: 0.0,
    }
}
