//! One file per command. Each has its arguments and a function `run` that takes them, shows progress, and writes to the
//! [`Output`]. [`Command`] lists the commands; [`run`] calls the one that was given.

mod batch;
mod check;
mod clusters;
mod completions;
mod concepts;
mod convert;
mod eval;
mod export;
mod fit;
mod fold_in;
mod generate;
mod info;
mod man;
mod predict;
mod recommend;
mod report;
mod similar;
mod split;
mod tune;

use std::marker::PhantomData;

use clap::{Args, FromArgMatches, Subcommand};
use s3cmtf::Result;
use s3cmtf::options::ExternalAlgorithm;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress::Progress;
use crate::{bench, demo};

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Convert(convert::Arguments),
    Check(check::Arguments),
    Info(info::Arguments),
    Split(split::Arguments),
    Generate(generate::Arguments),
    /// Fit a model to a tensor and its coupled matrices
    Fit(TableArguments<FitCommand>),
    /// Search for better options than a fit chooses by itself
    ///
    /// Runs fits with random options (trials) in rounds of successive halving. With the default of three rounds, all trials
    /// run for a fifth of their epochs, the best third of them for two fifths, and the best third of these to the end.
    /// Trial 0 has the default options and always continues.
    Tune(TableArguments<TuneCommand>),
    Eval(eval::Arguments),
    Predict(predict::Arguments),
    Export(export::Arguments),
    FoldIn(fold_in::Arguments),
    Recommend(recommend::Arguments),
    Similar(similar::Arguments),
    Concepts(concepts::Arguments),
    Clusters(clusters::Arguments),
    Report(report::Arguments),
    Batch(batch::Arguments),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// A command whose arguments are built from the library's option table instead of a derived type.
pub(crate) trait TableCommand {
    /// Adds the arguments to the command.
    fn arguments(command: clap::Command) -> clap::Command;
}

pub(crate) struct FitCommand;

impl TableCommand for FitCommand {
    fn arguments(command: clap::Command) -> clap::Command {
        fit::command(command)
    }
}

pub(crate) struct TuneCommand;

impl TableCommand for TuneCommand {
    fn arguments(command: clap::Command) -> clap::Command {
        tune::command(command)
    }
}

/// The parsed arguments of such a command.
pub(crate) struct TableArguments<C>(clap::ArgMatches, PhantomData<C>);

impl<C> FromArgMatches for TableArguments<C> {
    fn from_arg_matches(matches: &clap::ArgMatches) -> std::result::Result<Self, clap::Error> {
        Ok(TableArguments(matches.clone(), PhantomData))
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &clap::ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl<C: TableCommand> Args for TableArguments<C> {
    fn augment_args(command: clap::Command) -> clap::Command {
        C::arguments(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        C::arguments(command)
    }
}

/// Runs a command. `command_line` returns the definition of all commands, from which completions and man pages are made; `algorithms` are those of
/// other crates.
pub(crate) fn run(
    command: &Command,
    command_line: impl FnOnce() -> clap::Command,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    output: &mut Output,
) -> Result<Outcome> {
    match command {
        Command::Demo(a) => demo::run(a, progress, output),
        Command::Convert(a) => convert::run(a, progress, output),
        Command::Check(a) => check::run(a, progress, output),
        Command::Info(a) => info::run(a, algorithms, progress, output),
        Command::Split(a) => split::run(a, progress, output),
        Command::Generate(a) => generate::run(a, progress, output),
        Command::Fit(a) => fit::run(&a.0, algorithms, progress, output),
        Command::Tune(a) => tune::run(&a.0, algorithms, progress, output),
        Command::Eval(a) => eval::run(a, algorithms, progress, output),
        Command::Predict(a) => predict::run(a, algorithms, progress, output),
        Command::Export(a) => export::run(a, algorithms, progress, output),
        Command::FoldIn(a) => fold_in::run(a, algorithms, progress, output),
        Command::Recommend(a) => recommend::run(a, progress, output),
        Command::Similar(a) => similar::run(a, progress, output),
        Command::Concepts(a) => concepts::run(a, progress, output),
        Command::Clusters(a) => clusters::run(a, algorithms, progress, output),
        Command::Report(a) => report::run(a, progress, output),
        Command::Batch(a) => batch::run(a, progress, output),
        Command::Bench(a) => bench::run(a, progress, output),
        Command::Completions(a) => completions::run(a, command_line(), output),
        Command::Man(a) => man::run(a, command_line(), output),
    }
}
