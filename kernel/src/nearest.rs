//! The nearest of several centres for each of many points.
//!
//! The compiler vectorizes the loops over the points of a block. Multiplications and additions are not fused
//! or reordered, so all levels return the same bits.
#![allow(unsafe_code)]

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// One value for each point of a block of sixteen.
pub type Lanes<T> = [T; LANES];

dispatched! {
    /// The implementation of [`nearest`].
    unsafe fn find_nearest(blocks: &[Lanes<f32>], width: usize, centres: &[f32], squared_distances: &mut [Lanes<f32>], indices: &mut [Lanes<u32>])
        = any_find_nearest;
}

/// Computes for each point the squared distance to its nearest centre, and the index of that centre; the
/// first one wins ties. A block of points has `width` elements, one per coordinate.
///
/// # Panics
/// If the machine does not have the level, or lengths do not match.
pub fn nearest(
    level: Level,
    blocks: &[Lanes<f32>],
    width: usize,
    centres: &[f32],
    squared_distances: &mut [Lanes<f32>],
    indices: &mut [Lanes<u32>],
) {
    assert!(level.is_available() && width > 0 && centres.len().is_multiple_of(width));
    assert_eq!(
        (blocks.len(), squared_distances.len()),
        (squared_distances.len() * width, indices.len())
    );
    // SAFETY: the level is available; the kernel has no other obligations.
    unsafe { find_nearest(level, blocks, width, centres, squared_distances, indices) }
}

/// # Safety
/// None.
#[inline(always)]
unsafe fn any_find_nearest<V: F32x16>(
    blocks: &[Lanes<f32>],
    width: usize,
    centres: &[f32],
    squared_distances: &mut [Lanes<f32>],
    indices: &mut [Lanes<u32>],
) {
    // Indices instead of iterators: not every build inlines iterators into functions of another
    // instruction set.
    for b in 0..squared_distances.len() {
        let block = &blocks[b * width..(b + 1) * width];
        let (mut smallest, mut argmin) = ([f32::INFINITY; LANES], [0u32; LANES]);
        for c in 0..centres.len() / width {
            let centre = &centres[c * width..(c + 1) * width];
            let mut sums = [0.0f32; LANES];
            for j in 0..width {
                let (points, x) = (&block[j], centre[j]);
                for i in 0..LANES {
                    sums[i] += (points[i] - x) * (points[i] - x);
                }
            }
            for i in 0..LANES {
                let is_closer = sums[i] < smallest[i];
                smallest[i] = if is_closer { sums[i] } else { smallest[i] };
                argmin[i] = if is_closer { c as u32 } else { argmin[i] };
            }
        }
        (squared_distances[b], indices[b]) = (smallest, argmin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn all_levels_return_the_same_nearest_centres() {
        let num_blocks = if cfg!(miri) { 2 } else { 7 };
        let mut s = RandomStream::new(&[5]);
        for (width, count) in [(1, 1), (3, 4), (12, 20), (17, 5)] {
            let mut blocks = vec![[0.0f32; LANES]; num_blocks * width];
            blocks
                .iter_mut()
                .flatten()
                .for_each(|x| *x = s.standard_normal() as f32);
            let centres: Vec<f32> = (0..width * count)
                .map(|_| s.standard_normal() as f32)
                .collect();
            let mut first = None;
            for level in Level::available() {
                let mut distances = vec![[0.0; LANES]; num_blocks];
                let mut indices = vec![[0; LANES]; num_blocks];
                nearest(
                    level,
                    &blocks,
                    width,
                    &centres,
                    &mut distances,
                    &mut indices,
                );
                for p in 0..num_blocks * LANES {
                    let (b, i) = (p / LANES, p % LANES);
                    let square = |c: usize| -> f64 {
                        let each = (0..width).map(|j| {
                            f64::from(blocks[b * width + j][i]) - f64::from(centres[c * width + j])
                        });
                        each.map(|x| x * x).sum()
                    };
                    let least = (0..count).map(square).fold(f64::INFINITY, f64::min);
                    assert!((f64::from(distances[b][i]) - least).abs() < 1e-5 * (1.0 + least));
                    assert!((square(indices[b][i] as usize) - least).abs() < 1e-5 * (1.0 + least));
                }
                let first = first.get_or_insert((distances.clone(), indices.clone()));
                assert_eq!(*first, (distances, indices), "{level:?}");
            }
        }
    }
}
