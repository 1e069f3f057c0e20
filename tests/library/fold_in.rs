//! Fold-in of new rows into a fitted model.

use crate::common::Scratch;
use crate::common::in_memory::{
    Entries, SilentObserver, fit_ratings, fit_with_matrix, fold_in_input, folded_model, hash_unit,
    options, planted_ratings, predictions, rmse,
};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{Model, load, save};
use s3cmtf::options::{Algorithm, ModelKind, Penalty, PenaltyScaling};
use s3cmtf::predict::{PredictOptions, predict_intervals};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, FoldIn, FoldSummary, fit, fold_in};
use s3cmtf::{Error, Result};

/// Solves A x = b by Gauss-Jordan elimination with partial pivoting.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))
            .unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in 0..n {
            if i != k {
                let factor = a[i][k] / a[k][k];
                let row = a[k].clone();
                a[i].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
                b[i] -= factor * b[k];
            }
        }
    }
    (0..n).map(|i| b[i] / a[i][i]).collect()
}

/// Returns the entry-weighted mean row of a mode, which is stored after its other rows.
fn mean_row(model: &Model, n: usize) -> Vec<f64> {
    let mode = &model.modes()[n];
    mode.factor
        .row(mode.rows.len())
        .iter()
        .map(|&x| f64::from(x))
        .collect()
}

/// Compares folded rows and biases with the minimum of the objective, computed in `f64` from the public model.
#[test]
fn folded_row_minimizes_the_objective_given_the_rest() {
    let (all, genres) = planted_ratings();
    let is_new = |j: u32| j % 9 == 4;
    for (scaling, biases) in [
        (PenaltyScaling::SqrtCount, true),
        (PenaltyScaling::Constant, false),
        (PenaltyScaling::Count, true),
    ] {
        let base = all.filtered(|x| !is_new(x[1]));
        let mut o = options(Algorithm::Blocked, ModelKind::Cp, 3);
        (o.penalty_per, o.biases, o.epochs) = (scaling, biases, 5);
        let old_genres = genres.filtered(|y| !is_new(y[0]));
        let model = fit_ratings(&base, Some(&old_genres), &o);
        // One entry has an unknown user.
        let mut more = all.filtered(|x| is_new(x[1]));
        more.dims[0] = 1000;
        more.push(&[999, 13, 2], 104.0);
        let of_new = genres.filtered(|y| is_new(y[0]));
        let (after, summary) = folded_model(&model, &fold_in_input(1, Some(&more), Some(&of_new)));
        assert_eq!(
            (summary.added, summary.replaced, summary.unknown),
            (5, 0, 1)
        );
        assert_eq!(summary.entries, more.values.len() as u64);

        let deviation = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
        };
        let power = |x: f64| x.log2().round().exp2();
        let scale = power(deviation(&base.values));
        // Weights are divided by the mean square of the matrix after subtraction of the offsets.
        let matrix = &model.matrices()[0];
        let mean_square: f64 = (0..old_genres.values.len())
            .map(|i| {
                (old_genres.values[i]
                    - f64::from(matrix.offsets[old_genres.columns[1][i] as usize]))
                .powi(2)
            })
            .sum::<f64>()
            / old_genres.values.len() as f64;
        let row = |n: usize, index: u32| -> (Vec<f64>, f64) {
            let mode = &model.modes()[n];
            match mode.rows.compact(index) {
                Some(i) => (
                    mode.factor
                        .row(i as usize)
                        .iter()
                        .map(|&x| f64::from(x))
                        .collect(),
                    mode.biases.get(i as usize).map_or(0.0, |&b| f64::from(b)),
                ),
                None => (mean_row(&model, n), 0.0),
            }
        };
        for j in (0..45).filter(|&j| is_new(j)) {
            let rank = 3;
            let size = rank + 1;
            let (mut a, mut b) = (vec![vec![0.0; size]; size], vec![0.0; size]);
            let mut count = 0.0;
            for i in (0..more.values.len()).filter(|&i| more.columns[1][i] == j) {
                let (u, bu) = row(0, more.columns[0][i]);
                let (w, bw) = row(2, more.columns[2][i]);
                let mut d: Vec<f64> = (0..rank)
                    .map(|k| u[k] * w[k] * f64::from(model.core()[k]) / scale)
                    .collect();
                d.push(if biases { 1.0 / scale } else { 0.0 });
                let r = (more.values[i] - model.mean() - bu - bw) / scale;
                for s in 0..size {
                    b[s] += d[s] * r;
                    (0..size).for_each(|t| a[s][t] += d[s] * d[t]);
                }
                count += 1.0;
            }
            for k in 0..6usize {
                let v: Vec<f64> = matrix.factor.row(k).iter().map(|&x| f64::from(x)).collect();
                let y = of_new.filtered(|y| y == [j, k as u32]).values[0]
                    - f64::from(matrix.offsets[k]);
                for s in 0..rank {
                    b[s] += 1.3 / mean_square * v[s] * y;
                    (0..rank).for_each(|t| a[s][t] += 1.3 / mean_square * v[s] * v[t]);
                }
            }
            let penalty_factor = match scaling {
                PenaltyScaling::Constant => 1.0,
                PenaltyScaling::SqrtCount => f64::sqrt(count),
                PenaltyScaling::Count => count,
            };
            (0..rank).for_each(|s| a[s][s] += 0.7 * penalty_factor);
            a[rank][rank] += if biases {
                model.options().lambda_bias[1] / (scale * scale)
            } else {
                1.0
            };
            let expected = solve(a, b);
            let mode = &after.modes()[1];
            let at = mode.rows.compact(j).unwrap() as usize;
            for (got, expected) in mode.factor.row(at).iter().zip(&expected) {
                assert!(
                    (f64::from(*got) - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                    "{j}"
                );
            }
            if biases {
                let got = f64::from(mode.biases[at]);
                assert!(
                    (got - expected[rank]).abs() < 1e-3 * (1.0 + expected[rank].abs()),
                    "{got} {expected:?}"
                );
            }
            assert_eq!(mode.counts[at], count as u64);
        }
        // Predictions for known rows and for unknown rows do not change.
        let mut positions = base.clone();
        positions.push(&[7, 44_000, 1], 0.0);
        positions.dims[1] = 50_000;
        assert_eq!(
            predictions(&model, &positions),
            predictions(&after, &positions)
        );
    }
}

