//! Losses and errors, summed in `f64` over fixed pieces: the result does not depend on the number of
//! threads.

use super::data::{Data, Entries, MatrixData};
use super::standardization::Centre;
use crate::error::Result;
use crate::kernel::{BlockModel, Form, Method, Scratch, TensorKernel, cell_squares};

use crate::model::Model;
use crate::simd::Level;

use crate::options::{Options, Penalty};
use crate::parallel::ThreadPool;
use crate::simd::LANES;

/// Entries, or floats, per piece where there are no cells.
pub(super) const PIECE: usize = 1 << 13;

/// Adds up what `sum` gives for `count` pieces, in order, computing them on the threads of `pool`.
/// Each thread makes its own state first.
pub(super) fn summed<S, const K: usize>(
    count: usize,
    pool: &ThreadPool,
    state: impl Fn() -> S + Sync,
    sum: impl Fn(&mut S, usize) -> [f64; K] + Sync,
) -> Result<[f64; K]> {
    let pieces = pool.map(count, &mut || false, state, sum)?;
    Ok(pieces
        .unwrap_or_default()
        .into_iter()
        .fold([0.0; K], |a, b| std::array::from_fn(|k| a[k] + b[k])))
}

/// Sums of squared errors by weight, of predictions as they are and of clipped ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub plain: f64,
    pub clipped: f64,
}

/// The sums of squared errors on tensor entries, inside; clipped ones are those of predictions within
/// the range of the training values.
pub(super) fn tensor_squares(
    model: &Model,
    entries: &Entries,
    centre: &Centre,
    level: Level,
    pool: &ThreadPool,
) -> Result<Sums> {
    let shape = &model.shape;
    let clip = centre.clip(model.range);
    let biases: Vec<&[f32]> = centre.biases.iter().map(Vec::as_slice).collect();
    let [plain, clipped] = match entries {
        Entries::Cells(_) | Entries::Classes(_) => {
            let cells = entries.cells();
            let Some(first) = cells.first() else {
                return Ok(Sums {
                    plain: 0.0,
                    clipped: 0.0,
                });
            };
            let form = Form::tensor(shape, first.spec().fiber_mode);
            let core = form.fiber_first(&model.core);
            let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
            summed(cells.len(), pool, Scratch::default, |scratch, c| {
                let model = BlockModel {
                    form: &form,
                    core: &core,
                    rows: &rows,
                    level,
                };
                cell_squares(&cells[c], &model, clip, &biases, scratch)
            })?
        }
        Entries::Shuffled(entries) => {
            let state = || {
                (
                    TensorKernel::new(shape, Method::Shared(level)),
                    vec![0.0f32; shape.rows_len()],
                )
            };
            let count = entries.len().div_ceil(PIECE);
            summed(count, pool, state, |(kernel, rows), c| {
                let (mut plain, mut clipped) = (0.0, 0.0);
                for i in c * PIECE..((c + 1) * PIECE).min(entries.len()) {
                    for (n, &row) in entries.row(i).iter().enumerate() {
                        rows[shape.row(n)]
                            .copy_from_slice(model.modes[n].factor.padded_row(row as usize));
                    }
                    let x = f64::from(kernel.value(&model.core, rows));
                    let value = f64::from(entries.values[i]);
                    let each = biases.iter().zip(entries.row(i));
                    let bias: f64 = each.map(|(b, &row)| f64::from(b[row as usize])).sum();
                    let weight = f64::from(entries.weight(i));
                    plain += weight * ((value - x) * (value - x));
                    clipped += weight * (value + bias - (x + bias).clamp(clip.0, clip.1)).powi(2);
                }
                [plain, clipped]
            })?
        }
    };
    Ok(Sums { plain, clipped })
}

