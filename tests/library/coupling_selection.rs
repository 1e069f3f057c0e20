//! Selection of coupled matrices by held-out entries: useless matrices are left out, useful ones are used, and the selection is
//! reported, saved and resumed.

use crate::common::Scratch;
use crate::common::in_memory::{Entries, hash_unit};
use crate::common::planted::{StopAfter, parameter_bits};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Event, FitInput, Observer, fit};

const USERS: u32 = 250;
const ITEMS: u32 = 200;
const GROUPS: u32 = 8;

/// Ratings of users who like or dislike each of eight groups of items.
fn ratings() -> Entries {
    let mut entries = Entries::new(&[u64::from(USERS), u64::from(ITEMS)]);
    for user in 0..USERS {
        for item in 0..ITEMS {
            let cell = u64::from(user * ITEMS + item);
            if hash_unit(cell) < 0.06 {
                let likes = hash_unit((1 << 30) + u64::from(user * GROUPS + group(item))) < 0.5;
                let noise = 2.0 * hash_unit((1 << 40) + cell) - 1.0;
                entries.push(&[user, item], f64::from(u8::from(likes)) + 0.5 * noise);
            }
        }
    }
    entries
}

fn group(item: u32) -> u32 {
    item % GROUPS
}

/// A one for the group of each item.
fn groups() -> Entries {
    let mut entries = Entries::new(&[u64::from(ITEMS), u64::from(GROUPS)]);
    (0..ITEMS).for_each(|item| entries.push(&[item, group(item)], 1.0));
    entries
}

/// A one in a random column for each item.
fn random_groups() -> Entries {
    let mut entries = Entries::new(&[u64::from(ITEMS), 40]);
    for item in 0..ITEMS {
        let column = (40.0 * hash_unit((1 << 50) + u64::from(item))) as u32;
        entries.push(&[item, column], 1.0);
    }
    entries
}

fn options() -> Options {
    let mut o = Options::default();
    (o.threads, o.pin) = (1, false);
    o
}

/// Collects what was selected.
#[derive(Default)]
struct Selections(Vec<String>);

impl Observer for Selections {
    fn event(&mut self, event: &Event) {
        if let Event::Selected(choice) = event {
            let (what, text) = (&choice.question, &choice.answer);
            self.0.push(format!("{what}: {text}"));
        }
    }
}

/// Fits with the given matrices on the items. Returns the model and what was selected about matrices.
fn fitted(
    matrices: &[(&Entries, Option<f64>, MatrixKind)],
    options: &Options,
) -> (Model, Vec<String>) {
    let ratings = ratings();
    let mut builder = Problem::builder(ratings.view());
    for (matrix, weight, kind) in matrices {
        builder = builder.matrix(1, matrix.view(), *weight, *kind);
    }
    let problem = builder.build(&()).unwrap();
    let mut selections = Selections::default();
    let fitted = fit(
        &problem,
        options,
        &FitInput::default(),
        &mut selections,
        &(),
    );
    let about_matrices = |text: &String| text.starts_with("matrix ");
    selections.0.retain(about_matrices);
    (fitted.unwrap().0, selections.0)
}

#[test]
fn useless_matrix_is_left_out_and_useful_one_is_used() {
    let (useful, useless) = (groups(), random_groups());
    let alone = fitted(&[], &options()).0;
    let (model, selected) = fitted(&[(&useless, None, MatrixKind::Full)], &options());
    assert_eq!(parameter_bits(&model), parameter_bits(&alone));
    assert_eq!(model.options().lambda_m, [0.0]);
    assert_eq!(
        (model.matrices().len(), model.matrices()[0].columns.len()),
        (1, 0)
    );
    assert!(
        selected.len() == 1 && selected[0].contains("not used (held-out RMSE"),
        "{selected:?}"
    );
    let both = [
        (&useless, None, MatrixKind::Full),
        (&useful, None, MatrixKind::Full),
    ];
    let (model, selected) = fitted(&both, &options());
    assert!(model.options().lambda_m[1] == 1.0, "{selected:?}");
    assert!(
        selected[1].contains(": used (held-out RMSE"),
        "{selected:?}"
    );
    let events = &model.record().events;
    let recorded = events
        .iter()
        .filter(|e| e.kind == "selected" && e.message.starts_with("matrix "))
        .map(|e| &e.message);
    assert!(recorded.eq(&selected), "{selected:?}");
}