/// After a long `als` every row minimizes the objective, also after orthogonalization.
#[test]
fn folding_in_a_trained_row_recovers_it() {
    let (all, listed) = planted_ratings();
    for (kind, rank, nonneg, matrix) in [
        (ModelKind::Tucker, 3, false, MatrixKind::Observed),
        (ModelKind::Cp, 3, false, MatrixKind::Observed),
        (ModelKind::Tucker, 2, true, MatrixKind::Observed),
        (ModelKind::Tucker, 3, false, MatrixKind::Full),
        (ModelKind::Cp, 3, false, MatrixKind::Full),
    ] {
        let mut genres = listed.clone();
        if matrix == MatrixKind::Full {
            // A full matrix has only the ones as entries.
            let high = |y: &[u32]| listed.values[(y[0] * 6 + y[1]) as usize] > 2.5;
            genres = listed.filtered(high);
            genres.values.fill(1.0);
        }
        let mut o = options(Algorithm::Als, kind, rank);
        (o.epochs, o.nonneg, o.eval_every) = (if nonneg { 800 } else { 300 }, nonneg, 1000);
        (o.orthogonal, o.threads) = (true, 1);
        let model = fit_with_matrix(&all, Some((&genres, matrix)), &o);
        assert_eq!(model.is_orthogonal(), kind == ModelKind::Tucker && !nonneg);
        for mode in 0..3 {
            let is_folded = |i: u32| i % 4 == 1;
            let entries = all.filtered(|x| is_folded(x[mode]));
            let of_rows = genres.filtered(|y| is_folded(y[0]));
            let mut input =
                fold_in_input(mode, Some(&entries), Some(&of_rows).filter(|_| mode == 1));
            input.replace = true;
            let (again, summary) = folded_model(&model, &input);
            assert_eq!((summary.added, summary.replaced > 0), (0, true));
            let (a, b) = (predictions(&model, &entries), predictions(&again, &entries));
            let off = a
                .iter()
                .zip(&b)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(off < 0.05, "{kind:?} {mode} {nonneg} {matrix}: {off}");
        }
    }
}

