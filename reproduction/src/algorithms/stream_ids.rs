//! Purposes of random numbers, which no stream of the library has.

/// Random columns of orthonormal bases.
pub(super) const BASIS: u64 = 112;
