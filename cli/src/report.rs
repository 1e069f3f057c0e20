//! `s3cmtf report`

use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::format::{CooFile, Names, OpenMode, TextOptions};
use s3cmtf::model;
use s3cmtf::report::{ReportOptions, write_report};
use s3cmtf::{Error, Result};
use serde_json::json;

use super::fit::coupled;
use super::input::{open_with, same_file};
use super::lists::{NameArguments, column_names_of, files_of};
use super::output::{Output, complain, counted, grouped};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Write a page about a model: data, how the fit went, core, factors, concepts, clusters, speed, settings
///
/// One file of HTML with its pictures in it, for a browser or a printer; it needs no network. Whatever is not given is
/// left out: a model alone gives a page.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf report model.s3m -o report.html\n  \
    s3cmtf report model.s3m --data train.coo --test test.coo --matrix 2:genres.coo --modes user,film,month \\\n      \
    --names 2:movies.tsv --matrix-names 1:genres.tsv -o report.html")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,

    /// Where the page goes
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// The heading; by default the name of the model's file
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// The entries that were fitted to. Binary COO or text
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Entries to measure errors on. Binary COO or text
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// A matrix whose first mode has the rows of a mode, as in the fit and in the same order; says what clusters have
    /// in common
    #[arg(long, value_name = "MODE:FILE")]
    matrix: Vec<String>,

    /// What the modes are called, such as user,film,month
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    modes: Vec<String>,

    #[command(flatten)]
    names: NameArguments,

    /// Names of the columns of a matrix, numbered from 1 as in the fit: an index and a name in each line
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,

    /// Another model of the same data, fitted without matrices perhaps, to compare with
    #[arg(long, value_name = "MODEL")]
    against: Option<PathBuf>,

    /// The most clusters that are looked for in a mode; 0 leaves clusters out
    #[arg(long, value_name = "K", default_value_t = 12)]
    max_k: usize,

    /// Show so many clusters of a mode instead of as many as the gap statistic says
    #[arg(long, value_name = "MODE:K")]
    clusters: Vec<String>,

    /// Rows and columns to list of each concept and cluster
    #[arg(short = 'k', long, value_name = "N", default_value_t = 6)]
    top: usize,

    /// For clusters
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    model::check_target(&a.output)?;
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let against = a.against.as_ref();
    let against = against.map(|file| model::load(file, OpenMode::Mapped));
    let against = against.transpose()?;
    let open = |file: &Path| open_with(file, &TextOptions::default(), progress);
    let data = a.data.as_deref().map(open).transpose()?;
    let test = a.test.as_deref().map(open).transpose()?;
    let mut matrices: Vec<(usize, PathBuf, CooFile)> = Vec::new();
    for spec in &a.matrix {
        let spec = coupled(spec, "--matrix")?;
        let file = open(&spec.file)?;
        matrices.push((spec.mode, spec.file, file));
    }
    let read = [Some(&a.model), a.data.as_ref(), a.test.as_ref()];
    let read = read.into_iter().flatten().chain(&a.against);
    let named = [
        a.names.files()?,
        files_of(&a.matrix_names, "--matrix-names")?,
    ];
    let read = read.chain(matrices.iter().map(|(_, path, _)| path));
    let read = read.chain(named.iter().flatten());
    if let Some(input) = read.into_iter().find(|input| same_file(input, &a.output)) {
        return Err(Error::Argument(format!(
            "{} is read here and would be overwritten; write to another file",
            input.display()
        )));
    }
    if !a.modes.is_empty() && a.modes.len() != model.order() {
        return Err(Error::Argument(format!(
            "--modes {}: {}, but the model has {}; give one for each",
            a.modes.join(","),
            counted(a.modes.len() as u64, "name", "names"),
            counted(model.order() as u64, "mode", "modes"),
        )));
    }
    if let Some(data) = &data {
        model.check_order(&data.view())?;
    }
    let fitted: u64 = model.modes()[0].counts.iter().sum();
    if let Some(data) = data.as_ref().filter(|d| d.header().count != fitted) {
        let has = counted(data.header().count, "entry", "entries");
        complain(&format!(
            "{} has {has}, but the model was fitted to {}: the page says so of both",
            data.name(),
            grouped(fitted)
        ));
    }
    let beside = [&a.model].into_iter().chain(&a.data);
    let beside = beside.chain(&a.test).chain(&a.against);
    let beside: Vec<&Path> = beside.map(PathBuf::as_path).collect();
    let names = a.names.row_names(&model, &beside)?;
    let mut columns = column_names_of(&a.matrix_names, (&model, &a.model), matrices.len())?;
    for (m, (mode, path, _)) in matrices.iter().enumerate() {
        names.check_matrix(*mode, path)?;
        if columns.of_mode(m).is_none()
            && let Some(beside) = Names::load_beside(path, 1)?
        {
            columns.set(m, beside)?;
        }
    }
    let clusters = a.clusters.iter().map(|spec| clusters_of(spec));
    let clusters: Vec<(usize, usize)> = clusters.collect::<Result<_>>()?;
    let name = || a.model.file_name().unwrap_or_default().to_string_lossy();
    let options = ReportOptions {
        title: a.title.clone().unwrap_or_else(|| name().into_owned()),
        data: data.as_ref().map(CooFile::view),
        test: test.as_ref().map(CooFile::view),
        modes: a.modes.clone(),
        names,
        matrices: matrices
            .iter()
            .map(|(mode, _, file)| (*mode, file.view()))
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
        "{}: {} KB, to be opened in a browser",
        a.output.display(),
        grouped(bytes.div_ceil(1024))
    ));
    out.object(&json!({"output": a.output.display().to_string(), "bytes": bytes}));
    Ok(Verdict::Good)
}

/// A mode and a number of clusters.
fn clusters_of(spec: &str) -> Result<(usize, usize)> {
    let both = spec.split_once(':');
    let both = both.and_then(|(mode, k)| Some((mode.parse().ok()?, k.parse().ok()?)));
    let Some((mode, k)) = both else {
        return Err(Error::Argument(format!(
            "--clusters {spec}: give a mode and how many clusters to show of it, as in 2:24"
        )));
    };
    Ok((mode_from_one(mode)?, k))
}
