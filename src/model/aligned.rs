//! Floats for working on, aligned to cache lines.

use std::ops::{Deref, DerefMut};

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
        let memory = vec![0.0f32; len.next_multiple_of(PAIR) + PAIR];
        let start = memory.as_ptr().align_offset(PAIR * size_of::<f32>());
        Aligned {
            // Where alignment cannot be had, as in an interpreter, nothing but speed is lost.
            start: if start < PAIR { start } else { 0 },
            memory,
            len,
        }
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
