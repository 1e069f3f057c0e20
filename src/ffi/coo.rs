//! Sparse tensors and matrices: opening, creation from arrays, access to entries.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;

use super::arg::{
    SizedStruct, choice, copy_out, given, hand_over, path, place, slice, struct_in, struct_out,
};
use super::arrays::{Entries, IndexArrays, S3CMTF_F32, S3CMTF_F64, S3CMTF_U32};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, Source, Weights, of};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::indices::{Indices, numbers};
use super::status::{Failure, Outcome, S3CMTF_BAD_FILE};
use super::text::{TextHandle, text_options};
use crate::error::{Error, Result};
use crate::format::{
    CooData, CooFile, CooView, Input, Names, OpenMode, OwnedValues, TextOptions, ValueKind, Values,
    open, open_unverified,
};
use crate::model::is_model;
use crate::progress::Monitor;

/// Map the file into memory; pages are read when they are needed. The file must not be modified while it is open (replacing
/// it by rename is safe); truncating it ends the process with SIGBUS.
pub const S3CMTF_OPEN_MAPPED: i32 = 0;
/// Read the file into memory.
pub const S3CMTF_OPEN_PRIVATE: i32 = 1;
/// Added to a mode of s3cmtf_coo_open(): do not verify the checksums of a binary COO file. A mapped file then opens in
/// constant time; damaged data may be fitted without an error.
pub const S3CMTF_OPEN_UNVERIFIED: i32 = 2;

/// What messages call entries that come from arrays.
const IN_MEMORY: &str = "entries in memory";

/// Opens a binary COO file or a text file (.tns, .mtx, .csv, .tsv, optionally gzipped); text is converted to an unnamed
/// temporary file. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE. `text` (how text is parsed) and `cancel` may be
/// NULL. The header of the file and the checksums of its sections are verified here, which reads the file once; a mismatch
/// is S3CMTF_BAD_FILE. `mode` | S3CMTF_OPEN_UNVERIFIED leaves the checksums out. Rows have the names in the files beside
/// it that s3cmtf_coo_convert() wrote (PATH.mode1.tsv); ids of a text must be in a table of names (option "names").
/// Rows of a tensor or model and of other entries with names are matched by name. Entries are validated by
/// s3cmtf_coo_check() and by every fit.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_open(
    path: *const c_char,
    mode: i32,
    text: Option<&TextHandle>,
    cancel: Option<&CancelHandle>,
    coo: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(coo, "coo")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let unverified = mode & S3CMTF_OPEN_UNVERIFIED != 0;
        let mode = open_mode(mode & !S3CMTF_OPEN_UNVERIFIED)?;
        let open = if unverified { open_unverified } else { open };
        hand_over(out, open_file(path, mode, open, text, cancel)?);
        Ok(())
    })
}

/// [`open`] or [`open_unverified`].
type Open = fn(Input, OpenMode, &TextOptions, &dyn Monitor) -> Result<CooFile>;

