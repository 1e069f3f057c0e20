//! The order in which lock-free epochs visit entries: segments in random order, each traversed by a cyclic walk.
//!
//! Entries were shuffled when they were copied. An epoch shuffles segments of them, and traverses each segment with a random
//! first entry and stride, so that no epoch repeats the order of another.

use crate::kernel::EntryWalk;
use crate::random::{RandomStream, hash_words, splitmix64};
use crate::solver::data::Data;
use crate::solver::stream_ids;

/// Entries per segment.
const SEGMENT_ENTRIES: usize = 256;

/// The origin of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Component {
    Tensor,
    Matrix(usize),
}

/// Consecutive shuffled entries of the tensor or of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub component: Component,
    pub start: usize,
    pub len: usize,
}

/// The segments of an epoch in the order of their visits.
pub(super) struct SegmentOrder {
    pub segments: Vec<Segment>,
    /// Hash from which the walks through the segments derive.
    walk_key: u64,
}

/// A traversal of all entries of a segment: from `first`, each `stride` after the previous, modulo the length.
#[derive(Clone, Copy)]
pub(super) struct CyclicWalk {
    pub first: usize,
    pub stride: usize,
}

impl SegmentOrder {
    /// Shuffles the segments of all entries. The entries of full matrices are not visited one by one.
    pub(super) fn new(data: &Data, seed: u64, stream_id: &[u64]) -> SegmentOrder {
        let mut segments = segments(Component::Tensor, data.tensor.len());
        for (m, matrix) in data.matrices.iter().enumerate() {
            if matrix.full.is_none() {
                segments.extend(self::segments(Component::Matrix(m), matrix.entries.len()));
            }
        }
        let block_order = [&[seed, stream_ids::BLOCK_ORDER], stream_id].concat();
        let mut stream = RandomStream::new(&block_order);
        for i in (1..segments.len()).rev() {
            segments.swap(i, stream.below(i as u64 + 1) as usize);
        }
        SegmentOrder {
            segments,
            walk_key: hash_words(&[&[seed, stream_ids::ENTRY_ORDER], stream_id].concat()),
        }
    }

    /// Returns the walk through segment `k`.
    pub(super) fn walk(&self, k: usize) -> CyclicWalk {
        CyclicWalk::new(self.segments[k].len, splitmix64(self.walk_key ^ k as u64))
    }

    /// Distributes the segments round-robin among at most `threads` threads, tensor and matrix segments separately. Returns the
    /// indices of each thread's segments. The distribution is static because the learning rate eta P of the core is right
    /// only if the fraction of entries of its thread, the first, is known.
    pub(super) fn distribute(&self, threads: usize) -> Vec<Vec<usize>> {
        let threads = threads.clamp(1, self.segments.len().max(1));
        let mut assigned = vec![Vec::new(); threads];
        let (mut tensor_segments, mut matrix_segments) = (0, 0);
        for (k, segment) in self.segments.iter().enumerate() {
            let count = match segment.component {
                Component::Tensor => &mut tensor_segments,
                Component::Matrix(_) => &mut matrix_segments,
            };
            assigned[*count % threads].push(k);
            *count += 1;
        }
        assigned
    }
}

fn segments(component: Component, entries: usize) -> Vec<Segment> {
    (0..entries)
        .step_by(SEGMENT_ENTRIES)
        .map(|start| Segment {
            component,
            start,
            len: SEGMENT_ENTRIES.min(entries - start),
        })
        .collect()
}

impl Segment {
    /// Returns the entries of the segment for a kernel, from entry `at` on with a stride. The kernel prefetches those of `next`.
    pub(super) fn entries<'a>(
        &self,
        data: &'a Data,
        next: Option<&Segment>,
        at: usize,
        stride: usize,
    ) -> EntryWalk<'a> {
        let shuffled = |component| match component {
            Component::Tensor => data.tensor.list(),
            Component::Matrix(m) => data.matrices[m].entries.list(),
        };
        let slices = |segment: &Segment| {
            let entries = shuffled(segment.component);
            let (start, end) = (segment.start, segment.start + segment.len);
            let rows = &entries.rows[start * entries.order..end * entries.order];
            (rows, &entries.values[start..end])
        };
        let entries = shuffled(self.component);
        let (rows, values) = slices(self);
        EntryWalk {
            order: entries.order,
            rows,
            values,
            weights: if entries.weights.is_empty() {
                &[]
            } else {
                &entries.weights[self.start..self.start + self.len]
            },
            position: at,
            stride,
            next_block: next.map(slices),
        }
    }
}

impl CyclicWalk {
    /// Derives a walk through `len` entries from a hash. A stride coprime to `len` visits every entry once.
    fn new(len: usize, hash: u64) -> CyclicWalk {
        let len = len as u64;
        let mut stride = ((hash >> 32) % len) | 1;
        while gcd(stride, len) != 1 {
            stride += 2;
        }
        CyclicWalk {
            first: (hash % len) as usize,
            stride: (stride % len) as usize,
        }
    }

    /// Returns the visited entries of `len`, in order.
    #[cfg(test)]
    fn entries(self, len: usize) -> impl Iterator<Item = usize> {
        (0..len).map(move |i| (self.first + i * self.stride) % len)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the entries that an epoch with one thread visits, in order: 0 for the tensor or m + 1 for a matrix, and the entry.
#[cfg(test)]
pub(in crate::solver) fn visits(data: &Data, seed: u64, stream_id: &[u64]) -> Vec<(usize, usize)> {
    let order = SegmentOrder::new(data, seed, stream_id);
    let visits_of = |(k, segment): (usize, &Segment)| {
        let (start, len) = (segment.start, segment.len);
        let component = match segment.component {
            Component::Tensor => 0,
            Component::Matrix(m) => m + 1,
        };
        let entries = order.walk(k).entries(len);
        entries
            .map(move |i| (component, start + i))
            .collect::<Vec<_>>()
    };
    order
        .segments
        .iter()
        .enumerate()
        .flat_map(visits_of)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_walk_visits_every_entry() {
        for len in 1..=300 {
            for hash in [0u64, 1 << 33, u64::MAX, 12345 << 32] {
                let mut visited: Vec<usize> = CyclicWalk::new(len, hash).entries(len).collect();
                visited.sort_unstable();
                assert_eq!(visited, (0..len).collect::<Vec<_>>());
            }
        }
    }
}
