//! Sampling of the positions of entries: a row of the leading mode, and distinct positions within each row.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::popularity::ZipfMandelbrot;
use crate::error::{Error, Result};
use crate::parallel::StopFlag;
use crate::random::{Permutation, RandomStream, splitmix64};

/// Hashes 64-bit keys with splitmix64, which is much faster than the default hasher.
#[derive(Default)]
struct SplitMixHasher(u64);

impl Hasher for SplitMixHasher {
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

/// A mode whose rows are sampled.
pub(super) struct SampledMode {
    pub dim: u64,
    pub popularity: ZipfMandelbrot,
    /// Maps a popularity rank to an index.
    pub index_of_rank: Permutation,
}

impl SampledMode {
    fn sample(&self, s: &mut RandomStream) -> u32 {
        let rank = self.popularity.rank_at_quantile(s.uniform(), self.dim);
        self.index_of_rank.apply(rank) as u32
    }
}

/// Samples the positions of `entries` entries: rows of the leading mode in the order of their popularity, and distinct
/// positions in the other modes within each row.
pub(super) struct PositionSampler {
    entries: u64,
    leading: SampledMode,
    others: Vec<SampledMode>,
    /// The key of the random streams of this tensor or matrix.
    stream_key: Vec<u64>,
    /// The number of positions per row; `None` if it exceeds 64 bits.
    positions_per_row: Option<u64>,
}

/// The approximate number of entries of a piece of work. Rows are not split.
const PIECE_ENTRIES: u64 = 1 << 16;

impl PositionSampler {
    pub(super) fn new(
        entries: u64,
        leading: SampledMode,
        others: Vec<SampledMode>,
        stream_key: &[u64],
    ) -> Self {
        let positions_per_row = others
            .iter()
            .try_fold(1u64, |all, mode| all.checked_mul(mode.dim));
        PositionSampler {
            entries,
            stream_key: stream_key.to_vec(),
            leading,
            others,
            positions_per_row,
        }
    }

    /// The number of pieces of work.
    pub(super) fn pieces(&self) -> u64 {
        self.entries.div_ceil(PIECE_ENTRIES)
    }

    /// Returns the popularity rank of the row of entry `e`. It does not decrease with `e`.
    fn rank(&self, e: u64) -> u64 {
        let quantile = (e as f64 + 0.5) / self.entries as f64;
        self.leading
            .popularity
            .rank_at_quantile(quantile, self.leading.dim)
    }

    /// Returns the first entry after `e` that belongs to another row.
    fn row_end(&self, e: u64) -> u64 {
        let rank = self.rank(e);
        // Galloping search, then bisection: most rows are short.
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

    /// Returns the entries of a piece: those of the rows whose first entry lies in its section of the entries.
    pub(super) fn piece(&self, number: u64) -> Range<u64> {
        let start = |at: u64| {
            if at == 0 || at >= self.entries || self.rank(at) != self.rank(at - 1) {
                at.min(self.entries)
            } else {
                self.row_end(at)
            }
        };
        start(number * PIECE_ENTRIES)..start((number + 1) * PIECE_ENTRIES)
    }

    /// Returns an error if a row would need more positions than it has.
    ///
    /// The length of a row is its probability times the number of entries, rounded up or down. Probabilities decrease with
    /// the rank. If one row has two positions to spare, so do all later rows.
    pub(super) fn check(&self) -> Result<()> {
        let Some(positions) = self.positions_per_row else {
            return Ok(());
        };
        let mut e = 0;
        while e < self.entries {
            let end = self.row_end(e);
            if end - e > positions {
                return Err(Error::argument(format!(
                    "the most popular row would get {} entries but has only {positions} positions; \
                     ask for fewer entries or less skew",
                    end - e
                )));
            }
            if end - e + 1 < positions {
                break;
            }
            e = end;
        }
        Ok(())
    }

    /// Calls `take_row` with each row of a piece: its first entry, its index, its random stream, and its distinct
    /// positions, one column of indices per other mode.
    ///
    /// Returns early if `stop` is requested.
    pub(super) fn for_each_row(
        &self,
        piece: Range<u64>,
        stop: &StopFlag,
        mut take_row: impl FnMut(u64, u32, &mut RandomStream, &[Vec<u32>]),
    ) {
        let mut used: HashSet<u64, BuildHasherDefault<SplitMixHasher>> = HashSet::default();
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); self.others.len()];
        let mut position = vec![0u32; self.others.len()];
        let mut e = piece.start;
        while e < piece.end {
            let end = self.row_end(e);
            let rank = self.rank(e);
            let mut s = RandomStream::new(&[&self.stream_key[..], &[rank]].concat());
            used.clear();
            columns.iter_mut().for_each(Vec::clear);
            // In a nearly full row popular positions are used up. After this many samples, any free position is taken.
            let mut samples_left = 8 * (end - e) + 64;
            for k in e..end {
                if k % (1 << 12) == 0 && stop.requested() {
                    return;
                }
                loop {
                    for (index, mode) in position.iter_mut().zip(&self.others) {
                        *index = mode.sample(&mut s);
                    }
                    if samples_left == 0
                        && let Some(positions) = self.positions_per_row
                    {
                        let mut free = s.below(positions);
                        while used.contains(&free) {
                            free = (free + 1) % positions;
                        }
                        self.decode(free, &mut position);
                    }
                    samples_left = samples_left.saturating_sub(1);
                    if used.insert(self.encode(&position)) {
                        break;
                    }
                }
                columns
                    .iter_mut()
                    .zip(&position)
                    .for_each(|(c, &i)| c.push(i));
            }
            let index = self.leading.index_of_rank.apply(rank) as u32;
            take_row(e, index, &mut s, &columns);
            e = end;
        }
    }

