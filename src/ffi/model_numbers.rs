//! The numbers of a model: copied out, or looked at where they are.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{buffer, choice, given, place};
use super::element_type::{S3CMTF_U32, S3CMTF_U64};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::value_kind;
use super::model::{ModelHandle, of};
use super::status::{Failure, Outcome};
use crate::format::{RowMap, ValueKind};
use crate::model::{FactorMatrix, Model, ModelMatrix};

use crate::kernel::CoreKind;

use crate::problem::MatrixKind;
use crate::simd::padded_len;

/// The numbers of a row lie side by side, as in C.
pub const S3CMTF_ROW_MAJOR: i32 = 0;
/// The numbers of a column lie side by side, as in R, Julia and Fortran.
pub const S3CMTF_COLUMN_MAJOR: i32 = 1;

/// Copies the index of each row of a mode, counted from 0 and ascending, into `indices`, which has room for
/// `capacity` numbers of `index_type` (S3CMTF_U32 or S3CMTF_U64).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_row_indices(
    model: Option<&ModelHandle>,
    mode: u64,
    indices: *mut c_void,
    capacity: u64,
    index_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_indices(&mode.rows, indices, capacity, index_type) }
    })
}

/// Copies the factor of a mode, rows x rank numbers, into `numbers`, which has room for `capacity` numbers
/// of `number_type` (S3CMTF_F32 or S3CMTF_F64). `layout` is S3CMTF_ROW_MAJOR or S3CMTF_COLUMN_MAJOR.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_factor(
    model: Option<&ModelHandle>,
    mode: u64,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    layout: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        to.rows(&mode.factor, mode.rows.len(), layout)
    })
}

/// Copies the row that stands for an index of a mode, whether it occurred or not: rank numbers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_row(
    model: Option<&ModelHandle>,
    mode: u64,
    index: u64,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = place(mode, model.order(), "mode")?;
        let rows = &model.modes()[mode].rows;
        let index = match u32::try_from(index) {
            Ok(i) if u64::from(i) < rows.dim() => i,
            _ => {
                return Err(Failure::argument(format!(
                    "index is {index}; it must be below {}",
                    rows.dim()
                )));
            }
        };
        let row = model.modes()[mode]
            .factor
            .row(model.row_of(mode, index) as usize);
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        to.write(row.len(), row.iter().copied())
    })
}

/// The factor of a mode where it is: row r begins at `numbers + r * stride` and has `rank` numbers; what is
/// between is 0. It lives as long as the model. Outputs but `numbers` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_factor(
    model: Option<&ModelHandle>,
    mode: u64,
    numbers: Option<&mut MaybeUninit<*const f32>>,
    rows: Option<&mut MaybeUninit<u64>>,
    rank: Option<&mut MaybeUninit<u64>>,
    stride: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(numbers, "numbers")?);
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        view(&mode.factor, mode.rows.len(), out, rows, rank, stride);
        Ok(())
    })
}

/// Copies the biases of a mode, one for each of its rows, into `numbers`, which has room for `capacity` numbers
/// of `number_type` (S3CMTF_F32 or S3CMTF_F64). A model without biases gives zeros. Indices that did not occur
/// have bias 0. A model of samples gives those of its last draw, as of its factors.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_biases(
    model: Option<&ModelHandle>,
    mode: u64,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        to.or_zeros(&mode.biases, mode.rows.len())
    })
}

/// The biases of a mode where they are: `count` numbers, one for each of its rows. A model without biases has
/// NULL and 0. They live as long as the model. `count` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_biases(
    model: Option<&ModelHandle>,
    mode: u64,
    numbers: Option<&mut MaybeUninit<*const f32>>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(numbers, "numbers")?);
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        view_list(&mode.biases, mode.rows.len(), out, count);
        Ok(())
    })
}

/// Copies the core. For S3CMTF_MODEL_TUCKER it has as many numbers as the ranks multiplied, the last mode
/// fastest with S3CMTF_ROW_MAJOR and the first with S3CMTF_COLUMN_MAJOR; for S3CMTF_MODEL_CP only the
/// diagonal is there, rank numbers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_core(
    model: Option<&ModelHandle>,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    layout: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let columns = column_major(layout)?;
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        let shape = model.shape();
        if shape.kind == CoreKind::Diagonal {
            let rank = shape.ranks[0];
            return to.write(rank, model.core()[..rank].iter().copied());
        }
        let dense = shape.dense_core(model.core());
        if columns {
            to.write(dense.len(), reversed(&dense, &shape.ranks))
        } else {
            to.write(dense.len(), dense.iter().copied())
        }
    })
}

