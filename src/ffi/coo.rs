//! Sparse tensors and matrices: opened, made from arrays, looked at.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::arg::{choice, copy_out, given, hand_over, path, place, slice};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, Source, of};
use super::element_type::{S3CMTF_F32, S3CMTF_F64};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::indices::{Indices, values};
use super::status::{Failure, Outcome};
use super::text::{TextHandle, text_options};
use crate::format::{CooData, CooView, Input, OpenMode, ValueKind, Values, open};
use crate::model::is_model;

/// A file is mapped: nothing is copied, pages are read when they are needed. The file must not be changed
/// while it is open; cutting it short under the map ends the process with SIGBUS. Replacing it by renaming
/// another over it, as this library does, is fine.
pub const S3CMTF_OPEN_MAPPED: i32 = 0;
/// A file is read into memory: it costs its size, and what happens to the file later does not matter.
pub const S3CMTF_OPEN_PRIVATE: i32 = 1;

/// What messages call entries that come from arrays.
const IN_MEMORY: &str = "entries in memory";

/// Opens a binary COO file, or text (.tns, .mtx, .csv, .tsv, each also gzipped) through a binary copy that
/// has no name and goes away with the object. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE; `text`
/// says how text is read and may be NULL, as may `cancel`. Only the structure is checked:
/// s3cmtf_coo_check() looks at every entry, and so does a fit. Free with s3cmtf_coo_free().
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
        let mode = open_mode(mode)?;
        if is_model(&path) {
            return Err(Failure::new(
                super::status::S3CMTF_BAD_FILE,
                format!("{}: is a model, not data", path.display()),
            ));
        }
        let file = open(Input::Path(path), mode, &text_options(text), &Token(cancel))?;
        hand_over(
            out,
            CooHandle {
                source: Arc::new(Source::File(file)),
            },
        );
        Ok(())
    })
}

/// Makes a tensor (or, with `order` 2, a matrix) of `count` entries by copying them.
///
/// `indices` has one pointer per mode. `indices[n][i * stride]` is the index of entry i in mode n, of type
/// `index_type` (S3CMTF_U32 or S3CMTF_U64), counted from `base` (0 or 1). For separate arrays `stride` is 1;
/// for records of all modes of an entry it is `order`, and `indices[n]` points to the n-th number of the
/// first record. `values` are `count` numbers of `value_type` (S3CMTF_F32 or S3CMTF_F64).
///
/// `dims` has the size of each mode; with NULL it is the largest index, and a problem may widen it to agree
/// with what it is coupled with. An index beyond its size is S3CMTF_BAD_ENTRY. Values are looked at by
/// s3cmtf_coo_check() and by fits, which refuse NaN and infinities. Free with s3cmtf_coo_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_new(
    order: u64,
    dims: *const u64,
    count: u64,
    indices: *const *const c_void,
    index_type: i32,
    stride: u64,
    base: i32,
    values: *const c_void,
    value_type: i32,
    coo: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(coo, "coo")?;
        let order = checked_order(order)?;
        // SAFETY: arrays of the caller, for this call.
        let (dims, values, indices) = unsafe {
            let dims = if dims.is_null() {
                None
            } else {
                Some(slice(dims, order as u64, "dims")?)
            };
            let values = self::values(values, count, value_type)?;
            (
                dims,
                values,
                Indices::new(indices, order, count, index_type, stride, base)?,
            )
        };
        let data = CooData::copy(IN_MEMORY, order, dims, values, |n, i| indices.get(n, i))?;
        hand_over(
            out,
            CooHandle {
                source: Arc::new(Source::Data(data)),
            },
        );
        Ok(())
    })
}

/// As s3cmtf_coo_new(), without a copy: separate arrays of uint32_t counted from 0, all sizes stated. The
/// arrays must stay where and as they are until the object and every problem and fit made from it are
/// freed; the sizes are copied. Entries are checked when they are used.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_new_view(
    order: u64,
    dims: *const u64,
    count: u64,
    indices: *const *const u32,
    values: *const c_void,
    value_type: i32,
    coo: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(coo, "coo")?;
        let order = checked_order(order)?;
        let mut columns: Vec<&'static [u32]> = Vec::with_capacity(order);
        // SAFETY: arrays of the caller, who keeps what indices and values point to until the view is gone.
        let (dims, values) = unsafe {
            for (n, &column) in slice(indices, order as u64, "indices")?.iter().enumerate() {
                columns.push(slice(column, count, &format!("indices[{n}]"))?);
            }
            let dims = slice(dims, order as u64, "dims")?;
            (dims, self::values(values, count, value_type)?)
        };
        let view = CooView::new(IN_MEMORY, dims, &columns, values)?;
        hand_over(
            out,
            CooHandle {
                source: Arc::new(Source::Borrowed(view)),
            },
        );
        Ok(())
    })
}

/// The number of modes.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_get_order(
    coo: Option<&CooHandle>,
    order: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(order, "order")?);
        out.write(view.order() as u64);
        Ok(())
    })
}

/// The number of entries.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_get_count(
    coo: Option<&CooHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(count, "count")?);
        out.write(view.len() as u64);
        Ok(())
    })
}

/// Copies the size of each mode into `dims`, which has room for `capacity` numbers.
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

/// How the values are stored: S3CMTF_F32 or S3CMTF_F64.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_get_value_type(
    coo: Option<&CooHandle>,
    value_type: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(value_type, "value_type")?);
        out.write(match view.values().kind() {
            ValueKind::F32 => S3CMTF_F32,
            ValueKind::F64 => S3CMTF_F64,
        });
        Ok(())
    })
}

/// The indices of a mode (counted from 0, as they are), without a copy: as many as there are entries. They
/// live as long as the object.
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

/// The values, without a copy: as many as there are entries, of the type s3cmtf_coo_get_value_type() says.
/// They live as long as the object.
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

/// Frees a tensor or matrix. What was made from it lives on. NULL is fine.
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

/// Checked before anything is read from arrays of that many.
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
