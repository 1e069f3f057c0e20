//! The C boundary called as a program in C calls it: objects by raw pointers, arrays of exactly the length that a call is
//! told, requests that are filled field by field. The data is small enough for Miri, which checks every access.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::arg::SizedStruct;
use super::c::*;

/// Returns the object that a call creates.
fn created<T>(call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> i32) -> T {
    let mut out = MaybeUninit::uninit();
    assert_eq!(call(Some(&mut out)), S3CMTF_OK);
    // SAFETY: a call that succeeds has written its output.
    unsafe { out.assume_init() }
}

/// Returns a struct of zeros that begins with its size.
fn sized<T: SizedStruct>() -> T {
    let mut zeros = MaybeUninit::<T>::zeroed();
    // SAFETY: the first field is the size, and zeros are valid values of all fields.
    unsafe {
        zeros
            .as_mut_ptr()
            .cast::<u64>()
            .write(size_of::<T>() as u64);
        zeros.assume_init()
    }
}

/// Returns an object for a call that does not change it.
fn shared<'a, T>(object: *mut T) -> Option<&'a T> {
    // SAFETY: NULL or an object of the test, which frees it last.
    unsafe { object.as_ref() }
}

/// Returns an object for a call that changes it.
fn exclusive<'a, T>(object: *mut T) -> Option<&'a mut T> {
    // SAFETY: as above; the test uses it on one thread at a time.
    unsafe { object.as_mut() }
}

/// Returns an object for the call that frees it.
fn owned<T>(object: *mut T) -> Option<Box<T>> {
    // SAFETY: an object that the library made and handed over, freed once.
    (!object.is_null()).then(|| unsafe { Box::from_raw(object) })
}

/// Arrays of a tensor of 4 x 3 x 2 cells, all of them entries but the last four.
struct Arrays {
    dims: Box<[u64]>,
    columns: Vec<Box<[u32]>>,
    modes: Box<[*const c_void]>,
    values: Box<[f32]>,
}

impl Arrays {
    fn new() -> Arrays {
        let column = |index: &dyn Fn(u32) -> u32| (0..20).map(index).collect::<Box<[u32]>>();
        let columns = vec![
            column(&|i| i % 4),
            column(&|i| i / 4 % 3),
            column(&|i| i / 12),
        ];
        Arrays {
            dims: Box::new([4, 3, 2]),
            modes: columns.iter().map(|c| c.as_ptr().cast()).collect(),
            columns,
            values: (0..20u8)
                .map(|i| f32::from(i % 4) + f32::from(i % 3) * 0.5)
                .collect(),
        }
    }

    fn indices(&self) -> IndexArrays {
        IndexArrays {
            modes: self.modes.as_ptr(),
            count: self.values.len() as u64,
            stride: 1,
            r#type: S3CMTF_U32,
            base: 0,
        }
    }

    fn entries(&self) -> Entries {
        Entries {
            order: self.columns.len() as u64,
            dims: self.dims.as_ptr(),
            indices: self.indices(),
            values: self.values.as_ptr().cast(),
            value_type: S3CMTF_F32,
            ..sized()
        }
    }

    /// Returns an object that refers to these arrays.
    fn view(&self) -> *mut CooHandle {
        // SAFETY: the arrays outlive the objects of every test.
        created(|out| unsafe { s3cmtf_coo_new_view(&self.entries(), out, None) })
    }
}

/// Returns a copied matrix of 4 x 2 from records of one-based 64-bit indices, with weights.
fn matrix() -> *mut CooHandle {
    let records: Box<[u64]> = (0..8).flat_map(|i| [i % 4 + 1, i / 4 + 1]).collect();
    // The first record of each mode; the last index of mode 1 is the last number of the array.
    let modes: Box<[*const c_void]> = (0..2).map(|n| records[n..].as_ptr().cast()).collect();
    let numbers: Box<[f64]> = (0..8u8).map(|i| f64::from(i % 2) + 0.25).collect();
    let entries = Entries {
        order: 2,
        indices: IndexArrays {
            modes: modes.as_ptr(),
            count: 8,
            stride: 2,
            r#type: S3CMTF_U64,
            base: 1,
        },
        values: numbers.as_ptr().cast(),
        weights: numbers.as_ptr().cast(),
        value_type: S3CMTF_F64,
        weight_type: S3CMTF_F64,
        ..sized()
    };
    // SAFETY: the arrays are alive during the call, which copies them.
    created(|out| unsafe { s3cmtf_coo_new(&entries, out, None) })
}

