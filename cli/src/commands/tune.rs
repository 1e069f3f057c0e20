//! `s3cmtf tune`

use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, value_parser};
use s3cmtf::options::{ExternalAlgorithm, OptionInfo, OptionKind, Options};
use s3cmtf::solver::tune::{
    Space, Trial, TuneObserver, TuneOptions, TuneProgress, TuneResult, tune,
};
use s3cmtf::solver::{Control, StopReason};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Map, Value, json};

use crate::fit_data::FitData;
use crate::fit_observer::{ConsoleObserver, json_number};
use crate::input::{MatchedFile, TextArguments, VerifyArguments};
use crate::option_arguments::{
    ADVANCED, COUPLING_HELP, advanced_data_arguments, apply_config, apply_flag, data_arguments,
    path_argument, settings_arguments, single_value, table_arguments,
};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_rmse};
use crate::progress::Progress;

/// Number of trials in the table; `--json` prints all.
const SHOWN_TRIALS: usize = 20;

/// Adds the arguments of `tune`. Options of a fit that can be searched take a range.
pub(super) fn command(command: Command) -> Command {
    let defaults = TuneOptions::default();
    let number = |name: &'static str, help: String| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .value_parser(value_parser!(usize))
            .help(help)
    };
    let command = data_arguments(command)
        .after_help(format!(
            "RANGE is one value, several values (--rank 8,16,32) or an interval (--eta 0.005..0.1). Rank, model, \
             learning rates, penalties and the weights of matrices without one are always searched, around the values \
             that a fit would choose.\n\
             {COUPLING_HELP}\n\n\
             Examples:\n  \
             s3cmtf tune --tensor train.coo --matrix 2:genres.coo --trials 9 -o best.conf\n  \
             s3cmtf tune --tensor train.coo --algorithm gibbs --rank 2,4,8 --trials 4 -o best.conf\n  \
             s3cmtf tune --tensor train.coo --trials 9 --checkpoint run.tune -o best.conf\n  \
             s3cmtf tune --tensor train.coo --trials 9 --resume run.tune -o best.conf"
        ))
        .arg(
            Arg::new("valid")
                .long("valid")
                .value_name("FILE|FRACTION")
                .help(format!("Validation entries for trials, or fraction to hold out [default: {}]", defaults.fraction)),
        )
        .arg(path_argument("output", "CONFIG", "File to write the best options to, for fit --config").short('o').required(true))
        .arg(number("trials", format!("Number of trials, including the default options [default: {}]", defaults.trials)))
        .arg(number("rungs", format!("Number of rungs (rounds) of successive halving [default: {}]", defaults.rungs)))
        .arg(number("fit-threads", format!("Threads per fit; concurrent fits share --threads [default: {}]", defaults.fit_threads)));
    let command = table_arguments(settings_arguments(command), false, value_or_range)
        .arg(
            path_argument(
                "checkpoint",
                "FILE",
                "Save the state of the search to this file",
            )
            .help_heading(ADVANCED),
        )
        .arg(
            path_argument(
                "resume",
                "FILE",
                "Continue from this state; without --checkpoint also write it again",
            )
            .help_heading(ADVANCED),
        );
    let command = table_arguments(advanced_data_arguments(command), true, value_or_range);
    TextArguments::augment_args(VerifyArguments::augment_args(command))
}

/// Finishes the argument of an option of the table: those that are searched take a range.
fn value_or_range(arg: Arg, option: &OptionInfo) -> Arg {
    if option.is_searched() {
        arg.value_name("RANGE").allow_hyphen_values(true)
    } else {
        single_value(arg, option)
    }
}

