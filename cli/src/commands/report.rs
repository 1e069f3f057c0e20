//! `s3cmtf report`

use std::path::{Path, PathBuf};

use crate::report::{ReportOptions, write_report};
use clap::Args;
use s3cmtf::format::{Names, OpenMode};
use s3cmtf::model;
use s3cmtf::{Error, Result};
use serde_json::json;

use crate::coupling_spec::CouplingSpec;
use crate::input::mode_from_one;
use crate::input::{InputFormat, MatchedFile, VerifyArguments};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_integer, print_warning};
use crate::progress::Progress;
use crate::row_names::{NameArguments, column_names_of_model};

/// Write an HTML report on a model: data, convergence, core, factors, concepts, clusters, speed, settings
///
/// The report is one HTML file with embedded figures; it loads nothing from the network. Only the model is required;
/// sections whose inputs are not given are left out.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf report model.s3m -o report.html\n  \
    s3cmtf report model.s3m --data train.coo --test test.coo --matrix 2:genres.coo -o report.html\n  \
    s3cmtf report model.s3m --modes user,film,month --names 2:movies.tsv --max-k 0 -o report.html")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// HTML file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Title of the page [default: the file name of the model]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Training entries: binary COO, or text
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Entries to measure errors on: binary COO, or text
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// Matrix whose columns label the clusters of a mode, in the order of the fit
    #[arg(long, value_name = "MODE:FILE")]
    matrix: Vec<String>,

    /// Names of the modes, such as user,film,month
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    modes: Vec<String>,

    #[command(flatten)]
    names: NameArguments,

    /// File of column names of matrix N, numbered as in the fit [default: files beside the model]
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,

    /// Model of the same data to compare with, such as one fitted without matrices
    #[arg(long, value_name = "MODEL")]
    against: Option<PathBuf>,

    /// Largest number of clusters of a mode; 0: no gap curves, clusters of --clusters only
    #[arg(long, value_name = "K", default_value_t = 12)]
    max_k: usize,

    /// Number of clusters of a mode [default: chosen by the gap statistic]
    #[arg(long, value_name = "MODE:K")]
    clusters: Vec<String>,

    /// Number of rows and columns to list per concept and cluster
    #[arg(short = 'n', long, value_name = "N", default_value_t = 6)]
    top: usize,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    verify: VerifyArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let against = a.against.as_ref();
    let against = against.map(|file| model::load(file, OpenMode::Mapped));
    let against = against.transpose()?;
    let mut matcher = model.row_matcher(&a.model)?;
    if let (Some(against), Some(path)) = (&against, &a.against) {
        let warnings = against.row_matcher(path)?.require_same_rows(&matcher)?;
        warnings.iter().for_each(|text| print_warning(text));
    }
    let mut specs = Vec::new();
    for spec in &a.matrix {
        specs.push(CouplingSpec::parse(spec, "--matrix")?);
    }
    let files = a.data.iter().chain(&a.test);
    let format = InputFormat::of(files.chain(specs.iter().map(|s| &s.file)), a.verify)?;
    let mut open = |file: &PathBuf| format.open_entries(file, &mut matcher, progress);
    let data = a.data.as_ref().map(&mut open).transpose()?;
    let test = a.test.as_ref().map(&mut open).transpose()?;
    let mut matrices: Vec<(usize, MatchedFile)> = Vec::new();
    for (m, spec) in specs.iter().enumerate() {
        let (mode, is_graph) = (spec.mode, spec.kind.is_graph());
        let columns = if is_graph {
            mode
        } else {
            matcher.columns_of(m)
        };
        let columns = Some(columns);
        let file = format.open_coupled(&spec.file, &mut matcher, mode, columns, progress)?;
        matrices.push((mode, file));
    }
    if !a.modes.is_empty() && a.modes.len() != model.order() {
        return Err(Error::Argument(format!(
            "--modes {}: {}, but the model has {}; give one for each",
            a.modes.join(","),
            format_count(a.modes.len() as u64, "name", "names"),
            format_count(model.order() as u64, "mode", "modes"),
        )));
    }
    if let Some(data) = &data {
        model.check_order(&data.view())?;
    }
    let training_entries: u64 = model.modes()[0].counts.iter().sum();
    if let Some(data) = data
        .as_ref()
        .filter(|d| d.file.header().count != training_entries)
    {
        let entries = format_count(data.file.header().count, "entry", "entries");
        print_warning(&format!(
            "{} has {entries}, but the model was fitted to {}; the report shows both numbers",
            data.file.name(),
            format_integer(training_entries)
        ));
    }
    let named_files = a.data.iter().chain(&a.test).map(PathBuf::as_path);
    let named_files: Vec<&Path> = named_files.collect();
    let mut names = a.names.row_names(&model, &a.model, &named_files)?;
    if let Some(against) = &a.against {
        names.load_of_model(against)?;
    }
    let mut columns = column_names_of_model(&a.matrix_names, &model, &a.model, matrices.len())?;
    let has_given_names = |m: usize| {
        a.matrix_names
            .iter()
            .any(|spec| spec.starts_with(&format!("{}:", m + 1)))
    };
    for (m, (_, matched)) in matrices.iter().enumerate() {
        // With names of the columns that only the file has, where the model has names.
        match matcher.names_of(matcher.columns_of(m)) {
            Some(names) if !has_given_names(m) => columns.set(m, Names::clone(names))?,
            _ => matched.set_column_names(&mut columns, m)?,
        }
    }
    let clusters = a.clusters.iter().map(|spec| parse_clusters(spec));
    let clusters: Vec<(usize, usize)> = clusters.collect::<Result<_>>()?;
    let file_name = || a.model.file_name().unwrap_or_default().to_string_lossy();
    let options = ReportOptions {
        title: a.title.clone().unwrap_or_else(|| file_name().into_owned()),
        data: data.as_ref().map(MatchedFile::view),
        test: test.as_ref().map(MatchedFile::view),
        modes: a.modes.clone(),
        names,
        matrices: matrices
            .iter()
            .map(|(mode, file)| (*mode, file.view()))
            .collect(),
        columns,
        against: against.as_ref(),
        max_k: a.max_k,
        clusters,
        top: a.top,
        seed: a.seed,
        threads: a.threads,
    };
    write_report(&model, &options, &a.output, progress)?;
    let bytes = std::fs::metadata(&a.output).map_or(0, |m| m.len());
    out.line(format!(
        "{}: {} KB; open it in a browser",
        a.output.display(),
        format_integer(bytes.div_ceil(1024))
    ));
    out.object(&json!({"output": a.output.display().to_string(), "bytes": bytes}));
    Ok(Outcome::Success)
}

/// Parses `MODE:K`. Returns the mode counted from 0 and the number of clusters.
fn parse_clusters(spec: &str) -> Result<(usize, usize)> {
    let parts = spec.split_once(':');
    let parsed = parts.and_then(|(mode, k)| Some((mode.parse().ok()?, k.parse().ok()?)));
    let Some((mode, k)) = parsed else {
        return Err(Error::Argument(format!(
            "--clusters {spec}: expected MODE:K, a mode and its number of clusters, such as 2:24"
        )));
    };
    Ok((mode_from_one(mode)?, k))
}
