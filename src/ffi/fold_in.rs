//! New rows of a fitted model.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{flag, given, hand_over, place, slice, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::model::{ModelHandle, of};
use super::problem::own;
use crate::solver::{FoldIn, FoldMatrix, fold_in};

/// Makes a model with rows of `mode` that came after training, to be freed with s3cmtf_model_free(). Each is found
/// in closed form, given everything else in the model, as the fit would have found it; of a model with samples it
/// is drawn once for each. What the model predicts for all other rows stays as it is. Everything that is known of
/// the new rows has to be given, since a model keeps no entries:
///
/// `tensor` has their tensor entries and may be NULL if there are matrices. Rows of other modes that the model does
/// not know count as the mean row of their mode. `matrices` are `matrix_count` matrices with what is known of the
/// rows there; matrix k belongs to matrix `matrix_numbers[k]` of the model, which is coupled to `mode`, and
/// `weights[k]` is its weight, S3CMTF_FROM_OPTIONS that of the fit. `weights` may be NULL if all are. Columns that
/// the model does not know say nothing.
///
/// A row that the model has from tensor entries is S3CMTF_BAD_ARGUMENT, unless `replace` is 1: it is then found anew,
/// from these entries alone. The size of the mode grows if need be. It runs on `threads` threads (0: all the process
/// may use); the result does not depend on how many. `cancel`, `added` and `replaced` (how many rows were) may be
/// NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_fold_in(
    model: Option<&ModelHandle>,
    mode: u64,
    tensor: Option<&CooHandle>,
    matrix_count: u64,
    matrices: *const Option<&CooHandle>,
    matrix_numbers: *const u64,
    weights: *const f64,
    replace: i32,
    threads: u64,
    cancel: Option<&CancelHandle>,
    folded: Option<&mut MaybeUninit<*mut ModelHandle>>,
    added: Option<&mut MaybeUninit<u64>>,
    replaced: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(folded, "folded")?);
        // SAFETY: arrays of the caller, for this call.
        let (matrices, numbers, weights) = unsafe {
            (
                slice(matrices, matrix_count, "matrices")?,
                slice(matrix_numbers, matrix_count, "matrix_numbers")?,
                if weights.is_null() {
                    &[]
                } else {
                    slice(weights, matrix_count, "weights")?
                },
            )
        };
        let mut input = FoldIn {
            mode: place(mode, model.order(), "mode")?,
            tensor: match (tensor, matrices) {
                (None, [_, ..]) => None,
                (tensor, _) => Some(entries_of(Some(given(tensor, "tensor")?))?),
            },
            matrices: Vec::new(),
            replace: flag(replace, "replace")?,
            threads: self::threads(threads)?,
        };
        for (k, (matrix, &number)) in matrices.iter().zip(numbers).enumerate() {
            let what = format!("matrices[{k}]");
            input.matrices.push(FoldMatrix {
                number: place(
                    number,
                    model.matrices().len(),
                    &format!("matrix_numbers[{k}]"),
                )?,
                entries: entries_of(Some(given(*matrix, &what)?))?,
                weight: match weights.get(k) {
                    None => None,
                    Some(&weight) => own(weight, &format!("weights[{k}]"))?,
                },
            });
        }
        let (new, summary) = fold_in(model, &input, &Token(cancel))?;
        hand_over(out, ModelHandle::new(new));
        for (out, number) in [(added, summary.added), (replaced, summary.replaced)] {
            if let Some(out) = out {
                out.write(number);
            }
        }
        Ok(())
    })
}
