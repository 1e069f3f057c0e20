//! Sparse tensors and matrices: checked, written, converted, split.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use super::arg::{buffer, choice, copy_out, given, path, place};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, Source, of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::value_kind;
use super::status::{Failure, Outcome};
use super::text::{TextHandle, text_options};
use crate::format::{
    self, CheckReport, DuplicatePolicy, Input, OpenMode, SplitOptions, SplitRule, ValueKind,
};
use crate::progress::Monitor;

/// Where s3cmtf_coo_check() counts sections of a file whose bytes do not match their checksum.
pub const S3CMTF_CHECK_DAMAGED: u64 = 0;
/// Where it counts entries with an index that is not below its size.
pub const S3CMTF_CHECK_OUT_OF_RANGE: u64 = 1;
/// Where it counts entries with a value or weight that is not finite, or a weight below 0.
pub const S3CMTF_CHECK_NOT_FINITE: u64 = 2;
/// Where it counts cells that are listed more than once.
pub const S3CMTF_CHECK_DUPLICATES: u64 = 3;
/// Where it counts entries that repeat a cell listed before them.
pub const S3CMTF_CHECK_SURPLUS: u64 = 4;
/// How many numbers s3cmtf_coo_check() has; grows in later versions.
pub const S3CMTF_CHECK_COUNTS: u64 = 5;

/// s3cmtf_coo_fix() keeps the mean of a cell listed more than once.
pub const S3CMTF_KEEP_MEAN: i32 = 0;
/// It keeps the first entry of such a cell.
pub const S3CMTF_KEEP_FIRST: i32 = 1;
/// It keeps the last.
pub const S3CMTF_KEEP_LAST: i32 = 2;

/// For s3cmtf_coo_split(): no mode, so that entries are held out at random.
pub const S3CMTF_NO_MODE: u64 = u64::MAX;

/// Looks at every entry, and at the checksums of a file. `counts` has room for `capacity` numbers, of which
/// as many are written as there are faults that are counted: S3CMTF_CHECK_COUNTS, or fewer if there is less
/// room. All of them 0 means that nothing is wrong. Later versions may count more faults, at the end; what
/// is compiled now keeps getting what it knows. `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_check(
    coo: Option<&CooHandle>,
    cancel: Option<&CancelHandle>,
    counts: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let coo = given(coo, "coo")?;
        let number = capacity.min(S3CMTF_CHECK_COUNTS) as usize;
        // Refused before the long look.
        // SAFETY: a buffer of the caller, for this call.
        unsafe { buffer(counts, capacity, number, "counts") }?;
        let report = checked(&coo.source, &Token(cancel))?;
        let found: [u64; S3CMTF_CHECK_COUNTS as usize] = [
            report.damaged.len() as u64,
            report.out_of_range.count,
            report.not_finite.count,
            report.duplicates.count,
            report.repeated_entries,
        ];
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(&found[..number], counts, capacity, "counts") }
    })
}

fn checked(source: &Source, monitor: &dyn Monitor) -> Outcome<CheckReport> {
    Ok(match source {
        Source::File(file) => format::check(file, monitor)?,
        other => format::check_view(&other.view(), monitor)?,
    })
}

/// The smallest and largest value, their mean and standard deviation (all NaN without entries), and for
/// each mode the number of rows with an entry. Each output may be NULL; `rows_used` has room for `capacity`
/// numbers. `cancel` may be NULL. An entry that is out of range or not finite is S3CMTF_BAD_ENTRY.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_summarize(
    coo: Option<&CooHandle>,
    cancel: Option<&CancelHandle>,
    smallest: Option<&mut MaybeUninit<f64>>,
    largest: Option<&mut MaybeUninit<f64>>,
    mean: Option<&mut MaybeUninit<f64>>,
    deviation: Option<&mut MaybeUninit<f64>>,
    rows_used: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let summary = format::summarize(&of(coo)?, &Token(cancel))?;
        if !rows_used.is_null() {
            let rows: Vec<u64> = summary.modes.iter().map(|m| m.rows_used).collect();
            // SAFETY: a buffer of the caller, for this call.
            unsafe { copy_out(&rows, rows_used, capacity, "rows_used") }?;
        }
        let numbers = summary
            .values
            .map_or([f64::NAN; 4], |v| [v.min, v.max, v.mean, v.deviation]);
        for (out, number) in [smallest, largest, mean, deviation]
            .into_iter()
            .zip(numbers)
        {
            if let Some(out) = out {
                out.write(number);
            }
        }
        Ok(())
    })
}

