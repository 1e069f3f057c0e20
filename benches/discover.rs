//! The first ten of 10,000 rows for each of 10,000 others, J = 12, on one thread.

use std::sync::OnceLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use s3cmtf::discover::{
    AVERAGE_ROW, ObservedPairs, RecommendOptions, SimilarOptions, recommend, similar_rows,
};
use s3cmtf::format::{CooFile, OpenMode};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::model::Model;
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

const ROWS: usize = 10_000;

/// A model, and what was seen of it.
fn data() -> &'static (Model, ObservedPairs) {
    static DATA: OnceLock<(Model, ObservedPairs)> = OnceLock::new();
    DATA.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let options = GenerateOptions::new(&[ROWS as u64, ROWS as u64, 50], 400_000);
        let made = generate(dir.path(), &options, &()).unwrap();
        let file = CooFile::open(&made.train.0, OpenMode::Private).unwrap();
        let problem = Problem::builder(file.view()).build(&()).unwrap();
        let mut options = Options::preset("paper").unwrap();
        (options.rank, options.epochs) = (vec![12], 1);
        let input = FitInput::default();
        let (model, _) = fit(&problem, &options, &input, &mut (), &()).unwrap();
        let seen = ObservedPairs::new(&[file.view()], 0, 1).unwrap();
        (model, seen)
    })
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn recommend_to_all(bencher: Bencher<'_, '_>) {
    let (model, seen) = data();
    let how = RecommendOptions {
        exclude_observed: Some(seen),
        threads: 1,
        ..RecommendOptions::new(1, 10)
    };
    let index = |q: usize, cell: &mut [u32]| cell.copy_from_slice(&[q as u32, 0, AVERAGE_ROW]);
    let run = || {
        recommend(model, ROWS, index, &how, &(), |_, list| {
            black_box(list);
            Ok(())
        })
        .unwrap()
    };
    bencher.counter(ItemsCount::new(ROWS * ROWS)).bench(run);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn like_all(bencher: Bencher<'_, '_>) {
    let (model, _) = data();
    let rows: Vec<u32> = (0..ROWS as u32).collect();
    let how = SimilarOptions {
        mode: 1,
        top: 10,
        threads: 1,
    };
    let run = || {
        similar_rows(model, &rows, &how, &(), |_, list| {
            black_box(list);
            Ok(())
        })
        .unwrap()
    };
    bencher.counter(ItemsCount::new(ROWS * ROWS)).bench(run);
}

fn main() {
    divan::main();
}
