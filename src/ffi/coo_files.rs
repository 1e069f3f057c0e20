//! Sparse tensors and matrices: checks, statistics, files.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use super::arg::{
    SizedStruct, choice, flag, given, object, optional_buffer, path, place, require_struct,
    struct_in, struct_out,
};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, Source, of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::value_kind;
use super::status::Outcome;
use super::text::{TextHandle, text_options};
use crate::format::{
    self, CheckReport, DuplicatePolicy, Input, OpenMode, SplitOptions, SplitRule, ValueKind,
};
use crate::progress::Monitor;

/// Faults that s3cmtf_coo_check() counts. All are 0 in acceptable data.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CooFaults {
    /// sizeof(s3cmtf_coo_faults).
    pub size: u64,
    /// Sections of the file whose checksum does not match.
    pub damaged_sections: u64,
    /// Entries with an index that is not below the size of its mode.
    pub out_of_range: u64,
    /// Entries with a value or weight that is not finite, or a negative weight.
    pub not_finite: u64,
    /// Cells that are listed more than once.
    pub duplicate_cells: u64,
    /// Entries that repeat a cell listed before.
    pub surplus_entries: u64,
}

/// Statistics of the values; NaN if there are no entries.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CooSummary {
    /// sizeof(s3cmtf_coo_summary).
    pub size: u64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The mean of the values.
    pub mean: f64,
    /// The standard deviation of the values.
    pub standard_deviation: f64,
}

/// What s3cmtf_coo_split() holds out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SplitRequest {
    /// sizeof(s3cmtf_split_request).
    pub size: u64,
    /// The fraction of the entries for the test file; 0: no such file.
    pub test_fraction: f64,
    /// The fraction of the entries for the validation file; 0: no such file.
    pub valid_fraction: f64,
    /// The seed of random splits.
    pub seed: u64,
    /// 0: hold out random entries. 1: hold out, for each row of `row_mode`, the entries with the largest indices in
    /// `time_mode`.
    pub latest: i32,
    /// See `latest`.
    pub row_mode: u64,
    /// See `latest`.
    pub time_mode: u64,
    /// May be NULL.
    pub cancel: *const CancelHandle,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(CooFaults, damaged_sections) == 8);
    assert!(offset_of!(CooFaults, surplus_entries) == 40);
    assert!(size_of::<CooFaults>() == 48);
    assert!(offset_of!(CooSummary, min) == 8);
    assert!(offset_of!(CooSummary, standard_deviation) == 32);
    assert!(size_of::<CooSummary>() == 40);
    assert!(offset_of!(SplitRequest, test_fraction) == 8);
    assert!(offset_of!(SplitRequest, seed) == 24);
    assert!(offset_of!(SplitRequest, latest) == 32);
    assert!(offset_of!(SplitRequest, row_mode) == 40);
    assert!(offset_of!(SplitRequest, cancel) == 56);
    assert!(size_of::<SplitRequest>() == 64);
};

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl SizedStruct for CooFaults {}
// SAFETY: the same.
unsafe impl SizedStruct for CooSummary {}
// SAFETY: the same.
unsafe impl SizedStruct for SplitRequest {}

/// s3cmtf_coo_fix() keeps the mean of the entries of a cell.
pub const S3CMTF_KEEP_MEAN: i32 = 0;
/// It keeps the first entry of a cell.
pub const S3CMTF_KEEP_FIRST: i32 = 1;
/// It keeps the last entry of a cell.
pub const S3CMTF_KEEP_LAST: i32 = 2;

/// Checks every entry, and the checksums of a file. s3cmtf_coo_open() rejects a file with damaged sections unless it is
/// opened with S3CMTF_OPEN_UNVERIFIED. `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_check(
    coo: Option<&CooHandle>,
    cancel: Option<&CancelHandle>,
    faults: *mut CooFaults,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let coo = given(coo, "coo")?;
        // SAFETY: a struct of the caller, for this call; rejected before the work.
        unsafe { require_struct(faults, "faults") }?;
        let report = checked(&coo.source, &Token(cancel))?;
        let own = CooFaults {
            size: size_of::<CooFaults>() as u64,
            damaged_sections: report.damaged.len() as u64,
            out_of_range: report.out_of_range.count,
            not_finite: report.not_finite.count,
            duplicate_cells: report.duplicates.count,
            surplus_entries: report.repeated_entries,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, faults, "faults") }
    })
}

