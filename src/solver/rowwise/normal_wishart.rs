//! What rows are thought to be like before their entries are seen: normal, with a mean and a precision
//! that are themselves drawn, given all rows of a mode (Normal-Wishart).

use crate::kernel::Noise;
use crate::linalg::{cholesky, regularized_cholesky, solve_lower, solve_lower_transposed};
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::gram::RowMoments;

/// The normal distribution of a row: its precision, and the precision times the mean.
pub(super) struct Prior {
    pub size: usize,
    /// Rows padded, the upper triangle and more.
    pub precision: Vec<f32>,
    pub right: Vec<f32>,
}

impl Prior {
    /// Mean 0 and the same precision everywhere.
    pub(super) fn ridge(size: usize, precision: f64) -> Prior {
        let width = padded_len(size);
        let mut square = vec![0.0; size * width];
        (0..size).for_each(|i| square[i * width + i] = precision as f32);
        Prior {
            size,
            precision: square,
            right: vec![0.0; size],
        }
    }

    /// This mean and this precision, row-major.
    fn around(center: &[f64], precision: &[f64]) -> Prior {
        let size = center.len();
        let width = padded_len(size);
        let mut prior = Prior::ridge(size, 0.0);
        for (i, row) in precision.chunks_exact(size).enumerate() {
            prior.right[i] = row.iter().zip(center).map(|(p, c)| p * c).sum::<f64>() as f32;
            prior.precision[i * width..][..size]
                .iter_mut()
                .zip(row)
                .for_each(|(s, &p)| *s = p as f32);
        }
        prior
    }
}

/// A standard normal number to a given power of nothing: the sum of squares of `freedom` of them.
fn chi_square(s: &mut RandomStream, freedom: f64) -> f64 {
    2.0 * gamma(s, 0.5 * freedom)
}

/// A draw from the gamma distribution with this shape and rate 1, by Marsaglia and Tsang.
pub(super) fn gamma(s: &mut RandomStream, shape: f64) -> f64 {
    if shape < 1.0 {
        let u = (1.0 - s.uniform()).powf(1.0 / shape);
        return gamma(s, shape + 1.0) * u;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let z = s.standard_normal();
        let v = (1.0 + c * z).powi(3);
        if v > 0.0 && (1.0 - s.uniform()).ln() < 0.5 * z * z + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// What the rows of a mode are thought to be like before any of them is seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belief {
    /// The mean of a number of a row.
    pub mean: f64,
    /// How many rows that mean counts as.
    pub mean_rows: f64,
    /// The variance of a number of a row.
    pub variance: f64,
    /// How many rows that counts as, more than there are numbers.
    pub rows: f64,
}

/// What is known of the mean and the precision of rows, given the rows.
struct Learnt {
    /// What the mean is thought to be, and how many rows that counts as.
    center: Vec<f64>,
    beta: f64,
    /// Of the precision: the inverse of its scale matrix, and the degrees of freedom.
    scatter: Vec<f64>,
    freedom: f64,
}

/// The last number of a row is a bias if `biased`; its mean is thought to be 0.
fn learn(rows: &RowMoments, belief: &Belief, biased: bool) -> Learnt {
    let size = rows.sum.len();
    let n = rows.count;
    let believed = |i: usize| match biased && i + 1 == size {
        true => 0.0,
        false => belief.mean,
    };
    let mean: Vec<f64> = rows.sum.iter().map(|x| x / n.max(1.0)).collect();
    let beta = belief.mean_rows + n;
    let mut scatter = vec![0.0; size * size];
    let shrink = belief.mean_rows * n / beta;
    for i in 0..size {
        for j in 0..=i {
            scatter[i * size + j] = rows.outer_products[i * size + j] - n * mean[i] * mean[j]
                + shrink * (mean[i] - believed(i)) * (mean[j] - believed(j));
        }
        scatter[i * size + i] += belief.variance * (size as f64 + belief.rows);
    }
    Learnt {
        center: (0..size)
            .map(|i| (belief.mean_rows * believed(i) + n * mean[i]) / beta)
            .collect(),
        beta,
        scatter,
        freedom: size as f64 + belief.rows + n,
    }
}

/// The means of mean and precision, given the rows.
pub(super) fn expected(rows: &RowMoments, belief: &Belief, biased: bool) -> Prior {
    let Learnt {
        center,
        scatter,
        freedom,
        ..
    } = learn(rows, belief, biased);
    let size = center.len();
    let c = cholesky(size, &scatter).unwrap_or_else(|| regularized_cholesky(size, &scatter));
    let mut precision = vec![0.0; size * size];
    for (j, column) in precision.chunks_exact_mut(size).enumerate() {
        column[j] = freedom;
        solve_lower(size, &c, column);
        solve_lower_transposed(size, &c, column);
    }
    Prior::around(&center, &precision)
}

/// Draws mean and precision given the rows. The last number of a row is a bias if `biased`.
pub(super) fn draw(
    rows: &RowMoments,
    belief: &Belief,
    biased: bool,
    s: &mut RandomStream,
) -> Prior {
    let Learnt {
        center,
        beta,
        scatter,
        freedom,
    } = learn(rows, belief, biased);
    let size = center.len();
    let c = cholesky(size, &scatter).unwrap_or_else(|| regularized_cholesky(size, &scatter));
    // Bartlett: B = C^-T A, and the precision is B B^T.
    let mut b = vec![0.0; size * size];
    let mut column = vec![0.0; size];
    for j in 0..size {
        column.fill(0.0);
        column[j] = chi_square(s, freedom - j as f64).sqrt();
        column[j + 1..]
            .iter_mut()
            .for_each(|x| *x = s.standard_normal());
        solve_lower_transposed(size, &c, &mut column);
        (0..size).for_each(|i| b[i * size + j] = column[i]);
    }
    let mut precision = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let (x, y) = (&b[i * size..(i + 1) * size], &b[j * size..(j + 1) * size]);
            let dot: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            precision[i * size + j] = dot;
            precision[j * size + i] = dot;
        }
    }
    let l = cholesky(size, &precision).unwrap_or_else(|| regularized_cholesky(size, &precision));
    let mut off: Vec<f64> = (0..size)
        .map(|_| s.standard_normal() / beta.sqrt())
        .collect();
    solve_lower_transposed(size, &l, &mut off);
    let center: Vec<f64> = center.iter().zip(off).map(|(c, o)| c + o).collect();
    Prior::around(&center, &precision)
}

