//! Where draws start: a matrix of the two largest modes, and what changes it.

use super::agree::Residuals;
use super::hyper::{FACTOR_VARIANCE, FIRST_VARIANCE};
use super::prior::Belief;
use super::sweep::{Exact, stream};
use crate::error::Result;
use crate::model::{CoreKind, Model};
use crate::random::Stream;
use crate::schedule::Crew;

impl Exact {
    /// Small random rows around 0 in the two largest modes; in the others rows of what entries agree along, and where
    /// they do not tell, rows around 1. A core that lets each number of one of those two meet the same number of the other.
    pub(super) fn start(&mut self, model: &mut Model, seed: u64, crew: &Crew) -> Result<()> {
        let small = small(&self.order);
        let residuals = match (small, self.order.last()) {
            ([_, ..], Some(&largest)) => Some(Residuals::new(&self.tensor[largest])),
            _ => None,
        };
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (rank, stride) = (mode.factor.rank(), mode.factor.stride());
            let mean = self.beliefs[n].mean;
            let columns = match residuals.as_ref().filter(|_| small.contains(&n)) {
                Some(residuals) => {
                    let name = [seed, stream::AGREE, n as u64];
                    residuals.columns((n, mode.rows.len()), rank, &name, crew)?
                }
                None => None,
            };
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
                let mut s = Stream::new(&[seed, stream::ROWS, 0, n as u64, i as u64]);
                let found = columns
                    .as_ref()
                    .and_then(|c| c.get(i * rank..(i + 1) * rank));
                for (j, x) in row[..rank].iter_mut().enumerate() {
                    let around = found.map_or(mean, |row| f64::from(row[j]));
                    *x = (around + spread * s.gauss()) as f32;
                }
            }
        }
        let by = self.undo.by as f32;
        match model.shape.kind {
            CoreKind::Diagonal => model.core[..model.shape.ranks[0]].fill(by),
            CoreKind::Full => {
                let mut dense = super::core::diagonal(&model.shape, &self.order);
                dense.iter_mut().for_each(|g| *g *= by);
                model.core.copy_from_slice(&model.shape.padded_core(&dense));
            }
        }
        model
            .matrices
            .iter_mut()
            .try_for_each(|m| m.factor.as_mut_slice().map(|f| f.fill(0.0)))
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