/// Returns the options that all trials share, and the ranges of those that are searched.
fn options_and_space(
    a: &ArgMatches,
    algorithms: &'static [&'static ExternalAlgorithm],
) -> Result<(Options, Space)> {
    let preset = a.get_one::<String>("preset");
    let mut options =
        Options::preset(preset.map_or("default", String::as_str))?.with_algorithms(algorithms);
    apply_config(a, &mut options)?;
    let mut space = Space::with_algorithms(algorithms);
    for option in Options::options_with(algorithms) {
        if option.kind == OptionKind::Flag {
            apply_flag(a, &option, &mut options)?;
        } else if let Some(value) = a.get_one::<String>(option.name) {
            if option.is_searched() {
                space.set(option.name, value)?;
            } else {
                options.set(option.name, value)?;
            }
        }
    }
    Ok((options, space))
}

pub(super) fn run(
    a: &ArgMatches,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let given = |name: &str| a.get_one::<PathBuf>(name);
    let target = given("output").expect("clap requires it");
    let (options, space) = options_and_space(a, algorithms)?;
    let mut tune_options = TuneOptions {
        space,
        checkpoint: given("checkpoint").cloned(),
        resume: given("resume").cloned(),
        ..TuneOptions::default()
    };
    for (name, setting) in [
        ("trials", &mut tune_options.trials),
        ("rungs", &mut tune_options.rungs),
        ("fit-threads", &mut tune_options.fit_threads),
    ] {
        if let Some(n) = a.get_one::<usize>(name) {
            *setting = *n;
        }
    }
    // A number is a fraction; a file whose name is a number needs a folder in front.
    let valid = a.get_one::<String>("valid");
    let fraction = valid.and_then(|v| v.parse::<f64>().ok());
    let valid: Option<PathBuf> = valid.filter(|_| fraction.is_none()).map(PathBuf::from);
    tune_options.fraction = fraction.unwrap_or(tune_options.fraction);
    let other_files: Vec<&PathBuf> = valid.iter().collect();
    let data = FitData::open(a, &other_files, progress)?;
    let valid = valid
        .map(|path| data.open_entries(&path, progress))
        .transpose()?;
    tune_options.valid = valid.as_ref().map(MatchedFile::view);
    let problem = data.build_problem(&options, progress)?;
    let mut observer = ConsoleObserver::new(progress, out);
    let result = tune(&problem, &options, &tune_options, &mut observer, progress)?;
    // The best options are saved even if the search was cancelled; those of no trial do not replace others.
    let is_measured = result.best().rungs > 0;
    let is_kept = !is_measured && target.exists();
    if !is_kept {
        s3cmtf::solver::tune::save(result.best(), target)?;
    }
    report(&result, target, is_kept, out);
    out.flush()?;
    if is_kept && result.reason == StopReason::TimeLimit {
        return Err(Error::Argument(format!(
            "time_limit = {}: the time was up before a trial was measured; increase the limit",
            options.time_limit
        )));
    }
    if let Some(error) = result.state_error {
        let action = "the best options are saved, but not the state of the search";
        return Err(Error::io(action, io::Error::other(error)));
    }
    if progress.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(Outcome::Success)
}

impl TuneObserver for ConsoleObserver<'_> {
    fn warning(&mut self, text: &str) {
        self.warn(text);
    }

    fn trial(&mut self, p: &TuneProgress<'_>) -> Control {
        let t = p.trial;
        let result = match &t.error {
            Some(why) => format!("failed: {why}"),
            None => format_rmse(t.valid_rmse),
        };
        // The last trial of a round and failures are always printed.
        if self.trial_lines.allows_line() || p.done == p.total || t.error.is_some() {
            self.out.line(format!(
                "rung {}/{}  {:>4}/{}  trial {:>4}  {result}  best {}",
                p.rung,
                p.rungs,
                p.done,
                p.total,
                t.number,
                format_rmse(p.best)
            ));
        }
        self.out.object(&json!({
            "rung": p.rung,
            "rungs": p.rungs,
            "done": p.done,
            "total": p.total,
            "trial": t.number,
            "epochs": t.epochs,
            "valid_rmse": json_number(t.valid_rmse),
            "best_valid_rmse": json_number(p.best),
            "error": t.error,
        }));
        self.flush()
    }
}

