//! Models: opened, described, saved.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::arg::{copy_out, given, hand_over, path, place, text_out};
use super::cancel::{CancelHandle, Token};
use super::coo::open_mode;
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::options::OptionsHandle;
use super::problem::{
    S3CMTF_MATRIX_FULL, S3CMTF_MATRIX_GRAPH, S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_SAMPLED,
};
use super::progress::{Progress, S3CMTF_FIT_ENDED};
use super::status::Outcome;
use crate::model::{Model, load, save};
use crate::predict::export;

use crate::kernel::CoreKind;
use crate::problem::MatrixKind;

/// The core is full.
pub const S3CMTF_MODEL_TUCKER: i32 = 1;
/// The core is hyper-diagonal.
pub const S3CMTF_MODEL_CP: i32 = 2;

/// A fitted model. It never changes, so that every function that takes it as const may run concurrently.
/// Modes, matrices and rows count from 0.
///
/// Each mode has a row for each of its indices that occurred in the data: row r of its factor belongs to
/// the index that s3cmtf_model_copy_row_indices() gives for r, in ascending order. All other indices share one
/// more row, the mean of the rows by their entries, from which they are predicted.
///
/// The prediction of a cell is the mean of the model, plus the bias of its row in each mode, plus the core
/// multiplied with its rows; that of an entry of a coupled matrix is the offset of its column plus the product
/// of the row of the mode and the column's row of V. What a model lacks is 0.
pub struct ModelHandle {
    pub(super) model: Arc<Model>,
}

impl ModelHandle {
    pub(super) fn new(model: Model) -> ModelHandle {
        ModelHandle {
            model: Arc::new(model),
        }
    }
}

/// Opens a model file, or the model in a checkpoint; `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE.
/// Free with s3cmtf_model_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_load(
    path: *const c_char,
    mode: i32,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(model, "model")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        hand_over(out, ModelHandle::new(load(path, open_mode(mode)?)?));
        Ok(())
    })
}

/// Writes a model file, which appears complete or not at all.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_save(
    model: Option<&ModelHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        Ok(save(model, path)?)
    })
}

/// Writes factors, core, columns of matrices, mean, biases and offsets into a folder, as .npy files; all but the
/// last three also as text. `cancel` may be
/// NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_export(
    model: Option<&ModelHandle>,
    folder: *const c_char,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: a text of the caller, for this call.
        let folder = unsafe { path(folder, "folder") }?;
        export(model, &folder, &Token(cancel))?;
        Ok(())
    })
}

/// Frees a model. Fits that start from it live on; views into it do not. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_free(model: Option<Box<ModelHandle>>) {
    release(|| drop(model));
}

/// Whether the model is S3CMTF_MODEL_TUCKER or S3CMTF_MODEL_CP.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_kind(
    model: Option<&ModelHandle>,
    kind: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(kind, "kind")?);
        out.write(match model.shape().kind {
            CoreKind::Full => S3CMTF_MODEL_TUCKER,
            CoreKind::Diagonal => S3CMTF_MODEL_CP,
        });
        Ok(())
    })
}

/// The number of modes.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_order(
    model: Option<&ModelHandle>,
    order: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(order, "order")?);
        out.write(model.order() as u64);
        Ok(())
    })
}

/// Copies the size of each mode into `dims`, which has room for `capacity` numbers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_dims(
    model: Option<&ModelHandle>,
    dims: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(&model.dims(), dims, capacity, "dims") }
    })
}

/// Copies the rank of each mode into `ranks`, which has room for `capacity` numbers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_ranks(
    model: Option<&ModelHandle>,
    ranks: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let shape = of(model)?.shape();
        let own: Vec<u64> = shape.ranks.iter().map(|&j| j as u64).collect();
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(&own, ranks, capacity, "ranks") }
    })
}

/// The smallest and the largest training value: the range to which predictions are clipped.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_range(
    model: Option<&ModelHandle>,
    low: Option<&mut MaybeUninit<f64>>,
    high: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, low, high) = (of(model)?, given(low, "low")?, given(high, "high")?);
        low.write(model.range().min);
        high.write(model.range().max);
        Ok(())
    })
}

