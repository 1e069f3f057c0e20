//! The C boundary: an input is a sequence of calls with valid pointers and any numbers.
//!
//! Arrays are allocated with the length that a call is told, so that a sanitizer sees every access beyond it.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use s3cmtf::ffi::c::*;

use super::Seeds;

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

/// The arrays of some entries.
struct Arrays {
    dims: Vec<u64>,
    narrow: Vec<Vec<u32>>,
    wide: Vec<Vec<u64>>,
    pointers: Vec<*const c_void>,
    values: Numbers,
    weights: Numbers,
    indices: IndexArrays,
}

/// Numbers of one of two types, in memory of exactly their length.
enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    None,
}

impl Numbers {
    fn pointer(&self) -> *const c_void {
        match self {
            Numbers::F32(x) => x.as_ptr().cast(),
            Numbers::F64(x) => x.as_ptr().cast(),
            Numbers::None => ptr::null(),
        }
    }
}

/// A buffer for output with room for a number of 64-bit numbers.
struct Buffer(Vec<u64>);

impl Buffer {
    fn new(len: u64) -> Buffer {
        Buffer(vec![0; len as usize])
    }

    fn pointer<T>(&mut self) -> *mut T {
        if self.0.is_empty() {
            ptr::null_mut()
        } else {
            self.0.as_mut_ptr().cast()
        }
    }
}

