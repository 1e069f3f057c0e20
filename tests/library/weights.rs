//! Entry weights: every algorithm multiplies squared errors by the weights of entries.

use crate::common::Scratch;
use crate::common::planted::{parameter_bits, predictions};
use s3cmtf::ValueRange;
use s3cmtf::format::{CooView, Values};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, PenaltyScaling};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, FitSummary, fit};

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn unit(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    /// Returns a nearly normal value.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[derive(Clone)]
struct Entries {
    dims: Vec<u64>,
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    weights: Option<Vec<f64>>,
}

impl Entries {
    /// Returns entries at random positions of a rank-2 model with noise, without weights.
    fn new(dims: &[u64], count: usize) -> Entries {
        let mut c = Random(7);
        let columns: Vec<Vec<u32>> = dims
            .iter()
            .map(|&d| (0..count).map(|_| c.below(d) as u32).collect())
            .collect();
        let factor = |n: usize, i: u32, j: usize| {
            let x = (f64::from(i) * (1.3 + n as f64) + j as f64 * 2.1 + n as f64).sin();
            if n < 2 { x } else { 1.0 + 0.3 * x }
        };
        let value = |e: usize| -> f64 {
            (0..2)
                .map(|j| {
                    let rows = (0..dims.len()).map(|n| factor(n, columns[n][e], j));
                    rows.product::<f64>()
                })
                .sum()
        };
        Entries {
            values: (0..count)
                .map(|e| 3.0 + value(e) + 0.2 * c.normal())
                .collect(),
            dims: dims.to_vec(),
            columns,
            weights: None,
        }
    }

    fn weighted(&self, weight: impl Fn(usize) -> f64) -> Entries {
        let weights = (0..self.values.len()).map(weight).collect();
        Entries {
            weights: Some(weights),
            ..self.clone()
        }
    }

    /// Returns every entry `times(e)` times, without weights.
    fn repeated(&self, times: impl Fn(usize) -> usize) -> Entries {
        let repeated: Vec<usize> = (0..self.values.len())
            .flat_map(|e| std::iter::repeat_n(e, times(e)))
            .collect();
        Entries {
            dims: self.dims.clone(),
            columns: self
                .columns
                .iter()
                .map(|c| repeated.iter().map(|&e| c[e]).collect())
                .collect(),
            values: repeated.iter().map(|&e| self.values[e]).collect(),
            weights: None,
        }
    }

    fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let view = CooView::new("x", &self.dims, &columns, Values::F64(&self.values)).unwrap();
        match &self.weights {
            Some(weights) => view.with_weights(Values::F64(weights)).unwrap(),
            None => view,
        }
    }

    fn weight(&self, e: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[e])
    }

    fn fit(&self, o: &Options) -> (Model, FitSummary) {
        self.with_matrix(None, o)
    }

    fn with_matrix(&self, matrix: Option<&Entries>, o: &Options) -> (Model, FitSummary) {
        let mut builder = Problem::builder(self.view());
        if let Some(matrix) = matrix {
            builder = builder.matrix(0, matrix.view(), 0.5, MatrixKind::Observed);
        }
        let problem = builder.build(&()).unwrap();
        let input = FitInput {
            test: Some(self.view()),
            ..FitInput::default()
        };
        fit(&problem, o, &input, &mut (), &()).unwrap()
    }
}

fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
    let mut o = Options::preset("paper").unwrap();
    o.algorithm = algorithm;
    o.model = model;
    o.rank = vec![rank];
    o.start = Initialization::Normal;
    o.eta = Some(0.005);
    o.penalty_per = PenaltyScaling::SqrtCount;
    (o.mean, o.biases) = (true, true);
    (o.epochs, o.threads) = (2, 1);
    (o.burn_in, o.samples) = (1, 2);
    o
}

/// Returns data and options that reach every code path: fiber batches of order 2 to 5, conflict-free classes, and single
/// entries, for all algorithms.
fn all_code_paths() -> Vec<(Entries, Options)> {
    let mut all = Vec::new();
    for (dims, count) in [
        (vec![60, 40], 3000),
        (vec![60, 50, 6], 5000),
        (vec![30, 20, 9, 5], 4000),
        (vec![12, 10, 6, 4, 3], 3000),
        (vec![60_000, 60_000, 60_000], 40_000),
    ] {
        for (algorithm, model, rank) in [
            (Algorithm::Blocked, ModelKind::Tucker, 3),
            (Algorithm::Blocked, ModelKind::Cp, 4),
            (Algorithm::Opt, ModelKind::Tucker, 3),
            (Algorithm::Opt, ModelKind::Cp, 4),
            (Algorithm::Naive, ModelKind::Tucker, 2),
            (Algorithm::Als, ModelKind::Cp, 3),
            (Algorithm::Als, ModelKind::Tucker, 2),
            (Algorithm::Gibbs, ModelKind::Cp, 3),
            (Algorithm::Gibbs, ModelKind::Tucker, 2),
        ] {
            // Only `blocked` treats rows with few entries differently.
            if dims[0] < 1000 || algorithm == Algorithm::Blocked {
                let entries = Entries::new(&dims, count);
                all.push((entries, options(algorithm, model, rank)));
            }
        }
    }
    // Rows of more than one SIMD vector.
    let o = options(Algorithm::Blocked, ModelKind::Tucker, 18);
    all.push((Entries::new(&[60, 50, 6], 5000), o));
    all
}