/// The core where it is, row-major with rows of the last mode `stride` apart (for S3CMTF_MODEL_CP the
/// diagonal alone). It lives as long as the model. `stride` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_core(
    model: Option<&ModelHandle>,
    numbers: Option<&mut MaybeUninit<*const f32>>,
    stride: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(numbers, "numbers")?);
        let last = model.shape().ranks[model.order() - 1];
        out.write(model.core().as_ptr());
        stride.map(|out| out.write(padded_len(last) as u64));
        Ok(())
    })
}

/// Copies the index of each column of a coupled matrix that occurred, as s3cmtf_model_copy_row_indices() does for a
/// mode. A graph has none of its own, and is S3CMTF_BAD_ARGUMENT here and below.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_matrix_indices(
    model: Option<&ModelHandle>,
    matrix: u64,
    indices: *mut c_void,
    capacity: u64,
    index_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let matrix = factorized(of(model)?, matrix)?;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_indices(&matrix.columns, indices, capacity, index_type) }
    })
}

/// Copies V of a coupled matrix, a row for each of its columns that occurred, as s3cmtf_model_copy_factor()
/// does for a mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_matrix(
    model: Option<&ModelHandle>,
    matrix: u64,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    layout: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let matrix = factorized(of(model)?, matrix)?;
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        to.rows(&matrix.factor, matrix.factor.len(), layout)
    })
}

/// V of a coupled matrix where it is, as s3cmtf_model_view_factor() gives the factor of a mode.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_matrix(
    model: Option<&ModelHandle>,
    matrix: u64,
    numbers: Option<&mut MaybeUninit<*const f32>>,
    rows: Option<&mut MaybeUninit<u64>>,
    rank: Option<&mut MaybeUninit<u64>>,
    stride: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(numbers, "numbers")?);
        let matrix = factorized(model, matrix)?;
        view(&matrix.factor, matrix.factor.len(), out, rows, rank, stride);
        Ok(())
    })
}

/// Copies the offsets of a coupled matrix, one for each of its columns that occurred, as
/// s3cmtf_model_copy_biases() does for a mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_copy_offsets(
    model: Option<&ModelHandle>,
    matrix: u64,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let matrix = factorized(of(model)?, matrix)?;
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        to.or_zeros(&matrix.offsets, matrix.columns.len())
    })
}

/// The offsets of a coupled matrix where they are, as s3cmtf_model_view_biases() gives the biases of a mode.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_offsets(
    model: Option<&ModelHandle>,
    matrix: u64,
    numbers: Option<&mut MaybeUninit<*const f32>>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(numbers, "numbers")?);
        let matrix = factorized(model, matrix)?;
        view_list(&matrix.offsets, matrix.columns.len(), out, count);
        Ok(())
    })
}

fn factorized(model: &Model, matrix: u64) -> Outcome<&ModelMatrix> {
    let number = place(matrix, model.matrices().len(), "matrix")?;
    let matrix = &model.matrices()[number];
    if matrix.kind == MatrixKind::Graph {
        return Err(Failure::argument(format!(
            "matrix {number} is a graph, which has no rows of its own"
        )));
    }
    Ok(matrix)
}

fn view(
    factor: &FactorMatrix,
    count: usize,
    numbers: &mut MaybeUninit<*const f32>,
    rows: Option<&mut MaybeUninit<u64>>,
    rank: Option<&mut MaybeUninit<u64>>,
    stride: Option<&mut MaybeUninit<u64>>,
) {
    numbers.write(factor.as_slice().as_ptr());
    for (out, number) in [
        (rows, count),
        (rank, factor.rank()),
        (stride, factor.stride()),
    ] {
        out.map(|out| out.write(number as u64));
    }
}

/// The first `len` of `all`, which has at least so many or none.
fn view_list(
    all: &[f32],
    len: usize,
    numbers: &mut MaybeUninit<*const f32>,
    count: Option<&mut MaybeUninit<u64>>,
) {
    let (at, len) = if all.is_empty() {
        (std::ptr::null(), 0)
    } else {
        (all.as_ptr(), len)
    };
    numbers.write(at);
    count.map(|out| out.write(len as u64));
}

fn column_major(layout: i32) -> Outcome<bool> {
    choice(
        layout,
        &[(S3CMTF_ROW_MAJOR, false), (S3CMTF_COLUMN_MAJOR, true)],
        "layout",
    )
}