impl Host<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    /// Returns a number: mostly small, sometimes at a limit.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..=199 => u64::from(byte % 8),
            byte @ 200..=220 => u64::from(byte),
            221..=225 => u64::from(u32::MAX),
            226..=230 => u64::from(u32::MAX) - 1,
            231..=235 => u64::MAX,
            236..=240 => 1 << 63,
            241..=245 => 1 << 32,
            _ => u64::from(self.byte()) << self.below(64),
        }
    }

    fn real(&mut self) -> f64 {
        match self.byte() {
            byte @ 0..=199 => f64::from(byte % 16) / 4.0,
            200..=205 => f64::NAN,
            206..=210 => f64::INFINITY,
            211..=215 => -1.0,
            216..=220 => 1e300,
            221..=225 => 3e38,
            226..=230 => 1e-300,
            231..=240 => 0.0,
            _ => f64::from(self.byte()) * 1e30,
        }
    }

    /// Returns a constant of the header, or a number that is none.
    fn constant(&mut self) -> i32 {
        match self.byte() {
            byte @ 0..=249 => i32::from(byte % 5),
            250..=252 => -1,
            _ => i32::MAX,
        }
    }

    /// Returns the length of an array.
    fn len(&mut self) -> u64 {
        u64::from(self.byte() % 24)
    }

    /// Returns a string up to the next zero byte, of at most 60 bytes.
    fn string(&mut self) -> CString {
        let end = self.bytes.iter().take(60).position(|&b| b == 0);
        let end = end.unwrap_or(self.bytes.len().min(60));
        let (text, rest) = self.bytes.split_at(end);
        self.bytes = rest.strip_prefix(&[0]).unwrap_or(rest);
        CString::new(text).unwrap()
    }

    /// Returns the name of a file in the folder.
    fn path(&mut self) -> CString {
        let names = [
            "a.coo", "b.coo", "c.tns", "d.s3m", "e.s3m", "missing", "out", "",
        ];
        let name = names[usize::from(self.below(8))];
        let path = self.folder.join(name).display().to_string();
        CString::new(path).unwrap()
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

    fn numbers(&mut self, kind: i32, len: u64) -> Numbers {
        let mut reals = (0..len).map(|_| self.real());
        match kind {
            S3CMTF_F32 => Numbers::F32(reals.map(|x| x as f32).collect()),
            S3CMTF_F64 => Numbers::F64(reals.collect()),
            // A type that does not exist is rejected before anything is read.
            _ => match reals.next() {
                None => Numbers::None,
                Some(first) => Numbers::F64(std::iter::once(first).chain(reals).collect()),
            },
        }
    }

    /// Returns arrays of indices of `order` modes and the number of cells.
    fn indices(&mut self, order: u64) -> Arrays {
        let count = self.len();
        let stride = match self.below(4) {
            0 => 0,
            1 => 1,
            _ => u64::from(self.below(5)),
        };
        let kind = match self.below(8) {
            0 => self.constant(),
            byte => S3CMTF_U32 + i32::from(byte % 2),
        };
        let span = match count {
            0 => 0,
            count => (count - 1) * stride.max(1) + 1,
        };
        let mut arrays = Arrays {
            dims: Vec::new(),
            narrow: Vec::new(),
            wide: Vec::new(),
            pointers: Vec::new(),
            values: Numbers::None,
            weights: Numbers::None,
            indices: IndexArrays {
                modes: ptr::null(),
                count,
                stride,
                r#type: kind,
                base: i32::from(self.below(9) / 4),
            },
        };
        for _ in 0..order {
            let missing = self.below(40) == 39;
            let base = u64::from(arrays.indices.base == 1);
            let numbers: Vec<u64> = (0..span)
                .map(|_| match self.below(30) {
                    29 => self.number(),
                    byte => base + u64::from(byte % 4),
                })
                .collect();
            arrays.pointers.push(if missing {
                ptr::null()
            } else if kind == S3CMTF_U32 {
                arrays
                    .narrow
                    .push(numbers.iter().map(|&x| x as u32).collect());
                arrays
                    .narrow
                    .last()
                    .map_or(ptr::null(), |x| x.as_ptr().cast())
            } else {
                arrays.wide.push(numbers);
                arrays
                    .wide
                    .last()
                    .map_or(ptr::null(), |x| x.as_ptr().cast())
            });
        }
        arrays.indices.modes = arrays.pointers.as_ptr();
        // More cells than memory has room for must be refused before one is read.
        if self.below(50) == 49 && count > 1 {
            arrays.indices.count = u64::MAX - u64::from(self.below(4));
        }
        arrays
    }

    /// Returns the description of entries and their arrays.
    fn entries(&mut self) -> (Entries, Arrays) {
        let order = match self.below(16) {
            0 => u64::from(self.below(10)),
            byte => 2 + u64::from(byte % 3),
        };
        let mut arrays = self.indices(order);
        let count = arrays.indices.count.min(24);
        let types: Vec<i32> = (0..2)
            .map(|_| match self.below(16) {
                0 => self.constant(),
                byte => S3CMTF_F32 + i32::from(byte % 2),
            })
            .collect();
        arrays.values = self.numbers(types[0], count);
        if self.below(4) == 0 {
            arrays.weights = self.numbers(types[1], count);
        }
        if self.below(2) == 0 {
            arrays.dims = (0..order)
                .map(|_| match self.below(4) {
                    0 => self.number(),
                    _ => 5,
                })
                .collect();
        }
        let entries = Entries {
            size: self.size(size_of::<Entries>()),
            order,
            dims: if arrays.dims.is_empty() {
                ptr::null()
            } else {
                arrays.dims.as_ptr()
            },
            indices: arrays.indices,
            values: arrays.values.pointer(),
            weights: arrays.weights.pointer(),
            value_type: types[0],
            weight_type: types[1],
        };
        (entries, arrays)
    }

    /// Returns the size of a struct, sometimes that of another version.
    fn size(&mut self, size: usize) -> u64 {
        match self.below(30) {
            29 => u64::from(self.byte()).min(size as u64),
            _ => size as u64,
        }
    }

    /// Makes the next call and returns its status.
    fn call(&mut self) -> i32 {
        match self.below(32) {
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
            _ => self.evaluate(),
        }
    }

    fn coo_new(&mut self) -> i32 {
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

    fn coo_new_weighted(&mut self) -> i32 {
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

    fn coo_read(&mut self) -> i32 {
        let coo = self.coo();
        let mut buffer = Buffer::new(self.len());
        let capacity = buffer.0.len() as u64;
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

    fn coo_file(&mut self) -> i32 {
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

    fn problem_new(&mut self) -> i32 {
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

    fn problem_add_matrix(&mut self) -> i32 {
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

    fn options_new(&mut self, preset: &CStr) -> i32 {
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

    fn options_set(&mut self) -> i32 {
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

    fn fit(&mut self) -> i32 {
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
            let waiting = unsafe { handle.as_ref() };
            status = status.max(s3cmtf_fit_wait(
                waiting,
                -1.0,
                Some(&mut running),
                self.error(),
            ));
            status = status.max(s3cmtf_fit_take(fit(), Some(&mut model), self.error()));
        } else {
            status = status.max(s3cmtf_fit_run(fit(), Some(&mut model), self.error()));
        }
        free(handle, |fit| s3cmtf_fit_free(fit));
        // Every call before the last one may fail, and the last one tells whether there is a model.
        let has_model = status == S3CMTF_OK;
        if has_model {
            self.keep_model(status, model)
        } else {
            status
        }
    }

    fn model_file(&mut self) -> i32 {
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

    fn model_read(&mut self) -> i32 {
        let model = self.model();
        let mut buffer = Buffer::new(self.len());
        let (to, capacity): (*mut c_void, u64) = (buffer.pointer(), buffer.0.len() as u64);
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

    fn predict(&mut self) -> i32 {
        let model = self.model();
        let count = self.below(3);
        let quantiles: Vec<f64> = (0..count).map(|_| self.real() / 4.0).collect();
        let mut buffer = Buffer::new(self.len());
        let mut deviations = Buffer::new(buffer.0.len() as u64);
        let mut quantile_values = Buffer::new(buffer.0.len() as u64 * u64::from(count));
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
        let (to, capacity): (*mut c_void, u64) = (buffer.pointer(), buffer.0.len() as u64);
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

    fn recommend(&mut self) -> i32 {
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
        let mut rows = Buffer::new(self.len());
        let mut scores = Buffer::new(rows.0.len() as u64);
        let mut counts = Buffer::new(24);
        let capacity = rows.0.len() as u64;
        let (rows, scores, counts) = (rows.pointer(), scores.pointer(), counts.pointer());
        // SAFETY: arrays of as many numbers as stated.
        unsafe {
            s3cmtf_model_recommend(
                model,
                &request,
                rows,
                scores,
                capacity,
                counts,
                self.error(),
            )
        }
    }

    fn similar(&mut self) -> i32 {
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
        let mut rows = Buffer::new(self.len());
        let mut scores = Buffer::new(rows.0.len() as u64);
        let mut counts = Buffer::new(24);
        let capacity = rows.0.len() as u64;
        let (rows, scores, counts) = (rows.pointer(), scores.pointer(), counts.pointer());
        // SAFETY: arrays of as many numbers as stated.
        unsafe {
            s3cmtf_model_similar(
                model,
                &request,
                rows,
                scores,
                capacity,
                counts,
                self.error(),
            )
        }
    }

    fn fold_in(&mut self) -> i32 {
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

    fn concepts(&mut self) -> i32 {
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

    fn evaluate(&mut self) -> i32 {
        let (model, coo) = (self.model(), self.coo());
        let threads = self.number();
        let mut evaluation = sized::<Evaluation>(self.size(size_of::<Evaluation>()));
        let to = evaluation.as_mut_ptr();
        // SAFETY: a struct of this program.
        unsafe { s3cmtf_model_evaluate(model, coo, threads, None, to, self.error()) }
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

/// Returns a struct of zeros whose first field is its size.
fn sized<T>(size: u64) -> MaybeUninit<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: all of these structs begin with their size.
    unsafe { value.as_mut_ptr().cast::<u64>().write(size) };
    value
}

/// Returns the call that makes entries of `order` modes, 2 or 3, in `slot`. The bytes are those that [`Host`] reads.
fn seed_entries(order: u8, slot: u8) -> Vec<u8> {
    const COUNT: u8 = 12;
    // The order, the number of entries, stride 1, 32-bit indices from 0.
    let mut bytes = vec![0, if order == 2 { 3 } else { 1 }, COUNT, 1, 2, 0];
    for mode in 0..order {
        bytes.push(0);
        bytes.extend((0..COUNT).map(|i| (i >> mode) % 4));
    }
    // 32-bit values, no weights, no sizes; copied.
    bytes.extend([0, 2, 2]);
    bytes.extend((0..COUNT).map(|i| i * 5 % 16));
    bytes.extend([1, 1, 0, 1, 0, slot]);
    bytes
}

/// Returns the calls that fit a model to a tensor with a matrix, and save and load it. `flags` are those of [`Host::fit`].
fn seed_fit(options: &str, flags: u8, arguments: &[u8]) -> Vec<u8> {
    let matrix = [9, 1, 0, 0, 0, 4, 4, 0, 1, 0];
    let set = [&[13, 0, 0, 4], options.as_bytes(), &[0, 0]].concat();
    let fit = [&[16, 0, 0, flags], arguments, &[0, 0]].concat();
    let save = [21, 0, 3, 1, 0, 0, 1];
    [
        &seed_entries(3, 0)[..],
        &seed_entries(2, 1),
        &[7, 0, 0],
        &matrix,
        &set,
        &fit,
        &save,
    ]
    .concat()
}

pub fn seeds(_: &Path) -> Seeds {
    let predict = [24, 0, 0, 12, 0, 0, 1, 0, 1, 3, 0, 0, 0];
    let intervals = [24, 0, 2, 1, 2, 12, 0, 1, 1, 1, 1, 4, 0, 0, 0];
    // One query, whose row is 0 in all modes.
    let query = [&[1, 1, 2, 0][..], &[0; 16], &[0]].concat();
    let recommend = [&[26, 0], &query[..], &[0, 0, 0, 1, 3, 0, 2, 0, 1, 12, 0]].concat();
    let similar = [28, 0, 1, 0, 0, 1, 2, 1, 12, 0];
    let fold_in = [29, 0, 0, 0, 0, 0, 1, 1, 0, 0, 2];
    let concepts = [30, 0, 0, 0, 3, 0, 1, 0];
    let evaluate = [31, 0, 0, 1, 0, 0];
    let read = [22, 0, 23, 1, 0, 3, 0, 1, 0];
    let fit = seed_fit("rank=2\nepochs=1\nstart=identity", 0, &[]);
    vec![
        ("predict", [&fit[..], &predict, &evaluate, &read].concat()),
        (
            "recommend",
            [&fit[..], &recommend, &similar, &concepts].concat(),
        ),
        ("fold-in", [&fit[..], &fold_in, &evaluate].concat()),
        (
            "gibbs",
            [
                &seed_fit("algorithm=gibbs\nrank=2\nburn_in=0\nsamples=2", 0, &[])[..],
                &intervals,
                &recommend,
            ]
            .concat(),
        ),
        // With test and validation entries and a checkpoint, in the background.
        (
            "background",
            seed_fit(
                "algorithm=als\nrank=2\nepochs=1",
                1 | 2 | 8 | 32,
                &[0, 0, 0, 0, 4, 0, 0, 0],
            ),
        ),
    ]
}
