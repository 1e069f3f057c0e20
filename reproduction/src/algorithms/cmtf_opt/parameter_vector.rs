//! Vectors with one element per parameter, and the operations on them.
//!
//! Operations divide vectors into chunks of fixed size and add the chunks' sums in order, so results are independent of the
//! thread count.

use std::ops::Range;
use std::sync::Mutex;

use crate::kernels::{add_scaled, inner_products};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::parallel::{ThreadPool, lock_ignoring_poison};
use s3cmtf_kernel::progress::count_operations;
use s3cmtf_kernel::simd::padded_len;
use s3cmtf_kernel::try_alloc::try_zeroed;

/// Most floats per chunk.
const CHUNK: usize = 1 << 12;

/// A vector. Its blocks are the rows of each mode, then the columns of each matrix, all of them without padding.
pub(super) struct ParameterVector {
    rank: usize,
    pub blocks: Vec<Vec<f32>>,
}

/// Some rows of a block.
#[derive(Clone)]
struct Chunk {
    block: usize,
    rows: Range<usize>,
}

impl ParameterVector {
    /// Returns a vector of zeros for the parameters of a model.
    pub(super) fn zeros(model: &Model) -> Result<ParameterVector> {
        let rank = model.shape.ranks()[0];
        let rows = |block: &[f32]| block.len() / padded_len(rank);
        let zeros = |block| try_zeroed(rows(block) * rank, "parameters");
        Ok(ParameterVector {
            rank,
            blocks: parameters(model)
                .into_iter()
                .map(zeros)
                .collect::<Result<_>>()?,
        })
    }

    /// Returns a vector for the parameters of a model from its elements, block after block; `None` if their number is wrong.
    pub(super) fn from_elements(
        model: &Model,
        elements: &[f32],
    ) -> Result<Option<ParameterVector>> {
        let mut vector = ParameterVector::zeros(model)?;
        let mut rest = elements;
        for block in &mut vector.blocks {
            let Some((elements, others)) = rest.split_at_checked(block.len()) else {
                return Ok(None);
            };
            block.copy_from_slice(elements);
            rest = others;
        }
        Ok(rest.is_empty().then_some(vector))
    }

    /// Returns the elements, one part per block.
    pub(super) fn parts(&self) -> Vec<&[f32]> {
        self.blocks.iter().map(Vec::as_slice).collect()
    }

    /// Replaces the elements by the parameters of a model.
    pub(super) fn set_parameters_of(&mut self, model: &Model, pool: &ThreadPool<'_>) -> Result<()> {
        let (from, rank) = (parameters(model), self.rank);
        self.update(pool, |chunk, to| {
            let from = padded_rows(&from, chunk, rank);
            for (to, from) in to.chunks_exact_mut(rank).zip(from) {
                to.copy_from_slice(&from[..rank]);
            }
        })
    }

    /// Replaces the elements by the parameters of a model less `start`.
    pub(super) fn set_step(
        &mut self,
        model: &Model,
        start: &ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let (from, rank) = (parameters(model), self.rank);
        self.update(pool, |chunk, to| {
            let start = start.chunk(chunk).chunks_exact(rank);
            let rows = padded_rows(&from, chunk, rank).zip(start);
            for (to, (row, start)) in to.chunks_exact_mut(rank).zip(rows) {
                for ((to, x), x0) in to.iter_mut().zip(row).zip(start) {
                    *to = x - x0;
                }
            }
        })
    }

    /// Replaces the elements by the differences of `a` from them.
    pub(super) fn subtract_from(
        &mut self,
        a: &ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        self.update(pool, |chunk, to| {
            let elements = to.iter_mut().zip(a.chunk(chunk));
            elements.for_each(|(to, a)| *to = a - *to);
        })
    }

    /// Replaces the elements by a sum of vectors, each times its factor.
    pub(super) fn set_combination(
        &mut self,
        terms: &[(f64, &ParameterVector)],
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        self.update(pool, |chunk, to| {
            let mut sum = [0.0; CHUNK];
            let sum = &mut sum[..to.len()];
            for (factor, vector) in terms {
                add_scaled(sum, *factor, vector.chunk(chunk));
            }
            count_operations(terms.len() * to.len());
            to.iter_mut().zip(sum).for_each(|(to, x)| *to = *x as f32);
        })
    }

    /// Calls `update` with each chunk.
    fn update(
        &mut self,
        pool: &ThreadPool<'_>,
        update: impl Fn(&Chunk, &mut [f32]) + Sync,
    ) -> Result<()> {
        let rank = self.rank;
        let blocks = self.blocks.iter_mut().map(|block| &mut block[..]);
        update_chunks(blocks.collect(), rank, rank, pool, update)
    }

    fn chunk(&self, chunk: &Chunk) -> &[f32] {
        &self.blocks[chunk.block][chunk.rows.start * self.rank..chunk.rows.end * self.rank]
    }
}

/// Returns the inner product of two vectors.
pub(super) fn inner_product(
    a: &ParameterVector,
    b: &ParameterVector,
    pool: &ThreadPool<'_>,
) -> Result<f64> {
    let products = products_with(&[a], [b; 3], pool)?;
    Ok(products[0][0])
}

