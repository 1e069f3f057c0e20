//! Descriptions of arrays in memory of the caller.
#![allow(unsafe_code)]

use std::ffi::c_void;

use super::arg::SizedStruct;

/// Indices are uint32_t. (Index and value types have different numbers, so that a mix-up is an error.)
pub const S3CMTF_U32: i32 = 1;
/// Indices are uint64_t.
pub const S3CMTF_U64: i32 = 2;
/// Values are float.
pub const S3CMTF_F32: i32 = 3;
/// Values are double.
pub const S3CMTF_F64: i32 = 4;

/// Indices of cells, one array per mode. This struct will not change in later versions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IndexArrays {
    /// One pointer per mode: modes[n][i * stride] is the index of cell i in mode n.
    pub modes: *const *const c_void,
    /// The number of cells.
    pub count: u64,
    /// The distance between the indices of consecutive cells, in numbers; 0 means 1. It is 1 for a separate array per
    /// mode, and the number of modes for an array of records.
    pub stride: u64,
    /// S3CMTF_U32 or S3CMTF_U64.
    pub r#type: i32,
    /// The first index: 0 or 1.
    pub base: i32,
}

/// The entries of a sparse tensor or matrix.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entries {
    /// sizeof(s3cmtf_entries).
    pub size: u64,
    /// The number of modes; 2 for a matrix.
    pub order: u64,
    /// The size of each mode, or NULL for the largest index of each.
    pub dims: *const u64,
    /// The indices of the entries.
    pub indices: IndexArrays,
    /// One value per entry.
    pub values: *const c_void,
    /// One weight per entry, or NULL if all are 1. The squared error of an entry is multiplied by its weight.
    pub weights: *const c_void,
    /// The type of the values: S3CMTF_F32 or S3CMTF_F64.
    pub value_type: i32,
    /// The type of the weights, if there are any: S3CMTF_F32 or S3CMTF_F64.
    pub weight_type: i32,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(IndexArrays, count) == 8);
    assert!(offset_of!(IndexArrays, stride) == 16);
    assert!(offset_of!(IndexArrays, r#type) == 24);
    assert!(offset_of!(IndexArrays, base) == 28);
    assert!(size_of::<IndexArrays>() == 32);
    assert!(offset_of!(Entries, order) == 8);
    assert!(offset_of!(Entries, dims) == 16);
    assert!(offset_of!(Entries, indices) == 24);
    assert!(offset_of!(Entries, values) == 56);
    assert!(offset_of!(Entries, weights) == 64);
    assert!(offset_of!(Entries, value_type) == 72);
    assert!(offset_of!(Entries, weight_type) == 76);
    assert!(size_of::<Entries>() == 80);
};

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl SizedStruct for Entries {}
