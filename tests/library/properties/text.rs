//! Text: neither the order of lines nor their form changes the problem.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use s3cmtf::format::{CooFile, OpenMode, TextOptions, Values, convert};
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, FitSummary, fit};

use super::{Contents, Entries, Floats, any_dims, check, entries, reading, text_entries};
use crate::common::Scratch;
use crate::common::in_memory::{options, predictions};

/// The form of one line.
#[derive(Debug, Clone)]
struct LineStyle {
    /// Lines before it that have no entry.
    before: Vec<String>,
    /// Blanks before the first field, between fields, and after the last one.
    blanks: [&'static str; 3],
    /// Number of zeros before an index.
    zeros: usize,
    has_exponent: bool,
    is_quoted: bool,
    end: &'static str,
}

impl LineStyle {
    fn index(&self, index: u32) -> String {
        format!("{}{}", "0".repeat(self.zeros), u64::from(index) + 1)
    }

    /// Returns the fewest digits of a number, in its precision.
    fn number(&self, values: Values<'_>, i: usize) -> String {
        match (values, self.has_exponent) {
            (Values::F32(v), false) => format!("{}", v[i]),
            (Values::F32(v), true) => format!("{:e}", v[i]),
            (Values::F64(v), false) => format!("{}", v[i]),
            (Values::F64(v), true) => format!("{:e}", v[i]),
        }
    }

