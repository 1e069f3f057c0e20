//! Fits commute with renumbering: permuted data and a permuted initial model give the permuted result.
//!
//! This holds up to rounding for `opt` and `naive` on one thread, which visit entries by their positions, and for `als`, which
//! sums over all entries of a row. `als` updates modes by their numbers of rows, which differ here. Biases are solved for mode by
//! mode, so models of permuted modes have none.
//!
//! The initial model must be given, since random starting values depend on the row number. It does not hold for `blocked`, whose
//! blocks are ranges of rows, for `gibbs`, whose random streams belong to rows, nor for sampled zeros and the order in which
//! `als` updates the rows of a graph.

use std::path::Path;

use proptest::array::uniform8;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use s3cmtf::format::ValueKind;
use s3cmtf::model::{Model, Predict};
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::problem::MatrixKind;
use s3cmtf::solver::{FitInput, fit};

use super::fits::{Matrix, RandomProblem, remove_duplicates};
use super::renumbering::Renumbering;
use super::{Entries, Form, check};
use crate::common::Scratch;
use crate::common::in_memory::options;

/// Tensors whose rows all occur, of modes with different numbers of rows, with observed and full matrices.
fn problems() -> impl Strategy<Value = RandomProblem> {
    let dims = Just(vec![3u64, 4, 5, 6]).prop_shuffle();
    let dims = (dims, 2..=4usize).prop_map(|(dims, order)| dims[..order].to_vec());
    let tuples = vec((uniform8(any::<u32>()), -5.0..5.0f64, 0.5..2.0f64), 20..60);
    let tensors = (dims, tuples, any::<bool>()).prop_map(|(dims, mut tuples, is_weighted)| {
        // Every row occurs.
        let first = tuples.iter_mut().zip(0..6);
        first.for_each(|(tuple, i)| tuple.0 = [i; 8]);
        entries(dims, &tuples, is_weighted)
    });
    tensors.prop_flat_map(|tensor| {
        let matrices = vec(matrices(tensor.dims.clone()), 0..3);
        (Just(tensor), matrices).prop_map(|(tensor, matrices)| RandomProblem { tensor, matrices })
    })
}

fn entries(dims: Vec<u64>, tuples: &[([u32; 8], f64, f64)], is_weighted: bool) -> Entries {
    let form = Form {
        dims,
        has_inferred_dims: false,
        value_kind: ValueKind::F64,
        weight_kind: is_weighted.then_some(ValueKind::F64),
    };
    form.entries(tuples)
}

fn matrices(dims: Vec<u64>) -> impl Strategy<Value = Matrix> {
    let tuples = vec((uniform8(any::<u32>()), -2.0..2.0f64, Just(1.0)), 3..20);
    let kinds = select(&[MatrixKind::Observed, MatrixKind::Full][..]);
    (0..dims.len(), 2..5u64, kinds, tuples).prop_map(move |(mode, width, kind, tuples)| {
        let mut entries = entries(vec![dims[mode], width], &tuples, false);
        remove_duplicates(&mut entries);
        Matrix {
            mode,
            kind,
            entries,
            weight: Some(0.5),
            penalty: None,
        }
    })
}

/// New numbers of the rows and columns of a problem, and of its modes if `moves_modes`.
fn renumberings(
    problem: &RandomProblem,
    moves_modes: bool,
) -> impl Strategy<Value = Renumbering> + use<> {
    let numbers = |count: u64| Just((0..count as u32).collect::<Vec<_>>()).prop_shuffle();
    let modes: Vec<usize> = (0..problem.tensor.order()).collect();
    let modes = if moves_modes {
        Just(modes).prop_shuffle().boxed()
    } else {
        Just(modes).boxed()
    };
    let rows: Vec<_> = problem.tensor.dims.iter().map(|&d| numbers(d)).collect();
    let matrices = problem.matrices.iter();
    let columns: Vec<_> = matrices.map(|m| numbers(m.entries.dims[1])).collect();
    let all = (modes, rows, columns);
    all.prop_map(|(modes, rows, columns)| Renumbering {
        modes,
        rows,
        columns,
    })
}

