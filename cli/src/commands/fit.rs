//! `s3cmtf fit`

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Args, Command};
use s3cmtf::format::{CooFile, Names, OpenMode};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, OPTION_TABLE, OptionKind, Options};
use s3cmtf::solver::{FitInput, FitSummary, fit};
use s3cmtf::trace::{self, SpanKind};
use s3cmtf::{Error, Monitor, Result, ValueRange};
use serde_json::json;

use crate::epoch_table::{Columns, EpochTable};
use crate::fit_data::FitData;
use crate::fit_observer::{ConsoleObserver, json_number};
use crate::input::{TextArguments, VerifyArguments, same_file};
use crate::option_arguments::{
    ADVANCED, COUPLING_HELP, advanced_data_arguments, apply_config, apply_flag, data_arguments,
    path_argument, settings_arguments, single_value, table_arguments,
};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_rmse, warn_renamed};
use crate::peak_memory::peak_memory_bytes;
use crate::progress::Progress;
use crate::trace_file::{TRACE_HELP, TraceFile};

/// Adds the arguments of `fit`; its options come from the library's table.
pub(super) fn command(command: Command) -> Command {
    let command = data_arguments(command)
        .about("Fit a model to a tensor and its coupled matrices")
        .after_help(format!(
            "{COUPLING_HELP}\n\n\
             Examples:\n  \
             s3cmtf fit --tensor train.coo --test test.coo -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --matrix 2:genres.coo:full --valid 0.1 --patience 3 -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --algorithm gibbs --rank 8 --checkpoint run.s3m -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --preset paper --rank 4 --epochs 20 -o model.s3m"
        ))
        .arg(path_argument("test", "FILE", "Entries to measure the test error on"))
        .arg(path_argument(
            "valid",
            "FILE|FRACTION",
            "Validation entries or held-out fraction; the best epoch is kept",
        ))
        .arg(path_argument("output", "MODEL", "Model file to write").short('o').required(true));
    let command = table_arguments(settings_arguments(command), false, single_value)
        .arg(
            path_argument(
                "init",
                "MODEL",
                "Start from this model; rows that it lacks are initialized",
            )
            .help_heading(ADVANCED),
        )
        .arg(
            path_argument(
                "checkpoint",
                "FILE",
                "Write checkpoints to this file while fitting",
            )
            .help_heading(ADVANCED),
        )
        .arg(
            path_argument("resume", "FILE", "Continue from this checkpoint").help_heading(ADVANCED),
        )
        .arg(path_argument("trace", "FILE", TRACE_HELP).help_heading(ADVANCED));
    let command = table_arguments(advanced_data_arguments(command), true, single_value);
    TextArguments::augment_args(VerifyArguments::augment_args(command))
}

/// Collects the options of the fit. Arguments override the `--config` file, which overrides the options of the `--resume`
/// checkpoint, or else the preset with the ranks and kind of the `--init` model.
fn fit_options(a: &ArgMatches, init: Option<&Model>) -> Result<Options> {
    let preset = a
        .get_one::<String>("preset")
        .map_or("default", String::as_str);
    let mut options = match a.get_one::<PathBuf>("resume") {
        Some(path) => model::load(path, OpenMode::Mapped)?.options().clone(),
        None => Options::preset(preset)?,
    };
    if let Some(init) = init {
        options.rank = init.shape().ranks().to_vec();
        options.model = init.options().model;
    }
    apply_config(a, &mut options)?;
    for option in OPTION_TABLE {
        if option.kind == OptionKind::Flag {
            apply_flag(a, option, &mut options)?;
        } else if let Some(value) = a.get_one::<String>(option.name) {
            options.set(option.name, value)?;
        }
    }
    Ok(options)
}

/// Returns the value of `--valid` if it is a number; else it is a file.
fn as_fraction(path: &Path) -> Option<f64> {
    path.to_str()?.parse().ok()
}

pub(super) fn run(a: &ArgMatches, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let Some(path) = a.get_one::<PathBuf>("trace") else {
        return fit_and_save(a, None, progress, out);
    };
    let outputs = ["output", "checkpoint", "resume"];
    let outputs = outputs.iter().filter_map(|name| a.get_one::<PathBuf>(name));
    let file = TraceFile::new(path, outputs)?;
    let traced = || fit_and_save(a, Some(&file), progress, out);
    file.trace.record("s3cmtf fit", traced)
}

