//! Any problem that is accepted fits one epoch: the result is an error or a finite model that can be saved.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use proptest::array::uniform8;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use s3cmtf::Result;
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::Options;
use s3cmtf::predict::{PredictOptions, predict_at, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem, ProblemBuilder};
use s3cmtf::simd::Level;
use s3cmtf::solver::{FitInput, fit};

use super::{Entries, Floats, Form, check, finite_values, value_kinds, weights};
use crate::common::Scratch;
use crate::common::planted::parameter_bits;

/// A coupled matrix or graph.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    pub(super) mode: usize,
    pub(super) kind: MatrixKind,
    pub(super) entries: Entries,
    pub(super) weight: Option<f64>,
    pub(super) penalty: Option<f64>,
}

/// A tensor with matrices.
#[derive(Debug, Clone)]
pub(super) struct RandomProblem {
    pub(super) tensor: Entries,
    pub(super) matrices: Vec<Matrix>,
}

impl RandomProblem {
    pub(super) fn builder(&self) -> ProblemBuilder<'_> {
        let mut builder = Problem::builder(self.tensor.view());
        for matrix in &self.matrices {
            let view = matrix.entries.view();
            builder = builder.matrix(matrix.mode, view, matrix.weight, matrix.kind);
            if let Some(penalty) = matrix.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder
    }
}

/// Values of one tensor or matrix: equal, of a usual scale, or of any magnitude.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let magnitude = select(&[1e-44, 1e-30, 1e-3, 1.0, 1e3, 1e18, 1e30, 3e38][..]);
    prop_oneof![
        3 => vec(-5.0..5.0f64, 8),
        2 => vec((0..6i32).prop_map(f64::from), 8),
        1 => finite_values().prop_map(|x| vec![x; 8]),
        1 => (magnitude, vec(-1.0..1.0f64, 8)).prop_map(|(size, v)| v.iter().map(|x| x * size).collect()),
        1 => vec(finite_values(), 8),
    ]
}

/// Entries whose values are among a few.
fn small_entries(
    dims: BoxedStrategy<Vec<u64>>,
    max_count: usize,
) -> impl Strategy<Value = Entries> {
    let weight_kinds = prop_oneof![4 => Just(None), 1 => value_kinds().prop_map(Some)];
    let weights = prop_oneof![3 => 0.0..4.0f64, 1 => Just(0.0), 1 => weights()];
    let tuples = vec((uniform8(any::<u32>()), 0..8usize, weights), 1..=max_count);
    let forms = (dims, any::<bool>(), value_kinds(), weight_kinds);
    (forms, values(), tuples).prop_map(
        |((dims, is_inferred, value_kind, weight_kind), values, tuples)| {
            let tuples: Vec<_> = tuples
                .into_iter()
                .map(|(index, k, weight)| (index, values[k], weight))
                .collect();
            let form = Form {
                dims,
                has_inferred_dims: is_inferred,
                value_kind,
                weight_kind,
            };
            form.entries(&tuples)
        },
    )
}

/// A matrix on one of the modes of a tensor with these sizes. Most are accepted.
fn matrices(dims: Vec<u64>) -> impl Strategy<Value = Matrix> {
    let kinds = prop_oneof![
        Just(MatrixKind::Observed),
        Just(MatrixKind::Auto),
        Just(MatrixKind::Full),
        (1..4u32).prop_map(MatrixKind::Sampled),
        Just(MatrixKind::Graph),
    ];
    let forms = (0..dims.len(), 1..6u64, kinds);
    let weights = option::of(prop_oneof![
        0.0..10.0f64,
        Just(0.0),
        Just(1e-20),
        Just(1e20)
    ]);
    let penalties = option::weighted(0.2, 0.0..10.0f64);
    (forms, weights, penalties).prop_flat_map(move |((mode, width, kind), weight, penalty)| {
        let dims = match kind {
            MatrixKind::Graph => vec![dims[mode]; 2],
            _ => vec![dims[mode], width],
        };
        small_entries(Just(dims).boxed(), 12).prop_map(move |mut entries| {
            match kind {
                MatrixKind::Graph => make_non_negative(&mut entries),
                MatrixKind::Full | MatrixKind::Sampled(_) => remove_duplicates(&mut entries),
                MatrixKind::Observed | MatrixKind::Auto => {}
            }
            Matrix {
                mode,
                kind,
                entries,
                weight,
                penalty,
            }
        })
    })
}

fn make_non_negative(entries: &mut Entries) {
    match &mut entries.values {
        super::Floats::F32(values) => values.iter_mut().for_each(|x| *x = x.abs()),
        super::Floats::F64(values) => values.iter_mut().for_each(|x| *x = x.abs()),
    }
}

/// Removes weights, and entries at positions that occurred before.
pub(super) fn remove_duplicates(entries: &mut Entries) {
    entries.weights = None;
    let position = |i: usize| -> Vec<u32> { entries.columns.iter().map(|c| c[i]).collect() };
    let is_first = |&i: &usize| (0..i).all(|earlier| position(earlier) != position(i));
    let kept: Vec<usize> = (0..entries.len()).filter(is_first).collect();
    *entries = entries.select(&kept);
}

