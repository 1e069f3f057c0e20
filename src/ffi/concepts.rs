//! Latent concepts: the columns of the factor of a mode, described by rows and matrix columns.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{
    self, SizedStruct, choice, copy_out, given, hand_over, object, optional_buffer,
    optional_struct_in, slice, struct_out,
};
use super::cancel::{CancelHandle, Token};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::model::{ModelHandle, of as model_of};
use super::recommend::length_of;
use super::status::Outcome;
use crate::discover::{Concept, ConceptOptions, Concepts, describe_concepts};

/// The end of a concept with the largest loadings.
pub const S3CMTF_LARGEST: i32 = 0;
/// The end of a concept with the smallest loadings.
pub const S3CMTF_SMALLEST: i32 = 1;

/// The concepts of a mode: descriptions of the columns of its factor. Immutable and independent of the model.
pub struct ConceptsHandle {
    found: Concepts,
}

/// Input of s3cmtf_concepts_new().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConceptsRequest {
    /// sizeof(s3cmtf_concepts_request).
    pub size: u64,
    /// Largest number of rows, and of columns per coupled matrix, at each end of a concept; 0: 10.
    pub top: u64,
    /// Smallest number of tensor entries of a listed row; 0: 1.
    pub min_entries: u64,
    /// Modes with a given row, none of them the described mode; may be NULL if there are none.
    pub given_modes: *const u64,
    /// The given row of each.
    pub given_rows: *const u64,
    /// Number of given rows. The remaining modes are averaged over.
    pub given_count: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

/// Output of s3cmtf_concepts_get().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConceptInfo {
    /// Bytes written; set it to sizeof(s3cmtf_concept) before the call.
    pub size: u64,
    /// Column of the factor.
    pub column: u64,
    /// Root mean square of the concept's contribution to predictions, weighted by tensor entries.
    pub strength: f64,
    /// Contribution to the prediction for a row of loading 1, with modes that are not given at their mean rows; 0 or
    /// more.
    pub effect: f64,
    /// 1 if the sign of the column was flipped to make the effect 0 or more: loadings and shares have the opposite sign
    /// of the model's numbers. Otherwise 0.
    pub sign_flipped: i32,
    /// Number of rows at S3CMTF_LARGEST.
    pub largest_rows: u64,
    /// Number of rows at S3CMTF_SMALLEST.
    pub smallest_rows: u64,
    /// Number of matrix columns at S3CMTF_LARGEST.
    pub largest_columns: u64,
    /// Number of matrix columns at S3CMTF_SMALLEST.
    pub smallest_columns: u64,
}

/// Output of s3cmtf_concepts_get_column(): a column of a coupled matrix that is associated with a concept.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConceptColumnInfo {
    /// Bytes written; set it to sizeof(s3cmtf_concept_column) before the call.
    pub size: u64,
    /// Matrix of the model.
    pub matrix: u64,
    /// Column of the matrix.
    pub column: u64,
    /// Contribution of the concept to the column's prediction for a row of loading 1, divided by the root mean square of
    /// the column's predictions.
    pub share: f64,
}

// SAFETY: laid out as in C, the size first; zero bytes are valid.
unsafe impl SizedStruct for ConceptsRequest {}
// SAFETY: the same.
unsafe impl SizedStruct for ConceptInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for ConceptColumnInfo {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(ConceptsRequest, size) == 0);
    assert!(offset_of!(ConceptsRequest, top) == 8);
    assert!(offset_of!(ConceptsRequest, min_entries) == 16);
    assert!(offset_of!(ConceptsRequest, given_modes) == 24);
    assert!(offset_of!(ConceptsRequest, given_rows) == 32);
    assert!(offset_of!(ConceptsRequest, given_count) == 40);
    assert!(offset_of!(ConceptsRequest, cancel) == 48);
    assert!(size_of::<ConceptsRequest>() == 56);

    assert!(offset_of!(ConceptInfo, size) == 0);
    assert!(offset_of!(ConceptInfo, column) == 8);
    assert!(offset_of!(ConceptInfo, strength) == 16);
    assert!(offset_of!(ConceptInfo, effect) == 24);
    assert!(offset_of!(ConceptInfo, sign_flipped) == 32);
    assert!(offset_of!(ConceptInfo, largest_rows) == 40);
    assert!(offset_of!(ConceptInfo, smallest_rows) == 48);
    assert!(offset_of!(ConceptInfo, largest_columns) == 56);
    assert!(offset_of!(ConceptInfo, smallest_columns) == 64);
    assert!(size_of::<ConceptInfo>() == 72);

    assert!(offset_of!(ConceptColumnInfo, size) == 0);
    assert!(offset_of!(ConceptColumnInfo, matrix) == 8);
    assert!(offset_of!(ConceptColumnInfo, column) == 16);
    assert!(offset_of!(ConceptColumnInfo, share) == 24);
    assert!(size_of::<ConceptColumnInfo>() == 32);
};

