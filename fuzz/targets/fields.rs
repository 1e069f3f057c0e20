//! The single numbers of a model file or checkpoint, and what a forged file may have in their place.
//!
//! They are found by walking the sections of a file, so that a section or a line that is added to the format is covered at once.
//! Sections of text have numbers in decimal digits, or the bits of a float in 16 hexadecimal digits. Nothing says of which type
//! the numbers of another section are, so they are taken as all types that fit.

use std::ops::Range;

use super::forged_model::ForgedModel;

/// The replacement of a number by another.
#[derive(PartialEq)]
pub struct FieldChange {
    section: usize,
    range: Range<usize>,
    new: Vec<u8>,
}

const WORDS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "NaN",
    "inf",
    "-inf",
    "1e39",
    "1e308",
    "3",
    "2147483648",
    "9223372036854775808",
    "18446744073709551615",
];

const FLOATS: [f64; 10] = [
    0.0,
    1.0,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e39,
    f64::MAX,
    1e-40,
    1e-320,
];

const INTEGERS: [u64; 5] = [0, 1, 1 << 31, 1 << 63, u64::MAX];

impl FieldChange {
    /// Returns all changes of single numbers of a file. Of a section of many numbers these are the first, and all of them at once.
    pub fn all(file: &ForgedModel) -> Vec<FieldChange> {
        let mut changes = Vec::new();
        for (section, (_, bytes)) in file.sections.iter().enumerate() {
            let mut add = |range: Range<usize>, new: Vec<u8>| {
                let change = FieldChange {
                    section,
                    range,
                    new,
                };
                if bytes[change.range.clone()] != change.new && changes.last() != Some(&change) {
                    changes.push(change);
                }
            };
            match text_of(bytes) {
                Some(text) => text_changes(text, &mut add),
                None => binary_changes(bytes, &mut add),
            }
        }
        changes
    }

    /// Returns the bytes of the file with the change, with right checksums.
    pub fn apply(&self, file: &ForgedModel) -> Vec<u8> {
        let mut forged = file.clone();
        let new = self.new.iter().copied();
        drop(
            forged.sections[self.section]
                .1
                .splice(self.range.clone(), new),
        );
        forged.to_bytes()
    }

    /// Describes the change.
    #[allow(dead_code, reason = "only the tests use it")]
    pub fn describe(&self, file: &ForgedModel) -> String {
        let (name, Range { start, end }) = (&file.sections[self.section].0, &self.range);
        let new = &self.new[..self.new.len().min(24)];
        format!("{name}[{start}..{end}] = {}", new.escape_ascii())
    }
}

/// Returns the contents of a section that has lines `name=value`.
fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_text = |c: char| c == '\n' || !c.is_control();
    (text.contains('=') && text.chars().all(is_text)).then_some(text)
}

/// Adds a change.
type Add<'a> = &'a mut dyn FnMut(Range<usize>, Vec<u8>);

fn text_changes(text: &str, add: Add<'_>) {
    let is_separator = |c: char| "=, \n".contains(c);
    let mut start = 0;
    for word in text.split(is_separator) {
        let range = start..start + word.len();
        start = range.end + 1;
        if word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
            for number in FLOATS {
                add(
                    range.clone(),
                    format!("{:016x}", number.to_bits()).into_bytes(),
                );
            }
        } else if word.parse::<f64>().is_ok() {
            for word in WORDS {
                add(range.clone(), word.into());
            }
        }
    }
}

fn binary_changes(bytes: &[u8], add: Add<'_>) {
    for width in [2, 4, 8] {
        if bytes.is_empty() || !bytes.len().is_multiple_of(width) {
            continue;
        }
        let floats = FLOATS.map(|x| match width {
            4 => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        });
        // There are no floats of 16 bits.
        let floats = floats.into_iter().filter(|_| width > 2);
        let patterns = INTEGERS.into_iter().chain(floats);
        for pattern in patterns.map(|pattern| pattern.to_le_bytes()[..width].to_vec()) {
            add(0..width, pattern.clone());
            add(0..bytes.len(), pattern.repeat(bytes.len() / width));
        }
    }
}
