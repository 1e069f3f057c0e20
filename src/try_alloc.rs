//! Memory of the size of the data: if the system does not give it, that is an error, not the end of the
//! process.

use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// Room for `count` items; `what` are they?
pub(crate) fn try_with_capacity<T>(count: usize, what: &str) -> Result<Vec<T>> {
    let mut items = Vec::new();
    items
        .try_reserve_exact(count)
        .map_err(|_| Error::out_of_memory(count, what))?;
    Ok(items)
}

/// `count` zeros; pages that are never written cost nothing.
pub(crate) fn try_zeroed<T: Zeroable>(count: usize, what: &str) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| Error::out_of_memory(count, what))
}

/// A copy.
pub(crate) fn try_to_vec<T: Copy>(from: &[T], what: &str) -> Result<Vec<T>> {
    try_collect(from.len(), from.iter().copied(), what)
}

/// The first `count` items.
pub(crate) fn try_collect<T>(
    count: usize,
    items: impl Iterator<Item = T>,
    what: &str,
) -> Result<Vec<T>> {
    let mut made = try_with_capacity(count, what)?;
    made.extend(items.take(count));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::io::ErrorKind;

    #[test]
    fn what_no_memory_holds_is_an_error() {
        // Looked at, or the compiler would ask for nothing.
        let look = |memory: Vec<u64>| drop(black_box(memory));
        let made = [
            try_with_capacity(1 << 60, "entries").map(look),
            try_with_capacity(1 << 50, "entries").map(look),
            try_zeroed(1 << 60, "entries").map(look),
            try_zeroed(1 << 50, "entries").map(look),
        ];
        for result in made {
            match result {
                Err(Error::Io { source, action }) => {
                    assert_eq!(source.kind(), ErrorKind::OutOfMemory);
                    assert!(action.contains("entries"), "{action}");
                }
                _ => panic!("it was given"),
            }
        }
        assert_eq!(try_zeroed::<f32>(3, "rows").unwrap(), [0.0; 3]);
        assert_eq!(try_to_vec(&[1, 2], "rows").unwrap(), [1, 2]);
    }
}
