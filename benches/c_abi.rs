//! What the C boundary costs: predictions of a batch through it and without it, in one run, and a factor
//! looked at where it is.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use s3cmtf::analysis::predict_cells;
use s3cmtf::ffi::c;
use s3cmtf::format::{CooFile, OpenMode};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::model::{Model, load};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

const CELLS: usize = 200_000;

/// A model as Rust and as C have it, and cells to predict.
struct Data {
    model: Model,
    handle: usize,
    columns: [Vec<u32>; 3],
}

fn data() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
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
                c::S3CMTF_OPEN_PRIVATE,
                Some(&mut handle),
                None,
            )
        };
        assert_eq!(status, c::S3CMTF_OK);
        let column = |step: u32, dim: u32| (0..CELLS as u32).map(|i| i * step % dim).collect();
        Data {
            // Both from the file, so that both have their rows in the same kind of memory.
            model: load(&path, OpenMode::Private).unwrap(),
            // SAFETY: written, since the call succeeded.
            handle: unsafe { handle.assume_init() } as usize,
            columns: [column(7919, 5000), column(104_729, 2000), column(13, 50)],
        }
    })
}

impl Data {
    fn handle(&self) -> Option<&c::ModelHandle> {
        // SAFETY: the model lives as long as the program, and is only read.
        unsafe { (self.handle as *const c::ModelHandle).as_ref() }
    }
}

#[divan::bench(args = [1, 1000, CELLS])]
fn predict_from_rust(bencher: Bencher, count: usize) {
    let data = data();
    let mut out = vec![0.0; count];
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let indices = |cells: std::ops::Range<usize>, to: &mut [u32]| {
            for (n, column) in data.columns.iter().enumerate() {
                let slots = to.iter_mut().skip(n).step_by(3);
                slots
                    .zip(&column[cells.clone()])
                    .for_each(|(slot, i)| *slot = *i);
            }
        };
        let take = |range: std::ops::Range<usize>, piece: &[f64]| {
            out[range].copy_from_slice(piece);
            Ok(())
        };
        predict_cells(&data.model, count, indices, true, 1, &(), take).unwrap();
        black_box(out[0])
    });
}

#[divan::bench(args = [1, 1000, CELLS])]
fn predict_from_c(bencher: Bencher, count: usize) {
    let data = data();
    let pointers = [0, 1, 2].map(|n: usize| data.columns[n].as_ptr().cast::<c_void>());
    let mut out = vec![0.0f64; count];
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        // SAFETY: arrays and a buffer of the lengths said.
        let status = unsafe {
            c::s3cmtf_model_predict(
                data.handle(),
                count as u64,
                pointers.as_ptr(),
                c::S3CMTF_U32,
                1,
                0,
                1,
                1,
                None,
                out.as_mut_ptr().cast(),
                count as u64,
                c::S3CMTF_F64,
                None,
            )
        };
        assert_eq!(status, c::S3CMTF_OK);
        black_box(out[0])
    });
}

#[divan::bench]
fn view_of_a_factor(bencher: Bencher) {
    let data = data();
    bencher.bench(|| {
        let mut numbers = MaybeUninit::new(null());
        let status = c::s3cmtf_model_view_factor(
            data.handle(),
            0,
            Some(&mut numbers),
            None,
            None,
            None,
            None,
        );
        assert_eq!(status, c::S3CMTF_OK);
        numbers
    });
}

fn main() {
    divan::main();
}
