//! `s3cmtf tune`

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, value_parser};
use s3cmtf::format::CooFile;
use s3cmtf::model;
use s3cmtf::options::{OPTION_TABLE, OptionInfo, OptionKind, Options};
use s3cmtf::solver::Control;
use s3cmtf::solver::tune::{
    Space, Trial, TuneObserver, TuneOptions, TuneProgress, TuneResult, tune,
};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Map, Value, json};

use super::Verdict;
use super::fit::{Opened, Watcher, apply_config, data_arguments, finite, leak, lower_first, path};
use super::input::{TextArguments, same_file};
use super::output::{Output, counted, rmse};
use super::progress::Progress;

/// Trials that are shown as text; `--json` shows all.
const SHOWN: usize = 20;

/// Adds the arguments to the command: every option of a fit may have a range.
pub(super) fn command(command: Command) -> Command {
    let defaults = TuneOptions::default();
    let number = |name: &'static str, help: String| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .value_parser(value_parser!(usize))
            .help(help)
    };
    let mut command = data_arguments(command)
        .after_help(
            "Options of a fit take values separated by commas (--rank 8,16,32) or an interval (--eta 0.005..0.1). \
             Rank, model, step, penalties, the step of the core and the weights of matrices without one of their \
             own are searched in any case, around what a fit would choose.\n\n\
             Examples:\n  \
             s3cmtf tune --tensor train.coo --matrix 2:genres.coo -o best.conf\n  \
             s3cmtf fit --tensor train.coo --matrix 2:genres.coo --config best.conf -o model.s3m\n  \
             s3cmtf tune --tensor train.coo --algorithm gibbs --rank 16,32,64 --trials 20 -o best.conf\n  \
             s3cmtf tune --tensor train.coo --checkpoint run.tune -o best.conf    # and after a crash:\n  \
             s3cmtf tune --tensor train.coo --resume run.tune -o best.conf",
        )
        .arg(
            Arg::new("valid")
                .long("valid")
                .value_name("FILE|PART")
                .help(format!("Entries to compare trials on, or the part of the tensor's that is held out for that [default: {}]", defaults.fraction)),
        )
        .arg(path("output", "CONFIG", "Where the best options go, for fit --config").short('o').required(true))
        .arg(number("trials", format!("How many sets of options are tried, the plain fit among them [default: {}]", defaults.trials)))
        .arg(number("rungs", format!("How often trials are compared, each time the best third goes on with three times the epochs [default: {}]", defaults.rungs)))
        .arg(number("fit-threads", format!("Threads of one fit; as many fits as fit into --threads run side by side [default: {}]", defaults.fit_threads)))
        .arg(path("checkpoint", "FILE", "Keep the state of the search here"))
        .arg(path("resume", "FILE", "Go on from this state, with the same data and settings"));
    for option in OPTION_TABLE {
        command = command.arg(argument(option));
    }
    TextArguments::augment_args(command)
}

fn argument(option: &OptionInfo) -> Arg {
    let long = option.name.replace('_', "-");
    let arg = Arg::new(option.name)
        .help_heading("Fitting")
        .help(option.help);
    match option.kind {
        OptionKind::Flag if option.default == "true" => arg
            .long(leak(format!("no-{long}")))
            .action(ArgAction::SetTrue)
            .help(format!("Not this: {}", lower_first(option.help))),
        OptionKind::Flag => arg.long(leak(long)).action(ArgAction::SetTrue),
        _ => {
            let value = match Space::searches(option.name) {
                true => "RANGE",
                false => "VALUE",
            };
            arg.long(leak(long))
                .value_name(value)
                .allow_hyphen_values(true)
        }
    }
}

/// Options that are the same for all trials, and the ranges of others.
fn options_of(a: &ArgMatches) -> Result<(Options, Space)> {
    let preset = a.get_one::<String>("preset");
    let mut options = Options::preset(preset.map_or("default", String::as_str))?;
    apply_config(a, &mut options)?;
    let mut space = Space::default();
    for option in OPTION_TABLE {
        if option.kind == OptionKind::Flag {
            if a.get_flag(option.name) {
                options.set(
                    option.name,
                    if option.default == "true" {
                        "false"
                    } else {
                        "true"
                    },
                )?;
            }
        } else if let Some(value) = a.get_one::<String>(option.name) {
            match Space::searches(option.name) {
                true => space.set(option.name, value)?,
                false => options.set(option.name, value)?,
            }
        }
    }
    Ok((options, space))
}

