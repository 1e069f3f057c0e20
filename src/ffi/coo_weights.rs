//! Weights of entries.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{given, hand_over};
use super::coo_handle::{CooHandle, MatchedSource, Weights, of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::numbers;
use crate::format::{OwnedValues, RowMatcher, Values};

/// Creates a tensor or matrix with the same entries, which are shared, and these weights, which are copied: one number of
/// type `weight_type` (S3CMTF_F32 or S3CMTF_F64) per entry, finite and not negative. The squared error of an entry is
/// multiplied by its weight, so a weight of 2 equals an entry listed twice. Weights that `coo` had before are replaced.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_coo_new_weighted(
    coo: Option<&CooHandle>,
    weights: *const c_void,
    weight_type: i32,
    weighted: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (coo, out) = (given(coo, "coo")?, given(weighted, "weighted")?);
        let count = coo.source.view().len() as u64;
        // SAFETY: an array of the caller, for this call.
        let weights = unsafe { numbers(weights, count, weight_type, ("weights", "weight_type")) }?;
        let weights = Weights::Copied(OwnedValues::copy(weights)?);
        hand_over(out, CooHandle::weighted(coo, weights));
        Ok(())
    })
}

/// Does the same with the values of `weights`, which lists the same entries in the same order; the first entry that differs
/// is S3CMTF_BAD_ENTRY. Rows of files with names are compared by name. Both are shared, not copied.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_new_weighted_by(
    coo: Option<&CooHandle>,
    weights: Option<&CooHandle>,
    weighted: Option<&mut MaybeUninit<*mut CooHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (coo, weights) = (given(coo, "coo")?, given(weights, "weights")?);
        let out = given(weighted, "weighted")?;
        let view = coo.source.view();
        let mut matcher = RowMatcher::of_tensor(&view, coo.source.names()?);
        let matched = MatchedSource::entries(&weights.source, &mut matcher)?;
        view.with_weights_of(&matched.view())?;
        let weights = Weights::Of(weights.source.clone());
        hand_over(out, CooHandle::weighted(coo, weights));
        Ok(())
    })
}

/// Returns the weights, one per entry and of the type that s3cmtf_coo_get_info() reports, without a copy; NULL if the entries
/// have no weights. They are valid as long as the object.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_view_weights(
    coo: Option<&CooHandle>,
    weights: Option<&mut MaybeUninit<*const c_void>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(weights, "weights")?);
        out.write(match view.weights() {
            None => std::ptr::null(),
            Some(Values::F32(v)) => v.as_ptr().cast(),
            Some(Values::F64(v)) => v.as_ptr().cast(),
        });
        Ok(())
    })
}
