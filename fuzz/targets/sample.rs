//! A small problem, short fits, and what every fitted or loaded model must do.

use std::path::{Path, PathBuf};

use s3cmtf::Result;
use s3cmtf::discover::{
    ClusterOptions, ConceptOptions, RankBy, RecommendOptions, SimilarOptions, cluster_rows,
    describe_concepts, recommend, similar_rows,
};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::model::{self, EpochMetrics, Model, ModelMode};
use s3cmtf::options::Options;
use s3cmtf::predict::{PredictOptions, evaluate, predict_at, predict_intervals_at};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, Event, FitInput, Observer, fit};

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

/// Calls `work` with a tensor of 4 x 3 x 2 and an observed matrix of 3 x 2 on its second mode.
pub fn with_problem<T>(work: impl FnOnce(&Problem<'_>) -> T) -> T {
    let [a, b, c] = &ROWS;
    let tensor = CooView::new("x", &[4, 3, 2], &[a, b, c], Values::F32(&VALUES)).unwrap();
    let columns: [&[u32]; 2] = [&[0, 1, 2, 2], &[0, 1, 0, 1]];
    let values = Values::F32(&[1.0, 0.5, 2.0, 1.0]);
    let matrix = CooView::new("y", &[3, 2], &columns, values).unwrap();
    let builder = Problem::builder(tensor).matrix(1, matrix, None, MatrixKind::Observed);
    work(&builder.build(&()).unwrap())
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
    with_problem(|problem| Ok(fit(problem, &options, input, &mut OneEpoch, &())?.0))
}

/// Options of fits from which files are made, each with a name.
pub const SAMPLE_OPTIONS: [(&str, &str); 7] = [
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
    assert!(predictions.iter().all(|x| x.is_finite()), "{predictions:?}");
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
                    assert!(d.mean.is_finite(), "{d:?}");
                    assert!(d.standard_deviation >= 0.0, "{d:?}");
                    assert!(d.quantiles.iter().all(|q| !q.is_nan()), "{d:?}");
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
    let [a, b, c] = &ROWS;
    let columns: [&[u32]; 3] = [a, b, c];
    let tensor = CooView::new("x", &[4, 3, 2], &columns, Values::F32(&VALUES)).unwrap();
    if model.order() == 3
        && let Ok(found) = evaluate(model, &tensor, model.range(), 1, &())
    {
        assert!(!found.clipped.rmse.is_nan() && !found.unclipped.mae.is_nan());
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
                assert!(rows.iter().all(|row| !row.score.is_nan()));
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
