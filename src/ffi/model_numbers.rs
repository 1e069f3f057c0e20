//! Factors, core, biases and offsets of a model: copies and views.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{buffer, choice, given, place};
use super::arrays::{S3CMTF_U32, S3CMTF_U64};
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

/// Rows are contiguous, as in C.
pub const S3CMTF_ROW_MAJOR: i32 = 0;
/// Columns are contiguous, as in R, Julia and Fortran.
pub const S3CMTF_COLUMN_MAJOR: i32 = 1;

/// A matrix in memory of the library: element (r, c) is numbers[r * stride + c]. It is valid as long as the model. This
/// struct will not change in later versions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    /// The first element; NULL if there are no rows.
    pub numbers: *const f32,
    /// The number of rows.
    pub rows: u64,
    /// The number of columns.
    pub columns: u64,
    /// The distance between rows, in numbers.
    pub stride: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(View, rows) == 8);
    assert!(offset_of!(View, columns) == 16);
    assert!(offset_of!(View, stride) == 24);
    assert!(size_of::<View>() == 32);
};

/// Copies the zero-based index of each row of a factor, ascending, to `indices`, which has room for `capacity` numbers of
/// type `index_type` (S3CMTF_U32 or S3CMTF_U64).
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

/// Copies the factor of a mode, rows x rank, to `numbers`, which has room for `capacity` numbers of type `number_type`
/// (S3CMTF_F32 or S3CMTF_F64). `layout` is S3CMTF_ROW_MAJOR or S3CMTF_COLUMN_MAJOR.
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

/// Copies the row of an index of a mode: its row of the factor, or the mean row if the index did not occur in the data.
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

/// Returns a view of the factor of a mode, valid as long as the model.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_factor(
    model: Option<&ModelHandle>,
    mode: u64,
    view: Option<&mut MaybeUninit<View>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(view, "view")?);
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        out.write(View::of_factor(&mode.factor, mode.rows.len()));
        Ok(())
    })
}

/// Copies the biases of a mode, one per row of its factor; zeros if the model has no biases. Indices that did not occur in
/// the data are predicted with the mean bias of the mode.
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

/// Returns a view of the biases of a mode, one column; no rows if the model has no biases.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_biases(
    model: Option<&ModelHandle>,
    mode: u64,
    view: Option<&mut MaybeUninit<View>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(view, "view")?);
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        out.write(View::of_list(&mode.biases, mode.rows.len()));
        Ok(())
    })
}

/// Copies the core. S3CMTF_MODEL_TUCKER: the product of the ranks, last mode fastest with S3CMTF_ROW_MAJOR, first mode
/// fastest with S3CMTF_COLUMN_MAJOR. S3CMTF_MODEL_CP: its superdiagonal.
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
        if shape.kind() == CoreKind::Diagonal {
            let rank = shape.ranks()[0];
            return to.write(rank, model.core()[..rank].iter().copied());
        }
        to.require(shape.ranks().iter().product())?;
        let dense = shape.dense_core(model.core())?;
        if columns {
            to.write(dense.len(), reversed(&dense, shape.ranks()))
        } else {
            to.write(dense.len(), dense.iter().copied())
        }
    })
}

/// Returns a view of the core, in row-major order: one row for each combination of columns of all modes but the last, one
/// column for each column of the last. S3CMTF_MODEL_CP: one row, the superdiagonal.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_core(
    model: Option<&ModelHandle>,
    view: Option<&mut MaybeUninit<View>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(view, "view")?);
        let ranks = model.shape().ranks();
        let columns = ranks[ranks.len() - 1];
        let rows = match model.shape().kind() {
            CoreKind::Full => ranks[..ranks.len() - 1].iter().product(),
            CoreKind::Diagonal => 1,
        };
        out.write(View {
            numbers: model.core().as_ptr(),
            rows: rows as u64,
            columns: columns as u64,
            stride: padded_len(columns) as u64,
        });
        Ok(())
    })
}

/// Copies the column index of each row of the factor of a coupled matrix, as s3cmtf_model_copy_row_indices() does for a mode.
/// A graph has no factor: S3CMTF_BAD_ARGUMENT, here and below.
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

/// Copies the factor matrix V of a coupled matrix. Arguments are those of s3cmtf_model_copy_factor().
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

/// Returns a view of the factor V of a coupled matrix.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_matrix(
    model: Option<&ModelHandle>,
    matrix: u64,
    view: Option<&mut MaybeUninit<View>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(view, "view")?);
        let matrix = factorized(model, matrix)?;
        out.write(View::of_factor(&matrix.factor, matrix.factor.len()));
        Ok(())
    })
}

/// Copies the column offsets of a coupled matrix, one per row of its factor; zeros if the model has none.
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

/// Returns a view of the column offsets of a coupled matrix, one column; no rows if the model has none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_view_offsets(
    model: Option<&ModelHandle>,
    matrix: u64,
    view: Option<&mut MaybeUninit<View>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(view, "view")?);
        let matrix = factorized(model, matrix)?;
        out.write(View::of_list(&matrix.offsets, matrix.columns.len()));
        Ok(())
    })
}

fn factorized(model: &Model, matrix: u64) -> Outcome<&ModelMatrix> {
    let number = place(matrix, model.matrices().len(), "matrix")?;
    let matrix = &model.matrices()[number];
    if matrix.kind == MatrixKind::Graph {
        return Err(Failure::argument(format!(
            "matrix {number} is a graph, which has no factor"
        )));
    }
    Ok(matrix)
}

impl View {
    fn of_factor(factor: &FactorMatrix, rows: usize) -> View {
        View {
            numbers: factor.as_slice().as_ptr(),
            rows: rows as u64,
            columns: factor.rank() as u64,
            stride: factor.stride() as u64,
        }
    }

    /// One column of the first `len` numbers of `all`, which has at least that many or none.
    fn of_list(all: &[f32], len: usize) -> View {
        let (numbers, rows) = if all.is_empty() {
            (std::ptr::null(), 0)
        } else {
            (all.as_ptr(), len)
        };
        View {
            numbers,
            rows: rows as u64,
            columns: 1,
            stride: 1,
        }
    }
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
    /// The name of the buffer in messages.
    name: &'static str,
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
            name: "numbers",
        })
    }

    /// The same buffer under another name.
    pub fn named(self, name: &'static str) -> Numbers {
        Numbers { name, ..self }
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
                    buffer(self.pointer.cast(), self.capacity, count, self.name)?,
                    numbers.map(Float::single),
                ),
                ValueKind::F64 => fill(
                    buffer(self.pointer.cast(), self.capacity, count, self.name)?,
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
                    buffer(self.pointer.cast(), self.capacity, numbers.len(), self.name)
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
