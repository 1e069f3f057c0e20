//! Tables written into buffers of the caller, one for each column.
#![allow(unsafe_code)]

use super::arg::buffer;
use super::status::Outcome;

/// A buffer, what to write into it, and its name. A buffer that is NULL is not wanted.
pub(super) type Column<'a, T> = (*mut T, &'a dyn Fn(usize) -> T, &'a str);

/// Writes `count` items into each buffer, or nothing at all if one has no room.
///
/// # Safety
/// Buffers that are not NULL and aligned have room for `capacity` items that nobody else uses.
pub(super) unsafe fn copy_columns(
    count: usize,
    integers: &[Column<'_, u64>],
    reals: &[Column<'_, f64>],
    capacity: u64,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        check(count, integers, capacity)?;
        check(count, reals, capacity)?;
        write(count, integers, capacity)?;
        write(count, reals, capacity)
    }
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