/// Sampled rows are reproducible, do not affect other rows, and have predictive intervals with the nominal coverage.
#[test]
fn each_posterior_sample_gets_its_own_row() {
    let (all, genres) = planted_ratings();
    let is_new = |x: &[u32]| x[0] % 5 == 2;
    let is_held_out = |x: &[u32]| hash_unit(u64::from(x[0] * 64 + x[1])) < 0.3;
    let base = all.filtered(|x| !is_new(x));
    let given = all.filtered(|x| is_new(x) && !is_held_out(x));
    let queried = all.filtered(|x| is_new(x) && is_held_out(x));
    for kind in [ModelKind::Cp, ModelKind::Tucker] {
        let mut o = options(Algorithm::Gibbs, kind, 3);
        (o.samples, o.burn_in) = (40, 10);
        let model = fit_ratings(&base, Some(&genres), &o);
        let (after, _) = folded_model(&model, &fold_in_input(0, Some(&given), None));
        for threads in [2, 3, 7] {
            let input = FoldIn {
                threads,
                ..fold_in_input(0, Some(&given), None)
            };
            let again = folded_model(&model, &input).0;
            assert_eq!(predictions(&after, &queried), predictions(&again, &queried));
        }
        // Folding in one row gives the same row as folding in all.
        let (mut one, mut rest) = (Entries::new(&given.dims), Entries::new(&given.dims));
        for i in 0..given.values.len() {
            let to = if given.columns[0][i] == 7 {
                &mut one
            } else {
                &mut rest
            };
            to.push(&given.index(i), given.values[i]);
        }
        let first = folded_model(&model, &fold_in_input(0, Some(&one), None)).0;
        let positions = queried.filtered(|x| x[0] == 7);
        assert!(!positions.values.is_empty());
        assert_eq!(
            predictions(&first, &positions),
            predictions(&after, &positions)
        );
        assert_eq!(predictions(&model, &base), predictions(&after, &base));

        let scratch = Scratch::new(&format!("fold-{kind:?}"));
        save(&after, scratch.join("m.s3m")).unwrap();
        let loaded = load(scratch.join("m.s3m"), OpenMode::Mapped).unwrap();
        assert_eq!(
            predictions(&loaded, &queried),
            predictions(&after, &queried)
        );
        let (mut inside, mut count) = (0, 0);
        predict_intervals(
            &loaded,
            &queried.view(),
            &[0.05, 0.95],
            &PredictOptions {
                clip: false,
                threads: 2,
            },
            &(),
            |range, intervals| {
                for (i, s) in range.zip(intervals) {
                    count += 1;
                    inside +=
                        usize::from((s.quantiles[0]..=s.quantiles[1]).contains(&queried.values[i]));
                }
                Ok(())
            },
        )
        .unwrap();
        let coverage = inside as f64 / count as f64;
        assert!(
            (0.8..=0.97).contains(&coverage),
            "{kind:?} {coverage} of {count}"
        );
        let full = fit_ratings(
            &all.filtered(|x| !(is_new(x) && is_held_out(x))),
            Some(&genres),
            &o,
        );
        let (a, b) = (rmse(&after, &queried), rmse(&full, &queried));
        assert!(a < 1.08 * b, "{kind:?} {a} {b}");
        assert!(rmse(&model, &queried) > 1.5 * b);
    }
}

