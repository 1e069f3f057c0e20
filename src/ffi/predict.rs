//! Predictions and errors of a model.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{flag, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::Indices;
use super::model::{ModelHandle, of};
use super::model_numbers::Numbers;
use super::status::{Failure, Outcome, S3CMTF_BAD_ENTRY, S3CMTF_OUT_OF_MEMORY};
use crate::error::Result;
use crate::format::MAX_DIM;
use crate::predict::{PredictOptions, evaluate, predict_at, predict_entries};

/// Predicts `count` cells. Their indices are given as to s3cmtf_coo_new(): a pointer per mode, `index_type`,
/// `stride` and `base`. An index that did not occur in the data, also one beyond its size, predicts as the
/// mean row of its mode. `clip` (0 or 1) limits predictions to the range of the training values. They go
/// into `numbers`, which has room for `capacity` numbers of `number_type` (S3CMTF_F32 or S3CMTF_F64). They
/// are made on `threads` threads (0: all the process may use), and do not depend on how many. `cancel` may
/// be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict(
    model: Option<&ModelHandle>,
    count: u64,
    indices: *const *const c_void,
    index_type: i32,
    stride: u64,
    base: i32,
    clip: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: arrays and a buffer of the caller, for this call.
        let (indices, to) = unsafe {
            (
                Indices::new(indices, model.order(), count, index_type, stride, base)?,
                Numbers::new(numbers, capacity, number_type)?,
            )
        };
        let (clip, threads) = (flag(clip, "clip")?, self::threads(threads)?);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        require_usable(&indices, model.order())?;
        let read = |cells, to: &mut [u32]| indices.read(cells, to);
        predicted(&to, count, |take| {
            predict_at(
                model,
                count,
                read,
                &PredictOptions { clip, threads },
                &Token(cancel),
                take,
            )
        })
    })
}

/// Refuses an index that cannot be one.
pub(super) fn require_usable(indices: &Indices<'_>, order: usize) -> Outcome {
    let unusable = |n: usize| Some((n, indices.unusable(n)?));
    match (0..order).find_map(unusable) {
        None => Ok(()),
        Some((n, i)) => Err(Failure::new(
            S3CMTF_BAD_ENTRY,
            format!(
                "cell {}: its index of mode {} is below the first or {MAX_DIM} or more",
                i + 1,
                n + 1
            ),
        )),
    }
}

/// Predicts the cell of every entry of `coo`, whose values do not matter; otherwise as
/// s3cmtf_model_predict().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict_coo(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    clip: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    numbers: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, view) = (of(model)?, entries_of(coo)?);
        // SAFETY: a buffer of the caller, for this call.
        let to = unsafe { Numbers::new(numbers, capacity, number_type) }?;
        let (clip, threads) = (flag(clip, "clip")?, self::threads(threads)?);
        predicted(&to, view.len(), |take| {
            predict_entries(
                model,
                &view,
                &PredictOptions { clip, threads },
                &Token(cancel),
                take,
            )
        })
    })
}

/// What takes predictions as they come, in order.
pub(super) type Take<'a, T> = &'a mut dyn FnMut(std::ops::Range<usize>, &[T]) -> Result<()>;

/// All that is made, before any of it is written: a failure leaves the caller's buffers alone.
pub(super) fn collected<T: Clone>(
    count: usize,
    make: impl FnOnce(Take<'_, T>) -> Result<()>,
) -> Outcome<Vec<T>> {
    let mut made: Vec<T> = Vec::new();
    made.try_reserve_exact(count).map_err(|_| {
        Failure::new(
            S3CMTF_OUT_OF_MEMORY,
            format!("no memory for {count} predictions"),
        )
    })?;
    make(&mut |_, piece: &[T]| {
        made.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(made)
}

fn predicted(
    to: &Numbers,
    count: usize,
    make: impl FnOnce(Take<'_, f64>) -> Result<()>,
) -> Outcome {
    if count == 0 {
        return Ok(());
    }
    to.require(count)?;
    to.write_all(&collected(count, make)?)
}

/// Predicts every entry of `coo` and writes the root of the mean squared error and the mean absolute error
/// (either may be NULL); without entries they are 0. `clip`, `threads` and `cancel` are as for
/// s3cmtf_model_predict().
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_evaluate(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    clip: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    rmse: Option<&mut MaybeUninit<f64>>,
    mae: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, view) = (of(model)?, entries_of(coo)?);
        model.check_order(&view)?;
        let (clip, threads) = (flag(clip, "clip")?, self::threads(threads)?);
        let found = evaluate(model, &view, model.range(), threads, &Token(cancel))?;
        let errors = if clip { found.clipped } else { found.unclipped };
        for (out, number) in [(rmse, errors.rmse), (mae, errors.mae)] {
            if let Some(out) = out {
                out.write(number);
            }
        }
        Ok(())
    })
}
