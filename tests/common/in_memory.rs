//! Entries in memory, planted ratings with genres, and fits and fold-ins of them.

use s3cmtf::format::{CooView, Values};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Initialization, ModelKind, Options};
use s3cmtf::predict::{PredictOptions, evaluate, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, FoldIn, FoldMatrix, FoldSummary, Observer, fit, fold_in};

/// Ignores epochs and events.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn epoch(&mut self, _: &s3cmtf::model::EpochMetrics) -> Control {
        Control::Continue
    }

    fn event(&mut self, _: &s3cmtf::solver::Event) {}
}

/// Entries of a tensor or matrix in memory.
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

    pub fn from_view(view: &CooView<'_>) -> Entries {
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

/// Returns a pseudo-random value in [0, 1) that depends on `i` alone.
pub fn hash_unit(i: u64) -> f64 {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 27;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns ratings of films by users in months, and a matrix of film genres. Both have a planted structure.
pub fn planted_ratings() -> (Entries, Entries) {
    let (users, films, months) = (60u32, 45u32, 5u32);
    let u = |i: u32, k: u64| 2.0 * hash_unit(u64::from(i) * 7 + k) - 1.0;
    let v = |j: u32, k: u64| 2.0 * hash_unit(90_000 + u64::from(j) * 7 + k) - 1.0;
    let mut tensor = Entries::new(&[users.into(), films.into(), months.into()]);
    for i in 0..users {
        for j in 0..films {
            let cell = u64::from(i * films + j);
            if hash_unit(5_000_000 + cell) < 0.45 {
                let m = (hash_unit(6_000_000 + cell) * f64::from(months)) as u32;
                let noise = 0.3 * (hash_unit(7_000_000 + cell) + hash_unit(8_000_000 + cell) - 1.0);
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
            genres.push(&[j, k], 2.0 + y + 0.2 * hash_unit(u64::from(j * 6 + k)));
        }
    }
    (tensor, genres)
}

/// Returns options with fixed initialization, penalty and learning rate, so that nothing is searched.
pub fn options(algorithm: Algorithm, model: ModelKind, rank: usize) -> Options {
    let mut o = Options::default();
    (o.algorithm, o.model, o.rank) = (algorithm, model, vec![rank]);
    (o.threads, o.seed) = (2, 3);
    o.start = Initialization::Identity;
    o.lambda_reg = Some(0.7);
    o.eta = Some(0.02);
    o
}

/// Fits a model to ratings and, if given, an observed matrix of genres on mode 1.
pub fn fit_ratings(tensor: &Entries, genres: Option<&Entries>, o: &Options) -> Model {
    fit_with_matrix(tensor, genres.map(|g| (g, MatrixKind::Observed)), o)
}

/// Fits a model to a tensor and, if given, a matrix on mode 1.
pub fn fit_with_matrix(
    tensor: &Entries,
    genres: Option<(&Entries, MatrixKind)>,
    o: &Options,
) -> Model {
    let mut builder = Problem::builder(tensor.view());
    if let Some((genres, kind)) = genres {
        builder = builder.matrix(1, genres.view(), 1.3, kind);
    }
    let problem = builder.build(&()).unwrap();
    fit(&problem, o, &FitInput::default(), &mut SilentObserver, &())
        .unwrap()
        .0
}

/// Returns the input of a fold-in of rows of `mode`.
pub fn fold_in_input<'a>(
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

/// Returns the model with rows folded in.
pub fn folded_model(model: &Model, input: &FoldIn<'_>) -> (Model, FoldSummary) {
    fold_in(model, input, &()).unwrap()
}

/// Returns unclipped predictions at the positions of entries.
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

/// Returns the clipped RMSE on entries.
pub fn rmse(model: &Model, cells: &Entries) -> f64 {
    let e = evaluate(model, &cells.view(), model.range(), 2, &()).unwrap();
    e.clipped.rmse
}
