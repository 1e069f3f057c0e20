//! Order 3 with SIMD along the last mode: S and Collapse without the division.
//!
//! With the rows u, v, w, one pass over the core builds two collapsed partial products of S, both
//! vectors over k: P_i = sum_j v_j g_ij and Q_j = sum_i u_i g_ij. Then
//!
//! ```text
//! d_1[i] = P_i . w        d_2[j] = Q_j . w        d_3 = sum_i u_i P_i        x^ = d_1 . u
//! ```
//!
//! The core is read once; each of its vectors goes into two multiply-adds. Rows of up to 64 have
//! their number of vectors known at compile time, so that P and d_3 stay in registers.

use wide::f32x8;

use super::general;
use crate::model::{CoreShape, padded};

const LANES: usize = 8;

/// What the general kernel needs (for values alone), and Q.
pub(super) fn buffers(shape: &CoreShape) -> Vec<Vec<f32>> {
    let mut all = general::buffers(shape);
    all.push(vec![0.0; shape.ranks[1] * padded(shape.ranks[2])]);
    all
}

pub(super) fn slopes(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    slopes: &mut [f32],
    work: &mut [Vec<f32>],
) -> f32 {
    match padded(shape.ranks[2]) / LANES {
        2 => fixed::<2>(shape, core, rows, slopes, work),
        4 => fixed::<4>(shape, core, rows, slopes, work),
        6 => fixed::<6>(shape, core, rows, slopes, work),
        8 => fixed::<8>(shape, core, rows, slopes, work),
        // Longer rows would spill out of the registers; the general kernel goes through memory anyway.
        _ => general::slopes(shape, core, rows, slopes, work),
    }
}

#[inline(always)]
fn load(from: &[f32], k: usize) -> f32x8 {
    let lanes: &[f32; LANES] = from[k * LANES..(k + 1) * LANES]
        .try_into()
        .expect("eight lanes");
    f32x8::new(*lanes)
}

#[inline(always)]
fn store(to: &mut [f32], k: usize, x: f32x8) {
    to[k * LANES..(k + 1) * LANES].copy_from_slice(&x.to_array());
}

#[inline(always)]
fn fixed<const K: usize>(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    slopes: &mut [f32],
    work: &mut [Vec<f32>],
) -> f32 {
    let q = work.last_mut().expect("Q is the last buffer");
    let width = K * LANES;
    let (u, v, w) = (
        &rows[shape.row(0)],
        &rows[shape.row(1)],
        &rows[shape.row(2)],
    );
    let (j1, j2) = (shape.ranks[0], shape.ranks[1]);
    let (d1, rest) = slopes.split_at_mut(shape.row(1).start);
    let (d2, d3) = rest.split_at_mut(shape.row(2).start - shape.row(1).start);
    let w: [f32x8; K] = std::array::from_fn(|k| load(w, k));
    let mut third = [f32x8::ZERO; K];
    q.fill(0.0);
    d1.fill(0.0);
    d2.fill(0.0);
    let mut value = 0.0;
    for ((i, slab), &ui) in core.chunks_exact(j2 * width).enumerate().zip(&u[..j1]) {
        let mut p = [f32x8::ZERO; K];
        let ui8 = f32x8::splat(ui);
        for ((fiber, &vj), qj) in slab
            .chunks_exact(width)
            .zip(v)
            .zip(q.chunks_exact_mut(width))
        {
            let vj = f32x8::splat(vj);
            for k in 0..K {
                let g = load(fiber, k);
                p[k] = vj.mul_add(g, p[k]);
                store(qj, k, ui8.mul_add(g, load(qj, k)));
            }
        }
        let mut collapsed = f32x8::ZERO;
        for k in 0..K {
            collapsed = p[k].mul_add(w[k], collapsed);
            third[k] = ui8.mul_add(p[k], third[k]);
        }
        d1[i] = collapsed.reduce_add();
        value += ui * d1[i];
    }
    for (d, qj) in d2[..j2].iter_mut().zip(q.chunks_exact(width)) {
        let mut collapsed = f32x8::ZERO;
        for k in 0..K {
            collapsed = load(qj, k).mul_add(w[k], collapsed);
        }
        *d = collapsed.reduce_add();
    }
    for k in 0..K {
        store(d3, k, third[k]);
    }
    value
}
