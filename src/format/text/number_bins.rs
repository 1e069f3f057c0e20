//! Bins of numbers: quantiles, equal widths, or equal ratios.

use super::fields::quote;

/// How numbers are grouped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NumberRule {
    /// This many bins with about the same number of lines each. Equal numbers are in the same bin, so that bins may be
    /// uneven, and there may be fewer.
    Quantiles(u32),
    /// Bins `[k w, (k + 1) w)` of this width.
    Width(f64),
    /// Bins `[b^k, b^(k + 1))` with this base; numbers must be positive.
    Log(f64),
}

impl NumberRule {
    /// Parses `quantiles=N`, `width=W` or `log=B`.
    pub(super) fn parse(text: &str) -> Option<NumberRule> {
        let (name, parameter) = text.split_once('=')?;
        let positive = || {
            parameter
                .parse::<f64>()
                .ok()
                .filter(|x| x.is_finite() && *x > 0.0)
        };
        match name {
            "quantiles" => {
                let count = parameter.parse().ok().filter(|&n: &u32| n >= 2)?;
                Some(NumberRule::Quantiles(count))
            }
            "width" => Some(NumberRule::Width(positive()?)),
            "log" => Some(NumberRule::Log(positive().filter(|&b| b > 1.0)?)),
            _ => None,
        }
    }

    /// Parses a field of the column.
    pub(super) fn number(self, field: &[u8]) -> Result<f64, String> {
        let text = std::str::from_utf8(field).unwrap_or_default();
        let Some(x) = text.parse::<f64>().ok().filter(|x| x.is_finite()) else {
            return Err(format!("{} is not a finite number", quote(field)));
        };
        if matches!(self, NumberRule::Log(_)) && x <= 0.0 {
            return Err(format!(
                "{} is not positive, so it has no logarithmic bin; use width= or quantiles=",
                quote(field)
            ));
        }
        // Adding 0 turns -0 into 0.
        Ok(x + 0.0)
    }

    /// Assigns a bin to each of the `distinct` numbers, of which each occurs `counts` times. Returns the bins and their
    /// names, or an error if there would be more than `max_bins`.
    pub(super) fn assign(
        self,
        distinct: &[f64],
        counts: &[u64],
        max_bins: u64,
    ) -> Result<(Vec<u32>, Vec<String>), String> {
        match self {
            NumberRule::Quantiles(count) => Ok(quantile_bins(distinct, counts, count)),
            NumberRule::Width(width) => {
                consecutive_bins(distinct, |x| (x / width).floor(), |k| k * width, max_bins)
            }
            NumberRule::Log(base) => {
                consecutive_bins(distinct, |x| log_bin(x, base), |k| base.powf(k), max_bins)
            }
        }
    }
}

/// Returns the largest whole `k` with `base^k <= x`. The rounded logarithm may be off by one at a power of the base.
fn log_bin(x: f64, base: f64) -> f64 {
    let mut k = (x.ln() / base.ln()).floor();
    if base.powf(k) > x {
        k -= 1.0;
    } else if base.powf(k + 1.0) <= x {
        k += 1.0;
    }
    k
}

/// Numbers the bins from that of the smallest to that of the largest number, empty ones included.
fn consecutive_bins(
    distinct: &[f64],
    bin: impl Fn(f64) -> f64,
    edge: impl Fn(f64) -> f64,
    max_bins: u64,
) -> Result<(Vec<u32>, Vec<String>), String> {
    let bins: Vec<f64> = distinct.iter().map(|&x| bin(x)).collect();
    let first = bins.iter().copied().fold(f64::INFINITY, f64::min);
    let last = bins.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if bins.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let count = last - first + 1.0;
    if count > max_bins as f64 {
        return Err(format!(
            "{count:.0} bins from {} to {}; at most {max_bins} are possible, choose wider ones",
            tidy(edge(first)),
            tidy(edge(last + 1.0))
        ));
    }
    let names = (0..count as u64)
        .map(|k| first + k as f64)
        .map(|k| format!("[{}, {})", tidy(edge(k)), tidy(edge(k + 1.0))))
        .collect();
    let table = bins.iter().map(|&k| (k - first) as u32).collect();
    Ok((table, names))
}