/// Asserts that a fold-in was rejected with a message that contains all of `words`.
fn assert_rejected(result: Result<(Model, FoldSummary)>, words: &[&str]) {
    let text = match result {
        Err(Error::Cancelled) | Ok(_) => panic!("not rejected: {words:?}"),
        Err(e) => e.to_string(),
    };
    for word in words {
        assert!(text.contains(word), "{text:?} lacks {word:?}");
    }
}

#[test]
fn invalid_fold_in_requests_are_rejected() {
    let (all, genres) = planted_ratings();
    let mut o = options(Algorithm::Blocked, ModelKind::Cp, 3);
    o.epochs = 2;
    let base = all.filtered(|x| x[1] != 13);
    let model = fit_ratings(&base, Some(&genres), &o);
    let more = all.filtered(|x| x[1] == 13);
    let try_with = |input: &FoldIn<'_>| fold_in(&model, input, &());
    // Film 13 has genres but no ratings: it can be folded in without `replace`.
    let (after, summary) = folded_model(&model, &fold_in_input(1, Some(&more), None));
    assert_eq!((summary.added, summary.replaced), (0, 1));
    let known = "row 14 of mode 2 is in the model already";
    assert_rejected(
        fold_in(&after, &fold_in_input(1, Some(&more), None), &()),
        &[known, "replace"],
    );
    let again = FoldIn {
        replace: true,
        ..fold_in_input(1, Some(&more), None)
    };
    assert_eq!(
        predictions(&folded_model(&after, &again).0, &more),
        predictions(&after, &more)
    );

    assert_rejected(
        try_with(&fold_in_input(3, Some(&more), None)),
        &["mode 4", "3"],
    );
    assert_rejected(
        try_with(&fold_in_input(1, Some(&genres), None)),
        &["has 2 modes", "3"],
    );
    assert_rejected(
        try_with(&fold_in_input(1, None, None)),
        &["without entries"],
    );
    assert_rejected(
        try_with(&fold_in_input(1, Some(&Entries::new(&[60, 45, 5])), None)),
        &["entries: without entries"],
    );
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let mut wrong = more.clone();
        wrong.values[2] = bad;
        assert_rejected(
            try_with(&fold_in_input(1, Some(&wrong), None)),
            &["entry 3", "finite"],
        );
        let mut wrong = genres.filtered(|y| y[0] == 13);
        wrong.values[1] = bad;
        assert_rejected(
            try_with(&fold_in_input(1, None, Some(&wrong))),
            &["entry 2", "finite"],
        );
    }
    let mut beyond = more.clone();
    beyond.columns[2][0] = 5;
    assert_rejected(
        try_with(&fold_in_input(1, Some(&beyond), None)),
        &["entry 1", "mode 3"],
    );
    assert_rejected(
        try_with(&fold_in_input(0, None, Some(&genres))),
        &["coupled to mode 2"],
    );
    let mut twice = fold_in_input(1, None, Some(&genres));
    twice
        .matrices
        .extend(fold_in_input(1, None, Some(&genres)).matrices);
    assert_rejected(try_with(&twice), &["given twice"]);
    twice.matrices.truncate(1);
    twice.matrices[0].number = 4;
    assert_rejected(try_with(&twice), &["matrix 5", "has 1"]);
    twice.matrices[0].number = 0;
    twice.matrices[0].weight = Some(-1.0);
    assert_rejected(try_with(&twice), &["weight of -1"]);
    let matrix = |x: &Entries| Problem::builder(x.view()).build(&()).unwrap().count();
    assert!(matrix(&more) > 0);

    let mut l1 = o.clone();
    l1.penalty = Penalty::L1;
    assert_rejected(
        fold_in(
            &fit_ratings(&base, None, &l1),
            &fold_in_input(1, Some(&more), None),
            &(),
        ),
        &["l1"],
    );
    let problem = Problem::builder(base.view());
    let graph = Entries {
        dims: vec![45, 45],
        columns: vec![vec![0, 1], vec![1, 2]],
        values: vec![1.0, 1.0],
    };
    let problem = problem
        .matrix(1, graph.view(), 1.0, MatrixKind::Graph)
        .build(&())
        .unwrap();
    let linked = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &())
        .unwrap()
        .0;
    assert_rejected(
        fold_in(&linked, &fold_in_input(1, None, Some(&graph)), &()),
        &["graph"],
    );
}

