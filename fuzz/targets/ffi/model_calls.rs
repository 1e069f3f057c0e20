//! Calls that fit and use models.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use s3cmtf::ffi::c::*;

use super::input::Buffer;
use super::{Host, free, sized};

impl Host<'_> {
    /// Limits the options to what a fit of a few entries can do in milliseconds.
    fn limit_options(&mut self) {
        // SAFETY: an object of this program, used by one call at a time.
        let Some(options) = (unsafe { self.options.as_mut() }) else {
            return;
        };
        let mut buffer = [0u8; 128];
        let mut get = |name: &CStr| {
            let to = buffer.as_mut_ptr().cast::<c_char>();
            // SAFETY: a string, and room for as many bytes as stated.
            let status =
                unsafe { s3cmtf_options_get(Some(options), name.as_ptr(), to, 128, None, None) };
            assert_eq!(status, S3CMTF_OK);
            let end = buffer.iter().position(|&b| b == 0).unwrap();
            String::from_utf8(buffer[..end].to_vec()).unwrap()
        };
        let above = |text: &str, limit: u64| text.parse::<u64>().is_ok_and(|n| n > limit);
        let mut limits = c"pin=false".to_owned();
        let mut limit = |text: &CStr| {
            limits = CString::new([limits.as_bytes(), b"\n", text.to_bytes()].concat()).unwrap();
        };
        if above(&get(c"threads"), 2) || get(c"threads") == "0" {
            limit(c"threads=1");
        }
        if get(c"rank").split(',').any(|rank| above(rank, 4)) {
            limit(c"rank=3");
        }
        for (name, value) in [
            (c"epochs", c"epochs=2"),
            (c"samples", c"samples=2"),
            (c"burn_in", c"burn_in=1"),
        ] {
            if above(&get(name), 2) {
                limit(value);
            }
        }
        // SAFETY: a string.
        let status = unsafe { s3cmtf_options_parse(Some(options), limits.as_ptr(), None) };
        assert_eq!(status, S3CMTF_OK);
    }

    pub(super) fn fit(&mut self) -> i32 {
        self.limit_options();
        let mut fit = MaybeUninit::uninit();
        // SAFETY: objects of this program.
        let (problem, options) = unsafe { (self.problem.as_ref(), self.options.as_ref()) };
        let options = options.filter(|_| self.below(16) != 15);
        let status = s3cmtf_fit_new(problem, options, Some(&mut fit), self.error());
        if status != S3CMTF_OK {
            return status;
        }
        // SAFETY: written by the call that succeeded.
        let handle = unsafe { fit.assume_init() };
        let mut flags = self.byte();
        if options.is_none() {
            // Thirty epochs on all cores: started and cancelled.
            flags |= 32 | 64;
        }
        // SAFETY: an object of this program, used by one call at a time.
        let fit = || unsafe { handle.as_mut() };
        let mut status = S3CMTF_OK;
        if flags & 1 != 0 {
            let test = self.coo();
            status = status.max(s3cmtf_fit_set_test(fit(), test, self.error()));
        }
        if flags & 2 != 0 {
            let valid = self.coo();
            status = status.max(s3cmtf_fit_set_valid(fit(), valid, self.error()));
        }
        if flags & 4 != 0 {
            let init = self.model();
            status = status.max(s3cmtf_fit_set_init(fit(), init, self.error()));
        }
        if flags & 8 != 0 {
            let path = self.path();
            // SAFETY: a string.
            let set = unsafe { s3cmtf_fit_set_checkpoint(fit(), path.as_ptr(), self.error()) };
            status = status.max(set);
        }
        if flags & 16 != 0 {
            let path = self.path();
            // SAFETY: a string.
            let set = unsafe { s3cmtf_fit_set_resume(fit(), path.as_ptr(), self.error()) };
            status = status.max(set);
        }
        let mut model = MaybeUninit::uninit();
        if flags & 32 != 0 {
            let mut running = MaybeUninit::uninit();
            status = status.max(s3cmtf_fit_start(fit(), self.error()));
            if flags & 64 != 0 {
                // SAFETY: an object of this program.
                s3cmtf_fit_cancel(unsafe { handle.as_ref() });
            }
            // SAFETY: an object of this program.
            let waited = unsafe { s3cmtf_fit_wait(handle, -1.0, Some(&mut running), self.error()) };
            status = status.max(waited);
            status = status.max(s3cmtf_fit_take(fit(), Some(&mut model), self.error()));
        } else {
            let error = self.error().map_or(ptr::null_mut(), ptr::from_mut);
            // SAFETY: objects of this program; the fit has no callback.
            status = status.max(unsafe { s3cmtf_fit_run(handle, Some(&mut model), error) });
        }
        free(handle, |fit| s3cmtf_fit_free(fit));
        self.keep_model(status, model)
    }

    pub(super) fn model_file(&mut self) -> i32 {
        let (model, path) = (self.model(), self.path());
        match self.below(3) {
            0 => {
                let mut loaded = MaybeUninit::uninit();
                let mode = self.constant();
                // SAFETY: a string.
                let status = unsafe {
                    s3cmtf_model_load(path.as_ptr(), mode, Some(&mut loaded), self.error())
                };
                self.keep_model(status, loaded)
            }
            1 => {
                // SAFETY: a string.
                let status = unsafe { s3cmtf_model_save(model, path.as_ptr(), self.error()) };
                if status == S3CMTF_OK {
                    let mut loaded = MaybeUninit::uninit();
                    // SAFETY: a string. A model with a value that is not finite cannot be loaded.
                    let load = unsafe {
                        s3cmtf_model_load(path.as_ptr(), 1, Some(&mut loaded), self.error())
                    };
                    assert_eq!(load, S3CMTF_OK, "{}", self.message());
                    self.keep_model(load, loaded);
                }
                status
            }
            _ => {
                let mut info = sized::<ModelInfo>(self.size(size_of::<ModelInfo>()));
                // SAFETY: a struct of this program.
                unsafe { s3cmtf_model_get_info(model, info.as_mut_ptr(), self.error()) }
            }
        }
    }

    pub(super) fn model_read(&mut self) -> i32 {
        let model = self.model();
        let mut buffer = Buffer::new(self.len());
        let (to, capacity): (*mut c_void, u64) = (buffer.pointer(), buffer.len());
        let (place, other) = (self.number(), self.number());
        let (kind, layout) = (self.constant(), self.constant());
        let mut view = MaybeUninit::uninit();
        // SAFETY: room for as many numbers of 64 bits as stated, structs of this program.
        unsafe {
            match self.below(14) {
                0 => s3cmtf_model_copy_row_indices(model, place, to, capacity, kind, self.error()),
                1 => {
                    s3cmtf_model_copy_factor(model, place, to, capacity, kind, layout, self.error())
                }
                2 => s3cmtf_model_copy_row(model, place, other, to, capacity, kind, self.error()),
                3 => s3cmtf_model_view_factor(model, place, Some(&mut view), self.error()),
                4 => s3cmtf_model_copy_biases(model, place, to, capacity, kind, self.error()),
                5 => s3cmtf_model_view_biases(model, place, Some(&mut view), self.error()),
                6 => s3cmtf_model_copy_core(model, to, capacity, kind, layout, self.error()),
                7 => s3cmtf_model_view_core(model, Some(&mut view), self.error()),
                8 => {
                    s3cmtf_model_copy_matrix_indices(model, place, to, capacity, kind, self.error())
                }
                9 => {
                    s3cmtf_model_copy_matrix(model, place, to, capacity, kind, layout, self.error())
                }
                10 => s3cmtf_model_view_matrix(model, place, Some(&mut view), self.error()),
                11 => s3cmtf_model_copy_offsets(model, place, to, capacity, kind, self.error()),
                12 => {
                    let mut info = sized::<ModeInfo>(self.size(size_of::<ModeInfo>()));
                    s3cmtf_model_get_mode(model, place, info.as_mut_ptr(), self.error())
                }
                _ => {
                    let mut info = sized::<MatrixInfo>(self.size(size_of::<MatrixInfo>()));
                    s3cmtf_model_get_matrix(model, place, info.as_mut_ptr(), self.error())
                }
            }
        }
    }

    pub(super) fn predict(&mut self) -> i32 {
        let model = self.model();
        let count = self.below(3);
        let quantiles: Vec<f64> = (0..count).map(|_| self.real() / 4.0).collect();
        let mut buffer = Buffer::new(self.len());
        let mut deviations = Buffer::new(buffer.len());
        let mut quantile_values = Buffer::new(buffer.len() * u64::from(count));
        let request = PredictRequest {
            size: self.size(size_of::<PredictRequest>()),
            clip: self.constant(),
            threads: self.number(),
            cancel: ptr::null(),
            deviations: if self.below(2) == 0 {
                ptr::null_mut()
            } else {
                deviations.pointer()
            },
            quantiles: quantiles.as_ptr(),
            quantile_count: u64::from(count),
            quantile_values: quantile_values.pointer(),
        };
        let request = if self.below(3) == 0 {
            ptr::null()
        } else {
            &raw const request
        };
        let (to, capacity): (*mut c_void, u64) = (buffer.pointer(), buffer.len());
        let kind = self.constant();
        if self.below(2) == 0 {
            let coo = self.coo();
            // SAFETY: room for as many numbers of 64 bits as stated.
            return unsafe {
                s3cmtf_model_predict_coo(model, coo, to, capacity, kind, request, self.error())
            };
        }
        // No model has more modes.
        let cells = self.indices(8);
        // SAFETY: arrays of as many numbers as stated.
        unsafe {
            let cells = Some(&cells.indices);
            s3cmtf_model_predict(model, cells, to, capacity, kind, request, self.error())
        }
    }

    /// Makes a call that writes ranked lists: rows, scores, their capacity, and the length of each list.
    fn rank(
        &mut self,
        call: impl FnOnce(*mut u64, *mut f64, u64, *mut u64, Option<&mut ErrorHandle>) -> i32,
    ) -> i32 {
        let mut rows = Buffer::new(self.len());
        let mut scores = Buffer::new(rows.len());
        let mut counts = Buffer::new(24);
        let capacity = rows.len();
        let (rows, scores, counts) = (rows.pointer(), scores.pointer(), counts.pointer());
        call(rows, scores, capacity, counts, self.error())
    }

    pub(super) fn recommend(&mut self) -> i32 {
        let model = self.model();
        let queries = self.indices(8);
        let candidates: Vec<u64> = (0..self.below(4)).map(|_| self.number()).collect();
        let exclude_rows: Vec<u64> = (0..self.below(4)).map(|_| self.number()).collect();
        let request = RecommendRequest {
            size: self.size(size_of::<RecommendRequest>()),
            mode: self.number(),
            top: self.number(),
            queries: queries.indices,
            quantile: self.real() / 4.0,
            exclude: self.coo().map_or(ptr::null(), |coo| coo),
            exclude_mode: self.number(),
            candidates: if candidates.is_empty() {
                ptr::null()
            } else {
                candidates.as_ptr()
            },
            candidate_count: candidates.len() as u64,
            exclude_rows: exclude_rows.as_ptr(),
            exclude_row_count: exclude_rows.len() as u64,
            threads: self.number(),
            cancel: ptr::null(),
        };
        self.rank(|rows, scores, capacity, counts, error| {
            // SAFETY: arrays of as many numbers as stated.
            unsafe {
                s3cmtf_model_recommend(model, &request, rows, scores, capacity, counts, error)
            }
        })
    }

    pub(super) fn similar(&mut self) -> i32 {
        let model = self.model();
        let of: Vec<u64> = (0..self.below(4)).map(|_| self.number()).collect();
        let request = SimilarRequest {
            size: self.size(size_of::<SimilarRequest>()),
            mode: self.number(),
            top: self.number(),
            rows: of.as_ptr(),
            row_count: of.len() as u64,
            threads: self.number(),
            cancel: ptr::null(),
        };
        self.rank(|rows, scores, capacity, counts, error| {
            // SAFETY: arrays of as many numbers as stated.
            unsafe { s3cmtf_model_similar(model, &request, rows, scores, capacity, counts, error) }
        })
    }

    pub(super) fn fold_in(&mut self) -> i32 {
        let model = self.model();
        let pointer =
            |coo: Option<&'static CooHandle>| coo.map_or(ptr::null(), |coo| coo as *const _);
        let count = self.below(3);
        let matrices: Vec<*const CooHandle> = (0..count).map(|_| pointer(self.coo())).collect();
        let numbers: Vec<u64> = (0..count).map(|_| self.number()).collect();
        let weights: Vec<f64> = (0..count).map(|_| self.real()).collect();
        let request = FoldInRequest {
            size: self.size(size_of::<FoldInRequest>()),
            tensor: pointer(self.coo()),
            matrix_count: u64::from(count),
            matrices: matrices.as_ptr(),
            matrix_numbers: numbers.as_ptr(),
            weights: if self.below(2) == 0 {
                ptr::null()
            } else {
                weights.as_ptr()
            },
            replace: self.constant(),
            threads: self.number(),
            cancel: ptr::null(),
        };
        let mut folded = MaybeUninit::uninit();
        let mode = self.number();
        // SAFETY: arrays of as many items as stated.
        let status = unsafe {
            let out = Some(&mut folded);
            s3cmtf_model_fold_in(model, mode, &request, out, None, None, self.error())
        };
        self.keep_model(status, folded)
    }

    pub(super) fn concepts(&mut self) -> i32 {
        let model = self.model();
        let count = self.below(4);
        let modes: Vec<u64> = (0..count).map(|_| self.number()).collect();
        let rows: Vec<u64> = (0..count).map(|_| self.number()).collect();
        let request = ConceptsRequest {
            size: self.size(size_of::<ConceptsRequest>()),
            top: self.number(),
            min_entries: self.number(),
            given_modes: modes.as_ptr(),
            given_rows: rows.as_ptr(),
            given_count: u64::from(count),
            cancel: ptr::null(),
        };
        let mode = self.number();
        let mut concepts = MaybeUninit::uninit();
        // SAFETY: arrays of as many numbers as stated.
        let status = unsafe {
            s3cmtf_concepts_new(model, mode, &request, Some(&mut concepts), self.error())
        };
        if status == S3CMTF_OK {
            // SAFETY: written by the call that succeeded.
            free(unsafe { concepts.assume_init() }, |concepts| {
                s3cmtf_concepts_free(concepts)
            });
        }
        status
    }

    pub(super) fn evaluate(&mut self) -> i32 {
        let (model, coo) = (self.model(), self.coo());
        let threads = self.number();
        let mut evaluation = sized::<Evaluation>(self.size(size_of::<Evaluation>()));
        let to = evaluation.as_mut_ptr();
        // SAFETY: a struct of this program.
        unsafe { s3cmtf_model_evaluate(model, coo, threads, None, to, self.error()) }
    }

    pub(super) fn evaluate_distributions(&mut self) -> i32 {
        let (model, coo) = (self.model(), self.coo());
        let threads = self.number();
        let mut scores = sized::<DistributionScores>(self.size(size_of::<DistributionScores>()));
        let to = scores.as_mut_ptr();
        // SAFETY: a struct of this program.
        unsafe { s3cmtf_model_evaluate_distributions(model, coo, threads, None, to, self.error()) }
    }

    pub(super) fn evaluate_binary(&mut self) -> i32 {
        let (model, coo) = (self.model(), self.coo());
        let threads = self.number();
        let mut scores = sized::<BinaryScores>(self.size(size_of::<BinaryScores>()));
        let to = scores.as_mut_ptr();
        // SAFETY: a struct of this program.
        unsafe { s3cmtf_model_evaluate_binary(model, coo, threads, None, to, self.error()) }
    }
}
