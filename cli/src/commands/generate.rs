//! `s3cmtf generate`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::ValueKind;
use s3cmtf::generate::{GenerateOptions, Generated, MatrixSpec, PRESETS, generate, preset};
use s3cmtf::options::ModelKind;
use s3cmtf::parallel::available_threads;
use serde_json::json;

use crate::input::mode_from_one;
use crate::outcome::Outcome;
use crate::output::{Output, format_dims, format_integer, format_number};
use crate::progress::Progress;

/// Generate planted data: a tensor and coupled matrices sampled from a known model
///
/// Writes tensor.train.coo, tensor.test.coo, matrix1.coo, ... and truth/ (the planted factors as
/// .npy) into a folder. The files depend on the seed, not on the number of threads.
#[derive(Args)]
#[command(after_help = "\
Matrices: --matrix MODE:COLUMNS[:full|:ENTRIES][:ones=FRACTION|:groups=FRACTION]. The matrix has all cells (full) or \
ENTRIES of them. With ones=FRACTION its values are 0 or 1, and that fraction is 1. With groups=FRACTION its columns are \
groups of rows, and that fraction of the variance of the rows is between groups.

Examples:
  s3cmtf generate -o ml --like movielens --scale 0.01
  s3cmtf generate -o small --dims 1000,500,20 --entries 50000 --rank 4 --noise 0.1 --test 0.2
  s3cmtf generate -o pair --dims 2000,800,30 --entries 20000 --rank 6 --matrix 2:40:full --skew 1:20")]
pub(crate) struct Arguments {
    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Shape of a data set of the paper
    #[arg(long, value_name = "NAME", value_parser = PRESETS, conflicts_with_all = ["dims", "entries"], required_unless_present = "dims")]
    like: Option<String>,

    /// With --like: multiply the number of entries, users and items
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "like")]
    scale: f64,

    /// Sizes of the modes
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        requires = "entries"
    )]
    dims: Vec<u64>,

    /// Number of entries, training and test together
    #[arg(long, value_name = "N")]
    entries: Option<u64>,

    /// Planted model: tucker or cp [default: tucker]
    #[arg(long, value_name = "NAME", value_parser = ["tucker", "cp"], hide_possible_values = true)]
    model: Option<String>,

    /// Rank of each mode, or one for all modes [default: 5]
    #[arg(long, value_name = "J,...", value_delimiter = ',')]
    rank: Vec<usize>,

    /// Standard deviation of the noise, relative to that of the planted values [default: 0]
    #[arg(long, value_name = "RATIO")]
    noise: Option<f64>,

    /// Standard deviation of the planted values [default: 1]
    #[arg(long, value_name = "X")]
    deviation: Option<f64>,

    /// Mean of the values [default: not shifted]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    mean: Option<f64>,

    /// Mean of the factor entries, whose standard deviation is 1; above 0, rows have biases
    #[arg(long, value_name = "X")]
    factor_mean: Option<f64>,

    /// Make factors, core and matrix columns non-negative
    #[arg(long)]
    nonneg: bool,

    /// Exponent[:shift] of the Zipf-Mandelbrot law of entries per row, per mode or one for all
    #[arg(long, value_name = "X[:X],...", value_delimiter = ',')]
    skew: Vec<String>,

    /// Coupled matrix; may be repeated, see below
    #[arg(long, value_name = "MODE:COLUMNS")]
    matrix: Vec<String>,

    /// Fraction of test entries [default: 0; with --like 0.2]
    #[arg(long, value_name = "FRACTION")]
    test: Option<f64>,

    /// Storage type of the values
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = ["f32", "f64"])]
    values: String,

    /// Do not write the planted factors
    #[arg(long)]
    no_truth: bool,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let options = options(a)?;
    let generated = generate(&a.output, &options, progress)?;
    report(&generated, started.elapsed().as_secs_f64(), out);
    Ok(Outcome::Success)
}

fn options(a: &Arguments) -> Result<GenerateOptions> {
    let mut o = match &a.like {
        Some(name) => preset(name, a.scale)?,
        None => GenerateOptions::new(&a.dims, a.entries.unwrap_or_default()),
    };
    match a.model.as_deref() {
        Some("cp") => o.model = ModelKind::Cp,
        Some(_) => o.model = ModelKind::Tucker,
        None => {}
    }
    if !a.rank.is_empty() {
        o.ranks = a.rank.clone();
    }
    if !a.skew.is_empty() {
        o.skew = a.skew.iter().map(|s| s.parse()).collect::<Result<_>>()?;
    }
    if !a.matrix.is_empty() {
        o.matrices = a
            .matrix
            .iter()
            .map(|s| parse_matrix(s))
            .collect::<Result<_>>()?;
    }
    for (given, slot) in [
        (a.noise, &mut o.noise),
        (a.deviation, &mut o.deviation),
        (a.factor_mean, &mut o.factor_mean),
        (a.test, &mut o.test_fraction),
    ] {
        if let Some(x) = given {
            *slot = x;
        }
    }
    o.mean = a.mean.or(o.mean);
    o.nonneg |= a.nonneg;
    o.value_kind = if a.values == "f64" {
        ValueKind::F64
    } else {
        ValueKind::F32
    };
    o.write_truth = !a.no_truth;
    o.seed = a.seed;
    o.threads = match a.threads {
        0 => available_threads(),
        n => n,
    };
    Ok(o)
}

/// Parses a coupled matrix, whose mode is counted from 1 as typed.
fn parse_matrix(text: &str) -> Result<MatrixSpec> {
    let spec: MatrixSpec = text.parse()?;
    Ok(MatrixSpec {
        mode: mode_from_one(spec.mode)?,
        ..spec
    })
}

/// Prints the files written and the RMSE of the planted model.
fn report(generated: &Generated, seconds: f64, out: &mut Output) {
    let files = [&generated.train]
        .into_iter()
        .chain(&generated.test)
        .chain(&generated.matrices);
    for (path, header) in files {
        out.line(format!(
            "{}: {} entries, {}",
            path.display(),
            format_integer(header.count),
            format_dims(&header.dims)
        ));
    }
    if let Some(truth) = &generated.truth {
        out.line(format!("{}: factors of the planted model", truth.display()));
    }
    out.line(format!(
        "RMSE of the planted model: {} ({seconds:.2} s)",
        format_number(generated.floor_rmse)
    ));
    let file = |(path, header): &(PathBuf, s3cmtf::format::Header)| json!({"output": path.display().to_string(), "count": header.count, "dims": header.dims});
    out.object(&json!({
        "train": file(&generated.train),
        "test": generated.test.as_ref().map(file),
        "matrices": generated.matrices.iter().map(file).collect::<Vec<_>>(),
        "truth": generated.truth.as_ref().map(|p| p.display().to_string()),
        "test_rmse_planted": generated.floor_rmse,
        "seconds": seconds,
    }));
}
