//! Fits with default options: standardization, biases, Gibbs initialization, and options resolved from the data.

use crate::common::planted::{
    StopAfter, generate_planted, parameter_bits, predictions, small_data,
};
use crate::common::{Scratch, open_real_file, real_data_folder};
use s3cmtf::format::{CooFile, CooView, OpenMode, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::model::{self, Predict};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{BiasOptions, FitInput, StopReason, fit, fit_biases};

/// Ratings with row biases, two groups of users and items with an interaction, and uniform noise.
struct Ratings {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl Ratings {
    fn new(count: usize, seed: u64) -> Ratings {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % n
        };
        let mut ratings = Ratings {
            columns: vec![Vec::new(); 3],
            values: Vec::new(),
        };
        for _ in 0..count {
            let (user, item, time) = (next(120), next(90), next(6));
            let bias = (user % 7) as f64 * 0.2 - (item % 5) as f64 * 0.3 + time as f64 * 0.05;
            let interaction = if (user ^ item) & 1 == 0 { 0.8 } else { -0.8 };
            let noise = (next(2001) as f64 / 1000.0 - 1.0) * 0.3;
            let indices = [user, item, time];
            let columns = ratings.columns.iter_mut().zip(indices);
            columns.for_each(|(c, i)| c.push(i as u32));
            ratings.values.push(3.0 + bias + interaction + noise);
        }
        ratings
    }

    fn view<'a>(&'a self, values: &'a [f64]) -> CooView<'a> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        CooView::new("ratings", &[120, 90, 6], &columns, Values::F64(values)).unwrap()
    }
}

fn defaults() -> Options {
    let mut o = Options::default();
    o.threads = 2;
    o.eval_every = o.epochs;
    o
}

#[test]
fn automatic_options_are_resolved_and_stored_in_the_model() {
    let data = Ratings::new(6000, 1);
    let problem = Problem::builder(data.view(&data.values))
        .build(&())
        .unwrap();
    let (model, _) = fit(&problem, &defaults(), &FitInput::default(), &mut (), &()).unwrap();
    let o = model.options();
    assert!(o.eta.is_some() && o.lambda_reg.is_some() && o.core_step == Some(0.0));
    assert_eq!((o.model, o.rank.len()), (ModelKind::Cp, 1));
    assert_eq!(o.start, Initialization::Gibbs);
    let mut tucker = defaults();
    tucker.rank = vec![4];
    let (model, _) = fit(&problem, &tucker, &FitInput::default(), &mut (), &()).unwrap();
    assert_eq!(model.options().model, ModelKind::Tucker);
    assert_eq!(model.shape().ranks(), [4, 4, 4]);
}

