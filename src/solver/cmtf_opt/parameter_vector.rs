//! Vectors with one element per parameter, in the layout of the model's factors, and the operations on them.
//!
//! Operations divide vectors into chunks of fixed size and add the chunks' sums in order, so results are independent of the
//! thread count.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::Result;
use crate::kernel::{add_scaled, inner_products};
use crate::model::Model;
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::progress::count_operations;
use crate::simd::AlignedVec;
use crate::try_alloc::try_zeroed;

/// Floats per chunk.
const CHUNK: usize = 1 << 12;

/// A vector. Its blocks are the padded rows of each mode, then the padded columns of each matrix.
pub(super) struct ParameterVector {
    pub blocks: Vec<AlignedVec>,
}

/// Part of a block.
#[derive(Clone)]
struct Chunk {
    block: usize,
    range: Range<usize>,
}

impl ParameterVector {
    /// Returns a vector of zeros for the parameters of a model.
    pub(super) fn zeros(model: &Model) -> Result<ParameterVector> {
        let zeros = |block: &[f32]| AlignedVec::try_zeroed(block.len(), "parameters");
        let blocks = parameters(model).into_iter().map(zeros);
        Ok(ParameterVector {
            blocks: blocks.collect::<Result<_>>()?,
        })
    }

    /// Replaces the elements by the parameters of a model.
    pub(super) fn copy_parameters(&mut self, model: &Model) {
        for (to, from) in self.blocks.iter_mut().zip(parameters(model)) {
            to.copy_from_slice(from);
        }
    }

    /// Replaces the elements by the differences `a - b`.
    pub(super) fn set_difference(
        &mut self,
        a: &[&[f32]],
        b: &ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        self.update(pool, |chunk, to| {
            let (a, b) = (&a[chunk.block][chunk.range.clone()], b.chunk(&chunk));
            let differences = a.iter().zip(b).map(|(a, b)| a - b);
            to.iter_mut().zip(differences).for_each(|(to, x)| *to = x);
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
                add_scaled(sum, *factor, vector.chunk(&chunk));
            }
            count_operations(terms.len() * to.len());
            to.iter_mut().zip(sum).for_each(|(to, x)| *to = *x as f32);
        })
    }

    /// Calls `update` with each chunk.
    fn update(
        &mut self,
        pool: &ThreadPool<'_>,
        update: impl Fn(Chunk, &mut [f32]) + Sync,
    ) -> Result<()> {
        let blocks = self.blocks.iter_mut().map(|block| &mut block[..]);
        update_chunks(blocks.collect(), pool, update)
    }

    fn chunk(&self, chunk: &Chunk) -> &[f32] {
        &self.blocks[chunk.block][chunk.range.clone()]
    }

    /// Slices of all blocks.
    pub(super) fn slices(&self) -> Vec<&[f32]> {
        self.blocks.iter().map(|block| &block[..]).collect()
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
    let lens: Vec<usize> = others[0].blocks.iter().map(|block| block.len()).collect();
    let chunks = chunks(&lens);
    let scratch = || {
        let buffer = || try_zeroed::<f64>(CHUNK, "parameters");
        Ok([buffer()?, buffer()?, buffer()?])
    };
    let of_chunks = pool.try_map(chunks.len(), scratch, |scratch: &mut [Vec<f64>; 3], c| {
        let len = chunks[c].range.len();
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

/// Moves the parameters of a model to `from + step * direction`.
pub(super) fn set_parameters(
    model: &mut Model,
    from: &ParameterVector,
    step: f64,
    direction: &ParameterVector,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let mut blocks = Vec::new();
    for mode in &mut model.modes {
        let len = mode.rows.len() * mode.factor.stride();
        blocks.push(&mut mode.factor.as_mut_slice()?[..len]);
    }
    for matrix in &mut model.matrices {
        blocks.push(matrix.factor.as_mut_slice()?);
    }
    update_chunks(blocks, pool, |chunk, to| {
        let elements = from.chunk(&chunk).iter().zip(direction.chunk(&chunk));
        let moved = elements.map(|(&x, &p)| (f64::from(x) + step * f64::from(p)) as f32);
        to.iter_mut().zip(moved).for_each(|(to, x)| *to = x);
    })
}

/// Returns the parameters of a model by block, without the mean rows.
pub(super) fn parameters(model: &Model) -> Vec<&[f32]> {
    let modes = model.modes.iter().map(|mode| {
        let len = mode.rows.len() * mode.factor.stride();
        &mode.factor.as_slice()[..len]
    });
    let matrices = model.matrices.iter().map(|matrix| matrix.factor.as_slice());
    modes.chain(matrices).collect()
}

/// Divides blocks of these lengths into chunks.
fn chunks(lens: &[usize]) -> Vec<Chunk> {
    let of_block = |(block, &len): (usize, &usize)| {
        (0..len).step_by(CHUNK).map(move |start| Chunk {
            block,
            range: start..(start + CHUNK).min(len),
        })
    };
    lens.iter().enumerate().flat_map(of_block).collect()
}

/// Calls `update` with each chunk of `blocks`.
fn update_chunks(
    blocks: Vec<&mut [f32]>,
    pool: &ThreadPool<'_>,
    update: impl Fn(Chunk, &mut [f32]) + Sync,
) -> Result<()> {
    let lens: Vec<usize> = blocks.iter().map(|block| block.len()).collect();
    let slots = blocks.into_iter().flat_map(|block| block.chunks_mut(CHUNK));
    let slots: Vec<Mutex<&mut [f32]>> = slots.map(Mutex::new).collect();
    let chunks = chunks(&lens);
    pool.map(
        chunks.len(),
        || (),
        |(), c| update(chunks[c].clone(), &mut lock_ignoring_poison(&slots[c])),
    )?;
    Ok(())
}
