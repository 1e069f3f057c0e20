//! Where `gibbs` starts: from what entries agree along, after some epochs of SGD, or with the rows and biases of another model.

use crate::common::Scratch;
use crate::common::planted::{
    PlantedData, StopAfter, generate_planted, parameter_bits, predictions, small_data,
};
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

#[test]
fn sgd_start_differs_from_identity_and_is_independent_of_thread_count() {
    let data = small_data();
    let matrix = data.matrices[0].view();
    let problem = Problem::builder(data.train.view())
        .matrix(0, matrix, 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    for kind in [ModelKind::Cp, ModelKind::Tucker] {
        let with = |start: Initialization, set: &dyn Fn(&mut Options)| {
            let mut o = options(Algorithm::Gibbs, start);
            o.model = kind;
            set(&mut o);
            fit(&problem, &o, &input, &mut (), &()).unwrap()
        };
        let (stepped, summary) = with(Initialization::Sgd, &|_| ());
        let bits = parameter_bits(&stepped);
        for threads in [2, 3] {
            assert!(bits == parameter_bits(&with(Initialization::Sgd, &|o| o.threads = threads).0));
        }
        // What plays no part in `gibbs` plays none in its start.
        let same = with(Initialization::Sgd, &|o| {
            (o.mean, o.mode_steps, o.epochs) = (false, vec![0.0], 77);
        });
        assert!(bits == parameter_bits(&same.0), "{kind:?}");
        let (anew, _) = with(Initialization::Identity, &|_| ());
        assert!(bits != parameter_bits(&anew), "{kind:?}");
        assert!(summary.test_rmse.is_finite());
        assert_eq!(stepped.options().start, Initialization::Sgd);
    }
}

#[test]
fn sgd_start_is_rejected_for_sgd_and_works_on_constant_values() {
    let data = small_data();
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let others = [
        Algorithm::Blocked,
        Algorithm::Opt,
        Algorithm::Naive,
        Algorithm::Als,
    ];
    for algorithm in others {
        let o = options(algorithm, Initialization::Sgd);
        let told = fit(&problem, &o, &FitInput::default(), &mut (), &());
        let told = told.err().expect("refused").to_string();
        assert!(told.contains("start = sgd: that is for gibbs"));
    }
    let columns: Vec<Vec<u32>> = vec![(0..30).collect(), (0..30).map(|i| i % 7).collect()];
    let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let same = [2.5; 30];
    let view = CooView::new("same", &[30, 7], &slices, Values::F64(&same)).unwrap();
    let problem = Problem::builder(view.clone()).build(&()).unwrap();
    let o = options(Algorithm::Gibbs, Initialization::Sgd);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let found = predictions(&model, &view);
    assert!(found.iter().all(|x| (x - 2.5).abs() < 0.1), "{found:?}");
}

/// Rows with few entries and hardly anything but biases, like most of what people rate.
struct Biased {
    columns: [Vec<u32>; 2],
    values: Vec<f64>,
}

impl Biased {
    const ROWS: u64 = 1500;

    fn new(seed: u64, scale: f64) -> Biased {
        let mut state = seed;
        let mut draw = || crate::common::next_unit(&mut state);
        // Of a row, the same whatever the seed.
        let bias = |row: u64, n: u64| ((row * 2 + n) as f64 * 12.9898).sin() * 0.8;
        let (mut columns, mut values) = ([Vec::new(), Vec::new()], Vec::new());
        for _ in 0..4 * Self::ROWS {
            let rows = [0, 1].map(|_| (draw() * Self::ROWS as f64) as u64);
            let noise = draw() + draw() + draw() - 1.5;
            values.push(scale * (3.5 + bias(rows[0], 0) + bias(rows[1], 1) + noise));
            let each = columns.iter_mut().zip(rows);
            each.for_each(|(column, row)| column.push(row as u32));
        }
        Biased { columns, values }
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
        starts_with_biases(scale);
    }
}

fn starts_with_biases(scale: f64) {
    let (train, test) = (Biased::new(1, scale), Biased::new(2, scale));
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let error = |o: &Options, init| {
        let input = FitInput {
            test: Some(test.view()),
            init,
            ..FitInput::default()
        };
        fit(&problem, o, &input, &mut (), &()).unwrap()
    };
    let (sgd, known) = error(&options(Algorithm::Blocked, Initialization::Identity), None);
    let mut o = options(Algorithm::Gibbs, Initialization::Identity);
    o.model = sgd.options().model;
    (o.burn_in, o.samples) = (4, 8);
    let (_, from) = error(&o, Some(&sgd));
    // 0.96 instead of 0.74 with biases left behind: what is learnt about rows from zeros keeps them there.
    assert!(
        from.test_rmse < 1.05 * known.test_rmse,
        "{} {}",
        from.test_rmse,
        known.test_rmse
    );
}

/// Columns around 0 in every mode: no slice of the tensor has a mean that would show them.
fn hidden(dims: &[u64], entries: u64, rank: usize, (noise, seed): (f64, u64)) -> PlantedData {
    let mut plan = GenerateOptions::new(dims, entries);
    plan.model = ModelKind::Cp;
    (plan.ranks, plan.noise, plan.test_fraction) = (vec![rank], noise, 0.1);
    plan.seed = seed;
    generate_planted(&format!("hidden-{}", dims.len()), &plan)
}

#[test]
fn gibbs_finds_structure_without_slice_means() {
    for data in [
        hidden(&[1000, 500, 100], 100_000, 5, (0.5, 0)),
        hidden(&[300, 200, 40, 20], 80_000, 4, (0.5, 0)),
        // A column that the start misses, and the look at what is left over finds.
        hidden(&[100, 80, 30, 20, 10], 80_000, 3, (0.1, 1)),
    ] {
        let dims = data.train.view().dims().to_vec();
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let input = FitInput {
            test: Some(data.test.view()),
            ..FitInput::default()
        };
        for (algorithm, most) in [(Algorithm::Gibbs, 1.1), (Algorithm::Blocked, 1.2)] {
            let mut o = Options::default();
            o.algorithm = algorithm;
            o.threads = 2;
            let (_, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let error = summary.test_rmse / data.floor_rmse;
            println!("{dims:?} {algorithm:?}: {error} times the noise");
            assert!(error < most, "{dims:?} {algorithm:?}: {error}");
        }
    }
}

/// Neither threads nor a break change anything, also where columns start anew.
#[test]
fn spectral_initialisation_is_independent_of_thread_count_and_resume() {
    let data = hidden(&[100, 80, 30, 20, 10], 80_000, 3, (0.1, 1));
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
    // Ends before the sweep that looks.
    for sweeps in [3, 6] {
        let path = dir.join(&format!("c{sweeps}.s3m"));
        let first = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let mut o = options(Algorithm::Gibbs, Initialization::Auto);
        (o.model, o.rank, o.threads) = (ModelKind::Cp, vec![12], 2);
        (o.burn_in, o.samples) = (8, 2);
        let mut until = StopAfter(sweeps);
        fit(&problem, &o, &first, &mut until, &()).unwrap();
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

/// The first sweep leaves rows where they start, and finds all that belongs to them.
#[test]
fn first_sweep_gives_complete_posterior_samples() {
    let mut plan = GenerateOptions::new(&[60, 50, 8], 6000);
    (plan.noise, plan.test_fraction) = (3.0, 0.1);
    plan.matrices = vec![MatrixSpec {
        mode: 2,
        columns: 6,
        entries: MatrixEntries::All,
        ones_fraction: None,
        group_fraction: None,
    }];
    let data = generate_planted("first-sweep", &plan);
    let problem = Problem::builder(data.train.view())
        .matrix(2, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = options(Algorithm::Gibbs, Initialization::Auto);
    (o.model, o.burn_in, o.samples) = (ModelKind::Cp, 0, 3);
    let (fitted, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let kept = fitted.samples().map(|s| s.len());
    assert_eq!(kept, Some(3));
    let dir = Scratch::new("first-sweep-model");
    let path = dir.join("m.s3m");
    s3cmtf::model::save(&fitted, &path).unwrap();
    let loaded = s3cmtf::model::load(&path, OpenMode::Private).unwrap();
    assert!(parameter_bits(&fitted) == parameter_bits(&loaded));
}
