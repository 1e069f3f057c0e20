//! The order of the steps of an epoch.

use crate::problem::MatrixKind;
use crate::random::RandomStream;
use crate::sort::stable_sort_by;

/// A number of tasks that have nothing in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Blocks of the tensor.
    Blocks(usize),
    /// A group of cells of a class of the tensor.
    Group(usize),
    /// RowPartition of a matrix on a mode that is not cut: the matrix, and how far columns are ahead of rows.
    Matrix(usize, usize),
    /// Pairs of parts of a graph: the matrix, and the round.
    Graph(usize, usize),
}

/// The steps of the tensor, which are `shifts` and how many follow each other `in_a_row`, with those of
/// matrices and graphs (each with its number, kind and parts) spread evenly among them. All are in
/// random order, except that those in a row begin anywhere and then shift one coordinate by one: a block
/// then waits for its neighbour alone.
pub(super) fn order(
    (shifts, in_a_row): (usize, usize),
    tensor_step: fn(usize) -> Step,
    alone: &[(usize, MatrixKind, usize)],
    name: &[u64],
) -> Vec<Step> {
    let mut stream = RandomStream::new(name);
    let mut tensor = Vec::with_capacity(shifts);
    for row in shuffled(shifts / in_a_row, &mut stream) {
        let first = stream.below(in_a_row as u64) as usize;
        let next = (0..in_a_row).map(|k| row * in_a_row + (first + k) % in_a_row);
        tensor.extend(next.map(tensor_step));
    }
    let mut timed: Vec<(f64, Step)> = Vec::new();
    let mut add = |steps: Vec<Step>| {
        let n = steps.len() as f64;
        let place = |k: usize| (k as f64 + 0.5) / n;
        timed.extend(steps.into_iter().enumerate().map(|(k, s)| (place(k), s)));
    };
    add(tensor);
    for &(m, kind, parts) in alone {
        add(match kind {
            MatrixKind::Graph => shuffled(rounds(parts), &mut stream)
                .into_iter()
                .map(|r| Step::Graph(m, r))
                .collect(),
            _ => shuffled(parts, &mut stream)
                .into_iter()
                .map(|s| Step::Matrix(m, s))
                .collect(),
        });
    }
    stable_sort_by(&mut timed, &|a, b| a.0.total_cmp(&b.0));
    timed.into_iter().map(|(_, step)| step).collect()
}

fn shuffled(count: usize, stream: &mut RandomStream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    order
}

/// Steps in groups that are merged together: up to `most` of the tensor in a row, others alone.
pub(super) fn together(steps: &[Step], most: usize) -> impl Iterator<Item = &[Step]> {
    let blocks = |s: &Step| matches!(s, Step::Blocks(_));
    steps
        .chunk_by(move |a, b| blocks(a) && blocks(b))
        .flat_map(move |steps| steps.chunks(most))
}

/// Rounds in which every two parts meet once, and every part itself.
fn rounds(parts: usize) -> usize {
    // An odd number of parts leaves one out per round.
    parts.next_multiple_of(2)
}

/// How many pairs a round has.
pub(super) fn pairs(parts: usize, round: usize) -> usize {
    if round == 0 { parts } else { parts / 2 }
}

/// Pair `k` of a round: in round 0 every part with itself, then a tournament in which the last seat
/// stays and the others move around a circle.
pub(super) fn pair(parts: usize, round: usize, k: usize) -> (usize, usize) {
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
    // With an odd number of parts nobody has the last seat, which is in the first pair.
    let k = k + parts % 2;
    (seat(k), seat(circle - k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_of_the_tensor_are_together() {
        let steps = [
            Step::Blocks(0),
            Step::Blocks(3),
            Step::Blocks(1),
            Step::Matrix(0, 1),
            Step::Graph(1, 0),
            Step::Blocks(2),
        ];
        let lengths = |most| -> Vec<usize> { together(&steps, most).map(<[Step]>::len).collect() };
        assert_eq!(lengths(1), [1; 6]);
        assert_eq!(lengths(2), [2, 1, 1, 1, 1]);
        assert_eq!(lengths(9), [3, 1, 1, 1]);
        assert!(together(&steps, 2).flatten().eq(&steps));
    }

    #[test]
    fn every_pair_meets_once_and_nobody_twice_in_a_round() {
        for parts in 1..=17 {
            let mut met = std::collections::HashSet::new();
            for round in 0..rounds(parts) {
                let mut busy = vec![false; parts];
                for (p, q) in (0..pairs(parts, round)).map(|k| pair(parts, round, k)) {
                    assert!(met.insert((p.min(q), p.max(q))), "{p} {q} again");
                    for part in if p == q { vec![p] } else { vec![p, q] } {
                        assert!(!busy[part]);
                        busy[part] = true;
                    }
                }
            }
            assert_eq!(met.len(), parts * (parts + 1) / 2, "{parts}");
        }
    }

    #[test]
    fn steps_come_once_and_are_spread() {
        let alone = [(1, MatrixKind::Observed, 4), (2, MatrixKind::Graph, 5)];
        let steps = order((32, 1), Step::Blocks, &alone, &[1]);
        assert_eq!(steps.len(), 32 + 4 + 6);
        let mut sorted: Vec<String> = steps.iter().map(|s| format!("{s:?}")).collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), steps.len());
        let at = |want: fn(&Step) -> bool| steps.iter().position(want).unwrap();
        assert!(at(|s| matches!(s, Step::Matrix(..))) < 10);
        assert_ne!(order((32, 1), Step::Blocks, &alone, &[2]), steps);
    }
    #[test]
    fn steps_in_a_row_shift_one_coordinate() {
        let steps = order((25, 5), Step::Blocks, &[], &[7]);
        let shifts: Vec<usize> = steps
            .iter()
            .map(|s| match s {
                Step::Blocks(s) => *s,
                other => panic!("{other:?}"),
            })
            .collect();
        for row in shifts.chunks(5) {
            assert!(row.windows(2).all(|w| w[0] / 5 == w[1] / 5));
            assert!(row.windows(2).all(|w| (w[0] + 1) % 5 == w[1] % 5));
        }
        let mut all = shifts;
        all.sort_unstable();
        assert!(all.into_iter().eq(0..25));
    }
}
