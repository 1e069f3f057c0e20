//! Biases of data of any kind: as much as rows differ, and no more.

use crate::common::planted::generate_planted;
use s3cmtf::format::{CooView, Values};
use s3cmtf::generate::GenerateOptions;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{BiasOptions, FitInput, FitSummary, fit, fit_biases};

/// Sums of a number for each row and noise, in random cells.
struct Sums {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    dims: Vec<u64>,
}

impl Sums {
    /// The numbers of rows of each mode have these `deviations`.
    fn new(dims: &[u64], count: usize, deviations: &[f64], noise: f64, seed: u64) -> Sums {
        let mut state = seed;
        let mut unit = || crate::common::next_unit(&mut state);
        // Normal enough, of deviation 1.
        let bell = |three: [f64; 3]| 2.0 * (three.iter().sum::<f64>() - 1.5);
        let of_row = |n: usize, row: u64| {
            let parts = [1.0, 2.0, 3.0].map(|k| {
                let x = ((row * 16 + n as u64) as f64 * 12.9898 * k).sin() * 43758.5453;
                x - x.floor()
            });
            deviations[n] * bell(parts)
        };
        let (mut columns, mut values) = (vec![Vec::new(); dims.len()], Vec::new());
        for _ in 0..count {
            let mut value = 70.0;
            for (n, column) in columns.iter_mut().enumerate() {
                let row = (unit() * dims[n] as f64) as u64;
                column.push(row as u32);
                value += of_row(n, row);
            }
            values.push(value + noise * bell([unit(), unit(), unit()]));
        }
        Sums {
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

fn plain(train: &Sums, test: &Sums, set: impl Fn(&mut Options)) -> (Options, FitSummary) {
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
    // About six entries per row. With five more of bias 0 in each it is 0.9 instead of 0.3.
    let dims = [3000, 2000];
    let data = |seed| Sums::new(&dims, 18_000, &[1.0, 1.0], 0.2, seed);
    let (options, found) = plain(&data(1), &data(2), |_| ());
    assert!(found.test_rmse < 0.4, "{}", found.test_rmse);
    assert!(options.lambda_bias.iter().all(|&x| x < 0.2), "{options:?}");
    // With five more it is 1.02 or more.
    let dims = [3000, 2000, 50];
    let data = |seed| Sums::new(&dims, 18_000, &[0.0; 3], 1.0, seed);
    let (options, found) = plain(&data(1), &data(2), |_| ());
    assert!(found.test_rmse < 1.005, "{}", found.test_rmse);
    assert!(options.lambda_bias[..2].iter().all(|&x| x > 50.0));
    // Something between, the same for any number of threads.
    let dims = [600, 400, 20];
    let data = |seed| Sums::new(&dims, 20_000, &[0.5, 0.5, 0.1], 1.0, seed);
    let (first, one) = plain(&data(1), &data(2), |_| ());
    let near = |x: f64, y: f64| (x / y).ln().abs() < 0.25;
    assert!(
        near(first.lambda_bias[0], 4.0) && near(first.lambda_bias[1], 4.0),
        "{first:?}"
    );
    let (third, three) = plain(&data(1), &data(2), |o| o.threads = 3);
    assert_eq!(first.lambda_bias, third.lambda_bias);
    assert_eq!(one.test_rmse.to_bits(), three.test_rmse.to_bits());
}

#[test]
fn lambda_bias_takes_one_value_or_one_per_mode() {
    let data = |seed| Sums::new(&[60, 50, 8], 3000, &[1.0, 0.5, 0.5], 0.5, seed);
    let (train, test) = (data(1), data(2));
    let with = |text: &str| {
        let (o, summary) = plain(&train, &test, |o| {
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
    let told = fit(&problem, &o, &FitInput::default(), &mut (), &());
    let told = told.err().expect("refused").to_string();
    assert!(told.contains("lambda_bias has 2 numbers"), "{told}");
    let how = BiasOptions {
        damping: vec![1.0; 4],
        ..BiasOptions::default()
    };
    let told = fit_biases(&problem, &how, &()).err().expect("refused");
    assert!(told.to_string().contains("has 4 numbers"), "{told}");
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
fn fit_succeeds_when_gibbs_initialisation_finds_no_structure() {
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
    // About what the mean of all values has.
    assert!(found.test_rmse < 1.2, "{}", found.test_rmse);
}
