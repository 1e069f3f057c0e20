//! The order of the strata of an epoch.

use crate::problem::MatrixKind;
use crate::random::RandomStream;
use crate::sort::stable_sort_by;

/// A set of tasks that share no rows, so that threads may run them at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stratum {
    /// The tensor blocks of the stratum with this number ([`super::plan::BlockingPlan::block`]).
    TensorBlocks { number: usize },
    /// A group of blocks of one conflict-free class, as index into the groups of the pass.
    ClassGroup { group: usize },
    /// Blocks of a matrix on an uncut mode: row part p with column part p + shift.
    MatrixBlocks { matrix: usize, shift: usize },
    /// Pairs of parts of a graph in one round of a round-robin tournament.
    GraphPairs { matrix: usize, round: usize },
}

impl Stratum {
    pub(super) fn has_tensor_blocks(&self) -> bool {
        matches!(self, Stratum::TensorBlocks { .. })
    }
}

/// The strata of the tensor before they are put in order.
pub(super) struct TensorStrata {
    /// Number of strata.
    pub count: usize,
    /// Number of strata that follow each other in a chain. Within a chain one coordinate of every block increases by one, so
    /// a block waits for its neighbour alone. Divides `count`.
    pub chain_len: usize,
    /// Returns the stratum of an index below `count`.
    pub stratum: fn(usize) -> Stratum,
}

/// A matrix or graph with strata of its own.
pub(super) struct MatrixStrata {
    pub matrix: usize,
    pub kind: MatrixKind,
    /// Number of parts of its rows.
    pub parts: usize,
}

/// Returns all strata in random order. Chains start at a random member and stay together; the strata of matrices are spread
/// evenly among those of the tensor.
pub(super) fn shuffled_strata(
    tensor: &TensorStrata,
    matrices: &[MatrixStrata],
    stream_id: &[u64],
) -> Vec<Stratum> {
    let mut stream = RandomStream::new(stream_id);
    let chain_len = tensor.chain_len;
    let mut tensor_strata = Vec::with_capacity(tensor.count);
    for chain in shuffled(tensor.count / chain_len, &mut stream) {
        let first = stream.below(chain_len as u64) as usize;
        let members = (0..chain_len).map(|k| chain * chain_len + (first + k) % chain_len);
        tensor_strata.extend(members.map(tensor.stratum));
    }
    // Each list covers the interval from 0 to 1 evenly; merging by these times interleaves the lists.
    let mut timed: Vec<(f64, Stratum)> = Vec::new();
    let mut add = |strata: Vec<Stratum>| {
        let n = strata.len() as f64;
        let time = |k: usize| (k as f64 + 0.5) / n;
        timed.extend(strata.into_iter().enumerate().map(|(k, s)| (time(k), s)));
    };
    add(tensor_strata);
    for &MatrixStrata {
        matrix,
        kind,
        parts,
    } in matrices
    {
        add(match kind {
            MatrixKind::Graph => shuffled(tournament_rounds(parts), &mut stream)
                .into_iter()
                .map(|round| Stratum::GraphPairs { matrix, round })
                .collect(),
            _ => shuffled(parts, &mut stream)
                .into_iter()
                .map(|shift| Stratum::MatrixBlocks { matrix, shift })
                .collect(),
        });
    }
    stable_sort_by(&mut timed, &|a, b| a.0.total_cmp(&b.0));
    timed.into_iter().map(|(_, stratum)| stratum).collect()
}

fn shuffled(count: usize, stream: &mut RandomStream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    order
}

/// Splits strata into runs with one merge each: up to `strata_per_merge` consecutive strata of tensor blocks, any
/// other stratum alone.
pub(super) fn merge_runs(
    strata: &[Stratum],
    strata_per_merge: usize,
) -> impl Iterator<Item = &[Stratum]> {
    strata
        .chunk_by(|a, b| a.has_tensor_blocks() && b.has_tensor_blocks())
        .flat_map(move |run| run.chunks(strata_per_merge))
}

/// Number of rounds of a tournament in which every two parts, and every part and itself, form a pair once.
fn tournament_rounds(parts: usize) -> usize {
    // With an odd number of parts, one part has no partner in each round.
    parts.next_multiple_of(2)
}