fn context(entries: &Entries, o: &Options) -> String {
    format!("{:?} {:?} {:?}", entries.dims, o.algorithm, o.model)
}

fn matrix(of: &Entries) -> Entries {
    Entries::new(&[of.dims[0], 8], 400)
}

/// Returns the largest difference of the predictions of two models.
fn largest_difference(a: &Model, b: &Model, entries: &Entries) -> f64 {
    let (x, y) = (
        predictions(a, &entries.view()),
        predictions(b, &entries.view()),
    );
    let each = x.iter().zip(&y).map(|(x, y)| (x - y).abs());
    each.fold(0.0, f64::max)
}

#[test]
fn unit_weights_change_no_bit() {
    for (entries, o) in all_code_paths() {
        let matrix = matrix(&entries);
        let (a, of_a) = entries.with_matrix(Some(&matrix), &o);
        let ones = matrix.weighted(|_| 1.0);
        let (b, of_b) = entries.weighted(|_| 1.0).with_matrix(Some(&ones), &o);
        assert!(
            parameter_bits(&a) == parameter_bits(&b),
            "{}",
            context(&entries, &o)
        );
        assert_eq!(of_a.train_rmse.to_bits(), of_b.train_rmse.to_bits());
        assert_eq!(of_a.test_rmse.to_bits(), of_b.test_rmse.to_bits());
    }
}

#[test]
fn weighted_fit_is_independent_of_thread_count() {
    for (entries, mut o) in all_code_paths() {
        if matches!(o.algorithm, Algorithm::Opt | Algorithm::Naive) {
            continue;
        }
        let entries = entries.weighted(|e| [0.5, 2.0, 1.0, 0.0][e % 4]);
        let matrix = matrix(&entries).weighted(|e| (e % 3) as f64);
        let (one, _) = entries.with_matrix(Some(&matrix), &o);
        for threads in [2, 3, 7] {
            o.threads = threads;
            let (many, _) = entries.with_matrix(Some(&matrix), &o);
            assert!(
                parameter_bits(&one) == parameter_bits(&many),
                "{threads} threads: {}",
                context(&entries, &o)
            );
        }
    }
}

#[test]
fn entries_of_weight_0_are_ignored() {
    for (entries, o) in all_code_paths() {
        let dropped = |e: usize| e % 7 == 3 || entries.columns[0][e] == 5;
        let matrix = matrix(&entries);
        let (a, of_a) = entries
            .weighted(|e| if dropped(e) { 0.0 } else { 1.0 })
            .with_matrix(Some(&matrix.weighted(|e| f64::from(e % 5 != 0))), &o);
        let (b, of_b) = entries
            .repeated(|e| usize::from(!dropped(e)))
            .with_matrix(Some(&matrix.repeated(|e| usize::from(e % 5 != 0))), &o);
        let context = context(&entries, &o);
        assert_eq!(a.modes()[0].counts, b.modes()[0].counts, "{context}");
        assert_eq!(a.range(), b.range());
        assert!(
            (of_a.train_rmse / of_b.train_rmse - 1.0).abs() < 1e-9,
            "{context}"
        );
        assert!(
            (of_a.test_rmse / of_b.test_rmse - 1.0).abs() < 1e-9,
            "{context}"
        );
        assert!(parameter_bits(&a) == parameter_bits(&b), "{context}");
    }
}

