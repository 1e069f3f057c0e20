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
    /// The rules as they are typed, with their ranges.
    pub(super) const EXPECTED: &'static str =
        "quantiles=N (2 or more), width=W (above 0) or log=B (above 1)";

    /// Parses `quantiles=N`, `width=W` or `log=B`.
    pub(super) fn parse(text: &str) -> Option<NumberRule> {
        let (name, parameter) = text.split_once('=')?;
        let rule = match name {
            "quantiles" => NumberRule::Quantiles(parameter.parse().ok()?),
            "width" => NumberRule::Width(parameter.parse().ok()?),
            "log" => NumberRule::Log(parameter.parse().ok()?),
            _ => return None,
        };
        rule.is_valid().then_some(rule)
    }

    /// Returns whether the parameter is within its range. The decimal text of a subnormal width has too few digits to
    /// multiply it.
    pub(super) fn is_valid(self) -> bool {
        match self {
            NumberRule::Quantiles(count) => count >= 2,
            NumberRule::Width(width) => width.is_normal() && width > 0.0,
            NumberRule::Log(base) => base.is_finite() && base > 1.0,
        }
    }

    /// Parses a field of the column.
    pub(super) fn number(self, field: &[u8]) -> Result<f64, String> {
        let text = std::str::from_utf8(field).unwrap_or_default();
        let Some(x) = text.parse::<f64>().ok().filter(|x| x.is_finite()) else {
            let hint = if field.contains(&b',') {
                "; write a decimal point, and nothing between thousands"
            } else {
                ""
            };
            return Err(format!("{} is not a finite number{hint}", quote(field)));
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
    /// names, or an error if there would be more than `max_bins` or if 64-bit numbers cannot tell their borders apart.
    ///
    /// The name of a bin has its borders as decimal numbers. The bin of a number is the one whose named borders contain it.
    pub(super) fn assign(
        self,
        distinct: &[f64],
        counts: &[u64],
        max_bins: u64,
    ) -> Result<(Vec<u32>, Vec<String>), String> {
        match self {
            NumberRule::Quantiles(count) => Ok(quantile_bins(distinct, counts, count)),
            NumberRule::Width(width) => {
                let (digits, exponent) = decimal(width);
                let border = |k: i64| nearest_number(i128::from(k) * digits, exponent);
                consecutive_bins(distinct, |x| x / width, border, max_bins)
            }
            NumberRule::Log(base) => {
                // Digits of a border: rounding moves it by less than a hundredth of its bin.
                let digits = (3.0 - (base - 1.0).log10()).ceil().clamp(12.0, 17.0) as usize;
                let border = |k: i64| rounded(base.powf(k as f64), digits);
                consecutive_bins(distinct, |x| x.ln() / base.ln(), border, max_bins)
            }
        }
    }
}

/// Returns the digits and the exponent of the shortest decimal number that is read as `x`: 25 and -1 for 2.5.
fn decimal(x: f64) -> (i128, i32) {
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, part)| part.len());
    let digits = mantissa.replace('.', "").parse().unwrap_or(0);
    (digits, exponent.parse().unwrap_or(0) - decimals as i32)
}

/// Returns the 64-bit number that is nearest to `digits * 10^exponent`.
fn nearest_number(digits: i128, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// Rounds a number to this many significant digits, so that 10^-3 is 0.001. 17 digits are exact.
fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits - 1).parse().unwrap_or(x)
}

/// Limit of the numbers of bins: bins of greater numbers are narrower than four units in the last place of their borders.
const MAX_BIN_NUMBER: f64 = (1u64 << 50) as f64;