#[test]
fn all_models_find_structure_beyond_biases() {
    let (data, test) = (Ratings::new(6000, 2), Ratings::new(2000, 3));
    let problem = Problem::builder(data.view(&data.values))
        .build(&())
        .unwrap();
    let input = FitInput {
        test: Some(test.view(&test.values)),
        ..FitInput::default()
    };
    // The standard deviation of noise that is uniform in [-0.3, 0.3].
    let floor = 0.3 / 3f64.sqrt();
    for rank in [vec![], vec![5]] {
        for algorithm in [Algorithm::Blocked, Algorithm::Opt] {
            let mut o = defaults();
            (o.rank, o.algorithm) = (rank.clone(), algorithm);
            let (_, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let error = summary.test_rmse;
            // Biases alone have a test RMSE of 0.82.
            assert!(error < 1.5 * floor, "{rank:?} {algorithm:?}: {error}");
        }
    }
}

/// The factors and cores of the last three cases have mean 0, so that means of slices show no structure.
#[test]
fn default_options_recover_planted_models() {
    let cases: [(&str, &[u64], ModelKind, f64, f64); 5] = [
        ("c3", &[80, 60, 10], ModelKind::Cp, 0.3, 1.0),
        ("c4", &[40, 30, 12, 8], ModelKind::Cp, 0.3, 1.0),
        ("o2", &[150, 120], ModelKind::Tucker, 0.1, 0.0),
        ("t3", &[60, 50, 10], ModelKind::Tucker, 0.1, 0.0),
        ("c3 around 0", &[80, 60, 10], ModelKind::Cp, 0.5, 0.0),
    ];
    for (name, dims, model, noise, factor_mean) in cases {
        let mut planted = GenerateOptions::new(dims, 8000);
        (planted.model, planted.ranks, planted.test_fraction) = (model, vec![3], 0.1);
        (planted.noise, planted.factor_mean) = (noise, factor_mean);
        let data = generate_planted(name, &planted);
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let input = FitInput {
            test: Some(data.test.view()),
            ..FitInput::default()
        };
        for (algorithm, rank) in [
            (Algorithm::Blocked, vec![]),
            (Algorithm::Als, vec![]),
            (Algorithm::Blocked, vec![4]),
        ] {
            let mut o = defaults();
            (o.algorithm, o.rank) = (algorithm, rank);
            let (_, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let ratio = summary.test_rmse / data.floor_rmse;
            println!(
                "{name} {algorithm:?} {:?}: {ratio:.3} times the planted RMSE",
                o.rank
            );
            assert!(ratio < 1.4, "{name} {algorithm:?} {:?}: {ratio}", o.rank);
        }
    }
}

/// The learning rate of the core allows for its curvature, which grows with the order.
#[test]
fn full_cores_of_higher_order_are_recovered_without_divergence() {
    let shapes: [&[u64]; 3] = [&[80, 60, 12, 8], &[50, 40, 12, 8, 6], &[40, 30, 8, 6, 5, 4]];
    for dims in shapes {
        let mut planted = GenerateOptions::new(dims, 30_000);
        (planted.ranks, planted.noise, planted.test_fraction) = (vec![2], 0.3, 0.1);
        let data = generate_planted("full core", &planted);
        let problem = Problem::builder(data.train.view()).build(&()).unwrap();
        let input = FitInput {
            test: Some(data.test.view()),
            ..FitInput::default()
        };
        for algorithm in [Algorithm::Blocked, Algorithm::Opt] {
            let mut o = defaults();
            (o.algorithm, o.rank) = (algorithm, vec![3]);
            let (model, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let events = model.record().events.iter();
            let rollbacks = events.filter(|e| e.kind == "rolled-back").count();
            let ratio = summary.test_rmse / data.floor_rmse;
            let step = model.options().core_step.unwrap();
            println!(
                "{dims:?} {algorithm:?}: core_step {step:e}, {ratio:.3} times the planted RMSE, {rollbacks} rollbacks"
            );
            assert!(ratio < 1.1, "{dims:?} {algorithm:?}: {ratio}");
            assert!(rollbacks <= 1, "{dims:?} {algorithm:?}: {rollbacks}");
            assert!(step > 0.0 && step < 0.02, "{dims:?} {algorithm:?}: {step}");
        }
    }
}

#[test]
fn nonnegative_fit_does_not_use_gibbs_initialization() {
    let data = Ratings::new(300, 9);
    let problem = Problem::builder(data.view(&data.values))
        .build(&())
        .unwrap();
    let mut o = defaults();
    (o.start, o.nonneg) = (Initialization::Gibbs, true);
    let rejected = fit(&problem, &o, &FitInput::default(), &mut (), &());
    let text = rejected.err().expect("must be rejected").to_string();
    assert!(text.contains("drawn") && text.contains("nonneg"), "{text}");
    // The starts that the message suggests work.
    for algorithm in [Algorithm::Blocked, Algorithm::Als] {
        for start in [
            Initialization::Identity,
            Initialization::Paper,
            Initialization::Normal,
        ] {
            (o.algorithm, o.start) = (algorithm, start);
            let (_, found) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
            assert!(found.train_rmse.is_finite(), "{algorithm:?} {start:?}");
        }
    }
}

#[test]
fn fit_is_invariant_to_scale_and_offset_of_values() {
    let (data, test) = (Ratings::new(6000, 4), Ratings::new(2000, 5));
    let error = |algorithm: Algorithm, scale: f64, offset: f64| {
        let scaled = |values: &[f64]| {
            values
                .iter()
                .map(|v| v * scale + offset)
                .collect::<Vec<f64>>()
        };
        let (train_values, test_values) = (scaled(&data.values), scaled(&test.values));
        let problem = Problem::builder(data.view(&train_values))
            .build(&())
            .unwrap();
        let input = FitInput {
            test: Some(test.view(&test_values)),
            ..FitInput::default()
        };
        let mut o = defaults();
        o.algorithm = algorithm;
        let (_, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        summary.test_rmse / scale
    };
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let plain = error(algorithm, 1.0, 0.0);
        // These scales round differently, and digits are lost beside a large offset in single precision.
        for (scale, offset) in [
            (100.0, 0.0),
            (1e-6, 0.0),
            (1.0, 1e6),
            (3e7, -5e9),
            (1e-6, 1000.0),
        ] {
            let other = error(algorithm, scale, offset);
            assert!(
                (other / plain - 1.0).abs() < 0.02,
                "{algorithm:?} {scale} {offset}: {other} {plain}"
            );
        }
        // Scaling by a power of two is exact.
        assert_eq!(error(algorithm, 1024.0, 0.0), plain);
    }
}

/// A Tucker tensor with mean 0 and too few entries per row to find its factors. Posterior samples of them are noise, and
/// the fit must not be worse than biases alone.
#[test]
fn fit_is_no_worse_than_biases_if_factors_are_not_identified() {
    let mut planted = GenerateOptions::new(&[1000, 800, 600], 40_000);
    (
        planted.model,
        planted.ranks,
        planted.test_fraction,
        planted.noise,
    ) = (ModelKind::Tucker, vec![4], 0.2, 0.3);
    let data = generate_planted("nothing", &planted);
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    let (_, summary) = fit(&problem, &defaults(), &input, &mut (), &()).unwrap();
    let (biases, _) = fit_biases(&problem, &BiasOptions::default(), &()).unwrap();
    let biases = evaluate(&biases, &data.test.view(), problem.range(), 2, &()).unwrap();
    let (fitted, alone) = (summary.test_rmse, biases.clipped.rmse);
    assert!(fitted < 1.01 * alone, "{fitted}, biases alone {alone}");
}

#[test]
fn prediction_is_the_sum_of_mean_biases_and_core_product() {
    let data = Ratings::new(6000, 6);
    let problem = Problem::builder(data.view(&data.values))
        .build(&())
        .unwrap();
    let (model, _) = fit(&problem, &defaults(), &FitInput::default(), &mut (), &()).unwrap();
    let dir = Scratch::new("baseline");
    let path = dir.join("m.s3m");
    model::save(&model, &path).unwrap();
    let loaded = model::load(&path, OpenMode::Mapped).unwrap();
    assert_eq!(
        (loaded.mean(), parameter_bits(&loaded)),
        (model.mean(), parameter_bits(&model))
    );
    let (mut one, mut two) = (model.predictor().unwrap(), loaded.predictor().unwrap());
    for index in [[0, 0, 0], [119, 89, 5], [7, 500, 2]] {
        let rows = (0..3).map(|n| model.row_of(n, index[n]) as usize);
        let rows: Vec<usize> = rows.collect();
        let mut expected = model.mean();
        for (mode, &row) in model.modes().iter().zip(&rows) {
            assert_eq!(mode.biases.len(), mode.rows.len() + 1);
            expected += f64::from(mode.biases[row]);
        }
        for j in 0..model.shape().ranks()[0] {
            let each = model.modes().iter().zip(&rows);
            let product: f64 = each.map(|(m, &r)| f64::from(m.factor.row(r)[j])).product();
            expected += f64::from(model.core()[j]) * product;
        }
        assert!((one(&index) - expected).abs() < 1e-4, "{index:?}");
        assert_eq!(one(&index), two(&index));
    }
    // An unknown row has the entry-weighted mean bias.
    let mode = &model.modes()[1];
    let (biases, unknown) = mode.biases.split_at(mode.rows.len());
    let each = biases.iter().zip(mode.counts.iter());
    let sum: f64 = each.map(|(b, &n)| f64::from(*b) * n as f64).sum();
    let mean = sum / mode.counts.iter().sum::<u64>() as f64;
    assert!((f64::from(unknown[0]) - mean).abs() < 1e-5, "{mean}");
}

#[test]
fn default_fit_is_independent_of_thread_count_and_resume() {
    let data = small_data();
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = defaults();
    o.epochs = 6;
    o.eval_every = 2;
    let (expected, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    for threads in [1, 3, 7] {
        o.threads = threads;
        let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
        assert_eq!(
            parameter_bits(&model),
            parameter_bits(&expected),
            "{threads} threads"
        );
    }
    let dir = Scratch::new("pause");
    for algorithm in [Algorithm::Blocked, Algorithm::Opt] {
        (o.algorithm, o.threads) = (algorithm, 1);
        let (expected, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
        let path = dir.join("c.s3m");
        let part = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let (_, summary) = fit(&problem, &o, &part, &mut StopAfter(3), &()).unwrap();
        assert_eq!((summary.reason, summary.epochs), (StopReason::Cancelled, 3));
        let rest = FitInput {
            resume: Some(path),
            ..FitInput::default()
        };
        let (model, _) = fit(&problem, &o, &rest, &mut (), &()).unwrap();
        assert_eq!(
            parameter_bits(&model),
            parameter_bits(&expected),
            "{algorithm:?}"
        );
        let all = |m: &model::Model| {
            let biases = m.modes().iter().map(|m| m.biases.clone());
            biases.collect::<Vec<_>>()
        };
        assert_eq!(all(&model), all(&expected));
    }
}

#[test]
fn degenerate_data_gives_finite_models() {
    let fit_values = |columns: [&[u32]; 3], values: &[f64]| {
        let view = || CooView::new("t", &[50, 50, 50], &columns, Values::F64(values)).unwrap();
        let problem = Problem::builder(view()).build(&()).unwrap();
        let (model, summary) =
            fit(&problem, &defaults(), &FitInput::default(), &mut (), &()).unwrap();
        (predictions(&model, &view()), summary.train_rmse)
    };
    // Constant values.
    let many: Vec<u32> = (0..1000).map(|i| i % 50).collect();
    let other: Vec<u32> = (0..1000).map(|i| i / 20 % 50).collect();
    let (x, error) = fit_values([&many, &other, &many], &[7.5; 1000]);
    assert!(error < 1e-6 && x.iter().all(|x| (x - 7.5).abs() < 1e-6));
    // A single entry, then one entry per row.
    let (x, _) = fit_values([&[3], &[4], &[5]], &[2.0]);
    assert!((x[0] - 2.0).abs() < 1e-6, "{x:?}");
    let each: Vec<u32> = (0..50).collect();
    let values: Vec<f64> = (0..50).map(f64::from).collect();
    let (x, _) = fit_values([&each, &each, &each], &values);
    assert!(x.iter().all(|x| (-10.0..60.0).contains(x)), "{x:?}");
}

#[test]
fn constant_matrix_does_not_increase_the_test_error() {
    let (data, test) = (Ratings::new(6000, 7), Ratings::new(2000, 8));
    let rows: Vec<u32> = (0..400).map(|i| i % 120).collect();
    let columns: Vec<u32> = (0..400).map(|i| i / 40).collect();
    let ones = vec![1.0; 400];
    let columns: [&[u32]; 2] = [&rows, &columns];
    let matrix = || CooView::new("ones", &[120, 10], &columns, Values::F64(&ones)).unwrap();
    let input = FitInput {
        test: Some(test.view(&test.values)),
        ..FitInput::default()
    };
    let error = |coupled: bool| {
        let mut builder = Problem::builder(data.view(&data.values));
        if coupled {
            builder = builder.matrix(0, matrix(), 1.0, MatrixKind::Observed);
        }
        let problem = builder.build(&()).unwrap();
        let (_, summary) = fit(&problem, &defaults(), &input, &mut (), &()).unwrap();
        summary.test_rmse
    };
    let (with, without) = (error(true), error(false));
    assert!(with < 1.05 * without, "{with} {without}");
}

/// Returns the mean test RMSE over three seeds.
fn mean_test_rmse(name: &str, matrices: &[(&str, usize)]) -> Option<f64> {
    let folder = real_data_folder(name)?;
    let (train, test) = (
        open_real_file(&folder, "tensor.train.tns"),
        open_real_file(&folder, "tensor.test.tns"),
    );
    let files = matrices
        .iter()
        .map(|(m, _)| open_real_file(&folder, &format!("{m}.tns")));
    let files: Vec<CooFile> = files.collect();
    let mut builder = Problem::builder(train.view());
    for ((_, mode), file) in matrices.iter().zip(&files) {
        builder = builder.matrix(*mode, file.view(), 1.0, MatrixKind::Observed);
    }
    let problem = builder.build(&()).unwrap();
    let input = FitInput {
        test: Some(test.view()),
        ..FitInput::default()
    };
    let errors = (0..3).map(|seed| {
        let mut o = defaults();
        o.seed = seed;
        let error = fit(&problem, &o, &input, &mut (), &()).unwrap().1.test_rmse;
        println!("{name} seed {seed}: {error:.4}");
        error
    });
    let mean = errors.sum::<f64>() / 3.0;
    println!("{name}: {mean:.4}");
    Some(mean)
}

/// The limits are the errors of the best other programs, tuned on the test entries.
#[test]
fn default_options_reach_known_errors_on_real_ratings() {
    let genres = ("movie_genre", 1);
    type Matrices<'a> = &'a [(&'a str, usize)];
    let cases: [(&str, Matrices<'_>, f64); 4] = [
        ("ml100k", &[genres, ("user_attr", 0)], 0.9156),
        ("ml1m_half", &[genres, ("user_attr", 0)], 0.8600),
        ("ml10m_1000users", &[genres], 0.8563),
        (
            "yelp_toy",
            &[
                ("user_user", 0),
                ("business_city", 1),
                ("business_category", 1),
            ],
            1.060,
        ),
    ];
    for (name, matrices, limit) in cases {
        if let Some(error) = mean_test_rmse(name, matrices) {
            assert!(error <= limit, "{name}: {error} is above {limit}");
        }
    }
}