#[test]
fn integer_weight_equals_repeated_entry() {
    let times = |e: usize| 1 + e % 3;
    for (model, per) in [
        (ModelKind::Cp, PenaltyScaling::SqrtCount),
        (ModelKind::Tucker, PenaltyScaling::Count),
        (ModelKind::Cp, PenaltyScaling::Constant),
    ] {
        let entries = Entries::new(&[40, 30, 5], 2500);
        let matrix = matrix(&entries);
        let mut o = options(Algorithm::Als, model, 2);
        (o.penalty_per, o.lambda_reg, o.orthogonal) = (per, Some(0.05), false);
        // The automatic bias penalty would see no noise between repeated entries.
        o.lambda_bias = vec![5.0];
        let (a, of_a) = entries
            .weighted(|e| times(e) as f64)
            .with_matrix(Some(&matrix.weighted(|e| times(e) as f64)), &o);
        let (b, of_b) = entries
            .repeated(times)
            .with_matrix(Some(&matrix.repeated(times)), &o);
        assert!((of_a.train_rmse - of_b.train_rmse).abs() < 1e-5);
        let difference = largest_difference(&a, &b, &entries);
        assert!(difference < 2e-3, "{model:?} {per:?}: {difference}");
        let (last_a, last_b) = (a.history().last().unwrap(), b.history().last().unwrap());
        assert!((last_a.loss / last_b.loss - 1.0).abs() < 1e-4);
    }
    // For the other algorithms the initial loss is compared.
    for (entries, mut o) in all_code_paths() {
        if entries.dims[0] > 1000 || o.algorithm == Algorithm::Gibbs || o.algorithm.is_rowwise() {
            continue;
        }
        (o.eta, o.epochs, o.biases, o.orthogonal) = (Some(1e-12), 1, false, false);
        let (a, of_a) = entries.weighted(|e| times(e) as f64).fit(&o);
        let (b, of_b) = entries.repeated(times).fit(&o);
        let context = context(&entries, &o);
        let (x, y) = (a.history()[0].loss, b.history()[0].loss);
        assert!((x / y - 1.0).abs() < 1e-6, "{x} {y}: {context}");
        assert!(
            (of_a.train_rmse / of_b.train_rmse - 1.0).abs() < 1e-6,
            "{context}"
        );
    }
}

/// After a sweep of `als` the weighted gradient of the last mode is 0, computed in `f64`.
#[test]
fn als_solves_the_weighted_normal_equations() {
    let entries = Entries::new(&[20, 80], 1200).weighted(|e| [0.25, 1.0, 3.0, 0.0, 8.0][e % 5]);
    let mut o = options(Algorithm::Als, ModelKind::Cp, 3);
    (o.mean, o.biases, o.orthogonal) = (false, false, false);
    (o.lambda_reg, o.epochs) = (Some(0.3), 2);
    let (model, summary) = entries.fit(&o);
    let wide = |row: &[f32]| -> Vec<f64> { row.iter().map(|&x| f64::from(x)).collect() };
    let mut gradient = vec![[0.0f64; 3]; 80];
    let mut size = vec![1e-9f64; 80];
    let mut weights = vec![0.0; 80];
    let (mut squares, mut total) = (0.0, 0.0);
    for e in 0..entries.values.len() {
        let row = |n: usize| {
            model.modes()[n]
                .rows
                .compact(entries.columns[n][e])
                .unwrap()
        };
        let (i, k) = (row(0) as usize, row(1) as usize);
        let (u, v) = (
            wide(model.modes()[0].factor.row(i)),
            wide(model.modes()[1].factor.row(k)),
        );
        let x: f64 = u.iter().zip(&v).map(|(u, v)| u * v).sum();
        let w = entries.weight(e);
        let error = entries.values[e] - x;
        (squares, total) = (squares + w * error * error, total + w);
        weights[k] += w;
        for j in 0..3 {
            gradient[k][j] += w * error * u[j];
            size[k] += (w * entries.values[e] * u[j]).abs();
        }
    }
    for k in 0..80 {
        let v = wide(model.modes()[1].factor.row(k));
        for j in 0..3 {
            let residual = gradient[k][j] - 0.3 * weights[k].sqrt() * v[j];
            assert!(
                residual.abs() < 1e-4 * size[k],
                "row {k}: {residual} of {}",
                size[k]
            );
        }
    }
    let rmse = (squares / total).sqrt();
    let plain = evaluate(&model, &entries.view(), model.range(), 1, &()).unwrap();
    assert!(
        (plain.unclipped.rmse / rmse - 1.0).abs() < 1e-5,
        "{rmse} {plain:?}"
    );
    assert!(!summary.clipped, "the values have no bounds");
    assert!((plain.unclipped.rmse / summary.train_rmse - 1.0).abs() < 1e-5);
    assert!((summary.test_rmse / summary.train_rmse - 1.0).abs() < 1e-6);
}

