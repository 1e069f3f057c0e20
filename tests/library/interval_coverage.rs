//! Coverage of predictive intervals for rows with many entries, with few, and with none.

use crate::common::Scratch;
use crate::common::in_memory::{Entries, SilentObserver, hash_unit, options};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::predict::{PredictOptions, evaluate_distributions, predict_intervals};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

const USERS: u32 = 400;
const FILMS: u32 = 150;
const MONTHS: u32 = 4;

/// How many training entries a user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Frequent,
    Rare,
    Unseen,
}

fn kind_of(user: u32) -> Kind {
    match user % 4 {
        0 | 1 => Kind::Frequent,
        2 => Kind::Rare,
        _ => Kind::Unseen,
    }
}

/// Random numbers of a sequence that depends on its start alone.
struct Sequence(u64);

impl Sequence {
    fn uniform(&mut self) -> f64 {
        self.0 += 1;
        hash_unit(self.0)
    }

    /// Returns a standard normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// Returns training and test entries of a planted CP model of rank 2 with biases, whose rows are normal.
fn planted() -> (Entries, Entries) {
    let mut s = Sequence(1 << 32);
    let rows = |s: &mut Sequence, count: u32, mean: f64, deviation: f64| -> Vec<[f64; 3]> {
        let mut row = |_| [0; 3].map(|_| mean + deviation * s.normal());
        (0..count).map(&mut row).collect()
    };
    let (users, films) = (rows(&mut s, USERS, 0.0, 0.8), rows(&mut s, FILMS, 0.0, 0.8));
    let months = rows(&mut s, MONTHS, 1.0, 0.1);
    let dims = [USERS, FILMS, MONTHS].map(u64::from);
    let (mut train, mut test) = (Entries::new(&dims), Entries::new(&dims));
    for i in 0..USERS {
        for j in 0..FILMS {
            let m = (s.uniform() * f64::from(MONTHS)) as u32;
            let (u, v, w) = (users[i as usize], films[j as usize], months[m as usize]);
            let x = 3.0 + u[2] + v[2] + (0..2).map(|k| u[k] * v[k] * w[k]).sum::<f64>();
            let x = x + 0.4 * s.normal();
            let training_fraction = match kind_of(i) {
                Kind::Frequent => 0.4,
                Kind::Rare => 0.02,
                Kind::Unseen => 0.0,
            };
            let draw = s.uniform();
            if draw < training_fraction {
                train.push(&[i, j, m], x);
            } else if draw > 0.8 {
                test.push(&[i, j, m], x);
            }
        }
    }
    (train, test)
}

/// Returns the fractions of test entries of such users inside the 90% and the 50% interval.
fn coverage(model: &Model, test: &Entries, kind: Kind) -> [f64; 2] {
    let test = test.filtered(|index| kind_of(index[0]) == kind);
    let view = test.view();
    let mut inside = [0.0; 2];
    predict_intervals(
        model,
        &view,
        &[0.05, 0.95, 0.25, 0.75],
        &PredictOptions {
            clip: false,
            threads: 2,
        },
        &(),
        |range, distributions| {
            for (i, d) in range.zip(distributions) {
                for (k, count) in inside.iter_mut().enumerate() {
                    let (low, high) = (d.quantiles[2 * k], d.quantiles[2 * k + 1]);
                    *count += f64::from((low..=high).contains(&test.values[i]));
                }
            }
            Ok(())
        },
    )
    .unwrap();
    inside.map(|count| count / test.values.len() as f64)
}

#[test]
fn intervals_of_frequent_rare_and_unseen_rows_have_nominal_coverage() {
    let (train, test) = planted();
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let mut o = options(Algorithm::Gibbs, ModelKind::Cp, 4);
    (o.burn_in, o.samples) = (20, 60);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &()).unwrap();
    for kind in [Kind::Frequent, Kind::Rare, Kind::Unseen] {
        let [wide, narrow] = coverage(&model, &test, kind);
        assert!((0.86..0.94).contains(&wide), "{kind:?}: {wide}");
        assert!((0.44..0.57).contains(&narrow), "{kind:?}: {narrow}");
        let of_kind = test.filtered(|index| kind_of(index[0]) == kind);
        let found = evaluate_distributions(&model, &of_kind.view(), 2, &()).unwrap();
        let found = [found.all.coverage_90, found.all.coverage_50];
        assert!(
            found
                .iter()
                .zip([wide, narrow])
                .all(|(x, y)| (x - y).abs() < 1e-12)
        );
    }
    let found = evaluate_distributions(&model, &test.view(), 2, &()).unwrap();
    let unseen = found.by_row_length[0];
    assert_eq!((unseen.min_len, unseen.max_len), (0, 0));
    let counts = found.by_row_length.iter().map(|group| group.scores.count);
    assert_eq!(counts.sum::<u64>(), test.values.len() as u64);
    assert!((0.86..0.94).contains(&unseen.scores.coverage_90));
    // Fewer entries leave more unknown.
    let widths = |k: usize| found.by_row_length[k].scores.width_90;
    assert!(widths(0) > widths(1) && widths(1) > widths(found.by_row_length.len() - 1));
    // The model file keeps what the intervals need.
    let dir = Scratch::new("interval-coverage");
    let path = dir.join("model.s3m");
    model::save(&model, &path).unwrap();
    let loaded = model::load(&path, OpenMode::Mapped).unwrap();
    for kind in [Kind::Rare, Kind::Unseen] {
        assert_eq!(
            coverage(&loaded, &test, kind),
            coverage(&model, &test, kind)
        );
    }
}

