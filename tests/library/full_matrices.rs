//! Full matrices, whose positions without an entry are zeros, compared with matrices of explicit zeros.

use crate::common::Scratch;
use crate::common::planted::parameter_bits;
use s3cmtf::format::{CooView, Values};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options, Penalty, PenaltyScaling};
use s3cmtf::problem::{MatrixKind, Problem, ProblemBuilder};
use s3cmtf::solver::{Event, FitInput, FitSummary, Observer, fit};

const DIMS: [u64; 3] = [60, 45, 6];
const COLUMNS: u64 = 14;

/// A planted tensor, and a 0/1 matrix on its second mode that depends on the planted rows. Some rows of the mode have no
/// tensor entry, some no one, some neither; one column has no one.
struct TestData {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    /// Rows and columns of the ones.
    ones: [Vec<u32>; 2],
    /// All positions of the matrix with their values.
    explicit: ([Vec<u32>; 2], Vec<f64>),
}

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

    /// Returns a nearly normal value.
    fn normal(&mut self) -> f64 {
        (0..12)
            .map(|_| self.below(1000) as f64 / 1000.0)
            .sum::<f64>()
            - 6.0
    }
}

impl TestData {
    fn new(entries: usize) -> TestData {
        let mut s = Random(7);
        let factors: Vec<Vec<[f64; 3]>> = DIMS
            .iter()
            .chain([&COLUMNS])
            .map(|&d| {
                (0..d)
                    .map(|_| [s.normal(), s.normal(), s.normal()])
                    .collect()
            })
            .collect();
        let mut data = TestData {
            columns: vec![Vec::new(); 3],
            values: Vec::new(),
            ones: Default::default(),
            explicit: Default::default(),
        };
        for _ in 0..entries {
            // The last rows of the second mode have no entries.
            let at = [s.below(60), s.below(40), s.below(6)];
            let x: f64 = (0..3)
                .map(|j| {
                    let time = 1.0 + 0.2 * factors[2][at[2] as usize][j];
                    factors[0][at[0] as usize][j] * factors[1][at[1] as usize][j] * time
                })
                .sum();
            for (column, i) in data.columns.iter_mut().zip(at) {
                column.push(i as u32);
            }
            data.values.push(x + 0.3 * s.normal());
        }
        for i in 0..DIMS[1] as u32 {
            for k in 0..COLUMNS as u32 {
                let (u, v) = (&factors[1][i as usize], &factors[3][k as usize]);
                let dot: f64 = u.iter().zip(v).map(|(a, b)| a * b).sum();
                let one = k != 5 && i % 7 != 3 && i != 44 && dot + 0.5 * s.normal() > 1.5;
                if one {
                    data.ones[0].push(i);
                    data.ones[1].push(k);
                }
                data.explicit.0[0].push(i);
                data.explicit.0[1].push(k);
                data.explicit.1.push(f64::from(u8::from(one)));
            }
        }
        data
    }

    fn tensor(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        CooView::new("x", &DIMS, &columns, Values::F64(&self.values)).unwrap()
    }

