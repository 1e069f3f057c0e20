//! Parses indices and decimal numbers faster than the standard library does.

use super::fields::is_blank;

/// Powers of ten that are exact in `f64`.
const EXACT_TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Parses a run of 1 to 10 digits, which cannot overflow. Returns the number and the rest of the text.
#[inline]
pub(super) fn leading_digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    let mut len = 0;
    while let Some(&b) = text.get(len) {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number * 10 + u64::from(digit);
        len += 1;
        if len > 10 {
            return None;
        }
    }
    (len > 0).then(|| (number, &text[len..]))
}

/// Parses a number such as `-12.345` and returns it with the rest of the text. Up to 15 digits make an exact integer, and
/// dividing it by an exact power of ten rounds once, so the result is correctly rounded (Clinger's fast path).
#[inline]
pub(super) fn plain_decimal(text: &[u8]) -> Option<(f64, &[u8])> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut number = 0u64;
    let mut seen = 0;
    let mut point = None;
    let mut len = 0;
    while let Some(&b) = digits.get(len) {
        let digit = b.wrapping_sub(b'0');
        if digit <= 9 {
            number = number * 10 + u64::from(digit);
            seen += 1;
        } else if b == b'.' && point.is_none() {
            point = Some(len);
        } else if is_blank(b) {
            break;
        } else {
            return None;
        }
        len += 1;
        if seen > 15 {
            return None;
        }
    }
    if seen == 0 {
        return None;
    }
    let decimals = point.map_or(0, |at| len - at - 1);
    let value = number as f64 / EXACT_TENS[decimals];
    Some((if negative { -value } else { value }, &digits[len..]))
}

/// Bits that the significand of an `f64` has more than that of an `f32`.
const EXTRA_BITS: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;

/// Returns whether rounding `value` to `f32` may differ from rounding the decimal number that `value` was parsed from: `value`
/// is midway between two `f32`, while the decimal number may be closer to one of them. True for all subnormal `f32`.
#[inline]
pub(super) fn may_round_twice(value: f64) -> bool {
    const MASK: u64 = (1 << EXTRA_BITS) - 1;
    const SMALLEST_NORMAL: u64 = (f32::MIN_POSITIVE as f64).to_bits();
    let magnitude = value.to_bits() & !(1 << 63);
    // 0, which is exact, wraps around.
    magnitude & MASK == MASK / 2 + 1 || magnitude.wrapping_sub(1) < SMALLEST_NORMAL - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn decimals_are_correctly_rounded() {
        let mut s = RandomStream::new(&[5]);
        for _ in 0..200_000 {
            let digits = 1 + s.below(15) as usize;
            let number = s.below(10u64.pow(digits as u32));
            let mut text = format!("{number}");
            if s.below(2) == 0 {
                text.insert(s.below(text.len() as u64 + 1) as usize, '.');
            }
            if s.below(2) == 0 {
                text.insert(0, '-');
            }
            if let Some((value, rest)) = plain_decimal(text.as_bytes()) {
                assert!(rest.is_empty());
                assert_eq!(
                    value.to_bits(),
                    text.parse::<f64>().unwrap().to_bits(),
                    "{text}"
                );
            }
        }
    }
}
