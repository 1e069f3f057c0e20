//! Encodes and decodes the header of a binary COO file, which `docs/reference/formats.md` specifies.
//!
//! The decoder checks every field against the length of the file, and every product and sum for overflow.

use super::header::{
    ALIGN, HEADER_LEN, Header, MAGIC, MAX_DIM, MAX_ORDER, MIN_ORDER, Section, VERSION, ValueKind,
};
use crate::error::{Error, Result};
use crate::sort::stable_sort_by;

const FLAG_DIMS_INFERRED: u32 = 1;
const SECTIONS_AT: usize = 112;
const SECTION_SLOTS: usize = MAX_ORDER + 2;
const RESERVED_AT: usize = SECTIONS_AT + SECTION_SLOTS * 24;
const CHECKSUM_AT: usize = 504;

impl Header {
    /// Returns the bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_LEN as usize] {
        let mut b = [0u8; HEADER_LEN as usize];
        b[0..8].copy_from_slice(&MAGIC);
        put32(&mut b, 8, VERSION);
        put32(&mut b, 12, HEADER_LEN as u32);
        put32(&mut b, 16, self.dims.len() as u32);
        put32(&mut b, 20, self.value_kind.code());
        put32(&mut b, 24, self.weight_kind.map_or(0, ValueKind::code));
        put32(
            &mut b,
            28,
            if self.dims_inferred {
                FLAG_DIMS_INFERRED
            } else {
                0
            },
        );
        put64(&mut b, 32, self.count);
        put64(&mut b, 40, self.file_size);
        for (n, &dim) in self.dims.iter().enumerate() {
            put64(&mut b, 48 + 8 * n, dim);
        }
        for (n, s) in self.indices.iter().enumerate() {
            put_section(&mut b, n, s);
        }
        put_section(&mut b, MAX_ORDER, &self.values);
        put_section(&mut b, MAX_ORDER + 1, &self.weights);
        let crc = crc32fast::hash(&b[..CHECKSUM_AT]);
        put64(&mut b, CHECKSUM_AT, u64::from(crc));
        b
    }

    /// Decodes and checks a header. `head` is the start of the file, up to [`HEADER_LEN`] bytes; `file_len` is its real
    /// length; messages call it `file`.
    pub fn decode(head: &[u8], file_len: u64, file: &str) -> Result<Header> {
        let bad = |byte: usize, what: String| Err(Error::format(file, byte as u64, what));
        if file_len == 0 {
            return Err(Error::file(
                file,
                "is empty; a binary COO file has at least 512 bytes",
            ));
        }
        if head.len() < 8 || head[..8] != MAGIC {
            return bad(
                0,
                "this is not a binary COO file (its first bytes are not 89 53 33 43 4F 4F 0D 0A); \
                 `s3cmtf convert` makes one from text"
                    .into(),
            );
        }
        if head.len() < HEADER_LEN as usize {
            return bad(
                head.len(),
                format!(
                    "the file ends inside its header, which has {HEADER_LEN} bytes; copy or convert it again"
                ),
            );
        }
        let b = &head[..HEADER_LEN as usize];
        // Check the version before the checksum, which a later version may place elsewhere.
        let version = get32(b, 8);
        if version == 0 || version > VERSION {
            return bad(
                8,
                format!(
                    "the file has format version {version}; this library reads version {VERSION}, so a newer s3cmtf is needed"
                ),
            );
        }
        let stored = get64(b, CHECKSUM_AT);
        let crc = u64::from(crc32fast::hash(&b[..CHECKSUM_AT]));
        if stored != crc {
            return bad(
                CHECKSUM_AT,
                format!(
                    "the header is damaged (checksum {crc:#010x}, stored {stored:#x}); copy or convert the file again"
                ),
            );
        }
        if get32(b, 12) != HEADER_LEN as u32 {
            return bad(
                12,
                format!("header length {}; version 1 has {HEADER_LEN}", get32(b, 12)),
            );
        }
        let order = get32(b, 16) as usize;
        if !(MIN_ORDER..=MAX_ORDER).contains(&order) {
            return bad(
                16,
                format!("order {order}; it must be {MIN_ORDER} to {MAX_ORDER}"),
            );
        }
        let Some(value_kind) = ValueKind::from_code(get32(b, 20)) else {
            return bad(
                20,
                format!("value kind {}; 1 is f32, 2 is f64", get32(b, 20)),
            );
        };
        let weight_code = get32(b, 24);
        let weight_kind = ValueKind::from_code(weight_code);
        if weight_code != 0 && weight_kind.is_none() {
            return bad(
                24,
                format!("weight kind {weight_code}; 0 is none, 1 is f32, 2 is f64"),
            );
        }
        let flags = get32(b, 28);
        if flags & !FLAG_DIMS_INFERRED != 0 {
            return bad(
                28,
                format!("flags {flags:#x} are not known to this library; a newer s3cmtf is needed"),
            );
        }
        let count = get64(b, 32);
        let file_size = get64(b, 40);
        if file_size != file_len {
            let fault = if file_size > file_len {
                "it was cut short"
            } else {
                "something was added to it"
            };
            return bad(
                40,
                format!(
                    "the header says the file has {file_size} bytes, it has {file_len}: {fault}; copy or convert it again"
                ),
            );
        }
        let mut dims = Vec::with_capacity(order);
        for n in 0..MAX_ORDER {
            let dim = get64(b, 48 + 8 * n);
            if n < order {
                if dim == 0 || dim > MAX_DIM {
                    return bad(
                        48 + 8 * n,
                        format!("mode {} has size {dim}; it must be 1 to {MAX_DIM}", n + 1),
                    );
                }
                dims.push(dim);
            } else if dim != 0 {
                return bad(
                    48 + 8 * n,
                    format!("a size for mode {}, but the order is {order}", n + 1),
                );
            }
        }
        if let Some(at) = (RESERVED_AT..CHECKSUM_AT).find(|&i| b[i] != 0) {
            return bad(
                at,
                "reserved bytes are not zero; a newer s3cmtf is needed".into(),
            );
        }
        // Each section must have the right length, lie in the file behind the header, and overlap no other. Start, end
        // and position in the header of each:
        let mut used: Vec<(u64, u64, usize)> = Vec::new();
        let mut section = |slot: usize, size: Option<u64>| -> Result<Section> {
            let at = SECTIONS_AT + 24 * slot;
            let (offset, len, crc) = (get64(b, at), get64(b, at + 8), get64(b, at + 16));
            let fail = |what: String| Err(Error::format(file, at as u64, what));
            let Some(size) = size else {
                if (offset, len, crc) != (0, 0, 0) {
                    return fail(format!("section {slot} should be unused and zero"));
                }
                return Ok(Section::default());
            };
            let Some(expected) = count.checked_mul(size) else {
                return fail(format!("{count} entries of {size} bytes overflow 64 bits"));
            };
            if len != expected {
                return fail(format!(
                    "section {slot} has {len} bytes; {count} entries take {expected}"
                ));
            }
            let end = match offset.checked_add(len) {
                Some(end) if offset >= HEADER_LEN && offset % ALIGN == 0 && end <= file_len => end,
                _ => {
                    return fail(format!(
                        "section {slot} at {offset} with {len} bytes does not lie in the file \
                         (of {file_len} bytes) at a multiple of {ALIGN} after the header"
                    ));
                }
            };
            if crc > u64::from(u32::MAX) {
                return fail(format!(
                    "section {slot} has a checksum of more than 32 bits"
                ));
            }
            if len > 0 {
                used.push((offset, end, at));
            }
            Ok(Section {
                offset,
                len,
                crc: crc as u32,
            })
        };
        let mut indices = Vec::with_capacity(order);
        for n in 0..MAX_ORDER {
            let s = section(n, (n < order).then_some(4))?;
            if n < order {
                indices.push(s);
            }
        }
        let values = section(MAX_ORDER, Some(value_kind.size()))?;
        let weights = section(MAX_ORDER + 1, weight_kind.map(ValueKind::size))?;
        stable_sort_by(&mut used, &Ord::cmp);
        if let Some(w) = used.windows(2).find(|w| w[1].0 < w[0].1) {
            return bad(w[1].2, "two sections overlap".into());
        }
        Ok(Header {
            dims,
            dims_inferred: flags & FLAG_DIMS_INFERRED != 0,
            count,
            value_kind,
            weight_kind,
            indices,
            values,
            weights,
            file_size,
        })
    }
}

