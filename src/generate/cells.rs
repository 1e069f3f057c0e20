//! Drawing rows and, in each row, different cells.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::skew::Skew;
use crate::error::{Error, Result};
use crate::parallel::StopFlag;
use crate::random::{Permutation, RandomStream, splitmix64};

/// Hashes numbers that are cell numbers already.
#[derive(Default)]
struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 keys are hashed");
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = splitmix64(x);
    }
}

/// One mode as rows are drawn from it.
pub(super) struct Axis {
    pub dim: u64,
    pub skew: Skew,
    pub order: Permutation,
}

impl Axis {
    fn draw(&self, s: &mut RandomStream) -> u32 {
        self.order.apply(self.skew.rank(s.uniform(), self.dim)) as u32
    }
}

/// Assigns `entries` entries to the rows of a leading axis and to cells in the others.
pub(super) struct CellPlan {
    pub entries: u64,
    pub lead: Axis,
    pub others: Vec<Axis>,
    /// Names the streams of this tensor or matrix.
    pub seed: Vec<u64>,
    /// Cells per row; `None` beyond 64 bits.
    capacity: Option<u64>,
}

/// Entries per piece of work, roughly: rows are not cut.
const PIECE: u64 = 1 << 16;

impl CellPlan {
    pub(super) fn new(entries: u64, lead: Axis, others: Vec<Axis>, seed: &[u64]) -> Self {
        let capacity = others
            .iter()
            .try_fold(1u64, |all, a| all.checked_mul(a.dim));
        CellPlan {
            entries,
            seed: seed.to_vec(),
            lead,
            others,
            capacity,
        }
    }

    pub(super) fn pieces(&self) -> u64 {
        self.entries.div_ceil(PIECE)
    }

    /// The rank of the row that entry `e` belongs to; never falls as `e` rises.
    fn rank(&self, e: u64) -> u64 {
        let place = (e as f64 + 0.5) / self.entries as f64;
        self.lead.skew.rank(place, self.lead.dim)
    }