/// Cuts the sorted numbers after the first distinct one that reaches `j / count` of all lines, for `j` from 1 on.
fn quantile_bins(distinct: &[f64], counts: &[u64], count: u32) -> (Vec<u32>, Vec<String>) {
    let mut order: Vec<usize> = (0..distinct.len()).collect();
    order.sort_unstable_by(|&a, &b| distinct[a].total_cmp(&distinct[b]));
    let total: u128 = counts.iter().map(|&n| u128::from(n)).sum();
    let mut table = vec![0; distinct.len()];
    let mut names = Vec::new();
    let mut below = 0;
    // The largest number of the bin before, and the smallest of this one.
    let mut previous = None;
    let mut smallest = None;
    for (place, &at) in order.iter().enumerate() {
        let x = distinct[at];
        table[at] = names.len() as u32;
        smallest.get_or_insert(x);
        let part = below * u128::from(count) / total;
        below += u128::from(counts[at]);
        let is_last = place + 1 == order.len();
        if is_last || below * u128::from(count) / total > part {
            names.push(match previous {
                Some(border) => format!("({}, {}]", tidy(border), tidy(x)),
                None => format!("[{}, {}]", tidy(smallest.unwrap_or(x)), tidy(x)),
            });
            previous = Some(x);
        }
    }
    (table, names)
}

/// Formats a number with at most 12 significant digits, so that 0.1 * 3 reads 0.3.
fn tidy(x: f64) -> String {
    let rounded: f64 = format!("{x:.11e}").parse().unwrap_or(x);
    if rounded != 0.0 && !(1e-5..1e15).contains(&rounded.abs()) {
        format!("{rounded:e}")
    } else {
        format!("{}", rounded + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(rule: &str, numbers: &[f64]) -> Vec<String> {
        let rule = NumberRule::parse(rule).unwrap();
        let (table, names) = rule.assign(numbers, &vec![1; numbers.len()], 1000).unwrap();
        table.iter().map(|&b| names[b as usize].clone()).collect()
    }

    #[test]
    fn equal_widths() {
        assert_eq!(
            bins("width=5", &[0.0, 4.9, 5.0, -0.1, 17.0]),
            ["[0, 5)", "[0, 5)", "[5, 10)", "[-5, 0)", "[15, 20)"]
        );
        assert_eq!(bins("width=0.1", &[0.35]), ["[0.3, 0.4)"]);
        let (_, names) = NumberRule::Width(5.0)
            .assign(&[1.0, 16.0], &[1, 1], 9)
            .unwrap();
        assert_eq!(names, ["[0, 5)", "[5, 10)", "[10, 15)", "[15, 20)"]);
        let error = NumberRule::Width(1e-9).assign(&[0.0, 1e9], &[1, 1], 1000);
        assert!(error.unwrap_err().contains("wider"));
    }

    #[test]
    fn powers_of_the_base_start_a_bin() {
        assert_eq!(
            bins("log=2", &[1.0, 1.9, 2.0, 0.3, 1024.0]),
            ["[1, 2)", "[1, 2)", "[2, 4)", "[0.25, 0.5)", "[1024, 2048)"]
        );
        for k in -20..20 {
            let (x, k) = (10f64.powi(k), f64::from(k));
            assert_eq!(log_bin(x, 10.0), k);
            assert_eq!(log_bin(x * 0.999, 10.0), k - 1.0);
        }
    }

    #[test]
    fn quantiles_keep_ties_together() {
        let numbers: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let found = bins("quantiles=5", &numbers);
        assert_eq!(found[0], "(8, 10]");
        assert_eq!(found[9], "[1, 2]");
        // 1 is 80% of the lines: the first four of five quantiles are one bin.
        let rule = NumberRule::Quantiles(5);
        let (table, names) = rule.assign(&[1.0, 2.0, 3.0], &[8, 1, 1], 9).unwrap();
        assert_eq!(names, ["[1, 1]", "(1, 3]"]);
        assert_eq!(table, [0, 1, 1]);
        // All equal: one bin.
        assert_eq!(bins("quantiles=10", &[7.0]), ["[7, 7]"]);
        let (_, none) = rule.assign(&[], &[], 9).unwrap();
        assert!(none.is_empty());
        // Bins hold the same number of lines where there are no ties.
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        let (table, names) = NumberRule::Quantiles(8)
            .assign(&many, &[1; 1000], 9)
            .unwrap();
        assert_eq!(names.len(), 8);
        for bin in 0..8 {
            assert_eq!(table.iter().filter(|&&b| b == bin).count(), 125);
        }
    }

    #[test]
    fn rules_and_numbers_that_make_no_sense() {
        for rule in [
            "quantiles=1",
            "quantiles=x",
            "width=0",
            "width=-1",
            "width=nan",
            "width=inf",
            "log=1",
            "log=0.5",
            "log",
            "widths=2",
        ] {
            assert_eq!(NumberRule::parse(rule), None, "{rule}");
        }
        let log = NumberRule::Log(2.0);
        for field in ["nan", "inf", "", "x", "1,5"] {
            assert!(log.number(field.as_bytes()).unwrap_err().contains("finite"));
        }
        assert!(log.number(b"0").unwrap_err().contains("not positive"));
        let zero = NumberRule::Width(1.0).number(b"-0").unwrap();
        assert!(zero.is_sign_positive());
    }
}
