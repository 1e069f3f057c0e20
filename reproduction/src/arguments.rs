//! The arguments.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::figure::Figure;

/// Measure the paper's tables and figures again, on this machine
///
/// Fits the paper's methods and its competitors to the same data, each with the same budget of time for its search for
/// options on held-out training entries, and writes results.json, results.csv, epochs.csv, one SVG per figure and reproduction.md, which
/// compares every claim of the paper with the measurement. Methods that run out of memory or time are in the tables too.
/// A second run with the same folder continues, and measures only what is missing.
#[derive(Args)]
#[command(after_help = "\
Figures: accuracy (test RMSE against seconds), iteration-time (seconds per iteration), dimensionality (1K to 100M rows per mode), \
entries (10K to 100M), cores (speed-up, beside independent fits), sals (without matrices, against SALS-single), gap (gap \
statistic with and without coupling). `report` measures nothing and writes tables and charts again.
Data sets: a folder with tensor.train.FORMAT, tensor.test.FORMAT and matrices MODE_NAME.FORMAT, or a folder of such folders. MODE \
is a number, or the name of a mode in meta.json ({\"tensor\": {\"modes\": [\"user\", \"movie\", \"month\"]}}). FORMAT is coo, tns, mtx, \
csv or tsv, also gzipped.
Every measurement gets an equal part of the budget that is left. What would not fit is measured on smaller planted data, stopped, or skipped, and \
reproduction.md says so.

Examples:
  s3cmtf-reproduction
  s3cmtf-reproduction accuracy sals --data sets -o results --budget 60
  s3cmtf-reproduction cores --budget 2")]
pub(crate) struct Arguments {
    /// What to measure
    #[arg(value_name = "FIGURE", value_parser = PossibleValuesParser::new(Figure::names()), default_value = "all")]
    pub figures: Vec<String>,

    /// Folder of data sets [default: planted data of the paper's shapes]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// Time to spend
    #[arg(long, value_name = "MINUTES", default_value_t = 20.0)]
    pub budget: f64,

    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER", default_value = "measured")]
    pub output: PathBuf,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}
