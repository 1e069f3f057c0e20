//! A small problem, short fits, and what every fitted or loaded model must do.

use std::path::{Path, PathBuf};

use s3cmtf::Result;
use s3cmtf::discover::{
    ClusterOptions, ConceptOptions, RankBy, RecommendOptions, SimilarOptions, cluster_rows,
    describe_concepts, recommend, similar_rows,
};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::model::{self, EpochMetrics, Model, ModelMatrix, ModelMode};
use s3cmtf::options::Options;
use s3cmtf::predict::{
    PredictOptions, evaluate, evaluate_distributions, predict_at, predict_intervals_at,
};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, Event, FitInput, FoldIn, FoldMatrix, Observer, fit, fold_in};

/// Largest number of core entries of a fit.
const MAX_CORE: usize = 4096;

/// Stops a fit after its first epoch.
pub struct OneEpoch;

impl Observer for OneEpoch {
    fn epoch(&mut self, _: &EpochMetrics) -> Control {
        Control::Stop
    }

    fn event(&mut self, _: &Event) {}
}

/// The columns and values of twelve entries of a 4 x 3 x 2 tensor.
const ROWS: [[u32; 12]; 3] = [
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
    [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
];
const VALUES: [f32; 12] = [1.0, 2.5, 3.0, 4.0, 5.0, 1.5, 2.0, 3.5, 4.5, 1.0, 5.0, 3.0];
const TWO_VALUES: [f32; 12] = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0];
const WEIGHTS: [f32; 12] = [1.0, 2.0, 0.5, 1.0, 1.5, 1.0, 3.0, 1.0, 0.25, 1.0, 1.0, 2.0];

/// The data of a fit, as the option `seed` chooses it: a model says by its options what it was fitted to.
#[derive(Clone, Copy, PartialEq)]
enum SampleData {
    /// The tensor with an observed matrix on its second mode.
    Observed,
    /// The tensor alone.
    Tensor,
    /// The tensor with an observed and a full matrix.
    Full,
    /// The tensor with matrices of all kinds and a graph.
    AllKinds,
    /// The same, with weights where they are allowed.
    Weighted,
    /// The same, with two values in the tensor.
    TwoValues,
}

impl SampleData {
    fn of(options: &Options) -> SampleData {
        match options.seed {
            1 => SampleData::Tensor,
            2 => SampleData::Full,
            3 => SampleData::AllKinds,
            4 => SampleData::Weighted,
            5 => SampleData::TwoValues,
            _ => SampleData::Observed,
        }
    }
}

/// Calls `work` with the data that the options choose.
pub fn with_problem<T>(options: &Options, work: impl FnOnce(&Problem<'_>) -> T) -> T {
    let data = SampleData::of(options);
    let values = match data {
        SampleData::TwoValues => &TWO_VALUES,
        _ => &VALUES,
    };
    let mut tensor = tensor_view(values);
    let mut observed = matrix_view("y", &[3, 2], &[&[0, 1, 2, 2], &[0, 1, 0, 1]]);
    let mut graph = matrix_view("g", &[4, 4], &[&[0, 1, 2], &[1, 2, 3]]);
    if data == SampleData::Weighted {
        tensor = tensor.with_weights(Values::F32(&WEIGHTS)).unwrap();
        observed = observed.with_weights(Values::F32(&WEIGHTS[..4])).unwrap();
        graph = graph.with_weights(Values::F32(&WEIGHTS[..3])).unwrap();
    }
    let mut builder = Problem::builder(tensor);
    if data != SampleData::Tensor {
        builder = builder.matrix(1, observed, None, MatrixKind::Observed);
    }
    if !matches!(data, SampleData::Tensor | SampleData::Observed) {
        let full = matrix_view("f", &[4, 3], &[&[0, 1, 3], &[2, 0, 1]]);
        builder = builder.matrix(0, full, None, MatrixKind::Full);
    }
    if !matches!(
        data,
        SampleData::Tensor | SampleData::Observed | SampleData::Full
    ) {
        let sampled = matrix_view("s", &[2, 3], &[&[0, 1], &[2, 0]]);
        builder = builder.matrix(2, sampled, None, MatrixKind::Sampled(1));
        builder = builder.matrix(0, graph, None, MatrixKind::Graph);
    }
    work(&builder.build(&()).unwrap())
}

fn tensor_view(values: &[f32; 12]) -> CooView<'_> {
    let [a, b, c] = &ROWS;
    CooView::new("x", &[4, 3, 2], &[a, b, c], Values::F32(values)).unwrap()
}

fn matrix_view<'a>(name: &str, dims: &[u64], columns: &[&'a [u32]; 2]) -> CooView<'a> {
    const VALUES: [f32; 4] = [1.0, 0.5, 2.0, 1.0];
    let values = Values::F32(&VALUES[..columns[0].len()]);
    CooView::new(name, dims, columns, values).unwrap()
}

