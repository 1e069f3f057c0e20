//! What the C boundary costs: predictions of a batch through it and without it, in turns, and a factor
//! looked at where it is.
//!
//! In turns, since what a machine does beside this, and how fast it is just now, is the same for both then.

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

const CELLS: usize = 200_000;

/// A model as Rust and as C have it, and cells to predict.
struct Data {
    model: Model,
    handle: usize,
    columns: [Vec<u32>; 3],
}

fn data() -> Data {
    let dir = tempfile::tempdir().unwrap();
    let made = generate(
        dir.path(),
        &GenerateOptions::new(&[5000, 2000, 50], 100_000),
        &(),
    )
    .unwrap();
    let file = CooFile::open(&made.train.0, OpenMode::Mapped).unwrap();
    let problem = Problem::builder(file.view()).build(&()).unwrap();
    let mut options = Options::preset("paper").unwrap();
    (options.rank, options.epochs) = (vec![12], 1);
    let input = FitInput::default();
    let (model, _) = fit(&problem, &options, &input, &mut (), &()).unwrap();
    let path = dir.path().join("model.s3m");
    s3cmtf::model::save(&model, &path).unwrap();
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let mut handle = MaybeUninit::new(null_mut());
    // SAFETY: a text that ends in NUL and lives through the call.
    let status = unsafe {
        c::s3cmtf_model_load(
            name.as_ptr(),
            c::S3CMTF_OPEN_MAPPED,
            Some(&mut handle),
            None,
        )
    };
    assert_eq!(status, c::S3CMTF_OK);
    let column = |step: u32, dim: u32| (0..CELLS as u32).map(|i| i * step % dim).collect();
    Data {
        // Both map the file, so that both have their rows in the same memory: where that is makes a tenth.
        model: load(&path, OpenMode::Mapped).unwrap(),
        // SAFETY: written, since the call succeeded.
        handle: unsafe { handle.assume_init() } as usize,
        columns: [column(7919, 5000), column(104_729, 2000), column(13, 50)],
    }
}

impl Data {
    fn handle(&self) -> Option<&c::ModelHandle> {
        // SAFETY: the model lives as long as the program, and is only read.
        unsafe { (self.handle as *const c::ModelHandle).as_ref() }
    }
}

/// Turns, at most and for so many cells in all.
const TURNS: usize = 2001;
const ALL_CELLS: usize = 40_000_000;

fn from_rust(data: &Data, out: &mut [f64]) {
    let indices = |cells: Range<usize>, to: &mut [u32]| {
        for (n, column) in data.columns.iter().enumerate() {
            let slots = to.iter_mut().skip(n).step_by(3);
            slots
                .zip(&column[cells.clone()])
                .for_each(|(slot, i)| *slot = *i);
        }
    };
    let count = out.len();
    let take = |range: Range<usize>, piece: &[f64]| {
        out[range].copy_from_slice(piece);
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
        take,
    )
    .unwrap();
}

fn from_c(data: &Data, out: &mut [f64]) {
    let pointers = [0, 1, 2].map(|n: usize| data.columns[n].as_ptr().cast::<c_void>());
    // SAFETY: arrays and a buffer of the lengths said.
    let status = unsafe {
        c::s3cmtf_model_predict(
            data.handle(),
            out.len() as u64,
            pointers.as_ptr(),
            c::S3CMTF_U32,
            1,
            0,
            1,
            1,
            None,
            out.as_mut_ptr().cast(),
            out.len() as u64,
            c::S3CMTF_F64,
            None,
        )
    };
    assert_eq!(status, c::S3CMTF_OK);
}

fn view_of_a_factor(data: &Data) {
    let mut numbers = MaybeUninit::new(null());
    let status =
        c::s3cmtf_model_view_factor(data.handle(), 0, Some(&mut numbers), None, None, None, None);
    assert_eq!(status, c::S3CMTF_OK);
    black_box(numbers);
}

/// Nanoseconds of some work.
fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e9
}

/// The shortest, and the one in the middle.
fn of(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2]]
}

fn main() {
    let data = data();
    println!(
        "  cells     Rust: best    median  ns/cell     C: best    median  ns/cell    C/Rust: best    median"
    );
    for count in [1, 1000, CELLS] {
        let turns = TURNS.min(ALL_CELLS / count);
        let mut out = vec![0.0; count];
        let (mut rust, mut c) = (Vec::new(), Vec::new());
        for turn in 0..turns {
            // Neither is always the second.
            for second in [false, true] {
                match second ^ (turn % 2 == 1) {
                    false => rust.push(timed(|| from_rust(&data, &mut out))),
                    true => c.push(timed(|| from_c(&data, &mut out))),
                }
                black_box(&out);
            }
        }
        let ([r, rm], [c, cm]) = (of(rust), of(c));
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
    let times = (0..TURNS).map(|_| timed(|| (0..VIEWS).for_each(|_| view_of_a_factor(&data))));
    let [best, median] = of(times.collect());
    println!(
        "a view of a factor: best {:.1} ns, median {:.1} ns",
        best / VIEWS as f64,
        median / VIEWS as f64
    );
}
