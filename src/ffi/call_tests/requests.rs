//! Views of arrays, requests, and calls with invalid arguments.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::fits::read_numbers;
use super::objects::*;
use crate::ffi::c::*;

#[test]
fn views_of_entries_are_the_arrays_of_the_caller() {
    let arrays = Arrays::new();
    let tensor = arrays.view();
    let weights: Box<[f32]> = vec![2.0; 20].into();
    // SAFETY: as many weights as entries.
    let weighted = created(|out| unsafe {
        s3cmtf_coo_new_weighted(
            shared(tensor),
            weights.as_ptr().cast(),
            S3CMTF_F32,
            out,
            None,
        )
    });
    s3cmtf_coo_free(owned(tensor));
    for mode in 0..3 {
        let column = created(|out| s3cmtf_coo_view_indices(shared(weighted), mode, out, None));
        assert_eq!(column, arrays.columns[mode as usize].as_ptr());
    }
    let values = created(|out| s3cmtf_coo_view_values(shared(weighted), out, None));
    assert_eq!(values, arrays.values.as_ptr().cast());
    let copy = created(|out| s3cmtf_coo_view_weights(shared(weighted), out, None));
    drop(weights);
    // SAFETY: the object owns a copy of 20 weights.
    let copy = unsafe { std::slice::from_raw_parts(copy.cast::<f32>(), 20) };
    assert_eq!(copy, [2.0; 20]);
    // A caller that was compiled with an earlier header passes a shorter struct, without the types of values and weights.
    let mut info: CooInfo = sized();
    info.size = 24;
    // SAFETY: a struct of the size it contains.
    let status = unsafe { s3cmtf_coo_get_info(shared(weighted), &mut info, None) };
    assert_eq!(
        (status, info.size, info.count, info.value_type),
        (S3CMTF_OK, 24, 20, 0)
    );
    s3cmtf_coo_free(owned(weighted));
}

#[test]
fn misuse_is_a_status_and_writes_nothing() {
    let error = created(|out| s3cmtf_error_new(out));
    let check = |status: i32, expected: i32| {
        assert_eq!(status, expected);
        assert_eq!(s3cmtf_error_status(shared(error)), expected);
        // SAFETY: valid until the next call with this object.
        let message = unsafe { CStr::from_ptr(s3cmtf_error_message(shared(error))) };
        assert!(!message.is_empty());
    };
    let arrays = Arrays::new();
    let (entries, report) = (arrays.entries(), || exclusive(error));
    let mut coo = MaybeUninit::new(ptr::dangling_mut::<CooHandle>());
    let mut new_view = |entries: *const Entries, expected: i32| {
        // SAFETY: NULL, not aligned, or a struct whose arrays have the length that it says.
        check(
            unsafe { s3cmtf_coo_new_view(entries, Some(&mut coo), report()) },
            expected,
        );
        // SAFETY: written before.
        assert_eq!(unsafe { coo.assume_init() }, ptr::dangling_mut());
    };
    new_view(ptr::null(), S3CMTF_NULL_ARGUMENT);
    new_view(
        (&raw const entries).wrapping_byte_add(1),
        S3CMTF_BAD_ARGUMENT,
    );
    let changed = |change: &dyn Fn(&mut Entries)| {
        let mut entries = arrays.entries();
        change(&mut entries);
        entries
    };
    new_view(&changed(&|e| e.size = 7), S3CMTF_BAD_ARGUMENT);
    new_view(&changed(&|e| e.size = u64::MAX), S3CMTF_BAD_ARGUMENT);
    new_view(&changed(&|e| e.order = u64::MAX), S3CMTF_BAD_ARGUMENT);
    new_view(&changed(&|e| e.values = ptr::null()), S3CMTF_NULL_ARGUMENT);
    new_view(
        &changed(&|e| e.indices.count = u64::MAX),
        S3CMTF_BAD_ARGUMENT,
    );
    new_view(
        &changed(&|e| e.values = e.values.wrapping_byte_add(1)),
        S3CMTF_BAD_ARGUMENT,
    );
    // SAFETY: a struct whose arrays have the length that it says.
    check(
        unsafe { s3cmtf_coo_new(&entries, None, report()) },
        S3CMTF_NULL_ARGUMENT,
    );
    check(
        s3cmtf_problem_new(None, None, report()),
        S3CMTF_NULL_ARGUMENT,
    );
    // SAFETY: NULL is allowed, and the error handle is the one of this test.
    let status = unsafe { s3cmtf_fit_run(ptr::null_mut(), None, error) };
    check(status, S3CMTF_NULL_ARGUMENT);
    check(
        s3cmtf_model_view_factor(None, 0, None, report()),
        S3CMTF_NULL_ARGUMENT,
    );
    check(
        // SAFETY: the text ends in NUL.
        unsafe { s3cmtf_options_new(c"no such preset".as_ptr(), None, report()) },
        S3CMTF_NULL_ARGUMENT,
    );
    // SAFETY: the text ends in NUL.
    let options = created(|out| unsafe { s3cmtf_options_new(c"paper".as_ptr(), out, None) });
    // SAFETY: both texts end in NUL; one is not UTF-8.
    let status = unsafe {
        s3cmtf_options_set(
            exclusive(options),
            c"rank".as_ptr(),
            c"\xff".as_ptr(),
            report(),
        )
    };
    check(status, S3CMTF_BAD_ARGUMENT);
    s3cmtf_options_free(owned(options));
    s3cmtf_error_free(owned(error));
    s3cmtf_coo_free(None);
    s3cmtf_problem_free(None);
    s3cmtf_options_free(None);
    s3cmtf_fit_free(None);
    s3cmtf_model_free(None);
    s3cmtf_cancel_free(None);
    s3cmtf_error_free(None);
}

