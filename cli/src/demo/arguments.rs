//! The arguments of `s3cmtf demo`.

use std::path::PathBuf;

use clap::Args;

/// Run the whole workflow on example data: fit, compare, recommend, cluster, write a report
///
/// The data is planted, or comes from a folder with tensor.train and tensor.test and optionally matrices and names, in files
/// that end in .coo, .tns or .tns.gz (docs/guide/demo.md).
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf demo\n  \
    s3cmtf demo --data ml1m -o ml1m-demo")]
pub(crate) struct Arguments {
    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER", default_value = "s3cmtf-demo")]
    pub output: PathBuf,

    /// Folder of data to use instead of planted data
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}
