//! Weights of entries.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{given, hand_over};
use super::coo_handle::{CooHandle, Weights, of};
use super::element_type::{S3CMTF_F32, S3CMTF_F64};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::numbers;
use crate::format::{OwnedValues, ValueKind, Values};

/// The same entries with weights: the squared error of an entry counts times its weight, so that a weight
/// of 2 is like an entry listed twice, and one of 0 like an entry that is not there. `weights` are as many
/// numbers of `weight_type` (S3CMTF_F32 or S3CMTF_F64) as there are entries, and are copied; weights that the
/// entries had before do not count. Fits and s3cmtf_coo_check() refuse what is not finite or below 0. The
/// entries are shared, not copied. Free with s3cmtf_coo_free().
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

/// As s3cmtf_coo_new_weighted(), with the values of `weights` as weights: a tensor or matrix that lists the
/// same entries in the same order. The first entry that differs is S3CMTF_BAD_ENTRY. Both are shared, not
/// copied.
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
        coo.source.view().with_weights_of(&weights.source.view())?;
        let weights = Weights::Of(weights.source.clone());
        hand_over(out, CooHandle::weighted(coo, weights));
        Ok(())
    })
}

/// How the weights are stored: S3CMTF_F32 or S3CMTF_F64, or 0 if entries have none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_coo_get_weight_type(
    coo: Option<&CooHandle>,
    weight_type: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (view, out) = (of(coo)?, given(weight_type, "weight_type")?);
        out.write(match view.weights().map(|w| w.kind()) {
            None => 0,
            Some(ValueKind::F32) => S3CMTF_F32,
            Some(ValueKind::F64) => S3CMTF_F64,
        });
        Ok(())
    })
}

/// The weights, without a copy: as many as there are entries, of the type s3cmtf_coo_get_weight_type() says;
/// NULL if entries have none. They live as long as the object.
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
