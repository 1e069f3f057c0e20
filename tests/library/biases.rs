//! Automatic penalties of biases: strong biases are found, absent ones are shrunk.

use crate::common::planted::generate_planted;
use s3cmtf::format::{CooView, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{BiasOptions, FitInput, FitSummary, fit, fit_biases};

/// Entries at random positions whose values are sums of row biases and noise.
struct BiasedEntries {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    dims: Vec<u64>,
}

impl BiasedEntries {
    /// Biases of mode `n` have standard deviation `deviations[n]`.
    fn new(dims: &[u64], count: usize, deviations: &[f64], noise: f64, seed: u64) -> BiasedEntries {
        let mut state = seed;
        let mut unit = || crate::common::next_unit(&mut state);
        // Sum of three uniform values, scaled to mean 0 and standard deviation 1: nearly normal.
        let nearly_normal = |three: [f64; 3]| 2.0 * (three.iter().sum::<f64>() - 1.5);
        let bias = |n: usize, row: u64| {
            let parts = [1.0, 2.0, 3.0].map(|k| {
                let x = ((row * 16 + n as u64) as f64 * 12.9898 * k).sin() * 43758.5453;
                x - x.floor()
            });
            deviations[n] * nearly_normal(parts)
        };
        let (mut columns, mut values) = (vec![Vec::new(); dims.len()], Vec::new());
        for _ in 0..count {
            let mut value = 70.0;
            for (n, column) in columns.iter_mut().enumerate() {
                let row = (unit() * dims[n] as f64) as u64;
                column.push(row as u32);
                value += bias(n, row);
            }
            values.push(value + noise * nearly_normal([unit(), unit(), unit()]));
        }
        BiasedEntries {
            columns,
            values,
            dims: dims.to_vec(),
        }
    }

    fn view(&self) -> CooView<'_> {
        let slices: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        CooView::new("sums", &self.dims, &slices, Values::F64(&self.values)).unwrap()
    }
}

/// Fits with default options, changed by `set`. Returns the resolved options.
fn fit_default(
    train: &BiasedEntries,
    test: &BiasedEntries,
    set: impl Fn(&mut Options),
) -> (Options, FitSummary) {
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let input = FitInput {
        test: Some(test.view()),
        ..FitInput::default()
    };
    let mut o = Options::default();
    o.threads = 1;
    set(&mut o);
    let (model, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
    (model.options().clone(), summary)
}

#[test]
fn default_fit_finds_strong_biases_and_shrinks_absent_ones() {
    // Rows have about six entries. A penalty of five entries would give a test RMSE of 0.9 instead of 0.3.
    let dims = [3000, 2000];
    let data = |seed| BiasedEntries::new(&dims, 18_000, &[1.0, 1.0], 0.2, seed);
    let (options, found) = fit_default(&data(1), &data(2), |_| ());
    assert!(found.test_rmse < 0.4, "{}", found.test_rmse);
    assert!(options.lambda_bias.iter().all(|&x| x < 0.2), "{options:?}");
    // No biases: a penalty of five entries would give a test RMSE of 1.02 or more.
    let dims = [3000, 2000, 50];
    let data = |seed| BiasedEntries::new(&dims, 18_000, &[0.0; 3], 1.0, seed);
    let (options, found) = fit_default(&data(1), &data(2), |_| ());
    assert!(found.test_rmse < 1.005, "{}", found.test_rmse);
    assert!(options.lambda_bias[..2].iter().all(|&x| x > 50.0));
    // Moderate biases; the result is independent of the thread count.
    let dims = [600, 400, 20];
    let data = |seed| BiasedEntries::new(&dims, 20_000, &[0.5, 0.5, 0.1], 1.0, seed);
    let (first, one) = fit_default(&data(1), &data(2), |_| ());
    let near = |x: f64, y: f64| (x / y).ln().abs() < 0.25;
    assert!(
        near(first.lambda_bias[0], 4.0) && near(first.lambda_bias[1], 4.0),
        "{first:?}"
    );
    let (third, three) = fit_default(&data(1), &data(2), |o| o.threads = 3);
    assert_eq!(first.lambda_bias, third.lambda_bias);
    assert_eq!(one.test_rmse.to_bits(), three.test_rmse.to_bits());
}

#[test]
fn lambda_bias_takes_one_value_or_one_per_mode() {
    let data = |seed| BiasedEntries::new(&[60, 50, 8], 3000, &[1.0, 0.5, 0.5], 0.5, seed);
    let (train, test) = (data(1), data(2));
    let with = |text: &str| {
        let (o, summary) = fit_default(&train, &test, |o| {
            o.algorithm = Algorithm::Als;
            (o.model, o.rank, o.epochs) = (ModelKind::Cp, vec![2], 3);
            o.set("lambda_bias", text).unwrap();
        });
        (o.get("lambda_bias").unwrap(), summary.test_rmse.to_bits())
    };
    let (kept, one) = with("5");
    assert_eq!(kept, "5");
    assert_eq!(with("5,5,5"), ("5,5,5".into(), one));
    assert_ne!(with("5,5,50").1, one);
    let (found, error) = with("auto");
    assert_eq!(found.split(',').count(), 3);
    assert_eq!(with(&found), (found.clone(), error));
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let mut o = Options::default();
    o.set("lambda_bias", "1,2").unwrap();
    let error = fit(&problem, &o, &FitInput::default(), &mut (), &());
    let error = error.err().expect("must be rejected").to_string();
    assert!(error.contains("lambda_bias has 2 numbers"), "{error}");
    let bias_options = BiasOptions {
        damping: vec![1.0; 4],
        ..BiasOptions::default()
    };
    let error = fit_biases(&problem, &bias_options, &());
    let error = error.err().expect("must be rejected");
    assert!(error.to_string().contains("has 4 numbers"), "{error}");
}

#[test]
fn degenerate_data_has_finite_bias_penalties() {
    let cases: [(Vec<Vec<u32>>, Vec<f64>); 3] = [
        (
            vec![(0..40).collect(), (0..40).collect()],
            (0..40).map(f64::from).collect(),
        ),
        (
            vec![(0..40).map(|i| i % 7).collect(), (0..40).collect()],
            vec![3.0; 40],
        ),
        (
            vec![vec![0; 40], (0..40).map(|i| i % 5).collect()],
            (0..40).map(|i| f64::from(i % 5)).collect(),
        ),
    ];
    for (columns, values) in cases {
        let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new("odd", &[40, 40], &slices, Values::F64(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let (model, summary) = fit(
            &problem,
            &Options::default(),
            &FitInput::default(),
            &mut (),
            &(),
        )
        .unwrap();
        assert!(summary.train_rmse.is_finite());
        let found = &model.options().lambda_bias;
        assert!(found.iter().all(|x| x.is_finite() && *x > 0.0), "{found:?}");
    }
}

#[test]
fn fit_succeeds_when_gibbs_initialization_finds_no_structure() {
    let mut g = GenerateOptions::new(&[300, 200, 40, 20], 80_000);
    (g.ranks, g.noise, g.test_fraction, g.seed) = (vec![4], 0.5, 0.1, 1);
    g.model = ModelKind::Cp;
    let data = generate_planted("biases-noise", &g);
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    let mut o = Options::default();
    o.threads = 2;
    let (_, found) = fit(&problem, &o, &input, &mut (), &()).unwrap();
    // Not much more than the error of the mean.
    assert!(found.test_rmse < 1.2, "{}", found.test_rmse);
}