pub(super) fn run(a: &ArgMatches, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let given = |name: &str| a.get_one::<PathBuf>(name);
    let target = given("output").expect("clap requires it");
    let (options, space) = options_of(a)?;
    model::check_target(target)?;
    let mut how = TuneOptions {
        space,
        checkpoint: given("checkpoint").cloned(),
        resume: given("resume").cloned(),
        ..TuneOptions::default()
    };
    for (name, to) in [
        ("trials", &mut how.trials),
        ("rungs", &mut how.rungs),
        ("fit-threads", &mut how.fit_threads),
    ] {
        if let Some(n) = a.get_one::<usize>(name) {
            *to = *n;
        }
    }
    // A number is a part; a file with such a name has a folder in front.
    let valid = a.get_one::<String>("valid");
    let part = valid.and_then(|v| v.parse::<f64>().ok());
    let valid: Option<PathBuf> = valid.filter(|_| part.is_none()).map(PathBuf::from);
    how.fraction = part.unwrap_or(how.fraction);
    let others: Vec<&PathBuf> = valid.iter().collect();
    let opened = Opened::new(a, &others, progress)?;
    let state = given("checkpoint").or(given("resume"));
    opened.spare(a, &[valid.as_ref()], &[Some(target), state])?;
    if state.is_some_and(|s| s == target || same_file(s, target)) {
        return Err(Error::Argument(format!(
            "{} cannot be both the state and the options found; use two files",
            target.display()
        )));
    }
    let valid = valid
        .map(|path| opened.entries(&path, progress))
        .transpose()?;
    how.valid = valid.as_ref().map(CooFile::view);
    let problem = opened.problem(options.seed, progress)?;
    let mut watcher = Watcher {
        progress,
        out,
        failed: None,
    };
    let result = tune(&problem, &options, &how, &mut watcher, progress)?;
    let failed = watcher.failed.take();
    // Whatever ended the search, what it found is kept.
    s3cmtf::solver::tune::save(result.best(), target)?;
    if let Some(e) = failed {
        return Err(e);
    }
    report(&result, target, out);
    if progress.cancelled() {
        out.flush()?;
        return Err(Error::Cancelled);
    }
    Ok(Verdict::Good)
}

impl TuneObserver for Watcher<'_> {
    fn trial(&mut self, p: &TuneProgress<'_>) -> Control {
        let t = p.trial;
        let what = match &t.failed {
            Some(why) => format!("failed: {why}"),
            None => rmse(t.valid_rmse),
        };
        self.out.line(format!(
            "rung {}/{}  {:>4}/{}  trial {:>4}  {what}  best {}",
            p.rung,
            p.rungs,
            p.done,
            p.total,
            t.number,
            rmse(p.best)
        ));
        self.out.object(&json!({
            "rung": p.rung,
            "rungs": p.rungs,
            "done": p.done,
            "total": p.total,
            "trial": t.number,
            "epochs": t.epochs,
            "valid_rmse": finite(t.valid_rmse),
            "best": finite(p.best),
            "failed": t.failed,
        }));
        self.flush()
    }
}

/// Options in which trials differ.
fn differing(trials: &[Trial]) -> Vec<&'static str> {
    let names = OPTION_TABLE.iter().map(|o| o.name);
    let value = |t: &Trial, name: &str| t.options.get(name);
    let differ = |name: &&str| {
        trials
            .iter()
            .any(|t| value(t, name) != value(&trials[0], name))
    };
    names.filter(differ).collect()
}

fn report(result: &TuneResult, target: &std::path::Path, out: &mut Output) {
    let names = differing(&result.trials);
    let mut rows = vec![
        ["", "trial", "epochs", "error"]
            .into_iter()
            .chain(names.iter().copied())
            .map(str::to_string)
            .collect::<Vec<_>>(),
    ];
    for (place, t) in result.trials.iter().enumerate() {
        let values = names.iter().map(|n| t.options.get(n).unwrap_or_default());
        let error = match t.failed {
            Some(_) => "failed".into(),
            None if t.rungs == 0 => "-".into(),
            None => rmse(t.valid_rmse),
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
            "valid_rmse": finite(t.valid_rmse),
            "failed": t.failed,
            "seconds": t.seconds,
            "options": options,
        }));
    }
    // The plain fit is always shown.
    let plain = result.trials.iter().position(|t| t.number == 0);
    let shown = |place: usize| place <= SHOWN || Some(place) == plain.map(|p| p + 1);
    let width = |column: usize| rows.iter().map(|r| r[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    out.line("");
    for (_, row) in rows.iter().enumerate().filter(|(place, _)| shown(*place)) {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &w)| format!("{cell:>w$}"));
        out.line(cells.collect::<Vec<_>>().join("  "));
    }
    if result.trials.len() > SHOWN {
        out.line(format!(
            "and {} (trial 0 is the plain fit)",
            counted((result.trials.len() - SHOWN) as u64, "other", "others")
        ));
    } else {
        out.line("(trial 0 is the plain fit)");
    }
    let best = result.best();
    let failed = result.trials.iter().filter(|t| t.failed.is_some()).count();
    let base = plain.map_or(f64::NAN, |p| result.trials[p].valid_rmse);
    out.line(format!(
        "{}: trial {} of {}, validation RMSE {} (plain fit {}), {} failed, stopped ({}), {:.1} s",
        target.display(),
        best.number,
        result.trials.len(),
        rmse(best.valid_rmse),
        rmse(base),
        failed,
        match result.reason {
            s3cmtf::solver::StopReason::Epochs => "all done",
            reason => reason.name(),
        },
        result.seconds
    ));
    out.object(&json!({"summary": {
        "trial": best.number,
        "trials": result.trials.len(),
        "failed": failed,
        "valid_rmse": finite(best.valid_rmse),
        "plain_rmse": finite(base),
        "reason": result.reason.name(),
        "seconds": result.seconds,
        "output": target.display().to_string(),
    }}));
}