/// f_m without its penalty: squared errors of a matrix, or weighted squared distances of a graph.
fn matrix_squares(
    model: &Model,
    m: usize,
    data: &MatrixData,
    level: Level,
    pool: &ThreadPool,
) -> Result<f64> {
    let rows = &model.modes[data.mode].factor;
    let graph = data.kind.is_graph();
    let columns = match graph {
        true => rows,
        false => &model.matrices[m].factor,
    };
    if let Some(full) = &data.full {
        return full.squares(rows, columns, pool);
    }
    let one = |a: u32, b: u32, y: f32, weight: f32| {
        let (y, weight) = (f64::from(y), f64::from(weight));
        let pairs = rows.row(a as usize).iter().zip(columns.row(b as usize));
        let pairs = pairs.map(|(&p, &q)| (f64::from(p), f64::from(q)));
        match graph {
            true => y * pairs.map(|(p, q)| (p - q).powi(2)).sum::<f64>(),
            false => weight * (y - pairs.map(|(p, q)| p * q).sum::<f64>()).powi(2),
        }
    };
    let [squares] = match &data.entries {
        Entries::Cells(cells) if !graph => {
            let form = Form::matrix(rows.rank());
            let both = [rows.as_slice(), columns.as_slice()];
            let everything = (f64::NEG_INFINITY, f64::INFINITY);
            summed(cells.len(), pool, Scratch::default, |scratch, c| {
                let model = BlockModel {
                    form: &form,
                    core: &[],
                    rows: &both,
                    level,
                };
                let [plain, _] = cell_squares(&cells[c], &model, everything, &[], scratch);
                [plain]
            })?
        }
        Entries::Cells(_) | Entries::Classes(_) => summed(
            data.entries.cells().len(),
            pool,
            || (),
            |(), c| {
                let mut sum = 0.0;
                data.entries.cells()[c]
                    .for_each_entry(|rows, y, w| sum += one(rows[0], rows[1], y, w));
                [sum]
            },
        )?,
        Entries::Shuffled(entries) => {
            let count = entries.len().div_ceil(PIECE);
            summed(
                count,
                pool,
                || (),
                |(), c| {
                    let range = c * PIECE..((c + 1) * PIECE).min(entries.len());
                    let each = range.map(|i| {
                        let row = entries.row(i);
                        one(row[0], row[1], entries.values[i], entries.weight(i))
                    });
                    [each.sum()]
                },
            )?
        }
    };
    Ok(squares)
}

/// The penalty of some rows such that f holds half of it: squares, or twice absolute values, of what
/// they are off their prior.
fn penalty(
    rows: &[f32],
    prior: &[f32],
    kind: Penalty,
    weight: impl Fn(usize) -> f64 + Sync,
    pool: &ThreadPool,
) -> Result<f64> {
    // Large enough that threads pay.
    const FLOATS: usize = 32 * PIECE;
    let stride = prior.len().max(1);
    let per_piece = (FLOATS / stride).max(1);
    let pieces: Vec<&[f32]> = rows.chunks(per_piece * stride).collect();
    let [sum] = summed(
        pieces.len(),
        pool,
        || (),
        |(), c| {
            let each = pieces[c].chunks_exact(stride).enumerate();
            [each
                .map(|(i, row)| {
                    let off = row.iter().zip(prior).map(|(x, p)| f64::from(x - p));
                    weight(c * per_piece + i)
                        * match kind {
                            Penalty::L2 => off.map(|x| x * x).sum::<f64>(),
                            Penalty::L1 => 2.0 * off.map(f64::abs).sum::<f64>(),
                        }
                })
                .sum()]
        },
    )?;
    Ok(sum)
}

/// What biases add to the loss: that by which solving for them weighs their squares.
pub(super) fn of_biases(biases: &[Vec<f32>], damping: &[f64], pool: &ThreadPool) -> Result<f64> {
    let mut size = 0.0;
    for (mode, &lambda) in biases.iter().zip(damping) {
        size += penalty(mode, &[0.0], Penalty::L2, |_| lambda, pool)?;
    }
    Ok(0.5 * size)
}

/// The paper's f = 1/2 f_t + sum_m lambda_m / 2 f_m, given the tensor's sum of squared errors.
pub(super) fn total(
    model: &Model,
    data: &Data,
    tensor_squares: f64,
    options: &Options,
    level: Level,
    pool: &ThreadPool,
) -> Result<f64> {
    let kind = options.penalty;
    let mut size = tensor_squares;
    let line = [0.0; LANES];
    size += penalty(&model.core, &line, kind, |_| data.penalties.lambda, pool)?;
    for (n, mode) in model.modes.iter().enumerate() {
        // Not the mean row, which is no parameter.
        let rows = &mode.factor.as_slice()[..mode.rows.len() * mode.factor.stride()];
        // Rows that only matrices have count as rows of one entry.
        let weight = |i: usize| match mode.counts[i] {
            0 => data.penalties.row(1.0),
            _ => data.penalties.row(mode.row_weight(i)),
        };
        size += penalty(rows, &data.priors[n], kind, weight, pool)?;
    }
    let mut f = 0.5 * size;
    for (m, matrix) in data.matrices.iter().enumerate() {
        let squares = matrix_squares(model, m, matrix, level, pool)?;
        let rows = model.matrices[m].factor.as_slice();
        let weight = |k: usize| matrix.penalties.row(matrix.column_weights[k]);
        let columns = penalty(rows, &matrix.prior, kind, weight, pool)?;
        f += 0.5 * (f64::from(matrix.weight) * squares + columns);
    }
    Ok(f)
}
