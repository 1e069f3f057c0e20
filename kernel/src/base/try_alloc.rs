//! Fallible allocation for memory of the size of the data: a failure is an error instead of an abort.

use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// What error messages call the elements of a core and of buffers of its size.
pub const CORE_ENTRIES: &str = "core entries";

/// Returns an empty vector with capacity for `count` items. Error messages call them `items`.
pub fn try_with_capacity<T>(count: usize, items: &str) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    try_reserve(&mut vector, count, items)?;
    Ok(vector)
}

/// Reserves capacity for at least `count` more items.
pub fn try_reserve<T>(vector: &mut Vec<T>, count: usize, items: &str) -> Result<()> {
    vector
        .try_reserve_exact(count)
        .map_err(|_| Error::out_of_memory(count, items))
}

/// Returns `count` zeros. Pages that are never written take no memory.
pub fn try_zeroed<T: Zeroable>(count: usize, items: &str) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| Error::out_of_memory(count, items))
}

/// Returns a copy of a slice.
pub fn try_to_vec<T: Copy>(from: &[T], items: &str) -> Result<Vec<T>> {
    // Not `try_collect`, which is several times slower than a copy of memory.
    let mut copy = try_with_capacity(from.len(), items)?;
    copy.extend_from_slice(from);
    Ok(copy)
}

/// Returns a copy of several slices, one after the other.
pub fn try_concat<T: Copy>(parts: &[&[T]], items: &str) -> Result<Vec<T>> {
    let mut all = try_with_capacity(parts.iter().map(|part| part.len()).sum(), items)?;
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(all)
}

/// Returns a copy of each of several vectors.
pub fn try_copies<T: Copy>(from: &[Vec<T>], items: &str) -> Result<Vec<Vec<T>>> {
    from.iter().map(|v| try_to_vec(v, items)).collect()
}

/// Collects the first `count` items of an iterator.
pub fn try_collect<T>(
    count: usize,
    iterator: impl Iterator<Item = T>,
    items: &str,
) -> Result<Vec<T>> {
    let mut vector = try_with_capacity(count, items)?;
    vector.extend(iterator.take(count));
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::io::ErrorKind;

    #[test]
    fn impossible_allocations_are_errors() {
        // Miri has no limit but that of its own process, which it exceeds with an error of its own.
        let large = if cfg!(miri) { 1 << 60 } else { 1 << 50 };
        // Without `black_box` the compiler could remove the allocations.
        let consume = |memory: Vec<u64>| drop(black_box(memory));
        let results = [
            try_with_capacity(1 << 60, "entries").map(consume),
            try_with_capacity(large, "entries").map(consume),
            try_zeroed(1 << 60, "entries").map(consume),
            try_zeroed(large, "entries").map(consume),
        ];
        for result in results {
            match result {
                Err(Error::Io { source, action }) => {
                    assert_eq!(source.kind(), ErrorKind::OutOfMemory);
                    assert!(action.contains("entries"), "{action}");
                }
                _ => panic!("the allocation succeeded"),
            }
        }
        assert_eq!(try_zeroed::<f32>(3, "rows").unwrap(), [0.0; 3]);
        assert_eq!(try_to_vec(&[1, 2], "rows").unwrap(), [1, 2]);
    }
}
