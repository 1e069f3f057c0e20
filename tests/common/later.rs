//! Entries in memory, and rows that come after training.

use s3cmtf::format::{CooView, Values};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::predict::{PredictOptions, evaluate, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, FoldIn, FoldMatrix, FoldSummary, Observer, fit, fold_in};

pub struct Quiet;

impl Observer for Quiet {
    fn epoch(&mut self, _: &s3cmtf::model::EpochMetrics) -> Control {
        Control::Continue
    }

    fn event(&mut self, _: &s3cmtf::solver::Event) {}
}

/// Entries in memory.
#[derive(Clone, Default)]
pub struct Entries {
    pub dims: Vec<u64>,
    pub columns: Vec<Vec<u32>>,
    pub values: Vec<f64>,
}

impl Entries {
    pub fn new(dims: &[u64]) -> Entries {
        Entries {
            dims: dims.to_vec(),
            columns: vec![Vec::new(); dims.len()],
            values: Vec::new(),
        }
    }

    pub fn of(view: &CooView<'_>) -> Entries {
        Entries {
            dims: view.dims().to_vec(),
            columns: (0..view.order()).map(|n| view.column(n).to_vec()).collect(),
            values: (0..view.len()).map(|i| view.values().get(i)).collect(),
        }
    }

    pub fn push(&mut self, index: &[u32], value: f64) {
        self.columns
            .iter_mut()
            .zip(index)
            .for_each(|(c, &i)| c.push(i));
        self.values.push(value);
    }

    pub fn index(&self, i: usize) -> Vec<u32> {
        self.columns.iter().map(|c| c[i]).collect()
    }

    pub fn filtered(&self, keep: impl Fn(&[u32]) -> bool) -> Entries {
        let mut out = Entries::new(&self.dims);
        for i in 0..self.values.len() {
            let index = self.index(i);
            if keep(&index) {
                out.push(&index, self.values[i]);
            }
        }
        out
    }

    pub fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        CooView::new("entries", &self.dims, &columns, Values::F64(&self.values)).unwrap()
    }
}

/// Numbers that look random.
pub fn mixed(i: u64) -> f64 {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 27;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Ratings of users and films in months, and genres of films, with something to learn in them.
pub fn planted() -> (Entries, Entries) {
    let (users, films, months) = (60u32, 45u32, 5u32);
    let u = |i: u32, k: u64| 2.0 * mixed(u64::from(i) * 7 + k) - 1.0;
    let v = |j: u32, k: u64| 2.0 * mixed(90_000 + u64::from(j) * 7 + k) - 1.0;
    let mut tensor = Entries::new(&[users.into(), films.into(), months.into()]);
    for i in 0..users {
        for j in 0..films {
            let cell = u64::from(i * films + j);
            if mixed(5_000_000 + cell) < 0.45 {
                let m = (mixed(6_000_000 + cell) * f64::from(months)) as u32;
                let noise = 0.3 * (mixed(7_000_000 + cell) + mixed(8_000_000 + cell) - 1.0);
                let x = 100.0
                    + 8.0 * (u(i, 0) * v(j, 0) + u(i, 1) * v(j, 1) + 0.5 * u(i, 2) + 0.4 * v(j, 2));
                tensor.push(&[i, j, m], x + 8.0 * noise + 0.3 * f64::from(m));
            }
        }
    }
    let mut genres = Entries::new(&[films.into(), 6]);
    for j in 0..films {
        for k in 0..6u32 {
            let y = v(j, 0) * f64::from(k) - v(j, 1) * f64::from(6 - k) + v(j, 2);
            genres.push(&[j, k], 2.0 + y + 0.2 * mixed(u64::from(j * 6 + k)));
        }
    }
    (tensor, genres)
}

pub fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
    let mut o = Options::default();
    (o.algorithm, o.model, o.rank) = (algorithm, model, vec![rank]);
    (o.threads, o.seed) = (2, 3);
    (o.start, o.start_modes) = (Initialization::Identity, vec![1, 2]);
    o.lambda_reg = Some(0.7);
    o.eta = Some(0.02);
    o
}

pub fn fitted(tensor: &Entries, genres: Option<&Entries>, o: &Options) -> Model {
    fitted_to(tensor, genres.map(|g| (g, MatrixKind::Observed)), o)
}

pub fn fitted_to(tensor: &Entries, genres: Option<(&Entries, MatrixKind)>, o: &Options) -> Model {
    let mut builder = Problem::builder(tensor.view());
    if let Some((genres, kind)) = genres {
        builder = builder.matrix(1, genres.view(), 1.3, kind);
    }
    let problem = builder.build(&()).unwrap();
    fit(&problem, o, &FitInput::default(), &mut Quiet, &())
        .unwrap()
        .0
}

pub fn input<'a>(
    mode: usize,
    tensor: Option<&'a Entries>,
    genres: Option<&'a Entries>,
) -> FoldIn<'a> {
    let matrices = genres.into_iter().map(|g| FoldMatrix {
        number: 0,
        entries: g.view(),
        weight: None,
    });
    FoldIn {
        mode,
        tensor: tensor.map(Entries::view),
        matrices: matrices.collect(),
        threads: 1,
        ..FoldIn::default()
    }
}

pub fn folded(model: &Model, input: &FoldIn<'_>) -> (Model, FoldSummary) {
    fold_in(model, input, &()).unwrap()
}

pub fn predictions(model: &Model, cells: &Entries) -> Vec<f64> {
    let mut all = Vec::new();
    predict_entries(
        model,
        &cells.view(),
        &PredictOptions {
            clip: false,
            threads: 1,
        },
        &(),
        |_, x| {
            all.extend_from_slice(x);
            Ok(())
        },
    )
    .unwrap();
    all
}

pub fn rmse(model: &Model, cells: &Entries) -> f64 {
    let e = evaluate(model, &cells.view(), model.range(), 2, &()).unwrap();
    e.clipped.rmse
}
