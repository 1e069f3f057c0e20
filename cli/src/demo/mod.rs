//! `s3cmtf demo`

mod data;
mod fits;
mod folder;
mod story;
mod words;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use s3cmtf::{Error, Result};

use super::Verdict;
use super::input::same_file;
use super::output::Output;
use super::progress::Progress;

/// Run the whole path on embedded data, or on a folder of yours: fit with and without matrices, compare, recommend,
/// cluster, and write a page to look at
#[derive(Args)]
#[command(
    after_help = "A folder of --data has tensor.train and tensor.test, and matrices and names as docs/demo.md says; \
    each as .coo, .tns or .tns.gz.\n\n\
Examples:\n  \
    s3cmtf demo\n  \
    s3cmtf demo --data ml1m -o ml1m-demo"
)]
pub(super) struct Arguments {
    /// The folder to write into
    #[arg(short, long, value_name = "FOLDER", default_value = "s3cmtf-demo")]
    output: PathBuf,

    /// Real data instead of planted: a folder with tensor.train, tensor.test, matrices and names
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,

    /// Decides everything
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let started = Instant::now();
    if a.output.exists() && !a.output.is_dir() {
        return Err(Error::File {
            file: a.output.display().to_string(),
            reason: "is no folder; -o takes one to write into, which is made if need be".into(),
        });
    }
    if a.data
        .as_deref()
        .is_some_and(|data| same_file(data, &a.output))
    {
        return Err(Error::File {
            file: a.output.display().to_string(),
            reason: "is the folder of --data, and models and a page would be written among the data; give -o another".into(),
        });
    }
    let set = match &a.data {
        None => data::plant(&a.output, a.seed, progress, out)?,
        Some(folder) => folder::open(folder, &a.output, progress, out)?,
    };
    out.flush()?;
    story::tell(a, &set, started, progress, out)?;
    Ok(Verdict::Good)
}
