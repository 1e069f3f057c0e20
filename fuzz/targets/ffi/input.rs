//! Arguments of calls, read from the bytes of an input.

use std::ffi::{CString, c_void};
use std::ptr;

use s3cmtf::ffi::c::*;

use super::Host;

/// The arrays of some entries.
pub(super) struct Arrays {
    dims: Vec<u64>,
    narrow: Vec<Vec<u32>>,
    wide: Vec<Vec<u64>>,
    pointers: Vec<*const c_void>,
    values: Numbers,
    weights: Numbers,
    pub(super) indices: IndexArrays,
}

/// Numbers of one of two types, in memory of exactly their length.
pub(super) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    None,
}

impl Numbers {
    pub(super) fn pointer(&self) -> *const c_void {
        match self {
            Numbers::F32(x) => x.as_ptr().cast(),
            Numbers::F64(x) => x.as_ptr().cast(),
            Numbers::None => ptr::null(),
        }
    }
}

/// A buffer for output with room for a number of 64-bit numbers.
pub(super) struct Buffer(Vec<u64>);

impl Buffer {
    pub(super) fn new(len: u64) -> Buffer {
        Buffer(vec![0; len as usize])
    }

    /// Returns the number of 64-bit numbers.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn pointer<T>(&mut self) -> *mut T {
        if self.0.is_empty() {
            ptr::null_mut()
        } else {
            self.0.as_mut_ptr().cast()
        }
    }
}