/// Limits options to what a fit of a few entries can do in milliseconds on one thread.
pub fn limit(options: &mut Options, order: usize) {
    options.threads = options.threads.clamp(1, 2);
    // Concurrent fuzzers would share one core.
    options.pin = false;
    let product = match options.rank[..] {
        [] => Some(1),
        [rank] => rank.checked_pow(order as u32),
        ref ranks => ranks.iter().try_fold(1usize, |p, &r| p.checked_mul(r)),
    };
    if product.is_none_or(|p| p > MAX_CORE) {
        options.rank = vec![2];
    }
}

/// Fits the sample problem with options of the form `name=value` and returns the model.
pub fn fit_sample(options: &str, input: &FitInput<'_>) -> Result<Model> {
    let mut options = Options::from_text(options)?;
    limit(&mut options, 3);
    with_problem(&options, |problem| {
        Ok(fit(problem, &options, input, &mut OneEpoch, &())?.0)
    })
}

/// Options of fits to the default data, from which files are made, each with a name.
pub const PLAIN_OPTIONS: [(&str, &str); 7] = [
    ("default", "rank=2\nepochs=2\nstart=identity"),
    ("cp", "model=cp\nrank=3\nepochs=1\nstart=normal"),
    (
        "paper",
        "rank=2,1,2\nmean=false\nbiases=false\northogonal=false\nstart=paper\nepochs=1",
    ),
    (
        "als",
        "algorithm=als\nrank=2\nepochs=1\nstart=identity\nclip=true",
    ),
    ("gibbs", "algorithm=gibbs\nrank=2\nburn_in=0\nsamples=2"),
    (
        "gibbs-cp",
        "algorithm=gibbs\nmodel=cp\nrank=1\nburn_in=0\nsamples=1",
    ),
    ("nonneg", "nonneg=true\nmodel=cp\nrank=2\nepochs=1"),
];

/// Options of fits of every algorithm and kind of model, to data with everything that the algorithm supports.
pub const KIND_OPTIONS: [(&str, &str); 11] = [
    ("kinds-tucker", "rank=2\nepochs=1\nseed=3"),
    ("kinds-cp", "model=cp\nrank=2\nepochs=1\nseed=3"),
    ("kinds-opt", "algorithm=opt\nrank=2\nepochs=1\nseed=3"),
    (
        "kinds-nonneg",
        "algorithm=als\nnonneg=true\nmodel=cp\nrank=2\nepochs=1\nseed=3",
    ),
    (
        "kinds-als",
        "algorithm=als\nmodel=cp\nrank=2\nepochs=1\nseed=3",
    ),
    (
        "kinds-gibbs",
        "algorithm=gibbs\nmodel=tucker\nrank=2\nburn_in=0\nsamples=2\nseed=3",
    ),
    (
        "kinds-probit",
        "algorithm=gibbs\nlikelihood=probit\nrank=2\nburn_in=0\nsamples=2\nseed=5",
    ),
    ("weights-blocked", "model=cp\nrank=2\nepochs=1\nseed=4"),
    (
        "weights-gibbs",
        "algorithm=gibbs\nrank=2\nburn_in=0\nsamples=1\nseed=4",
    ),
    (
        "validated",
        "model=cp\nrank=2\nepochs=2\nvalid_fraction=0.25\nseed=3\nstart=identity",
    ),
    ("tensor-tucker", "rank=2\nepochs=1\nseed=1"),
];

/// Returns [`PLAIN_OPTIONS`] and [`KIND_OPTIONS`].
pub fn sample_options() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    PLAIN_OPTIONS.iter().chain(&KIND_OPTIONS)
}

/// Saves a model, loads it, and compares its predictions.
pub fn check_saved(model: &Model, folder: &Path) -> PathBuf {
    let path = folder.join("saved.s3m");
    model::save(model, &path).unwrap();
    // A model with a value that is not finite cannot be loaded.
    let loaded = model::load(&path, OpenMode::Mapped).unwrap();
    let bits = |model: &Model| -> Option<Vec<u64>> {
        let predictions = predict_some(model, false).ok()?;
        Some(predictions.iter().map(|x| x.to_bits()).collect())
    };
    assert_eq!(bits(&loaded), bits(model), "predictions of the saved model");
    assert_eq!(loaded.options(), model.options());
    // As text, since errors that were not measured are NaN.
    assert_eq!(loaded.record().to_text(), model.record().to_text());
    path
}

/// Number of cells that are predicted.
const CELLS: usize = 20;

/// Returns the first rows of each mode.
fn first_rows(model: &Model) -> Vec<Vec<u32>> {
    let rows = |mode: &ModelMode| mode.rows.indices().take(CELLS).collect();
    model.modes().iter().map(rows).collect()
}

