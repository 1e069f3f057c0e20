//! Arguments from C: the one place that believes a pointer and a length, after checking what can be
//! checked.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::status::{Failure, Outcome, S3CMTF_BUFFER_TOO_SMALL, S3CMTF_NULL_ARGUMENT};
use crate::printable::printable_lines;

/// An argument that must be there.
pub(super) fn given<T>(argument: Option<T>, what: &str) -> Outcome<T> {
    argument.ok_or_else(|| null(what))
}

pub(super) fn null(what: &str) -> Failure {
    Failure::new(S3CMTF_NULL_ARGUMENT, format!("{what} must not be NULL"))
}

/// Gives a new object to C, which will give it back to be freed.
pub(super) fn hand_over<T>(out: &mut MaybeUninit<*mut T>, object: T) {
    out.write(Box::into_raw(Box::new(object)));
}

/// Checks a pointer to `len` items and returns the length.
fn checked<T>(pointer: *const T, len: u64, what: &str) -> Outcome<usize> {
    if pointer.is_null() {
        return Err(null(what));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!(
            "{what} is not aligned to {} bytes, as its type must be",
            align_of::<T>()
        )));
    }
    usize::try_from(len)
        .ok()
        .filter(|len| {
            len.checked_mul(size_of::<T>())
                .is_some_and(|bytes| bytes <= isize::MAX as usize)
        })
        .ok_or_else(|| {
            Failure::argument(format!(
                "{what} cannot have {len} items; no memory is that large"
            ))
        })
}

/// An array of the caller. No items need no array.
///
/// # Safety
/// If `pointer` is not NULL and aligned, it points to `len` items that stay as they are for `'a`.
pub(super) unsafe fn slice<'a, T>(pointer: *const T, len: u64, what: &str) -> Outcome<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    let len = checked(pointer, len, what)?;
    // SAFETY: not NULL, aligned, no longer than memory, and the caller's promise for the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// Checks a pointer to `len` items that will be read one by one.
pub(super) fn array<T>(pointer: *const T, len: u64, what: &str) -> Outcome<*const T> {
    checked(pointer, len, what)?;
    Ok(pointer)
}

/// A buffer of the caller with room for `capacity` items, of which `needed` will be written. Nothing needs
/// no buffer.
///
/// # Safety
/// If `pointer` is not NULL and aligned, it points to room for `capacity` items that nobody else uses for
/// `'a`.
pub(super) unsafe fn buffer<'a, T>(
    pointer: *mut T,
    capacity: u64,
    needed: usize,
    what: &str,
) -> Outcome<&'a mut [MaybeUninit<T>]> {
    if needed == 0 {
        return Ok(&mut []);
    }
    let len = checked(pointer, capacity, what)?;
    if len < needed {
        return Err(Failure::new(
            S3CMTF_BUFFER_TOO_SMALL,
            format!("{what} has room for {len} items; {needed} will be written"),
        ));
    }
    // SAFETY: not NULL, aligned, no longer than memory, and the caller's promise for the rest; items that
    // may be uninitialized are always valid.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast::<MaybeUninit<T>>(), needed) })
}

/// Returns a buffer of the caller for all of `needed` items, or an empty one if the caller passes NULL.
///
/// # Safety
/// As [`buffer`].
pub(super) unsafe fn optional_buffer<'a, T>(
    pointer: *mut T,
    capacity: u64,
    needed: usize,
    what: &str,
) -> Outcome<&'a mut [MaybeUninit<T>]> {
    let needed = if pointer.is_null() { 0 } else { needed };
    // SAFETY: the caller's promise.
    unsafe { buffer(pointer, capacity, needed, what) }
}

/// Copies items into a buffer of the caller.
///
/// # Safety
/// As [`buffer`].
pub(super) unsafe fn copy_out<T: Copy>(
    items: &[T],
    pointer: *mut T,
    capacity: u64,
    what: &str,
) -> Outcome {
    // SAFETY: the caller's promise.
    let to = unsafe { buffer(pointer, capacity, items.len(), what) }?;
    to.iter_mut().zip(items).for_each(|(to, &item)| {
        to.write(item);
    });
    Ok(())
}

/// A text in UTF-8.
///
/// # Safety
/// If not NULL, `pointer` is a text that ends in NUL and stays as it is for `'a`.
pub(super) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, and the caller's promise for the rest.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// A file name. It may have any bytes where the system's names may.
///
/// # Safety
/// As [`text`].
pub(super) unsafe fn path(pointer: *const c_char, what: &str) -> Outcome<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        if pointer.is_null() {
            return Err(null(what));
        }
        // SAFETY: not NULL, and the caller's promise for the rest.
        let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
        Ok(std::ffi::OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    // SAFETY: the caller's promise.
    Ok(unsafe { text(pointer, what) }?.into())
}

/// The same where NULL means none.
///
/// # Safety
/// As [`text`].
pub(super) unsafe fn optional_path(pointer: *const c_char) -> Outcome<Option<PathBuf>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { path(pointer, "path") }.map(Some)
}

/// Writes a text and the NUL behind it, and how many bytes that is. With no buffer for 0 bytes it only says
/// how many.
///
/// # Safety
/// As [`buffer`].
pub(super) unsafe fn text_out(
    text: &str,
    pointer: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    what: &str,
) -> Outcome {
    let bytes = c_text(text).into_bytes_with_nul();
    let written = match (pointer.is_null(), capacity) {
        (true, 0) => 0,
        _ => bytes.len(),
    };
    // SAFETY: the caller's promise.
    let to = unsafe { buffer(pointer, capacity, written, what) }?;
    to.iter_mut().zip(&bytes).for_each(|(to, &byte)| {
        to.write(byte as c_char);
    });
    needed.map(|out| out.write(bytes.len() as u64));
    Ok(())
}