/// Options of fits with each of the algorithms.
fn fit_options(
    algorithms: &'static [Algorithm],
    biases: BoxedStrategy<bool>,
) -> impl Strategy<Value = Options> {
    let models = select(&[ModelKind::Tucker, ModelKind::Cp][..]);
    let settings = (
        select(algorithms),
        models,
        vec(1..=3usize, 4),
        biases,
        any::<[bool; 2]>(),
    );
    settings.prop_map(|(algorithm, model, ranks, biases, [mean, orthogonal])| {
        let mut o = options(algorithm, model, ranks[0]);
        if model == ModelKind::Tucker {
            o.rank = ranks;
        }
        (o.biases, o.mean, o.orthogonal) = (biases, mean, orthogonal);
        (o.threads, o.epochs, o.start) = (1, 1, Initialization::Normal);
        o.pin = false;
        o
    })
}

/// A model that was fitted for one epoch from a given one.
struct Fitted {
    model: Model,
    train_rmse: f64,
}

fn fit_from(problem: &RandomProblem, o: &Options, init: Option<&Model>) -> Fitted {
    let problem = problem.builder().build(&()).unwrap();
    let input = FitInput {
        init,
        ..FitInput::default()
    };
    let (model, summary) = fit(&problem, o, &input, &mut (), &()).unwrap();
    Fitted {
        model,
        train_rmse: summary.train_rmse,
    }
}

/// Returns all cells, with an index beyond each mode.
fn all_cells(dims: &[u64]) -> Vec<Vec<u32>> {
    let mut cells = vec![Vec::new()];
    for &dim in dims {
        let longer = |cell: &Vec<u32>| {
            (0..=dim as u32)
                .map(|i| [&cell[..], &[i]].concat())
                .collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    cells
}

/// Fits a problem and its renumbered form from the same initial model, and compares their predictions for every cell.
fn check_both(problem: &RandomProblem, numbers: &Renumbering, o: &Options, folder: &Path) {
    let dims = &problem.tensor.dims;
    let mut o = o.clone();
    o.rank.truncate(dims.len());
    let mut initial = o.clone();
    (initial.algorithm, initial.start) = (Algorithm::Opt, Initialization::Identity);
    (initial.epochs, initial.orthogonal) = (0, false);
    let init = fit_from(problem, &initial, None).model;
    let old = fit_from(problem, &o, Some(&init));
    let mut permuted = o.clone();
    if let [_, _, ..] = o.rank[..] {
        permuted.rank = numbers.modes.iter().map(|&n| o.rank[n]).collect();
    }
    let new = fit_from(
        &numbers.problem(problem),
        &permuted,
        Some(&numbers.model(&init, folder)),
    );
    assert!(
        (old.train_rmse - new.train_rmse).abs() < 0.01,
        "{} and {}",
        old.train_rmse,
        new.train_rmse
    );
    let (mut of_old, mut of_new) = (
        old.model.predictor().unwrap(),
        new.model.predictor().unwrap(),
    );
    // Least squares of few entries amplify rounding. The core is solved for to an accuracy of 1e-2, by conjugate gradients, whose
    // number of steps may differ.
    let tolerance = match (o.algorithm, o.model) {
        (Algorithm::Als, ModelKind::Tucker) => 0.05,
        (Algorithm::Als, _) => 1e-3,
        _ => 1e-5,
    };
    for cell in all_cells(dims) {
        let (x, y) = (of_old(&cell), of_new(&numbers.cell(&cell)));
        assert!((x - y).abs() < tolerance, "{cell:?}: {x} and {y}");
    }
}

fn inputs(
    moves_modes: bool,
    options: impl Strategy<Value = Options>,
) -> impl Strategy<Value = (RandomProblem, Renumbering, Options)> {
    let problems = problems().prop_flat_map(move |problem| {
        let renumberings = renumberings(&problem, moves_modes);
        (Just(problem), renumberings)
    });
    (problems, options).prop_map(|((problem, numbers), o)| (problem, numbers, o))
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Opt, Algorithm::Naive, Algorithm::Als];

#[test]
fn renumbered_rows_give_the_renumbered_model() {
    let scratch = Scratch::new("properties-rows");
    let options = fit_options(&ALGORITHMS, any::<bool>().boxed());
    check(40, inputs(false, options), |(problem, numbers, o)| {
        check_both(&problem, &numbers, &o, scratch.path());
    });
}

#[test]
fn permuted_modes_give_the_permuted_model() {
    let scratch = Scratch::new("properties-modes");
    let options = fit_options(&ALGORITHMS, Just(false).boxed());
    check(40, inputs(true, options), |(problem, numbers, o)| {
        check_both(&problem, &numbers, &o, scratch.path());
    });
}