/// Writes the indices of cell `i`: rows of the model, rows that it may not have, and the last possible one.
fn write_cell(rows: &[Vec<u32>], i: usize, index: &mut [u32]) {
    for (n, (place, rows)) in index.iter_mut().zip(rows).enumerate() {
        *place = match (i * 7 + n) % 5 {
            0 => (i / 5) as u32,
            1 => u32::MAX - 1,
            _ => rows.get(i % rows.len().max(1)).copied().unwrap_or(0),
        };
    }
}

/// Returns predictions, all of which are finite.
fn predict_some(model: &Model, clip: bool) -> Result<Vec<f64>> {
    let mut predictions = Vec::new();
    let rows = first_rows(model);
    let write = |cells: std::ops::Range<usize>, to: &mut [u32]| {
        for (i, index) in cells.zip(to.chunks_exact_mut(model.order())) {
            write_cell(&rows, i, index);
        }
    };
    let options = PredictOptions { clip, threads: 1 };
    predict_at(model, CELLS, write, &options, &(), |_, values| {
        predictions.extend_from_slice(values);
        Ok(())
    })?;
    let is_finite = |x: &f64| (*x as f32).is_finite();
    assert!(predictions.iter().all(is_finite), "{predictions:?}");
    if model.samples().is_some() {
        predict_intervals_at(
            model,
            CELLS,
            write,
            &[0.05, 0.9],
            &options,
            &(),
            |_, all| {
                for d in all {
                    assert!(is_finite(&d.mean) && d.standard_deviation >= 0.0, "{d:?}");
                    assert!(is_finite(&d.standard_deviation), "{d:?}");
                    assert!(d.quantiles.iter().all(is_finite), "{d:?}");
                }
                Ok(())
            },
        )?;
    }
    Ok(predictions)
}

/// Uses everything that reads a model. Errors are accepted, results must be numbers.
pub fn use_model(model: &Model) {
    let _ = predict_some(model, model.clips());
    let _ = predict_some(model, !model.clips());
    let tensor = tensor_view(&VALUES);
    if model.order() == 3 {
        evaluate_and_fold_in(model, &tensor);
    }
    let rows = first_rows(model);
    for mode in 0..model.order() {
        let rank_by = [RankBy::Mean, RankBy::Quantile(0.2)];
        for rank_by in &rank_by[..1 + usize::from(model.samples().is_some())] {
            let options = RecommendOptions {
                rank_by: *rank_by,
                threads: 1,
                ..RecommendOptions::new(mode, 3)
            };
            let write = |_: usize, index: &mut [u32]| write_cell(&rows, 2, index);
            let _ = recommend(model, 1, write, &options, &(), |_, rows| {
                assert!(rows.iter().all(|row| row.score.is_finite()));
                Ok(())
            });
        }
        let options = SimilarOptions {
            mode,
            top: 2,
            threads: 1,
        };
        let _ = similar_rows(
            model,
            &rows[mode][..rows[mode].len().min(2)],
            &options,
            &(),
            |_, rows| {
                assert!(rows.iter().all(|row| !row.score.is_nan()));
                Ok(())
            },
        );
        let _ = describe_concepts(model, &ConceptOptions::new(mode), &());
        let options = ClusterOptions {
            k: Some(2),
            restarts: 1,
            threads: 1,
            ..ClusterOptions::new(mode)
        };
        let _ = cluster_rows(model, &options, &[], &());
    }
    for mode in model.modes() {
        let entries = mode
            .counts
            .iter()
            .try_fold(0u64, |sum, &c| sum.checked_add(c));
        assert!(entries.is_some_and(|entries| entries < 1 << 62));
    }
    let _ = (model.options().to_text(), model.record().to_text());
    let _ = model.baseline((0..model.order()).map(|_| 0));
}

/// Compares predictions with entries and folds them in as new rows of each mode.
fn evaluate_and_fold_in(model: &Model, tensor: &CooView<'_>) {
    if let Ok(found) = evaluate(model, tensor, model.range(), 1, &()) {
        assert!(!found.clipped.rmse.is_nan() && !found.unclipped.mae.is_nan());
    }
    if let Ok(found) = evaluate_distributions(model, tensor, 1, &()) {
        assert!(!found.all.log_score.is_nan() && !found.all.crps.is_nan());
    }
    for mode in 0..3 {
        let is_coupled = |(_, m): &(usize, &ModelMatrix)| m.mode == mode && !m.kind.is_graph();
        let coupled = model.matrices().iter().enumerate().filter(is_coupled);
        let matrices = coupled.map(|(number, _)| FoldMatrix {
            number,
            entries: matrix_view("m", &[9, 2], &[&[0, 1, 8], &[0, 1, 0]]),
            weight: None,
        });
        let input = FoldIn {
            mode,
            tensor: Some(tensor.clone()),
            matrices: matrices.collect(),
            replace: true,
            threads: 1,
        };
        if let Ok((folded, _)) = fold_in(model, &input, &()) {
            let _ = predict_some(&folded, false);
        }
    }
}
