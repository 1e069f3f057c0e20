//! The program apart from the commands of `s3cmtf`: parses the arguments and measures.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use s3cmtf_cli::file_arguments::{CommandFiles, FileUse, ResultPlace};
use s3cmtf_cli::program::run_command;
use s3cmtf_cli::{help, output};

use crate::arguments::Arguments;
use crate::reproduce;

/// Measure the paper's tables and figures again, on this machine
#[derive(Parser)]
#[command(name = "s3cmtf-reproduction", version)]
struct ProgramArguments {
    #[command(flatten)]
    reproduce: Arguments,

    /// Print one JSON object per line on standard output
    #[arg(long)]
    json: bool,
}

/// The files that are read and written.
const FILES: CommandFiles = CommandFiles {
    command: "s3cmtf-reproduction",
    result: ResultPlace::Files,
    arguments: &[
        (
            "output",
            FileUse::Folder(&[
                "results.json",
                "results.lock",
                "results.csv",
                "epochs.csv",
                "reproduction.md",
            ]),
        ),
        ("data", FileUse::Input),
    ],
};

/// Measures what the arguments of the process ask for.
pub fn main() -> ExitCode {
    let parsed = help::compact(ProgramArguments::command()).try_get_matches();
    let matches = parsed.unwrap_or_else(|e| output::exit_with_usage(&e));
    let arguments = ProgramArguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    run_command(arguments.json, &FILES, &matches, |progress, output| {
        reproduce::run(&arguments.reproduce, progress, output)
    })
}