/// # Safety
/// As [`buffer`].
unsafe fn copy_indices(map: &RowMap, pointer: *mut c_void, capacity: u64, kind: i32) -> Outcome {
    let wide = choice(
        kind,
        &[(S3CMTF_U32, false), (S3CMTF_U64, true)],
        "index_type",
    )?;
    // SAFETY: the caller's promise.
    unsafe {
        if wide {
            let to = buffer::<u64>(pointer.cast(), capacity, map.len(), "indices")?;
            fill(to, map.indices().map(u64::from));
        } else {
            let to = buffer::<u32>(pointer.cast(), capacity, map.len(), "indices")?;
            fill(to, map.indices());
        }
    }
    Ok(())
}

fn fill<T>(to: &mut [MaybeUninit<T>], from: impl Iterator<Item = T>) {
    for (to, item) in to.iter_mut().zip(from) {
        to.write(item);
    }
}

/// A buffer of the caller for numbers of either type.
pub(super) struct Numbers {
    pointer: *mut c_void,
    capacity: u64,
    kind: ValueKind,
}

impl Numbers {
    /// # Safety
    /// If `pointer` is not NULL and aligned, it points to room for `capacity` numbers of that kind, which
    /// nobody else uses while this exists.
    pub unsafe fn new(pointer: *mut c_void, capacity: u64, kind: i32) -> Outcome<Numbers> {
        Ok(Numbers {
            pointer,
            capacity,
            kind: value_kind(kind, "number_type")?,
        })
    }

    /// Whether `count` numbers could be written; asked before the work that makes them.
    pub fn require(&self, count: usize) -> Outcome {
        self.write(count, std::iter::empty::<f64>())
    }

    /// Writes numbers, of which there are `count`.
    pub fn write<T: Float>(&self, count: usize, numbers: impl Iterator<Item = T>) -> Outcome {
        // SAFETY: the promise of `new`.
        unsafe {
            match self.kind {
                ValueKind::F32 => fill(
                    buffer(self.pointer.cast(), self.capacity, count, "numbers")?,
                    numbers.map(Float::single),
                ),
                ValueKind::F64 => fill(
                    buffer(self.pointer.cast(), self.capacity, count, "numbers")?,
                    numbers.map(Float::double),
                ),
            }
        }
        Ok(())
    }

    /// Writes all of these, at once where the caller wants them as they are.
    pub fn write_all(&self, numbers: &[f64]) -> Outcome {
        match self.kind {
            ValueKind::F32 => self.write(numbers.len(), numbers.iter().copied()),
            ValueKind::F64 => {
                // SAFETY: the promise of `new`.
                let to = unsafe {
                    buffer(self.pointer.cast(), self.capacity, numbers.len(), "numbers")
                }?;
                to.write_copy_of_slice(numbers);
                Ok(())
            }
        }
    }

    /// Writes the first `count` of `all`, which has at least so many, or none: then zeros.
    fn or_zeros(&self, all: &[f32], count: usize) -> Outcome {
        let zeros = std::iter::repeat_n(0.0, if all.is_empty() { count } else { 0 });
        self.write(count, all.iter().copied().take(count).chain(zeros))
    }

    fn rows(&self, factor: &FactorMatrix, count: usize, layout: i32) -> Outcome {
        let (all, stride, rank) = (factor.as_slice(), factor.stride(), factor.rank());
        if column_major(layout)? {
            let columns = (0..rank).flat_map(|j| (0..count).map(move |i| all[i * stride + j]));
            self.write(count * rank, columns)
        } else {
            let rows = (0..count).flat_map(|i| all[i * stride..][..rank].iter().copied());
            self.write(count * rank, rows)
        }
    }
}

/// A number that becomes either type.
pub(super) trait Float {
    fn single(self) -> f32;
    fn double(self) -> f64;
}

impl Float for f32 {
    fn single(self) -> f32 {
        self
    }

    fn double(self) -> f64 {
        f64::from(self)
    }
}

impl Float for f64 {
    fn single(self) -> f32 {
        self as f32
    }

    fn double(self) -> f64 {
        self
    }
}

/// A row-major tensor with its first mode fastest.
fn reversed<'a>(dense: &'a [f32], ranks: &'a [usize]) -> impl Iterator<Item = f32> + 'a {
    (0..dense.len()).map(move |mut at| {
        let mut place = 0;
        let mut stride = dense.len();
        for &rank in ranks {
            stride /= rank;
            place += at % rank * stride;
            at /= rank;
        }
        dense[place]
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_mode_is_fastest_in_columns() {
        let dense: Vec<f32> = (0..6).map(|x| x as f32).collect();
        let columns: Vec<f32> = super::reversed(&dense, &[2, 3]).collect();
        assert_eq!(columns, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    }
}
