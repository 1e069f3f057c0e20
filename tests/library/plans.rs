//! Plans: a plan says what the fit does, and a fit that follows it has the same parameters, bit by bit.

use s3cmtf::fit_plan::{FitPlan, StartPlan};
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::Options;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Event, FitInput, Observer, fit, plan, train};

use crate::common::Scratch;
use crate::common::in_memory::{Entries, hash_unit};
use crate::common::planted::parameter_bits;

/// Ratings of 120 users for 80 items in 5 months: groups of items, and noise. With `two_values` they are 0 or 1.
fn ratings(two_values: bool) -> Entries {
    let mut entries = Entries::new(&[120, 80, 5]);
    for user in 0..120 {
        for item in 0..80 {
            let cell = u64::from(user * 80 + item);
            if hash_unit(cell) < 0.25 {
                let likes = hash_unit((1 << 30) + u64::from(user * 8 + item % 8)) < 0.5;
                let value = f64::from(u8::from(likes)) + 0.8 * hash_unit((1 << 40) + cell);
                let month = (5.0 * hash_unit((1 << 41) + cell)) as u32;
                let value = if two_values {
                    value.round().min(1.0)
                } else {
                    value
                };
                entries.push(&[user, item, month], value);
            }
        }
    }
    entries
}

/// A one for the group of each item.
fn groups() -> Entries {
    let mut entries = Entries::new(&[80, 8]);
    (0..80).for_each(|item| entries.push(&[item, item % 8], 1.0));
    entries
}

fn options(text: &str) -> Options {
    let mut o = Options::from_text(&text.replace(' ', "\n")).unwrap();
    (o.threads, o.pin) = (2, false);
    o
}

fn assert_same(a: &Model, b: &Model, what: &str) {
    assert_eq!(parameter_bits(a), parameter_bits(b), "{what}");
    let samples = |m: &Model| m.samples().map(|s| s.len());
    assert_eq!(samples(a), samples(b), "{what}");
}

/// Counts choices.
#[derive(Default)]
struct Choices(Vec<String>);

impl Observer for Choices {
    fn event(&mut self, event: &Event) {
        if let Event::Selected(choice) = event {
            self.0.push(choice.question.clone());
        }
    }
}

#[test]
fn a_fit_that_follows_a_plan_equals_the_fit_it_is_of() {
    let (values, two_values, groups) = (ratings(false), ratings(true), groups());
    let plain = [
        "epochs=3",
        "epochs=3 rank=3",
        "algorithm=als epochs=3 rank=2",
        "epochs=2 start=identity",
        "epochs=2 nonneg=true",
        "preset=paper",
        "epochs=2 biases=false valid_fraction=0.2",
        "algorithm=opt epochs=2 threads=1",
        "algorithm=gibbs samples=3",
        "algorithm=gibbs samples=3 rank=2 model=tucker",
        "epochs=2 lambda_bias=4",
        "epochs=2 threads=1",
    ];
    for text in plain {
        for (data, has_matrix) in [(&values, false), (&values, true), (&two_values, false)] {
            let mut o = match text.strip_prefix("preset=") {
                Some(preset) => Options::preset(preset).unwrap(),
                None => options(text),
            };
            if text.contains("threads=1") || text.starts_with("preset") {
                (o.threads, o.epochs) = (1, 2);
            }
            let mut builder = Problem::builder(data.view());
            if has_matrix {
                builder = builder.matrix(1, groups.view(), None, MatrixKind::Auto);
            }
            let problem = builder.build(&()).unwrap();
            let input = FitInput::default();
            let what = format!("{text}, matrix {has_matrix}");
            let (fitted, _) = fit(&problem, &o, &input, &mut (), &()).unwrap();
            let made = plan(&problem, &o, &input, &mut (), &()).unwrap();
            assert_eq!(fitted.plan(), Some(&made), "{what}");
            let read = FitPlan::from_json(&made.to_json()).unwrap();
            assert_eq!(read, made, "{what}");
            let mut machine = Options::default();
            (machine.threads, machine.pin) = (o.threads, false);
            let mut seen = Choices::default();
            let (again, _) = train(&problem, &read, &machine, &input, &mut seen, &()).unwrap();
            assert_same(&fitted, &again, &what);
            let questions = made.choices.iter().map(|c| c.question.clone());
            assert_eq!(seen.0, questions.collect::<Vec<_>>(), "{what}");
            assert_eq!(again.plan(), Some(&made), "{what}");
        }
    }
}