/// Numbers the bins `[border(k), border(k + 1))` from that of the smallest to that of the largest number, empty ones
/// included. `estimate` of a number is near the `k` of its bin.
fn consecutive_bins(
    distinct: &[f64],
    estimate: impl Fn(f64) -> f64,
    border: impl Fn(i64) -> f64,
    max_bins: u64,
) -> Result<(Vec<u32>, Vec<String>), String> {
    let too_narrow = |x: f64| {
        format!(
            "64-bit numbers cannot tell the borders of bins near {} apart; choose wider ones",
            format_number(x)
        )
    };
    let find = |x: f64| {
        let estimate = estimate(x).floor();
        if estimate.is_nan() || estimate.abs() >= MAX_BIN_NUMBER {
            return Err(too_narrow(x));
        }
        let mut k = estimate as i64;
        while border(k) > x {
            k -= 1;
        }
        while border(k + 1) <= x {
            k += 1;
        }
        Ok(k)
    };
    let smallest = distinct.iter().copied().reduce(f64::min);
    let largest = distinct.iter().copied().reduce(f64::max);
    let (Some(smallest), Some(largest)) = (smallest, largest) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (first, last) = (find(smallest)?, find(largest)?);
    let count = last.abs_diff(first) + 1;
    if count > max_bins {
        return Err(format!(
            "{count} bins from {} to {}; at most {max_bins} are possible, choose wider ones",
            format_number(border(first)),
            format_number(border(last + 1))
        ));
    }
    let borders: Vec<f64> = (first..=last + 1).map(border).collect();
    if let Some(pair) = borders.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(too_narrow(pair[0]));
    }
    let place = |&x: &f64| (borders.partition_point(|&border| border <= x) - 1) as u32;
    let name = |pair: &[f64]| format!("[{}, {})", format_number(pair[0]), format_number(pair[1]));
    Ok((
        distinct.iter().map(place).collect(),
        borders.windows(2).map(name).collect(),
    ))
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
                Some(border) => format!("({}, {}]", format_number(border), format_number(x)),
                None => format!(
                    "[{}, {}]",
                    format_number(smallest.unwrap_or(x)),
                    format_number(x)
                ),
            });
            previous = Some(x);
        }
    }
    (table, names)
}

