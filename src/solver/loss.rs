//! The loss f of the paper and the squared errors it consists of, independent of the thread count.

use std::sync::Arc;

use super::chunked_sum::{CHUNK, sum_chunks};
use super::data::{Data, MatrixData};
use super::entries::Entries;
use super::evaluation_entries::fiber_mode;
use super::standardization::Standardization;
use crate::error::Result;
use crate::kernel::{
    BlockModel, BlockScratch, CoreKind, CoreLayout, CoreShape, Edges, row_sizes, squared_distances,
    squared_residuals,
};
use crate::model::{FactorMatrix, Model};
use crate::options::{Options, Penalty};
use crate::parallel::ThreadPool;
use crate::simd::{LANES, Level};
use crate::value_range::ValueRange;

/// Weighted sums of squared errors.
#[derive(Debug, Clone, Copy)]
pub struct SquaredErrors {
    /// Of the predictions themselves.
    pub plain: f64,
    /// Of clipped predictions.
    pub clipped: f64,
}

/// Computes the squared errors on tensor entries, in standardized units, of predictions as they are and clipped to `clip`.
pub(super) fn tensor_squared_errors(
    model: &Model,
    entries: &Entries,
    standardization: &Standardization,
    clip: ValueRange,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<SquaredErrors> {
    let mut biases: Vec<&[f32]> = standardization.biases.iter().map(Vec::as_slice).collect();
    if clip == ValueRange::UNBOUNDED {
        // Biases are needed only to clip predictions.
        biases.clear();
    }
    let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
    let fiber_mode = match entries {
        // Sorting by fiber costs more than the product with one more row saves.
        Entries::List(_) if model.shape.kind() == CoreKind::Diagonal => None,
        Entries::List(list) => fiber_mode(model, chunk_size(list.len())),
        _ => entries.blocks().first().and_then(|b| b.spec().fiber_mode),
    };
    let layout = CoreLayout::tensor(&model.shape, fiber_mode);
    let core = layout.to_fiber_first(&model.core, pool.monitor())?;
    let model = BlockModel {
        layout: &layout,
        core: &core,
        rows: &rows,
        level,
    };
    let [plain, clipped] = sum_squared_residuals(entries, &model, clip, &biases, pool)?;
    Ok(SquaredErrors { plain, clipped })
}

/// Sums the squared residuals of all entries: plain, and with clipped predictions. Listed entries are sorted by fiber, one
/// chunk at a time, so that the entries of a fiber share the product of its row with the core.
fn sum_squared_residuals(
    entries: &Entries,
    model: &BlockModel<'_>,
    clip: ValueRange,
    biases: &[&[f32]],
    pool: &ThreadPool<'_>,
) -> Result<[f64; 2]> {
    let (stop, scratch) = (pool.stop(), || Ok(BlockScratch::default()));
    let Entries::List(list) = entries else {
        let blocks = entries.blocks();
        return sum_chunks(blocks.len(), pool, scratch, |scratch, b| {
            squared_residuals(&blocks[b], model, clip, biases, scratch, stop)
        });
    };
    let spec = Arc::new(model.blocking(list.is_weighted()));
    let count = list.len();
    let size = chunk_size(count);
    sum_chunks(count.div_ceil(size), pool, scratch, |scratch, c| {
        let block = list.block(&spec, c * size..((c + 1) * size).min(count))?;
        squared_residuals(&block, model, clip, biases, scratch, stop)
    })
}

/// Returns the number of entries per chunk of a list. Long chunks have more entries per fiber; short ones keep all threads busy.
/// A chunk fits into the L2 cache.
fn chunk_size(entries: usize) -> usize {
    entries.div_ceil(64).clamp(CHUNK / 2, 4 * CHUNK)
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
    if data.kind.is_graph() {
        return graph_squared_distance(rows, &data.entries, level, pool);
    }
    let columns = &model.matrices[m].factor;
    if let Some(full) = &data.full {
        return full.squared_error(rows, columns, pool);
    }
    let (rank, mut core) = (rows.rank(), Vec::new());
    let layout = match data.entries {
        // As above. A matrix is a CP model with a core of ones.
        Entries::List(_) => {
            let shape = CoreShape::new(CoreKind::Diagonal, &[rank; 2]);
            core = vec![0.0; shape.core_len()];
            core[..rank].fill(1.0);
            CoreLayout::tensor(&shape, None)
        }
        _ => CoreLayout::matrix(rank),
    };
    let model = BlockModel {
        layout: &layout,
        core: &core,
        rows: &[rows.as_slice(), columns.as_slice()],
        level,
    };
    let [plain, _] =
        sum_squared_residuals(&data.entries, &model, ValueRange::UNBOUNDED, &[], pool)?;
    Ok(plain)
}

/// Computes the sum over all edges of a graph of the similarity times the squared distance of the two rows.
fn graph_squared_distance(
    rows: &FactorMatrix,
    edges: &Entries,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let (state, stride) = (|| Ok(()), rows.stride());
    let distances = |edges: &Edges<'_>| [squared_distances(edges, rows.as_slice(), stride, level)];
    let [sum] = match edges {
        Entries::List(edges) => {
            let pairs = edges.rows.as_chunks().0;
            sum_chunks(edges.len().div_ceil(CHUNK), pool, state, |(), c| {
                let range = c * CHUNK..((c + 1) * CHUNK).min(edges.len());
                let some = Edges::Lists(&pairs[range.clone()], &edges.values[range]);
                Ok(distances(&some))
            })?
        }
        _ => sum_chunks(edges.blocks().len(), pool, state, |(), b| {
            Ok(distances(&edges.blocks()[b].edges()))
        })?,
    };
    Ok(sum)
}

/// Computes twice the penalty of some rows, since f contains half of it: the squares, or twice the absolute values, of
/// their differences to the prior mean.
fn penalty(
    rows: &[f32],
    prior_mean: &[f32],
    kind: Penalty,
    weight: impl Fn(usize) -> f64 + Sync,
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    // Smaller chunks are not worth the threads.
    const FLOATS_PER_CHUNK: usize = 32 * CHUNK;
    const ROWS_AT_ONCE: usize = 64;
    let stride = prior_mean.len().max(1);
    let rows_per_chunk = (FLOATS_PER_CHUNK / stride).max(1);
    let chunks: Vec<&[f32]> = rows.chunks(rows_per_chunk * stride).collect();
    let [sum] = sum_chunks(
        chunks.len(),
        pool,
        || Ok(()),
        |(), c| {
            let (mut sum, mut sizes) = (0.0, [0.0; ROWS_AT_ONCE]);
            for (g, rows) in chunks[c].chunks(ROWS_AT_ONCE * stride).enumerate() {
                let sizes = &mut sizes[..rows.len() / stride];
                row_sizes(level, rows, prior_mean, kind == Penalty::L1, sizes);
                let first = c * rows_per_chunk + g * ROWS_AT_ONCE;
                for (i, size) in sizes.iter().enumerate() {
                    let size = match kind {
                        Penalty::L2 => *size,
                        Penalty::L1 => 2.0 * size,
                    };
                    sum += weight(first + i) * size;
                }
            }
            Ok([sum])
        },
    )?;
    Ok(sum)
}

/// Computes the penalty of the biases: half their squares times the damping of their mode.
pub(super) fn bias_penalty(
    biases: &[Vec<f32>],
    damping: &[f64],
    level: Level,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let mut size = 0.0;
    for (mode, &lambda) in biases.iter().zip(damping) {
        size += penalty(mode, &[0.0], Penalty::L2, |_| lambda, level, pool)?;
    }
    Ok(0.5 * size)
}

/// Computes f = 1/2 f_t + sum_m lambda_m / 2 f_m of the paper, given the tensor's sum of squared errors.
pub fn objective(
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
    size += penalty(
        &model.core,
        &zeros,
        kind,
        |_| data.penalty.lambda,
        level,
        pool,
    )?;
    for (n, mode) in model.modes.iter().enumerate() {
        // The mean row at the end is no parameter.
        let rows = &mode.factor.as_slice()[..mode.rows.len() * mode.factor.stride()];
        // A row without tensor entries is penalized like a row with one entry.
        let weight = |i: usize| match mode.counts[i] {
            0 => data.penalty.of_row(1.0),
            _ => data.penalty.of_row(mode.row_weight(i)),
        };
        size += penalty(rows, &data.prior_means[n], kind, weight, level, pool)?;
    }
    let mut f = 0.5 * size;
    for (m, matrix) in data.matrices.iter().enumerate() {
        let squared_error = matrix_squared_error(model, m, matrix, level, pool)?;
        let rows = model.matrices[m].factor.as_slice();
        let weight = |k: usize| matrix.penalty.of_row(matrix.column_weights[k]);
        let columns = penalty(rows, &matrix.prior_mean, kind, weight, level, pool)?;
        f += 0.5 * (f64::from(matrix.weight) * squared_error + columns);
    }
    Ok(f)
}