#[test]
fn a_plan_states_its_choices_with_numbers_and_is_kept_in_the_model() {
    let (values, groups) = (ratings(false), groups());
    let problem = Problem::builder(values.view())
        .matrix(1, groups.view(), None, MatrixKind::Auto)
        .build(&())
        .unwrap();
    let made = plan(
        &problem,
        &options("epochs=2"),
        &FitInput::default(),
        &mut (),
        &(),
    )
    .unwrap();
    assert!(matches!(made.start, StartPlan::Chain { sweeps, .. } if sweeps >= 8));
    assert_eq!(made.matrices.len(), 1);
    assert_ne!(made.matrices[0].kind, MatrixKind::Auto);
    assert!(made.options.eta.is_some() && made.options.lambda_reg.is_some());
    for question in ["rank", "noise", "matrix"] {
        let choice = made
            .choices
            .iter()
            .find(|c| c.question.starts_with(question));
        let choice = choice.unwrap_or_else(|| panic!("no choice of {question}"));
        assert!(!choice.evidence.is_empty(), "{question}");
    }
    assert!(made.estimate.bytes > 1e4 && made.estimate.operations > made.estimate.entry_updates);
    let text = made.to_string();
    for part in [
        "data: 120 x 80 x 5",
        "algorithm: blocked, 2 epochs",
        "matrix 1: of mode 2",
        "choice: rank",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (fitted, _) = fit(
        &problem,
        &options("epochs=2"),
        &FitInput::default(),
        &mut (),
        &(),
    )
    .unwrap();
    let dir = Scratch::new("plans");
    model::save(&fitted, dir.join("m.s3m")).unwrap();
    let loaded = model::load(dir.join("m.s3m"), OpenMode::Private).unwrap();
    assert_eq!(loaded.plan(), Some(&made));
}

#[test]
fn a_plan_is_for_its_data_and_options_alone() {
    let (values, groups) = (ratings(false), groups());
    let problem = Problem::builder(values.view())
        .matrix(1, groups.view(), None, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let o = options("epochs=1 rank=2");
    let made = plan(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let error = |problem: &Problem<'_>, plan: &FitPlan, o: &Options, input: &FitInput<'_>| {
        train(problem, plan, o, input, &mut (), &())
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    let none = FitInput::default();
    // Options.
    let found = error(&problem, &made, &options("rank=3"), &none);
    assert!(
        found.contains("rank is 3 here and 2 in the plan"),
        "{found}"
    );
    let found = error(&problem, &made, &options("seed=0 epochs=1 rank=2"), &none);
    assert_eq!(found, "");
    // Entries.
    let mut other = ratings(false);
    other.push(&[3, 3, 3], 0.5);
    let longer =
        Problem::builder(other.view()).matrix(1, groups.view(), None, MatrixKind::Observed);
    let found = error(&longer.build(&()).unwrap(), &made, &o, &none);
    assert!(found.contains("its tensor is 120 x 80 x 5 with"), "{found}");
    let doubled: Vec<f64> = vec![2.0; 80];
    let columns: [Vec<u32>; 2] = [(0..80).collect(), (0..80).map(|i| i % 8).collect()];
    let matrix = s3cmtf::format::CooView::new(
        "m",
        &[80, 8],
        &[&columns[0], &columns[1]],
        s3cmtf::format::Values::F64(&doubled),
    )
    .unwrap();
    let changed = Problem::builder(values.view()).matrix(1, matrix, None, MatrixKind::Observed);
    let found = error(&changed.build(&()).unwrap(), &made, &o, &none);
    assert!(
        found.contains("its matrix 1 has the same sizes, but other entries"),
        "{found}"
    );
    // Matrices.
    let alone = Problem::builder(values.view()).build(&()).unwrap();
    let found = error(&alone, &made, &o, &none);
    assert!(
        found.contains("the plan is for 1 matrices and graphs; there are 0"),
        "{found}"
    );
    let weighted =
        Problem::builder(values.view()).matrix(1, groups.view(), 77.0, MatrixKind::Observed);
    let found = error(&weighted.build(&()).unwrap(), &made, &o, &none);
    assert!(found.contains("matrix 1: its weight is 77 here"), "{found}");
    let full = Problem::builder(values.view()).matrix(1, groups.view(), None, MatrixKind::Full);
    let found = error(&full.build(&()).unwrap(), &made, &o, &none);
    assert!(found.contains("matrix 1: its kind is full here"), "{found}");
    // Starts.
    let (start, _) = fit(&problem, &o, &none, &mut (), &()).unwrap();
    let from = FitInput {
        init: Some(&start),
        ..FitInput::default()
    };
    let found = error(&problem, &made, &o, &from);
    assert!(found.contains("does not start from a model"), "{found}");
    let of_start = plan(&problem, &o, &from, &mut (), &()).unwrap();
    let found = error(&problem, &of_start, &o, &none);
    assert!(found.contains("starts from a model; give it"), "{found}");
    let (expected, _) = fit(&problem, &o, &from, &mut (), &()).unwrap();
    let (again, _) = train(&problem, &of_start, &o, &from, &mut (), &()).unwrap();
    assert_same(&expected, &again, "from a model");
}
