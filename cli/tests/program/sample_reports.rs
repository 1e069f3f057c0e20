//! HTML reports on models of many kinds.

use s3cmtf::discover::RowNames;
use s3cmtf::format::Names;
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::MatrixKind;
use s3cmtf_cli::report::{ReportOptions, report};

use crate::common::Scratch;
use crate::common::in_memory::{
    Entries, fit_ratings, fit_with_matrix, hash_unit, options, planted_ratings,
};

/// A long name that closes elements and attributes, opens a script and reverses the text direction.
pub const HOSTILE_NAME: &str = "</title></style><script>alert(\"1\")</script> & 'O''Hara' <img src=x onerror=alert(2)> \u{202e}evil";

/// Returns names for `count` rows: plain ones, hostile ones, and long ones without a line break opportunity.
pub fn hostile_names(count: usize) -> Names {
    let dir = Scratch::new(&format!("names-{count}"));
    let mut text = String::from("number,name\n");
    for i in 1..=count {
        let name = match i % 3 {
            0 => format!("Plain name {i}"),
            1 => format!("{HOSTILE_NAME} {i}"),
            _ => format!("{}{i}", "Donaudampfschifffahrts".repeat(6)),
        };
        text += &format!("{i},\"{}\"\n", name.replace('"', "\"\""));
    }
    Names::load(dir.file("n.csv", text)).unwrap()
}

/// Returns entries of any order at random positions.
pub fn random_entries(dims: &[u64], count: usize) -> Entries {
    let mut out = Entries::new(dims);
    for i in 0..count as u64 {
        let at = |n: usize| (hash_unit(i * 31 + n as u64) * dims[n] as f64) as u32;
        let index: Vec<u32> = (0..dims.len()).map(at).collect();
        out.push(&index, 1.0 + 4.0 * hash_unit(i * 31 + 17));
    }
    out
}

/// Returns options for a short fit.
fn short_options(algorithm: Algorithm, kind: ModelKind, rank: usize) -> Options {
    let mut o = options(algorithm, kind, rank);
    (o.epochs, o.samples, o.burn_in) = (4, 3, 1);
    o
}

/// Returns models of all kinds with their names.
pub fn sample_models() -> Vec<(&'static str, Model)> {
    let (tensor, genres) = planted_ratings();
    let mut unfitted = fit_ratings(
        &tensor,
        None,
        &short_options(Algorithm::Blocked, ModelKind::Tucker, 2),
    );
    let saved = Scratch::new("unfitted");
    s3cmtf::model::save(&unfitted, saved.join("m.s3m")).unwrap();
    unfitted = s3cmtf::model::load(saved.join("m.s3m"), s3cmtf::format::OpenMode::Private).unwrap();
    let mut one = Entries::new(&[1, 1, 1]);
    one.push(&[0, 0, 0], 3.0);
    let mut paper = Options::preset("paper").unwrap();
    (paper.rank, paper.epochs, paper.threads) = (vec![2], 2, 1);
    let graph = {
        let mut g = Entries::new(&[45, 45]);
        (0..44).for_each(|i| g.push(&[i, i + 1], 1.0));
        g
    };
    let mut large = short_options(Algorithm::Als, ModelKind::Tucker, 40);
    large.rank = vec![40, 30, 5];
    vec![
        (
            "coupled",
            fit_ratings(
                &tensor,
                Some(&genres),
                &short_options(Algorithm::Blocked, ModelKind::Tucker, 4),
            ),
        ),
        (
            "cp",
            fit_ratings(
                &tensor,
                Some(&genres),
                &short_options(Algorithm::Als, ModelKind::Cp, 5),
            ),
        ),
        (
            "full",
            fit_with_matrix(
                &tensor,
                Some((&genres, MatrixKind::Full)),
                &short_options(Algorithm::Blocked, ModelKind::Cp, 3),
            ),
        ),
        (
            "graph",
            fit_with_matrix(
                &tensor,
                Some((&graph, MatrixKind::Graph)),
                &short_options(Algorithm::Blocked, ModelKind::Tucker, 2),
            ),
        ),
        (
            "gibbs",
            fit_ratings(
                &tensor,
                Some(&genres),
                &short_options(Algorithm::Gibbs, ModelKind::Tucker, 3),
            ),
        ),
        ("large ranks", fit_ratings(&tensor, None, &large)),
        (
            "matrix",
            fit_ratings(
                &random_entries(&[70, 9], 300),
                None,
                &short_options(Algorithm::Als, ModelKind::Tucker, 3),
            ),
        ),
        (
            "order 4",
            fit_ratings(
                &random_entries(&[30, 20, 10, 50], 900),
                None,
                &short_options(Algorithm::Als, ModelKind::Tucker, 3),
            ),
        ),
        (
            "order 6",
            fit_ratings(
                &random_entries(&[9, 8, 7, 6, 5, 4], 900),
                None,
                &short_options(Algorithm::Als, ModelKind::Cp, 2),
            ),
        ),
        ("one row", fit_ratings(&one, None, &paper)),
        ("read back", unfitted),
    ]
}

