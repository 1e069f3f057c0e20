//! Quantiles of the standard normal distribution.

/// Returns the quantile of the standard normal distribution, the inverse of its distribution function, for 0 < p < 1.
///
/// Rational approximation by P. J. Acklam (2003) with a relative error below 1.15e-9.
#[inline]
pub(crate) fn normal_quantile(p: f64) -> f64 {
    /// The probability below which the tail approximation is used.
    const TAIL: f64 = 0.02425;
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [
        7.784695709041462e-3,
        3.224671290700398e-1,
        2.445134137142996,
        3.754408661907416,
    ];
    let polynomial = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let lower_tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    if p < TAIL {
        lower_tail(p)
    } else if p > 1.0 - TAIL {
        -lower_tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_known_values() {
        for (p, z) in [
            (0.5, 0.0),
            (0.95, 1.6448536269514722),
            (0.975, 1.959963984540054),
            (0.001, -3.090232306167813),
            (0.99999, 4.264890793922825),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
        }
    }
}
