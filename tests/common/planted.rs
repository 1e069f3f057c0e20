//! Planted data and fits of it.

use std::path::Path;

use s3cmtf::format::{CooFile, CooView, OpenMode, summarize};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec, generate};
use s3cmtf::model::{EpochMetrics, Model, Predict};
use s3cmtf::options::{Initialization, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, FitSummary, Observer, fit};

use super::Scratch;

/// Ends a fit after some epochs.
pub struct Until(pub u64);

impl Observer for Until {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        match figures.epoch < self.0 {
            true => Control::Continue,
            false => Control::Stop,
        }
    }
}

/// Planted data in files.
pub struct Planted {
    pub train: CooFile,
    pub test: CooFile,
    pub matrices: Vec<CooFile>,
    pub floor: f64,
    _dir: Scratch,
}

pub fn planted(name: &str, options: &GenerateOptions) -> Planted {
    let dir = Scratch::new(name);
    let made = generate(dir.path(), options, &()).unwrap();
    let open = |path: &Path| CooFile::open(path, OpenMode::Private).unwrap();
    Planted {
        train: open(&made.train.0),
        test: open(&made.test.unwrap().0),
        matrices: made.matrices.iter().map(|(p, _)| open(p)).collect(),
        floor: made.floor_rmse,
        _dir: dir,
    }
}

/// Options that find planted models with values around 0.
pub fn options(rank: &[usize]) -> Options {
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

pub fn run(data: &Planted, options: &Options, coupled: bool) -> (Model, FitSummary) {
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

pub fn deviation(file: &CooFile) -> f64 {
    summarize(&file.view(), &())
        .unwrap()
        .values
        .unwrap()
        .deviation
}

/// Predictions at every entry of a view.
pub fn predictions(model: &Model, view: &CooView<'_>) -> Vec<f64> {
    let mut predict = model.predictor().unwrap();
    (0..view.len())
        .map(|i| {
            let index: Vec<u32> = (0..view.order()).map(|n| view.column(n)[i]).collect();
            predict(&index)
        })
        .collect()
}

pub fn small() -> Planted {
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
    planted(&format!("small-{:?}", std::thread::current().id()), &g)
}

/// All numbers of a model.
pub fn numbers(model: &Model) -> Vec<u32> {
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