fn problems() -> impl Strategy<Value = RandomProblem> {
    let dim = prop_oneof![4 => 1..7u64, 1 => 1..2000u64];
    let tensors = small_entries(vec(dim, 2..=5).boxed(), 30);
    tensors.prop_flat_map(|tensor| {
        let matrices = vec(matrices(tensor.dims.clone()), 0..3);
        (Just(tensor), matrices).prop_map(|(tensor, matrices)| RandomProblem { tensor, matrices })
    })
}

/// Options of a fit of one epoch, as text. Most are accepted.
fn fit_options() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    fn one_of(
        name: &'static str,
        values: &'static [&'static str],
    ) -> BoxedStrategy<(&'static str, String)> {
        select(values)
            .prop_map(move |value| (name, value.to_string()))
            .boxed()
    }
    let levels: Vec<&str> = Level::ALL
        .iter()
        .filter(|l| l.is_available())
        .map(|l| l.name())
        .collect();
    let ranks = prop_oneof![
        1 => Just("auto".to_string()),
        4 => (1..5usize).prop_map(|rank| rank.to_string()),
        1 => vec((1..4usize).prop_map(|rank| rank.to_string()), 2..=5).prop_map(|ranks| ranks.join(",")),
    ];
    vec![
        one_of("algorithm", &["blocked", "opt", "naive", "als", "gibbs"]),
        one_of("model", &["auto", "tucker", "cp"]),
        ranks.prop_map(|ranks| ("rank", ranks)).boxed(),
        one_of("epochs", &["1"]),
        one_of("eta", &["auto", "auto", "0.001", "0.1", "1e20"]),
        one_of("schedule", &["square", "inverse"]),
        one_of("core_step", &["auto", "0", "1"]),
        one_of("mean", &["true", "false"]),
        one_of("biases", &["true", "false"]),
        one_of("lambda_bias", &["auto", "0", "3"]),
        one_of("lambda_reg", &["auto", "auto", "0", "0.5", "1e6"]),
        one_of("penalty_per", &["row", "root", "entry"]),
        one_of("lambda_m", &["auto", "0", "1", "10"]),
        one_of("penalty", &["l2", "l2", "l2", "l1"]),
        one_of("start", &["auto", "drawn", "identity", "paper", "normal"]),
        one_of("nonneg", &["false", "false", "false", "true"]),
        one_of("orthogonal", &["true", "false"]),
        one_of("clip", &["auto", "true", "false"]),
        one_of("burn_in", &["0", "1"]),
        one_of("samples", &["1", "2"]),
        one_of("valid_fraction", &["0", "0", "0", "0.3"]),
        one_of("threads", &["1", "1", "1", "2"]),
        one_of("pin", &["false"]),
        select(levels)
            .prop_map(|level| ("kernel", level.to_string()))
            .boxed(),
        any::<u64>()
            .prop_map(|seed| ("seed", seed.to_string()))
            .boxed(),
    ]
}

fn fit_problem(problem: &RandomProblem, options: &[(&str, String)]) -> Result<Model> {
    let mut o = Options::default();
    for (name, value) in options {
        o.set(name, value)?;
    }
    let problem = problem.builder().seed(o.seed).build(&())?;
    Ok(fit(&problem, &o, &FitInput::default(), &mut (), &())?.0)
}

/// Asserts that every parameter is finite.
fn check_parameters(model: &Model) {
    let is_finite = |values: &[f32]| values.iter().all(|x| x.is_finite());
    assert!(is_finite(model.core()) && model.mean().is_finite());
    for mode in model.modes() {
        assert!(is_finite(mode.factor.as_slice()) && is_finite(&mode.biases));
    }
    for matrix in model.matrices() {
        assert!(is_finite(matrix.factor.as_slice()) && is_finite(&matrix.offsets));
    }
    for sample in model.samples().into_iter().flat_map(|s| s.iter()) {
        assert!(sample.noise_deviation.is_finite() && is_finite(&sample.core));
    }
}

/// Values above it may have predictions beyond the range of `f32`, which are errors.
const NEAR_F32_LIMIT: f64 = 1e37;

/// Returns predictions at the entries, all of which are finite, and at cells that may have rows without entries.
fn predictions(model: &Model, entries: &Entries) -> (Vec<u64>, Option<Vec<u64>>) {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    let bits = |values: &[f64]| -> Vec<u64> {
        assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
        values.iter().map(|x| x.to_bits()).collect()
    };
    let options = PredictOptions {
        clip: model.clips(),
        threads: 1,
    };
    let at_entries = predict_entries(model, &entries.view(), &options, &(), |_, values| {
        known.extend(bits(values));
        Ok(())
    });
    if let Err(e) = at_entries {
        let values = entries.values.values();
        let is_near_limit = (0..values.len()).any(|i| values.get(i).abs() > NEAR_F32_LIMIT);
        assert!(is_near_limit, "{e}");
    }
    let write_cells = |cells: std::ops::Range<usize>, to: &mut [u32]| {
        for (i, index) in cells.zip(to.chunks_exact_mut(entries.order())) {
            let row = |n: usize| [i as u32, (i / (n + 1)) as u32, u32::MAX - 1][(i + n) % 3];
            index
                .iter_mut()
                .enumerate()
                .for_each(|(n, place)| *place = row(n));
        }
    };
    // Products of huge rows that never met may overflow, which is an error.
    let at_cells = predict_at(model, 20, write_cells, &options, &(), |_, values| {
        unknown.extend(bits(values));
        Ok(())
    });
    (known, at_cells.ok().map(|()| unknown))
}

