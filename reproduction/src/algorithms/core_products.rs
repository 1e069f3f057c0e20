//! Products of a core, without padding and in `f64`, with matrices along its modes.

use s3cmtf::error::Result;
use s3cmtf_kernel::kernel::CoreShape;
use s3cmtf_kernel::progress::{Monitor, StepPolls};
use s3cmtf_kernel::simd::padded_len;
use s3cmtf_kernel::try_alloc::{CORE_ENTRIES, try_with_capacity, try_zeroed};

/// Returns a full core, row-major and without padding.
pub(super) fn core_without_padding(shape: &CoreShape, core: &[f32]) -> Result<Vec<f64>> {
    let last = shape.ranks()[shape.ranks().len() - 1];
    let rows = core.chunks_exact(padded_len(last));
    let mut all = try_with_capacity(rows.len() * last, CORE_ENTRIES)?;
    all.extend(rows.flat_map(|row| &row[..last]).map(|&g| f64::from(g)));
    Ok(all)
}

/// Returns G x_n B for a core without padding and a symmetric matrix.
pub(super) fn multiply_core(
    core: &[f64],
    ranks: &[usize],
    n: usize,
    matrix: &[f64],
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let (rank, after) = (ranks[n], ranks[n + 1..].iter().product::<usize>());
    let mut product: Vec<f64> = try_zeroed(core.len(), CORE_ENTRIES)?;
    let mut polls = StepPolls::new(monitor, rank * after);
    let slabs = product.chunks_exact_mut(rank * after);
    for (to, from) in slabs.zip(core.chunks_exact(rank * after)) {
        for (to, row) in to.chunks_exact_mut(after).zip(matrix.chunks_exact(rank)) {
            polls.step()?;
            for (from, &b) in from.chunks_exact(after).zip(row) {
                to.iter_mut().zip(from).for_each(|(to, g)| *to += b * g);
            }
        }
    }
    Ok(product)
}

/// Returns the inner products of the slices of two cores along mode `n`, row-major.
pub(super) fn slice_products(
    left: &[f64],
    right: &[f64],
    ranks: &[usize],
    n: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let (rank, after) = (ranks[n], ranks[n + 1..].iter().product::<usize>());
    let mut products = vec![0.0; rank * rank];
    let mut polls = StepPolls::new(monitor, rank * after);
    let slabs = left.chunks_exact(rank * after);
    for (left, right) in slabs.zip(right.chunks_exact(rank * after)) {
        let rows = products.chunks_exact_mut(rank);
        for (to, left) in rows.zip(left.chunks_exact(after)) {
            polls.step()?;
            for (to, right) in to.iter_mut().zip(right.chunks_exact(after)) {
                *to += left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>();
            }
        }
    }
    Ok(products)
}
