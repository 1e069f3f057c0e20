//! A page to look at: what a model is, how it was fitted and what it found.
//!
//! One file of HTML with its style and its pictures in it and no script, so that it opens from a disk, without a
//! network, and prints. Whatever comes from data or files is escaped. Large models give small pages: long lists are
//! cut, large tables pooled, and the page says so.

mod chart;
mod convergence;
mod data;
mod findings;
mod heat_map;
mod html;
mod parts;
mod settings;

use std::fmt::Write;
use std::path::Path;

use crate::discover::{RowNames, check_label_matrix, check_same_data};
use crate::error::{Error, Result};
use crate::format::{CooView, atomic};
use crate::model::{BiasModel, Model};
use crate::predict::{Evaluation, evaluate};

use crate::kernel::CoreKind;
use crate::progress::Monitor;
use html::{counted, escape, grouped, number, section};

/// What a report shows besides the model itself. All of it may be left out.
#[derive(Clone)]
pub struct ReportOptions<'a> {
    /// The heading.
    pub title: String,
    /// The entries that were fitted to.
    pub data: Option<CooView<'a>>,
    /// Entries to measure errors on.
    pub test: Option<CooView<'a>>,
    /// What the modes are called: `user`, `film`. Those without are numbered.
    pub modes: Vec<String>,
    /// The names of the rows of each mode.
    pub names: RowNames,
    /// Matrices that say what clusters have in common, each with the mode of its rows (counted from 0), in the order
    /// in which the model was fitted with them.
    pub matrices: Vec<(usize, CooView<'a>)>,
    /// The names of the columns of each matrix.
    pub columns: RowNames,
    /// Another model of the same data, fitted without matrices perhaps, to compare with.
    pub against: Option<&'a Model>,
    /// The most clusters that are looked for in a mode; 0 leaves clusters out.
    pub max_k: usize,
    /// Modes, counted from 0, with the number of clusters that is shown of them; of others the gap statistic chooses. A
    /// mode comes once.
    pub clusters: Vec<(usize, usize)>,
    /// How many rows and columns are listed of each concept and cluster.
    pub top: usize,
    /// For clusters, which are found anew.
    pub seed: u64,
    /// 0 means all this process may use; the page does not depend on the number.
    pub threads: usize,
}

impl Default for ReportOptions<'_> {
    fn default() -> Self {
        ReportOptions {
            title: "A fitted model".into(),
            data: None,
            test: None,
            modes: Vec::new(),
            names: RowNames::default(),
            matrices: Vec::new(),
            columns: RowNames::default(),
            against: None,
            max_k: 12,
            clusters: Vec::new(),
            top: 6,
            seed: 0,
            threads: 0,
        }
    }
}

/// What all parts of a page are made from.
struct Context<'a> {
    model: &'a Model,
    options: &'a ReportOptions<'a>,
    monitor: &'a dyn Monitor,
}

impl Context<'_> {
    /// What a mode is called, escaped.
    fn mode(&self, n: usize) -> String {
        match self.options.modes.get(n).filter(|m| !m.is_empty()) {
            Some(name) => escape(&html::cut(name, 40)),
            None => format!("mode {}", n + 1),
        }
    }

    /// A row for people, escaped.
    fn row(&self, mode: usize, row: u32) -> String {
        escape(&html::cut(&self.options.names.display_name(mode, row), 80))
    }

    /// A column of a matrix for people, escaped.
    fn column(&self, matrix: usize, column: u32) -> String {
        escape(&html::cut(
            &self.options.columns.display_name(matrix, column),
            60,
        ))
    }
}

/// Makes a report; see [`write_report`].
pub fn report(model: &Model, options: &ReportOptions<'_>, monitor: &dyn Monitor) -> Result<String> {
    for view in options.data.iter().chain(&options.test) {
        model.check_order(view)?;
    }
    if let Some(other) = options.against {
        check_same_data(model, other)?;
    }
    for (m, (mode, view)) in options.matrices.iter().enumerate() {
        if *mode >= model.order() {
            return Err(Error::argument(format!(
                "{}: matrix {} has the rows of mode {}; the model has {} modes",
                view.name(),
                m + 1,
                mode + 1,
                model.order()
            )));
        }
        check_label_matrix(model, *mode, view)?;
    }
    for (at, &(mode, k)) in options.clusters.iter().enumerate() {
        let again = options.clusters[..at].iter().any(|c| c.0 == mode);
        if mode >= model.order() || k == 0 || again {
            return Err(Error::argument(format!(
                "{k} clusters of mode {}: the model has {} modes; give at least 1 cluster, and each mode once",
                mode + 1,
                model.order()
            )));
        }
    }
    let c = Context {
        model,
        options,
        monitor,
    };
    let errors = options.test.as_ref().map(|test| c.errors(test));
    let errors = errors.transpose()?;
    let mut body = String::new();
    let mut contents = Vec::new();
    let parts: [(&str, &str, String); 8] = [
        ("data", "The data", c.data(errors.as_ref())?),
        ("course", "How the fit went", c.course()),
        ("core", "The core", c.core()?),
        ("factors", "The columns of the factors", c.factors()?),
        ("concepts", "Concepts", c.concepts()?),
        ("clusters", "Clusters", c.clusters()?),
        ("speed", "Speed", c.speed()),
        ("settings", "Settings", c.settings()),
    ];
    for (id, title, text) in parts.iter().filter(|(_, _, text)| !text.is_empty()) {
        section(&mut body, id, title, text);
        contents.push(format!("<a href=\"#{id}\">{title}</a>"));
    }
    let title = escape(&html::cut(&options.title, 200));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"s3cmtf {}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n{}\n<nav aria-label=\"Contents\">{}</nav>\n{}</header>\n<main>\n{body}</main>\n\
         <footer>Made by s3cmtf {}. Everything on this page is in this file.</footer>\n</body>\n</html>\n",
        crate::VERSION,
        include_str!("style.css"),
        c.lead(),
        contents.join("\n"),
        c.tiles(errors.as_ref()),
        crate::VERSION
    ))
}

