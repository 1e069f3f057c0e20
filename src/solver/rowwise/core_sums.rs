//! Sums over all entries of c (u_1 (x) u_2 (x) ... (x) u_N), the products of the least-squares problem of a full core.
//!
//! With A the matrix whose rows are the outer products of the entries' rows, the sums are A^T c for given coefficients c,
//! and A^T W A g for the model's values c = W A g of a core g: one pass over the entries each. Entries of a [`ModeCsr`] are
//! sorted, so neighbours share most rows: contractions of the core with the shared rows, and sums that are still to be
//! multiplied with them, are kept for every level of the order.

use std::ops::Range;

use crate::error::Result;
use crate::kernel::{Coefficients, ModeCsr, add_fiber, add_outer, weighted_sum};
use crate::parallel::ThreadPool;
use crate::progress::{StopFlag, steps_per_poll};
use crate::simd::{Level, padded_len};
use crate::try_alloc::{CORE_ENTRIES, try_zeroed};

/// The entries of the tensor, divided into parts of about equal size.
pub(super) struct CoreSums {
    parts: Vec<Range<usize>>,
}

/// Maximum number of parts, and the least number of entries of one.
const MAX_PARTS: usize = 64;
const MIN_PART_ENTRIES: usize = 1 << 13;

/// Number of fibers whose sums are added in `f32` before they go to the `f64` total.
const FIBERS_PER_FLUSH: usize = 256;

/// The padded rows and the rank of a mode.
#[derive(Clone, Copy)]
pub(super) struct FactorRows<'a> {
    pub rows: &'a [f32],
    pub rank: usize,
}

/// The factors of all modes, in the order of the [`ModeCsr`]: its own mode first, then its other modes.
pub(super) struct CoreFactors<'a> {
    pub modes: Vec<FactorRows<'a>>,
    pub level: Level,
}

/// The coefficient c of an entry.
pub(super) enum EntryCoefficient<'a> {
    /// A function of the entry and its row.
    Given(&'a (dyn Fn(usize, usize) -> f32 + Sync)),
    /// The entry's weight times the value that this core gives it.
    ModelValue(&'a [f32]),
}

impl CoreFactors<'_> {
    fn row(&self, depth: usize, row: usize) -> &[f32] {
        let FactorRows { rows, rank } = self.modes[depth];
        &rows[row * padded_len(rank)..][..rank]
    }

    /// Number of floats of a core over the modes from the `first` on.
    fn core_len(&self, first: usize) -> usize {
        let last = self.modes.len() - 1;
        let ranks = self.modes[first..last].iter().map(|m| m.rank);
        ranks.product::<usize>() * padded_len(self.modes[last].rank)
    }
}

impl CoreSums {
    pub(super) fn new(csr: &ModeCsr) -> CoreSums {
        let length = csr.len().div_ceil(MAX_PARTS).max(MIN_PART_ENTRIES);
        let starts = (0..csr.len()).step_by(length);
        CoreSums {
            parts: starts.map(|a| a..(a + length).min(csr.len())).collect(),
        }
    }

    /// Computes the sum over all entries. The parts are added in order.
    pub(super) fn compute(
        &self,
        csr: &ModeCsr,
        factors: &CoreFactors<'_>,
        coefficient: &EntryCoefficient<'_>,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<f64>> {
        let stop = pool.stop();
        let sum = |(): &mut (), p: usize| {
            PartialSum::new(csr, factors, coefficient)?.sum(self.parts[p].clone(), stop)
        };
        let mut parts = pool.try_map(self.parts.len(), || Ok(()), sum)?.into_iter();
        let mut total = match parts.next() {
            Some(first) => first,
            None => try_zeroed(factors.core_len(0), CORE_ENTRIES)?,
        };
        for part in parts {
            pool.check_cancelled()?;
            total.iter_mut().zip(part).for_each(|(t, x)| *t += x);
        }
        Ok(total)
    }
}

/// The sum over one part of the entries.
struct PartialSum<'a> {
    csr: &'a ModeCsr,
    factors: &'a CoreFactors<'a>,
    coefficient: &'a EntryCoefficient<'a>,
    /// The current row at each depth but the last.
    rows: Vec<Option<u32>>,
    /// At each depth, the core contracted with the current rows up to there.
    contractions: Vec<Vec<f32>>,
    /// At each depth, the sum that is still to be multiplied with the current row.
    sums: Vec<Vec<f32>>,
    total: Vec<f64>,
    /// The coefficient of each entry of a fiber.
    coefficients: Vec<f32>,
}

