//! The header of a binary COO file: its fields, limits and layout. `docs/reference/formats.md` specifies the format; `header_codec`
//! encodes and decodes it.

use crate::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("binary COO files are mapped as they are, which needs a little-endian machine");

/// First eight bytes. The high bit and the line end reveal files that a text-mode copy damaged.
pub const MAGIC: [u8; 8] = *b"\x89S3COO\r\n";
/// Format version that this library writes, and the highest it reads.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_LEN: u64 = 512;
/// Alignment of sections, in bytes.
pub const ALIGN: u64 = 64;
/// Smallest number of modes of a file.
pub const MIN_ORDER: usize = 2;
/// Largest number of modes of a file.
pub use crate::kernel::MAX_ORDER;
/// Largest size of a mode: indices are `u32`, and `u32::MAX` is reserved.
pub const MAX_DIM: u64 = u32::MAX as u64;

/// Precision of stored values or weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// 32-bit IEEE floating point.
    F32,
    /// 64-bit IEEE floating point.
    F64,
}

impl ValueKind {
    /// Bytes of one value.
    pub fn size(self) -> u64 {
        match self {
            ValueKind::F32 => 4,
            ValueKind::F64 => 8,
        }
    }

    /// Code in the header.
    pub(super) fn code(self) -> u32 {
        match self {
            ValueKind::F32 => 1,
            ValueKind::F64 => 2,
        }
    }

    /// Returns the kind of a code in the header.
    pub(super) fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(ValueKind::F32),
            2 => Some(ValueKind::F64),
            _ => None,
        }
    }
}

/// One column of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Section {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// CRC-32 (as in zlib) of those bytes.
    pub crc: u32,
}

/// A decoded header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Size of each mode.
    pub dims: Vec<u64>,
    /// Whether `dims` were inferred from the largest indices rather than stated.
    pub dims_inferred: bool,
    /// Number of entries.
    pub count: u64,
    /// Precision of values.
    pub value_kind: ValueKind,
    /// Precision of weights, if there are any.
    pub weight_kind: Option<ValueKind>,
    /// One index column per mode.
    pub indices: Vec<Section>,
    /// The value column.
    pub values: Section,
    /// The weight column; empty without weights.
    pub weights: Section,
    /// Length of the whole file in bytes.
    pub file_size: u64,
}

impl Header {
    /// Computes the layout of a file of `count` entries: consecutive sections at multiples of [`ALIGN`]. Checksums are 0.
    pub fn plan(
        dims: &[u64],
        count: u64,
        value_kind: ValueKind,
        weight_kind: Option<ValueKind>,
    ) -> Result<Header> {
        check_dims(dims)?;
        let too_large = || {
            Error::argument(format!(
                "{count} entries do not fit in a file of 2^63 bytes"
            ))
        };
        let mut end = HEADER_LEN;
        let mut append = |size: u64| -> Result<Section> {
            let len = count.checked_mul(size).ok_or_else(too_large)?;
            let offset = end.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
            end = offset.checked_add(len).ok_or_else(too_large)?;
            if end > i64::MAX as u64 {
                return Err(too_large());
            }
            Ok(Section {
                offset,
                len,
                crc: 0,
            })
        };
        let indices = dims.iter().map(|_| append(4)).collect::<Result<Vec<_>>>()?;
        let values = append(value_kind.size())?;
        let weights = match weight_kind {
            Some(kind) => append(kind.size())?,
            None => Section::default(),
        };
        Ok(Header {
            dims: dims.to_vec(),
            dims_inferred: false,
            count,
            value_kind,
            weight_kind,
            indices,
            values,
            weights,
            file_size: end,
        })
    }

    /// Returns the sections with their names, in the order of the header's table.
    pub fn sections(&self) -> Vec<(String, Section)> {
        let mut all: Vec<_> = self
            .indices
            .iter()
            .enumerate()
            .map(|(n, s)| (format!("indices of mode {}", n + 1), *s))
            .collect();
        all.push(("values".into(), self.values));
        if self.weight_kind.is_some() {
            all.push(("weights".into(), self.weights));
        }
        all
    }
}

/// Checks the order and the size of every mode.
pub(crate) fn check_dims(dims: &[u64]) -> Result<()> {
    check_order(dims.len())?;
    for (n, &dim) in dims.iter().enumerate() {
        if dim == 0 || dim > MAX_DIM {
            return Err(Error::argument(format!(
                "mode {} has size {dim}; it must be 1 to {MAX_DIM}",
                n + 1
            )));
        }
    }
    Ok(())
}

pub(crate) fn check_order(order: usize) -> Result<()> {
    if (MIN_ORDER..=MAX_ORDER).contains(&order) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{order} modes; a tensor has {MIN_ORDER} to {MAX_ORDER} (a matrix has 2)"
    )))
}