#[test]
fn given_weights_are_used_as_they_are() {
    let useless = random_groups();
    let (model, selected) = fitted(&[(&useless, Some(0.5), MatrixKind::Full)], &options());
    assert!(selected.is_empty() && model.matrices()[0].weight == 0.5);
    let mut o = options();
    o.lambda_m = vec![2.0];
    let (model, selected) = fitted(&[(&useless, None, MatrixKind::Full)], &o);
    assert!(selected.is_empty() && model.matrices()[0].weight == 2.0);
    // One weight per matrix; 0 leaves the matrix out.
    o.lambda_m = vec![0.0, 3.0];
    let two = [(&useless, None, MatrixKind::Full); 2];
    let (model, _) = fitted(&two, &o);
    let weights = [&model.matrices()[0], &model.matrices()[1]].map(|m| (m.weight, m.columns.len()));
    assert_eq!(weights, [(0.0, 0), (3.0, 40)]);
    o.lambda_m = vec![1.0; 3];
    let ratings = ratings();
    let problem = Problem::builder(ratings.view()).build(&()).unwrap();
    let error = fit(&problem, &o, &FitInput::default(), &mut (), &())
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("lambda_m has 3 numbers; the number of matrices and graphs is 0"),
        "{error}"
    );
}

#[test]
fn unlisted_cells_of_a_matrix_of_ones_are_zeros_if_that_is_better() {
    let (useful, useless) = (groups(), random_groups());
    let kind = |model: &Model| model.matrices()[0].kind;
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let mut o = options();
        o.algorithm = algorithm;
        let (model, selected) = fitted(&[(&useful, None, MatrixKind::Auto)], &o);
        assert_eq!(kind(&model), MatrixKind::Full, "{selected:?}");
        assert!(
            selected[0].contains("used, unlisted cells are zeros"),
            "{selected:?}"
        );
        let (model, selected) = fitted(&[(&useless, None, MatrixKind::Auto)], &o);
        assert_eq!(kind(&model), MatrixKind::Observed, "{selected:?}");
        // A kind or weight that is given is not changed.
        let (model, _) = fitted(&[(&useful, None, MatrixKind::Observed)], &o);
        assert_eq!(kind(&model), MatrixKind::Observed);
        let (model, _) = fitted(&[(&useful, Some(1.0), MatrixKind::Auto)], &o);
        assert_eq!(kind(&model), MatrixKind::Observed);
    }
    // Cells that are listed twice have no value as zeros of a full matrix have one.
    let mut twice = groups();
    twice.push(&[0, 0], 1.0);
    let (model, _) = fitted(&[(&twice, None, MatrixKind::Auto)], &options());
    assert_eq!(kind(&model), MatrixKind::Observed);
}

#[test]
fn resumed_fit_keeps_the_selection() {
    let (ratings, useful, useless) = (ratings(), groups(), random_groups());
    let dir = Scratch::new("coupling-selection");
    let problem = Problem::builder(ratings.view())
        .matrix(1, useless.view(), None, MatrixKind::Full)
        .matrix(1, useful.view(), None, MatrixKind::Auto)
        .build(&())
        .unwrap();
    let whole = fit(&problem, &options(), &FitInput::default(), &mut (), &())
        .unwrap()
        .0;
    let mut input = FitInput {
        checkpoint: Some(dir.join("c.s3m")),
        ..FitInput::default()
    };
    fit(&problem, &options(), &input, &mut StopAfter(4), &()).unwrap();
    input.resume = input.checkpoint.take();
    let resumed = fit(&problem, &options(), &input, &mut (), &()).unwrap().0;
    assert_eq!(parameter_bits(&resumed), parameter_bits(&whole));
    assert_eq!(resumed.matrices()[1].kind, MatrixKind::Full);
}

#[test]
fn model_rank_and_noise_are_explained_unless_given() {
    let ratings = ratings();
    let problem = Problem::builder(ratings.view()).build(&()).unwrap();
    let selections = |options: &Options| {
        let mut selections = Selections::default();
        let input = FitInput::default();
        let (model, _) = fit(&problem, options, &input, &mut selections, &()).unwrap();
        let recorded = model.record().events.iter().map(|e| &e.message);
        assert!(recorded.eq(&selections.0));
        selections.0
    };
    let mut o = options();
    o.epochs = 1;
    let starts = |texts: &[String], starts: &[&str]| {
        let is_start = |(text, start): (&String, &&str)| text.starts_with(start);
        texts.len() == starts.len() && texts.iter().zip(starts).all(is_start)
    };
    let found = selections(&o);
    let expected = ["model: cp (", "rank: 32 (", "noise: "];
    assert!(starts(&found, &expected), "{found:?}");
    assert!(found[2].contains("% of the variance ("));
    (o.rank, o.lambda_reg) = (vec![2], Some(1.0));
    assert_eq!(selections(&o), ["model: tucker (ranks are given)"]);
    o.algorithm = Algorithm::Gibbs;
    (o.burn_in, o.samples, o.rank) = (1, 2, Vec::new());
    let found = selections(&o);
    let expected = ["model: cp (", "rank: 16 (", "noise: variance "];
    assert!(starts(&found, &expected), "{found:?}");
    assert!(found[2].contains("times that of the residuals (held-out RMSE"));
}
