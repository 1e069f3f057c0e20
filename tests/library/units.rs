//! Results do not depend on the units of values and weights.

use crate::common::in_memory::hash_unit;
use s3cmtf::format::{CooView, Values};
use s3cmtf::options::Options;
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, fit};

/// Entries with values of their own, in any unit.
#[derive(Clone)]
struct Coo {
    dims: Vec<u64>,
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    weights: Option<Vec<f64>>,
}
impl Coo {
    fn view(&self, name: &str) -> CooView<'_> {
        let c: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let v = CooView::new(name, &self.dims, &c, Values::F64(&self.values)).unwrap();
        match &self.weights {
            Some(w) => v.with_weights(Values::F64(w)).unwrap(),
            None => v,
        }
    }
}

fn tensor(seed: u64, mean: f64) -> (Coo, Coo) {
    let dims = [40u64, 30, 6];
    let f = |n: u64, i: u64, j: u64| 2.0 * hash_unit(seed * 1000 + n * 100_000 + i * 10 + j) - 1.0;
    let mut parts = [0, 1].map(|_| Coo {
        dims: dims.to_vec(),
        columns: vec![vec![]; 3],
        values: vec![],
        weights: None,
    });
    for a in 0..40u64 {
        for b in 0..30u64 {
            for c in 0..6u64 {
                let k = (a * 30 + b) * 6 + c;
                let u = hash_unit(77_000_000 + k);
                if u > 0.45 {
                    continue;
                }
                let mut x = mean + 0.7 * f(3, a, 0) + 0.7 * f(4, b, 0);
                for j in 0..2 {
                    x += 3.0 * f(0, a, j) * f(1, b, j) * (1.0 + 0.3 * f(2, c, j));
                }
                x += 0.2 * (hash_unit(99_000_000 + k) + hash_unit(199_000_000 + k) - 1.0);
                let p = &mut parts[usize::from(u > 0.36)];
                for (col, i) in p.columns.iter_mut().zip([a, b, c]) {
                    col.push(i as u32);
                }
                p.values.push(x);
            }
        }
    }
    let [a, b] = parts;
    (a, b)
}

fn matrix(kind: &str, seed: u64) -> Coo {
    let f = |n: u64, i: u64, j: u64| 2.0 * hash_unit(seed * 1000 + n * 100_000 + i * 10 + j) - 1.0;
    let cols = if kind == "graph" { 30u32 } else { 8 };
    let mut m = Coo {
        dims: vec![30, cols.into()],
        columns: vec![vec![]; 2],
        values: vec![],
        weights: None,
    };
    for b in 0..30u32 {
        for k in 0..cols {
            let d = (0..2)
                .map(|j| f(1, b.into(), j) * f(7, k.into(), j))
                .sum::<f64>();
            let x = match kind {
                "graph" => {
                    let e = (0..2)
                        .map(|j| (f(1, b.into(), j) - f(1, k.into(), j)).powi(2))
                        .sum::<f64>();
                    if k <= b || e > 0.1 {
                        continue;
                    }
                    1.0
                }
                "observed" => {
                    if hash_unit(u64::from(b * 100 + k)) > 0.8 {
                        continue;
                    }
                    2.0 * d + 0.1 * hash_unit(u64::from(b * 100 + k))
                }
                _ => {
                    if d < 0.2 {
                        continue;
                    }
                    1.0
                }
            };
            m.columns[0].push(b);
            m.columns[1].push(k);
            m.values.push(x);
        }
    }
    m
}

fn scaled(entries: &Coo, unit: f64) -> Coo {
    Coo {
        values: entries.values.iter().map(|x| x * unit).collect(),
        ..entries.clone()
    }
}

fn weighted(entries: &Coo, unit: f64) -> Coo {
    let weights = (0..entries.values.len()).map(|k| (1 + k % 3) as f64 * unit);
    Coo {
        weights: Some(weights.collect()),
        ..entries.clone()
    }
}

/// Returns the error on test entries of a fit with these options.
fn test_error(options: &str, matrix: Option<(&Coo, MatrixKind)>, train: &Coo, test: &Coo) -> f64 {
    let mut all = Options::default();
    for pair in format!("threads=1 seed=3 rank=2 {options}").split_whitespace() {
        let (name, value) = pair.split_once('=').unwrap();
        all.set(name, value).unwrap();
    }
    let mut builder = Problem::builder(train.view("tensor"));
    if let Some((matrix, kind)) = matrix {
        builder = builder.matrix(1, matrix.view("matrix"), Some(1.0), kind);
    }
    let problem = builder.build(&()).unwrap();
    let (model, _) = fit(&problem, &all, &FitInput::default(), &mut (), &()).unwrap();
    let test = test.view("test");
    let found = evaluate(&model, &test, model.range(), 1, &()).unwrap();
    found.unclipped.rmse
}

const FITS: [&str; 8] = [
    "algorithm=blocked",
    "algorithm=blocked model=tucker",
    "algorithm=blocked nonneg=true model=cp",
    "algorithm=blocked mean=false biases=false",
    "algorithm=opt",
    "algorithm=als",
    "algorithm=als mean=false biases=false",
    "algorithm=gibbs",
];

fn assert_near(error: f64, expected: f64, what: &str) {
    let ratio = error / expected;
    assert!(
        (0.8..1.25).contains(&ratio),
        "{what}: {ratio} times the error"
    );
}

#[test]
fn values_and_weights_have_any_unit() {
    for options in FITS {
        let mean = if options.contains("nonneg") { 6.0 } else { 2.0 };
        let (train, test) = tensor(1, mean);
        let plain = test_error(options, None, &train, &test);
        for unit in [1e-35, 1e-21, 1e20, 1e34] {
            let error = test_error(options, None, &scaled(&train, unit), &scaled(&test, unit));
            assert_near(
                error / unit,
                plain,
                &format!("{options}, values in {unit:e}"),
            );
        }
        let with_weights = test_error(options, None, &weighted(&train, 1.0), &test);
        for unit in [1e-38, 1e-20, 1e20] {
            let error = test_error(options, None, &weighted(&train, unit), &test);
            assert_near(
                error,
                with_weights,
                &format!("{options}, weights of {unit:e}"),
            );
        }
    }
}

#[test]
fn values_of_matrices_have_any_unit() {
    let (train, test) = tensor(1, 2.0);
    for options in ["algorithm=blocked", "algorithm=als", "algorithm=gibbs"] {
        for (kind, name) in [
            (MatrixKind::Observed, "observed"),
            (MatrixKind::Full, "full"),
            (MatrixKind::Graph, "graph"),
        ] {
            let entries = matrix(name, 1);
            let plain = test_error(options, Some((&entries, kind)), &train, &test);
            for unit in [1e-30, 1e-21, 1e20] {
                let entries = scaled(&entries, unit);
                let error = test_error(options, Some((&entries, kind)), &train, &test);
                assert_near(
                    error,
                    plain,
                    &format!("{options}, {name} matrix in {unit:e}"),
                );
            }
        }
    }
}