/// Requests whose structs point to arrays of the caller: recommendations, similar rows, concepts, clusters, folding in.
#[test]
fn requests_read_and_write_arrays_of_the_caller() {
    let arrays = Arrays::new();
    let model = fitted(&arrays, "model=cp threads=1");
    let (tensor, labels) = (arrays.view(), matrix());
    let query: Box<[u64]> = Box::new([1, 3]);
    // One query per row of mode 0; mode 1 is ranked, mode 2 averaged over.
    let modes: Box<[*const c_void]> = Box::new([query.as_ptr().cast(), ptr::null(), ptr::null()]);
    let request = RecommendRequest {
        mode: 1,
        top: 2,
        queries: IndexArrays {
            modes: modes.as_ptr(),
            count: 2,
            stride: 1,
            r#type: S3CMTF_U64,
            base: 0,
        },
        exclude: tensor,
        candidates: query.as_ptr(),
        candidate_count: 2,
        threads: 1,
        ..sized()
    };
    let (mut rows, mut scores, mut counts) = ([9u64; 4], [f64::NAN; 4], [9u64; 2]);
    // SAFETY: the arrays have the lengths that are passed to the call.
    let status = unsafe {
        let (rows, scores, counts) = (&raw mut rows, &raw mut scores, &raw mut counts);
        s3cmtf_model_recommend(
            shared(model),
            &request,
            rows.cast(),
            scores.cast(),
            4,
            counts.cast(),
            None,
        )
    };
    // Every cell of the candidate is an entry.
    assert_eq!((status, counts), (S3CMTF_OK, [0, 0]));
    let request = SimilarRequest {
        mode: 0,
        top: 3,
        rows: query.as_ptr(),
        row_count: 2,
        threads: 1,
        ..sized()
    };
    let mut neighbours: Box<[u64]> = vec![9; 6].into();
    // SAFETY: the same.
    let status = unsafe {
        let (rows, counts) = (neighbours.as_mut_ptr(), &raw mut counts);
        s3cmtf_model_similar(
            shared(model),
            &request,
            rows,
            ptr::null_mut(),
            6,
            counts.cast(),
            None,
        )
    };
    assert_eq!((status, counts), (S3CMTF_OK, [3, 3]));
    let (given_mode, given_row) = ([2u64], [1u64]);
    let request = ConceptsRequest {
        top: 2,
        given_modes: given_mode.as_ptr(),
        given_rows: given_row.as_ptr(),
        given_count: 1,
        ..sized()
    };
    // SAFETY: the same.
    let concepts =
        created(|out| unsafe { s3cmtf_concepts_new(shared(model), 0, &request, out, None) });
    let mut info: ConceptInfo = sized();
    // SAFETY: the same.
    let status = unsafe { s3cmtf_concepts_get(shared(concepts), 1, &mut info, None) };
    assert_eq!((status, info.largest_rows), (S3CMTF_OK, 2));
    let mut loadings: Box<[f64]> = vec![f64::NAN; 2].into();
    // SAFETY: the same.
    let status = unsafe {
        let to = loadings.as_mut_ptr();
        s3cmtf_concepts_copy_rows(
            shared(concepts),
            1,
            S3CMTF_LARGEST,
            ptr::null_mut(),
            to,
            2,
            None,
        )
    };
    assert_eq!(status, S3CMTF_OK);
    assert!(loadings[0] >= loadings[1]);
    s3cmtf_concepts_free(owned(concepts));
    let matrices: Box<[*const CooHandle]> = Box::new([labels]);
    let request = ClustersRequest {
        k: 2,
        restarts: 1,
        matrices: matrices.as_ptr(),
        matrix_count: 1,
        threads: 1,
        ..sized()
    };
    // SAFETY: the same.
    let clusters =
        created(|out| unsafe { s3cmtf_clusters_new(shared(model), 0, &request, out, None) });
    let mut which: Box<[u64]> = vec![9; 4].into();
    // SAFETY: the same.
    let status = unsafe {
        let to = which.as_mut_ptr();
        s3cmtf_clusters_copy_rows(shared(clusters), ptr::null_mut(), to, 4, None)
    };
    assert_eq!(status, S3CMTF_OK);
    assert!(which.iter().all(|&cluster| cluster < 2));
    s3cmtf_clusters_free(owned(clusters));
    let request = FoldInRequest {
        tensor,
        replace: 1,
        threads: 1,
        ..sized()
    };
    let mut replaced = MaybeUninit::uninit();
    // SAFETY: the same.
    let folded = created(|out| unsafe {
        s3cmtf_model_fold_in(
            shared(model),
            0,
            &request,
            out,
            None,
            Some(&mut replaced),
            None,
        )
    });
    // SAFETY: written by the call.
    assert_eq!(unsafe { replaced.assume_init() }, 4);
    for object in [tensor, labels] {
        s3cmtf_coo_free(owned(object));
    }
    s3cmtf_model_free(owned(model));
    read_numbers(folded);
    s3cmtf_model_free(owned(folded));
}
