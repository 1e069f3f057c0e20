//! Recommendations and similar rows: the top 10 of 10,000 rows for each of 10,000 rows, J = 12, one thread.

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

/// Returns a fitted model and its observed pairs.
fn data() -> &'static (Model, ObservedPairs) {
    static DATA: OnceLock<(Model, ObservedPairs)> = OnceLock::new();
    DATA.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let options = GenerateOptions::new(&[ROWS as u64, ROWS as u64, 50], 400_000);
        let generated = generate(dir.path(), &options, &()).unwrap();
        let file = CooFile::open(&generated.train.0, OpenMode::Private).unwrap();
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
fn recommend_for_all_rows(bencher: Bencher<'_, '_>) {
    let (model, seen) = data();
    let options = RecommendOptions {
        exclude_observed: Some(seen),
        threads: 1,
        ..RecommendOptions::new(1, 10)
    };
    let index =
        |q: usize, position: &mut [u32]| position.copy_from_slice(&[q as u32, 0, AVERAGE_ROW]);
    let run = || {
        recommend(model, ROWS, index, &options, &(), |_, list| {
            black_box(list);
            Ok(())
        })
        .unwrap()
    };
    bencher.counter(ItemsCount::new(ROWS * ROWS)).bench(run);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn similar_to_all_rows(bencher: Bencher<'_, '_>) {
    let (model, _) = data();
    let rows: Vec<u32> = (0..ROWS as u32).collect();
    let options = SimilarOptions {
        mode: 1,
        top: 10,
        threads: 1,
    };
    let run = || {
        similar_rows(model, &rows, &options, &(), |_, list| {
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
