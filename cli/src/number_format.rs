//! Text of numbers.

/// Formats an integer with separators of thousands: `1,234,567`.
pub fn format_integer(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Formats an error (RMSE or MAE) with a fixed number of decimals, in scientific notation if it is tiny or huge.
pub fn format_error(x: f64, decimals: usize) -> String {
    if x == 0.0 || !x.is_finite() || (0.01..1e6).contains(&x) {
        format!("{x:.decimals$}")
    } else {
        format!("{x:.decimals$e}")
    }
}

/// Formats a root mean square error.
pub fn format_rmse(x: f64) -> String {
    format_error(x, 4)
}
