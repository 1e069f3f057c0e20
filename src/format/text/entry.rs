//! Parses one line: indices, then the value, then the weight, separated by blanks.
//!
//! [`EntryParser::slow`] is the reference and makes the error messages. [`EntryParser::fast`] parses usual lines in one
//! pass and returns `None` for all others; a test compares the two.

use super::fields::{fields, is_blank, quote, skip_blanks};
use super::number::{leading_digits, may_round_twice, plain_decimal};
use crate::format::coo_writer::too_large;
use crate::format::header::{MAX_DIM, MAX_ORDER, ValueKind};

/// A parsed entry; indices count from 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub indices: [u32; MAX_ORDER],
    pub value: f64,
    pub weight: f64,
}

impl Entry {
    pub(crate) fn new() -> Self {
        Entry {
            indices: [0; MAX_ORDER],
            value: 1.0,
            weight: 1.0,
        }
    }
}

/// The columns of a line and their ranges.
#[derive(Debug, Clone)]
pub(crate) struct EntryParser {
    pub order: usize,
    pub has_value: bool,
    pub has_weight: bool,
    pub zero_based: bool,
    /// The size of each mode; [`MAX_DIM`] where it is not stated.
    pub dims: [u64; MAX_ORDER],
    pub kind: ValueKind,
    /// Advice, in error messages, for ids that are not `u32` integers.
    pub string_id_hint: &'static str,
}

impl EntryParser {
    pub(crate) fn new(order: usize, dims: Option<&[u64]>, kind: ValueKind) -> Self {
        let mut all = [MAX_DIM; MAX_ORDER];
        if let Some(dims) = dims {
            all[..dims.len()].copy_from_slice(dims);
        }
        EntryParser {
            order,
            has_value: true,
            has_weight: false,
            zero_based: false,
            dims: all,
            kind,
            string_id_hint: "ids that are strings or larger numbers need CSV or TSV",
        }
    }

    fn columns(&self) -> usize {
        self.order + usize::from(self.has_value) + usize::from(self.has_weight)
    }

    /// Parses a line that is neither blank nor a comment. The error is a message without location.
    #[inline]
    pub(crate) fn parse(&self, line: &[u8], entry: &mut Entry) -> Result<(), String> {
        match self.fast(line, entry) {
            Some(()) => Ok(()),
            None => self.slow(line, entry),
        }
    }

    #[inline]
    fn fast(&self, line: &[u8], entry: &mut Entry) -> Option<()> {
        let mut rest = line;
        let base = u64::from(!self.zero_based);
        for n in 0..self.order {
            let (number, after) = leading_digits(skip_blanks(rest))?;
            // With base 1 an index of 0 wraps around and fails the comparison.
            let index = number.wrapping_sub(base);
            if index >= self.dims[n] || after.first().is_some_and(|&b| !is_blank(b)) {
                return None;
            }
            entry.indices[n] = index as u32;
            rest = after;
        }
        if self.has_value {
            (entry.value, rest) = self.fast_float(rest)?;
        }
        if self.has_weight {
            (entry.weight, rest) = self.fast_float(rest)?;
            if entry.weight < 0.0 {
                return None;
            }
        }
        skip_blanks(rest).is_empty().then_some(())
    }