/// Describes the concepts of `mode`; free the result with s3cmtf_concepts_free(). A concept contributes to a
/// prediction the product of a row's number in its column and of the core contracted with the rows of the other modes.
/// `request` may be NULL. A given row that the model does not have is S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_new(
    model: Option<&ModelHandle>,
    mode: u64,
    request: *const ConceptsRequest,
    concepts: Option<&mut MaybeUninit<*mut ConceptsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (model_of(model)?, given(concepts, "concepts")?);
        // SAFETY: a struct of the caller with its arrays, for this call.
        let (request, modes, rows, cancel) = unsafe {
            let r = optional_struct_in(request, "request")?;
            (
                r,
                slice(r.given_modes, r.given_count, "request->given_modes")?,
                slice(r.given_rows, r.given_count, "request->given_rows")?,
                object(r.cancel),
            )
        };
        let mut options = ConceptOptions {
            top: length_of(request.top),
            min_entries: request.min_entries.max(1),
            ..ConceptOptions::new(arg::place(mode, model.order(), "mode")?)
        };
        for (k, (&n, &row)) in modes.iter().zip(rows).enumerate() {
            let n = arg::place(n, model.order(), &format!("request->given_modes[{k}]"))?;
            let dim = usize::try_from(model.dims()[n]).unwrap_or(usize::MAX);
            let row = arg::place(row, dim, &format!("request->given_rows[{k}]"))?;
            options.given.push((n, row as u32));
        }
        let found = describe_concepts(model, &options, &Token(cancel))?;
        hand_over(out, ConceptsHandle { found });
        Ok(())
    })
}

/// Gets the number of concepts: the rank of the mode.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_concepts_get_count(
    concepts: Option<&ConceptsHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (concepts, out) = (given(concepts, "concepts")?, given(count, "count")?);
        out.write(concepts.found.concepts.len() as u64);
        Ok(())
    })
}

/// Gets concept `index`; the strongest is 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_get(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    info: *mut ConceptInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        let own = ConceptInfo {
            size: 0,
            column: concept.column as u64,
            strength: concept.strength,
            effect: concept.effect,
            sign_flipped: i32::from(concept.sign_flipped),
            largest_rows: concept.largest.len() as u64,
            smallest_rows: concept.smallest.len() as u64,
            largest_columns: concept.positive.len() as u64,
            smallest_columns: concept.negative.len() as u64,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Copies the rows at an end of a concept (S3CMTF_LARGEST or S3CMTF_SMALLEST), the most extreme first. A loading is
/// the number of the row in the column divided by the column's root mean square, weighted by tensor entries. `rows` and
/// `loadings` have room for `capacity` items, at least largest_rows or smallest_rows of s3cmtf_concept; either may be
/// NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_copy_rows(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    end: i32,
    rows: *mut u64,
    loadings: *mut f64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        let list = end_of(end, &concept.largest, &concept.smallest)?;
        // SAFETY: buffers of the caller, for this call.
        let (rows, loadings) = unsafe {
            (
                optional_buffer(rows, capacity, list.len(), "rows")?,
                optional_buffer(loadings, capacity, list.len(), "loadings")?,
            )
        };
        for (to, row) in rows.iter_mut().zip(list) {
            to.write(u64::from(row.index));
        }
        for (to, row) in loadings.iter_mut().zip(list) {
            to.write(row.score);
        }
        Ok(())
    })
}

/// Gets a matrix column at an end of a concept: S3CMTF_LARGEST has the largest shares, S3CMTF_SMALLEST the smallest.
/// `place` is below largest_columns or smallest_columns of s3cmtf_concept. Columns are ordered by matrix, then the most
/// extreme first.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_get_column(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    end: i32,
    place: u64,
    column: *mut ConceptColumnInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        let list = end_of(end, &concept.positive, &concept.negative)?;
        let found = &list[arg::place(place, list.len(), "place")?];
        let own = ConceptColumnInfo {
            size: 0,
            matrix: found.matrix as u64,
            column: u64::from(found.column),
            share: found.contribution,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, column, "column") }
    })
}

/// Copies the core contracted with the given rows, which is a matrix if exactly one other mode has no given row. It
/// has one row per concept, in the order of the factor's columns, and `columns` numbers per row, those of `mode`; it is
/// scaled to factor columns of root mean square 1. `numbers` has room for `capacity` items and may be NULL; `found` is
/// their number, 0 if there is no matrix (`columns` is then 0 and `mode` the described mode). `mode` and `columns` may
/// be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_copy_profile(
    concepts: Option<&ConceptsHandle>,
    numbers: *mut f64,
    capacity: u64,
    mode: Option<&mut MaybeUninit<u64>>,
    columns: Option<&mut MaybeUninit<u64>>,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let own = &given(concepts, "concepts")?.found;
        let found = given(found, "found")?;
        let profile = own.profile.as_ref();
        let list = profile.map_or(&[][..], |p| &p.values);
        if !numbers.is_null() {
            // SAFETY: a buffer of the caller, for this call.
            unsafe { copy_out(list, numbers, capacity, "numbers") }?;
        }
        found.write(list.len() as u64);
        mode.map(|out| out.write(profile.map_or(own.mode, |p| p.mode) as u64));
        columns.map(|out| out.write(profile.map_or(0, |p| p.columns) as u64));
        Ok(())
    })
}

/// Frees concepts. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_concepts_free(concepts: Option<Box<ConceptsHandle>>) {
    release(|| drop(concepts));
}

fn of(concepts: Option<&ConceptsHandle>, index: u64) -> Outcome<&Concept> {
    let list = &given(concepts, "concepts")?.found.concepts;
    Ok(&list[arg::place(index, list.len(), "index")?])
}

/// Returns the list of an end.
fn end_of<'a, T>(end: i32, largest: &'a [T], smallest: &'a [T]) -> Outcome<&'a [T]> {
    let ends = [(S3CMTF_LARGEST, largest), (S3CMTF_SMALLEST, smallest)];
    choice(end, &ends, "end")
}