    /// The first entry after `e` that belongs to another row.
    fn row_end(&self, e: u64) -> u64 {
        let rank = self.rank(e);
        // Rows are short as a rule: grow, then search.
        let mut reach = 1;
        let (mut inside, mut outside) = (e, self.entries);
        while inside + reach < self.entries {
            if self.rank(inside + reach) != rank {
                outside = inside + reach;
                break;
            }
            inside += reach;
            reach *= 2;
        }
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if self.rank(middle) == rank {
                inside = middle
            } else {
                outside = middle
            }
        }
        inside + 1
    }

    /// The entries of a piece: whole rows, those whose first entry lies in its stretch.
    pub(super) fn piece(&self, number: u64) -> Range<u64> {
        let start = |at: u64| {
            if at == 0 || at >= self.entries || self.rank(at) != self.rank(at - 1) {
                at.min(self.entries)
            } else {
                self.row_end(at)
            }
        };
        start(number * PIECE)..start((number + 1) * PIECE)
    }

    /// Refuses a plan in which a row would need more cells than it has. Shares fall with the rank and
    /// lengths are shares rounded up or down, so rows behind one with room to spare have room too.
    pub(super) fn check(&self) -> Result<()> {
        let Some(capacity) = self.capacity else {
            return Ok(());
        };
        let mut e = 0;
        while e < self.entries {
            let end = self.row_end(e);
            if end - e > capacity {
                return Err(Error::argument(format!(
                    "the most popular row would get {} entries but has only {capacity} cells; \
                     ask for fewer entries or less skew",
                    end - e
                )));
            }
            if end - e + 1 < capacity {
                break;
            }
            e = end;
        }
        Ok(())
    }

    /// Calls `row` with each row of a piece: its index, its stream, and its cells (one column per
    /// other axis), all different.
    ///
    /// Ends early, with what it has, when nobody wants the result any more.
    pub(super) fn for_each_row(
        &self,
        piece: Range<u64>,
        stop: &StopFlag,
        mut row: impl FnMut(u64, u32, &mut RandomStream, &[Vec<u32>]),
    ) {
        let mut seen: HashSet<u64, BuildHasherDefault<MixHasher>> = HashSet::default();
        let mut cells: Vec<Vec<u32>> = vec![Vec::new(); self.others.len()];
        let mut cell = vec![0u32; self.others.len()];
        let mut e = piece.start;
        while e < piece.end {
            let end = self.row_end(e);
            let rank = self.rank(e);
            let mut s = RandomStream::new(&[&self.seed[..], &[rank]].concat());
            seen.clear();
            cells.iter_mut().for_each(Vec::clear);
            // Popular cells run out in a row that is nearly full; then any free cell is taken.
            let mut patience = 8 * (end - e) + 64;
            for k in e..end {
                if k % (1 << 12) == 0 && stop.requested() {
                    return;
                }
                loop {
                    for (slot, axis) in cell.iter_mut().zip(&self.others) {
                        *slot = axis.draw(&mut s);
                    }
                    if patience == 0
                        && let Some(capacity) = self.capacity
                    {
                        let mut free = s.below(capacity);
                        while seen.contains(&free) {
                            free = (free + 1) % capacity;
                        }
                        self.decode(free, &mut cell);
                    }
                    patience = patience.saturating_sub(1);
                    if seen.insert(self.encode(&cell)) {
                        break;
                    }
                }
                cells.iter_mut().zip(&cell).for_each(|(c, &i)| c.push(i));
            }
            row(e, self.lead.order.apply(rank) as u32, &mut s, &cells);
            e = end;
        }
    }

    /// The number of a cell in its row. Beyond 64 bits it wraps around; two cells that then share a
    /// number are taken for one, which only costs a new draw.
    fn encode(&self, cell: &[u32]) -> u64 {
        cell.iter().zip(&self.others).fold(0u64, |acc, (&i, axis)| {
            acc.wrapping_mul(axis.dim).wrapping_add(u64::from(i))
        })
    }

    fn decode(&self, mut number: u64, cell: &mut [u32]) {
        for (slot, axis) in cell.iter_mut().zip(&self.others).rev() {
            *slot = (number % axis.dim) as u32;
            number /= axis.dim;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(dim: u64, exponent: f64, name: u64) -> Axis {
        Axis {
            dim,
            skew: Skew {
                exponent,
                shift: 1.0,
            },
            order: Permutation::new(dim, &[name]),
        }
    }

    #[test]
    fn pieces_cover_all_rows_once_and_cells_differ() {
        for (entries, lead, others, skew) in [
            (200_000u64, 500u64, vec![700u64, 30], 1.0),
            (1000, 10, vec![10, 10], 0.0),
            (100_000, 3, vec![300, 200], 0.5),
            (5, 1_000_000, vec![1_000_000; 3], 0.0),
            // Nearly full, and full.
            (9_900, 10, vec![100, 10], 0.0),
            (299, 100, vec![3], 0.0),
            (199_999, 100_000, vec![2], 0.0),
            (200_000, 100_000, vec![2], 0.0),
        ] {
            let axes = others
                .iter()
                .enumerate()
                .map(|(k, &d)| axis(d, skew, k as u64))
                .collect();
            let plan = CellPlan::new(entries, axis(lead, skew, 99), axes, &[1, 2]);
            plan.check().unwrap();
            let mut next = 0;
            let mut all = HashSet::new();
            for p in 0..plan.pieces() {
                let piece = plan.piece(p);
                assert_eq!(piece.start, next);
                next = piece.end;
                plan.for_each_row(piece, &StopFlag::new(), |_, row, _, cells| {
                    for k in 0..cells[0].len() {
                        let cell: Vec<u32> = cells.iter().map(|c| c[k]).collect();
                        assert!(all.insert((row, cell)), "a cell twice");
                    }
                });
            }
            assert_eq!((next, all.len() as u64), (entries, entries));
        }
    }

    #[test]
    fn rows_without_enough_cells_are_refused() {
        let plan = CellPlan::new(1000, axis(100, 2.0, 0), vec![axis(20, 0.0, 1)], &[1]);
        assert!(plan.check().is_err());
    }
}