/// Returns a problem of the arrays with a coupled matrix. The objects it is made from are freed.
fn problem(arrays: &Arrays) -> *mut ProblemHandle {
    let (tensor, matrix) = (arrays.view(), matrix());
    let problem = created(|out| s3cmtf_problem_new(shared(tensor), out, None));
    let coupling = Coupling {
        weight: 0.5,
        ..sized()
    };
    // SAFETY: the struct is alive during the call.
    let status = unsafe {
        s3cmtf_problem_add_matrix(exclusive(problem), 0, shared(matrix), &coupling, None)
    };
    assert_eq!(status, S3CMTF_OK);
    s3cmtf_coo_free(owned(tensor));
    s3cmtf_coo_free(owned(matrix));
    problem
}

/// Options of a fit that estimates no hyperparameters, which Miri would take minutes for.
const OPTIONS: &str = "rank=2 epochs=1 start=identity eta=0.01 core_step=1 lambda_reg=0.1 biases=false orthogonal=false \
                       kernel=scalar";

/// Returns a fit of the problem with [`OPTIONS`] and these. The objects it is made from are freed.
fn fit(arrays: &Arrays, options: &str) -> *mut FitHandle {
    let options = CString::new(format!("{OPTIONS} {options}")).unwrap();
    let problem = problem(arrays);
    // SAFETY: NULL means the defaults.
    let handle = created(|out| unsafe { s3cmtf_options_new(ptr::null(), out, None) });
    // SAFETY: the text ends in NUL.
    let status = unsafe { s3cmtf_options_parse(exclusive(handle), options.as_ptr(), None) };
    assert_eq!(status, S3CMTF_OK);
    let fit = created(|out| s3cmtf_fit_new(shared(problem), shared(handle), out, None));
    s3cmtf_problem_free(owned(problem));
    s3cmtf_options_free(owned(handle));
    fit
}

/// Counts the epochs in the number that `user` points to.
unsafe extern "C" fn count_epochs(progress: *const Progress, user: *mut c_void) -> i32 {
    // SAFETY: the library passes its struct and the pointer that it was given.
    unsafe {
        if (*progress).event == S3CMTF_EVENT_EPOCH {
            *user.cast::<u64>() += 1;
        } else {
            assert!(!CStr::from_ptr((*progress).message).is_empty());
        }
    }
    0
}

/// Runs a fit on the calling thread, with a callback, and frees it.
fn fitted(arrays: &Arrays, options: &str) -> *mut ModelHandle {
    let fit = fit(arrays, options);
    let mut epochs = 0u64;
    let user = (&raw mut epochs).cast();
    // SAFETY: the number that the callback changes outlives the fit.
    let status = unsafe { s3cmtf_fit_set_callback(exclusive(fit), Some(count_epochs), user, None) };
    assert_eq!(status, S3CMTF_OK);
    let model = created(|out| s3cmtf_fit_run(exclusive(fit), out, None));
    s3cmtf_fit_free(owned(fit));
    assert!(epochs > 0);
    model
}

/// Returns the numbers of a view, read one by one.
fn numbers_of(view: &View) -> Vec<f32> {
    let position = |r: u64, c: u64| (r * view.stride + c) as usize;
    (0..view.rows)
        .flat_map(|r| (0..view.columns).map(move |c| position(r, c)))
        // SAFETY: the library describes memory that the model owns.
        .map(|k| unsafe { view.numbers.add(k).read() })
        .collect()
}

