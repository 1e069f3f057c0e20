//! Tables written into buffers of the caller, one for each column.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{buffer, given, place};
use super::status::Outcome;

/// A buffer, what to write into it, and its name. A buffer that is NULL is not wanted.
pub(super) type Column<'a, T> = (*mut T, &'a dyn Fn(usize) -> T, &'a str);

/// What a function that copies a table says of it: how many items it has, and its columns.
pub(super) struct Table<'a> {
    pub count: usize,
    pub integers: &'a [Column<'a, u64>],
    pub reals: &'a [Column<'a, f64>],
}

impl Table<'_> {
    /// Writes all items into each buffer and their number to `found`, or nothing at all if a buffer has no room.
    ///
    /// # Safety
    /// Buffers that are not NULL and aligned have room for `capacity` items that nobody else uses.
    pub(super) unsafe fn copy(
        &self,
        capacity: u64,
        found: Option<&mut MaybeUninit<u64>>,
    ) -> Outcome {
        let found = given(found, "found")?;
        // SAFETY: the caller's promise.
        unsafe {
            check(self.count, self.integers, capacity)?;
            check(self.count, self.reals, capacity)?;
            write(self.count, self.integers, capacity)?;
            write(self.count, self.reals, capacity)?;
        }
        found.write(self.count as u64);
        Ok(())
    }
}

/// One of a list.
pub(super) fn one_of<T>(list: &[T], index: u64) -> Outcome<&T> {
    Ok(&list[place(index, list.len(), "index")?])
}

/// # Safety
/// As above.
unsafe fn check<T>(count: usize, columns: &[Column<'_, T>], capacity: u64) -> Outcome {
    for (to, _, what) in columns.iter().filter(|c| !c.0.is_null()) {
        // SAFETY: the caller's promise.
        unsafe { buffer(*to, capacity, count, what) }?;
    }
    Ok(())
}

/// # Safety
/// As above.
unsafe fn write<T>(count: usize, columns: &[Column<'_, T>], capacity: u64) -> Outcome {
    for (to, item, what) in columns.iter().filter(|c| !c.0.is_null()) {
        // SAFETY: the caller's promise.
        let to = unsafe { buffer(*to, capacity, count, what) }?;
        to.iter_mut().enumerate().for_each(|(k, to)| {
            to.write(item(k));
        });
    }
    Ok(())
}
