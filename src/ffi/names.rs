//! Names of rows.
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

/// The names of the rows of a mode. It never changes, so that every function that takes it as const may run
/// concurrently. Rows count from 0.
pub struct NamesHandle {
    names: Names,
}

pub(super) fn of(names: Option<&NamesHandle>) -> Outcome<&Names> {
    Ok(&given(names, "names")?.names)
}

/// Reads a file of names: TSV or CSV with the number of a row, counted from 1, in the first column and its name in the
/// second. A first line without a number is a heading. Free with s3cmtf_names_free().
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

/// Reads the names of a mode that were left beside a data file when text was converted, or beside a model of the same
/// name; NULL is written if there are none. Free with s3cmtf_names_free().
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

/// One more than the last row with a name.
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

/// Writes the name of a row and the NUL behind it into `name`, which has room for `capacity` bytes, and how many bytes
/// that is into `needed` (which may be NULL). With `name` NULL and `capacity` 0 it only says how many. A row without a
/// name has an empty one.
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

/// Finds the row with a name; the first if there are several. A name that no row has is S3CMTF_BAD_ARGUMENT, and the
/// message suggests the nearest.
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