/// Writes a report on a model to `path`: one page of HTML, complete or not at all.
///
/// ```no_run
/// use s3cmtf::format::OpenMode;
/// use s3cmtf::report::{ReportOptions, write_report};
/// # fn main() -> s3cmtf::Result<()> {
/// let model = s3cmtf::model::load("model.s3m", OpenMode::Mapped)?;
/// write_report(&model, &ReportOptions::default(), "report.html".as_ref(), &())?;
/// # Ok(())
/// # }
/// ```
pub fn write_report(
    model: &Model,
    options: &ReportOptions<'_>,
    path: &Path,
    monitor: &dyn Monitor,
) -> Result<()> {
    let page = report(model, options, monitor)?;
    atomic::stage(path, |w| w.write_all(page.as_bytes()))?.commit()
}

/// Errors on test entries: of the model, and of the mean alone.
struct TestErrors {
    model: Evaluation,
    mean: f64,
}

impl Context<'_> {
    fn errors(&self, test: &CooView<'_>) -> Result<TestErrors> {
        let (range, threads) = (self.model.range(), self.options.threads);
        let model = evaluate(self.model, test, range, threads, self.monitor)?;
        // What the training values are around, as far as the model knows.
        let centre = match (&self.options.data, self.model.mean()) {
            (Some(data), _) if !data.is_empty() => {
                let values = data.values();
                (0..data.len()).map(|i| values.get(i)).sum::<f64>() / data.len() as f64
            }
            (_, mean) if mean != 0.0 => mean,
            _ => f64::NAN,
        };
        let mean = match centre.is_finite() {
            true => {
                let mean = BiasModel::new(centre, Vec::new());
                evaluate(&mean, test, range, threads, self.monitor)?
                    .clipped
                    .rmse
            }
            false => f64::NAN,
        };
        Ok(TestErrors { model, mean })
    }

    fn lead(&self) -> String {
        let (model, options) = (self.model, self.model.options());
        let kind = match model.shape().kind {
            CoreKind::Full => "A Tucker model",
            CoreKind::Diagonal => "A CP model",
        };
        let dims: Vec<String> = (0..model.order())
            .map(|n| format!("{} {}", self.mode(n), grouped(model.dims()[n])))
            .collect();
        let ranks: Vec<String> = model.shape().ranks.iter().map(usize::to_string).collect();
        let mut text = format!(
            "{kind} of a tensor with {} modes ({}), ranks {}, fitted by <b>{}</b>",
            model.order(),
            dims.join(" × "),
            ranks.join(" × "),
            escape(&options.get("algorithm").unwrap_or_default())
        );
        if !model.matrices().is_empty() {
            let count = model.matrices().len() as u64;
            let _ = write!(
                text,
                " together with {}",
                counted(count, "coupled matrix", "coupled matrices")
            );
        }
        if let Some(samples) = model.samples() {
            let _ = write!(
                text,
                "; predictions are averaged over {}, and what is shown of factors is the last draw",
                counted(samples.len() as u64, "sample", "samples")
            );
        }
        format!("<p class=\"lead\">{text}.</p>")
    }

    /// The figures that are looked for first.
    fn tiles(&self, errors: Option<&TestErrors>) -> String {
        let model = self.model;
        let entries: u64 = model.modes()[0].counts.iter().sum();
        let mut tiles = vec![(grouped(entries), "training entries".to_string())];
        let last = model.history().iter().rfind(|e| e.loss.is_finite());
        let ending = model.record().outcome.as_ref();
        let train = ending.map(|e| e.train_rmse);
        let train = train
            .or(last.map(|e| e.train_rmse))
            .filter(|x| x.is_finite());
        if let Some(train) = train {
            tiles.push((number(train), "RMSE on training entries".into()));
        }
        let kept = ending.map(|e| e.test_rmse);
        let kept = kept.or(last.map(|e| e.test_rmse)).filter(|x| x.is_finite());
        match (errors, kept) {
            (Some(e), _) => {
                tiles.push((number(e.model.clipped.rmse), "RMSE on test entries".into()));
            }
            (None, Some(test)) => tiles.push((number(test), "RMSE on test entries".into())),
            _ => {}
        }
        let epochs = ending.map_or(model.history().len() as u64, |e| e.epochs);
        if epochs > 0 {
            tiles.push((grouped(epochs), "epochs".into()));
        }
        let spent: f64 = model.history().iter().map(|e| e.update_seconds).sum();
        let spent = ending.map_or(spent, |e| e.seconds);
        if spent > 0.0 {
            let threads = ending.map_or(0, |e| e.threads);
            let on = match threads {
                0 => "fitting".into(),
                n => format!("fitting, {}", counted(n, "thread", "threads")),
            };
            tiles.push((html::seconds(spent), on));
        }
        let tiles: String = tiles
            .iter()
            .map(|(value, what)| format!("<li><b>{value}</b><span>{what}</span></li>"))
            .collect();
        format!("<ul class=\"tiles\">{tiles}</ul>\n")
    }
}
