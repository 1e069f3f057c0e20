//! Types of indices and values in arrays of the caller.

/// Indices are uint32_t. (Types of indices and of values have different numbers, so that a mix-up is found.)
pub const S3CMTF_U32: i32 = 1;
/// Indices are uint64_t.
pub const S3CMTF_U64: i32 = 2;
/// Values are float.
pub const S3CMTF_F32: i32 = 3;
/// Values are double.
pub const S3CMTF_F64: i32 = 4;