/// Returns an error if ids of a text have no names in a table of the options: the host would not know which rows they are.
fn require_known_ids(file: &CooFile, options: &TextOptions) -> Result<()> {
    for (mode, names) in file.names()?.iter().enumerate() {
        let Some(names) = names.as_ref().filter(|_| file.has_text_ids()) else {
            continue;
        };
        let n = mode + 1;
        let mut given = options.delimited.names.iter();
        let Some((_, path)) = given.find(|(of, _)| *of == mode) else {
            return Err(Error::file(
                file.name(),
                format!(
                    "the ids of mode {n} are strings; convert the text to a .coo file first, so that their names are kept"
                ),
            ));
        };
        if let Some(id) = names.name(Names::load(path)?.len() as u64) {
            return Err(Error::file(
                file.name(),
                format!(
                    "the id {id:?} of mode {n} has no name in {}; convert the text to a .coo file to add it",
                    path.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Opens a file of entries.
pub(super) fn open_file(
    path: PathBuf,
    mode: OpenMode,
    open: Open,
    text: Option<&TextHandle>,
    cancel: Option<&CancelHandle>,
) -> Outcome<CooHandle> {
    if is_model(&path) {
        return Err(Failure::new(
            S3CMTF_BAD_FILE,
            format!("{}: this is a model, not data", path.display()),
        ));
    }
    let options = text_options(text);
    let file = open(Input::Path(path), mode, &options, &Token(cancel))?;
    require_known_ids(&file, &options)?;
    Ok(CooHandle::new(Source::File(file)))
}

/// Creates a tensor or matrix by copying `entries`. An index out of range is S3CMTF_BAD_ENTRY. Values that are not finite
/// are found by s3cmtf_coo_check() and rejected by fits. If the dims are NULL, a problem may enlarge them to match its
/// matrices.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_new(
    entries: *const Entries,
    coo: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(coo, "coo")?;
        // SAFETY: a struct of the caller and what it points to, for this call.
        hand_over(out, unsafe { copy_entries(entries) }?);
        Ok(())
    })
}

/// Copies the entries of the caller.
///
/// # Safety
/// If not NULL and aligned, `entries` and its pointers point to what they should.
pub(super) unsafe fn copy_entries(entries: *const Entries) -> Outcome<CooHandle> {
    // SAFETY: the caller's promise.
    unsafe {
        let e = struct_in(entries, "entries")?;
        let order = checked_order(e.order)?;
        let dims = if e.dims.is_null() {
            None
        } else {
            Some(slice(e.dims, e.order, "entries->dims")?)
        };
        let indices = Indices::new(&e.indices, order, "entries->indices")?;
        let count = e.indices.count;
        let values = numbers(e.values, count, e.value_type, VALUES)?;
        let data = CooData::copy(IN_MEMORY, order, dims, values, |n, i| indices.get(n, i))?;
        let coo = CooHandle::new(Source::Data(data));
        if e.weights.is_null() {
            return Ok(coo);
        }
        let weights = numbers(e.weights, count, e.weight_type, WEIGHTS)?;
        let weights = Weights::Copied(OwnedValues::copy(weights)?);
        Ok(CooHandle::weighted(&coo, weights))
    }
}

/// Names of arrays and their types in messages.
const VALUES: (&str, &str) = ("entries->values", "entries->value_type");
const WEIGHTS: (&str, &str) = ("entries->weights", "entries->weight_type");

/// Creates a tensor or matrix that refers to the arrays of `entries` without copying them: dims given, indices of type
/// S3CMTF_U32, stride 1 and base 0. The arrays of indices, values and weights must stay in place and unchanged until the
/// object and every problem and fit created from it are freed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_new_view(
    entries: *const Entries,
    coo: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(coo, "coo")?;
        // SAFETY: a struct of the caller and what it points to, for this call; arrays until the object is gone.
        let view = unsafe { view_entries(entries) }?;
        hand_over(out, CooHandle::new(Source::Borrowed(view)));
        Ok(())
    })
}

/// # Safety
/// As [`copy_entries`], and the arrays stay unchanged until the view is gone.
unsafe fn view_entries(entries: *const Entries) -> Outcome<CooView<'static>> {
    // SAFETY: the caller's promise.
    unsafe {
        let e = struct_in(entries, "entries")?;
        let order = checked_order(e.order)?;
        let IndexArrays {
            modes,
            count,
            stride,
            r#type,
            base,
        } = e.indices;
        if (r#type, stride.max(1), base) != (S3CMTF_U32, 1, 0) {
            return Err(Failure::argument(
                "entries->indices must have type S3CMTF_U32, stride 1 and base 0 to be used without a copy; \
                 s3cmtf_coo_new() copies any other",
            ));
        }
        let mut columns: Vec<&'static [u32]> = Vec::with_capacity(order);
        for (n, &column) in slice(modes, e.order, "entries->indices.modes")?
            .iter()
            .enumerate()
        {
            let name = format!("entries->indices.modes[{n}]");
            columns.push(slice(column.cast(), count, &name)?);
        }
        let dims = slice(e.dims, e.order, "entries->dims")?;
        let values = numbers(e.values, count, e.value_type, VALUES)?;
        let view = CooView::new(IN_MEMORY, dims, &columns, values)?;
        if e.weights.is_null() {
            return Ok(view);
        }
        Ok(view.with_weights(numbers(e.weights, count, e.weight_type, WEIGHTS)?)?)
    }
}