/// Reads the factors, the core and the biases of a model as views, and compares them with copies in buffers without room to
/// spare.
fn read_numbers(model: *mut ModelHandle) {
    let copied = |view: &View, call: &dyn Fn(*mut c_void, u64) -> i32| {
        let mut copy: Box<[f32]> = vec![f32::NAN; (view.rows * view.columns) as usize].into();
        assert_eq!(call(copy.as_mut_ptr().cast(), copy.len() as u64), S3CMTF_OK);
        assert_eq!(*copy, *numbers_of(view));
        if let Some(short) = (copy.len() as u64).checked_sub(1) {
            let status = call(copy.as_mut_ptr().cast(), short);
            assert_eq!(status, S3CMTF_BUFFER_TOO_SMALL);
        }
    };
    for mode in 0..3 {
        let view = created(|out| s3cmtf_model_view_factor(shared(model), mode, out, None));
        assert_eq!((view.rows, view.columns), ([4, 3, 2][mode as usize], 2));
        // SAFETY: `copied` passes a buffer and a length that does not exceed it.
        copied(&view, &|to, len| unsafe {
            s3cmtf_model_copy_factor(
                shared(model),
                mode,
                to,
                len,
                S3CMTF_F32,
                S3CMTF_ROW_MAJOR,
                None,
            )
        });
        // The model has no biases: an empty view, and zeros as copies.
        let biases = created(|out| s3cmtf_model_view_biases(shared(model), mode, out, None));
        assert_eq!((biases.rows, biases.numbers), (0, ptr::null()));
        let mut zeros: Box<[f64]> = vec![f64::NAN; view.rows as usize].into();
        // SAFETY: a buffer of the length that the call is told.
        let status = unsafe {
            let to = zeros.as_mut_ptr().cast();
            s3cmtf_model_copy_biases(shared(model), mode, to, view.rows, S3CMTF_F64, None)
        };
        assert_eq!(status, S3CMTF_OK);
        assert!(zeros.iter().all(|&x| x == 0.0));
    }
    let view = created(|out| s3cmtf_model_view_core(shared(model), out, None));
    // SAFETY: the same.
    copied(&view, &|to, len| unsafe {
        s3cmtf_model_copy_core(shared(model), to, len, S3CMTF_F32, S3CMTF_ROW_MAJOR, None)
    });
    let view = created(|out| s3cmtf_model_view_matrix(shared(model), 0, out, None));
    // SAFETY: the same.
    copied(&view, &|to, len| unsafe {
        s3cmtf_model_copy_matrix(
            shared(model),
            0,
            to,
            len,
            S3CMTF_F32,
            S3CMTF_ROW_MAJOR,
            None,
        )
    });
    let mut record: Box<[c_char]> = vec![0; 1].into();
    let mut call = |capacity: usize| {
        record = vec![0; capacity].into();
        let mut needed = MaybeUninit::uninit();
        let to = if capacity == 0 {
            ptr::null_mut()
        } else {
            record.as_mut_ptr()
        };
        // SAFETY: a buffer of the length that the call is told.
        let status = unsafe {
            s3cmtf_model_get_record(shared(model), to, capacity as u64, Some(&mut needed), None)
        };
        assert_eq!(status, S3CMTF_OK);
        // SAFETY: written by the call.
        unsafe { needed.assume_init() as usize }
    };
    let needed = call(0);
    call(needed);
    assert_eq!(record.last(), Some(&0));
}

