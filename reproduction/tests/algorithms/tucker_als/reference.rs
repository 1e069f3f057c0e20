//! Dense reference computations: the objective over all cells, unfoldings and eigenvalues.

use super::Coupled;
use crate::common::in_memory::Entries;
use s3cmtf::model::Model;

/// Returns the entries of a matrix or tensor, with zeros, row-major.
pub(super) fn dense(entries: &Entries) -> Vec<f64> {
    let dims = &entries.dims;
    let mut cells = vec![0.0; dims.iter().product::<u64>() as usize];
    for (e, &value) in entries.values.iter().enumerate() {
        let index = entries.index(e);
        let position = (0..dims.len()).fold(0, |at, n| at * dims[n] as usize + index[n] as usize);
        // Values in a fit are f32.
        cells[position] += f64::from(value as f32);
    }
    cells
}

/// Returns the factor row of mode `n` for an index: 0 if it does not occur.
pub(super) fn row(model: &Model, n: usize, index: usize) -> Vec<f64> {
    let row = model.modes()[n]
        .factor
        .row(model.row_of(n, index as u32) as usize);
    row.iter().map(|&x| f64::from(x)).collect()
}

/// Returns the core without padding.
pub(super) fn core(model: &Model) -> Vec<f64> {
    let core = model.shape().dense_core(model.core()).unwrap();
    core.iter().map(|&g| f64::from(g)).collect()
}

/// Returns the product of a row-major tensor with a matrix along mode `n`: element (i, j) of the matrix is `at(i, j)`.
pub(super) fn mode_product(
    tensor: &[f64],
    dims: &[usize],
    n: usize,
    size: usize,
    at: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let after: usize = dims[n + 1..].iter().product();
    let before: usize = dims[..n].iter().product();
    let mut product = vec![0.0; before * size * after];
    for (b, i, j, a) in (0..before * size * dims[n] * after).map(|k| {
        let (k, a) = (k / after, k % after);
        let (k, j) = (k / dims[n], k % dims[n]);
        (k / size, k % size, j, a)
    }) {
        product[(b * size + i) * after + a] += at(i, j) * tensor[(b * dims[n] + j) * after + a];
    }
    product
}

/// Returns the objective, summed over all cells.
pub(super) fn brute_force_objective(model: &Model, data: &Coupled) -> f64 {
    let dims: Vec<usize> = data
        .tensor
        .view()
        .dims()
        .iter()
        .map(|&d| d as usize)
        .collect();
    let mut sizes = model.shape().ranks().to_vec();
    let mut values = core(model);
    for n in 0..dims.len() {
        let rows: Vec<Vec<f64>> = (0..dims[n]).map(|i| row(model, n, i)).collect();
        values = mode_product(&values, &sizes, n, dims[n], |i, j| rows[i][j]);
        sizes[n] = dims[n];
    }
    let squares = |a: &[f64], b: &[f64]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    };
    let mut f = 0.5 * squares(&dense(&data.tensor), &values);
    for (m, (mode, weight, entries)) in data.matrices.iter().enumerate() {
        let columns = &model.matrices()[m].factor;
        let mut values = Vec::new();
        for i in 0..dims[*mode] {
            let u = row(model, *mode, i);
            for k in 0..columns.len() {
                let products = u.iter().zip(columns.row(k));
                values.push(products.map(|(u, &v)| u * f64::from(v)).sum());
            }
        }
        f += 0.5 * weight * squares(&dense(entries), &values);
    }
    f
}

/// Returns the eigenvalues of a symmetric matrix, largest first, by Jacobi rotations.
pub(crate) fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let size = a.len();
    for _ in 0..30 {
        for p in 0..size {
            for q in p + 1..size {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (s, c) = angle.sin_cos();
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (above, below) = a.split_at_mut(q);
                for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..size).map(|i| a[i][i]).collect();
    values.sort_by(|x, y| y.total_cmp(x));
    values
}

/// Returns M = [W, sqrt(lambda) Y] of a mode, row by row, from all cells.
pub(super) fn unfolding(model: &Model, data: &Coupled, n: usize) -> Vec<Vec<f64>> {
    let mut sizes: Vec<usize> = data
        .tensor
        .view()
        .dims()
        .iter()
        .map(|&d| d as usize)
        .collect();
    let dims = sizes.clone();
    let mut w = dense(&data.tensor);
    for k in (0..dims.len()).filter(|&k| k != n) {
        let rows: Vec<Vec<f64>> = (0..dims[k]).map(|i| row(model, k, i)).collect();
        let rank = model.shape().ranks()[k];
        w = mode_product(&w, &sizes, k, rank, |j, i| rows[i][j]);
        sizes[k] = rank;
    }
    let after: usize = sizes[n + 1..].iter().product();
    let mut m: Vec<Vec<f64>> = vec![Vec::new(); dims[n]];
    for (k, x) in w.iter().enumerate() {
        m[k / after % dims[n]].push(*x);
    }
    for (_, weight, entries) in data.matrices.iter().filter(|m| m.0 == n) {
        let cells = dense(entries);
        let columns = cells.len() / dims[n];
        for (i, row) in m.iter_mut().enumerate() {
            let values = &cells[i * columns..(i + 1) * columns];
            row.extend(values.iter().map(|y| weight.sqrt() * y));
        }
    }
    m
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