/// A row with the largest index needs no memory for the rows before it. One entry, also a duplicate one, is enough.
#[test]
fn rows_with_distant_indices_and_few_entries_are_folded_in() {
    let (all, genres) = planted_ratings();
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let mut o = options(algorithm, ModelKind::Cp, 3);
        (o.epochs, o.samples) = (5, 4);
        let model = fit_ratings(&all, Some(&genres), &o);
        let far = u32::MAX - 1;
        let mut one = Entries::new(&[u64::from(u32::MAX), 45, 5]);
        one.push(&[far, 3, 1], 112.0);
        let (after, summary) = folded_model(&model, &fold_in_input(0, Some(&one), None));
        assert_eq!((summary.added, after.modes()[0].rows.len()), (1, 61));
        assert_eq!(after.dims()[0], u64::from(u32::MAX));
        assert!(predictions(&after, &one)[0] > predictions(&model, &one)[0]);
        one.push(&[far, 3, 1], 112.0);
        let (again, _) = folded_model(&model, &fold_in_input(0, Some(&one), None));
        assert_eq!(again.modes()[0].counts[60], 2);
        assert!(predictions(&again, &one)[0] != predictions(&after, &one)[0]);
    }
}

/// Rows with only matrix entries are solved from them, in training and by fold-in, and predict better than biases. Rows
/// without any entries use the mean row and the mean bias.
#[test]
fn rows_without_tensor_entries_are_solved_from_matrices() {
    let (all, genres) = planted_ratings();
    let is_new = |j: u32| j % 6 == 1;
    let base = all.filtered(|x| !is_new(x[1]));
    let queried = all.filtered(|x| is_new(x[1]));
    for algorithm in [Algorithm::Blocked, Algorithm::Als, Algorithm::Gibbs] {
        let mut o = options(algorithm, ModelKind::Cp, 3);
        (o.epochs, o.samples) = (40, 30);
        let trained = fit_ratings(&base, Some(&genres), &o);
        let without = fit_ratings(&base, None, &o);
        let folded = fit_ratings(&base, Some(&genres.filtered(|y| !is_new(y[0]))), &o);
        let of_new = genres.filtered(|y| is_new(y[0]));
        let (folded, summary) = folded_model(&folded, &fold_in_input(1, None, Some(&of_new)));
        assert_eq!((summary.added, summary.without_entries), (8, 8));
        let (a, b, c) = (
            rmse(&trained, &queried),
            rmse(&folded, &queried),
            rmse(&without, &queried),
        );
        println!("{algorithm:?}: in training {a}, folded in {b}, without {c}");
        assert!(a < 0.85 * c && b < 0.85 * c, "{algorithm:?} {a} {b} {c}");
        if algorithm == Algorithm::Gibbs {
            continue;
        }
        let mut position = Entries::new(&[60, 45, 5]);
        position.push(&[4, 1, 2], 0.0);
        let bias = |n: usize, i: usize| f64::from(without.modes()[n].biases[i]);
        let mean: f64 = (0..3)
            .map(|k| {
                let row = |n: usize, i: usize| f64::from(without.modes()[n].factor.row(i)[k]);
                f64::from(without.core()[k]) * row(0, 4) * mean_row(&without, 1)[k] * row(2, 2)
            })
            .sum();
        // A film without any entries has the mean bias.
        let mean_bias = without.modes()[1].biases.len() - 1;
        let expected = without.mean() + bias(0, 4) + bias(1, mean_bias) + bias(2, 2) + mean;
        assert!((predictions(&without, &position)[0] - expected).abs() < 1e-3);
    }
}
