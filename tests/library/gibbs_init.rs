//! Initialization of `gibbs`: spectral, by SGD, or from the rows and biases of another model.

use crate::common::Scratch;
use crate::common::planted::{PlantedData, StopAfter, generate_planted, parameter_bits};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, fit};

fn options(algorithm: Algorithm, start: Initialization) -> Options {
    let mut o = Options::default();
    o.algorithm = algorithm;
    o.start = start;
    o.rank = vec![4];
    (o.epochs, o.burn_in, o.samples) = (3, 1, 2);
    o.threads = 1;
    o
}

/// Entries with strong biases and few entries per row, as in most rating data.
struct BiasedEntries {
    columns: [Vec<u32>; 2],
    values: Vec<f64>,
}

impl BiasedEntries {
    const ROWS: u64 = 1500;

    fn new(seed: u64, scale: f64) -> BiasedEntries {
        let mut state = seed;
        let mut uniform = || crate::common::next_unit(&mut state);
        // The bias of a row is independent of the seed.
        let bias = |row: u64, n: u64| ((row * 2 + n) as f64 * 12.9898).sin() * 0.8;
        let (mut columns, mut values) = ([Vec::new(), Vec::new()], Vec::new());
        for _ in 0..4 * Self::ROWS {
            let rows = [0, 1].map(|_| (uniform() * Self::ROWS as f64) as u64);
            let noise = uniform() + uniform() + uniform() - 1.5;
            values.push(scale * (3.5 + bias(rows[0], 0) + bias(rows[1], 1) + noise));
            let each = columns.iter_mut().zip(rows);
            each.for_each(|(column, row)| column.push(row as u32));
        }
        BiasedEntries { columns, values }
    }

    fn view(&self) -> CooView<'_> {
        let slices: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let dims = [Self::ROWS; 2];
        CooView::new("biased", &dims, &slices, Values::F64(&self.values)).unwrap()
    }
}

#[test]
fn gibbs_warm_start_keeps_the_biases() {
    for scale in [1.0, 100.0] {
        warm_start_keeps_biases(scale);
    }
}

fn warm_start_keeps_biases(scale: f64) {
    let (train, test) = (BiasedEntries::new(1, scale), BiasedEntries::new(2, scale));
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let fit_from = |o: &Options, init| {
        let input = FitInput {
            test: Some(test.view()),
            init,
            ..FitInput::default()
        };
        fit(&problem, o, &input, &mut (), &()).unwrap()
    };
    let (sgd, sgd_summary) = fit_from(&options(Algorithm::Blocked, Initialization::Identity), None);
    let mut o = options(Algorithm::Gibbs, Initialization::Identity);
    o.model = sgd.options().model;
    (o.burn_in, o.samples) = (4, 8);
    let (_, gibbs_summary) = fit_from(&o, Some(&sgd));
    // Without the biases of the start the test RMSE is 0.96 instead of 0.74: the hyperprior learnt from zero biases keeps
    // them at zero.
    assert!(
        gibbs_summary.test_rmse < 1.05 * sgd_summary.test_rmse,
        "{} {}",
        gibbs_summary.test_rmse,
        sgd_summary.test_rmse
    );
}

/// Generates CP data whose factor columns have mean 0 in every mode, so that means of slices show no structure.
fn zero_mean_cp(dims: &[u64], entries: u64, rank: usize, noise: f64, seed: u64) -> PlantedData {
    let mut planted = GenerateOptions::new(dims, entries);
    planted.model = ModelKind::Cp;
    (planted.ranks, planted.noise, planted.test_fraction) = (vec![rank], noise, 0.1);
    planted.seed = seed;
    generate_planted(&format!("zero-mean-{}", dims.len()), &planted)
}

#[test]
fn gibbs_finds_structure_without_slice_means() {
    for data in [
        zero_mean_cp(&[1000, 500, 100], 100_000, 5, 0.5, 0),
        zero_mean_cp(&[300, 200, 40, 20], 80_000, 4, 0.5, 0),
        // The initialization misses one column, which the check of the residuals finds.
        zero_mean_cp(&[100, 80, 30, 20, 10], 80_000, 3, 0.1, 1),
    ] {
        let dims = data.train.view().dims().to_vec();
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let input = FitInput {
            test: Some(data.test.view()),
            ..FitInput::default()
        };
        for (algorithm, limit) in [(Algorithm::Gibbs, 1.1), (Algorithm::Blocked, 1.2)] {
            let mut o = Options::default();
            o.algorithm = algorithm;
            o.threads = 2;
            let (_, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let ratio = summary.test_rmse / data.floor_rmse;
            println!("{dims:?} {algorithm:?}: {ratio} times the planted RMSE");
            assert!(ratio < limit, "{dims:?} {algorithm:?}: {ratio}");
        }
    }
}

/// Also where columns are initialized again from the residuals.
#[test]
fn spectral_initialization_is_independent_of_thread_count_and_resume() {
    let data = zero_mean_cp(&[100, 80, 30, 20, 10], 80_000, 3, 0.1, 1);
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let dir = Scratch::new("agree-resume");
    let part = |epochs: u64, threads: u64, input: &FitInput<'_>| {
        let mut o = options(Algorithm::Gibbs, Initialization::Auto);
        (o.model, o.rank, o.threads) = (ModelKind::Cp, vec![12], threads);
        (o.burn_in, o.samples) = (8, epochs - 8);
        fit(&problem, &o, input, &mut (), &())
    };
    let (whole, _) = part(10, 1, &FitInput::default()).unwrap();
    let (other, _) = part(10, 3, &FitInput::default()).unwrap();
    assert!(parameter_bits(&whole) == parameter_bits(&other));
    // Interrupted before the sweep that checks the residuals.
    for sweeps in [3, 6] {
        let path = dir.join(&format!("c{sweeps}.s3m"));
        let first = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let mut o = options(Algorithm::Gibbs, Initialization::Auto);
        (o.model, o.rank, o.threads) = (ModelKind::Cp, vec![12], 2);
        (o.burn_in, o.samples) = (8, 2);
        let mut observer = StopAfter(sweeps);
        fit(&problem, &o, &first, &mut observer, &()).unwrap();
        let rest = FitInput {
            resume: Some(path),
            ..FitInput::default()
        };
        let (resumed, _) = part(10, 2, &rest).unwrap();
        assert!(
            parameter_bits(&whole) == parameter_bits(&resumed),
            "{sweeps}"
        );
    }
}

/// The first sweep keeps the initial rows and samples everything else.
#[test]
fn first_sweep_gives_complete_posterior_samples() {
    let mut planted = GenerateOptions::new(&[60, 50, 8], 6000);
    (planted.noise, planted.test_fraction) = (3.0, 0.1);
    planted.matrices = vec![MatrixSpec {
        mode: 2,
        columns: 6,
        entries: MatrixEntries::All,
        ones_fraction: None,
        group_fraction: None,
    }];
    let data = generate_planted("first-sweep", &planted);
    let problem = Problem::builder(data.train.view())
        .matrix(2, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = options(Algorithm::Gibbs, Initialization::Auto);
    (o.model, o.burn_in, o.samples) = (ModelKind::Cp, 0, 3);
    let (fitted, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    assert_eq!(fitted.samples().map(|s| s.len()), Some(3));
    let dir = Scratch::new("first-sweep-model");
    let path = dir.join("m.s3m");
    s3cmtf::model::save(&fitted, &path).unwrap();
    let loaded = s3cmtf::model::load(&path, OpenMode::Private).unwrap();
    assert!(parameter_bits(&fitted) == parameter_bits(&loaded));
}
