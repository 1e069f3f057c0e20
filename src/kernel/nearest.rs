//! The nearest of some centres for many points. Loops over a block of points become vectors of the level; nothing is
//! fused or summed in another order, so that all levels give the same bits.
#![allow(unsafe_code)]

use crate::simd::LANES;
use crate::simd::Level;
use crate::simd::{F32x16, dispatched};

/// Number j of each of sixteen points.
pub(crate) type Lanes<T> = [T; LANES];

dispatched! {
    /// What [`nearest`] does.
    unsafe fn find(blocks: &[Lanes<f32>], width: usize, centres: &[f32], squares: &mut [Lanes<f32>], which: &mut [Lanes<u32>])
        = any_find;
}

/// For each point its squared distance to the nearest centre, and which that is, the first of equally near ones. A block
/// of points has `width` lines, one for each of their numbers.
///
/// # Panics
/// If this machine does not have the level, or the lengths are not those of each other.
pub(crate) fn nearest(
    level: Level,
    (blocks, width): (&[Lanes<f32>], usize),
    centres: &[f32],
    (squares, which): (&mut [Lanes<f32>], &mut [Lanes<u32>]),
) {
    assert!(level.is_available() && width > 0 && centres.len().is_multiple_of(width));
    assert_eq!(
        (blocks.len(), squares.len()),
        (squares.len() * width, which.len())
    );
    // SAFETY: the level is there; the kernel has no other promises.
    unsafe { find(level, blocks, width, centres, squares, which) }
}

/// # Safety
/// None.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
unsafe fn any_find<L: F32x16>(
    blocks: &[Lanes<f32>],
    width: usize,
    centres: &[f32],
    squares: &mut [Lanes<f32>],
    which: &mut [Lanes<u32>],
) {
    // Places instead of iterators: these are not inlined into functions of other instruction sets in every build.
    for b in 0..squares.len() {
        let block = &blocks[b * width..(b + 1) * width];
        let (mut least, mut first) = ([f32::INFINITY; LANES], [0u32; LANES]);
        for c in 0..centres.len() / width {
            let centre = &centres[c * width..(c + 1) * width];
            let mut sums = [0.0f32; LANES];
            for j in 0..width {
                let (line, x) = (&block[j], centre[j]);
                for i in 0..LANES {
                    sums[i] += (line[i] - x) * (line[i] - x);
                }
            }
            for i in 0..LANES {
                let closer = sums[i] < least[i];
                least[i] = if closer { sums[i] } else { least[i] };
                first[i] = if closer { c as u32 } else { first[i] };
            }
        }
        (squares[b], which[b]) = (least, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn all_levels_find_the_same_nearest_centres() {
        let mut s = RandomStream::new(&[5]);
        for (width, count) in [(1, 1), (3, 4), (12, 20), (17, 5)] {
            let mut blocks = vec![[0.0f32; LANES]; 7 * width];
            blocks
                .iter_mut()
                .flatten()
                .for_each(|x| *x = s.standard_normal() as f32);
            let centres: Vec<f32> = (0..width * count)
                .map(|_| s.standard_normal() as f32)
                .collect();
            let mut first = None;
            for level in Level::available() {
                let mut squares = vec![[0.0; LANES]; 7];
                let mut which = vec![[0; LANES]; 7];
                nearest(
                    level,
                    (&blocks, width),
                    &centres,
                    (&mut squares, &mut which),
                );
                for p in 0..7 * LANES {
                    let (b, i) = (p / LANES, p % LANES);
                    let square = |c: usize| -> f64 {
                        let each = (0..width).map(|j| {
                            f64::from(blocks[b * width + j][i]) - f64::from(centres[c * width + j])
                        });
                        each.map(|x| x * x).sum()
                    };
                    let least = (0..count).map(square).fold(f64::INFINITY, f64::min);
                    assert!((f64::from(squares[b][i]) - least).abs() < 1e-5 * (1.0 + least));
                    assert!((square(which[b][i] as usize) - least).abs() < 1e-5 * (1.0 + least));
                }
                let first = first.get_or_insert((squares.clone(), which.clone()));
                assert_eq!(*first, (squares, which), "{level:?}");
            }
        }
    }
}