/// Returns the bits of the mean, the biases and the offsets of matrix columns.
fn baseline_bits(model: &Model) -> (u64, Vec<u32>) {
    let biases = model.modes().iter().map(|mode| &mode.biases);
    let offsets = model.matrices().iter().map(|matrix| &matrix.offsets);
    let all = biases.chain(offsets).flatten();
    (model.mean().to_bits(), all.map(|x| x.to_bits()).collect())
}

/// Saves a model and loads it: parameters and predictions are the same, and so is the file of the loaded model.
fn check_saved(model: &Model, entries: &Entries, folder: &Path) {
    let [first, second] = ["first.s3m", "second.s3m"].map(|name| folder.join(name));
    model::save(model, &first).unwrap();
    for mode in [OpenMode::Mapped, OpenMode::Private] {
        let loaded = model::load(&first, mode).unwrap();
        assert_eq!(parameter_bits(&loaded), parameter_bits(model));
        assert_eq!(baseline_bits(&loaded), baseline_bits(model));
        assert_eq!(predictions(&loaded, entries), predictions(model, entries));
        assert_eq!(loaded.options(), model.options());
        model::save(&loaded, &second).unwrap();
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    }
}

#[test]
fn accepted_problems_fit_an_epoch_and_give_finite_models_that_survive_saving() {
    let scratch = Scratch::new("properties-fits");
    let (count, fitted) = (Cell::new(0), Cell::new(0));
    check(200, (problems(), fit_options()), |(problem, options)| {
        count.set(count.get() + 1);
        let Ok(model) = fit_problem(&problem, &options) else {
            return;
        };
        fitted.set(fitted.get() + 1);
        check_parameters(&model);
        check_saved(&model, &problem.tensor, scratch.path());
    });
    // A property of errors alone would say nothing.
    let (count, fitted) = (count.get(), fitted.get());
    assert!(3 * fitted > count, "{fitted} of {count} were accepted");
}

/// Standardized values of these entries have a finite model; in the scale of the data its core overflows.
#[test]
fn differences_of_values_that_no_32_bit_number_holds_are_an_error() {
    let tensor = Entries {
        dims: vec![2, 3],
        has_inferred_dims: true,
        columns: vec![
            vec![
                1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0,
            ],
            vec![
                0, 1, 2, 1, 2, 0, 1, 0, 0, 1, 1, 2, 1, 2, 0, 2, 1, 0, 0, 2, 1, 0, 0, 0,
            ],
        ],
        values: Floats::F64(vec![
            -2.961433153965852e38,
            -7.714285090965299e37,
            1.7436836800054122e38,
            2.2074329724985216e38,
            -2.961433153965852e38,
            -2.961433153965852e38,
            2.2074329724985216e38,
            -6.782606971043008e37,
            -2.961433153965852e38,
            -1.8963274120528903e38,
            2.2074329724985216e38,
            1.7436836800054122e38,
            -2.961433153965852e38,
            -1.8963274120528903e38,
            1.7436836800054122e38,
            1.9082881343146863e38,
            1.9082881343146863e38,
            1.9082881343146863e38,
            -6.782606971043008e37,
            1.7436836800054122e38,
            2.2074329724985216e38,
            -6.782606971043008e37,
            1.9082881343146863e38,
            -6.782606971043008e37,
        ]),
        weights: None,
    };
    let matrix = Matrix {
        mode: 1,
        kind: MatrixKind::Full,
        entries: Entries {
            dims: vec![3, 5],
            has_inferred_dims: false,
            columns: vec![vec![2, 0], vec![0, 0]],
            values: Floats::F32(vec![f32::MAX, f32::MIN]),
            weights: None,
        },
        weight: Some(1e-20),
        penalty: None,
    };
    let problem = RandomProblem {
        tensor,
        matrices: vec![matrix],
    };
    let options = [
        ("algorithm", "als"),
        ("model", "auto"),
        ("rank", "1"),
        ("epochs", "1"),
        ("eta", "0.1"),
        ("schedule", "square"),
        ("core_step", "auto"),
        ("mean", "true"),
        ("biases", "false"),
        ("lambda_reg", "0"),
        ("penalty_per", "entry"),
        ("lambda_m", "1"),
        ("penalty", "l2"),
        ("start", "auto"),
        ("orthogonal", "true"),
        ("threads", "1"),
        ("pin", "false"),
        ("kernel", "wide"),
        ("seed", "8115732256617775670"),
    ];
    let options = options.map(|(name, value)| (name, value.to_string()));
    let message = fit_problem(&problem, &options).err().unwrap().to_string();
    assert!(
        message.contains("exceeds the range of 32-bit numbers"),
        "{message}"
    );
}