    /// Returns the linear index of a position within its row. It wraps around at 64 bits; two positions with the same
    /// linear index then count as one, which only costs another sample.
    fn encode(&self, position: &[u32]) -> u64 {
        position
            .iter()
            .zip(&self.others)
            .fold(0u64, |number, (&i, mode)| {
                number.wrapping_mul(mode.dim).wrapping_add(u64::from(i))
            })
    }

    /// Inverts [`encode`](Self::encode).
    fn decode(&self, mut number: u64, position: &mut [u32]) {
        for (index, mode) in position.iter_mut().zip(&self.others).rev() {
            *index = (number % mode.dim) as u32;
            number /= mode.dim;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(dim: u64, exponent: f64, key: u64) -> SampledMode {
        SampledMode {
            dim,
            popularity: ZipfMandelbrot {
                exponent,
                shift: 1.0,
            },
            index_of_rank: Permutation::new(dim, &[key]),
        }
    }

    #[test]
    fn pieces_cover_all_entries_once_and_positions_are_distinct() {
        for (entries, leading, others, exponent) in [
            (200_000u64, 500u64, vec![700u64, 30], 1.0),
            (1000, 10, vec![10, 10], 0.0),
            (100_000, 3, vec![300, 200], 0.5),
            (5, 1_000_000, vec![1_000_000; 3], 0.0),
            // Nearly full, and full rows.
            (9_900, 10, vec![100, 10], 0.0),
            (299, 100, vec![3], 0.0),
            (199_999, 100_000, vec![2], 0.0),
            (200_000, 100_000, vec![2], 0.0),
        ] {
            let others = others
                .iter()
                .enumerate()
                .map(|(k, &d)| mode(d, exponent, k as u64))
                .collect();
            let sampler =
                PositionSampler::new(entries, mode(leading, exponent, 99), others, &[1, 2]);
            sampler.check().unwrap();
            let mut next = 0;
            let mut all = HashSet::new();
            for p in 0..sampler.pieces() {
                let piece = sampler.piece(p);
                assert_eq!(piece.start, next);
                next = piece.end;
                sampler.for_each_row(piece, &StopFlag::new(), |_, row, _, columns| {
                    for k in 0..columns[0].len() {
                        let position: Vec<u32> = columns.iter().map(|c| c[k]).collect();
                        assert!(all.insert((row, position)), "a position occurs twice");
                    }
                });
            }
            assert_eq!((next, all.len() as u64), (entries, entries));
        }
    }

    #[test]
    fn rows_with_more_entries_than_positions_are_rejected() {
        let sampler = PositionSampler::new(1000, mode(100, 2.0, 0), vec![mode(20, 0.0, 1)], &[1]);
        assert!(sampler.check().is_err());
    }
}