    /// Builds the problem with the matrix of this kind and passes it to `act`. An observed matrix has explicit zeros.
    fn with<T>(&self, kind: MatrixKind, act: impl FnOnce(&Problem<'_>) -> T) -> T {
        let values = vec![1.0; self.ones[0].len()];
        let dims = [DIMS[1], COLUMNS];
        let matrix = match kind {
            MatrixKind::Observed => {
                let columns: [&[u32]; 2] = [&self.explicit.0[0], &self.explicit.0[1]];
                CooView::new("y", &dims, &columns, Values::F64(&self.explicit.1))
            }
            _ => {
                let columns: [&[u32]; 2] = [&self.ones[0], &self.ones[1]];
                CooView::new("y", &dims, &columns, Values::F64(&values))
            }
        };
        let builder = Problem::builder(self.tensor()).matrix(1, matrix.unwrap(), 0.5, kind);
        act(&builder.build(&()).unwrap())
    }
}

fn options(algorithm: Algorithm, paper: bool) -> Options {
    let mut o = if paper {
        Options::preset("paper").unwrap()
    } else {
        Options::default()
    };
    o.algorithm = algorithm;
    o.rank = vec![4];
    if paper {
        o.start = Initialization::Normal;
        (o.eta, o.lambda_reg) = (Some(0.01), Some(0.2));
    } else {
        o.model = ModelKind::Cp;
        o.lambda_reg = Some(0.3);
    }
    o.orthogonal = false;
    (o.threads, o.pin) = (1, false);
    o
}

fn fitted(problem: &Problem<'_>, o: &Options) -> (Model, FitSummary) {
    fit(problem, o, &FitInput::default(), &mut (), &()).unwrap()
}

/// Returns the largest difference of the parameters of two models, relative to the largest parameter.
fn difference(a: &Model, b: &Model) -> f32 {
    let (a, b) = (parameter_bits(a), parameter_bits(b));
    assert_eq!(a.len(), b.len());
    let pairs = a
        .iter()
        .zip(&b)
        .map(|(&a, &b)| (f32::from_bits(a), f32::from_bits(b)));
    let largest = pairs.clone().fold(0.0f32, |m, (a, _)| m.max(a.abs()));
    pairs.fold(0.0f32, |m, (a, b)| m.max((a - b).abs())) / largest
}

#[test]
fn als_and_gibbs_equal_a_fit_with_explicit_zeros() {
    let data = TestData::new(2500);
    for (algorithm, paper) in [
        (Algorithm::Als, true),
        (Algorithm::Als, false),
        (Algorithm::Gibbs, true),
        (Algorithm::Gibbs, false),
    ] {
        for (model, nonneg) in [
            (ModelKind::Cp, false),
            (ModelKind::Tucker, false),
            (ModelKind::Cp, true),
        ] {
            if nonneg && algorithm == Algorithm::Gibbs {
                continue;
            }
            let mut o = options(algorithm, paper);
            (o.model, o.nonneg) = (model, nonneg);
            (o.epochs, o.burn_in, o.samples) = (2, 1, 1);
            let explicit = data.with(MatrixKind::Observed, |p| fitted(p, &o).0);
            let full = data.with(MatrixKind::Full, |p| fitted(p, &o).0);
            let off = difference(&explicit, &full);
            let context = format!("{algorithm:?} {paper} {model:?} {nonneg}: {off}");
            // The core is solved by truncated conjugate gradients.
            let rounding = if model == ModelKind::Tucker {
                1e-2
            } else {
                1e-3
            };
            assert!(off < rounding, "{context}");
            let losses = |m: &Model| m.history().iter().map(|e| e.loss).collect::<Vec<_>>();
            for (a, b) in losses(&explicit).iter().zip(losses(&full)) {
                assert!((a / b - 1.0).abs() < 1e-3, "{a} {b} {context}");
            }
            let offsets = |m: &Model| m.matrices()[0].offsets.clone();
            assert_eq!(offsets(&explicit).len(), offsets(&full).len());
            let none = paper || nonneg || algorithm == Algorithm::Gibbs;
            assert_eq!(offsets(&full).is_empty(), none, "{context}");
            for (a, b) in offsets(&explicit).iter().zip(offsets(&full)) {
                assert!((a - b).abs() < 1e-5, "{a} {b} {context}");
            }
        }
    }
}

/// SGD updates full matrices by another method, which must converge to the same loss.
#[test]
fn sgd_converges_to_the_fit_with_explicit_zeros() {
    let data = TestData::new(2500);
    let mut worse = Vec::new();
    for (algorithm, paper) in [
        (Algorithm::Blocked, true),
        (Algorithm::Blocked, false),
        (Algorithm::Opt, true),
        (Algorithm::Opt, false),
        (Algorithm::Naive, false),
    ] {
        for (penalty, nonneg) in [
            (Penalty::L2, false),
            (Penalty::L1, false),
            (Penalty::L2, true),
        ] {
            if algorithm == Algorithm::Naive && penalty == Penalty::L1 {
                // `naive` computes the updates of `opt`, slowly.
                continue;
            }
            let mut o = options(algorithm, paper);
            (o.penalty, o.nonneg) = (penalty, nonneg);
            if nonneg {
                o.start = Initialization::Paper;
                (o.eta, o.lambda_reg) = (Some(0.01), Some(0.2));
            }
            // With this scaling, rows without tensor entries have the same penalty in the updates and in the loss.
            o.penalty_per = PenaltyScaling::Constant;
            (o.epochs, o.eval_every, o.decay) = (300, 300, 0.02);
            let loss = |kind| {
                let (model, _) = data.with(kind, |p| fitted(p, &o));
                if nonneg {
                    let negative = |x: &u32| f32::from_bits(*x) < 0.0;
                    assert!(!parameter_bits(&model).iter().any(negative));
                }
                model.history()[299].loss
            };
            let (explicit, full) = (loss(MatrixKind::Observed), loss(MatrixKind::Full));
            let context = format!("{algorithm:?} {paper} {penalty:?} {nonneg}: {explicit} {full}");
            println!("{context}");
            if full > 1.01 * explicit {
                worse.push(context);
            }
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}

/// A few rows have most ones and most entries. Matrices with far more positions than the tensor has entries make such rows
/// large, so that updates suited to other rows overshoot for them. The total loss hardly shows it.
#[test]
fn large_matrix_gradients_do_not_diverge_the_tensor() {
    const ROWS: u64 = 1000;
    let mut s = Random(11);
    let skewed = |s: &mut Random, n: u64| {
        let bound = s.below(n) + 1;
        s.below(bound)
    };
    let (mut columns, mut values) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for _ in 0..1000 {
        let at = [skewed(&mut s, ROWS), skewed(&mut s, ROWS), s.below(10)];
        columns
            .iter_mut()
            .zip(at)
            .for_each(|(c, i)| c.push(i as u32));
        values.push(3.0 + 0.5 * s.normal());
    }
    let mut ones = |count: usize, width: u64, row: &dyn Fn(&mut Random) -> u64| {
        let mut positions = std::collections::BTreeSet::new();
        while positions.len() < count {
            let i = row(&mut s) as u32;
            let bound = skewed(&mut s, width) + 1;
            positions.insert((i, skewed(&mut s, bound) as u32));
        }
        let (rows, columns): (Vec<u32>, Vec<u32>) = positions.into_iter().unzip();
        (rows, columns, vec![1.0; count])
    };
    let friends = ones(4000, ROWS, &|s| {
        let bound = skewed(s, ROWS) + 1;
        skewed(s, bound)
    });
    let categories = ones(3000, 100, &|s| s.below(ROWS));
    type Ones = (Vec<u32>, Vec<u32>, Vec<f64>);
    fn view<'m>(name: &str, width: u64, m: &'m Ones) -> CooView<'m> {
        CooView::new(name, &[ROWS, width], &[&m.0, &m.1], Values::F64(&m.2)).unwrap()
    }
    let error = |weight: Option<f64>| {
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let dims = [ROWS, ROWS, 10];
        let tensor = CooView::new("x", &dims, &columns, Values::F64(&values)).unwrap();
        let mut builder = Problem::builder(tensor);
        if let Some(weight) = weight {
            builder = builder
                .matrix(0, view("friends", ROWS, &friends), weight, MatrixKind::Full)
                .matrix(
                    1,
                    view("categories", 100, &categories),
                    weight,
                    MatrixKind::Full,
                );
        }
        let mut o = Options::default();
        (o.threads, o.pin) = (1, false);
        fitted(&builder.build(&()).unwrap(), &o).1.train_rmse
    };
    let alone = error(None);
    for weight in [1.0, 3.0, 10.0] {
        let coupled = error(Some(weight));
        println!("{weight}: {coupled}, alone {alone}");
        assert!(coupled < 1.2 * alone, "{weight}: {coupled} {alone}");
    }
}

#[test]
fn full_matrices_are_independent_of_thread_count() {
    let data = TestData::new(4000);
    for kind in [MatrixKind::Full, MatrixKind::Sampled(3)] {
        for algorithm in [Algorithm::Blocked, Algorithm::Als, Algorithm::Gibbs] {
            for nonneg in [false, true] {
                if nonneg && algorithm == Algorithm::Gibbs {
                    continue;
                }
                let mut o = options(algorithm, true);
                o.nonneg = nonneg;
                (o.epochs, o.burn_in, o.samples) = (3, 1, 2);
                let bits = |threads| {
                    o.threads = threads;
                    data.with(kind, |p| parameter_bits(&fitted(p, &o).0))
                };
                let all: Vec<Vec<u32>> = [1, 2, 3, 7].map(bits).into();
                assert!(all.iter().all(|b| *b == all[0]), "{kind} {algorithm:?}");
            }
        }
    }
}

#[test]
fn resumed_fit_with_full_matrices_equals_uninterrupted_fit() {
    let data = TestData::new(2500);
    let dir = Scratch::new("full-resume");
    for kind in [MatrixKind::Full, MatrixKind::Sampled(2)] {
        for algorithm in [Algorithm::Blocked, Algorithm::Opt, Algorithm::Gibbs] {
            let mut o = options(algorithm, false);
            o.schedule = s3cmtf::options::LearningRateSchedule::Inverse;
            (o.epochs, o.burn_in, o.samples) = (6, 2, 4);
            let path = dir.join("c.s3m");
            let (whole, resumed) = data.with(kind, |p| {
                let whole = fitted(p, &o).0;
                let mut first = o.clone();
                (first.epochs, first.samples) = (3, 1);
                let part = FitInput {
                    checkpoint: Some(path.clone()),
                    ..FitInput::default()
                };
                fit(p, &first, &part, &mut (), &()).unwrap();
                let rest = FitInput {
                    resume: Some(path.clone()),
                    ..FitInput::default()
                };
                (whole, fit(p, &o, &rest, &mut (), &()).unwrap().0)
            });
            assert_eq!(
                parameter_bits(&whole),
                parameter_bits(&resumed),
                "{kind} {algorithm:?}"
            );
            // A checkpoint is rejected for another kind of matrix.
            let rest = FitInput {
                resume: Some(path.clone()),
                ..FitInput::default()
            };
            let other = data.with(MatrixKind::Sampled(4), |p| fit(p, &o, &rest, &mut (), &()));
            assert!(other.is_err(), "{kind} {algorithm:?}");
        }
    }
}

#[test]
fn rows_without_ones_shrink_to_zero() {
    let data = TestData::new(2500);
    let mut o = options(Algorithm::Blocked, true);
    o.epochs = 60;
    let (model, _) = data.with(MatrixKind::Full, |p| fitted(p, &o));
    let mode = &model.modes()[1];
    assert_eq!(mode.rows.len() as u64, DIMS[1]);
    assert_eq!(model.matrices()[0].columns.len() as u64, COLUMNS);
    let size = |i: usize| mode.factor.row(i).iter().map(|x| x * x).sum::<f32>();
    // Row 44 has no tensor entry and no one; row 43 has ones, row 30 entries.
    assert!(size(44) < 0.05 * size(43), "{} {}", size(44), size(43));
    assert!(size(44) < 0.05 * size(30));
}

#[test]
fn automatic_options_are_resolved_with_full_matrices() {
    let data = TestData::new(3000);
    let mut o = Options::default();
    (o.threads, o.pin) = (2, false);
    let error = |kind| data.with(kind, |p| fitted(p, &o).1.train_rmse);
    let (explicit, full) = (error(MatrixKind::Observed), error(MatrixKind::Full));
    assert!((full / explicit - 1.0).abs() < 0.1, "{explicit} {full}");
}

/// Records warnings.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Observer for Warnings {
    fn event(&mut self, event: &Event) {
        if let Event::Warning(text) = event {
            self.0.push(text.clone());
        }
    }
}