/// Writes a binary COO file, which appears complete or not at all. `value_type` is S3CMTF_F32 or
/// S3CMTF_F64, or 0 to store values as they are. `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_write(
    coo: Option<&CooHandle>,
    path: *const c_char,
    value_type: i32,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let view = of(coo)?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let kind: Option<ValueKind> = match value_type {
            0 => None,
            kind => Some(value_kind(kind, "value_type")?),
        };
        format::write(&view, &path, kind, &Token(cancel))?;
        Ok(())
    })
}

/// Reads `input` (text or binary COO) and writes the binary COO file `output`, with a file of names beside
/// it for each mode whose ids are words; or, if `output` ends in .tns, text. Memory does not grow with the
/// file. `text` and `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_convert(
    input: *const c_char,
    output: *const c_char,
    text: Option<&TextHandle>,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        // SAFETY: texts of the caller, for this call.
        let (input, output) = unsafe { (path(input, "input")?, path(output, "output")?) };
        let (options, monitor) = (text_options(text), Token(cancel));
        let to_text = |p: &Path| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("tns"));
        if to_text(&output) {
            let file = format::open(Input::Path(input), OpenMode::Mapped, &options, &monitor)?;
            format::write_tns(&file, &output, &monitor)?;
        } else {
            format::convert(Input::Path(input), &output, &options, &monitor)?;
        }
        Ok(())
    })
}

/// Writes a copy that passes s3cmtf_coo_check(): entries that are not acceptable are left out (their number
/// goes to `dropped`) and every cell is listed once (`merged` entries are gone), as `keep`
/// (S3CMTF_KEEP_...) says. `dropped`, `merged` and `cancel` may be NULL. The object must be an opened file
/// whose checksums match.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_fix(
    coo: Option<&CooHandle>,
    path: *const c_char,
    keep: i32,
    cancel: Option<&CancelHandle>,
    dropped: Option<&mut MaybeUninit<u64>>,
    merged: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let coo = given(coo, "coo")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let keep = choice(
            keep,
            &[
                (S3CMTF_KEEP_MEAN, DuplicatePolicy::Mean),
                (S3CMTF_KEEP_FIRST, DuplicatePolicy::First),
                (S3CMTF_KEEP_LAST, DuplicatePolicy::Last),
            ],
            "keep",
        )?;
        let fixed = format::repair(coo.source.file()?, &path, keep, &Token(cancel))?;
        for (out, number) in [(dropped, fixed.dropped), (merged, fixed.merged)] {
            if let Some(out) = out {
                out.write(number);
            }
        }
        Ok(())
    })
}

/// Writes PREFIX.train.coo and, for parts above 0, PREFIX.test.coo and PREFIX.valid.coo; all appear
/// together. `test` and `valid` are shares of the entries. With `row` and `by` S3CMTF_NO_MODE entries are
/// held out at random, as `seed` decides; with two modes, of each row of mode `row` those with the largest
/// index in mode `by`, such as the latest. `cancel` may be NULL. The object must be an opened file.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_split(
    coo: Option<&CooHandle>,
    prefix: *const c_char,
    test: f64,
    valid: f64,
    seed: u64,
    row: u64,
    by: u64,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let coo = given(coo, "coo")?;
        // SAFETY: a text of the caller, for this call.
        let prefix = unsafe { path(prefix, "prefix") }?;
        let file = coo.source.file()?;
        let order = file.header().dims.len();
        let rule = match (row, by) {
            (S3CMTF_NO_MODE, S3CMTF_NO_MODE) => SplitRule::Random,
            (S3CMTF_NO_MODE, _) | (_, S3CMTF_NO_MODE) => {
                return Err(Failure::argument(
                    "row and by must both be modes, or neither",
                ));
            }
            (row, by) => SplitRule::LastPerRow {
                row_mode: place(row, order, "row")?,
                order_mode: place(by, order, "by")?,
            },
        };
        let options = SplitOptions {
            test_fraction: test,
            valid_fraction: valid,
            seed,
            rule,
        };
        format::split(file, &prefix, &options, &Token(cancel))?;
        Ok(())
    })
}
