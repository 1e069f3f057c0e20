//! Mutations of inputs.
//!
//! After a mutation of a file with checksums they are computed again. Otherwise the reader would refuse nearly every mutated
//! file at its checksums, and the code behind them would not be tested.

use super::fields::FieldChange;
use super::forged_model::ForgedModel;

/// The layout of the inputs of a target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Bytes without checksums.
    Bytes,
    /// A binary COO file.
    Coo,
    /// A model file or a checkpoint.
    Sections,
}

/// Mutates bytes, which must not grow beyond a length.
pub type MutateBytes<'a> = &'a mut dyn FnMut(&mut Vec<u8>, usize);

/// Mutates an input by `mutate_bytes` and repairs its checksums. The result has at most `max_len` bytes.
pub fn mutate(
    layout: Layout,
    input: &mut Vec<u8>,
    max_len: usize,
    random: &mut Random,
    mutate_bytes: MutateBytes<'_>,
) {
    // Some inputs keep wrong checksums.
    if layout == Layout::Bytes || random.below(32) == 0 {
        mutate_bytes(input, max_len);
    } else if layout == Layout::Coo {
        mutate_coo(input, max_len, random, mutate_bytes);
    } else {
        mutate_sections(input, max_len, random, mutate_bytes);
    }
    input.truncate(max_len);
}

/// Mutates the contents of a section, or the list of sections.
fn mutate_sections(
    input: &mut Vec<u8>,
    max_len: usize,
    random: &mut Random,
    mutate_bytes: MutateBytes<'_>,
) {
    let Some(mut file) = ForgedModel::from_bytes(input).filter(|f| !f.sections.is_empty()) else {
        return mutate_bytes(input, max_len);
    };
    let count = file.sections.len();
    let (one, other) = (random.below(count), random.below(count));
    match random.below(16) {
        0 => drop(file.sections.remove(one)),
        1 => file.sections[one].1 = file.sections[other].1.clone(),
        2 => file.sections.swap(one, other),
        3 => {
            let mut name = file.sections[one].0.clone().into_bytes();
            mutate_bytes(&mut name, 40);
            file.sections[one].0 = String::from_utf8_lossy(&name).into_owned();
        }
        4 => {
            let copy = file.sections[one].clone();
            file.sections.insert(other, copy);
        }
        5 => {
            let changes = FieldChange::all(&file);
            if !changes.is_empty() {
                *input = changes[random.below(changes.len())].apply(&file);
            }
            return;
        }
        6..=7 => mutate_numbers(&mut file.sections[one].1, random),
        _ => {
            let others = input.len().saturating_sub(file.sections[one].1.len());
            let room = max_len.saturating_sub(others).max(1);
            mutate_bytes(&mut file.sections[one].1, room);
        }
    }
    let bytes = file.to_bytes();
    if bytes.len() <= max_len {
        *input = bytes;
    }
}

/// Sets some of the 32-bit numbers to others that are at the limits of their range.
fn mutate_numbers(bytes: &mut [u8], random: &mut Random) {
    let floats = [
        0.0,
        -1.0,
        1e-45,
        1e-30,
        1e15,
        3e38,
        -3e38,
        f32::INFINITY,
        f32::NAN,
    ];
    let integers = [0, 1, 2, 15, 16, 17, 255, u32::MAX - 1, u32::MAX, 1 << 31];
    let number = if random.below(2) == 0 {
        floats[random.below(floats.len())].to_bits()
    } else {
        integers[random.below(integers.len())]
    };
    let all = random.below(4) == 0;
    let chosen = random.below((bytes.len() / 4).max(1));
    for (i, place) in bytes.chunks_exact_mut(4).enumerate() {
        if all || i == chosen {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }
}

const COO_HEADER_LEN: usize = 512;
const COO_SECTIONS_AT: usize = 112;
const COO_SECTIONS: usize = 10;
const COO_CHECKSUM_AT: usize = 504;

fn mutate_coo(
    input: &mut Vec<u8>,
    max_len: usize,
    random: &mut Random,
    mutate_bytes: MutateBytes<'_>,
) {
    let in_header = random.below(2) == 0;
    if input.len() <= COO_HEADER_LEN || max_len <= COO_HEADER_LEN {
        mutate_bytes(input, max_len);
    } else if in_header {
        let mut header = input[..COO_HEADER_LEN].to_vec();
        mutate_bytes(&mut header, COO_HEADER_LEN);
        header.resize(COO_HEADER_LEN, 0);
        input[..COO_HEADER_LEN].copy_from_slice(&header);
    } else if random.below(2) == 0 {
        mutate_numbers(&mut input[COO_HEADER_LEN..], random);
    } else {
        let mut rest = input.split_off(COO_HEADER_LEN);
        mutate_bytes(&mut rest, max_len - COO_HEADER_LEN);
        input.extend_from_slice(&rest);
    }
    repair_coo(input);
}

/// Writes the right length and the right checksums into a binary COO file.
pub fn repair_coo(file: &mut [u8]) {
    if file.len() < COO_HEADER_LEN {
        return;
    }
    let len = file.len();
    file[40..48].copy_from_slice(&(len as u64).to_le_bytes());
    for k in 0..COO_SECTIONS {
        let at = COO_SECTIONS_AT + 24 * k;
        let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
        let (start, section_len) = (number(at), number(at + 8));
        let end = start.checked_add(section_len).filter(|&end| end <= len);
        if let (Some(end), true) = (end, section_len > 0) {
            let crc = crc32fast::hash(&file[start..end]);
            file[at + 16..at + 24].copy_from_slice(&u64::from(crc).to_le_bytes());
        }
    }
    let crc = crc32fast::hash(&file[..COO_CHECKSUM_AT]);
    file[COO_CHECKSUM_AT..COO_HEADER_LEN].copy_from_slice(&u64::from(crc).to_le_bytes());
}

/// A small generator of random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Mutates bytes without the help of libFuzzer.
#[allow(dead_code, reason = "only the tests use it")]
pub fn mutate_bytes(bytes: &mut Vec<u8>, max_len: usize, random: &mut Random) {
    const TEXTS: [&str; 16] = [
        "0",
        "-1",
        "1e308",
        "nan",
        "inf",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        ",",
        "\n",
        "\"",
        "\t",
        "=",
        "\r",
        "\0",
        ":",
    ];
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(16)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.insert(at, random.next() as u8),
            5 => {
                let text = TEXTS[random.below(TEXTS.len())].bytes();
                drop(bytes.splice(at..end, text));
            }
            _ => {
                let text = TEXTS[random.below(TEXTS.len())].bytes();
                drop(bytes.splice(at..at, text));
            }
        }
    }
    bytes.truncate(max_len);
}
