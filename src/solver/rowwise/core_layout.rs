//! Layouts of a full core: permutations of its modes, and the hyper-diagonal core.

use crate::error::Result;
use crate::kernel::CoreShape;
use crate::progress::{Monitor, OPERATIONS_PER_STRIDED_ENTRY, check_cancelled, count_operations};
use crate::simd::padded_len;
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_zeroed};

/// Returns a model's core divided by `scale`, row-major with its modes in the given order, the last padded. Polls `monitor`
/// before.
pub(super) fn permute_core(
    shape: &CoreShape,
    core: &[f32],
    order: &[usize],
    scale: f64,
    monitor: &dyn Monitor,
) -> Result<Vec<f32>> {
    check_cancelled(monitor)?;
    let ranks = shape.ranks();
    // Distance between entries of the core whose indices of a mode differ by one. Its last mode is padded.
    let mut strides = vec![1; order.len()];
    let mut inner = padded_len(ranks[order.len() - 1]);
    for n in (0..order.len() - 1).rev() {
        strides[n] = inner;
        inner *= ranks[n];
    }
    let (last_mode, outer_modes) = order.split_last().expect("a core has modes");
    let (rank, stride) = (ranks[*last_mode], strides[*last_mode]);
    let outer: usize = outer_modes.iter().map(|&m| ranks[m]).product();
    let mut out: Vec<f32> = try_zeroed(outer * padded_len(rank), CORE_ENTRIES)?;
    count_operations(outer * rank * OPERATIONS_PER_STRIDED_ENTRY);
    // As f32 it might be beyond its range.
    let factor = 1.0 / scale;
    let (mut index, mut from) = (vec![0; outer_modes.len()], 0);
    for row in out.chunks_exact_mut(padded_len(rank)) {
        for (k, x) in row[..rank].iter_mut().enumerate() {
            *x = (f64::from(core[from + k * stride]) * factor) as f32;
        }
        for (i, &m) in index.iter_mut().zip(outer_modes).rev() {
            *i += 1;
            from += strides[m];
            if *i < ranks[m] {
                break;
            }
            from -= *i * strides[m];
            *i = 0;
        }
    }
    Ok(out)
}

/// The inverse of [`permute_core`]: returns the model's core.
pub(super) fn unpermute_core(
    shape: &CoreShape,
    core: &[f64],
    order: &[usize],
    scale: f64,
    monitor: &dyn Monitor,
) -> Result<Vec<f32>> {
    let ranks: Vec<usize> = order.iter().map(|&m| shape.ranks()[m]).collect();
    let permuted_shape = CoreShape::new(shape.kind(), &ranks);
    let scaled = core.iter().map(|&g| (g * scale) as f32);
    let scaled: Vec<f32> = try_collect(core.len(), scaled, CORE_ENTRIES)?;
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(k, &m)| inverse[m] = k);
    permute_core(&permuted_shape, &scaled, &inverse, 1.0, monitor)
}

/// Returns a core, without padding, with ones on its hyper-diagonal: where the two largest modes have the same index j,
/// and every other mode j modulo its rank.
pub(super) fn hyper_diagonal_core(shape: &CoreShape, modes_by_size: &[usize]) -> Result<Vec<f32>> {
    let mut core = try_zeroed(shape.ranks().iter().product(), CORE_ENTRIES)?;
    let largest = &modes_by_size[modes_by_size.len() - 2..];
    let count = largest.iter().map(|&m| shape.ranks()[m]).max().unwrap_or(0);
    for j in 0..count {
        let position = shape
            .ranks()
            .iter()
            .fold(0, |position, &rank| position * rank + j % rank);
        core[position] = 1.0;
    }
    Ok(core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CoreKind;

    #[test]
    fn modes_are_permuted_and_restored() {
        let shape = CoreShape::new(CoreKind::Full, &[2, 3, 4]);
        let dense: Vec<f32> = (0..24).map(|k| k as f32).collect();
        let core = shape.padded_core(&dense).unwrap();
        let permuted = permute_core(&shape, &core, &[2, 0, 1], 2.0, &()).unwrap();
        // Element (i, j, k) of the core moves to (k, i, j).
        for (position, g) in dense.iter().enumerate() {
            let (i, j, k) = (position / 12, position / 4 % 3, position % 4);
            assert_eq!(permuted[(k * 2 + i) * padded_len(3) + j], g / 2.0);
        }
        let permuted: Vec<f64> = permuted.iter().map(|&g| f64::from(g)).collect();
        let restored = unpermute_core(&shape, &permuted, &[2, 0, 1], 2.0, &()).unwrap();
        assert_eq!(restored, core);
    }

    #[test]
    fn hyper_diagonal_core_couples_the_two_largest_modes() {
        let shape = CoreShape::new(CoreKind::Full, &[3, 2, 3]);
        let core = hyper_diagonal_core(&shape, &[1, 0, 2]).unwrap();
        let ones: Vec<usize> = (0..18).filter(|&k| core[k] == 1.0).collect();
        assert_eq!(ones, [0, 6 + 3 + 1, 12 + 2]);
    }
}
