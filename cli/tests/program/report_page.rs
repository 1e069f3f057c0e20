//! HTML reports: well-formed, escaped, and consistent with the data.

use crate::common::Scratch;
use crate::common::in_memory::{Entries, fit_ratings, hash_unit, options, planted_ratings, rmse};
use crate::sample_reports::{
    HOSTILE_NAME, check_html, random_entries, sample_models, sample_reports,
};
use s3cmtf::format::{CooView, OpenMode, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{Event, FitInput, Observer, fit};
use s3cmtf_cli::report::{ReportOptions, report, write_report};

#[test]
fn every_model_has_a_well_formed_and_escaped_report() {
    for (name, page) in sample_reports(2) {
        let text = check_html(name, &page);
        assert!(
            text.contains("alert(\"1\")"),
            "{name}: the hostile name is shown as text"
        );
        assert!(
            !page.contains("<script") && !page.contains('\u{202e}'),
            "{name}"
        );
        assert!(page.len() < 400_000, "{name}: {} bytes", page.len());
        for section in [
            "data",
            "convergence",
            "core",
            "factors",
            "concepts",
            "clusters",
            "settings",
        ] {
            assert!(
                page.contains(&format!("<section id=\"{section}\">")),
                "{name}: {section}"
            );
        }
        assert!(!text.contains("NaN"), "{name}");
    }
    assert!(HOSTILE_NAME.contains("<script>"));
}

#[test]
fn report_is_independent_of_thread_count() {
    let model = &sample_models()[0].1;
    let (tensor, genres) = planted_ratings();
    let page = |threads| {
        let report_options = ReportOptions {
            data: Some(tensor.view()),
            test: Some(tensor.view()),
            matrices: vec![(1, genres.view())],
            max_k: 4,
            threads,
            ..ReportOptions::default()
        };
        report(model, &report_options, &()).unwrap()
    };
    let one = page(1);
    for threads in [2, 3, 7] {
        assert_eq!(page(threads), one, "{threads}");
    }
}

#[test]
fn report_figures_match_the_data() {
    let (tensor, _) = planted_ratings();
    let model = fit_ratings(&tensor, None, &options(Algorithm::Als, ModelKind::Cp, 3));
    let test = tensor.filtered(|x| (x[0] + x[1]) % 3 == 0);
    let report_options = ReportOptions {
        data: Some(tensor.view()),
        test: Some(test.view()),
        max_k: 0,
        ..ReportOptions::default()
    };
    let page = report(&model, &report_options, &()).unwrap();
    let text = check_html("figures", &page);
    let four_digits = |x: f64| {
        let digits = (3 - x.log10().floor() as i32) as usize;
        format!("{x:.digits$}").trim_end_matches('0').to_string()
    };
    assert!(
        text.contains(&format!("RMSE {}", four_digits(rmse(&model, &test)))),
        "{text}"
    );
    let n = tensor.values.len() as f64;
    let mean = tensor.values.iter().sum::<f64>() / n;
    let squares: f64 = test.values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let mean_rmse = (squares / test.values.len() as f64).sqrt();
    assert!(
        text.contains(&format!("RMSE {}", four_digits(mean_rmse))),
        "{mean_rmse}"
    );
    // The histogram of mode 1: rows by powers of two of their numbers of entries.
    let mut bins = [0u64; 12];
    for user in 0..60 {
        let count = tensor.columns[0].iter().filter(|&&i| i == user).count();
        bins[count.ilog2() as usize] += 1;
    }
    let bars = page.split("Entries per row: mode 1</text>").nth(1).unwrap();
    let bars = bars.split("</svg>").next().unwrap();
    let counts: Vec<u64> = bars
        .split("<title>")
        .skip(1)
        .map(|t| {
            t.split(": ")
                .nth(1)
                .unwrap()
                .split('<')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    let first = bins.iter().position(|&b| b > 0).unwrap();
    assert_eq!(counts, bins[first..first + counts.len()]);
    assert_eq!(counts.iter().sum::<u64>(), 60);
    assert!(
        !page.contains("id=\"clusters\""),
        "max_k 0 leaves clusters out"
    );
}

/// Records events.
#[derive(Default)]
struct Events(Vec<Event>);

impl Observer for Events {
    fn event(&mut self, event: &Event) {
        self.0.push(event.clone());
    }
}

/// Returns ratings and options with which a fit rolls back and lowers a rank.
fn diverging_fit() -> (Entries, Options) {
    let (tensor, _) = planted_ratings();
    let mut o = Options::preset("paper").unwrap();
    (o.rank, o.epochs, o.threads, o.eta) = (vec![3, 3, 9], 6, 1, Some(0.01));
    (tensor, o)
}

#[test]
fn rollbacks_and_stop_reasons_are_stored_in_the_model() {
    let dir = Scratch::new("record");
    let (tensor, o) = diverging_fit();
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let mut observer = Events::default();
    let checkpoint = dir.join("c.s3m");
    let input = FitInput {
        checkpoint: Some(checkpoint.clone()),
        test: Some(tensor.view()),
        ..FitInput::default()
    };
    let (fitted, summary) = fit(&problem, &o, &input, &mut observer, &()).unwrap();
    let back = observer
        .0
        .iter()
        .filter(|e| matches!(e, Event::RolledBack { .. }));
    let lowered = observer
        .0
        .iter()
        .filter(|e| matches!(e, Event::RankLowered(_)));
    let (back, lowered) = (back.count(), lowered.count());
    assert!(back > 0 && lowered == 1, "{:?}", observer.0);
    let path = dir.join("m.s3m");
    model::save(&fitted, &path).unwrap();
    let read = model::load(&path, OpenMode::Private).unwrap();
    // Compared as text, since NaN is not equal to itself.
    let text_of = |m: &Model| format!("{:?}", m.record());
    assert_eq!(text_of(&read), text_of(&fitted));
    let count = |m: &Model, kind: &str| m.record().events.iter().filter(|e| e.kind == kind).count();
    assert_eq!(
        (count(&read, "rolled-back"), count(&read, "rank-lowered")),
        (back, lowered)
    );
    let outcome = read.record().outcome.clone().unwrap();
    assert_eq!(
        (outcome.reason.as_str(), outcome.epochs, outcome.threads),
        ("epochs", summary.epochs, 1)
    );
    assert_eq!(outcome.test_rmse, summary.test_rmse);
    assert_eq!(outcome.kernel, summary.kernel.name());
    let page = report(&read, &ReportOptions::default(), &()).unwrap();
    let text = check_html("rollbacks", &page);
    assert!(
        page.contains("class=\"mark alarm\"") && text.contains("the loss exploded"),
        "{text}"
    );
    // A resumed fit keeps the events before its checkpoint.
    let mut more = o.clone();
    more.epochs = 8;
    let input = FitInput {
        resume: Some(checkpoint),
        ..FitInput::default()
    };
    let (resumed, _) = fit(&problem, &more, &input, &mut (), &()).unwrap();
    assert!(count(&resumed, "rolled-back") >= back && count(&resumed, "rank-lowered") == lowered);
}

#[test]
fn lowered_ranks_are_recorded_once() {
    let (tensor, mut o) = diverging_fit();
    (o.eta, o.epochs, o.valid_fraction) = (Some(5e-5), 3, 0.2);
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let events: Vec<&str> = model
        .record()
        .events
        .iter()
        .map(|e| e.kind.as_str())
        .collect();
    assert_eq!(events, ["rank-lowered"]);
}

#[test]
fn large_modes_give_small_reports() {
    const ROWS: u32 = 300_000;
    let rows: Vec<u32> = (0..ROWS).collect();
    let other: Vec<u32> = rows.iter().map(|i| i % 50).collect();
    let values: Vec<f32> = rows
        .iter()
        .map(|&i| hash_unit(u64::from(i)) as f32)
        .collect();
    let dims = [u64::from(u32::MAX) - 1, 50];
    let view = CooView::new("large", &dims, &[&rows, &other], Values::F32(&values)).unwrap();
    let mut o = Options::preset("paper").unwrap();
    (o.rank, o.epochs) = (vec![4], 1);
    let problem = Problem::builder(view.clone()).build(&()).unwrap();
    let (model, _) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let report_options = ReportOptions {
        data: Some(view),
        max_k: 3,
        ..ReportOptions::default()
    };
    let page = report(&model, &report_options, &()).unwrap();
    check_html("large", &page);
    assert!(page.len() < 150_000, "{} bytes", page.len());
}

#[test]
fn mismatched_report_inputs_are_rejected() {
    let dir = Scratch::new("report-bad");
    let list = sample_models();
    let (tensor, genres) = planted_ratings();
    let (model, matrix) = (&list[0].1, &list[6].1);
    assert_eq!(list[6].0, "matrix");
    let assert_rejected = |report_options: ReportOptions<'_>, words: &str| {
        let path = dir.join("page.html");
        let error = write_report(model, &report_options, &path, &())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
        assert!(dir.names().is_empty(), "no files remain");
    };
    let none = ReportOptions::default;
    assert_rejected(
        ReportOptions {
            data: Some(genres.view()),
            ..none()
        },
        "has 2 modes, the model has 3",
    );
    assert_rejected(
        ReportOptions {
            test: Some(genres.view()),
            ..none()
        },
        "has 2 modes, the model has 3",
    );
    assert_rejected(
        ReportOptions {
            against: Some(matrix),
            ..none()
        },
        "only models of the same data",
    );
    for clusters in [vec![(3, 2)], vec![(1, 0)], vec![(1, 2), (1, 3)]] {
        assert_rejected(ReportOptions { clusters, ..none() }, "each mode once");
    }
    assert_rejected(
        ReportOptions {
            matrices: vec![(3, genres.view())],
            ..none()
        },
        "the model has 3 modes",
    );
    assert_rejected(
        ReportOptions {
            matrices: vec![(1, tensor.view())],
            max_k: 2,
            ..none()
        },
        "cluster labels are a matrix",
    );
    let empty = random_entries(&[60, 45, 5], 0);
    let page = report(
        model,
        &ReportOptions {
            data: Some(empty.view()),
            test: Some(empty.view()),
            ..none()
        },
        &(),
    );
    check_html("without entries", &page.unwrap());
}
