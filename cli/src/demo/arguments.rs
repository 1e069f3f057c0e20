//! The arguments of `s3cmtf demo`.

use std::path::PathBuf;

use clap::Args;

/// Run the whole workflow on planted data, or on a folder of yours: fit with and without matrices, compare, recommend,
/// cluster, and write a report
#[derive(Args)]
#[command(
    after_help = "A folder of --data has tensor.train and tensor.test, and optionally matrices and names (docs/demo.md); \
    data files end in .coo, .tns or .tns.gz.\n\n\
Examples:\n  \
    s3cmtf demo\n  \
    s3cmtf demo --data ml1m -o ml1m-demo"
)]
pub(crate) struct Arguments {
    /// The folder to write into
    #[arg(short, long, value_name = "FOLDER", default_value = "s3cmtf-demo")]
    pub output: PathBuf,

    /// A folder with tensor.train, tensor.test, matrices and names, instead of planted data
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}
