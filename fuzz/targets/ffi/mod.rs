//! The C boundary: an input is a sequence of calls with valid pointers and any numbers.
//!
//! Arrays are allocated with the length that is passed to the call, so that a sanitizer sees every access beyond it.

mod data_calls;
mod input;
mod model_calls;
mod seeds;

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use s3cmtf::ffi::c::*;

use input::Arrays;
pub use seeds::seeds;

/// Number of objects of a kind.
const SLOTS: usize = 3;
/// Most calls of an input.
const MAX_CALLS: usize = 24;

pub fn run(input: &[u8], folder: &Path) -> bool {
    let mut host = Host {
        bytes: &[],
        folder,
        error: ptr::null_mut(),
        coo: [ptr::null_mut(); SLOTS],
        problem: ptr::null_mut(),
        options: ptr::null_mut(),
        model: [ptr::null_mut(); SLOTS],
        kept: Vec::new(),
    };
    let mut error = MaybeUninit::new(ptr::null_mut());
    assert_eq!(s3cmtf_error_new(Some(&mut error)), S3CMTF_OK);
    // SAFETY: written above.
    host.error = unsafe { error.assume_init() };
    assert_eq!(host.options_new(c"default"), S3CMTF_OK);
    host.bytes = input;
    for _ in 0..MAX_CALLS {
        if host.bytes.is_empty() {
            break;
        }
        let status = host.call();
        assert_ne!(status, S3CMTF_INTERNAL, "{}", host.message());
        assert!((S3CMTF_OK..S3CMTF_RESERVED).contains(&status));
    }
    host.model.iter().any(|model| !model.is_null())
}

/// A program in C: its objects, and the input that says what it does next.
struct Host<'a> {
    bytes: &'a [u8],
    folder: &'a Path,
    error: *mut ErrorHandle,
    coo: [*mut CooHandle; SLOTS],
    problem: *mut ProblemHandle,
    options: *mut OptionsHandle,
    model: [*mut ModelHandle; SLOTS],
    /// Arrays of views, which live as long as the objects.
    kept: Vec<Arrays>,
}

impl Host<'_> {
    /// Makes the next call and returns its status.
    fn call(&mut self) -> i32 {
        match self.below(34) {
            0..=3 => self.coo_new(),
            4 => self.coo_new_weighted(),
            5 => self.coo_read(),
            6 => self.coo_file(),
            7..=8 => self.problem_new(),
            9..=10 => self.problem_add_matrix(),
            11..=12 => {
                let presets = [c"default", c"paper", c"paper-yelp", c"none"];
                let preset = presets[usize::from(self.below(4))];
                self.options_new(preset)
            }
            13..=15 => self.options_set(),
            16..=20 => self.fit(),
            21 => self.model_file(),
            22..=23 => self.model_read(),
            24..=25 => self.predict(),
            26..=27 => self.recommend(),
            28 => self.similar(),
            29 => self.fold_in(),
            30 => self.concepts(),
            31 => self.evaluate_distributions(),
            32 => self.evaluate_binary(),
            _ => self.evaluate(),
        }
    }

    fn message(&self) -> String {
        // SAFETY: an object of this program; its message is valid until the next call.
        let text = unsafe { CStr::from_ptr(s3cmtf_error_message(self.error.as_ref())) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the error object, or sometimes none.
    fn error(&mut self) -> Option<&'static mut ErrorHandle> {
        if self.below(16) == 15 {
            return None;
        }
        // SAFETY: an object of this program, used by one call at a time.
        unsafe { self.error.as_mut() }
    }

    fn coo(&mut self) -> Option<&'static CooHandle> {
        let slot = usize::from(self.byte()) % SLOTS;
        // SAFETY: NULL or an object of this program, which is replaced only between calls.
        unsafe { self.coo[slot].as_ref() }
    }

    fn model(&mut self) -> Option<&'static ModelHandle> {
        let slot = usize::from(self.byte()) % SLOTS;
        // SAFETY: NULL or an object of this program, which is replaced only between calls.
        unsafe { self.model[slot].as_ref() }
    }

    fn keep_coo(&mut self, status: i32, coo: MaybeUninit<*mut CooHandle>) -> i32 {
        if status == S3CMTF_OK {
            let slot = usize::from(self.byte()) % SLOTS;
            // SAFETY: written by the call that succeeded.
            let old = std::mem::replace(&mut self.coo[slot], unsafe { coo.assume_init() });
            free(old, |coo| s3cmtf_coo_free(coo));
        }
        status
    }

    fn keep_model(&mut self, status: i32, model: MaybeUninit<*mut ModelHandle>) -> i32 {
        if status == S3CMTF_OK {
            let slot = usize::from(self.byte()) % SLOTS;
            // SAFETY: written by the call that succeeded.
            let old = std::mem::replace(&mut self.model[slot], unsafe { model.assume_init() });
            free(old, |model| s3cmtf_model_free(model));
        }
        status
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        for coo in self.coo {
            free(coo, |coo| s3cmtf_coo_free(coo));
        }
        for model in self.model {
            free(model, |model| s3cmtf_model_free(model));
        }
        free(self.problem, |problem| s3cmtf_problem_free(problem));
        free(self.options, |options| s3cmtf_options_free(options));
        free(self.error, |error| s3cmtf_error_free(error));
    }
}

/// Frees an object of this program, or NULL.
fn free<T>(object: *mut T, free: impl FnOnce(Option<Box<T>>)) {
    // SAFETY: NULL, or from a call that made it, and not used any more.
    free((!object.is_null()).then(|| unsafe { Box::from_raw(object) }));
}

/// Returns a struct of zeros whose first field is its size.
fn sized<T>(size: u64) -> MaybeUninit<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: all of these structs begin with their size.
    unsafe { value.as_mut_ptr().cast::<u64>().write(size) };
    value
}
