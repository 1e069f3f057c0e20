//! What the columns of factors stand for.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{choice, given, hand_over, place, slice};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::model::{ModelHandle, of as model_of};
use super::status::Outcome;
use super::tables::{Column, Table, one_of};
use crate::discover::{Concept, ConceptOptions, Concepts, describe_concepts};

/// The largest of a list come first.
pub const S3CMTF_LARGEST: i32 = 0;
/// The smallest of a list come first.
pub const S3CMTF_SMALLEST: i32 = 1;

/// The concepts of a mode: what the columns of its factor stand for. It never changes, so that every function that takes
/// it as const may run concurrently, and it does not need the model any more.
pub struct ConceptsHandle {
    found: Concepts,
}

/// Describes the concepts of `mode`, for the rows that are given or for nobody.
///
/// A concept adds the product of a row's number in its column and of what the core makes of the rows of the other modes
/// to a prediction. Its strength is the root mean square of that, over all rows of the modes that are not given, by their
/// entries; with columns of norm 1 that have nothing to do with each other it is the norm of a row of R = G x_1 u, but for
/// a common factor. `given_modes` and `given_rows` have `given_count` modes and their rows, counted from 0, none of them
/// `mode`; both may be NULL for none. A row that the model does not know is S3CMTF_BAD_ARGUMENT.
///
/// `top` rows are kept at either end of each column, of those with at least `least` tensor entries, and as many columns of
/// each coupled matrix of the mode. Free with s3cmtf_concepts_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_new(
    model: Option<&ModelHandle>,
    mode: u64,
    given_count: u64,
    given_modes: *const u64,
    given_rows: *const u64,
    top: u64,
    least: u64,
    concepts: Option<&mut MaybeUninit<*mut ConceptsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (model_of(model)?, given(concepts, "concepts")?);
        let mut how = ConceptOptions::new(place(mode, model.order(), "mode")?);
        // SAFETY: arrays of the caller, for this call.
        let (modes, rows) = unsafe {
            (
                slice(given_modes, given_count, "given_modes")?,
                slice(given_rows, given_count, "given_rows")?,
            )
        };
        for (k, (&n, &row)) in modes.iter().zip(rows).enumerate() {
            let n = place(n, model.order(), &format!("given_modes[{k}]"))?;
            let dim = usize::try_from(model.dims()[n]).unwrap_or(usize::MAX);
            let row = place(row, dim, &format!("given_rows[{k}]"))?;
            how.given.push((n, row as u32));
        }
        (how.top, how.min_entries) = (usize::try_from(top).unwrap_or(usize::MAX), least);
        let found = describe_concepts(model, &how)?;
        hand_over(out, ConceptsHandle { found });
        Ok(())
    })
}

/// How many concepts there are: the rank of the mode.
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

/// One of the concepts, the strongest first: which column of the factor it is (counted from 0), its strength, and its
/// effect: what it adds to a prediction for a row of loading 1 if modes that are not given are at their mean rows. The
/// effect is never below 0: signs of columns mean nothing, and are turned so. Outputs may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_concepts_get(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    column: Option<&mut MaybeUninit<u64>>,
    strength: Option<&mut MaybeUninit<f64>>,
    effect: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        column.map(|out| out.write(concept.column as u64));
        strength.map(|out| out.write(concept.strength));
        effect.map(|out| out.write(concept.effect));
        Ok(())
    })
}

/// The rows with the largest (`end` is S3CMTF_LARGEST) or smallest (S3CMTF_SMALLEST) loadings of a concept, the utmost
/// first. A loading is a number of the column over the root mean square of them all, by entries. `rows` (counted from 0)
/// and `loadings` have room for `capacity` items each; `found` is how many there are. Either may be NULL if it is not
/// wanted; with both NULL it only says how many.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_copy_rows(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    end: i32,
    rows: *mut u64,
    loadings: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        let list = end_of(end, &concept.largest, &concept.smallest)?;
        let integers: &[Column<'_, u64>] = &[(rows, &|k| u64::from(list[k].index), "rows")];
        let reals: &[Column<'_, f64>] = &[(loadings, &|k| list[k].score, "loadings")];
        let table = Table {
            count: list.len(),
            integers,
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// The columns of the coupled matrices of the mode that go with a concept most (`end` is S3CMTF_LARGEST) or go against it
/// (S3CMTF_SMALLEST), the utmost first for each matrix. `matrices` has the number of the matrix, `columns` the column, both
/// counted from 0, `shares` what a row of loading 1 gets from the concept in the prediction of that column, over the root
/// mean square of those predictions. All have room for `capacity` items and may be NULL if they are not wanted; `found` is
/// how many there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_concepts_copy_columns(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    end: i32,
    matrices: *mut u64,
    columns: *mut u64,
    shares: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let concept = of(concepts, index)?;
        let list = end_of(end, &concept.positive, &concept.negative)?;
        let integers: &[Column<'_, u64>] = &[
            (matrices, &|k| list[k].matrix as u64, "matrices"),
            (columns, &|k| u64::from(list[k].column), "columns"),
        ];
        let reals: &[Column<'_, f64>] = &[(shares, &|k| list[k].contribution, "shares")];
        let table = Table {
            count: list.len(),
            integers,
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// Whether the sign of the column of a concept was turned so that its effect is not below 0: then `turned` is 1 and loadings
/// and shares have the other sign than the numbers of the factor and of the matrix; else it is 0.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_concepts_get_turned(
    concepts: Option<&ConceptsHandle>,
    index: u64,
    turned: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (concept, out) = (of(concepts, index)?, given(turned, "turned")?);
        out.write(i32::from(concept.sign_flipped));
        Ok(())
    })
}

/// R, the core contracted with the rows that are given, where one mode besides is left: `numbers` has a row for each
/// concept, in the order of the factor's columns, and `columns` numbers in each, those of `mode` (counted from 0); at columns
/// of root mean square 1. `numbers` has room for `capacity` items and may be NULL, as may `mode` and `columns`; `found` is
/// how many numbers there are: 0 if R is no matrix, and then `columns` is 0 and `mode` that of the concepts.
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
        let profile = own.profile.as_ref();
        let list = profile.map_or(&[][..], |p| &p.values);
        let table = Table {
            count: list.len(),
            integers: &[],
            reals: &[(numbers, &|k| list[k], "numbers")],
        };
        // SAFETY: a buffer of the caller, for this call.
        unsafe { table.copy(capacity, found) }?;
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
    one_of(list, index)
}

/// The list of an end.
fn end_of<'a, T>(end: i32, largest: &'a [T], smallest: &'a [T]) -> Outcome<&'a [T]> {
    let ends = [(S3CMTF_LARGEST, largest), (S3CMTF_SMALLEST, smallest)];
    choice(end, &ends, "end")
}
