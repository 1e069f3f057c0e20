//! Options of reading text files.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;

use super::arg::{given, hand_over, text};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use crate::format::TextOptions;

/// Options of reading text files. By default, or where it is NULL, the format is detected from the file name and the
/// contents, indices count from 1, and in CSV and TSV all columns but the value are indices.
pub struct TextHandle {
    pub(super) options: TextOptions,
}

/// Creates default options of reading text; free them with s3cmtf_text_free().
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_text_new(
    text: Option<&mut MaybeUninit<*mut TextHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(text, "text")?;
        hand_over(
            out,
            TextHandle {
                options: TextOptions::default(),
            },
        );
        Ok(())
    })
}

/// Sets an option. S3CMTF_BAD_ARGUMENT for an unknown name or a bad value. Flags are "true" or "false", lists are
/// separated by commas. All files:
/// - "from": the format: tns, mtx, csv or tsv
/// - "dims": list of the sizes of the modes; by default the largest indices
/// - "zero_based": flag: indices count from 0
/// - "no_value": flag: there is no value column; every value is 1
/// - "weighted": flag: a weight follows each value in .tns
/// - "values": stored type of values: f32 or f64
///
/// CSV and TSV; a COLUMN is a name in the header or a number from 1, a MODE counts from 0:
/// - "columns": list of the index columns, one per mode; by default all but value and weight
/// - "value": the value column; by default the only one that "columns" leaves, else the one called rating, value, stars,
///   score or count, else the only one with numbers; without a header the last
/// - "weight": the weight column
/// - "strings": list of columns whose ids are strings even if they look like numbers; or "all"
/// - "names": MODE:FILE, a names file of an earlier conversion, so that ids keep their rows; adds one
/// - "delimiter": the separator of columns, one ASCII character
/// - "no_header": flag: the first line is data; otherwise it must have names
///
/// CSV and TSV, only for s3cmtf_coo_convert():
/// - "time": `COLUMN:UNIT[:FORMAT]`, groups times by year, quarter, month, week, day, hour, weekday or hour-of-week; the
///   format is s, ms or iso, by default detected; adds one
/// - "bin": COLUMN:quantiles=N, COLUMN:width=W or COLUMN:log=B, groups numbers; adds one
/// - "split": COLUMN:SEPARATOR, a column with several ids per field, each of which gives an entry; adds one
/// - "rows_of": MODE:FILE, reads an attribute table into a matrix: the first index column has ids of rows of this mode of
///   the binary file FILE, the others give the columns of the matrix
/// - "numeric": with rows_of, list of columns whose numbers are values of the matrix
/// - "missing": the text of a missing field, such as NA; lines with it are skipped
/// - "skip_bad_lines": flag: invalid lines are skipped instead of S3CMTF_BAD_FILE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_text_set(
    text: Option<&mut TextHandle>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(text, "text")?;
        // SAFETY: texts of the caller, for this call.
        let (name, value) = unsafe { (self::text(name, "name")?, self::text(value, "value")?) };
        Ok(handle.options.set(name, value)?)
    })
}

/// Frees options of reading text. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_text_free(text: Option<Box<TextHandle>>) {
    release(|| drop(text));
}

/// Returns the options of a handle, or the default.
pub(super) fn text_options(handle: Option<&TextHandle>) -> TextOptions {
    handle.map_or_else(TextOptions::default, |t| t.options.clone())
}