/// Formats a number with the fewest digits that are read as the same number.
fn format_number(x: f64) -> String {
    if x != 0.0 && !(1e-5..1e15).contains(&x.abs()) {
        format!("{x:e}")
    } else {
        format!("{x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn bins(rule: &str, numbers: &[f64]) -> Vec<String> {
        let rule = NumberRule::parse(rule).unwrap();
        let (table, names) = rule.assign(numbers, &vec![1; numbers.len()], 1000).unwrap();
        table.iter().map(|&b| names[b as usize].clone()).collect()
    }

    /// Returns the borders in the name of a bin, and whether the first and the last belong to it.
    fn parse_name(name: &str) -> ([f64; 2], [bool; 2]) {
        let is_closed = [name.starts_with('['), name.ends_with(']')];
        let inner = name.strip_prefix(['[', '(']).unwrap();
        let inner = inner.strip_suffix([']', ')']).unwrap();
        let (first, last) = inner.split_once(", ").unwrap();
        ([first, last].map(|text| text.parse().unwrap()), is_closed)
    }

    /// Checks that the named borders of the bin of each number contain it, that consecutive bins share a border and that
    /// names are distinct. Returns whether there are bins: 64-bit numbers may be too coarse for them.
    fn check_names(rule: NumberRule, numbers: &[f64]) -> bool {
        let mut distinct = numbers.to_vec();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let counts = vec![1; distinct.len()];
        let (table, names) = match rule.assign(&distinct, &counts, 100_000) {
            Ok(found) => found,
            Err(message) => {
                assert!(message.contains("choose wider"), "{rule:?}: {message}");
                return false;
            }
        };
        for (x, &bin) in distinct.iter().zip(&table) {
            let name = &names[bin as usize];
            let ([low, high], [has_low, has_high]) = parse_name(name);
            let is_above = low < *x || has_low && low == *x;
            let is_below = *x < high || has_high && high == *x;
            assert!(is_above && is_below, "{rule:?}: {x:e} in {name}");
        }
        for pair in names.windows(2) {
            let [before, after] = [&pair[0], &pair[1]].map(|name| parse_name(name));
            assert_eq!(before.0[1].to_bits(), after.0[0].to_bits(), "{pair:?}");
            assert_ne!(before.1[1], after.1[0], "{pair:?}");
        }
        let all: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(all.len(), names.len(), "{rule:?}");
        true
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
    fn multiples_of_a_width_start_a_bin() {
        // As decimal numbers, which 64-bit multiples of the width are not.
        for (width, digits, decimals) in [
            ("0.1", 1, 1),
            ("0.01", 1, 2),
            ("0.25", 25, 2),
            ("1.1", 11, 1),
        ] {
            for k in -300i64..300 {
                let decimal = |k: i64| {
                    let (number, scale) = ((k * digits).abs(), 10i64.pow(decimals));
                    let sign = if k < 0 { "-" } else { "" };
                    let (whole, part) = (number / scale, number % scale);
                    format!("{sign}{whole}.{part:0width$}", width = decimals as usize)
                };
                let x: f64 = decimal(k).parse().unwrap();
                let name = &bins(&format!("width={width}"), &[x + 0.0])[0];
                let expected: [f64; 2] =
                    [decimal(k), decimal(k + 1)].map(|text| text.parse().unwrap());
                assert_eq!(parse_name(name).0, expected, "{name} has {}", decimal(k));
                assert!(name.len() <= 18, "{name}");
            }
        }
    }

    #[test]
    fn powers_of_the_base_start_a_bin() {
        assert_eq!(
            bins("log=2", &[1.0, 1.9, 2.0, 0.3, 1024.0]),
            ["[1, 2)", "[1, 2)", "[2, 4)", "[0.25, 0.5)", "[1024, 2048)"]
        );
        assert_eq!(bins("log=3", &[0.3]), ["[0.111111111111, 0.333333333333)"]);
        for k in -20..20 {
            let power = |k: i32| -> f64 { format!("1e{k}").parse().unwrap() };
            let found = bins("log=10", &[power(k), power(k) * 0.999]);
            assert_eq!(parse_name(&found[0]).0, [power(k), power(k + 1)]);
            assert_eq!(parse_name(&found[1]).0, [power(k - 1), power(k)]);
        }
    }

    #[test]
    fn names_of_narrow_bins_have_as_many_digits_as_needed() {
        for (rule, numbers) in [
            ("width=1e-13", &[1.0, 1.0000000000005][..]),
            ("width=1.5e-12", &[1.0, 1.0000000000045]),
            ("width=0.001", &[1e10, 10000000000.0105]),
            ("width=0.3333333333333333", &[411522.4, 411523.4]),
            ("log=1.0000000001", &[1.0, 1.00000001]),
            ("log=1.0000000000001", &[7.0, 7.000000000003]),
            (
                "quantiles=3",
                &[1.0, 1.0000000000001, 1.0000000000002, 1.0 / 3.0],
            ),
            ("width=1", &[1e15, 1e15 + 1.0]),
            ("log=2", &[f64::MAX, 5e-324, 1e-310]),
            ("log=1e300", &[f64::MAX, 5e-324, 1.0]),
            ("width=1e304", &[f64::MAX, -f64::MAX, 5e-324]),
            ("quantiles=2", &[f64::MAX, 5e-324, -f64::MAX]),
        ] {
            assert!(
                check_names(NumberRule::parse(rule).unwrap(), numbers),
                "{rule}"
            );
        }
        assert_eq!(
            bins("width=1.5e-12", &[1.0000000000035]),
            ["[1.0000000000035, 1.000000000005)"]
        );
        // Too coarse: each would have a bin without a number of 64 bits in it.
        for (rule, x) in [
            ("width=1", 1e16),
            ("width=1e-17", 1.0),
            ("width=1e-300", 1e300),
            ("log=1.0000000000000002", 7.0),
        ] {
            let rule = NumberRule::parse(rule).unwrap();
            let error = rule.assign(&[x], &[1], 1000).unwrap_err();
            assert!(
                error.contains("cannot tell") && error.contains("choose wider"),
                "{error}"
            );
        }
    }

    #[test]
    fn named_borders_contain_the_numbers_of_their_bin() {
        let mut s = RandomStream::new(&[17]);
        let mut found = 0;
        let rounds = if cfg!(miri) { 30 } else { 3000 };
        for _ in 0..rounds {
            // A decimal number of few digits, as users type them, or any.
            let number = |s: &mut RandomStream| {
                let max_len = if s.below(4) == 0 { 16 } else { 4 };
                let digits = 10u64.pow(1 + s.below(max_len) as u32);
                let text = format!("{}e{}", 1 + s.below(digits), s.below(13) as i32 - 8);
                text.parse::<f64>().unwrap()
            };
            let rule = match s.below(3) {
                0 => NumberRule::Quantiles(2 + s.below(20) as u32),
                1 => NumberRule::Width(number(&mut s)),
                _ => NumberRule::Log(1.0 + number(&mut s)),
            };
            let is_log = matches!(rule, NumberRule::Log(_));
            let mut numbers: Vec<f64> = Vec::new();
            let center = number(&mut s);
            for _ in 0..1 + s.below(30) {
                let k = s.below(200) as f64 - if is_log { 0.0 } else { 100.0 };
                // Multiples and powers, and numbers beside them.
                let x = match rule {
                    NumberRule::Width(width) => center + k * width,
                    NumberRule::Log(base) => center * base.powf(k),
                    NumberRule::Quantiles(_) => center + k * 1e-12 * center,
                };
                let x = match s.below(4) {
                    0 => x.next_up(),
                    1 => x.next_down(),
                    2 => format!("{x:.6e}").parse().unwrap(),
                    _ => x,
                };
                if x.is_finite() && (x > 0.0 || !is_log) {
                    numbers.push(x + 0.0);
                }
            }
            found += usize::from(check_names(rule, &numbers));
        }
        assert!(found > rounds / 2, "{found} of {rounds}");
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
            "width=1e-310",
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
