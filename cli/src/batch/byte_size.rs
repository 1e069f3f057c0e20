//! Numbers of bytes with binary prefixes.

/// The format of a number of bytes, for error messages.
pub(super) const BYTE_SIZE_FORMAT: &str =
    "a number of bytes, or of K, M, G or T of them, such as \"1.5G\"";

/// Parses a number of bytes: digits, optionally followed by K, M, G or T for powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let number = &text[..text.len() - usize::from(shift > 0)];
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let bytes = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (shift > 0 && bytes < u64::MAX as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_sizes_are_parsed() {
        for (text, bytes) in [
            ("7", 7),
            ("2k", 2048),
            ("1.5M", 3 << 19),
            ("16G", 16 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes));
        }
        for bad in [
            "",
            "G",
            "-1",
            "1.5",
            "1e3",
            "1 G",
            "99999999999999999999",
            "99999999999G",
            "1..5K",
            "é",
        ] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }
}
