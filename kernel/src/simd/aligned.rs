//! Float buffers aligned to pairs of cache lines.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::try_alloc::try_zeroed;

/// Alignment in floats: two cache lines, which processors prefetch as a pair.
const ALIGNMENT: usize = 32;

/// A float buffer that starts at a multiple of 128 bytes and shares its cache lines with nothing else.
#[derive(Default)]
pub struct AlignedVec {
    memory: Vec<f32>,
    start: usize,
    len: usize,
}

impl AlignedVec {
    /// Allocates `len` zeros; aborts the process if that fails. For buffers of a few rows only.
    pub fn zeroed(len: usize) -> AlignedVec {
        AlignedVec::from_memory(vec![0.0; allocated_len(len)], len)
    }

    /// Allocates `len` zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated; the message names `what`.
    pub fn try_zeroed(len: usize, what: &str) -> Result<AlignedVec> {
        Ok(AlignedVec::from_memory(
            try_zeroed(allocated_len(len), what)?,
            len,
        ))
    }

    /// Copies floats.
    ///
    /// # Errors
    /// If the memory cannot be allocated; the message names `what`.
    pub fn try_from_slice(values: &[f32], what: &str) -> Result<AlignedVec> {
        let mut aligned = AlignedVec::try_zeroed(values.len(), what)?;
        aligned.copy_from_slice(values);
        Ok(aligned)
    }

    fn from_memory(memory: Vec<f32>, len: usize) -> AlignedVec {
        let start = memory.as_ptr().align_offset(ALIGNMENT * size_of::<f32>());
        AlignedVec {
            // Where `align_offset` gives no answer, as under Miri, the buffer is unaligned. Only speed depends
            // on it.
            start: if start < ALIGNMENT { start } else { 0 },
            memory,
            len,
        }
    }
}

/// Returns the number of floats to allocate for `len` aligned ones.
fn allocated_len(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT) + ALIGNMENT
}

impl Deref for AlignedVec {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedVec {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_aligned_and_has_the_requested_length() {
        for len in [0, 1, 16, 33, 1000] {
            let mut a = AlignedVec::zeroed(len);
            assert_eq!(a.len(), len);
            a.fill(1.0);
            assert!(a.iter().all(|&x| x == 1.0));
            if !cfg!(miri) {
                assert!(a.as_ptr().addr().is_multiple_of(128));
            }
        }
    }
}
