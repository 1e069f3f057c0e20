//! A hyper-diagonal core: x^ = sum_j g_j prod_n u_n[j], O(N J) with products from both ends.

use crate::model::CoreShape;

pub(super) fn slopes(shape: &CoreShape, core: &[f32], rows: &[f32], slopes: &mut [f32]) -> f32 {
    let order = shape.order();
    let width = core.len();
    // On the way forward slopes[n] holds g times the product of the rows before n.
    slopes[shape.row(0)].copy_from_slice(core);
    for n in 1..order {
        let (done, rest) = slopes.split_at_mut(shape.row(n).start);
        let before = &done[shape.row(n - 1)];
        let row = &rows[shape.row(n - 1)];
        for ((s, b), u) in rest[..width].iter_mut().zip(before).zip(row) {
            *s = b * u;
        }
    }
    let last = shape.row(order - 1);
    let value = slopes[last.clone()]
        .iter()
        .zip(&rows[last])
        .map(|(s, u)| s * u)
        .sum();
    // On the way back the product of the rows after n comes in, carried in place.
    for j in 0..width {
        let mut after = 1.0;
        for n in (0..order).rev() {
            let at = shape.row(n).start + j;
            slopes[at] *= after;
            after *= rows[at];
        }
    }
    value
}

pub(super) fn value(shape: &CoreShape, core: &[f32], rows: &[f32]) -> f32 {
    let mut total = 0.0;
    for (j, &g) in core.iter().enumerate() {
        total += (0..shape.order()).fold(g, |product, n| product * rows[shape.row(n).start + j]);
    }
    total
}

pub(super) fn step_core(shape: &CoreShape, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
    for (j, g) in core.iter_mut().enumerate() {
        *g = keep * *g
            + (0..shape.order()).fold(scale, |product, n| product * rows[shape.row(n).start + j]);
    }
}
