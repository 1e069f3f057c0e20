//! Float buffers aligned to pairs of cache lines.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::try_alloc::try_zeroed;

/// Alignment in floats: two cache lines, which processors prefetch as a pair.
const PAIR: usize = 32;

/// A float buffer that starts at a multiple of 128 bytes and shares its cache lines with nothing else.
#[derive(Default)]
pub(crate) struct AlignedVec {
    memory: Vec<f32>,
    start: usize,
    len: usize,
}

impl AlignedVec {
    pub(crate) fn zeroed(len: usize) -> AlignedVec {
        AlignedVec::in_memory(vec![0.0; with_room(len)], len)
    }

    /// Allocates `len` zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated; the message names `what`.
    pub(crate) fn try_zeroed(len: usize, what: &str) -> Result<AlignedVec> {
        Ok(AlignedVec::in_memory(
            try_zeroed(with_room(len), what)?,
            len,
        ))
    }

    fn in_memory(memory: Vec<f32>, len: usize) -> AlignedVec {
        let start = memory.as_ptr().align_offset(PAIR * size_of::<f32>());
        AlignedVec {
            // Where `align_offset` gives no answer, as under Miri, the buffer is unaligned. Only speed depends
            // on it.
            start: if start < PAIR { start } else { 0 },
            memory,
            len,
        }
    }
}

/// Returns the number of floats to allocate for `len` aligned ones.
fn with_room(len: usize) -> usize {
    len.next_multiple_of(PAIR) + PAIR
}

impl From<&[f32]> for AlignedVec {
    fn from(numbers: &[f32]) -> AlignedVec {
        let mut aligned = AlignedVec::zeroed(numbers.len());
        aligned.copy_from_slice(numbers);
        aligned
    }
}

impl Clone for AlignedVec {
    fn clone(&self) -> AlignedVec {
        AlignedVec::from(&**self)
    }
}

impl Deref for AlignedVec {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedVec {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_a_line_and_is_as_long_as_asked_for() {
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
