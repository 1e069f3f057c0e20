//! Predictions and their uncertainty.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::arg::{SizedStruct, choice, given, object, optional_struct_in, slice, threads};
use super::arrays::IndexArrays;
use super::cancel::{CancelHandle, Token};
use super::coo_handle::CooHandle;
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::Indices;
use super::model::{ModelHandle, of, with_entries};
use super::model_numbers::Numbers;
use super::status::{Failure, Outcome, S3CMTF_BAD_ENTRY, S3CMTF_OUT_OF_MEMORY};
use crate::error::Result;
use crate::format::MAX_DIM;
use crate::model::Model;
use crate::predict::{
    PredictOptions, PredictiveDistribution, predict_at, predict_entries, predict_intervals,
    predict_intervals_at,
};

/// Clip if the option "clip" of the model's fit was true, or auto and the values have a bounded scale, such as ratings.
pub const S3CMTF_CLIP_DEFAULT: i32 = 0;
/// Do not clip.
pub const S3CMTF_CLIP_OFF: i32 = 1;
/// Clip predictions and quantiles to the range of the training values.
pub const S3CMTF_CLIP_ON: i32 = 2;

/// What to predict, and how. The numbers in the outputs have the type of the predictions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PredictRequest {
    /// sizeof(s3cmtf_predict_request).
    pub size: u64,
    /// S3CMTF_CLIP_...
    pub clip: i32,
    /// The number of threads; 0 means all CPUs that the process may use. Results do not depend on it.
    pub threads: u64,
    /// May be NULL.
    pub cancel: *const CancelHandle,
    /// Output: the predictive standard deviation of each cell, from posterior and noise; room for `capacity` numbers, or
    /// NULL.
    pub deviations: *mut c_void,
    /// Probabilities above 0 and below 1 of the quantiles to predict, such as 0.05 and 0.95.
    pub quantiles: *const f64,
    /// The number of quantiles.
    pub quantile_count: u64,
    /// Output: the quantiles of the value of each cell, those of a cell contiguous; room for `capacity` x `quantile_count`
    /// numbers, or NULL.
    pub quantile_values: *mut c_void,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(PredictRequest, clip) == 8);
    assert!(offset_of!(PredictRequest, threads) == 16);
    assert!(offset_of!(PredictRequest, cancel) == 24);
    assert!(offset_of!(PredictRequest, deviations) == 32);
    assert!(offset_of!(PredictRequest, quantiles) == 40);
    assert!(offset_of!(PredictRequest, quantile_count) == 48);
    assert!(offset_of!(PredictRequest, quantile_values) == 56);
    assert!(size_of::<PredictRequest>() == 64);
};

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl SizedStruct for PredictRequest {}

/// Predicts one cell on the calling thread, clipped as S3CMTF_CLIP_DEFAULT. `cell` has one zero-based index per mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict_cell(
    model: Option<&ModelHandle>,
    cell: *const u64,
    prediction: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(prediction, "prediction")?);
        // SAFETY: an array of the caller, for this call.
        let cell = unsafe { slice(cell, model.order() as u64, "cell") }?;
        let mut row = Vec::with_capacity(cell.len());
        for (n, &index) in cell.iter().enumerate() {
            if index >= MAX_DIM {
                return Err(unusable_index(1, n));
            }
            row.push(index as u32);
        }
        let options = PredictOptions {
            clip: model.clips(),
            threads: 1,
        };
        let made = collected(1, |take| {
            let read = |_: Range<usize>, to: &mut [u32]| to.copy_from_slice(&row);
            predict_at(model, 1, read, &options, &Token(None), take)
        })?;
        out.write(made[0]);
        Ok(())
    })
}

/// Predicts cells. An index that did not occur in the data, also one beyond the size of its mode, is predicted from the
/// mean row of its mode. `predictions` has room for `capacity` numbers of type `number_type` (S3CMTF_F32 or S3CMTF_F64); it
/// may be NULL if `request` has other outputs. `request` may be NULL. Standard deviations and quantiles need a model with
/// posterior samples; otherwise they are S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict(
    model: Option<&ModelHandle>,
    cells: Option<&IndexArrays>,
    predictions: *mut c_void,
    capacity: u64,
    number_type: i32,
    request: *const PredictRequest,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, cells) = (of(model)?, given(cells, "cells")?);
        // SAFETY: structs of the caller and what they point to, for this call.
        let (task, indices) = unsafe {
            (
                Prediction::new(model, predictions, capacity, number_type, request)?,
                Indices::new(cells, model.order(), "cells")?,
            )
        };
        let count = usize::try_from(cells.count).unwrap_or(usize::MAX);
        task.to.require(count)?;
        require_usable(&indices, model.order())?;
        let read = |cells, to: &mut [u32]| indices.read(cells, to);
        let Prediction {
            options,
            quantiles,
            monitor,
            to,
        } = &task;
        if let Some(to) = to.predictions_only() {
            predicted(to, count, |take| {
                predict_at(model, count, read, options, monitor, take)
            })
        } else {
            to.collect(count, |take| {
                predict_intervals_at(model, count, read, quantiles, options, monitor, take)
            })
        }
    })
}

