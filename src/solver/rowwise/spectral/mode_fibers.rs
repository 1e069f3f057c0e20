//! The fibers of one mode that have entries at two positions or more.

use std::ops::Range;

use super::centered_values::CenteredValues;
use crate::kernel::{GRAM_COLUMNS as BLOCK_COLUMNS, ModeCsr, add_hollow_gram_product};

/// Positions of observed entries, grouped by the fiber of one mode that they lie on. A position may have several
/// entries; they are neighbours in the [`ModeCsr`].
#[derive(Default)]
pub(super) struct ModeFibers {
    /// The row of each position in the fibers' mode.
    pub rows: Vec<u32>,
    /// The entries at each position.
    pub entries: Vec<Range<u32>>,
    /// End of each fiber in the lists above.
    ends: Vec<usize>,
}

/// An entry while fibers are formed; sorting groups by fiber, then row, then entry.
pub(super) type FiberKey = (u64, u32, u32);

impl ModeFibers {
    /// Finds the fibers among the entries of some rows of the grouping mode. `column` is the position of the fibers' mode
    /// in [`ModeCsr::other_modes`]; `keys` is scratch memory.
    pub(super) fn new(
        csr: &ModeCsr,
        column: usize,
        rows: Range<usize>,
        keys: &mut Vec<FiberKey>,
    ) -> ModeFibers {
        let mut fibers = ModeFibers::default();
        for i in rows {
            keys.clear();
            for e in csr.row_entries(i).filter(|&e| csr.weight(e) > 0.0) {
                let other_rows = csr.other_rows(e);
                // A hash of all indices but that of the fibers' mode.
                let fixed = other_rows.iter().enumerate().filter(|(k, _)| *k != column);
                let hash = fixed.fold(0u64, |hash, (_, &row)| {
                    let mixed = (hash ^ u64::from(row)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    mixed ^ (mixed >> 32)
                });
                keys.push((hash, other_rows[column], e as u32));
            }
            keys.sort_unstable();
            let same_fiber = keys.chunk_by(|a, b| a.0 == b.0);
            for fiber in same_fiber.filter(|f| f[0].1 != f[f.len() - 1].1) {
                for position in fiber.chunk_by(|a, b| a.1 == b.1) {
                    fibers.rows.push(position[0].1);
                    fibers
                        .entries
                        .push(position[0].2..position[position.len() - 1].2 + 1);
                }
                fibers.ends.push(fibers.rows.len());
            }
        }
        fibers
    }

    pub(super) fn append(&mut self, mut other: ModeFibers) {
        let offset = self.rows.len();
        self.rows.append(&mut other.rows);
        self.entries.append(&mut other.entries);
        self.ends.extend(other.ends.iter().map(|end| offset + end));
    }

    /// The positions of each fiber.
    pub(super) fn each(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }

    /// Returns the sum of the weighted values at each position.
    pub(super) fn position_values(&self, values: &CenteredValues) -> Vec<f64> {
        let sum = |entries: &Range<u32>| {
            let Range { start, end } = *entries;
            values.weighted[start as usize..end as usize].iter().sum()
        };
        self.entries.iter().map(sum).collect()
    }

    /// Multiplies X X^T without its diagonal by a block of columns, in O(positions): within a fiber every position
    /// receives the sum over the others.
    pub(super) fn times_hollow_gram(
        &self,
        position_values: &[f64],
        v: &[[f64; BLOCK_COLUMNS]],
    ) -> Vec<[f64; BLOCK_COLUMNS]> {
        let mut out = vec![[0.0; BLOCK_COLUMNS]; v.len()];
        add_hollow_gram_product(&self.rows, position_values, &self.ends, v, &mut out);
        out
    }
}