/// Half of the entries are mostly noise. Lower weights for them lower the error on the noiseless values.
#[test]
fn inverse_variance_weights_lower_the_error() {
    let clean = Entries::new(&[60, 50, 4], 4000);
    let mut noisy = clean.clone();
    let mut c = Random(11);
    let deviation = |e: usize| if e.is_multiple_of(2) { 0.1 } else { 3.0 };
    for (e, x) in noisy.values.iter_mut().enumerate() {
        *x += deviation(e) * c.normal();
    }
    for algorithm in [
        Algorithm::Blocked,
        Algorithm::Opt,
        Algorithm::Als,
        Algorithm::Gibbs,
    ] {
        let mut o = Options::default();
        (o.algorithm, o.model, o.rank) = (algorithm, ModelKind::Cp, vec![2]);
        (o.samples, o.burn_in, o.threads) = (20, 10, 1);
        let error = |entries: &Entries| {
            let (model, _) = entries.fit(&o);
            let clip = ValueRange {
                min: -9.0,
                max: 9.0,
            };
            let e = evaluate(&model, &clean.view(), clip, 1, &()).unwrap();
            e.unclipped.rmse
        };
        let with = error(&noisy.weighted(|e| 0.05 / (0.05 + deviation(e).powi(2))));
        let without = error(&noisy);
        assert!(with < 0.8 * without, "{algorithm:?}: {with} {without}");
    }
}

#[test]
fn default_fit_is_invariant_to_the_scale_of_weights() {
    let entries = Entries::new(&[70, 60, 5], 6000);
    let mut o = Options::default();
    (o.epochs, o.threads, o.biases) = (4, 1, false);
    let weight = |e: usize| [1.0, 0.5, 2.0][e % 3];
    let (a, _) = entries.weighted(weight).fit(&o);
    let (b, _) = entries.weighted(|e| 16.0 * weight(e)).fit(&o);
    let difference = largest_difference(&a, &b, &entries);
    assert!(difference < 1e-3, "{difference}");
}

#[test]
fn resumed_weighted_fit_equals_uninterrupted_fit_and_other_weights_are_rejected() {
    for algorithm in [Algorithm::Blocked, Algorithm::Als, Algorithm::Gibbs] {
        let dir = Scratch::new("weights-resume");
        let entries = Entries::new(&[60, 50, 6], 3000).weighted(|e| (1 + e % 4) as f64);
        let mut o = options(algorithm, ModelKind::Cp, 3);
        let run = |entries: &Entries, o: &Options, input: FitInput<'_>| {
            let problem = Problem::builder(entries.view()).build(&()).unwrap();
            fit(&problem, o, &input, &mut (), &())
        };
        let (whole, _) = run(&entries, &o, FitInput::default()).unwrap();
        let path = dir.join("run.s3m");
        let input = || FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        let (epochs, samples) = (o.epochs, o.samples);
        (o.epochs, o.samples) = (1, 1);
        run(&entries, &o, input()).unwrap();
        (o.epochs, o.samples) = (epochs, samples);
        let resume = || FitInput {
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        let other = entries.weighted(|e| (1 + e % 3) as f64);
        let error = run(&other, &o, resume()).err().unwrap().to_string();
        assert!(error.contains("other data"), "{error}");
        let (resumed, _) = run(&entries, &o, resume()).unwrap();
        assert!(
            parameter_bits(&whole) == parameter_bits(&resumed),
            "{algorithm:?}"
        );
    }
}

#[test]
fn invalid_weights_are_rejected_by_name() {
    let entries = Entries::new(&[9, 8], 60);
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
        let entries = entries.weighted(|e| if e == 4 { bad } else { 1.0 });
        let error = Problem::builder(entries.view()).build(&()).err().unwrap();
        assert!(error.to_string().contains("x: entry 5: weight"), "{error}");
        let problem = Entries::new(&[9, 8], 60);
        let problem = Problem::builder(problem.view()).build(&()).unwrap();
        for valid in [false, true] {
            let view = Some(entries.view());
            let input = if valid {
                FitInput {
                    valid: view,
                    ..FitInput::default()
                }
            } else {
                FitInput {
                    test: view,
                    ..FitInput::default()
                }
            };
            let o = options(Algorithm::Blocked, ModelKind::Cp, 2);
            let error = fit(&problem, &o, &input, &mut (), &()).err().unwrap();
            assert!(error.to_string().contains("x: entry 5: weight"), "{error}");
        }
    }
    let all_zero = entries.weighted(|_| 0.0);
    let problem = Problem::builder(all_zero.view()).build(&()).unwrap();
    let o = options(Algorithm::Blocked, ModelKind::Cp, 2);
    let error = fit(&problem, &o, &FitInput::default(), &mut (), &());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("all weights are 0"), "{error}");
    let input = FitInput {
        valid: Some(all_zero.view()),
        ..FitInput::default()
    };
    let problem = Problem::builder(entries.view()).build(&()).unwrap();
    let error = fit(&problem, &o, &input, &mut (), &()).err().unwrap();
    assert!(error.to_string().contains("all weights are 0"), "{error}");
}