fn checked(source: &Source, monitor: &dyn Monitor) -> Outcome<CheckReport> {
    Ok(match source {
        Source::File(file) => format::check(file, monitor)?,
        other => format::check_view(&other.view(), monitor)?,
    })
}

/// Writes statistics of the values to `summary` and the number of rows with an entry of each mode to `rows_used`, which has
/// room for `capacity` numbers. `summary`, `rows_used` and `cancel` may be NULL. An entry that is out of range or not finite
/// is S3CMTF_BAD_ENTRY.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_summarize(
    coo: Option<&CooHandle>,
    cancel: Option<&CancelHandle>,
    summary: *mut CooSummary,
    rows_used: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let view = of(coo)?;
        if !summary.is_null() {
            // SAFETY: a struct of the caller, for this call; rejected before the work.
            unsafe { require_struct(summary, "summary") }?;
        }
        // SAFETY: a buffer of the caller, for this call; rejected before the work.
        let rows_used = unsafe { optional_buffer(rows_used, capacity, view.order(), "rows_used") }?;
        let found = format::summarize(&view, &Token(cancel))?;
        for (to, mode) in rows_used.iter_mut().zip(&found.modes) {
            to.write(mode.rows_used);
        }
        if summary.is_null() {
            return Ok(());
        }
        let [min, max, mean, standard_deviation] = found
            .values
            .map_or([f64::NAN; 4], |v| [v.min, v.max, v.mean, v.deviation]);
        let own = CooSummary {
            size: size_of::<CooSummary>() as u64,
            min,
            max,
            mean,
            standard_deviation,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, summary, "summary") }
    })
}

/// Writes a binary COO file, which appears complete or not at all. `value_type` is S3CMTF_F32, S3CMTF_F64, or 0 for the type
/// that the values have. `cancel` may be NULL.
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

/// Converts the file `input` (text or binary COO) to the binary COO file `output`, with a file of names beside it for each
/// mode whose identifiers are strings; or to text if `output` ends in .tns. Memory use does not grow with the file. `text`
/// and `cancel` may be NULL.
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
            let input = Input::Path(input);
            let file = format::open_unverified(input, OpenMode::Mapped, &options, &monitor)?;
            // Verifies the checksums.
            format::write_tns(&file, &output, &monitor)?;
        } else {
            format::convert(Input::Path(input), &output, &options, &monitor)?;
        }
        Ok(())
    })
}

/// Writes a copy of an opened file that passes s3cmtf_coo_check(): entries out of range or not finite are removed, and
/// duplicate entries of a cell are merged according to `keep` (S3CMTF_KEEP_...). The numbers of both go to `dropped` and
/// `merged`, which may be NULL, as may `cancel`. A file with damaged sections is S3CMTF_BAD_FILE.
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

/// Splits an opened file into PREFIX.train.coo and, for fractions above 0, PREFIX.test.coo and PREFIX.valid.coo. All appear
/// together or not at all.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_split(
    coo: Option<&CooHandle>,
    prefix: *const c_char,
    request: *const SplitRequest,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let coo = given(coo, "coo")?;
        // SAFETY: a text and a struct of the caller with what it points to, for this call.
        let (prefix, request, cancel) = unsafe {
            let request = struct_in(request, "request")?;
            (path(prefix, "prefix")?, request, object(request.cancel))
        };
        let file = coo.source.file()?;
        let order = file.header().dims.len();
        let rule = if flag(request.latest, "request->latest")? {
            SplitRule::LastPerRow {
                row_mode: place(request.row_mode, order, "request->row_mode")?,
                order_mode: place(request.time_mode, order, "request->time_mode")?,
            }
        } else {
            SplitRule::Random
        };
        let options = SplitOptions {
            test_fraction: request.test_fraction,
            valid_fraction: request.valid_fraction,
            seed: request.seed,
            rule,
        };
        format::split(file, &prefix, &options, &Token(cancel))?;
        Ok(())
    })
}