    #[inline]
    fn fast_float<'a>(&self, rest: &'a [u8]) -> Option<(f64, &'a [u8])> {
        let field = skip_blanks(rest);
        let (value, after) = match plain_decimal(field) {
            Some(found) => found,
            None => {
                let len = field
                    .iter()
                    .position(|&b| is_blank(b))
                    .unwrap_or(field.len());
                let text = std::str::from_utf8(&field[..len]).ok()?;
                (text.parse::<f64>().ok()?, &field[len..])
            }
        };
        let value = self.rounded(value, &field[..field.len() - after.len()]);
        (self.fits(value)).then_some((value, after))
    }

    /// Returns the number `text`, which is `value` in `f64`, as it is stored: rounded once. Otherwise the shortest text of an
    /// `f32` would not always be read as that `f32`.
    #[inline]
    fn rounded(&self, value: f64, text: &[u8]) -> f64 {
        if self.kind == ValueKind::F32 && may_round_twice(value) {
            return parse_f32(text).unwrap_or(value);
        }
        value
    }

    /// Returns whether the value is finite in its stored precision.
    fn fits(&self, value: f64) -> bool {
        match self.kind {
            ValueKind::F32 => (value as f32).is_finite(),
            ValueKind::F64 => value.is_finite(),
        }
    }

    #[cold]
    fn slow(&self, line: &[u8], entry: &mut Entry) -> Result<(), String> {
        let all: Vec<&[u8]> = fields(line).collect();
        if all.len() != self.columns() {
            return Err(format!(
                "{} columns, expected {}: {}",
                all.len(),
                self.columns(),
                self.expected()
            ));
        }
        for (n, field) in all[..self.order].iter().enumerate() {
            entry.indices[n] = self.index(n, field)?;
        }
        if self.has_value {
            entry.value = self.float("value", all[self.order])?;
        }
        if self.has_weight {
            entry.weight = self.weight(all[self.columns() - 1])?;
        }
        Ok(())
    }

    fn expected(&self) -> String {
        let value = if self.has_value {
            " and a value"
        } else {
            " and no value"
        };
        let weight = if self.has_weight { " and a weight" } else { "" };
        format!("{} indices{value}{weight}", self.order)
    }

    /// Parses the index of mode `n` (from 0).
    #[inline]
    pub(crate) fn index(&self, n: usize, field: &[u8]) -> Result<u32, String> {
        match leading_digits(field) {
            Some((number, []))
                if number.wrapping_sub(u64::from(!self.zero_based)) < self.dims[n] =>
            {
                Ok((number - u64::from(!self.zero_based)) as u32)
            }
            _ => self.slow_index(n, field),
        }
    }

    #[cold]
    fn slow_index(&self, n: usize, field: &[u8]) -> Result<u32, String> {
        let mode = n + 1;
        let shown = quote(field);
        let first = u64::from(!self.zero_based);
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        if field.is_empty() {
            return Err(format!("the index of mode {mode} is missing"));
        }
        if !digits.iter().all(u8::is_ascii_digit) || digits.is_empty() {
            let number = std::str::from_utf8(field)
                .ok()
                .and_then(|t| t.parse::<f64>().ok());
            return Err(match number {
                Some(x) if x.fract() == 0.0 && (0.0..=MAX_DIM as f64).contains(&x) => format!(
                    "index {shown} of mode {mode} is not written as a whole number; write {x:.0}"
                ),
                _ => format!(
                    "index {shown} of mode {mode} is not a whole number from {first} on \
                     ({})",
                    self.string_id_hint
                ),
            });
        }
        if digits.len() < field.len() {
            return Err(format!(
                "index {shown} of mode {mode} is negative; indices start at {first}"
            ));
        }
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|t| t.parse::<u64>().ok());
        let largest = MAX_DIM - 1 + first;
        let Some(number) = number.filter(|&x| x <= largest) else {
            return Err(format!(
                "index {shown} of mode {mode} is too large; the largest allowed is {largest} \
                 ({})",
                self.string_id_hint
            ));
        };
        if number < first {
            return Err(format!(
                "index 0 of mode {mode}, but indices start at 1; if this file counts from 0, set the option zero-based"
            ));
        }
        let index = number - first;
        if index >= self.dims[n] {
            return Err(format!(
                "index {number} of mode {mode} is beyond its size {}; the largest allowed is {}",
                self.dims[n],
                self.dims[n] - 1 + first
            ));
        }
        Ok(index as u32)
    }

    /// Parses a weight, which must not be negative.
    pub(crate) fn weight(&self, field: &[u8]) -> Result<f64, String> {
        let weight = self.float("weight", field)?;
        if weight < 0.0 {
            return Err(format!(
                "weight {weight} is negative; weights are 0 or more"
            ));
        }
        Ok(weight)
    }

    /// Parses a value or weight, as `what` names it in messages.
    #[inline]
    pub(crate) fn float(&self, what: &str, field: &[u8]) -> Result<f64, String> {
        let value = match plain_decimal(field) {
            Some((value, [])) => self.rounded(value, field),
            _ => return self.slow_float(what, field),
        };
        if self.fits(value) {
            Ok(value)
        } else {
            self.slow_float(what, field)
        }
    }

    #[cold]
    fn slow_float(&self, what: &str, field: &[u8]) -> Result<f64, String> {
        let number = std::str::from_utf8(field)
            .ok()
            .and_then(|t| t.parse::<f64>().ok())
            .map(|x| self.rounded(x, field));
        match number {
            _ if field.is_empty() => Err(format!("the {what} is missing")),
            None if field.contains(&b',') => Err(format!(
                "{what} {} is not a number; write a decimal point, and nothing between thousands",
                quote(field)
            )),
            None => Err(format!("{what} {} is not a number", quote(field))),
            // Written as `inf` or `nan`, as opposed to a number too large for `f64`.
            Some(x) if !x.is_finite() && !field.iter().any(u8::is_ascii_digit) => Err(format!(
                "{what} {} is not a finite number; remove the entry or give it a number",
                quote(field)
            )),
            Some(x) if !x.is_finite() => Err(format!(
                "{what} {} is too large for a 64-bit number",
                quote(field)
            )),
            Some(x) if !self.fits(x) => Err(too_large(what, x)),
            Some(x) => Ok(x),
        }
    }
}

