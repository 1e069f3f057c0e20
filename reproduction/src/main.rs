//! The program that measures the paper's tables and figures again: `s3cmtf-reproduction FIGURE...`.
//!
//! It is also the program `s3cmtf` with the baselines for the commands in [`COMMANDS`], which the measurements run as processes of
//! their own: `s3cmtf-reproduction fit --algorithm sals ...`.
#![deny(unsafe_code)]

use std::env;
use std::process::ExitCode;

use s3cmtf_reproduction::{ALGORITHMS, program};

/// Commands of `s3cmtf` that know the baselines. No figure has one of these names.
const COMMANDS: [&str; 11] = [
    "bench", "clusters", "convert", "eval", "export", "fit", "fold-in", "generate", "info",
    "predict", "tune",
];

fn main() -> ExitCode {
    let first = env::args().nth(1);
    match first.is_some_and(|first| COMMANDS.contains(&&first[..])) {
        true => s3cmtf_cli::program::main(ALGORITHMS),
        false => program::main(),
    }
}
