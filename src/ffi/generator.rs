//! Planted data.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::arg::{given, hand_over, name_of, path, text};
use super::cancel::{CancelHandle, Token};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use crate::generate::{GenerateOptions, PRESETS, generate, preset};
use crate::parallel::available_threads;

/// Makes planted data: a tensor and coupled matrices drawn from a known model, to try things on. The same
/// options give the same bytes, whatever the number of threads.
pub struct GeneratorHandle {
    options: GenerateOptions,
}

/// Makes a generator, to be freed with s3cmtf_generator_free(). `like` names data of the paper whose shape is
/// taken (s3cmtf_generator_preset() lists them), and `scale` multiplies its entries, and users and items with
/// them. With `like` NULL `scale` does not matter, and the options "dims" and "entries" must be set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_generator_new(
    like: *const c_char,
    scale: f64,
    generator: Option<&mut MaybeUninit<*mut GeneratorHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(generator, "generator")?;
        let mut options = if like.is_null() {
            GenerateOptions::new(&[], 0)
        } else {
            // SAFETY: a text of the caller, for this call.
            preset(unsafe { text(like, "like") }?, scale)?
        };
        options.threads = available_threads();
        hand_over(out, GeneratorHandle { options });
        Ok(())
    })
}

/// Sets an option by name, as on the command line: "dims" (sizes of the modes, separated by commas),
/// "entries", "model" (tucker or cp), "rank" (one, or one per mode), "noise" (its deviation relative to that
/// of the planted values), "deviation" (of the planted values), "mean" (to which values are shifted),
/// "factor_mean" (above 0, rows have biases), "nonneg" (true or false), "skew" (EXPONENT or EXPONENT:SHIFT of
/// the Zipf-Mandelbrot law, one or one per mode), "matrix" ("MODE:COLUMNS", then ":full" or ":ENTRIES", then
/// for values 0 and 1 ":ones=SHARE", or for groups that rows belong to ":groups=SHARE" (of their variance), the mode
/// counted from 0; each adds a matrix, and "none" removes them), "test" (the part of the entries for the test
/// tensor), "values" (f32 or f64), "truth" (whether the planted factors are written), "seed", "threads" (0 means all that the process may use, which is the default).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_generator_set(
    generator: Option<&mut GeneratorHandle>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(generator, "generator")?;
        // SAFETY: texts of the caller, for this call.
        let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
        Ok(handle.options.set(name, value)?)
    })
}

/// Writes tensor.train.coo, tensor.test.coo (if there is a test part), matrix1.coo, ... and truth/ (the
/// planted factors as .npy) into `folder`, which is made if it does not exist; all appear together.
/// `floor_rmse` gets the error of the planted model itself on the test entries (on all without a test part):
/// what no fit can be expected to beat by much. It may be NULL, as may `cancel`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_generator_write(
    generator: Option<&GeneratorHandle>,
    folder: *const c_char,
    cancel: Option<&CancelHandle>,
    floor_rmse: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(generator, "generator")?;
        // SAFETY: a text of the caller, for this call.
        let folder = unsafe { path(folder, "folder") }?;
        let made = generate(&folder, &handle.options, &Token(cancel))?;
        floor_rmse.map(|out| out.write(made.floor_rmse));
        Ok(())
    })
}

/// The name of data of the paper, for s3cmtf_generator_new(). `index` counts from 0; beyond the last it is
/// S3CMTF_BAD_ARGUMENT. Constant, never freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_generator_preset(
    index: u64,
    name: Option<&mut MaybeUninit<*const c_char>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    guard(error, || {
        let out = given(name, "name")?;
        out.write(name_of(&PRESETS, &NAMES, index)?);
        Ok(())
    })
}

/// Frees a generator. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_generator_free(generator: Option<Box<GeneratorHandle>>) {
    release(|| drop(generator));
}