    /// Returns the fields of an entry: indices, value, weight.
    fn fields(&self, entries: &Entries, i: usize) -> Vec<String> {
        let indices = entries.columns.iter().map(|column| self.index(column[i]));
        let value = self.number(entries.values.values(), i);
        let weight = entries.weights.as_ref().map(|w| self.number(w.values(), i));
        indices.chain([value]).chain(weight).collect()
    }
}

/// Forms of lines; `idle_lines` are those without an entry.
fn line_styles(idle_lines: BoxedStrategy<String>) -> impl Strategy<Value = Vec<LineStyle>> {
    let between = select(&[" ", "\t", "  ", " \t ", "\x0b", "\x0c "][..]);
    let outside = || select(&["", " ", "\t", "  "][..]);
    let ends = select(&["\n", "\r\n", "\r"][..]);
    let style = (
        vec(idle_lines, 0..2),
        (outside(), between, outside()),
        0..3usize,
        any::<[bool; 2]>(),
        ends,
    );
    let style =
        style.prop_map(
            |(before, blanks, zeros, [has_exponent, is_quoted], end)| LineStyle {
                before,
                blanks: blanks.into(),
                zeros,
                has_exponent,
                is_quoted,
                end,
            },
        );
    vec(style, 1..8)
}

/// Comments and blank lines of FROSTT text.
fn comments() -> BoxedStrategy<String> {
    let text = vec(any::<char>(), 0..10).prop_map(String::from_iter);
    let text = text.prop_map(|text: String| text.replace(['\0', '\n', '\r'], ""));
    let comment = (select(&["#", " #", "\t# "][..]), text);
    let comment = comment.prop_map(|(start, text)| format!("{start}{text}"));
    prop_oneof![comment, select(&["", " ", "\t"][..]).prop_map(String::from)].boxed()
}

/// Entries and an order of them.
fn shuffled(
    inputs: impl Strategy<Value = Entries>,
) -> impl Strategy<Value = (Entries, Vec<usize>)> {
    inputs.prop_flat_map(|entries| {
        let positions: Vec<usize> = (0..entries.len()).collect();
        (Just(entries), Just(positions).prop_shuffle())
    })
}

/// Joins lines, each with its style.
fn join_lines(
    styles: &[LineStyle],
    lines: usize,
    line: impl Fn(&LineStyle, usize) -> String,
) -> String {
    let mut text = String::new();
    for (k, style) in styles.iter().cycle().take(lines).enumerate() {
        for idle in &style.before {
            text += &format!("{idle}{}", style.end);
        }
        text += &format!("{}{}", line(style, k), style.end);
    }
    text
}

/// Converts a text and checks that it has the given entries.
fn check_text(text: &str, name: &Path, options: &TextOptions, expected: &Entries) {
    std::fs::write(name, text).unwrap();
    let output = name.with_extension("coo");
    let report =
        convert(name.into(), &output, options, &()).unwrap_or_else(|e| panic!("{e}: {text:?}"));
    assert!(report.names.is_empty());
    let file = CooFile::open(&output, OpenMode::Mapped).unwrap();
    let expected = Contents::new(&expected.view());
    assert_eq!(Contents::new(&file.view()), expected, "{text:?}");
}

#[test]
fn lines_of_frostt_text_have_any_order_and_form() {
    let scratch = Scratch::new("properties-frostt");
    let inputs = (
        shuffled(text_entries(any_dims(), 0..40)),
        line_styles(comments()),
        any::<[bool; 2]>(),
    );
    check(
        100,
        inputs,
        |((entries, order), styles, [has_mark, is_zero_based])| {
            let (mut options, expected) = reading(entries.select(&order));
            options.weighted = entries.weights.is_some();
            options.zero_based = is_zero_based;
            let line = |style: &LineStyle, k: usize| {
                let mut fields = style.fields(&entries, order[k]);
                if is_zero_based {
                    let columns = entries.columns.iter().zip(&mut fields);
                    columns.for_each(|(column, field)| *field = column[order[k]].to_string());
                }
                let [before, between, after] = style.blanks;
                format!("{before}{}{after}", fields.join(between))
            };
            let text = join_lines(&styles, order.len(), line);
            let mark = if has_mark { "\u{feff}" } else { "" };
            // An empty file is refused.
            let text = format!("{mark}{text}# end");
            check_text(&text, &scratch.join("a.tns"), &options, &expected);
        },
    );
}

#[test]
fn lines_and_columns_of_csv_and_tsv_have_any_order() {
    let scratch = Scratch::new("properties-csv");
    let idle_lines = select(&["", " "][..]).prop_map(String::from).boxed();
    let columns = Just((0..10).collect::<Vec<usize>>()).prop_shuffle();
    let inputs = (
        shuffled(text_entries(any_dims(), 0..40)),
        line_styles(idle_lines),
        columns,
        any::<bool>(),
    );
    check(
        100,
        inputs,
        |((entries, order), styles, columns, has_tabs)| {
            let (mut options, expected) = reading(entries.select(&order));
            let modes: Vec<String> = (0..entries.order()).map(|n| format!("mode {n}")).collect();
            options.delimited.columns = modes.clone();
            options.delimited.value = Some("value".into());
            options.delimited.weight = entries.weights.as_ref().map(|_| "weight".into());
            let header: Vec<String> = modes
                .into_iter()
                .chain(["value".into(), "weight".into()])
                .collect();
            let width = entries.order() + 1 + usize::from(entries.weights.is_some());
            let line = |style: &LineStyle, k: usize| {
                let fields = match k {
                    0 => header.clone(),
                    k => style.fields(&entries, order[k - 1]),
                };
                let [before, _, after] = style.blanks;
                let written = |&column: &usize| match &fields[column] {
                    // A blank is part of a field, and a tab would separate two.
                    field if has_tabs => field.clone(),
                    field if style.is_quoted => format!("\"{field}\""),
                    field => format!("{before}{field}{after}"),
                };
                let fields = columns
                    .iter()
                    .filter(|&&column| column < width)
                    .map(written);
                fields
                    .collect::<Vec<_>>()
                    .join(if has_tabs { "\t" } else { "," })
            };
            let text = join_lines(&styles, order.len() + 1, line);
            let name = if has_tabs { "a.tsv" } else { "a.csv" };
            check_text(&text, &scratch.join(name), &options, &expected);
        },
    );
}

#[test]
fn lines_of_matrix_market_text_have_any_order_and_form() {
    let scratch = Scratch::new("properties-mtx");
    let dims = vec(prop_oneof![1..5u64, 1..100_000u64], 2).boxed();
    let idle_lines = select(&["%", "% a comment", "", " "][..])
        .prop_map(String::from)
        .boxed();
    let inputs = (shuffled(text_entries(dims, 0..40)), line_styles(idle_lines));
    check(30, inputs, |((mut entries, order), styles)| {
        (entries.weights, entries.has_inferred_dims) = (None, false);
        let (mut options, expected) = reading(entries.select(&order));
        options.dims = None;
        let line = |style: &LineStyle, k: usize| match k {
            0 => format!("{} {} {}", entries.dims[0], entries.dims[1], order.len()),
            k => style.fields(&entries, order[k - 1]).join(style.blanks[1]),
        };
        let lines = join_lines(&styles, order.len() + 1, line);
        let text = format!("%%MatrixMarket matrix coordinate real general\n{lines}");
        check_text(&text, &scratch.join("a.mtx"), &options, &expected);
    });
}

/// Small tensors with moderate values, and an order of their entries.
fn small_tensors() -> impl Strategy<Value = (Entries, Vec<usize>)> {
    let dims = vec(1..8u64, 2..5).boxed();
    shuffled(
        entries(dims, 10..60, (-5.0..5.0).boxed()).prop_map(|mut entries| {
            // Weights of moderate size.
            let count = entries.len();
            let moderate = |weights: Floats| {
                let numbers = (0..count).map(|i| 0.5 + (i % 4) as f64 / 2.0);
                Floats::new(weights.values().kind(), numbers)
            };
            entries.weights = entries.weights.map(moderate);
            entries
        }),
    )
}

#[test]
fn problems_are_independent_of_the_order_of_entries() {
    check(30, small_tensors(), |(entries, order)| {
        let shuffled = entries.select(&order);
        let [a, b] = [&entries, &shuffled].map(|e| Problem::builder(e.view()).build(&()).unwrap());
        assert_eq!(
            (a.count(), a.range(), a.is_bounded()),
            (b.count(), b.range(), b.is_bounded())
        );
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-9, "{x} and {y}");
        close(a.mean(), b.mean());
        close(a.standard_deviation(), b.standard_deviation());
        close(a.root_mean_square(), b.root_mean_square());
        close(a.total_weight(), b.total_weight());
        for (a, b) in a.modes().iter().zip(b.modes()) {
            assert_eq!(
                (a.dim(), a.indices(), a.counts()),
                (b.dim(), b.indices(), b.counts())
            );
            a.weights()
                .iter()
                .zip(b.weights())
                .for_each(|(&x, &y)| close(x, y));
        }
    });
}

