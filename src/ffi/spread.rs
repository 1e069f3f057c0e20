//! How sure a model of samples is of its predictions.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{flag, given, slice, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::Indices;
use super::model::{ModelHandle, of};
use super::model_numbers::Numbers;
use super::predict::{Take, collected, require_usable};
use super::status::{Failure, Outcome};
use crate::error::Result;
use crate::predict::{
    PredictOptions, PredictiveDistribution, predict_intervals, predict_intervals_at,
};

/// How many samples predictions of the model are means over: 0 unless it was fitted with algorithm "gibbs".
/// Only a model with samples knows how sure it is.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_samples(
    model: Option<&ModelHandle>,
    samples: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(samples, "samples")?);
        out.write(model.samples().map_or(0, |s| s.len() as u64));
        Ok(())
    })
}

/// Predicts `count` cells as s3cmtf_model_predict() does, with how sure the model is: the standard deviation
/// of the value of each cell (the deviation of the samples and that of the noise together), and
/// `quantile_count` quantiles of a normal distribution with that mean and deviation, each above 0 and below 1, as
/// in {0.05, 0.95}. A model without samples does not know (S3CMTF_BAD_ARGUMENT).
///
/// `predictions` and `deviations` have room for `capacity` numbers of `number_type` (S3CMTF_F32 or S3CMTF_F64)
/// each, `quantile_values` for `capacity` times `quantile_count`, those of a cell side by side. Any of the three
/// may be NULL if it is not wanted. `clip` limits predictions and quantiles to the range of the training values.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict_spread(
    model: Option<&ModelHandle>,
    count: u64,
    indices: *const *const c_void,
    index_type: i32,
    stride: u64,
    base: i32,
    quantile_count: u64,
    quantiles: *const f64,
    clip: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    predictions: *mut c_void,
    deviations: *mut c_void,
    quantile_values: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: arrays and buffers of the caller, for this call.
        let (indices, quantiles, to) = unsafe {
            (
                Indices::new(indices, model.order(), count, index_type, stride, base)?,
                slice(quantiles, quantile_count, "quantiles")?,
                [predictions, deviations, quantile_values],
            )
        };
        // SAFETY: the same.
        let to = unsafe { Outputs::new(to, capacity, quantiles.len(), number_type) }?;
        let (clip, threads) = (flag(clip, "clip")?, self::threads(threads)?);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        require_usable(&indices, model.order())?;
        let read = |cells, to: &mut [u32]| indices.read(cells, to);
        to.collect(count, |take| {
            predict_intervals_at(
                model,
                count,
                read,
                quantiles,
                &PredictOptions { clip, threads },
                &Token(cancel),
                take,
            )
        })
    })
}

/// The same for the cell of every entry of `coo`, whose values do not matter.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_predict_spread_coo(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    quantile_count: u64,
    quantiles: *const f64,
    clip: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    predictions: *mut c_void,
    deviations: *mut c_void,
    quantile_values: *mut c_void,
    capacity: u64,
    number_type: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, view) = (of(model)?, entries_of(coo)?);
        // SAFETY: an array and buffers of the caller, for this call.
        let quantiles = unsafe { slice(quantiles, quantile_count, "quantiles") }?;
        let to = [predictions, deviations, quantile_values];
        // SAFETY: the same.
        let to = unsafe { Outputs::new(to, capacity, quantiles.len(), number_type) }?;
        let (clip, threads) = (flag(clip, "clip")?, self::threads(threads)?);
        to.collect(view.len(), |take| {
            predict_intervals(
                model,
                &view,
                quantiles,
                &PredictOptions { clip, threads },
                &Token(cancel),
                take,
            )
        })
    })
}

/// The buffers of the caller that are wanted, each with how many numbers it takes for a cell.
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
        let mut buffers = [None, None, None];
        for (k, pointer) in pointers.into_iter().enumerate() {
            let each = if k == 2 { quantiles } else { 1 };
            // Also of what is not wanted: a wrong type is one in any case.
            // SAFETY: the caller's promise; one that is too large to be true is refused when it is used.
            let numbers =
                unsafe { Numbers::new(pointer, capacity.saturating_mul(each as u64), kind) }?;
            buffers[k] = (!pointer.is_null()).then_some((numbers, each));
        }
        Ok(Outputs { buffers })
    }

    /// Writes what is made.
    fn collect(
        &self,
        count: usize,
        make: impl FnOnce(Take<'_, PredictiveDistribution>) -> Result<()>,
    ) -> Outcome {
        let sizes = |each: usize| {
            count.checked_mul(each).ok_or_else(|| {
                Failure::argument(format!(
                    "{count} times {each} numbers; no memory is that large"
                ))
            })
        };
        for (numbers, each) in self.buffers.iter().flatten() {
            numbers.require(sizes(*each)?)?;
        }
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
            to.write(sizes(*each)?, all)?;
        }
        Ok(())
    }
}
