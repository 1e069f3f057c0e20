//! How text is read.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;

use super::arg::{given, hand_over, text};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use crate::format::TextOptions;

/// How text files are read: their format, sizes and columns. Without one (NULL) the format is found from
/// the name and the content, indices count from 1, and of CSV and TSV the last column is the value and all
/// others are indices.
pub struct TextHandle {
    pub(super) options: TextOptions,
}

/// Makes options for reading text, to be freed with s3cmtf_text_free().
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

/// Sets an option by name, as on the command line:
/// "from" (tns, mtx, csv or tsv), "dims" (sizes of the modes, separated by commas),
/// "zero_based", "no_value" (every value is 1), "weighted" (true or false), "values" (f32 or f64: how they
/// are stored), and for CSV and TSV "columns" (the index columns, separated by commas), "value" and "weight"
/// (columns), "strings" (columns whose ids are words even if they look like numbers, or all), "names"
/// ("MODE:FILE" from an earlier conversion, the mode counted from 0, may be set more than once),
/// "delimiter", "no_header".
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

/// Frees options for reading text. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_text_free(text: Option<Box<TextHandle>>) {
    release(|| drop(text));
}

/// The options of a handle that may be missing.
pub(super) fn text_options(handle: Option<&TextHandle>) -> TextOptions {
    handle.map_or_else(TextOptions::default, |t| t.options.clone())
}
