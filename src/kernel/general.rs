//! A full core of any order. Contracting the modes from the last one on gives A_n = G x_{n+1} u ...
//! x_N u of shape J_1 ... J_n; the slope of mode n is A_n contracted with the rows before n. Only
//! A_{N-1} and the slope of the last mode touch the whole core: about 2 J^N multiplications in all.

use super::reference::contract_first;
use crate::model::{CoreShape, padded};

/// For each n below N, A_n; then two buffers for contractions from the front.
pub(super) fn buffers(shape: &CoreShape) -> Vec<Vec<f32>> {
    let mut all = Vec::new();
    let mut len = 1;
    for &rank in &shape.ranks[..shape.order() - 1] {
        len *= rank;
        all.push(vec![0.0; len]);
    }
    let largest = shape.core_len() / shape.ranks[0];
    all.push(vec![0.0; largest]);
    all.push(vec![0.0; largest]);
    all
}

/// The row of mode `n` without its padding.
fn row<'a>(shape: &CoreShape, rows: &'a [f32], n: usize) -> &'a [f32] {
    let start = shape.row(n).start;
    &rows[start..start + shape.ranks[n]]
}

/// Fills A_{N-1}, ..., A_1.
fn contract_from_the_end(shape: &CoreShape, core: &[f32], rows: &[f32], suffix: &mut [Vec<f32>]) {
    let order = shape.order();
    contract_last(core, &rows[shape.row(order - 1)], &mut suffix[order - 2]);
    for n in (1..order - 1).rev() {
        let (before, after) = suffix.split_at_mut(n);
        contract_last(&after[0], row(shape, rows, n), &mut before[n - 1]);
    }
}

/// `out[k] = sum_j from[k, j] * row[j]`.
fn contract_last(from: &[f32], row: &[f32], out: &mut [f32]) {
    for (o, fiber) in out.iter_mut().zip(from.chunks_exact(row.len())) {
        *o = dot(fiber, row);
    }
}

/// Contracts the modes before `n`; two buffers take turns.
fn contract_from_the_front<'a>(
    shape: &CoreShape,
    from: &[f32],
    rows: &[f32],
    n: usize,
    turns: &'a mut [Vec<f32>],
) -> &'a [f32] {
    let mut len = from.len() / shape.ranks[0];
    contract_first(from, row(shape, rows, 0), &mut turns[0][..len]);
    let mut current = 0;
    for m in 1..n {
        let next = len / shape.ranks[m];
        let (a, b) = turns.split_at_mut(1);
        let (source, target) = if current == 0 {
            (&a[0], &mut b[0])
        } else {
            (&b[0], &mut a[0])
        };
        contract_first(&source[..len], row(shape, rows, m), &mut target[..next]);
        (len, current) = (next, 1 - current);
    }
    &turns[current][..len]
}

pub(super) fn slopes(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    slopes: &mut [f32],
    work: &mut [Vec<f32>],
) -> f32 {
    let order = shape.order();
    let (suffix, turns) = work.split_at_mut(order - 1);
    contract_from_the_end(shape, core, rows, suffix);
    slopes.fill(0.0);
    let first = shape.row(0).start;
    slopes[first..first + shape.ranks[0]].copy_from_slice(&suffix[0]);
    for n in 1..order {
        // The last mode keeps its padding: zeros in, zeros out.
        let (from, width) = if n == order - 1 {
            (core, padded(shape.ranks[n]))
        } else {
            (&suffix[n][..], shape.ranks[n])
        };
        let slope = contract_from_the_front(shape, from, rows, n, turns);
        let start = shape.row(n).start;
        slopes[start..start + width].copy_from_slice(slope);
    }
    dot(row(shape, rows, 0), &suffix[0])
}

pub(super) fn value(shape: &CoreShape, core: &[f32], rows: &[f32], work: &mut [Vec<f32>]) -> f32 {
    // From the front every step adds multiples of whole slices, which compilers vectorize; sums
    // along the last mode they must not.
    let last = shape.order() - 1;
    let turns = &mut work[last..last + 2];
    let slope = contract_from_the_front(shape, core, rows, last, turns);
    dot(slope, &rows[shape.row(last)])
}

/// Eight sums side by side, since the compiler must not reorder one: they become SIMD lanes.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in a_lanes.iter().zip(b_lanes) {
        for k in 0..LANES {
            sums[k] += x[k] * y[k];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

/// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`.
pub(super) fn step_core(shape: &CoreShape, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
    step(shape, core, rows, 0, keep, scale);
}

fn step(shape: &CoreShape, core: &mut [f32], rows: &[f32], n: usize, keep: f32, scale: f32) {
    let slice = core.len() / shape.ranks[n];
    let parts = core.chunks_exact_mut(slice).zip(row(shape, rows, n));
    if n + 2 < shape.order() {
        for (part, u) in parts {
            step(shape, part, rows, n + 1, keep, scale * u);
        }
        return;
    }
    let last = &rows[shape.row(n + 1)];
    for (fiber, v) in parts {
        let scale = scale * v;
        for (g, w) in fiber.iter_mut().zip(last) {
            *g = keep * *g + scale * w;
        }
    }
}
