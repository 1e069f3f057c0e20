//! Planted data in files, and fits of it.

use std::path::Path;

use s3cmtf::format::{CooFile, CooView, OpenMode, summarize};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec, generate};
use s3cmtf::model::{EpochMetrics, Model, Predict};
use s3cmtf::options::{Initialization, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, FitSummary, Observer, fit};

use super::Scratch;

/// Stops a fit after the given epoch.
pub struct StopAfter(pub u64);

impl Observer for StopAfter {
    fn epoch(&mut self, metrics: &EpochMetrics) -> Control {
        if metrics.epoch < self.0 {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

/// Planted data in a temporary folder.
pub struct PlantedData {
    pub train: CooFile,
    pub test: CooFile,
    pub matrices: Vec<CooFile>,
    /// Test RMSE of the planted model.
    pub floor_rmse: f64,
    _dir: Scratch,
}

/// Generates planted data in a temporary folder.
pub fn generate_planted(name: &str, options: &GenerateOptions) -> PlantedData {
    let dir = Scratch::new(name);
    let generated = generate(dir.path(), options, &()).unwrap();
    let open = |path: &Path| CooFile::open(path, OpenMode::Private).unwrap();
    PlantedData {
        train: open(&generated.train.0),
        test: open(&generated.test.unwrap().0),
        matrices: generated.matrices.iter().map(|(p, _)| open(p)).collect(),
        floor_rmse: generated.floor_rmse,
        _dir: dir,
    }
}

/// Returns options of the paper, changed to recover planted models with values around 0.
pub fn paper_options(rank: &[usize]) -> Options {
    let mut o = Options::preset("paper").unwrap();
    o.rank = rank.to_vec();
    o.start = Initialization::Normal;
    o.eta = Some(0.02);
    o.decay = 0.01;
    o.lambda_reg = Some(0.001);
    o.epochs = 120;
    o.eval_every = 10;
    o.threads = 1;
    o
}

/// Fits a model to planted data, with all its matrices on mode 0 if `coupled`.
pub fn fit_planted(data: &PlantedData, options: &Options, coupled: bool) -> (Model, FitSummary) {
    let mut builder = Problem::builder(data.train.view());
    if coupled {
        for matrix in &data.matrices {
            builder = builder.matrix(0, matrix.view(), 1.0, MatrixKind::Observed);
        }
    }
    let problem = builder.build(&()).unwrap();
    let input = FitInput {
        test: Some(data.test.view()),
        ..FitInput::default()
    };
    fit(&problem, options, &input, &mut (), &()).unwrap()
}

/// Returns the standard deviation of the values of a file.
pub fn standard_deviation(file: &CooFile) -> f64 {
    summarize(&file.view(), &())
        .unwrap()
        .values
        .unwrap()
        .deviation
}

/// Returns the predictions at the positions of a view.
pub fn predictions(model: &Model, view: &CooView<'_>) -> Vec<f64> {
    let mut predict = model.predictor().unwrap();
    (0..view.len())
        .map(|i| {
            let index: Vec<u32> = (0..view.order()).map(|n| view.column(n)[i]).collect();
            predict(&index)
        })
        .collect()
}

/// Generates a small tensor with two matrices on mode 0.
pub fn small_data() -> PlantedData {
    let mut g = GenerateOptions::new(&[80, 60, 12], 9000);
    g.ranks = vec![4];
    g.noise = 0.2;
    g.test_fraction = 0.2;
    g.factor_mean = 1.0;
    g.matrices = vec![
        MatrixSpec {
            mode: 0,
            columns: 9,
            entries: MatrixEntries::All,
            ones_fraction: None,
            group_fraction: None,
        };
        2
    ];
    generate_planted(&format!("small-{:?}", std::thread::current().id()), &g)
}

/// Returns the bits of all parameters of a model: core, factors and columns of matrices.
pub fn parameter_bits(model: &Model) -> Vec<u32> {
    let factors = model.modes().iter().map(|m| m.factor.as_slice());
    let columns = model.matrices().iter().map(|m| m.factor.as_slice());
    [model.core()]
        .into_iter()
        .chain(factors)
        .chain(columns)
        .flatten()
        .map(|x| x.to_bits())
        .collect()
}

/// Returns the bits of the parameters and of the predictions of a model.
pub fn model_bits(model: &Model, view: &CooView<'_>) -> (Vec<u32>, Vec<u64>) {
    let predicted = predictions(model, view)
        .iter()
        .map(|x| x.to_bits())
        .collect();
    (parameter_bits(model), predicted)
}
