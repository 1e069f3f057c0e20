//! The arguments of `s3cmtf bench`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use s3cmtf::generate::PRESETS;

use crate::input::TextArguments;
use crate::trace_file::TRACE_HELP;

/// Measure the speed of fits on this machine
///
/// Fits the same tensor with every combination of algorithm, instruction set and number of threads, interleaved, and
/// reports the fastest epoch of each. Only the time of the updates counts. With `--independent` and 16 threads it also
/// runs 16 fits of 1 thread at the same time, 8 of 2, 4 of 4 and 2 of 8, each with its own copy of the data, and compares
/// their total with one fit: what threads lose by working together. Load of other processes affects both alike.
#[derive(Args)]
#[command(after_help = "\
Operations counted per entry, with N modes, rank J and T threads (for cp: updates of rows only):
  tucker  blocked 6 J^(N-1)   opt (4 + 2/T) J^N        naive (N^2 + N + 1 + 2/T) J^N
  cp      blocked (7N - 8) J  opt (7N - 3 + 3/T) J     naive (N^2 + 3N + 1 + 3/T) J
A multiply-add counts as two. The peak is that of multiply-adds on registers, with the same
instruction set and number of threads, measured in the same run. The columns `x opt` and `x naive`
compare algorithms with the same instruction set and number of threads; naive has scalar code only.

Examples:
  s3cmtf bench
  s3cmtf bench --like netflix --threads 1,2,4,8,16 --algorithm blocked
  s3cmtf bench --like movielens --scale 1 --algorithm blocked --threads 16 --independent --repeats 5
  s3cmtf bench --tensor train.coo --test test.coo --rank 16 --kernel wide,avx2 --json")]
pub(crate) struct Arguments {
    /// Tensor to fit: binary COO, or text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["like", "scale"])]
    pub tensor: Option<PathBuf>,

    /// With --tensor: entries to measure the test error on
    #[arg(long, value_name = "FILE", requires = "tensor")]
    pub test: Option<PathBuf>,

    /// Planted data in the shape of a data set of the paper [default: movielens]
    #[arg(long, value_name = "NAME", value_parser = PRESETS)]
    pub like: Option<String>,

    /// Multiply the number of entries, users and items of the planted data
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1)]
    pub scale: f64,

    /// Rank of every mode
    #[arg(long, value_name = "J", default_value_t = 12, value_parser = value_parser!(u64).range(1..=1024))]
    pub rank: u64,

    /// Core tensor
    #[arg(long, value_name = "NAME", default_value = "tucker", value_parser = ["tucker", "cp"])]
    pub model: String,

    /// Numbers of threads [default: 1 and all available cores]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u64).range(1..=4096))]
    pub threads: Vec<u64>,

    /// Algorithms: blocked, opt, naive
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "blocked,opt,naive"
    )]
    pub algorithm: Vec<String>,

    /// Instruction sets: scalar, wide, avx2, avx512; naive has only scalar
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub kernel: Vec<String>,

    /// Epochs per fit
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub epochs: u64,

    /// Number of repeated measurements
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=1000))]
    pub repeats: u64,

    /// Also measure the same threads as several independent fits at the same time
    #[arg(long)]
    pub independent: bool,

    #[arg(long, value_name = "FILE", help = TRACE_HELP)]
    pub trace: Option<PathBuf>,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    #[command(flatten)]
    pub text: TextArguments,
}