fn put32(b: &mut [u8], at: usize, x: u32) {
    b[at..at + 4].copy_from_slice(&x.to_le_bytes());
}

fn put64(b: &mut [u8], at: usize, x: u64) {
    b[at..at + 8].copy_from_slice(&x.to_le_bytes());
}

fn put_section(b: &mut [u8], slot: usize, s: &Section) {
    let at = SECTIONS_AT + 24 * slot;
    put64(b, at, s.offset);
    put64(b, at + 8, s.len);
    put64(b, at + 16, u64::from(s.crc));
}

fn get32(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

fn get64(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Header {
        Header::plan(&[10, 20, 30], 7, ValueKind::F32, None).unwrap()
    }

    /// Changes bytes and recomputes the checksum of the header, as a hostile writer would.
    fn forged(header: &Header, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut b = header.encode().to_vec();
        b[at..at + bytes.len()].copy_from_slice(bytes);
        let crc = crc32fast::hash(&b[..CHECKSUM_AT]);
        put64(&mut b, CHECKSUM_AT, u64::from(crc));
        b
    }

    #[test]
    fn decode_inverts_encode() {
        for kind in [ValueKind::F32, ValueKind::F64] {
            for weights in [None, Some(ValueKind::F32), Some(ValueKind::F64)] {
                for order in MIN_ORDER..=MAX_ORDER {
                    let mut h = Header::plan(&vec![9; order], 1001, kind, weights).unwrap();
                    h.dims_inferred = order % 2 == 0;
                    h.values.crc = 0xDEAD_BEEF;
                    let back = Header::decode(&h.encode(), h.file_size, "x").unwrap();
                    assert_eq!(h, back);
                    for (_, s) in h.sections() {
                        assert_eq!(s.offset % ALIGN, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_beyond_four_gigabytes_and_2_32_entries_are_exact() {
        let count = (1u64 << 32) + 12_345;
        let h = Header::plan(&[MAX_DIM, 5], count, ValueKind::F64, None).unwrap();
        assert_eq!(h.indices[0].len, count * 4);
        assert_eq!(h.indices[1].offset, (512 + count * 4).next_multiple_of(64));
        assert_eq!(h.values.len, count * 8);
        assert_eq!(h.file_size, h.values.offset + count * 8);
        assert_eq!(Header::decode(&h.encode(), h.file_size, "x").unwrap(), h);
    }

    #[test]
    fn overflowing_counts_are_rejected() {
        for count in [u64::MAX, u64::MAX / 4, 1 << 62, i64::MAX as u64 / 4] {
            assert!(
                Header::plan(&[2, 2], count, ValueKind::F64, None).is_err(),
                "{count}"
            );
        }
    }

    #[test]
    fn every_forged_field_is_rejected() {
        let h = example();
        let huge = u64::MAX.to_le_bytes();
        let cases: Vec<(usize, Vec<u8>, &str)> = vec![
            (0, b"\x89S3COO\n\n".to_vec(), "not a binary COO"),
            (8, 2u32.to_le_bytes().to_vec(), "format version 2"),
            (8, 0u32.to_le_bytes().to_vec(), "format version 0"),
            (12, 256u32.to_le_bytes().to_vec(), "header length 256"),
            (16, 1u32.to_le_bytes().to_vec(), "order 1"),
            (16, 9u32.to_le_bytes().to_vec(), "order 9"),
            (16, u32::MAX.to_le_bytes().to_vec(), "order 4294967295"),
            (20, 3u32.to_le_bytes().to_vec(), "value kind 3"),
            (24, 9u32.to_le_bytes().to_vec(), "weight kind 9"),
            (28, 2u32.to_le_bytes().to_vec(), "flags 0x2"),
            (32, 8u64.to_le_bytes().to_vec(), "8 entries take 32"),
            (32, huge.to_vec(), "overflow"),
            (32, ((1u64 << 62) + 7).to_le_bytes().to_vec(), "overflow"),
            (40, 10_000u64.to_le_bytes().to_vec(), "cut short"),
            (40, 513u64.to_le_bytes().to_vec(), "added"),
            (48, 0u64.to_le_bytes().to_vec(), "size 0"),
            (48, (1u64 << 32).to_le_bytes().to_vec(), "size 4294967296"),
            (48 + 24, 5u64.to_le_bytes().to_vec(), "the order is 3"),
            (112, 8u64.to_le_bytes().to_vec(), "does not lie in the file"),
            (
                112,
                513u64.to_le_bytes().to_vec(),
                "does not lie in the file",
            ),
            (
                112,
                (u64::MAX - 63).to_le_bytes().to_vec(),
                "does not lie in the file",
            ),
            (
                112,
                4096u64.to_le_bytes().to_vec(),
                "does not lie in the file",
            ),
            (112, h.indices[1].offset.to_le_bytes().to_vec(), "overlap"),
            (120, huge.to_vec(), "has 18446744073709551615 bytes"),
            (128, huge.to_vec(), "more than 32 bits"),
            (
                112 + 24 * 5,
                64u64.to_le_bytes().to_vec(),
                "should be unused",
            ),
            (
                112 + 24 * 9,
                64u64.to_le_bytes().to_vec(),
                "should be unused",
            ),
            (400, vec![1], "reserved"),
        ];
        for (at, bytes, expected) in cases {
            let b = forged(&h, at, &bytes);
            let error = Header::decode(&b, h.file_size, "f")
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(expected),
                "at {at}: {error:?} lacks {expected:?}"
            );
        }
    }

    #[test]
    fn any_flipped_bit_of_the_header_is_detected() {
        let h = example();
        let good = h.encode();
        for at in 0..HEADER_LEN as usize {
            let mut b = good;
            b[at] ^= 0x10;
            assert!(Header::decode(&b, h.file_size, "f").is_err(), "byte {at}");
        }
    }

    #[test]
    fn truncated_headers_are_rejected() {
        let h = example();
        let b = h.encode();
        for len in 0..b.len() {
            assert!(Header::decode(&b[..len], len as u64, "f").is_err(), "{len}");
        }
    }
}
