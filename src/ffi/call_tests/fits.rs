//! Fits with every algorithm, in the foreground and in the background.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::objects::*;
use crate::ffi::c::*;

/// Reads the factors, the core and the biases of a model as views, and compares them with copies in buffers without room to
/// spare.
pub(super) fn read_numbers(model: *mut ModelHandle) {
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
        // SAFETY: a buffer of the length that is passed to the call.
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
        // SAFETY: a buffer of the length that is passed to the call.
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
    // SAFETY: a buffer of the length that is passed to the call, and structs that are alive during the calls.
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

/// Fits a model with these options, reads its parameters, and predicts.
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
                // SAFETY: an object of this test.
                let wait =
                    |out: Option<&mut _>| unsafe { s3cmtf_fit_wait(handle.0, -1.0, out, None) };
                let running = created(wait);
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

/// Returns whether a thread of this process sleeps.
#[cfg(target_os = "linux")]
fn sleeps(thread: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // The name of the thread, in brackets, comes before the state.
    state.rsplit(") ").next().unwrap().starts_with('S')
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "reads the states of threads from the system")]
fn threads_that_wait_for_a_fit_return_when_it_is_freed() {
    let arrays = Arrays::new();
    let fit = fit(&arrays, "epochs=1000000 threads=1");
    assert_eq!(s3cmtf_fit_start(exclusive(fit), None), S3CMTF_OK);
    struct Fit(*mut FitHandle);
    // SAFETY: the function that waits may run concurrently.
    unsafe impl Sync for Fit {}
    let handle = &Fit(fit);
    let (sender, threads) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let sender = sender.clone();
            scope.spawn(move || {
                let own = std::fs::read_link("/proc/thread-self").unwrap();
                let own = own.file_name().unwrap().to_str().unwrap().to_string();
                sender.send(own).unwrap();
                // SAFETY: an object that is freed while this waits.
                let wait =
                    |out: Option<&mut _>| unsafe { s3cmtf_fit_wait(handle.0, -1.0, out, None) };
                assert_eq!(created(wait), 0);
            });
        }
        // All sleep, since the fit does not end by itself.
        for thread in threads.iter().take(3) {
            while !sleeps(&thread) {
                std::thread::yield_now();
            }
        }
        s3cmtf_fit_free(owned(handle.0));
    });
}

/// Frees the fit that `user` points to, which runs this callback.
unsafe extern "C" fn free_own_fit(progress: *const Progress, user: *mut c_void) -> i32 {
    // SAFETY: a struct of the library.
    if unsafe { (*progress).event } != S3CMTF_EVENT_EPOCH {
        return 0;
    }
    // SAFETY: the test passes the place of the handle; other calls of this callback find NULL.
    let handle = unsafe { std::mem::replace(&mut *user.cast::<*mut FitHandle>(), ptr::null_mut()) };
    s3cmtf_fit_free(owned(handle));
    0
}

#[test]
fn a_fit_that_its_callback_frees_ends() {
    let arrays = Arrays::new();
    let fit = fit(&arrays, "epochs=1000000 threads=1");
    let mut handle = fit;
    let user = (&raw mut handle).cast();
    // SAFETY: the handle that the callback frees outlives the fit.
    let status = unsafe { s3cmtf_fit_set_callback(exclusive(fit), Some(free_own_fit), user, None) };
    assert_eq!(status, S3CMTF_OK);
    // SAFETY: an object of this test.
    let model = created(|out| unsafe { s3cmtf_fit_run(fit, out, ptr::null_mut()) });
    assert!(handle.is_null());
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
