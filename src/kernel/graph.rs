//! Edges of a graph: w |u - v|^2 pulls two rows of one mode together.
#![allow(unsafe_code)]

use super::batch_job::{ModeRows, Rule, Step};
use crate::simd::LANES;
use crate::simd::{F32x16, dispatched};

#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub eta: f32,
    pub weight: f32,
    pub rule: Rule,
}

dispatched! {
    /// Runs edges, three words each: two rows and the bits of the similarity. All rows must be in
    /// `rows`, and nobody else may touch them.
    pub(super) unsafe fn run(rows: &ModeRows, edges: &[u32], settings: &Settings) = any_run;
}

#[inline(always)]
unsafe fn any_run<L: F32x16>(rows: &ModeRows, edges: &[u32], settings: &Settings) {
    let Settings { eta, weight, rule } = *settings;
    let step = Step::<L>::new(eta, rule);
    for edge in edges.chunks_exact(3) {
        let (a, b) = (edge[0], edge[1]);
        if a == b {
            continue;
        }
        let pull = eta * weight * f32::from_bits(edge[2]);
        // SAFETY: the caller's promise; the two rows differ.
        unsafe {
            let (u, v) = (rows.row(a), rows.row(b));
            let (penalty_u, penalty_v) = (rows.penalty(a), rows.penalty(b));
            for k in (0..rows.stride).step_by(LANES) {
                let (x, y) = (L::load(u.add(k)), L::load(v.add(k)));
                let gap = y.mul_add(L::splat(-1.0), x);
                let own = rows.own(k);
                step.put(x, own, gap, L::splat(-pull), penalty_u, u.add(k));
                step.put(y, own, gap, L::splat(pull), penalty_v, v.add(k));
            }
        }
    }
}