/// The size and the types of a tensor or matrix.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CooInfo {
    /// sizeof(s3cmtf_coo_info).
    pub size: u64,
    /// The number of modes.
    pub order: u64,
    /// The number of entries.
    pub count: u64,
    /// The type of the values: S3CMTF_F32 or S3CMTF_F64.
    pub value_type: i32,
    /// The type of the weights: S3CMTF_F32 or S3CMTF_F64, or 0 if the entries have no weights.
    pub weight_type: i32,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(CooInfo, order) == 8);
    assert!(offset_of!(CooInfo, count) == 16);
    assert!(offset_of!(CooInfo, value_type) == 24);
    assert!(offset_of!(CooInfo, weight_type) == 28);
    assert!(size_of::<CooInfo>() == 32);
};

// SAFETY: `repr(C)`, the size first, numbers only.
unsafe impl SizedStruct for CooInfo {}

/// Writes the number of modes and entries and the types of values and weights.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_get_info(
    coo: Option<&CooHandle>,
    info: *mut CooInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let view = of(coo)?;
        let own = CooInfo {
            size: size_of::<CooInfo>() as u64,
            order: view.order() as u64,
            count: view.len() as u64,
            value_type: type_number(view.values().kind()),
            weight_type: view.weights().map_or(0, |w| type_number(w.kind())),
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

fn type_number(kind: ValueKind) -> i32 {
    match kind {
        ValueKind::F32 => S3CMTF_F32,
        ValueKind::F64 => S3CMTF_F64,
    }
}

/// Copies the size of each mode to `dims`, which has room for `capacity` numbers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_get_dims(
    coo: Option<&CooHandle>,
    dims: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let view = of(coo)?;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(view.dims(), dims, capacity, "dims") }
    })
}

/// Returns the zero-based indices of a mode, one per entry, without a copy. They are valid as long as the object.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_view_indices(
    coo: Option<&CooHandle>,
    mode: u64,
    indices: Option<&mut MaybeUninit<*const u32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(indices, "indices")?);
        let mode = place(mode, view.order(), "mode")?;
        out.write(view.column(mode).as_ptr());
        Ok(())
    })
}

/// Returns the values, one per entry and of the type that s3cmtf_coo_get_info() reports, without a copy. They are valid as
/// long as the object.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_view_values(
    coo: Option<&CooHandle>,
    values: Option<&mut MaybeUninit<*const c_void>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(values, "values")?);
        out.write(match view.values() {
            Values::F32(v) => v.as_ptr().cast(),
            Values::F64(v) => v.as_ptr().cast(),
        });
        Ok(())
    })
}

/// Frees a tensor or matrix. Objects created from it stay valid. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_free(coo: Option<Box<CooHandle>>) {
    release(|| drop(coo));
}

pub(super) fn open_mode(mode: i32) -> Outcome<OpenMode> {
    choice(
        mode,
        &[
            (S3CMTF_OPEN_MAPPED, OpenMode::Mapped),
            (S3CMTF_OPEN_PRIVATE, OpenMode::Private),
        ],
        "mode",
    )
}

/// Checks the order before arrays of that length are read.
fn checked_order(order: u64) -> Outcome<usize> {
    use crate::format::MIN_ORDER;

    use crate::kernel::MAX_ORDER;
    match usize::try_from(order) {
        Ok(order) if (MIN_ORDER..=MAX_ORDER).contains(&order) => Ok(order),
        _ => Err(Failure::argument(format!(
            "order is {order}; it must be {MIN_ORDER} to {MAX_ORDER}"
        ))),
    }
}
