//! Folding new rows into a fitted model.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{SizedStruct, flag, given, hand_over, object, place, slice, struct_in, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, MatchedSource};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::model::ModelHandle;
use super::status::{Failure, Outcome, S3CMTF_NULL_ARGUMENT};
use crate::solver::{FoldIn, FoldMatrix, fold_in};

/// Input of s3cmtf_model_fold_in(): all entries of the new rows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldInRequest {
    /// sizeof(s3cmtf_fold_in_request).
    pub size: u64,
    /// Tensor entries of the rows. May be NULL if there are matrices.
    pub tensor: *const CooHandle,
    /// Number of matrices.
    pub matrix_count: u64,
    /// Matrix entries of the rows. Columns that the model does not have are ignored.
    pub matrices: *const *const CooHandle,
    /// For each matrix, its number in the model; each is coupled to the mode.
    pub matrix_numbers: *const u64,
    /// For each matrix, its weight; 0: that of the fit. NULL: all those of the fit.
    pub weights: *const f64,
    /// 1: replace rows of the model that have tensor entries; 0: S3CMTF_BAD_ARGUMENT for such rows.
    pub replace: i32,
    /// Number of threads; 0: all available to the process. The result does not depend on it.
    pub threads: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

// SAFETY: laid out as in C, the size first; zero bytes are valid.
unsafe impl SizedStruct for FoldInRequest {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(FoldInRequest, size) == 0);
    assert!(offset_of!(FoldInRequest, tensor) == 8);
    assert!(offset_of!(FoldInRequest, matrix_count) == 16);
    assert!(offset_of!(FoldInRequest, matrices) == 24);
    assert!(offset_of!(FoldInRequest, matrix_numbers) == 32);
    assert!(offset_of!(FoldInRequest, weights) == 40);
    assert!(offset_of!(FoldInRequest, replace) == 48);
    assert!(offset_of!(FoldInRequest, threads) == 56);
    assert!(offset_of!(FoldInRequest, cancel) == 64);
    assert!(size_of::<FoldInRequest>() == 72);
};

/// Creates a model that also has the rows of `mode` with entries in `request`; free it with s3cmtf_model_free().
/// Rows are solved by least squares with the rest of the model fixed, or sampled once per posterior sample. Other
/// predictions do not change; the mode grows if necessary. Rows of other modes that the model does not have count as
/// the mean row of their mode. `added` and `replaced` (numbers of rows) may be NULL. A model with an L1 penalty and
/// entries of a graph are S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_fold_in(
    model: Option<&ModelHandle>,
    mode: u64,
    request: *const FoldInRequest,
    folded: Option<&mut MaybeUninit<*mut ModelHandle>>,
    added: Option<&mut MaybeUninit<u64>>,
    replaced: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (handle, out) = (given(model, "model")?, given(folded, "folded")?);
        let model = &*handle.model;
        // SAFETY: a struct of the caller with its arrays and objects, for this call.
        let (request, tensor, cancel, matrices, numbers, weights) = unsafe {
            let request = struct_in(request, "request")?;
            let count = request.matrix_count;
            (
                request,
                object(request.tensor),
                object(request.cancel),
                slice(request.matrices, count, "request->matrices")?,
                slice(request.matrix_numbers, count, "request->matrix_numbers")?,
                if request.weights.is_null() {
                    &[]
                } else {
                    slice(request.weights, count, "request->weights")?
                },
            )
        };
        if tensor.is_none() && matrices.is_empty() {
            return Err(Failure::new(
                S3CMTF_NULL_ARGUMENT,
                "request->tensor is NULL and request->matrix_count is 0; one of them must have entries of the new rows",
            ));
        }
        let mode = place(mode, model.order(), "mode")?;
        let mut matcher = handle.matcher()?;
        matcher.take_new_rows(mode);
        let mut names = handle.names()?.clone();
        let tensor = match tensor {
            Some(tensor) => Some(MatchedSource::entries(&tensor.source, &mut matcher)?),
            None => None,
        };
        let mut matched = Vec::new();
        for (k, (&matrix, &number)) in matrices.iter().zip(numbers).enumerate() {
            let what = format!("request->matrices[{k}]");
            let columns = matcher.columns_of(usize::try_from(number).unwrap_or(usize::MAX / 2));
            // SAFETY: an object of the caller, for this call.
            let source = &given(unsafe { object(matrix) }, &what)?.source;
            matched.push(MatchedSource::coupled(
                source,
                &mut matcher,
                mode,
                Some(columns),
            )?);
        }
        let mut input = FoldIn {
            mode,
            tensor: tensor.as_ref().map(MatchedSource::view),
            matrices: Vec::new(),
            replace: flag(request.replace, "request->replace")?,
            threads: threads(request.threads, "request->threads")?,
        };
        for (k, (matrix, &number)) in matched.iter().zip(numbers).enumerate() {
            let name = format!("request->matrix_numbers[{k}]");
            input.matrices.push(FoldMatrix {
                number: place(number, model.matrices().len(), &name)?,
                entries: matrix.view(),
                weight: match weights.get(k) {
                    None => None,
                    Some(&weight) => weight_of(weight, k)?,
                },
            });
        }
        let (new, summary) = fold_in(model, &input, &Token(cancel))?;
        // Unknown rows of other modes are not in the model.
        if let Some(names) = names.modes.get_mut(mode) {
            *names = matcher.names().swap_remove(mode);
        }
        hand_over(out, ModelHandle::new(new, names));
        for (out, number) in [(added, summary.added), (replaced, summary.replaced)] {
            if let Some(out) = out {
                out.write(number);
            }
        }
        Ok(())
    })
}

/// Returns the weight of matrix `k`, or `None` for that of the fit.
fn weight_of(weight: f64, k: usize) -> Outcome<Option<f64>> {
    if !(weight.is_finite() && weight >= 0.0) {
        return Err(Failure::argument(format!(
            "request->weights[{k}] is {weight}; it must be finite and above 0, or 0 for the weight of the fit"
        )));
    }
    Ok((weight > 0.0).then_some(weight))
}