/// Returns the inner products of each of `vectors` with each of `others`.
pub(super) fn products_with(
    vectors: &[&ParameterVector],
    others: [&ParameterVector; 3],
    pool: &ThreadPool<'_>,
) -> Result<Vec<[f64; 3]>> {
    let rank = others[0].rank;
    let blocks = others[0].blocks.iter();
    let chunks = chunks(blocks.map(|block| block.len() / rank), rank);
    let scratch = || {
        let buffer = || try_zeroed::<f64>(CHUNK, "parameters");
        Ok([buffer()?, buffer()?, buffer()?])
    };
    let of_chunks = pool.try_map(chunks.len(), scratch, |scratch: &mut [Vec<f64>; 3], c| {
        let len = chunks[c].rows.len() * rank;
        for (wide, other) in scratch.iter_mut().zip(others) {
            let elements = wide.iter_mut().zip(other.chunk(&chunks[c]));
            elements.for_each(|(wide, &x)| *wide = f64::from(x));
        }
        let wide = scratch.each_ref().map(|wide| &wide[..len]);
        count_operations(3 * vectors.len() * len);
        let products = vectors
            .iter()
            .map(|v| inner_products(v.chunk(&chunks[c]), wide));
        Ok(products.collect::<Vec<_>>())
    })?;
    let mut sums = vec![[0.0; 3]; vectors.len()];
    for products in of_chunks {
        for (sum, product) in sums.iter_mut().zip(products) {
            sum.iter_mut().zip(product).for_each(|(s, x)| *s += x);
        }
    }
    Ok(sums)
}

/// Moves the parameters of a model to `start + step * direction`.
pub(super) fn set_parameters(
    model: &mut Model,
    start: &ParameterVector,
    step: f64,
    direction: &ParameterVector,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let (rank, stride) = (start.rank, padded_len(start.rank));
    let blocks = parameters_mut(model)?;
    update_chunks(blocks, rank, stride, pool, |chunk, to| {
        let directions = direction.chunk(chunk).chunks_exact(rank);
        let rows = start.chunk(chunk).chunks_exact(rank).zip(directions);
        for (to, (start, direction)) in to.chunks_exact_mut(stride).zip(rows) {
            if step == 0.0 {
                // The direction may not be finite.
                to[..rank].copy_from_slice(start);
                continue;
            }
            for ((to, &x), &p) in to.iter_mut().zip(start).zip(direction) {
                *to = (f64::from(x) + step * f64::from(p)) as f32;
            }
        }
    })
}

/// Multiplies the columns of each block of parameters by their factors.
pub(super) fn scale_columns(
    model: &mut Model,
    scales: &[Vec<f64>],
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let rank = model.shape.ranks()[0];
    let stride = padded_len(rank);
    update_chunks(parameters_mut(model)?, rank, stride, pool, |chunk, to| {
        for row in to.chunks_exact_mut(stride) {
            let elements = row.iter_mut().zip(&scales[chunk.block]);
            elements.for_each(|(x, scale)| *x = (f64::from(*x) * scale) as f32);
        }
    })
}

/// Returns the padded parameters of a model by block, without the mean rows.
fn parameters_mut(model: &mut Model) -> Result<Vec<&mut [f32]>> {
    let modes = model.modes.iter_mut().map(|mode| {
        let len = mode.rows.len() * mode.factor.stride();
        Ok(&mut mode.factor.as_mut_slice()?[..len])
    });
    let matrices = model.matrices.iter_mut();
    modes
        .chain(matrices.map(|matrix| matrix.factor.as_mut_slice()))
        .collect()
}

/// Returns the padded parameters of a model by block, without the mean rows.
pub(super) fn parameters(model: &Model) -> Vec<&[f32]> {
    let modes = model.modes.iter().map(|mode| {
        let len = mode.rows.len() * mode.factor.stride();
        &mode.factor.as_slice()[..len]
    });
    let matrices = model.matrices.iter().map(|matrix| matrix.factor.as_slice());
    modes.chain(matrices).collect()
}

/// Returns the padded rows of a chunk.
fn padded_rows<'a>(
    blocks: &[&'a [f32]],
    chunk: &Chunk,
    rank: usize,
) -> impl Iterator<Item = &'a [f32]> {
    let stride = padded_len(rank);
    blocks[chunk.block][chunk.rows.start * stride..chunk.rows.end * stride].chunks_exact(stride)
}

/// Returns the number of rows per chunk.
fn chunk_rows(rank: usize) -> usize {
    (CHUNK / rank).max(1)
}

/// Divides blocks of these numbers of rows into chunks.
fn chunks(row_counts: impl Iterator<Item = usize>, rank: usize) -> Vec<Chunk> {
    let of_block = |(block, rows): (usize, usize)| {
        let starts = (0..rows).step_by(chunk_rows(rank));
        starts.map(move |start| Chunk {
            block,
            rows: start..(start + chunk_rows(rank)).min(rows),
        })
    };
    row_counts.enumerate().flat_map(of_block).collect()
}

/// Calls `update` with each chunk of `blocks`, whose rows have `stride` floats.
fn update_chunks(
    blocks: Vec<&mut [f32]>,
    rank: usize,
    stride: usize,
    pool: &ThreadPool<'_>,
    update: impl Fn(&Chunk, &mut [f32]) + Sync,
) -> Result<()> {
    let chunks = chunks(blocks.iter().map(|block| block.len() / stride), rank);
    let slots = blocks
        .into_iter()
        .flat_map(|block| block.chunks_mut(chunk_rows(rank) * stride));
    let slots: Vec<Mutex<&mut [f32]>> = slots.map(Mutex::new).collect();
    pool.map(
        chunks.len(),
        || (),
        |(), c| update(&chunks[c], &mut lock_ignoring_poison(&slots[c])),
    )?;
    Ok(())
}