/// Returns reports on the sample models, with hostile names of rows.
pub fn sample_reports(threads: usize) -> Vec<(&'static str, String)> {
    let (tensor, genres) = planted_ratings();
    let uncoupled = fit_ratings(
        &tensor,
        None,
        &short_options(Algorithm::Blocked, ModelKind::Tucker, 2),
    );
    let mut made = Vec::new();
    for (name, model) in sample_models() {
        let mut how = ReportOptions {
            title: format!("{name} {HOSTILE_NAME}"),
            max_k: 4,
            threads,
            ..ReportOptions::default()
        };
        if model.dims() == tensor.dims {
            how.data = Some(tensor.view());
            how.test = Some(tensor.view());
            how.against = Some(&uncoupled);
            how.modes = vec!["user".into(), HOSTILE_NAME.into()];
            how.names = RowNames::new(3);
            (0..3).for_each(|n| {
                how.names
                    .set(n, hostile_names(tensor.dims[n] as usize))
                    .unwrap()
            });
            how.matrices = vec![(1, genres.view())];
            how.columns = RowNames::new(1);
            how.columns
                .set(0, hostile_names(genres.dims[1] as usize))
                .unwrap();
        }
        made.push((name, report(&model, &how, &()).unwrap()));
    }
    made
}

/// Checks that a page is well-formed: every element is closed, attributes are quoted, nothing is loaded from elsewhere.
/// Returns the text.
pub fn check_html(name: &str, page: &str) -> String {
    const EMPTY: [&str; 2] = ["meta", "link"];
    let mut open: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect(name);
    while let Some(at) = rest.find('<') {
        if open.last().is_none_or(|o| o != "style") {
            text += &rest[..at];
        }
        let end = at
            + rest[at..]
                .find('>')
                .unwrap_or_else(|| panic!("{name}: a tag does not end"));
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "{name}: …{tag}");
            continue;
        }
        let (own, word) = (tag.strip_suffix('/'), tag.split([' ', '/']).next().unwrap());
        let fine = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(fine(word), "{name}: <{tag}>");
        assert!(
            !["script", "img", "iframe", "object"].contains(&word),
            "{name}: <{tag}>"
        );
        let attributes = own.unwrap_or(tag)[word.len()..].split('"');
        let attributes: Vec<&str> = attributes.collect();
        assert!(attributes.len() % 2 == 1, "{name}: quotes of <{tag}>");
        for pair in attributes.chunks(2).filter(|p| p.len() == 2) {
            let key = pair[0]
                .trim()
                .strip_suffix('=')
                .unwrap_or_else(|| panic!("{name}: <{tag}>"));
            assert!(!key.starts_with("on") && key != "src", "{name}: <{tag}>");
            if key == "href" {
                assert!(
                    pair[1].starts_with('#') || pair[1] == "data:,",
                    "{name}: <{tag}>"
                );
            }
            if key == "id" {
                assert!(
                    !ids.contains(&pair[1].to_string()),
                    "{name}: two of {}",
                    pair[1]
                );
                ids.push(pair[1].into());
            }
            assert!(
                !pair[1].contains("NaN") && !pair[1].contains("inf "),
                "{name}: <{tag}>"
            );
        }
        if own.is_none() && !EMPTY.contains(&word) {
            open.push(word.into());
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} stay open");
    for link in page.split("href=\"#").skip(1) {
        let to = link.split('"').next().unwrap();
        assert!(ids.iter().any(|i| i == to), "{name}: #{to} is nowhere");
    }
    assert!(
        !page.contains("url(") && !page.contains("@import"),
        "{name}"
    );
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}