/// Ratings: values rounded to levels.
#[test]
fn intervals_of_rounded_values_cover_levels_in_part() {
    let (mut train, mut test) = planted();
    for entries in [&mut train, &mut test] {
        for x in &mut entries.values {
            *x = x.round().clamp(1.0, 5.0);
        }
    }
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let mut o = options(Algorithm::Gibbs, ModelKind::Cp, 4);
    (o.burn_in, o.samples) = (20, 40);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &()).unwrap();
    let seen = test.filtered(|index| kind_of(index[0]) == Kind::Frequent);
    let found = evaluate_distributions(&model, &seen.view(), 2, &()).unwrap();
    assert_eq!(found.all.levels, 5);
    let coverages = [found.all.coverage_90, found.all.coverage_50];
    assert!(
        (0.86..0.94).contains(&coverages[0]) && (0.44..0.57).contains(&coverages[1]),
        "{coverages:?}"
    );
    // The entropy of five equally likely levels.
    assert!(found.all.log_score < 5f64.ln(), "{}", found.all.log_score);
    for threads in [1, 3] {
        assert_eq!(
            evaluate_distributions(&model, &seen.view(), threads, &()).unwrap(),
            found
        );
    }
}

/// Returns training and test entries whose noise has a standard deviation of 0.3 for even users and 0.9 for odd ones, times 2 for
/// large values.
fn different_noise() -> [Entries; 2] {
    let mut s = Sequence(1 << 33);
    let dims = [USERS, FILMS].map(u64::from);
    let mut parts = [Entries::new(&dims), Entries::new(&dims)];
    let film =
        |j: u32, s: &mut Sequence| if is_large_film(j) { 2.0 } else { -2.0 } + 0.3 * s.normal();
    let films: Vec<f64> = (0..FILMS).map(|j| film(j, &mut s)).collect();
    for i in 0..USERS {
        let bias = 0.5 * s.normal();
        for j in 0..FILMS {
            let x = bias + films[j as usize];
            let deviation = [0.3, 0.9][i as usize % 2] * if x > 0.0 { 2.0 } else { 1.0 };
            let value = x + deviation * s.normal();
            let draw = s.uniform();
            if draw < 0.4 {
                parts[usize::from(draw < 0.1)].push(&[i, j], value);
            }
        }
    }
    parts
}

/// Whether the values of a film are around 2 instead of -2.
fn is_large_film(film: u32) -> bool {
    film.is_multiple_of(3)
}

#[test]
fn intervals_follow_the_noise_of_rows_and_levels() {
    let [train, test] = different_noise();
    let problem = Problem::builder(train.view()).build(&()).unwrap();
    let mut o = options(Algorithm::Gibbs, ModelKind::Cp, 2);
    (o.burn_in, o.samples) = (10, 30);
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut SilentObserver, &()).unwrap();
    let dir = Scratch::new("noise-factors");
    model::save(&model, dir.join("m.s3m")).unwrap();
    let loaded = model::load(dir.join("m.s3m"), OpenMode::Private).unwrap();
    for is_odd in [false, true] {
        for is_large in [false, true] {
            let part = test.filtered(|index| {
                (index[0] % 2 == 1) == is_odd && is_large_film(index[1]) == is_large
            });
            let scores = evaluate_distributions(&model, &part.view(), 2, &()).unwrap();
            let found = scores.all.coverage_90;
            // With the same noise for all, the four parts have 100, 99, 91 and 61%.
            assert!(
                (0.84..0.965).contains(&found),
                "{is_odd} {is_large}: {found}"
            );
            let again = evaluate_distributions(&loaded, &part.view(), 2, &()).unwrap();
            assert_eq!(again, scores);
        }
    }
}
