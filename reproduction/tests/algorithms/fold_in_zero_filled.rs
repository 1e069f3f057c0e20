//! Fold-in into models of zero-filled data: cells without an entry are 0, as in the fit.

use crate::common::in_memory::{
    Entries, fit_with_matrix, fold_in_input, folded_model, options, planted_ratings, predictions,
};
use crate::support::*;
use s3cmtf::Error;
use s3cmtf::kernel::CoreKind;
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, Options, PenaltyScaling};
use s3cmtf::problem::MatrixKind;
use s3cmtf::solver::{FoldIn, fold_in};

/// Weight of the matrix of [`fit_with_matrix`].
const MATRIX_WEIGHT: f64 = 1.3;

const PENALTY: f64 = 0.7;

fn zero_filled(algorithm: Algorithm, epochs: u64) -> Options {
    let kind = algorithm.only_model().unwrap();
    let mut o = options(algorithm, kind, 3);
    o.epochs = epochs;
    if algorithm == CMTF_OPT {
        set(&mut o, "unobserved", Unobserved::Zeros.name());
    }
    (o.start, o.lambda_reg, o.penalty_per) = (
        Initialization::Normal,
        Some(PENALTY),
        PenaltyScaling::SqrtCount,
    );
    o
}

/// The planted ratings less most of their mean, and genres, of which half the cells are listed.
fn ratings_and_genres() -> (Entries, Entries) {
    let (mut ratings, genres) = planted_ratings();
    ratings.values.iter_mut().for_each(|x| *x -= 90.0);
    (ratings, genres.filtered(|y| (y[0] + y[1]) % 2 == 0))
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

/// Returns d of a cell by the row of mode `n`: the core times the rows of the other modes.
fn derivative(model: &Model, n: usize, cell: &[u32]) -> Vec<f64> {
    let ranks = model.shape().ranks();
    let row = |m: usize| {
        let modes = model.modes();
        wide(modes[m].factor.row(model.row_of(m, cell[m]) as usize))
    };
    let rows: Vec<Vec<f64>> = (0..ranks.len()).map(row).collect();
    let core = model.shape().dense_core(model.core()).unwrap();
    let mut d = vec![0.0; ranks[n]];
    for (at, &g) in core.iter().enumerate() {
        let mut rest = at;
        let mut index = vec![0; ranks.len()];
        for m in (0..ranks.len()).rev() {
            (index[m], rest) = (rest % ranks[m], rest / ranks[m]);
        }
        let others = (0..ranks.len()).filter(|m| *m != n);
        d[index[n]] += f64::from(g) * others.map(|m| rows[m][index[m]]).product::<f64>();
    }
    d
}

/// Returns the gradient of the objective by the row of index `i` of mode `n`, summed over all cells, and the sum of the
/// absolute values of its terms.
fn gradient(
    model: &Model,
    n: usize,
    i: u32,
    (tensor, genres): (&Entries, Option<&Entries>),
    penalty: f64,
) -> [Vec<f64>; 2] {
    let u = wide(model.modes()[n].factor.row(model.row_of(n, i) as usize));
    let [mut sum, mut size] = [vec![0.0; u.len()], vec![0.0; u.len()]];
    let mut add = |x: f64, d: &[f64]| {
        let predicted: f64 = d.iter().zip(&u).map(|(d, u)| d * u).sum();
        for (k, d) in d.iter().enumerate() {
            sum[k] += (predicted - x) * d;
            size[k] += (predicted.abs() + x.abs()) * d.abs();
        }
    };
    let of_row = tensor.filtered(|cell| cell[n] == i);
    let mut cells = vec![Vec::new()];
    for m in 0..3 {
        let indices = match m == n {
            true => i..i + 1,
            false => 0..tensor.dims[m] as u32,
        };
        let extend = |cell: &Vec<u32>| {
            let cell = cell.clone();
            indices
                .clone()
                .map(move |j| [cell.clone(), vec![j]].concat())
        };
        cells = cells.iter().flat_map(extend).collect();
    }
    for cell in cells {
        let entries = (0..of_row.values.len()).filter(|&e| of_row.index(e) == cell);
        add(
            entries.map(|e| of_row.values[e]).sum(),
            &derivative(model, n, &cell),
        );
    }
    if let Some(genres) = genres {
        let matrix = &model.matrices()[0];
        for k in 0..genres.dims[1] as u32 {
            let entries = (0..genres.values.len()).filter(|&e| genres.index(e) == [i, k]);
            let y: f64 = entries.map(|e| genres.values[e]).sum();
            let root = MATRIX_WEIGHT.sqrt();
            let v: Vec<f64> = wide(matrix.factor.row(k as usize))
                .iter()
                .map(|v| root * v)
                .collect();
            add(root * y, &v);
        }
    }
    let strength = penalty * (of_row.values.len().max(1) as f64).sqrt();
    for k in 0..u.len() {
        sum[k] += strength * u[k];
        size[k] += strength * u[k].abs();
    }
    [sum, size]
}

/// Every folded row has a gradient of zero over all of its cells, also where other rows were folded in before.
#[test]
fn folded_rows_minimize_the_objective_over_all_cells() {
    let (all, genres) = ratings_and_genres();
    for (algorithm, penalty) in [(CMTF_OPT, PENALTY), (TUCKER_ALS, 0.0)] {
        let o = zero_filled(algorithm, 4);
        let is_new = |cell: &[u32]| cell[0] % 7 == 3 || cell[1] % 9 == 4;
        let model = fit_with_matrix(
            &all.filtered(|x| !is_new(x)),
            Some((&genres.filtered(|y| y[0] % 9 != 4), MatrixKind::Observed)),
            &o,
        );
        assert_eq!(
            model.shape().kind() == CoreKind::Full,
            algorithm == TUCKER_ALS
        );
        let check = |model: &Model, n: usize, i: u32, data: (&Entries, Option<&Entries>)| {
            let [sum, size] = gradient(model, n, i, data, penalty);
            for (sum, size) in sum.iter().zip(&size) {
                assert!(
                    sum.abs() < 1e-6 * size,
                    "{algorithm:?} {n} {i}: {sum} {size}"
                );
            }
        };
        let users = all.filtered(|x| x[0] % 7 == 3 && x[1] % 9 != 4);
        let (model, _) = folded_model(&model, &fold_in_input(0, Some(&users), None));
        for i in (3..60).step_by(7) {
            check(&model, 0, i, (&users, None));
        }
        let films = all.filtered(|x| x[1] % 9 == 4);
        let of_films = genres.filtered(|y| y[0] % 9 == 4);
        let input = fold_in_input(1, Some(&films), Some(&of_films));
        let (extended, _) = folded_model(&model, &input);
        let input = fold_in_input(1, None, Some(&of_films));
        let (from_genres, summary) = folded_model(&model, &input);
        assert_eq!((summary.replaced, summary.without_entries), (5, 5));
        for j in (4..45).step_by(9) {
            check(&extended, 1, j, (&films, Some(&of_films)));
            let none = Entries::new(&all.dims);
            check(&from_genres, 1, j, (&none, Some(&of_films)));
        }
    }
}

/// At a minimum every row is the solution of its own equations.
#[test]
fn folding_in_a_row_of_the_fit_returns_its_predictions() {
    let (all, genres) = ratings_and_genres();
    // An L-BFGS fit ends further from its minimum.
    for (algorithm, epochs, tolerance) in [(CMTF_OPT, 600, 1e-3), (TUCKER_ALS, 200, 1e-5)] {
        for kind in [None, Some(MatrixKind::Observed), Some(MatrixKind::Full)] {
            let mut o = zero_filled(algorithm, epochs);
            o.eval_every = 1000;
            let model = fit_with_matrix(&all, kind.map(|kind| (&genres, kind)), &o);
            for n in 0..3 {
                let is_folded = |i: u32| i % 4 == 1;
                let entries = all.filtered(|x| is_folded(x[n]));
                let of_rows = genres.filtered(|y| is_folded(y[0]));
                let matrix = (n == 1 && kind.is_some()).then_some(&of_rows);
                let input = FoldIn {
                    replace: true,
                    ..fold_in_input(n, Some(&entries), matrix)
                };
                let (again, _) = folded_model(&model, &input);
                let mut cells = Entries::new(&all.dims);
                for k in 0..60 * 45 * 5 {
                    let cell = [k / 225, k / 5 % 45, k % 5];
                    if is_folded(cell[n]) {
                        cells.push(&cell, 0.0);
                    }
                }
                let [a, b] = [&model, &again].map(|model| predictions(model, &cells));
                let largest = a.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(largest > 1.0);
                let pairs = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
                let off = pairs.fold(0.0, f64::max);
                assert!(
                    off < tolerance * largest,
                    "{algorithm:?} {kind:?} {n}: {off} of {largest}"
                );
            }
        }
    }
}

/// Three ratings of a new user leave other cells near 0, and so do those of a row that no cell determines.
#[test]
fn few_entries_do_not_interpolate() {
    let (all, _) = ratings_and_genres();
    let model = fit_with_matrix(&all, None, &zero_filled(TUCKER_ALS, 30));
    let mut new = Entries::new(&[1000, 45, 5]);
    for j in 0..3 {
        new.push(&[999, 7 * j, j], 12.0);
    }
    // A film that the model does not know is a row of zeros.
    new.dims[1] = 100;
    new.push(&[998, 99, 1], 5.0);
    let (extended, summary) = folded_model(&model, &fold_in_input(0, Some(&new), None));
    assert_eq!((summary.added, summary.unknown), (2, 1));
    let mut cells = Entries::new(&[1000, 45, 5]);
    for k in 0..45 * 5 {
        cells.push(&[999, k / 5, k % 5], 0.0);
        cells.push(&[998, k / 5, k % 5], 0.0);
    }
    let found = predictions(&extended, &cells);
    // A projection is not longer than what is projected.
    let squares: f64 = found.iter().map(|x| x * x).sum();
    assert!(squares > 0.0 && squares < 3.0 * 144.0, "{squares}");
    assert!(found.iter().skip(1).step_by(2).all(|x| *x == 0.0));
}

#[test]
fn weights_are_refused() {
    let (all, _) = ratings_and_genres();
    let weights = vec![2.0; 1];
    let mut new = Entries::new(&[100, 45, 5]);
    new.push(&[80, 1, 1], 3.0);
    let weights = s3cmtf::format::Values::F64(&weights);
    for algorithm in [CMTF_OPT, TUCKER_ALS] {
        let model = fit_with_matrix(&all, None, &zero_filled(algorithm, 2));
        let input = FoldIn {
            tensor: Some(new.view().with_weights(weights).unwrap()),
            ..FoldIn::default()
        };
        let error = fold_in(&model, &input, &()).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
        assert!(error.to_string().contains("weights"), "{error}");
    }
}