/// Predicts the cells of the entries and compares them with the evaluation.
fn predict(model: *mut ModelHandle, arrays: &Arrays) {
    let mut predictions: Box<[f64]> = vec![f64::NAN; 20].into();
    let request = PredictRequest {
        clip: S3CMTF_CLIP_OFF,
        threads: 2,
        ..sized()
    };
    let mut evaluation: Evaluation = sized();
    let tensor = arrays.view();
    // SAFETY: a buffer of the length that the call is told, and structs that are alive during the calls.
    unsafe {
        let to = predictions.as_mut_ptr().cast();
        let status = s3cmtf_model_predict(
            shared(model),
            Some(&arrays.indices()),
            to,
            20,
            S3CMTF_F64,
            &request,
            None,
        );
        assert_eq!(status, S3CMTF_OK);
        let status = s3cmtf_model_evaluate(
            shared(model),
            shared(tensor),
            1,
            None,
            &mut evaluation,
            None,
        );
        assert_eq!(status, S3CMTF_OK);
    }
    s3cmtf_coo_free(owned(tensor));
    let residuals = predictions
        .iter()
        .zip(&arrays.values)
        .map(|(p, &v)| p - f64::from(v));
    let rmse = (residuals.map(|r| r * r).sum::<f64>() / 20.0).sqrt();
    assert!(
        (rmse - evaluation.rmse).abs() < 1e-6,
        "{rmse} {}",
        evaluation.rmse
    );
}

/// Fits, reads and predicts with an algorithm.
fn check_algorithm(options: &str) {
    let arrays = Arrays::new();
    let model = fitted(&arrays, options);
    read_numbers(model);
    predict(model, &arrays);
    s3cmtf_model_free(owned(model));
}

#[test]
fn blocked_fits_entries_in_memory_of_the_caller() {
    check_algorithm("threads=2");
}

#[test]
fn opt_fits_entries_in_memory_of_the_caller() {
    check_algorithm("algorithm=opt threads=2");
}

#[test]
fn naive_fits_entries_in_memory_of_the_caller() {
    check_algorithm("algorithm=naive threads=2");
}

#[test]
fn als_fits_entries_in_memory_of_the_caller() {
    check_algorithm("algorithm=als model=cp threads=2");
}

#[test]
fn gibbs_fits_entries_in_memory_of_the_caller() {
    check_algorithm("algorithm=gibbs burn_in=1 samples=2 threads=2");
}

#[test]
fn a_fit_in_the_background_is_watched_by_two_threads() {
    let arrays = Arrays::new();
    let fit = fit(&arrays, "threads=1");
    assert_eq!(s3cmtf_fit_start(exclusive(fit), None), S3CMTF_OK);
    // A pointer that threads of the host share, as C does.
    struct Fit(*mut FitHandle);
    // SAFETY: the functions that take a `const s3cmtf_fit *` may run concurrently.
    unsafe impl Sync for Fit {}
    let handle = &Fit(fit);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let mut progress: Progress = sized();
                // SAFETY: a struct of this thread.
                let status =
                    unsafe { s3cmtf_fit_get_progress(shared(handle.0), &mut progress, None) };
                assert_eq!(status, S3CMTF_OK);
                let running = created(|out| s3cmtf_fit_wait(shared(handle.0), -1.0, out, None));
                assert_eq!(running, 0);
            });
        }
    });
    let model = created(|out| s3cmtf_fit_take(exclusive(fit), out, None));
    let mut again = MaybeUninit::uninit();
    let status = s3cmtf_fit_take(exclusive(fit), Some(&mut again), None);
    assert_eq!(status, S3CMTF_BAD_STATE);
    s3cmtf_fit_free(owned(fit));
    read_numbers(model);
    s3cmtf_model_free(owned(model));
}

#[test]
fn freeing_a_running_fit_cancels_it() {
    let arrays = Arrays::new();
    let fit = fit(&arrays, "epochs=1000000 threads=1");
    let token = created(|out| s3cmtf_cancel_new(out, None));
    let status = s3cmtf_fit_set_cancel(exclusive(fit), shared(token), None);
    assert_eq!(status, S3CMTF_OK);
    // The fit shares the flag of the token.
    s3cmtf_cancel_free(owned(token));
    assert_eq!(s3cmtf_fit_start(exclusive(fit), None), S3CMTF_OK);
    s3cmtf_fit_free(owned(fit));
}

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
    // A struct of an earlier version of the header, without the types of values and weights.
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
    check(s3cmtf_fit_run(None, None, report()), S3CMTF_NULL_ARGUMENT);
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

/// The requests with arrays of their own: recommendations, similar rows, concepts, clusters and folding in.
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
    // SAFETY: the arrays have the lengths that the call is told.
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
