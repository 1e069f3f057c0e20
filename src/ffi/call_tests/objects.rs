//! Arrays and objects that the tests pass to the C boundary.

use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use crate::ffi::arg::SizedStruct;
use crate::ffi::c::*;

/// Returns the object that a call creates.
pub(super) fn created<T>(call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> i32) -> T {
    let mut out = MaybeUninit::uninit();
    assert_eq!(call(Some(&mut out)), S3CMTF_OK);
    // SAFETY: a call that succeeds has written its output.
    unsafe { out.assume_init() }
}

/// Returns a struct of zeros that begins with its size.
pub(super) fn sized<T: SizedStruct>() -> T {
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
pub(super) fn shared<'a, T>(object: *mut T) -> Option<&'a T> {
    // SAFETY: NULL or an object of the test, which frees it last.
    unsafe { object.as_ref() }
}

/// Returns an object for a call that changes it.
pub(super) fn exclusive<'a, T>(object: *mut T) -> Option<&'a mut T> {
    // SAFETY: as above; the test uses it on one thread at a time.
    unsafe { object.as_mut() }
}

/// Returns an object for the call that frees it.
pub(super) fn owned<T>(object: *mut T) -> Option<Box<T>> {
    // SAFETY: an object that the library made and handed over, freed once.
    (!object.is_null()).then(|| unsafe { Box::from_raw(object) })
}

/// Arrays of a tensor of 4 x 3 x 2 cells, all of them entries but the last four.
pub(super) struct Arrays {
    dims: Box<[u64]>,
    pub(super) columns: Vec<Box<[u32]>>,
    modes: Box<[*const c_void]>,
    pub(super) values: Box<[f32]>,
}

impl Arrays {
    pub(super) fn new() -> Arrays {
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

    pub(super) fn indices(&self) -> IndexArrays {
        IndexArrays {
            modes: self.modes.as_ptr(),
            count: self.values.len() as u64,
            stride: 1,
            r#type: S3CMTF_U32,
            base: 0,
        }
    }

    pub(super) fn entries(&self) -> Entries {
        Entries {
            order: self.columns.len() as u64,
            dims: self.dims.as_ptr(),
            indices: self.indices(),
            values: self.values.as_ptr().cast(),
            value_type: S3CMTF_F32,
            ..sized()
        }
    }

    /// Creates an object that uses these arrays without a copy.
    pub(super) fn view(&self) -> *mut CooHandle {
        // SAFETY: the arrays outlive the objects of every test.
        created(|out| unsafe { s3cmtf_coo_new_view(&self.entries(), out, None) })
    }
}

/// Creates a weighted 4 x 2 matrix as a copy of arrays: one-based 64-bit indices, row and column of an entry side by side.
pub(super) fn matrix() -> *mut CooHandle {
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
pub(super) fn problem(arrays: &Arrays) -> *mut ProblemHandle {
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

/// Returns [`OPTIONS`] and these.
pub(super) fn options(more: &str) -> *mut OptionsHandle {
    let text = CString::new(format!("{OPTIONS} {more}")).unwrap();
    // SAFETY: NULL means the defaults.
    let handle = created(|out| unsafe { s3cmtf_options_new(ptr::null(), out, None) });
    // SAFETY: the text ends in NUL.
    let status = unsafe { s3cmtf_options_parse(exclusive(handle), text.as_ptr(), None) };
    assert_eq!(status, S3CMTF_OK);
    handle
}

/// Returns a fit of the problem with [`options`]. The objects it is made from are freed.
pub(super) fn fit(arrays: &Arrays, more: &str) -> *mut FitHandle {
    let (problem, handle) = (problem(arrays), options(more));
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
pub(super) fn fitted(arrays: &Arrays, options: &str) -> *mut ModelHandle {
    let fit = fit(arrays, options);
    let mut epochs = 0u64;
    let user = (&raw mut epochs).cast();
    // SAFETY: the number that the callback changes outlives the fit.
    let status = unsafe { s3cmtf_fit_set_callback(exclusive(fit), Some(count_epochs), user, None) };
    assert_eq!(status, S3CMTF_OK);
    // SAFETY: an object of this test.
    let model = created(|out| unsafe { s3cmtf_fit_run(fit, out, ptr::null_mut()) });
    s3cmtf_fit_free(owned(fit));
    assert!(epochs > 0);
    model
}

/// Returns the numbers of a view, read one by one.
pub(super) fn numbers_of(view: &View) -> Vec<f32> {
    let position = |r: u64, c: u64| (r * view.stride + c) as usize;
    (0..view.rows)
        .flat_map(|r| (0..view.columns).map(move |c| position(r, c)))
        // SAFETY: the library describes memory that the model owns.
        .map(|k| unsafe { view.numbers.add(k).read() })
        .collect()
}