#[cold]
fn parse_f32(text: &[u8]) -> Option<f64> {
    let number = std::str::from_utf8(text).ok()?.parse::<f32>().ok()?;
    Some(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn parser(order: usize) -> EntryParser {
        EntryParser::new(order, None, ValueKind::F64)
    }

    #[test]
    fn fast_and_slow_parsers_agree_on_random_lines() {
        let mut s = RandomStream::new(&[4]);
        let pieces: &[&[u8]] = &[
            b"1",
            b"0",
            b"17",
            b"4294967295",
            b"4294967296",
            b"99999999999",
            b"-3",
            b"1e5",
            b"1.5",
            b"-0.0",
            b"1e-7",
            b"1.7976931348623157e308",
            b"1e400",
            b"123456789012345678",
            b".5",
            b"5.",
            b".",
            b"-",
            b"nan",
            b"inf",
            b"x",
            b"+1",
            b"0.1234567890123456789",
            b"1_0",
            b"\xFF",
            b"00012",
            b"--1",
            b"1e",
            b"3.40282347e38",
            b"1e39",
        ];
        let blanks: &[&[u8]] = &[b" ", b"\t", b"  ", b" \t "];
        let mut agreed = 0;
        for _ in 0..200_000 {
            let mut p = parser(1 + s.below(4) as usize);
            p.has_weight = s.below(4) == 0;
            p.has_value = p.has_weight || s.below(5) > 0;
            p.zero_based = s.below(2) == 0;
            p.kind = if s.below(2) == 0 {
                ValueKind::F32
            } else {
                ValueKind::F64
            };
            p.dims[0] = 1 + s.below(20);
            let mut line = Vec::new();
            for _ in 0..s.below(6) {
                if s.below(8) > 0 {
                    line.extend_from_slice(if s.below(3) > 0 {
                        pieces[s.below(3) as usize]
                    } else {
                        pieces[s.below(pieces.len() as u64) as usize]
                    });
                }
                line.extend_from_slice(blanks[s.below(4) as usize]);
            }
            if s.below(2) == 0 {
                line.push(b'\r');
            }
            let (mut a, mut b) = (Entry::new(), Entry::new());
            let slow = p.slow(&line, &mut b);
            if p.fast(&line, &mut a).is_some() {
                agreed += 1;
                assert_eq!(slow, Ok(()), "{:?}", String::from_utf8_lossy(&line));
                assert_eq!(a.indices[..p.order], b.indices[..p.order]);
                assert_eq!(a.value.to_bits(), b.value.to_bits());
                assert_eq!(a.weight.to_bits(), b.weight.to_bits());
            }
        }
        assert!(
            agreed > 3000,
            "the lines are too odd to test anything: {agreed}"
        );
    }

    #[test]
    fn values_are_rounded_to_32_bits_once() {
        let mut p = parser(2);
        p.kind = ValueKind::F32;
        p.has_weight = true;
        // As `f64` the first is midway between two `f32`, though the text is not. The others are as close to the middle between
        // two numbers, to that between the largest `f32` and infinity, and between two subnormal `f32`.
        for text in [
            "7.038531e-26",
            "0.50000002980232238769531249",
            "0.50000002980232238769531251",
            "3.4028235677973366163753939545814e38",
            "7.006492321624085354618e-46",
            "7.006492321624085354619e-46",
        ] {
            let expected = text.parse::<f32>().unwrap();
            let mut entry = Entry::new();
            p.parse(format!("1 1 {text} {text}").as_bytes(), &mut entry)
                .unwrap();
            let field = p.float("value", text.as_bytes()).unwrap();
            for value in [entry.value, entry.weight, field] {
                let stored = value as f32;
                assert_eq!(stored.to_bits(), expected.to_bits(), "{text}: {stored:e}");
            }
        }
    }

    #[test]
    fn every_fault_has_its_message() {
        let mut p = parser(2);
        p.kind = ValueKind::F32;
        p.dims[1] = 10;
        for (line, expected) in [
            ("0 1 1", "option zero-based"),
            ("1 11 1", "beyond its size 10; the largest allowed is 10"),
            ("-1 1 1", "negative"),
            (
                "4294967296 1 1",
                "too large; the largest allowed is 4294967295",
            ),
            ("99999999999999999999999 1 1", "too large"),
            ("1e5 1 1", "write 100000"),
            ("2.0 1 1", "write 2"),
            ("2.5 1 1", "not a whole number"),
            ("abc 1 1", "'abc' of mode 1 is not a whole number"),
            ("1 1", "2 columns, expected 3: 2 indices and a value"),
            ("1 1 1 1", "4 columns, expected 3"),
            ("1 1 x", "value 'x' is not a number"),
            ("1 1 3,5", "write a decimal point"),
            ("1 1 NaN", "not a finite number"),
            ("1 1 -inf", "not a finite number"),
            ("1 1 1e999", "too large for a 64-bit"),
            ("1 1 1e39", "too large for a 32-bit"),
        ] {
            let error = p.parse(line.as_bytes(), &mut Entry::new()).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        let mut e = Entry::new();
        p.parse(b" 4294967295\t10   -2.5e-3 \r", &mut e).unwrap();
        assert_eq!(
            (e.indices[0], e.indices[1], e.value),
            (u32::MAX - 1, 9, -2.5e-3)
        );
    }
}
