//! Floats for working on, aligned to cache lines.

use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::format::zeros;

/// Two cache lines: processors fetch pairs of them.
const PAIR: usize = 32;

/// Floats that begin a pair of cache lines, which nothing else lies in.
#[derive(Default)]
pub(crate) struct Aligned {
    memory: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeros(len: usize) -> Aligned {
        Aligned::in_memory(vec![0.0; with_room(len)], len)
    }

    /// The same, of numbers that may not fit in memory.
    pub(crate) fn try_zeros(len: usize, what: &str) -> Result<Aligned> {
        Ok(Aligned::in_memory(zeros(with_room(len), what)?, len))
    }

    fn in_memory(memory: Vec<f32>, len: usize) -> Aligned {
        let start = memory.as_ptr().align_offset(PAIR * size_of::<f32>());
        Aligned {
            // Where alignment cannot be had, as in an interpreter, nothing but speed is lost.
            start: if start < PAIR { start } else { 0 },
            memory,
            len,
        }
    }
}

/// Numbers to allocate for so many aligned ones.
fn with_room(len: usize) -> usize {
    len.next_multiple_of(PAIR) + PAIR
}

impl From<&[f32]> for Aligned {
    fn from(numbers: &[f32]) -> Aligned {
        let mut aligned = Aligned::zeros(numbers.len());
        aligned.copy_from_slice(numbers);
        aligned
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Aligned {
        Aligned::from(&**self)
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
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
            let mut a = Aligned::zeros(len);
            assert_eq!(a.len(), len);
            a.fill(1.0);
            assert!(a.iter().all(|&x| x == 1.0));
            if !cfg!(miri) {
                assert!(a.as_ptr().addr().is_multiple_of(128));
            }
        }
    }
}