/// Returns the names of the options in which the trials differ.
fn differing_options(trials: &[Trial]) -> Vec<&'static str> {
    let all = trials[0].options.all_options();
    let names = all.iter().map(|o| o.name);
    let value = |t: &Trial, name: &str| t.options.get(name);
    let differ = |name: &&str| {
        trials
            .iter()
            .any(|t| value(t, name) != value(&trials[0], name))
    };
    names.filter(differ).collect()
}

/// Prints the table of trials and the summary. `is_kept`: the file at the target is an earlier one.
fn report(result: &TuneResult, target: &Path, is_kept: bool, out: &mut Output) {
    let names = differing_options(&result.trials);
    let mut rows = vec![
        ["", "trial", "epochs", "RMSE"]
            .into_iter()
            .chain(names.iter().copied())
            .map(str::to_string)
            .collect::<Vec<_>>(),
    ];
    for (place, t) in result.trials.iter().enumerate() {
        let values = names.iter().map(|n| t.options.get(n).unwrap_or_default());
        let error = match t.error {
            Some(_) => "failed".into(),
            None if t.rungs == 0 => "-".into(),
            None => format_rmse(t.valid_rmse),
        };
        let head = [
            (place + 1).to_string(),
            t.number.to_string(),
            t.epochs.to_string(),
            error,
        ];
        rows.push(head.into_iter().chain(values.clone()).collect());
        let options: Map<String, Value> = names
            .iter()
            .map(|n| n.to_string())
            .zip(values.map(Value::from))
            .collect();
        out.object(&json!({
            "place": place + 1,
            "trial": t.number,
            "rungs": t.rungs,
            "epochs": t.epochs,
            "valid_rmse": json_number(t.valid_rmse),
            "error": t.error,
            "seconds": t.seconds,
            "options": options,
        }));
    }
    // Trial 0, the fit with default options, is always shown.
    let default_trial = result.trials.iter().position(|t| t.number == 0);
    let is_shown =
        |place: usize| place <= SHOWN_TRIALS || Some(place) == default_trial.map(|p| p + 1);
    let width = |column: usize| rows.iter().map(|r| r[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    out.line("");
    for (_, row) in rows
        .iter()
        .enumerate()
        .filter(|(place, _)| is_shown(*place))
    {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &w)| format!("{cell:>w$}"));
        out.line(cells.collect::<Vec<_>>().join("  "));
    }
    if result.trials.len() > SHOWN_TRIALS {
        out.line(format!(
            "and {} (trial 0 has the default options)",
            format_count(
                (result.trials.len() - SHOWN_TRIALS) as u64,
                "other",
                "others"
            )
        ));
    } else {
        out.line("(trial 0 has the default options)");
    }
    let best = result.best();
    let failed = result.trials.iter().filter(|t| t.error.is_some()).count();
    let default_rmse = default_trial.map_or(f64::NAN, |p| result.trials[p].valid_rmse);
    out.line(format!(
        "{}: trial {} of {}, validation RMSE {} (default options {}), {} failed, stopped ({}), {:.1} s",
        target.display(),
        best.number,
        result.trials.len(),
        format_rmse(best.valid_rmse),
        format_rmse(default_rmse),
        failed,
        match result.reason {
            StopReason::Epochs => "all rungs done",
            reason => reason.name(),
        },
        result.seconds
    ));
    if best.rungs == 0 {
        let file = target.display();
        let what = match is_kept {
            true => "is kept as it was",
            false => "has the default options",
        };
        out.line(format!(
            "{file} {what}: the search was stopped before a trial was measured"
        ));
    }
    out.object(&json!({"summary": {
        "trial": best.number,
        "trials": result.trials.len(),
        "failed_trials": failed,
        "valid_rmse": json_number(best.valid_rmse),
        "default_rmse": json_number(default_rmse),
        "reason": result.reason.name(),
        "seconds": result.seconds,
        "output": (!is_kept).then(|| target.display().to_string()),
    }}));
}