/// Solves the normal equations in `f64` and in place, with as much added to the diagonal as it takes;
/// noise becomes a draw. The upper triangle of `a` counts, rows padded.
pub(super) fn solve_carefully(size: usize, a: &[f32], b: &mut [f32], noise: Noise<'_>) {
    let width = padded_len(size);
    let mut full = vec![0.0; size * size];
    for i in 0..size {
        for j in i..size {
            full[j * size + i] = f64::from(a[i * width + j]);
        }
    }
    let l = regularized_cholesky(size, &full);
    let finite = |x: f64| if (x as f32).is_finite() { x } else { 0.0 };
    let mut y: Vec<f64> = b[..size].iter().map(|&b| finite(f64::from(b))).collect();
    solve_lower(size, &l, &mut y);
    let put = |mut y: Vec<f64>, to: &mut [f32]| {
        solve_lower_transposed(size, &l, &mut y);
        to.iter_mut()
            .zip(y)
            .for_each(|(t, y)| *t = finite(y) as f32);
    };
    let with = |noise: &[f32]| {
        y.iter()
            .zip(noise)
            .map(|(y, &z)| y + f64::from(z))
            .collect()
    };
    match noise {
        Noise::None => {}
        Noise::Sample(noise) => return put(with(noise), b),
        Noise::MeanAndSample(noise) => put(with(noise), noise),
    }
    put(y, b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for shape in [0.3, 1.0, 2.5, 40.0] {
            let mut s = RandomStream::new(&[3]);
            let draws: Vec<f64> = (0..100_000).map(|_| gamma(&mut s, shape)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let variance = square / draws.len() as f64;
            assert!((mean / shape - 1.0).abs() < 0.03, "{shape} {mean}");
            assert!((variance / shape - 1.0).abs() < 0.06, "{shape} {variance}");
        }
    }

    #[test]
    fn with_many_rows_the_draw_is_their_mean_and_covariance() {
        // Two numbers, deviations 2 and 0.5, correlation 0.6, means 3 and -1.
        let mut s = RandomStream::new(&[4]);
        let size = 2;
        let mut rows = RowMoments {
            count: 0.0,
            sum: vec![0.0; 2],
            outer_products: vec![0.0; 4],
        };
        for _ in 0..50_000 {
            let (a, b) = (s.standard_normal(), s.standard_normal());
            let x = [3.0 + 2.0 * a, -1.0 + 0.5 * (0.6 * a + 0.8 * b)];
            rows.count += 1.0;
            for i in 0..size {
                rows.sum[i] += x[i];
                (0..=i).for_each(|j| rows.outer_products[i * size + j] += x[i] * x[j]);
            }
        }
        let belief = Belief {
            mean: 0.0,
            mean_rows: 1.0,
            variance: 1.0,
            rows: 1.0,
        };
        let prior = draw(&rows, &belief, false, &mut s);
        let p = |i: usize, j: usize| f64::from(prior.precision[i * padded_len(2) + j]);
        let det = p(0, 0) * p(1, 1) - p(0, 1) * p(0, 1);
        let covariance = [p(1, 1) / det, -p(0, 1) / det, p(0, 0) / det];
        for (got, wanted) in covariance.iter().zip([4.0, 0.6, 0.25]) {
            assert!((got / wanted - 1.0).abs() < 0.05, "{covariance:?}");
        }
        let r = |i: usize| f64::from(prior.right[i]);
        let mean = [
            (p(1, 1) * r(0) - p(0, 1) * r(1)) / det,
            (p(0, 0) * r(1) - p(0, 1) * r(0)) / det,
        ];
        assert!(
            (mean[0] - 3.0).abs() < 0.05 && (mean[1] + 1.0).abs() < 0.02,
            "{mean:?}"
        );
    }

    #[test]
    fn singular_equations_have_a_finite_solution() {
        let width = padded_len(3);
        let (mut x, mut z) = ([0.0; 3], [1.0; 3]);
        solve_carefully(
            3,
            &vec![0.0; 3 * width],
            &mut x,
            Noise::MeanAndSample(&mut z),
        );
        assert!(x == [0.0; 3] && z.iter().all(|z| z.is_finite()));
        x = [1.0; 3];
        solve_carefully(3, &vec![1.0; 3 * width], &mut x, Noise::None);
        assert!((x.iter().sum::<f32>() - 1.0).abs() < 1e-3, "{x:?}");
    }
}