impl<'a> PartialSum<'a> {
    fn new(
        csr: &'a ModeCsr,
        factors: &'a CoreFactors<'a>,
        coefficient: &'a EntryCoefficient<'a>,
    ) -> Result<PartialSum<'a>> {
        let order = factors.modes.len();
        let zeros = || {
            (1..order)
                .map(|k| try_zeroed(factors.core_len(k), CORE_ENTRIES))
                .collect::<Result<_>>()
        };
        Ok(PartialSum {
            csr,
            factors,
            coefficient,
            rows: vec![None; order - 1],
            contractions: zeros()?,
            sums: zeros()?,
            total: try_zeroed(factors.core_len(0), CORE_ENTRIES)?,
            coefficients: Vec::new(),
        })
    }

    /// Returns the sum over `entries`, or any values if `stop` is requested.
    fn sum(mut self, entries: Range<usize>, stop: &StopFlag) -> Result<Vec<f64>> {
        let csr = self.csr;
        let depth = self.rows.len();
        let last_rows = self.factors.modes[depth].rows;
        let mut row = csr.row_of(entries.start);
        let (mut next, mut fibers) = (entries.start, 0);
        // A fiber changes at most all rows, and each contraction reads the core once.
        let fibers_per_poll = steps_per_poll(2 * self.total.len());
        while next < entries.end {
            if fibers % fibers_per_poll == 0 && stop.requested() {
                break;
            }
            while csr.row_entries(row).end <= next {
                row += 1;
            }
            // The following entries that differ in their last row only.
            let shared_rows = |entry: usize| &csr.other_rows(entry)[..depth - 1];
            let shared = shared_rows(next);
            let rest = next + 1..entries.end.min(csr.row_entries(row).end);
            let same = rest.take_while(|&e| shared_rows(e) == shared);
            let fiber = next..next + 1 + same.count();
            if fibers == FIBERS_PER_FLUSH {
                self.flush(0);
                fibers = 0;
            }
            self.set_rows(row as u32, shared);
            let coefficients = match self.coefficient {
                EntryCoefficient::ModelValue(_) => {
                    Coefficients::ModelValue(&self.contractions[depth - 1])
                }
                EntryCoefficient::Given(coefficient) => {
                    self.coefficients.clear();
                    let given = fiber.clone().map(|e| coefficient(e, row));
                    self.coefficients.extend(given);
                    Coefficients::Given(&self.coefficients)
                }
            };
            let sum = &mut self.sums[depth - 1];
            let level = self.factors.level;
            add_fiber(level, csr, fiber.clone(), last_rows, coefficients, sum);
            (next, fibers) = (fiber.end, fibers + 1);
        }
        self.flush(0);
        Ok(self.total)
    }

    /// Makes these the current rows: flushes the sums of rows that change, and contracts the core with the new ones.
    fn set_rows(&mut self, row: u32, others: &[u32]) {
        let new = |k: usize| if k == 0 { row } else { others[k - 1] };
        let is_same = |&k: &usize| self.rows[k] == Some(new(k));
        let same = (0..self.rows.len()).take_while(is_same).count();
        self.flush(same);
        for k in same..self.rows.len() {
            self.rows[k] = Some(new(k));
            if let EntryCoefficient::ModelValue(core) = self.coefficient {
                let (before, here) = self.contractions.split_at_mut(k);
                let from = before.last().map_or(*core, |v| &v[..]);
                let u = self.factors.row(k, new(k) as usize);
                weighted_sum(self.factors.level, from, u, &mut here[0]);
            }
        }
    }

    /// Multiplies the sums at the depths from `first` on with their current rows and adds them to the depth before,
    /// the last depth first.
    fn flush(&mut self, first: usize) {
        for k in (first..self.rows.len()).rev() {
            let Some(row) = self.rows[k] else {
                continue;
            };
            let u = self.factors.row(k, row as usize);
            let (before, after) = self.sums.split_at_mut(k);
            let from = &mut after[0];
            match before.last_mut() {
                Some(to) => add_outer(self.factors.level, from, u, to),
                None => {
                    for (i, to) in self.total.chunks_exact_mut(from.len()).enumerate() {
                        let u = f64::from(u[i]);
                        for (j, &f) in from.iter().enumerate() {
                            to[j] += u * f64::from(f);
                        }
                    }
                }
            }
            from.fill(0.0);
        }
    }
}
