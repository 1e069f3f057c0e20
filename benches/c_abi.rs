//! The cost of the C interface: predictions from Rust and through C, and a view of a factor.
//!
//! Rust and C are measured alternately, so that other load and changes of the clock frequency affect both alike.

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::time::Instant;

use s3cmtf::ffi::c;
use s3cmtf::format::{CooFile, OpenMode};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::model::{Model, load};
use s3cmtf::options::Options;
use s3cmtf::predict::{PredictOptions, predict_at};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

/// Positions of the largest batch.
const POSITIONS: usize = 200_000;

/// A model for Rust and for C, and positions to predict.
struct BenchData {
    model: Model,
    handle: usize,
    columns: [Vec<u32>; 3],
}

fn data() -> BenchData {
    let dir = tempfile::tempdir().unwrap();
    let generated = generate(
        dir.path(),
        &GenerateOptions::new(&[5000, 2000, 50], 100_000),
        &(),
    )
    .unwrap();
    let file = CooFile::open(&generated.train.0, OpenMode::Mapped).unwrap();
    let problem = Problem::builder(file.view()).build(&()).unwrap();
    let mut options = Options::preset("paper").unwrap();
    (options.rank, options.epochs) = (vec![12], 1);
    let input = FitInput::default();
    let (model, _) = fit(&problem, &options, &input, &mut (), &()).unwrap();
    let path = dir.path().join("model.s3m");
    s3cmtf::model::save(&model, &path).unwrap();
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let mut handle = MaybeUninit::new(null_mut());
    // SAFETY: `name` is NUL-terminated and lives through the call.
    let status = unsafe {
        c::s3cmtf_model_load(
            name.as_ptr(),
            c::S3CMTF_OPEN_MAPPED,
            Some(&mut handle),
            None,
        )
    };
    assert_eq!(status, c::S3CMTF_OK);
    let column = |step: u32, dim: u32| (0..POSITIONS as u32).map(|i| i * step % dim).collect();
    BenchData {
        // Rust and C map the same file, because the location of rows in memory changes the time by a tenth.
        model: load(&path, OpenMode::Mapped).unwrap(),
        // SAFETY: the successful call initialized it.
        handle: unsafe { handle.assume_init() } as usize,
        columns: [column(7919, 5000), column(104_729, 2000), column(13, 50)],
    }
}

impl BenchData {
    fn handle(&self) -> Option<&c::ModelHandle> {
        // SAFETY: the model lives as long as the process and is only read.
        unsafe { (self.handle as *const c::ModelHandle).as_ref() }
    }
}

/// Largest number of repetitions.
const MAX_REPETITIONS: usize = 2001;
/// Positions of all repetitions of a batch size.
const TOTAL_POSITIONS: usize = 40_000_000;

fn predict_from_rust(data: &BenchData, out: &mut [f64]) {
    let indices = |range: Range<usize>, to: &mut [u32]| {
        for (n, column) in data.columns.iter().enumerate() {
            let slots = to.iter_mut().skip(n).step_by(3);
            slots
                .zip(&column[range.clone()])
                .for_each(|(slot, i)| *slot = *i);
        }
    };
    let count = out.len();
    let receive = |range: Range<usize>, values: &[f64]| {
        out[range].copy_from_slice(values);
        Ok(())
    };
    predict_at(
        &data.model,
        count,
        indices,
        &PredictOptions {
            clip: true,
            threads: 1,
        },
        &(),
        receive,
    )
    .unwrap();
}

fn predict_from_c(data: &BenchData, out: &mut [f64]) {
    let modes = [0, 1, 2].map(|n: usize| data.columns[n].as_ptr().cast::<c_void>());
    let cells = c::IndexArrays {
        modes: modes.as_ptr(),
        count: out.len() as u64,
        stride: 1,
        r#type: c::S3CMTF_U32,
        base: 0,
    };
    let request = c::PredictRequest {
        size: size_of::<c::PredictRequest>() as u64,
        clip: c::S3CMTF_CLIP_ON,
        threads: 1,
        cancel: null(),
        deviations: null_mut(),
        quantiles: null(),
        quantile_count: 0,
        quantile_values: null_mut(),
    };
    // SAFETY: the arrays and the buffer have the stated lengths.
    let status = unsafe {
        c::s3cmtf_model_predict(
            data.handle(),
            Some(&cells),
            out.as_mut_ptr().cast(),
            out.len() as u64,
            c::S3CMTF_F64,
            &raw const request,
            None,
        )
    };
    assert_eq!(status, c::S3CMTF_OK);
}

fn view_factor(data: &BenchData) {
    let mut view = MaybeUninit::uninit();
    let status = c::s3cmtf_model_view_factor(data.handle(), 0, Some(&mut view), None);
    assert_eq!(status, c::S3CMTF_OK);
    black_box(view);
}

/// Returns the time of `work` in nanoseconds.
fn nanoseconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e9
}

/// Returns the minimum and the median.
fn min_and_median(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2]]
}

fn main() {
    let data = data();
    println!(
        "  count     Rust: best    median  ns/each     C: best    median  ns/each    C/Rust: best    median"
    );
    for count in [1, 1000, POSITIONS] {
        let repetitions = MAX_REPETITIONS.min(TOTAL_POSITIONS / count);
        let mut out = vec![0.0; count];
        let (mut rust, mut c) = (Vec::new(), Vec::new());
        for repetition in 0..repetitions {
            // The order changes with each repetition.
            for second in [false, true] {
                if second ^ (repetition % 2 == 1) {
                    c.push(nanoseconds(|| predict_from_c(&data, &mut out)));
                } else {
                    rust.push(nanoseconds(|| predict_from_rust(&data, &mut out)));
                }
                black_box(&out);
            }
        }
        let ([r, rm], [c, cm]) = (min_and_median(rust), min_and_median(c));
        let each = count as f64;
        println!(
            "{count:>7}  {r:>12.0}  {rm:>8.0}  {:>7.1}  {c:>10.0}  {cm:>8.0}  {:>7.1}  {:>14.3}  {:>8.3}",
            r / each,
            c / each,
            c / r,
            cm / rm
        );
    }
    const VIEWS: usize = 1000;
    let times =
        (0..MAX_REPETITIONS).map(|_| nanoseconds(|| (0..VIEWS).for_each(|_| view_factor(&data))));
    let [best, median] = min_and_median(times.collect());
    println!(
        "a view of a factor: best {:.1} ns, median {:.1} ns",
        best / VIEWS as f64,
        median / VIEWS as f64
    );
}