/// Structs that may grow at their end in later versions, and therefore begin with their size in bytes.
///
/// # Safety
/// `#[repr(C)]`; the first field is the size, a `u64`; zero bytes are a valid value of all fields.
pub(super) unsafe trait SizedStruct: Copy {}

/// Reads the size of a struct of the caller.
///
/// # Safety
/// If not NULL and aligned, `pointer` is valid for reading its first field.
unsafe fn struct_size<T: SizedStruct>(pointer: *const T, what: &str) -> Outcome<usize> {
    if pointer.is_null() {
        return Err(null(what));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned")));
    }
    // SAFETY: not NULL, aligned, and the caller's promise.
    let size = unsafe { pointer.cast::<u64>().read() };
    if size < size_of::<u64>() as u64 {
        return Err(Failure::argument(format!(
            "{what}->size is {size}; set it to sizeof(*{what}) before the call"
        )));
    }
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

/// Returns a copy of a struct of the caller. Fields that an older caller does not have are 0.
///
/// # Safety
/// If not NULL and aligned, `pointer` points to a struct of the size it contains.
pub(super) unsafe fn struct_in<T: SizedStruct>(pointer: *const T, what: &str) -> Outcome<T> {
    /// A newer caller's struct is not longer than this.
    const MAX_SIZE: usize = 1 << 16;
    // SAFETY: the caller's promise.
    let size = unsafe { struct_size(pointer, what) }?;
    if size > MAX_SIZE {
        return Err(Failure::argument(format!(
            "{what}->size is {size}; it must be sizeof(*{what})"
        )));
    }
    let known = size.min(size_of::<T>());
    let mut own = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's struct has `size` bytes, ours at least `known`; zero bytes and a C value of a field are both
    // valid.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), known);
        let beyond = std::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known);
        if beyond.iter().any(|&byte| byte != 0) {
            return Err(Failure::argument(format!(
                "{what} has fields that this version of the library, {}, does not have; they must be 0, or the program \
                 needs a newer library",
                env!("CARGO_PKG_VERSION")
            )));
        }
        Ok(own.assume_init())
    }
}

/// Returns a copy of a struct that may be NULL, which means that all its fields are 0.
///
/// # Safety
/// As [`struct_in`].
pub(super) unsafe fn optional_struct_in<T: SizedStruct>(
    pointer: *const T,
    what: &str,
) -> Outcome<T> {
    if pointer.is_null() {
        // SAFETY: zero bytes are a valid value.
        return Ok(unsafe { MaybeUninit::zeroed().assume_init() });
    }
    // SAFETY: the caller's promise.
    unsafe { struct_in(pointer, what) }
}

/// Checks an output struct before the work whose result it receives.
///
/// # Safety
/// As [`struct_out`].
pub(super) unsafe fn require_struct<T: SizedStruct>(to: *mut T, what: &str) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { struct_size(to.cast_const(), what) }.map(|_| ())
}

/// Writes as much of a struct as the caller's has room for, and sets its size to that.
///
/// # Safety
/// If not NULL and aligned, `to` points to a struct of the size it contains, which nobody else uses.
pub(super) unsafe fn struct_out<T: SizedStruct>(own: &T, to: *mut T, what: &str) -> Outcome {
    // SAFETY: the caller's promise.
    let size = unsafe { struct_size(to.cast_const(), what) }?.min(size_of::<T>());
    // SAFETY: both have that many bytes, the size first.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *own).cast::<u8>(), to.cast::<u8>(), size);
        to.cast::<u64>().write(size as u64);
    }
    Ok(())
}

/// An object that a struct of the caller points to, or none.
///
/// # Safety
/// If not NULL, `pointer` is an object of this library that lives for `'a`.
pub(super) unsafe fn object<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }
}

/// One of a list of numbers.
pub(super) fn choice<T: Copy>(number: i32, list: &[(i32, T)], what: &str) -> Outcome<T> {
    list.iter()
        .find(|(n, _)| *n == number)
        .map(|(_, item)| *item)
        .ok_or_else(|| {
            Failure::argument(format!("{what} is {number}, which is none of its values"))
        })
}

/// True or false.
pub(super) fn flag(number: i32, what: &str) -> Outcome<bool> {
    choice(number, &[(0, false), (1, true)], what)
}

/// A place in a list of `len`.
pub(super) fn place(index: u64, len: usize, what: &str) -> Outcome<usize> {
    usize::try_from(index)
        .ok()
        .filter(|&i| i < len)
        .ok_or_else(|| {
            Failure::argument(match len {
                0 => format!("{what} is {index}, but there is none"),
                _ => format!("{what} is {index}; it must be 0 to {}", len - 1),
            })
        })
}

/// A number of threads; 0 means all that the process may use.
pub(super) fn threads(threads: u64, what: &str) -> Outcome<usize> {
    match usize::try_from(threads) {
        Ok(n) if n <= 4096 => Ok(n),
        _ => Err(Failure::argument(format!(
            "{what} is {threads}; it must be 0 to 4096"
        ))),
    }
}

/// A name of a list as a constant text for C; all are made once.
pub(super) fn name_of(
    list: &[&str],
    made: &'static OnceLock<Vec<CString>>,
    index: u64,
) -> Outcome<*const c_char> {
    let names = made.get_or_init(|| list.iter().map(|name| c_text(name)).collect());
    Ok(names[place(index, names.len(), "index")?].as_ptr())
}

/// A message for C, which may quote names.
pub(super) fn c_message(message: &str) -> CString {
    c_text(&printable_lines(message))
}

/// A text for C. A NUL, which a name may have, is replaced.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