#[test]
fn observed_matrix_of_ones_gives_a_warning() {
    let data = TestData::new(500);
    let ones = vec![1.0; data.ones[0].len()];
    let columns: [&[u32]; 2] = [&data.ones[0], &data.ones[1]];
    let matrix = CooView::new("genres", &[45, 14], &columns, Values::F64(&ones)).unwrap();
    for (kind, warned) in [
        (MatrixKind::Observed, true),
        (MatrixKind::Full, false),
        (MatrixKind::Sampled(1), false),
    ] {
        let builder = Problem::builder(data.tensor()).matrix(1, matrix.clone(), 1.0, kind);
        let problem = builder.build(&()).unwrap();
        let mut o = options(Algorithm::Blocked, true);
        o.epochs = 1;
        let mut seen = Warnings::default();
        fit(&problem, &o, &FitInput::default(), &mut seen, &()).unwrap();
        assert_eq!(seen.0.len(), usize::from(warned), "{kind} {:?}", seen.0);
        if warned {
            assert!(seen.0[0].contains("genres") && seen.0[0].contains("carries no information"));
        }
    }
}

#[test]
fn invalid_full_matrices_are_rejected() {
    let data = TestData::new(500);
    let rows: [&[u32]; 2] = [&[0, 1, 2], &[0, 1, 0]];
    let values = Values::F64(&[1.0, 0.0, 2.0]);
    let matrix = |dims: [u64; 2]| CooView::new("y", &dims, &rows, values).unwrap();
    let builder = |view, kind| Problem::builder(data.tensor()).matrix(1, view, 1.0, kind);
    let error = |b: ProblemBuilder<'_>| b.build(&()).err().expect("must be rejected").to_string();
    assert!(error(builder(matrix([45, 3]), MatrixKind::Sampled(0))).contains("0 zeros"));
    for kind in [MatrixKind::Full, MatrixKind::Sampled(2)] {
        let weighted = matrix([45, 3])
            .with_weights(Values::F64(&[1.0, 1.0, 1.0]))
            .unwrap();
        let text = error(builder(weighted, kind));
        assert!(
            text.contains("weights") && text.contains(&kind.to_string()),
            "{text}"
        );
        let text = error(builder(matrix([46, 3]), kind));
        assert!(text.contains("46 rows"), "{text}");
        // An inferred size is extended to that of the mode; rows beyond it are rows of zeros.
        let inferred = matrix([3, 3]).with_inferred_dims();
        let problem = builder(inferred, kind).build(&()).unwrap();
        let all = kind == MatrixKind::Full;
        assert_eq!(problem.modes()[1].rows().len() == 45, all);
    }
    // An explicit zero of a full matrix changes nothing.
    let o = options(Algorithm::Als, true);
    let explicit = builder(matrix([45, 3]), MatrixKind::Full)
        .build(&())
        .unwrap();
    let short: [&[u32]; 2] = [&[0, 2], &[0, 0]];
    let short = CooView::new("y", &[45, 3], &short, Values::F64(&[1.0, 2.0])).unwrap();
    let implicit = builder(short, MatrixKind::Full).build(&()).unwrap();
    let (a, b) = (fitted(&explicit, &o).0, fitted(&implicit, &o).0);
    assert!(difference(&a, &b) < 1e-4);
    // Sampling is limited to the existing zeros.
    let many = builder(matrix([45, 3]), MatrixKind::Sampled(u32::MAX));
    let many = many.build(&()).unwrap();
    assert_eq!(many.matrices()[0].entries.len(), 3 + 2 + 2);
}