fn fit_and_save(
    a: &ArgMatches,
    trace_file: Option<&TraceFile>,
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let (began, reading) = (Instant::now(), trace::span(SpanKind::Reading));
    let given = |name: &str| {
        a.get_one::<PathBuf>(name)
            .filter(|p| name != "valid" || as_fraction(p).is_none())
    };
    let target = given("output").expect("clap requires it");
    let init = given("init")
        .map(|p| model::load(p, OpenMode::Mapped))
        .transpose()?;
    let mut options = fit_options(a, init.as_ref())?;
    if let Some(fraction) = a.get_one::<PathBuf>("valid").and_then(|p| as_fraction(p)) {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::Argument(format!(
                "--valid {fraction}: a fraction must be above 0 and below 1; for a file of that name write ./{fraction}"
            )));
        }
        options.valid_fraction = fraction;
    }
    model::check_target(target)?;
    let other_files: Vec<&PathBuf> = ["test", "valid"].into_iter().filter_map(given).collect();
    let data = FitData::open(a, &other_files, progress)?;
    let open = |path: &PathBuf| data.open_entries(path, progress);
    let test = given("test").map(open).transpose()?;
    let valid = given("valid").map(open).transpose()?;
    let problem = data.build_problem(&options, progress)?;
    let checkpoint = given("checkpoint").or(given("resume"));
    let other_inputs = [given("test"), given("valid"), given("init")];
    let outputs = [Some(target), checkpoint, given("trace")];
    data.check_outputs(a, &other_inputs, &outputs)?;
    drop(reading);
    if checkpoint.is_some_and(|c| c == target || same_file(c, target)) {
        return Err(Error::Argument(format!(
            "{} cannot be both the checkpoint and the model; use two files",
            target.display()
        )));
    }
    let input = FitInput {
        test: test.as_ref().map(CooFile::view),
        valid: valid.as_ref().map(CooFile::view),
        init: init.as_ref(),
        checkpoint: checkpoint.cloned(),
        resume: given("resume").cloned(),
        read_seconds: began.elapsed().as_secs_f64(),
    };
    let has_valid = valid.is_some() || options.valid_fraction > 0.0;
    let mut observer = ConsoleObserver::new(progress, out);
    let columns = Columns {
        eta: !options.algorithm.is_rowwise(),
        valid: has_valid,
        test: test.is_some(),
    };
    observer.table = EpochTable::new(columns, observer.out.is_terminal);
    observer.epochs = match options.algorithm {
        Algorithm::Gibbs => options.burn_in + options.samples,
        _ => options.epochs,
    };
    let (model, summary) = fit(&problem, &options, &input, &mut observer, progress)?;
    observer.finish_table();
    let output_error = observer.output_error.take();
    progress.clear();
    // The model is saved even if the fit was cancelled or its output could not be written.
    let saving = trace::span(SpanKind::Saving);
    model::save(&model, target)?;
    if let Some(tensor) = given("tensor") {
        warn_renamed(&Names::copy_to_model(tensor, target, model.order())?);
    }
    for (m, (spec, _)) in data.matrices.iter().enumerate() {
        if !spec.kind.is_graph() {
            let names = Names::load_beside(&spec.file, 1)?;
            warn_renamed(&Names::save_columns(names.as_ref(), target, m)?);
        }
    }
    drop(saving);
    if let Some(e) = output_error {
        return Err(e);
    }
    if let Some(file) = trace_file {
        file.write(out)?;
    }
    report(&model, &summary, target, out);
    if progress.cancelled() {
        out.flush()?;
        return Err(Error::Cancelled);
    }
    Ok(Outcome::Success)
}

/// Prints the summary of the fit.
fn report(model: &Model, s: &FitSummary, target: &Path, out: &mut Output) {
    let optional_rmse = |name: &str, x: f64| {
        if x.is_nan() {
            String::new()
        } else {
            format!(", {name} RMSE {}", format_rmse(x))
        }
    };
    out.line(format!(
        "{}: stopped ({}) after {}, model of epoch {}{}{}{}{}; {:.2} s updating, {:.2} s measuring, {}",
        target.display(),
        s.reason.name(),
        format_count(s.epochs, "epoch", "epochs"),
        s.best_epoch,
        optional_rmse("training", s.train_rmse),
        optional_rmse("validation", s.valid_rmse),
        optional_rmse("test", s.test_rmse),
        clipping(model, s.clipped),
        s.update_seconds,
        s.eval_seconds,
        format_count(s.threads as u64, "thread", "threads")
    ));
    let (o, outcome) = (model.options(), model.record().outcome.as_ref());
    out.object(&json!({"summary": {
        "train_rmse": json_number(s.train_rmse),
        "test_rmse": json_number(s.test_rmse),
        "valid_rmse": json_number(s.valid_rmse),
        "best_epoch": s.best_epoch,
        "clipped": s.clipped,
        "range": [model.range().min, model.range().max],
        "threads": s.threads,
        "kernel": s.kernel.name(),
        "algorithm": o.get("algorithm"),
        "model": o.get("model"),
        "ranks": model.shape().ranks(),
        "seed": o.seed,
        "epochs": s.epochs,
        "reason": s.reason.name(),
        "seconds": s.seconds,
        "read_seconds": outcome.map(|o| o.read_seconds),
        "init_seconds": s.init_seconds,
        "update_seconds": s.update_seconds,
        "eval_seconds": s.eval_seconds,
        "peak_memory_bytes": peak_memory_bytes("self"),
        "output": target.display().to_string(),
    }}));
}

/// Says whether errors are those of clipped predictions, and of which range.
fn clipping(model: &Model, is_clipped: bool) -> String {
    let ValueRange { min, max } = model.range();
    if is_clipped {
        format!(" (clipped to {min} to {max})")
    } else {
        " (not clipped)".into()
    }
}
