//! The penalty w |u - v|^2 of the edges of a graph, and updates along them: it moves two rows of one mode towards each other.
#![allow(unsafe_code)]

use crate::batch::job::{ModeRows, Regularizer, RowUpdate};
use crate::simd::LANES;
use crate::simd::{F32x16, dispatched, prefetch};

#[derive(Clone, Copy)]
pub(crate) struct GraphUpdateSettings {
    pub eta: f32,
    pub weight: f32,
    pub regularizer: Regularizer,
}

dispatched! {
    /// Updates both rows of every edge. An edge is three u32 words: two row indices and the bits of the
    /// similarity.
    ///
    /// # Safety
    /// All rows must exist in `rows`, and no other thread may access them.
    pub(crate) unsafe fn update_edges(rows: &ModeRows, edges: &[u32], settings: &GraphUpdateSettings) = update_edges_body;
}

#[inline(always)]
unsafe fn update_edges_body<V: F32x16>(
    rows: &ModeRows,
    edges: &[u32],
    settings: &GraphUpdateSettings,
) {
    let GraphUpdateSettings {
        eta,
        weight,
        regularizer,
    } = *settings;
    let update = RowUpdate::<V>::new(eta, regularizer);
    for edge in edges.chunks_exact(3) {
        let (a, b) = (edge[0], edge[1]);
        if a == b {
            continue;
        }
        let scale = weight * f32::from_bits(edge[2]);
        // SAFETY: the caller guarantees that both rows exist; they differ.
        unsafe {
            let (u, v) = (rows.row(a), rows.row(b));
            let (penalty_u, penalty_v) = (rows.penalty(a), rows.penalty(b));
            for k in (0..rows.stride).step_by(LANES) {
                let (x, y) = (V::load(u.add(k)), V::load(v.add(k)));
                let difference = y.mul_add(V::splat(-1.0), x);
                let prior = rows.prior_at(k);
                update.apply(x, prior, difference, V::splat(scale), penalty_u, u.add(k));
                update.apply(y, prior, difference, V::splat(-scale), penalty_v, v.add(k));
            }
        }
    }
}

/// The edges of a graph.
pub enum Edges<'a> {
    /// Records of three words: two row indices and the bits of the similarity.
    Records(&'a [u32]),
    /// Two row indices per edge, and the similarities.
    Lists(&'a [[u32; 2]], &'a [f32]),
}

dispatched! {
    /// Returns the sum over all edges of the similarity times the squared distance of the two rows.
    ///
    /// # Safety
    /// All rows must exist in `rows`.
    pub(crate) unsafe fn squared_distances(rows: &ModeRows, edges: &Edges<'_>) -> f64 = squared_distances_body;
}

#[inline(always)]
unsafe fn squared_distances_body<V: F32x16>(rows: &ModeRows, edges: &Edges<'_>) -> f64 {
    // SAFETY: the caller guarantees that all rows exist.
    unsafe {
        match *edges {
            Edges::Records(records) => sum_distances::<V, 3>(rows, records.as_chunks().0, &[]),
            Edges::Lists(pairs, similarities) => sum_distances::<V, 2>(rows, pairs, similarities),
        }
    }
}

/// Edges of `WIDTH` words: two row indices and, as the third word, the bits of the similarity. Without it `similarities` has
/// one per edge.
#[inline(always)]
unsafe fn sum_distances<V: F32x16, const WIDTH: usize>(
    rows: &ModeRows,
    edges: &[[u32; WIDTH]],
    similarities: &[f32],
) -> f64 {
    let mut total = 0.0;
    // Distances of several edges are summed over lanes together.
    let mut vectors = [0.0f32; LANES * LANES];
    let mut distances = [0.0f32; LANES];
    for (g, group) in edges.chunks(LANES).enumerate() {
        let ahead = (g + 1) * LANES;
        for edge in edges.iter().skip(ahead).take(LANES) {
            // SAFETY: the caller guarantees that all rows exist.
            let (u, v) = unsafe { (rows.row(edge[0]), rows.row(edge[1])) };
            for k in (0..rows.stride).step_by(LANES) {
                prefetch(u.wrapping_add(k));
                prefetch(v.wrapping_add(k));
            }
        }
        for (i, edge) in group.iter().enumerate() {
            // SAFETY: the caller guarantees that all rows exist; a group has at most 16 edges.
            unsafe {
                let (u, v) = (rows.row(edge[0]), rows.row(edge[1]));
                let mut sum = V::zero();
                for k in (0..rows.stride).step_by(LANES) {
                    let difference = V::load(v.add(k)).mul_add(V::splat(-1.0), V::load(u.add(k)));
                    sum = difference.mul_add(difference, sum);
                }
                sum.store(vectors.as_mut_ptr().add(i * LANES));
            }
        }
        // SAFETY: there are 16 vectors, and one vector of distances.
        unsafe { V::sums16(vectors.as_ptr()).store(distances.as_mut_ptr()) };
        for (i, edge) in group.iter().enumerate() {
            let similarity = match edge.get(2) {
                Some(&bits) => f32::from_bits(bits),
                None => similarities[g * LANES + i],
            };
            total += f64::from(similarity) * f64::from(distances[i]);
        }
    }
    total
}