impl Host<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        let (&first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        first
    }

    pub(super) fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    /// Returns a number: mostly small, sometimes at a limit.
    pub(super) fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..=199 => u64::from(byte % 8),
            byte @ 200..=220 => u64::from(byte),
            221..=225 => u64::from(u32::MAX),
            226..=230 => u64::from(u32::MAX) - 1,
            231..=235 => u64::MAX,
            236..=240 => 1 << 63,
            241..=245 => 1 << 32,
            _ => u64::from(self.byte()) << self.below(64),
        }
    }

    pub(super) fn real(&mut self) -> f64 {
        match self.byte() {
            byte @ 0..=199 => f64::from(byte % 16) / 4.0,
            200..=205 => f64::NAN,
            206..=210 => f64::INFINITY,
            211..=215 => -1.0,
            216..=220 => 1e300,
            221..=225 => 3e38,
            226..=230 => 1e-300,
            231..=240 => 0.0,
            _ => f64::from(self.byte()) * 1e30,
        }
    }

    /// Returns a constant of the header, or a number that is none.
    pub(super) fn constant(&mut self) -> i32 {
        match self.byte() {
            byte @ 0..=249 => i32::from(byte % 5),
            250..=252 => -1,
            _ => i32::MAX,
        }
    }

    /// Returns the length of an array.
    pub(super) fn len(&mut self) -> u64 {
        u64::from(self.byte() % 24)
    }

    /// Returns a string up to the next zero byte, of at most 60 bytes.
    pub(super) fn string(&mut self) -> CString {
        let end = self.bytes.iter().take(60).position(|&b| b == 0);
        let end = end.unwrap_or(self.bytes.len().min(60));
        let (text, rest) = self.bytes.split_at(end);
        self.bytes = rest.strip_prefix(&[0]).unwrap_or(rest);
        CString::new(text).unwrap()
    }

    /// Returns the name of a file in the folder.
    pub(super) fn path(&mut self) -> CString {
        let names = [
            "a.coo", "b.coo", "c.tns", "d.s3m", "e.s3m", "missing", "out", "",
        ];
        let name = names[usize::from(self.below(8))];
        let path = self.folder.join(name).display().to_string();
        CString::new(path).unwrap()
    }

    pub(super) fn numbers(&mut self, kind: i32, len: u64) -> Numbers {
        let mut reals = (0..len).map(|_| self.real());
        match kind {
            S3CMTF_F32 => Numbers::F32(reals.map(|x| x as f32).collect()),
            S3CMTF_F64 => Numbers::F64(reals.collect()),
            // A type that does not exist is rejected before anything is read.
            _ => match reals.next() {
                None => Numbers::None,
                Some(first) => Numbers::F64(std::iter::once(first).chain(reals).collect()),
            },
        }
    }

    /// Returns arrays of indices of `order` modes and the number of cells.
    pub(super) fn indices(&mut self, order: u64) -> Arrays {
        let count = self.len();
        let stride = match self.below(4) {
            0 => 0,
            1 => 1,
            _ => u64::from(self.below(5)),
        };
        let kind = match self.below(8) {
            0 => self.constant(),
            byte => S3CMTF_U32 + i32::from(byte % 2),
        };
        let span = match count {
            0 => 0,
            count => (count - 1) * stride.max(1) + 1,
        };
        let mut arrays = Arrays {
            dims: Vec::new(),
            narrow: Vec::new(),
            wide: Vec::new(),
            pointers: Vec::new(),
            values: Numbers::None,
            weights: Numbers::None,
            indices: IndexArrays {
                modes: ptr::null(),
                count,
                stride,
                r#type: kind,
                base: i32::from(self.below(9) / 4),
            },
        };
        for _ in 0..order {
            let missing = self.below(40) == 39;
            let base = u64::from(arrays.indices.base == 1);
            let numbers: Vec<u64> = (0..span)
                .map(|_| match self.below(30) {
                    29 => self.number(),
                    byte => base + u64::from(byte % 4),
                })
                .collect();
            arrays.pointers.push(if missing {
                ptr::null()
            } else if kind == S3CMTF_U32 {
                arrays
                    .narrow
                    .push(numbers.iter().map(|&x| x as u32).collect());
                arrays
                    .narrow
                    .last()
                    .map_or(ptr::null(), |x| x.as_ptr().cast())
            } else {
                arrays.wide.push(numbers);
                arrays
                    .wide
                    .last()
                    .map_or(ptr::null(), |x| x.as_ptr().cast())
            });
        }
        arrays.indices.modes = arrays.pointers.as_ptr();
        // More cells than memory has room for must be refused before one is read.
        if self.below(50) == 49 && count > 1 {
            arrays.indices.count = u64::MAX - u64::from(self.below(4));
        }
        arrays
    }

    /// Returns the description of entries and their arrays.
    pub(super) fn entries(&mut self) -> (Entries, Arrays) {
        let order = match self.below(16) {
            0 => u64::from(self.below(10)),
            byte => 2 + u64::from(byte % 3),
        };
        let mut arrays = self.indices(order);
        let count = arrays.indices.count.min(24);
        let types: Vec<i32> = (0..2)
            .map(|_| match self.below(16) {
                0 => self.constant(),
                byte => S3CMTF_F32 + i32::from(byte % 2),
            })
            .collect();
        arrays.values = self.numbers(types[0], count);
        if self.below(4) == 0 {
            arrays.weights = self.numbers(types[1], count);
        }
        if self.below(2) == 0 {
            arrays.dims = (0..order)
                .map(|_| match self.below(4) {
                    0 => self.number(),
                    _ => 5,
                })
                .collect();
        }
        let entries = Entries {
            size: self.size(size_of::<Entries>()),
            order,
            dims: if arrays.dims.is_empty() {
                ptr::null()
            } else {
                arrays.dims.as_ptr()
            },
            indices: arrays.indices,
            values: arrays.values.pointer(),
            weights: arrays.weights.pointer(),
            value_type: types[0],
            weight_type: types[1],
        };
        (entries, arrays)
    }

    /// Returns the size of a struct, sometimes that of another version.
    pub(super) fn size(&mut self, size: usize) -> u64 {
        match self.below(30) {
            29 => u64::from(self.byte()).min(size as u64),
            _ => size as u64,
        }
    }
}
