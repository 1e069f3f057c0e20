//! The HTML report of a demo, and the commands to try next.

use std::path::{Path, PathBuf};

use crate::report::{ReportOptions, write_report};
use s3cmtf::Result;

use super::context::Context;
use super::fits::Fits;
use crate::output::Output;

/// Writes the report with `cluster_count` clusters of `clustered_mode`. Returns its path.
pub(super) fn write_demo_report(
    context: &Context<'_>,
    fits: &Fits,
    clustered_mode: usize,
    cluster_count: usize,
    out: &mut Output,
) -> Result<PathBuf> {
    let (arguments, data) = (context.arguments, context.data);
    let folder = &arguments.output;
    let path = folder.join("report.html");
    let options = ReportOptions {
        title: match &arguments.data {
            None => "People and places to eat: a planted example".into(),
            Some(data) => format!("A model of {}", folder_name(data)),
        },
        data: Some(data.train.view()),
        test: Some(data.test.view()),
        modes: data.mode_names.clone(),
        names: context.names.clone(),
        matrices: data
            .matrices
            .iter()
            .map(|m| (m.mode, m.file.view()))
            .collect(),
        columns: data.column_names()?,
        against: fits.comparison().map(|f| &f.model),
        clusters: vec![(clustered_mode, cluster_count)],
        // The gap curves of all modes would take longer than everything else.
        max_k: 0,
        seed: arguments.seed,
        threads: arguments.threads,
        ..ReportOptions::default()
    };
    write_report(&fits.main().model, &options, &path, context.progress)?;
    context.progress.clear();
    let model = folder.join(format!("{}.s3m", fits.main().name));
    let matrices = data.matrices_of(clustered_mode);
    let matrices = matrices.map(|(_, m)| format!(" --matrix {}", m.file.name()));
    out.line(format!(
        "\nThe page with curves, core, concepts and clusters is {}; open it in a browser.\n\
         Models, logs and names of rows are beside it.\n\n\
         Try next:\n  s3cmtf recommend {1} --mode 2 --for 1:1 --exclude {2}\n  s3cmtf clusters {1} --mode {3} -k {cluster_count}{4}",
        path.display(),
        model.display(),
        data.train.name(),
        clustered_mode + 1,
        matrices.collect::<String>()
    ));
    Ok(path)
}

/// Returns the last component of a path, also of `.` and `..`.
fn folder_name(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
