//! The distribution function of the standard normal distribution, several times as fast as by series.
//!
//! Between -8 and 8 it is a Taylor polynomial around the nearest point of a grid, which needs no exponential function. The
//! derivatives of the density at a grid point are Hermite polynomials times the density.

use std::sync::LazyLock;

use super::cdf::{normal_cdf, normal_density};

/// The absolute value up to which there is a grid.
const END: f64 = 8.0;

/// Number of grid points in an interval of length 1.
const GRID: f64 = 16.0;

/// Number of grid points on each side of 0.
const GRID_POINTS: usize = 128;

/// Number of coefficients of a polynomial. The remainder is below 1e-12 of the result.
const COEFFICIENTS: usize = 12;

/// The coefficients of the polynomials around the grid points from -8 to 8, the constant first.
static POLYNOMIALS: LazyLock<Vec<[f64; COEFFICIENTS]>> = LazyLock::new(|| {
    let points = (0..=2 * GRID_POINTS).map(|k| k as f64 / GRID - END);
    points.map(taylor_coefficients).collect()
});

/// Returns the probability of a value below `z`, with a relative error below 1e-10 also in the lower tail.
#[inline]
pub(crate) fn tabulated_normal_cdf(z: f64) -> f64 {
    if !(-END..=END).contains(&z) {
        return normal_cdf(z);
    }
    let position = ((z + END) * GRID + 0.5) as usize;
    let d = z - (position as f64 / GRID - END);
    // Estrin's scheme, whose products are independent of each other.
    let c = &POLYNOMIALS[position];
    let d2 = d * d;
    let cubic = |k: usize| (c[k] + c[k + 1] * d) + (c[k + 2] + c[k + 3] * d) * d2;
    cubic(0) + (cubic(4) + cubic(8) * (d2 * d2)) * (d2 * d2)
}

/// Returns the coefficients of the Taylor polynomial of the distribution function around `z`.
fn taylor_coefficients(z: f64) -> [f64; COEFFICIENTS] {
    let density = normal_density(z);
    let mut c = [0.0; COEFFICIENTS];
    (c[0], c[1], c[2]) = (normal_cdf(z), density, -0.5 * z * density);
    // The n-th derivative of the density is -z times the one before, less n - 1 times the one before that.
    for n in 2..COEFFICIENTS - 1 {
        let k = n as f64;
        c[n + 1] = -(z * c[n] + (k - 1.0) / k * c[n - 1]) / (k + 1.0);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_values_of_the_series() {
        for k in -1000..=1000 {
            let z = f64::from(k) * 0.00997;
            let (found, expected) = (tabulated_normal_cdf(z), normal_cdf(z));
            assert!(
                (found / expected - 1.0).abs() < 1e-10,
                "{z}: {found} {expected}"
            );
        }
        assert!(tabulated_normal_cdf(f64::NAN).is_nan());
        assert_eq!(tabulated_normal_cdf(f64::INFINITY), 1.0);
    }
}
