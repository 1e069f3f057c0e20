//! Algorithm 2 of the paper: computes G x_{-n} {u} from scratch for every mode, O(N^2 J^N) per entry. Kept for
//! comparison.

use crate::shape::core_shape::CoreShape;
use crate::simd::padded_len;

/// Returns the value and writes the gradients of a full core.
pub(super) fn gradients_full(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    gradients: &mut [f32],
) -> f32 {
    let value = sum_products(shape, core, rows, usize::MAX, &mut []);
    gradients.fill(0.0);
    for n in 0..shape.order() {
        sum_products(shape, core, rows, n, &mut gradients[shape.row(n)]);
    }
    value
}

/// Sums products of core entries and factors in one pass over the core. Without a mode to omit, returns the sum
/// of g times all factors. Otherwise adds the products without that mode's factor to `gradient`.
fn sum_products(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    without: usize,
    gradient: &mut [f32],
) -> f32 {
    let order = shape.order();
    let last = order - 1;
    let stride = padded_len(shape.ranks()[last]);
    let mut at = [0usize; crate::shape::core_shape::MAX_ORDER];
    let mut total = 0.0;
    for fiber in core.chunks_exact(stride) {
        for (j, &g) in fiber[..shape.ranks()[last]].iter().enumerate() {
            at[last] = j;
            let mut product = g;
            for m in 0..order {
                if m != without {
                    product *= rows[shape.row(m).start + at[m]];
                }
            }
            if without == usize::MAX {
                total += product;
            } else {
                gradient[at[without]] += product;
            }
        }
        for n in (0..last).rev() {
            at[n] += 1;
            if at[n] < shape.ranks()[n] {
                break;
            }
            at[n] = 0;
        }
    }
    total
}

/// Returns the value and writes the gradients of a diagonal core.
pub(crate) fn gradients_diagonal(
    shape: &CoreShape,
    core: &[f32],
    rows: &[f32],
    gradients: &mut [f32],
) -> f32 {
    let order = shape.order();
    let mut value = 0.0;
    gradients.fill(0.0);
    for j in 0..shape.ranks()[0] {
        let factor = |m: usize| rows[shape.row(m).start + j];
        value += (0..order).map(factor).product::<f32>() * core[j];
        for n in 0..order {
            let others: f32 = (0..order).filter(|&m| m != n).map(factor).product();
            gradients[shape.row(n).start + j] = others * core[j];
        }
    }
    value
}
