//! Command line: arguments in, text or JSON out, exit codes.
//!
//! Modes and indices are numbered from 1 here; the library counts from 0.
#![deny(unsafe_code)]

mod batch;
mod bench;
mod check;
mod clusters;
mod concepts;
mod convert;
mod demo;
mod fit;
mod fold_in;
mod generate;
mod info;
mod input;
mod lists;
mod output;
mod progress;
mod recommend;
mod report;
mod similar;
mod split;
mod tune;
mod use_model;

use std::marker::PhantomData;
use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser, Subcommand};
use s3cmtf::{Error, ErrorKind, Result};

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

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Convert(convert::Arguments),
    Check(check::Arguments),
    Info(info::Arguments),
    Split(split::Arguments),
    Generate(generate::Arguments),
    /// Fit a model to a tensor and its coupled matrices
    Fit(FromTable<FitCommand>),
    /// Search for better options than a fit chooses by itself
    Tune(FromTable<TuneCommand>),
    Eval(use_model::EvalArguments),
    Predict(use_model::PredictArguments),
    Export(use_model::ExportArguments),
    FoldIn(fold_in::Arguments),
    Recommend(recommend::Arguments),
    Similar(similar::Arguments),
    Concepts(concepts::Arguments),
    Clusters(clusters::Arguments),
    Report(report::Arguments),
    Batch(batch::Arguments),
    Bench(bench::Arguments),
}

/// A command whose arguments come from the library's option table rather than from a type.
trait TableCommand {
    fn arguments(command: clap::Command) -> clap::Command;
}

struct FitCommand;

impl TableCommand for FitCommand {
    fn arguments(command: clap::Command) -> clap::Command {
        fit::command(command)
    }
}

struct TuneCommand;

impl TableCommand for TuneCommand {
    fn arguments(command: clap::Command) -> clap::Command {
        tune::command(command)
    }
}

/// The arguments of such a command.
struct FromTable<C>(clap::ArgMatches, PhantomData<C>);

impl<C> FromArgMatches for FromTable<C> {
    fn from_arg_matches(matches: &clap::ArgMatches) -> std::result::Result<Self, clap::Error> {
        Ok(FromTable(matches.clone(), PhantomData))
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &clap::ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl<C: TableCommand> Args for FromTable<C> {
    fn augment_args(command: clap::Command) -> clap::Command {
        C::arguments(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        C::arguments(command)
    }
}

/// Parses the arguments, runs the command, prints what it says.
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let progress = Progress::new(arguments.json);
    let mut output = Output::new(arguments.json);
    let outcome = dispatch(&arguments.command, &progress, &mut output);
    progress.clear();
    match outcome.and_then(|verdict| output.finish().map(|()| verdict)) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(2),
        Err(error) => {
            output::complain(&format!("s3cmtf: {error}"));
            match error.kind() {
                ErrorKind::BadInput => ExitCode::from(2),
                ErrorKind::System => ExitCode::from(1),
                ErrorKind::Cancelled => ExitCode::from(130),
            }
        }
    }
}

/// What a command that ran to its end has to say.
enum Verdict {
    Good,
    /// The input is bad, and the output says how.
    Bad,
}

fn dispatch(command: &Command, progress: &Progress, output: &mut Output) -> Result<Verdict> {
    match command {
        Command::Demo(a) => demo::run(a, progress, output),
        Command::Convert(a) => convert::run(a, progress, output),
        Command::Check(a) => check::run(a, progress, output),
        Command::Info(a) => info::run(a, progress, output),
        Command::Split(a) => split::run(a, progress, output),
        Command::Generate(a) => generate::run(a, progress, output),
        Command::Fit(a) => fit::run(&a.0, progress, output),
        Command::Tune(a) => tune::run(&a.0, progress, output),
        Command::Eval(a) => use_model::eval(a, progress, output),
        Command::Predict(a) => use_model::predict(a, progress, output),
        Command::Export(a) => use_model::export_model(a, progress, output),
        Command::FoldIn(a) => fold_in::run(a, progress, output),
        Command::Recommend(a) => recommend::run(a, progress, output),
        Command::Similar(a) => similar::run(a, progress, output),
        Command::Concepts(a) => concepts::run(a, output),
        Command::Clusters(a) => clusters::run(a, progress, output),
        Command::Report(a) => report::run(a, progress, output),
        Command::Batch(a) => batch::run(a, progress, output),
        Command::Bench(a) => bench::run(a, progress, output),
    }
}

/// A mode as typed, counted from 1, as the library counts it.
fn mode_from_one(mode: usize) -> Result<usize> {
    mode.checked_sub(1)
        .ok_or_else(|| Error::Argument("mode 0 does not exist; modes are numbered from 1".into()))
}