/// Predicts the cell of every entry of `coo`, whose values are ignored; otherwise as s3cmtf_model_predict().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict_coo(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    predictions: *mut c_void,
    capacity: u64,
    number_type: i32,
    request: *const PredictRequest,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, entries) = with_entries(model, coo)?;
        let view = entries.view();
        // SAFETY: a struct of the caller and what it points to, for this call.
        let task = unsafe { Prediction::new(model, predictions, capacity, number_type, request) }?;
        task.to.require(view.len())?;
        let Prediction {
            options,
            quantiles,
            monitor,
            to,
        } = &task;
        if let Some(to) = to.predictions_only() {
            predicted(to, view.len(), |take| {
                predict_entries(model, &view, options, monitor, take)
            })
        } else {
            to.collect(view.len(), |take| {
                predict_intervals(model, &view, quantiles, options, monitor, take)
            })
        }
    })
}

/// A request for predictions, checked.
struct Prediction<'a> {
    options: PredictOptions,
    quantiles: &'a [f64],
    monitor: Token<'a>,
    to: Outputs,
}

impl<'a> Prediction<'a> {
    /// # Safety
    /// If not NULL and aligned, pointers point to what they should for `'a`.
    unsafe fn new(
        model: &Model,
        predictions: *mut c_void,
        capacity: u64,
        number_type: i32,
        request: *const PredictRequest,
    ) -> Outcome<Prediction<'a>> {
        // SAFETY: the caller's promise.
        unsafe {
            let r = optional_struct_in(request, "request")?;
            let quantiles = slice(r.quantiles, r.quantile_count, "request->quantiles")?;
            let buffers = [predictions, r.deviations, r.quantile_values];
            Ok(Prediction {
                options: PredictOptions {
                    clip: clips(r.clip, model)?,
                    threads: threads(r.threads, "request->threads")?,
                },
                quantiles,
                monitor: Token(object(r.cancel)),
                to: Outputs::new(buffers, capacity, quantiles.len(), number_type)?,
            })
        }
    }
}

fn clips(clip: i32, model: &Model) -> Outcome<bool> {
    choice(
        clip,
        &[
            (S3CMTF_CLIP_DEFAULT, model.clips()),
            (S3CMTF_CLIP_OFF, false),
            (S3CMTF_CLIP_ON, true),
        ],
        "request->clip",
    )
}

/// Rejects an index that is out of the range of all indices.
pub(super) fn require_usable(indices: &Indices<'_>, order: usize) -> Outcome {
    let unusable = |n: usize| Some((n, indices.unusable(n)?));
    match (0..order).find_map(unusable) {
        None => Ok(()),
        Some((n, i)) => Err(unusable_index(i + 1, n)),
    }
}

fn unusable_index(cell: usize, mode: usize) -> Failure {
    Failure::new(
        S3CMTF_BAD_ENTRY,
        format!(
            "cell {cell}: its index of mode {} is below the base or {MAX_DIM} or more",
            mode + 1
        ),
    )
}

/// Receives predictions in order, piece by piece.
type Take<'a, T> = &'a mut dyn FnMut(Range<usize>, &[T]) -> Result<()>;

/// Collects all predictions before any is written, so that a failure leaves the caller's buffers unchanged.
fn collected<T: Clone>(
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
    to.write_all(&collected(count, make)?)
}

/// The output buffers of the caller that are not NULL, each with how many numbers it takes per cell.
struct Outputs {
    buffers: [Option<(Numbers, usize)>; 3],
}

impl Outputs {
    /// # Safety
    /// As [`Numbers::new`].
    unsafe fn new(
        pointers: [*mut c_void; 3],
        capacity: u64,
        quantiles: usize,
        kind: i32,
    ) -> Outcome<Outputs> {
        const NAMES: [&str; 3] = [
            "predictions",
            "request->deviations",
            "request->quantile_values",
        ];
        let mut buffers = [None, None, None];
        for (k, pointer) in pointers.into_iter().enumerate() {
            let each = if k == 2 { quantiles } else { 1 };
            // The type is checked even if the buffer is NULL.
            // SAFETY: the caller's promise; a capacity that exceeds memory is rejected when it is used.
            let numbers =
                unsafe { Numbers::new(pointer, capacity.saturating_mul(each as u64), kind) }?
                    .named(NAMES[k]);
            // Without any output the missing buffer of the predictions is an error, unless there are no cells.
            let required = k == 0 && pointers.iter().all(|p| p.is_null());
            buffers[k] = (required || !pointer.is_null()).then_some((numbers, each));
        }
        Ok(Outputs { buffers })
    }

    /// The buffer of the predictions, if neither deviations nor quantiles are requested.
    fn predictions_only(&self) -> Option<&Numbers> {
        match &self.buffers {
            [Some((predictions, _)), None, None] => Some(predictions),
            _ => None,
        }
    }

    /// Checks that all buffers have room for the results of `count` cells, before any index is read.
    fn require(&self, count: usize) -> Outcome {
        for (numbers, each) in self.buffers.iter().flatten() {
            let numbers_needed = count.checked_mul(*each).ok_or_else(|| {
                Failure::argument(format!("{count} times {each} numbers exceed all memory"))
            })?;
            numbers.require(numbers_needed)?;
        }
        Ok(())
    }

    /// Writes distributions to buffers that were checked before.
    fn collect(
        &self,
        count: usize,
        make: impl FnOnce(Take<'_, PredictiveDistribution>) -> Result<()>,
    ) -> Outcome {
        let made = collected(count, make)?;
        let [means, deviations, quantiles] = &self.buffers;
        if let Some((to, _)) = means {
            to.write(count, made.iter().map(|s| s.mean))?;
        }
        if let Some((to, _)) = deviations {
            to.write(count, made.iter().map(|s| s.standard_deviation))?;
        }
        if let Some((to, each)) = quantiles {
            let all = made.iter().flat_map(|s| s.quantiles.iter().copied());
            to.write(count * each, all)?;
        }
        Ok(())
    }
}
