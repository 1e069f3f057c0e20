//! Losses and errors, summed in `f64` over fixed chunks: the result does not depend on the number of
//! threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::data::{Data, Entries, MatrixData};
use crate::kernel::{Method, TensorKernel};
use crate::model::{Model, Rows};
use crate::options::{Options, Penalty};
use crate::problem::MatrixKind;

/// Entries per chunk.
const CHUNK: usize = 1 << 13;

/// Adds up what `sum` gives for chunks of `0..n`, in order, computing them on `threads` threads. Each
/// thread makes its own state first.
fn chunked<S, const K: usize>(
    n: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    sum: impl Fn(&mut S, std::ops::Range<usize>) -> [f64; K] + Sync,
) -> [f64; K] {
    let chunks = n.div_ceil(CHUNK);
    let range = |c: usize| c * CHUNK..((c + 1) * CHUNK).min(n);
    if threads <= 1 || chunks <= 1 {
        let mut s = state();
        return (0..chunks)
            .map(|c| sum(&mut s, range(c)))
            .fold([0.0; K], plus);
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![[0.0; K]; chunks]);
    std::thread::scope(|scope| {
        // The calling thread works too, so that threads that cannot be had are only missed.
        let work = || {
            let mut s = state();
            loop {
                let c = next.fetch_add(1, Ordering::Relaxed);
                if c >= chunks {
                    return;
                }
                let part = sum(&mut s, range(c));
                results.lock().unwrap_or_else(|e| e.into_inner())[c] = part;
            }
        };
        for _ in 1..threads.min(chunks) {
            if std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .is_err()
            {
                break;
            }
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.into_iter().fold([0.0; K], plus)
}

/// Sums of squared errors, of predictions as they are and of clipped ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub plain: f64,
    pub clipped: f64,
}

fn plus<const K: usize>(a: [f64; K], b: [f64; K]) -> [f64; K] {
    std::array::from_fn(|k| a[k] + b[k])
}

/// The sums of squared errors on tensor entries; `clip` is the range for the clipped ones.
pub(super) fn tensor_squares(
    model: &Model,
    entries: &Entries,
    clip: (f64, f64),
    threads: usize,
) -> Sums {
    let shape = &model.shape;
    let [plain, clipped] = chunked(
        entries.len(),
        threads,
        || {
            (
                TensorKernel::new(shape, Method::Shared),
                vec![0.0f32; shape.rows_len()],
            )
        },
        |(kernel, rows), range| {
            let (mut plain, mut clipped) = (0.0, 0.0);
            for i in range {
                for (n, &row) in entries.row(i).iter().enumerate() {
                    rows[shape.row(n)]
                        .copy_from_slice(model.modes[n].factor.padded_row(row as usize));
                }
                let x = f64::from(kernel.value(&model.core, rows));
                let value = f64::from(entries.values[i]);
                plain += (value - x) * (value - x);
                clipped += (value - x.clamp(clip.0, clip.1)).powi(2);
            }
            [plain, clipped]
        },
    );
    Sums { plain, clipped }
}

/// f_m without its penalty: squared errors of a matrix, or weighted squared distances of a graph.
fn matrix_squares(model: &Model, m: usize, data: &MatrixData, threads: usize) -> f64 {
    let rows = &model.modes[data.mode].factor;
    let columns = match data.kind {
        MatrixKind::Observed => &model.matrices[m].factor,
        MatrixKind::Graph => rows,
    };
    let [squares] = chunked(
        data.entries.len(),
        threads,
        || (),
        |(), range| {
            let mut sum = 0.0;
            for i in range {
                let &[a, b] = data.entries.row(i) else {
                    unreachable!("a matrix has two modes")
                };
                let (u, v) = (rows.row(a as usize), columns.row(b as usize));
                let y = f64::from(data.entries.values[i]);
                sum += match data.kind {
                    MatrixKind::Observed => {
                        let dot: f64 = u
                            .iter()
                            .zip(v)
                            .map(|(&p, &q)| f64::from(p) * f64::from(q))
                            .sum();
                        (y - dot) * (y - dot)
                    }
                    MatrixKind::Graph => {
                        y * u
                            .iter()
                            .zip(v)
                            .map(|(&p, &q)| (f64::from(p) - f64::from(q)).powi(2))
                            .sum::<f64>()
                    }
                };
            }
            [sum]
        },
    );
    squares
}

/// The penalty of some numbers such that f holds half of it: squares, or twice absolute values.
fn penalty(numbers: &[f32], kind: Penalty) -> f64 {
    match kind {
        Penalty::L2 => numbers.iter().map(|&x| f64::from(x) * f64::from(x)).sum(),
        Penalty::L1 => 2.0 * numbers.iter().map(|&x| f64::from(x.abs())).sum::<f64>(),
    }
}

/// The paper's f = 1/2 f_t + sum_m lambda_m / 2 f_m, given the tensor's sum of squared errors.
pub(super) fn total(
    model: &Model,
    data: &Data,
    tensor_squares: f64,
    options: &Options,
    threads: usize,
) -> f64 {
    // Not the mean row, which is no parameter.
    let rows = |rows: &Rows, count: usize| {
        penalty(&rows.as_slice()[..count * rows.stride()], options.penalty)
    };
    let mut size = penalty(&model.core, options.penalty);
    for mode in &model.modes {
        size += rows(&mode.factor, mode.rows.len());
    }
    let mut f = 0.5 * (tensor_squares + options.lambda_reg * size);
    for (m, matrix) in data.matrices.iter().enumerate() {
        let squares = matrix_squares(model, m, matrix, threads);
        let columns = &model.matrices[m].factor;
        let size = matrix.lambda_reg * rows(columns, columns.len());
        f += 0.5 * f64::from(matrix.weight) * (squares + size);
    }
    f
}