/// What is added to every prediction: the mean of the training values, or 0 (option "mean").
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_mean(
    model: Option<&ModelHandle>,
    mean: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(mean, "mean")?);
        out.write(model.mean());
        Ok(())
    })
}

/// The number of rows of a mode: of its indices that occurred.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_rows(
    model: Option<&ModelHandle>,
    mode: u64,
    rows: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(rows, "rows")?);
        let mode = &model.modes()[place(mode, model.order(), "mode")?];
        out.write(mode.rows.len() as u64);
        Ok(())
    })
}

/// The number of coupled matrices, graphs among them.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_matrices(
    model: Option<&ModelHandle>,
    matrices: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(matrices, "matrices")?);
        out.write(model.matrices().len() as u64);
        Ok(())
    })
}

/// What a coupled matrix is: its mode, its kind (S3CMTF_MATRIX_OBSERVED and so on), its weight,
/// the number of its columns and how many of them occurred (a graph has none of its own). Each output may be
/// NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_matrix(
    model: Option<&ModelHandle>,
    matrix: u64,
    mode: Option<&mut MaybeUninit<u64>>,
    kind: Option<&mut MaybeUninit<i32>>,
    weight: Option<&mut MaybeUninit<f64>>,
    columns: Option<&mut MaybeUninit<u64>>,
    rows: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let matrix = &model.matrices()[place(matrix, model.matrices().len(), "matrix")?];
        let numbers = [
            (mode, matrix.mode as u64),
            (columns, matrix.columns.dim()),
            (rows, matrix.columns.len() as u64),
        ];
        for (out, number) in numbers {
            out.map(|out| out.write(number));
        }
        kind.map(|out| {
            out.write(match matrix.kind {
                MatrixKind::Observed => S3CMTF_MATRIX_OBSERVED,
                MatrixKind::Graph => S3CMTF_MATRIX_GRAPH,
                MatrixKind::Full => S3CMTF_MATRIX_FULL,
                MatrixKind::Sampled(_) => S3CMTF_MATRIX_SAMPLED,
            })
        });
        weight.map(|out| out.write(matrix.weight));
        Ok(())
    })
}

/// A copy of the options the model was fitted with, to be freed with s3cmtf_options_free(). Where
/// the fit had a choice ("auto") they say what it chose.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_options(
    model: Option<&ModelHandle>,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(options, "options")?);
        let options = model.options().clone();
        hand_over(out, OptionsHandle { options });
        Ok(())
    })
}

/// Writes what happened in the fit and how it ended, and the NUL behind it, into `text`, which has room for `capacity`
/// bytes, and how many bytes that is into `needed` (which may be NULL). With `text` NULL and `capacity` 0 it only says how
/// many. Each line is NAME=VALUE: note=EPOCH WHAT TEXT for each event (WHAT is rolled-back, rank-lowered, refit or warning),
/// then reason, epochs, best_epoch, train_rmse, test_rmse, valid_rmse, clipped, threads, kernel, update_seconds, eval_seconds
/// and seconds. A checkpoint has no such ending, and a model of an earlier version has no line.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_record(
    model: Option<&ModelHandle>,
    text: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let lines = of(model)?.record().to_text();
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&lines, text, capacity, needed, "text") }
    })
}

/// The number of epochs the model was fitted for.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_epochs(
    model: Option<&ModelHandle>,
    epochs: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(epochs, "epochs")?);
        out.write(model.history().len() as u64);
        Ok(())
    })
}

/// The figures of an epoch, counted from 0: set `progress->size` before.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_epoch(
    model: Option<&ModelHandle>,
    epoch: u64,
    progress: *mut Progress,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let history = model.history();
        let figures = &history[place(epoch, history.len(), "epoch")?];
        let mut own = Progress::new(model.options().epochs);
        own.state = S3CMTF_FIT_ENDED;
        own.set_epoch(figures);
        // SAFETY: a struct of the caller, for this call.
        unsafe { own.write_to(progress) }
    })
}

/// The model of a handle that must be there.
pub(super) fn of(model: Option<&ModelHandle>) -> Outcome<&Model> {
    Ok(&given(model, "model")?.model)
}
