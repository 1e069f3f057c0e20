//! Assembles the page: heading, key figures and sections.

use std::fmt::Write;
use std::path::Path;

use s3cmtf::Monitor;
use s3cmtf::discover::{check_label_matrix, check_same_data};
use s3cmtf::format::write_atomically;
use s3cmtf::kernel::CoreKind;
use s3cmtf::model::Model;
use s3cmtf::{Error, Result};

use super::context::{PageContext, TestErrors};
use super::html::{count_noun, escape, format_integer, format_seconds, section, truncate};
use super::options::ReportOptions;
use crate::number_format::format_rmse;

/// Returns a report on a model as one page of HTML.
pub fn report(model: &Model, options: &ReportOptions<'_>, monitor: &dyn Monitor) -> Result<String> {
    check_options(model, options)?;
    let context = PageContext {
        model,
        options,
        monitor,
    };
    let errors = options.test.as_ref().map(|test| context.test_errors(test));
    let errors = errors.transpose()?;
    let mut body = String::new();
    let mut contents = Vec::new();
    let sections: [(&str, &str, String); 8] = [
        ("data", "The data", context.data(errors.as_ref())?),
        ("convergence", "Convergence", context.convergence()),
        ("core", "The core", context.core()),
        ("factors", "The factor columns", context.factors()?),
        ("concepts", "Concepts", context.concepts()?),
        ("clusters", "Clusters", context.clusters()?),
        ("speed", "Speed", context.speed()),
        ("settings", "Settings", context.settings()),
    ];
    for (id, title, text) in sections.iter().filter(|(_, _, text)| !text.is_empty()) {
        section(&mut body, id, title, text);
        contents.push(format!("<a href=\"#{id}\">{title}</a>"));
    }
    let title = escape(&truncate(&options.title, 200));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"s3cmtf {}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n{}\n<nav aria-label=\"Contents\">{}</nav>\n{}</header>\n<main>\n{body}</main>\n\
         <footer>Made by s3cmtf {}. Everything on this page is in this file.</footer>\n</body>\n</html>\n",
        s3cmtf::VERSION,
        include_str!("style.css"),
        context.summary(),
        contents.join("\n"),
        context.key_figures(errors.as_ref()),
        s3cmtf::VERSION
    ))
}

/// Writes a report on a model to `path`, complete or not at all.
///
/// ```no_run
/// use s3cmtf::format::OpenMode;
/// use crate::report::{ReportOptions, write_report};
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
    write_atomically(path, |w| w.write_all(page.as_bytes()))
}

/// Returns an error if the data, matrices or second model do not belong to the model, or if an entry is invalid.
fn check_options(model: &Model, options: &ReportOptions<'_>) -> Result<()> {
    for view in options.data.iter().chain(&options.test) {
        model.check_order(view)?;
        view.validate(0..view.len())?;
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
        view.validate(0..view.len())?;
    }
    for (at, &(mode, k)) in options.clusters.iter().enumerate() {
        let is_repeated = options.clusters[..at].iter().any(|c| c.0 == mode);
        if mode >= model.order() || k == 0 || is_repeated {
            return Err(Error::argument(format!(
                "{k} clusters of mode {}: the model has {} modes; give at least 1 cluster, and each mode once",
                mode + 1,
                model.order()
            )));
        }
    }
    Ok(())
}

impl PageContext<'_> {
    /// Returns the sentence under the heading.
    fn summary(&self) -> String {
        let (model, options) = (self.model, self.model.options());
        let kind = match model.shape().kind() {
            CoreKind::Full => "A Tucker model",
            CoreKind::Diagonal => "A CP model",
        };
        let dims: Vec<String> = (0..model.order())
            .map(|n| format!("{} {}", self.mode_name(n), format_integer(model.dims()[n])))
            .collect();
        let ranks: Vec<String> = model.shape().ranks().iter().map(usize::to_string).collect();
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
                count_noun(count, "coupled matrix", "coupled matrices")
            );
        }
        if let Some(samples) = model.samples() {
            let _ = write!(
                text,
                "; predictions are averaged over {}, and factors and core on this page are those of the last sample",
                count_noun(
                    samples.len() as u64,
                    "posterior sample",
                    "posterior samples"
                )
            );
        }
        format!("<p class=\"lead\">{text}.</p>")
    }

    /// Returns the tiles with the most important figures.
    fn key_figures(&self, errors: Option<&TestErrors>) -> String {
        let model = self.model;
        let entries: u64 = model.modes()[0].counts.iter().sum();
        let mut tiles = vec![(format_integer(entries), "training entries".to_string())];
        let last = model.history().iter().rfind(|e| e.loss.is_finite());
        let outcome = model.record().outcome.as_ref();
        let train = outcome.map(|o| o.train_rmse);
        let train = train
            .or(last.map(|e| e.train_rmse))
            .filter(|x| x.is_finite());
        if let Some(train) = train {
            tiles.push((format_rmse(train), "RMSE on training entries".into()));
        }
        let recorded = outcome.map(|o| o.test_rmse);
        let recorded = recorded
            .or(last.map(|e| e.test_rmse))
            .filter(|x| x.is_finite());
        let test = errors.map(|e| e.model.clipped.rmse).or(recorded);
        if let Some(test) = test {
            tiles.push((format_rmse(test), "RMSE on test entries".into()));
        }
        let epochs = outcome.map_or(model.history().len() as u64, |o| o.epochs);
        if epochs > 0 {
            tiles.push((format_integer(epochs), "epochs".into()));
        }
        let update_seconds: f64 = model.history().iter().map(|e| e.update_seconds).sum();
        let fit_seconds = outcome.map_or(update_seconds, |o| o.seconds);
        if fit_seconds > 0.0 {
            let label = match outcome.map_or(0, |o| o.threads) {
                0 => "fitting".into(),
                n => format!("fitting, {}", count_noun(n, "thread", "threads")),
            };
            tiles.push((format_seconds(fit_seconds), label));
        }
        let tiles: String = tiles
            .iter()
            .map(|(value, label)| format!("<li><b>{value}</b><span>{label}</span></li>"))
            .collect();
        format!("<ul class=\"tiles\">{tiles}</ul>\n")
    }
}
