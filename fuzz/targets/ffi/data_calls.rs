//! Calls that make data, problems and options.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

use s3cmtf::ffi::c::*;

use super::input::Buffer;
use super::{Host, free, sized};

impl Host<'_> {
    pub(super) fn coo_new(&mut self) -> i32 {
        let (entries, arrays) = self.entries();
        let mut coo = MaybeUninit::uninit();
        // Views share the arrays, and accept only some layouts.
        let status = if self.below(4) == 0 {
            // SAFETY: the arrays are as described, and kept until the objects are freed.
            let status = unsafe { s3cmtf_coo_new_view(&entries, Some(&mut coo), self.error()) };
            self.kept.push(arrays);
            status
        } else {
            // SAFETY: the arrays are as described.
            unsafe { s3cmtf_coo_new(&entries, Some(&mut coo), self.error()) }
        };
        self.keep_coo(status, coo)
    }

    pub(super) fn coo_new_weighted(&mut self) -> i32 {
        let mut weighted = MaybeUninit::uninit();
        let coo = self.coo();
        let status = if self.below(2) == 0 {
            let weights = self.coo();
            s3cmtf_coo_new_weighted_by(coo, weights, Some(&mut weighted), self.error())
        } else {
            let kind = self.constant();
            let count = coo_count(coo);
            let weights = self.numbers(kind, count);
            let pointer = weights.pointer();
            // SAFETY: one number of this type per entry.
            unsafe {
                s3cmtf_coo_new_weighted(coo, pointer, kind, Some(&mut weighted), self.error())
            }
        };
        self.keep_coo(status, weighted)
    }

    pub(super) fn coo_read(&mut self) -> i32 {
        let coo = self.coo();
        let mut buffer = Buffer::new(self.len());
        let capacity = buffer.len();
        match self.below(4) {
            0 => {
                let mut info = sized::<CooInfo>(self.size(size_of::<CooInfo>()));
                // SAFETY: a struct of this program.
                unsafe { s3cmtf_coo_get_info(coo, info.as_mut_ptr(), self.error()) }
            }
            1 => {
                // SAFETY: room for as many numbers as stated.
                unsafe { s3cmtf_coo_get_dims(coo, buffer.pointer(), capacity, self.error()) }
            }
            2 => {
                let mut faults = sized::<CooFaults>(self.size(size_of::<CooFaults>()));
                // SAFETY: a struct of this program.
                unsafe { s3cmtf_coo_check(coo, None, faults.as_mut_ptr(), self.error()) }
            }
            _ => {
                let mut summary = sized::<CooSummary>(self.size(size_of::<CooSummary>()));
                let (to, rows) = (summary.as_mut_ptr(), buffer.pointer());
                // SAFETY: a struct of this program, and room for as many numbers as stated.
                unsafe { s3cmtf_coo_summarize(coo, None, to, rows, capacity, self.error()) }
            }
        }
    }

    pub(super) fn coo_file(&mut self) -> i32 {
        let (coo, path) = (self.coo(), self.path());
        match self.below(5) {
            0 => {
                let mut opened = MaybeUninit::uninit();
                let mode = self.constant();
                // SAFETY: a string.
                let status = unsafe {
                    s3cmtf_coo_open(
                        path.as_ptr(),
                        mode,
                        None,
                        None,
                        Some(&mut opened),
                        self.error(),
                    )
                };
                self.keep_coo(status, opened)
            }
            1 => {
                let kind = self.constant();
                // SAFETY: a string.
                unsafe { s3cmtf_coo_write(coo, path.as_ptr(), kind, None, self.error()) }
            }
            2 => {
                let output = self.path();
                // SAFETY: strings.
                unsafe {
                    s3cmtf_coo_convert(path.as_ptr(), output.as_ptr(), None, None, self.error())
                }
            }
            3 => {
                let keep = self.constant();
                // SAFETY: a string.
                unsafe { s3cmtf_coo_fix(coo, path.as_ptr(), keep, None, None, None, self.error()) }
            }
            _ => {
                let request = SplitRequest {
                    size: self.size(size_of::<SplitRequest>()),
                    test_fraction: self.real(),
                    valid_fraction: self.real(),
                    seed: self.number(),
                    latest: self.constant(),
                    row_mode: self.number(),
                    time_mode: self.number(),
                    cancel: ptr::null(),
                };
                // SAFETY: a string and a struct of this program.
                unsafe { s3cmtf_coo_split(coo, path.as_ptr(), &request, self.error()) }
            }
        }
    }

    pub(super) fn problem_new(&mut self) -> i32 {
        let mut problem = MaybeUninit::uninit();
        let tensor = self.coo();
        let status = s3cmtf_problem_new(tensor, Some(&mut problem), self.error());
        if status == S3CMTF_OK {
            // SAFETY: written by the call that succeeded.
            let old = std::mem::replace(&mut self.problem, unsafe { problem.assume_init() });
            free(old, |problem| s3cmtf_problem_free(problem));
        }
        status
    }

    pub(super) fn problem_add_matrix(&mut self) -> i32 {
        let matrix = self.coo();
        let coupling = Coupling {
            size: self.size(size_of::<Coupling>()),
            kind: self.constant(),
            // Sampling many zeros takes long.
            zeros: u32::from(self.below(9)),
            weight: self.real(),
            penalty: self.real(),
            has_penalty: self.constant(),
        };
        let mode = self.number();
        // SAFETY: an object of this program, used by one call at a time.
        let problem = unsafe { self.problem.as_mut() };
        // SAFETY: a struct of this program.
        unsafe { s3cmtf_problem_add_matrix(problem, mode, matrix, &coupling, self.error()) }
    }

    pub(super) fn options_new(&mut self, preset: &CStr) -> i32 {
        let mut options = MaybeUninit::uninit();
        // SAFETY: a string.
        let status =
            unsafe { s3cmtf_options_new(preset.as_ptr(), Some(&mut options), self.error()) };
        if status == S3CMTF_OK {
            // SAFETY: written by the call that succeeded.
            let old = std::mem::replace(&mut self.options, unsafe { options.assume_init() });
            free(old, |options| s3cmtf_options_free(options));
        }
        status
    }

    pub(super) fn options_set(&mut self) -> i32 {
        let index = u64::from(self.byte()) % (s3cmtf_option_count() + 1);
        let mut info = sized::<OptionDescription>(size_of::<OptionDescription>() as u64);
        // SAFETY: a struct of this program.
        let status = unsafe { s3cmtf_option_get_info(index, info.as_mut_ptr(), self.error()) };
        if status != S3CMTF_OK {
            return status;
        }
        // SAFETY: written by the call that succeeded; its strings are constant.
        let name = unsafe { info.assume_init() }.name;
        // SAFETY: an object of this program, used by one call at a time.
        let options = unsafe { self.options.as_mut() };
        match self.below(6) {
            0 => {
                let value = self.number();
                // SAFETY: a string.
                unsafe { s3cmtf_options_set_integer(options, name, value, self.error()) }
            }
            1 => {
                let value = self.real();
                // SAFETY: a string.
                unsafe { s3cmtf_options_set_real(options, name, value, self.error()) }
            }
            2 => {
                let value = self.constant();
                // SAFETY: a string.
                unsafe { s3cmtf_options_set_bool(options, name, value, self.error()) }
            }
            3 => {
                let value = self.string();
                // SAFETY: strings.
                unsafe { s3cmtf_options_set(options, name, value.as_ptr(), self.error()) }
            }
            4 => {
                let text = self.string();
                // SAFETY: a string.
                unsafe { s3cmtf_options_parse(options, text.as_ptr(), self.error()) }
            }
            _ => {
                let ranks: Vec<u64> = (0..self.below(9)).map(|_| self.number()).collect();
                let count = ranks.len() as u64;
                // SAFETY: an array of this length.
                unsafe { s3cmtf_options_set_ranks(options, ranks.as_ptr(), count, self.error()) }
            }
        }
    }
}

/// Returns the number of entries.
fn coo_count(coo: Option<&CooHandle>) -> u64 {
    let mut info = sized::<CooInfo>(size_of::<CooInfo>() as u64);
    // SAFETY: a struct of this program.
    let status = unsafe { s3cmtf_coo_get_info(coo, info.as_mut_ptr(), None) };
    if status != S3CMTF_OK {
        return 1;
    }
    // SAFETY: written by the call that succeeded.
    unsafe { info.assume_init() }.count
}
