//! The loss f of the paper and the squared errors it consists of, independent of the thread count.

use super::chunked_sum::{CHUNK, sum_chunks};
use super::data::{Data, MatrixData};
use super::entries::Entries;
use super::standardization::Standardization;
use crate::error::Result;
use crate::kernel::{
    BlockModel, BlockScratch, CoreLayout, Method, TensorKernel, squared_residuals,
};
use crate::model::Model;
use crate::options::{Options, Penalty};
use crate::parallel::ThreadPool;
use crate::progress::steps_per_poll;
use crate::simd::{LANES, Level};
use crate::value_range::ValueRange;

/// Weighted sums of squared errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct SquaredErrors {
    /// Of the predictions themselves.
    pub plain: f64,
    /// Of predictions clipped to the range of the training values.
    pub clipped: f64,
}

/// Computes the squared errors on tensor entries, in standardized units.
pub(super) fn tensor_squared_errors(
    model: &Model,
    entries: &Entries,
    standardization: &Standardization,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<SquaredErrors> {
    let (shape, stop) = (&model.shape, pool.stop());
    let clip = standardization.standardized_range(model.range);
    let biases: Vec<&[f32]> = standardization.biases.iter().map(Vec::as_slice).collect();
    let [plain, clipped] = match entries {
        Entries::Blocks(_) | Entries::Classes(_) => {
            let blocks = entries.blocks();
            let Some(first) = blocks.first() else {
                return Ok(SquaredErrors {
                    plain: 0.0,
                    clipped: 0.0,
                });
            };
            let layout = CoreLayout::tensor(shape, first.spec().fiber_mode);
            let core = layout.to_fiber_first(&model.core, pool.monitor())?;
            let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
            let model = BlockModel {
                layout: &layout,
                core: &core,
                rows: &rows,
                level,
            };
            let scratch = || Ok(BlockScratch::default());
            sum_chunks(blocks.len(), pool, scratch, |scratch, b| {
                squared_residuals(&blocks[b], &model, clip, &biases, scratch, stop)
            })?
        }
        Entries::Shuffled(entries) => {
            let state = || {
                Ok((
                    TensorKernel::new(shape, Method::Shared(level))?,
                    vec![0.0f32; shape.rows_len()],
                ))
            };
            let entries_per_poll = steps_per_poll(shape.core_len());
            let count = entries.len().div_ceil(CHUNK);
            sum_chunks(count, pool, state, |(kernel, rows), c| {
                let (mut plain, mut clipped) = (0.0, 0.0);
                for i in c * CHUNK..((c + 1) * CHUNK).min(entries.len()) {
                    if i % entries_per_poll == 0 && stop.requested() {
                        break;
                    }
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
                    clipped +=
                        weight * (value + bias - (x + bias).clamp(clip.min, clip.max)).powi(2);
                }
                Ok([plain, clipped])
            })?
        }
    };
    Ok(SquaredErrors { plain, clipped })
}

/// Computes f_m without its penalty: the squared errors of a matrix, or the weighted squared distances of a graph.
fn matrix_squared_error(
    model: &Model,
    m: usize,
    data: &MatrixData,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let rows = &model.modes[data.mode].factor;
    let graph = data.kind.is_graph();
    let columns = if graph {
        rows
    } else {
        &model.matrices[m].factor
    };
    if let Some(full) = &data.full {
        return full.squared_error(rows, columns, pool);
    }
    let entry_error = |a: u32, b: u32, y: f32, weight: f32| {
        let (y, weight) = (f64::from(y), f64::from(weight));
        let pairs = rows.row(a as usize).iter().zip(columns.row(b as usize));
        let pairs = pairs.map(|(&p, &q)| (f64::from(p), f64::from(q)));
        if graph {
            y * pairs.map(|(p, q)| (p - q).powi(2)).sum::<f64>()
        } else {
            weight * (y - pairs.map(|(p, q)| p * q).sum::<f64>()).powi(2)
        }
    };
    let [squares] = match &data.entries {
        Entries::Blocks(blocks) if !graph => {
            let layout = CoreLayout::matrix(rows.rank());
            let both = [rows.as_slice(), columns.as_slice()];
            let unbounded = ValueRange::UNBOUNDED;
            let model = BlockModel {
                layout: &layout,
                core: &[],
                rows: &both,
                level,
            };
            let (stop, scratch) = (pool.stop(), || Ok(BlockScratch::default()));
            sum_chunks(blocks.len(), pool, scratch, |scratch, b| {
                let [plain, _] =
                    squared_residuals(&blocks[b], &model, unbounded, &[], scratch, stop)?;
                Ok([plain])
            })?
        }
        Entries::Blocks(_) | Entries::Classes(_) => sum_chunks(
            data.entries.blocks().len(),
            pool,
            || Ok(()),
            |(), c| {
                let mut sum = 0.0;
                data.entries.blocks()[c]
                    .for_each_entry(|rows, y, w| sum += entry_error(rows[0], rows[1], y, w));
                Ok([sum])
            },
        )?,
        Entries::Shuffled(entries) => {
            let count = entries.len().div_ceil(CHUNK);
            sum_chunks(
                count,
                pool,
                || Ok(()),
                |(), c| {
                    let range = c * CHUNK..((c + 1) * CHUNK).min(entries.len());
                    let each = range.map(|i| {
                        let row = entries.row(i);
                        entry_error(row[0], row[1], entries.values[i], entries.weight(i))
                    });
                    Ok([each.sum()])
                },
            )?
        }
    };
    Ok(squares)
}

/// Computes twice the penalty of some rows, since f contains half of it: the squares, or twice the absolute values, of
/// their differences to the prior mean.
fn penalty(
    rows: &[f32],
    prior_mean: &[f32],
    kind: Penalty,
    weight: &(dyn Fn(usize) -> f64 + Sync),
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    // Smaller chunks are not worth the threads.
    const FLOATS_PER_CHUNK: usize = 32 * CHUNK;
    let stride = prior_mean.len().max(1);
    let rows_per_chunk = (FLOATS_PER_CHUNK / stride).max(1);
    let chunks: Vec<&[f32]> = rows.chunks(rows_per_chunk * stride).collect();
    let [sum] = sum_chunks(
        chunks.len(),
        pool,
        || Ok(()),
        |(), c| {
            let each = chunks[c].chunks_exact(stride).enumerate();
            let sum = each
                .map(|(i, row)| {
                    let off = row.iter().zip(prior_mean).map(|(x, p)| f64::from(x - p));
                    weight(c * rows_per_chunk + i)
                        * match kind {
                            Penalty::L2 => off.map(|x| x * x).sum::<f64>(),
                            Penalty::L1 => 2.0 * off.map(f64::abs).sum::<f64>(),
                        }
                })
                .sum();
            Ok([sum])
        },
    )?;
    Ok(sum)
}

/// Computes the penalty of the biases: half their squares times the damping of their mode.
pub(super) fn bias_penalty(
    biases: &[Vec<f32>],
    damping: &[f64],
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let mut size = 0.0;
    for (mode, &lambda) in biases.iter().zip(damping) {
        size += penalty(mode, &[0.0], Penalty::L2, &|_| lambda, pool)?;
    }
    Ok(0.5 * size)
}

/// Computes f = 1/2 f_t + sum_m lambda_m / 2 f_m of the paper, given the tensor's sum of squared errors.
pub(super) fn objective(
    model: &Model,
    data: &Data,
    tensor_squared_error: f64,
    options: &Options,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let kind = options.penalty;
    let mut size = tensor_squared_error;
    let zeros = [0.0; LANES];
    size += penalty(&model.core, &zeros, kind, &|_| data.penalty.lambda, pool)?;
    for (n, mode) in model.modes.iter().enumerate() {
        // The mean row at the end is no parameter.
        let rows = &mode.factor.as_slice()[..mode.rows.len() * mode.factor.stride()];
        // A row without tensor entries is penalized like a row with one entry.
        let weight = |i: usize| match mode.counts[i] {
            0 => data.penalty.of_row(1.0),
            _ => data.penalty.of_row(mode.row_weight(i)),
        };
        size += penalty(rows, &data.prior_means[n], kind, &weight, pool)?;
    }
    let mut f = 0.5 * size;
    for (m, matrix) in data.matrices.iter().enumerate() {
        let squared_error = matrix_squared_error(model, m, matrix, level, pool)?;
        let rows = model.matrices[m].factor.as_slice();
        let weight = |k: usize| matrix.penalty.of_row(matrix.column_weights[k]);
        let columns = penalty(rows, &matrix.prior_mean, kind, &weight, pool)?;
        f += 0.5 * (f64::from(matrix.weight) * squared_error + columns);
    }
    Ok(f)
}
