//! The command-line program. Arguments come in; text or JSON lines and an exit code go out. All computation is in the
//! library.
//!
//! - `commands/`: one file per command; start with `commands/mod.rs`, then `commands/fit.rs`.
//! - `bench/` and `demo/`: the two largest commands.
//! - `lib.rs`: the job runner (`batch/`) and the HTML page (`report/`), which tests also call directly.
//! - `input`, `output`, `progress`: files, standard output, the progress bar and Ctrl-C.
//! - `option_arguments`, `coupling_spec`, `fit_data`, `fit_observer`: shared by `fit`, `tune`, `batch` and `fold-in`.
//! - `row_names`, `row_lists`: names of rows and ranked lists of them.
//!
//! Modes and indices are numbered from 1 on the command line and from 0 in the library.
#![deny(unsafe_code)]

mod bench;
mod commands;
mod coupling_spec;
mod demo;
mod fit_data;
mod fit_observer;
mod input;
mod interruptible_reader;
mod option_arguments;
mod outcome;
mod output;
mod progress;
mod row_lists;
mod row_names;

use std::process::ExitCode;

use clap::Parser;
use s3cmtf::ErrorKind;

use commands::Command;
use outcome::Outcome;
use output::Output;
use progress::Progress;

/// Factorizes sparse tensors together with coupled matrices.
#[derive(Parser)]
#[command(name = "s3cmtf", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 the system failed, 2 bad usage or bad input, 130 interrupted."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Print one JSON object per line on standard output and nothing else there
    #[arg(long, global = true)]
    json: bool,
}

/// Parses the arguments, runs the command, and prints its output.
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let progress = Progress::new(arguments.json);
    let mut output = Output::new(arguments.json);
    let outcome = commands::run(&arguments.command, &progress, &mut output);
    progress.clear();
    match outcome.and_then(|outcome| output.finish().map(|()| outcome)) {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::InvalidInput) => ExitCode::from(2),
        Err(error) => {
            output::print_stderr(&format!("s3cmtf: {error}"));
            match error.kind() {
                ErrorKind::BadInput => ExitCode::from(2),
                ErrorKind::System => ExitCode::from(1),
                ErrorKind::Cancelled => ExitCode::from(130),
            }
        }
    }
}