/// Fits a model for one epoch. Returns its predictions at its entries, and the summary.
fn fit_once(entries: &Entries, algorithm: Algorithm, model: ModelKind) -> (Vec<f64>, FitSummary) {
    let problem = Problem::builder(entries.view()).build(&()).unwrap();
    let mut o = options(algorithm, model, 2);
    (o.epochs, o.threads) = (1, 1);
    (o.pin, o.eta) = (false, Some(0.005));
    let (model, summary) = fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let cells = crate::common::in_memory::Entries::from_view(&entries.view());
    (predictions(&model, &cells), summary)
}

/// Row-wise least squares sums over all entries of a row. SGD visits entries in an order that depends on their positions, so
/// that only its errors are similar.
#[test]
fn fits_of_shuffled_entries_agree() {
    let models = select(&[ModelKind::Tucker, ModelKind::Cp][..]);
    check(
        40,
        (small_tensors(), models),
        |((entries, order), model)| {
            let shuffled = entries.select(&order);
            let (a, of_a) = fit_once(&entries, Algorithm::Als, model);
            let (b, of_b) = fit_once(&shuffled, Algorithm::Als, model);
            for (k, &i) in order.iter().enumerate() {
                assert!((a[i] - b[k]).abs() < 1e-3, "{} and {}", a[i], b[k]);
            }
            assert!((of_a.train_rmse - of_b.train_rmse).abs() < 1e-3);
            for algorithm in [Algorithm::Blocked, Algorithm::Opt] {
                let [a, b] =
                    [&entries, &shuffled].map(|e| fit_once(e, algorithm, model).1.train_rmse);
                assert!((a - b).abs() < 0.1 * a.max(b), "{algorithm:?}: {a} and {b}");
            }
        },
    );
}
