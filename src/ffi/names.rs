//! Names of the rows of a mode.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use super::arg::{given, hand_over, path, place, text, text_out};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::status::Outcome;
use crate::discover::find_by_name;
use crate::format::Names;

use crate::kernel::MAX_ORDER;

/// Names of the rows of a mode. Immutable. Rows count from 0.
pub struct NamesHandle {
    names: Names,
}

pub(super) fn of(names: Option<&NamesHandle>) -> Outcome<&Names> {
    Ok(&given(names, "names")?.names)
}

/// Reads a names file: TSV or CSV with the number of a row, from 1, in the first column and its name in the second. A
/// first line that does not begin with a number is a header. Free the result with s3cmtf_names_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_names_open(
    path: *const c_char,
    names: Option<&mut MaybeUninit<*mut NamesHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(names, "names")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let names = Names::load(path)?;
        hand_over(out, NamesHandle { names });
        Ok(())
    })
}

/// Reads the names file of a mode that s3cmtf_coo_convert() wrote beside a data file, such as ratings.mode1.tsv beside
/// ratings.coo. `path` is the data file, or another file with the same beginning, such as ratings.train.coo or
/// ratings.s3m. Stores NULL if there is no names file. Free the result with s3cmtf_names_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_names_open_beside(
    path: *const c_char,
    mode: u64,
    names: Option<&mut MaybeUninit<*mut NamesHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(names, "names")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let mode = place(mode, MAX_ORDER, "mode")?;
        match Names::load_beside(&path, mode)? {
            Some(names) => hand_over(out, NamesHandle { names }),
            None => {
                out.write(null_mut());
            }
        }
        Ok(())
    })
}

/// Gets the last row with a name, plus 1; 0 if there are no names.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_names_get_count(
    names: Option<&NamesHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (names, out) = (of(names)?, given(count, "count")?);
        out.write(names.len() as u64);
        Ok(())
    })
}

/// Copies the name of a row, with its terminating NUL, into `name`, which has room for `capacity` bytes. `needed` is its
/// size in bytes with the NUL and may be NULL. With `name` NULL and `capacity` 0 only `needed` is written. The name is
/// empty if the row has none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_names_get(
    names: Option<&NamesHandle>,
    row: u64,
    name: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let found = of(names)?.name(row).unwrap_or_default();
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(found, name, capacity, needed, "name") }
    })
}

/// Finds the first row with a name. S3CMTF_BAD_ARGUMENT if no row has it; the message suggests similar names.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_names_find(
    names: Option<&NamesHandle>,
    name: *const c_char,
    row: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (names, out) = (of(names)?, given(row, "row")?);
        // SAFETY: a text of the caller, for this call.
        let name = unsafe { text(name, "name") }?;
        out.write(u64::from(find_by_name(names, name, "row")?));
        Ok(())
    })
}

/// Frees names. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_names_free(names: Option<Box<NamesHandle>>) {
    release(|| drop(names));
}
