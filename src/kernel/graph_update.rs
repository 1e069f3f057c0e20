//! Updates along the edges of a graph: the penalty w |u - v|^2 moves two rows of one mode towards each other.
#![allow(unsafe_code)]

use super::batch_job::{ModeRows, Regularizer, RowUpdate};
use crate::simd::LANES;
use crate::simd::{F32x16, dispatched};

#[derive(Clone, Copy)]
pub(super) struct GraphUpdateSettings {
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
    pub(super) unsafe fn update_edges(rows: &ModeRows, edges: &[u32], settings: &GraphUpdateSettings) = update_edges_body;
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