/// Number of pairs of a round.
pub(super) fn tournament_pairs(parts: usize, round: usize) -> usize {
    if round == 0 { parts } else { parts / 2 }
}

/// Returns pair `k` of a round. Round 0 pairs every part with itself; the others follow the circle method of round-robin
/// tournaments, in which the last seat is fixed and the others rotate.
pub(super) fn tournament_pair(parts: usize, round: usize, k: usize) -> (usize, usize) {
    if round == 0 {
        return (k, k);
    }
    let circle = parts.next_multiple_of(2) - 1;
    let seat = |k: usize| {
        if k == circle {
            circle
        } else {
            (k + round) % circle
        }
    };
    // With an odd number of parts the last seat, which belongs to the first pair, is empty.
    let k = k + parts % 2;
    (seat(k), seat(circle - k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor_blocks(number: usize) -> Stratum {
        Stratum::TensorBlocks { number }
    }

    fn tensor(count: usize, chain_len: usize) -> TensorStrata {
        TensorStrata {
            count,
            chain_len,
            stratum: tensor_blocks,
        }
    }

    #[test]
    fn only_consecutive_strata_of_tensor_blocks_share_a_merge() {
        let strata = [
            tensor_blocks(0),
            tensor_blocks(3),
            tensor_blocks(1),
            Stratum::MatrixBlocks {
                matrix: 0,
                shift: 1,
            },
            Stratum::GraphPairs {
                matrix: 1,
                round: 0,
            },
            tensor_blocks(2),
        ];
        let lengths =
            |most| -> Vec<usize> { merge_runs(&strata, most).map(<[Stratum]>::len).collect() };
        assert_eq!(lengths(1), [1; 6]);
        assert_eq!(lengths(2), [2, 1, 1, 1, 1]);
        assert_eq!(lengths(9), [3, 1, 1, 1]);
        assert!(merge_runs(&strata, 2).flatten().eq(&strata));
    }

    #[test]
    fn a_tournament_pairs_all_parts_once_and_uses_a_part_once_per_round() {
        for parts in 1..=17 {
            let mut met = std::collections::HashSet::new();
            for round in 0..tournament_rounds(parts) {
                let mut used = vec![false; parts];
                let pairs = 0..tournament_pairs(parts, round);
                for (p, q) in pairs.map(|k| tournament_pair(parts, round, k)) {
                    assert!(met.insert((p.min(q), p.max(q))), "{p} {q} again");
                    for part in if p == q { vec![p] } else { vec![p, q] } {
                        assert!(!used[part]);
                        used[part] = true;
                    }
                }
            }
            assert_eq!(met.len(), parts * (parts + 1) / 2, "{parts}");
        }
    }

    #[test]
    fn every_stratum_occurs_once_and_matrices_are_spread() {
        let matrices = [
            MatrixStrata {
                matrix: 1,
                kind: MatrixKind::Observed,
                parts: 4,
            },
            MatrixStrata {
                matrix: 2,
                kind: MatrixKind::Graph,
                parts: 5,
            },
        ];
        let strata = shuffled_strata(&tensor(32, 1), &matrices, &[1]);
        assert_eq!(strata.len(), 32 + 4 + 6);
        let mut sorted: Vec<String> = strata.iter().map(|s| format!("{s:?}")).collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), strata.len());
        let is_matrix = |s: &Stratum| matches!(s, Stratum::MatrixBlocks { .. });
        assert!(strata.iter().position(is_matrix).unwrap() < 10);
        assert_ne!(shuffled_strata(&tensor(32, 1), &matrices, &[2]), strata);
    }

    #[test]
    fn strata_of_a_chain_shift_one_coordinate() {
        let strata = shuffled_strata(&tensor(25, 5), &[], &[7]);
        let numbers: Vec<usize> = strata
            .iter()
            .map(|s| match s {
                Stratum::TensorBlocks { number } => *number,
                other => panic!("{other:?}"),
            })
            .collect();
        for chain in numbers.chunks(5) {
            assert!(chain.windows(2).all(|w| w[0] / 5 == w[1] / 5));
            assert!(chain.windows(2).all(|w| (w[0] + 1) % 5 == w[1] % 5));
        }
        let mut all = numbers;
        all.sort_unstable();
        assert!(all.into_iter().eq(0..25));
    }
}
