//! `s3cmtf fit`

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use s3cmtf::fit_plan::FitPlan;
use s3cmtf::format::{OpenMode, SizeLimit, read_whole_text};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, ExternalAlgorithm, OptionKind, Options};
use s3cmtf::solver::{
    Event, FitInput, FitSummary, Observer, StopReason, fit, plan as plan_fit, train,
};
use s3cmtf::trace::{self, SpanKind};
use s3cmtf::{Error, Monitor, Result, ValueRange};
use serde_json::json;

use crate::epoch_table::{Columns, EpochTable};
use crate::fit_data::FitData;
use crate::fit_observer::{ConsoleObserver, json_number};
use crate::input::{MatchedFile, TextArguments, VerifyArguments};
use crate::option_arguments::{
    ADVANCED, COUPLING_HELP, RESUME_HELP, advanced_data_arguments, apply_config, apply_flag,
    data_arguments, path_argument, settings_arguments, single_value, table_arguments,
};
use crate::outcome::Outcome;
use crate::output::{
    Failures, Output, format_count, format_rmse, print_note, print_warning, warn_renamed,
};
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
             s3cmtf fit --tensor train.coo --rank 8 --dry-run"
        ))
        .arg(path_argument("test", "FILE", "Entries to measure the test error on"))
        .arg(path_argument(
            "valid",
            "FILE|FRACTION",
            "Validation entries or held-out fraction; the best epoch is kept",
        ))
        .arg(path_argument("output", "MODEL", "Model file to write").short('o').required_unless_present("dry-run"))
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Print what the fit would do, and why; fit nothing"),
        );
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
        .arg(path_argument("resume", "FILE", RESUME_HELP).help_heading(ADVANCED))
        .arg(
            path_argument(
                "plan",
                "FILE",
                "Fit as this plan says, which --dry-run --json printed",
            )
            .conflicts_with_all(["dry-run", "preset"])
            .help_heading(ADVANCED),
        )
        .arg(path_argument("trace", "FILE", TRACE_HELP).help_heading(ADVANCED));
    let command = table_arguments(advanced_data_arguments(command), true, single_value);
    TextArguments::augment_args(VerifyArguments::augment_args(command))
}

/// Collects the options of the fit. Arguments override the `--config` file, which overrides the options of the `--resume`
/// checkpoint or of the `--plan`, or else the preset with the ranks and kind of the `--init` model.
fn fit_options(
    a: &ArgMatches,
    algorithms: &'static [&'static ExternalAlgorithm],
    init: Option<&Model>,
    plan: Option<&FitPlan>,
) -> Result<Options> {
    let preset = a
        .get_one::<String>("preset")
        .map_or("default", String::as_str);
    let mut options = match (a.get_one::<PathBuf>("resume"), plan) {
        (Some(path), _) => model::load_with(path, OpenMode::Mapped, algorithms)?
            .options()
            .clone(),
        (None, Some(plan)) => plan.options.clone(),
        (None, None) => Options::preset(preset)?.with_algorithms(algorithms),
    };
    if let Some(init) = init.filter(|_| plan.is_none()) {
        options.rank = init.shape().ranks().to_vec();
        options.model = init.options().model;
    }
    apply_config(a, &mut options)?;
    for option in Options::options_with(algorithms) {
        if option.kind == OptionKind::Flag {
            apply_flag(a, &option, &mut options)?;
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

pub(super) fn run(
    a: &ArgMatches,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let Some(path) = a.get_one::<PathBuf>("trace") else {
        return fit_and_save(a, algorithms, None, progress, out);
    };
    let file = TraceFile::new(path);
    let traced = || fit_and_save(a, algorithms, Some(&file), progress, out);
    file.trace.record("s3cmtf fit", traced)
}

fn fit_and_save(
    a: &ArgMatches,
    algorithms: &'static [&'static ExternalAlgorithm],
    trace_file: Option<&TraceFile>,
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let (began, reading) = (Instant::now(), trace::span(SpanKind::Reading));
    let given = |name: &str| {
        a.get_one::<PathBuf>(name)
            .filter(|p| name != "valid" || as_fraction(p).is_none())
    };
    let plan = given("plan")
        .map(|p| read_plan(p, algorithms))
        .transpose()?;
    let init = given("init")
        .map(|p| model::load_with(p, OpenMode::Mapped, algorithms))
        .transpose()?;
    let mut options = fit_options(a, algorithms, init.as_ref(), plan.as_ref())?;
    if let Some(fraction) = a.get_one::<PathBuf>("valid").and_then(|p| as_fraction(p)) {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::Argument(format!(
                "--valid {fraction}: a fraction must be above 0 and below 1; for a file of that name write ./{fraction}"
            )));
        }
        options.valid_fraction = fraction;
    }
    let other_files: Vec<&PathBuf> = ["test", "valid"].into_iter().filter_map(given).collect();
    let data = FitData::open(a, &other_files, progress)?;
    let open = |path: &PathBuf| data.open_entries(path, progress);
    let test = given("test").map(open).transpose()?;
    let valid = given("valid").map(open).transpose()?;
    if let (Some(init), Some(path)) = (&init, given("init")) {
        data.check_names_of_model(init, path)?;
    }
    let problem = data.build_problem(&options, progress)?;
    let checkpoint = given("checkpoint").or(given("resume"));
    drop(reading);
    let input = FitInput {
        test: test.as_ref().map(MatchedFile::view),
        valid: valid.as_ref().map(MatchedFile::view),
        init: init.as_ref(),
        checkpoint: checkpoint.cloned(),
        resume: given("resume").cloned(),
        read_seconds: began.elapsed().as_secs_f64(),
    };
    if a.get_flag("dry-run") {
        let made = plan_fit(
            &problem,
            &options,
            &input,
            &mut Warnings(progress),
            progress,
        )?;
        progress.clear();
        print_plan(&made, out)?;
        return Ok(Outcome::Success);
    }
    let target = given("output").expect("clap requires it");
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
    let (model, summary) = match &plan {
        Some(plan) => train(&problem, plan, &options, &input, &mut observer, progress)?,
        None => fit(&problem, &options, &input, &mut observer, progress)?,
    };
    observer.finish_table();
    progress.clear();
    let mut failures = Failures::default();
    // A model without epochs must not replace one that may have some.
    let is_kept = summary.is_without_epochs() && target.exists();
    let saving = || save(&model, &data, target);
    let is_lost = !is_kept && failures.keep(saving()).is_none();
    let has_checkpoint = summary.epochs > 0 && !summary.lacks_last_checkpoint;
    if let Some(file) = checkpoint.filter(|_| is_lost && has_checkpoint) {
        let file = file.display();
        print_note(&format!(
            "{file} has the fit: `--resume {file}` continues it"
        ));
    }
    if let Some(file) = trace_file {
        failures.keep(file.write(out));
    }
    if !is_lost {
        report(&model, &summary, target, is_kept, out);
    }
    if is_kept && summary.reason == StopReason::TimeLimit {
        failures.keep(Err::<(), _>(Error::Argument(format!(
            "time_limit = {}: the time was up before the first epoch; increase the limit, or lower the rank, which decides how \
             long the preparations take",
            options.time_limit
        ))));
    }
    if let Some(file) = checkpoint.filter(|_| summary.lacks_last_checkpoint) {
        let count = format_count(summary.failed_checkpoints, "checkpoint", "checkpoints");
        let cause = io::Error::other(format!("{count} failed, the last among them"));
        let action = format!("cannot write {}", file.display());
        failures.keep(Err::<(), _>(Error::io(action, cause)));
    }
    out.flush()?;
    failures.first()?;
    if progress.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(Outcome::Success)
}

/// Reads the plan in a file.
fn read_plan(path: &Path, algorithms: &'static [&'static ExternalAlgorithm]) -> Result<FitPlan> {
    let text = read_whole_text(path, SizeLimit::Options)?;
    FitPlan::from_json_with(&text, algorithms)
        .map_err(|e| Error::file(path.display().to_string(), e.to_string()))
}

/// Prints a plan, with `--json` in the form that `--plan` reads.
fn print_plan(plan: &FitPlan, out: &mut Output) -> Result<()> {
    for line in plan.to_string().lines() {
        out.line(line);
    }
    let object: serde_json::Value = serde_json::from_str(&plan.to_json()).expect("a plan is JSON");
    out.object(&object);
    out.flush()
}

/// Prints the warnings of a plan and nothing else.
struct Warnings<'a>(&'a Progress);

impl Observer for Warnings<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::Warning(text) = event {
            self.0.suspend(|| print_warning(text));
        }
    }
}

/// Saves the model with the names of its rows and columns.
fn save(model: &Model, data: &FitData, target: &Path) -> Result<()> {
    let _span = trace::span(SpanKind::Saving);
    let names = data.names()?.stage(target)?;
    model::save(model, target)?;
    warn_renamed(&names.commit()?);
    Ok(())
}

/// Prints the summary of the fit. `is_kept`: the file at the target is an earlier one.
fn report(model: &Model, s: &FitSummary, target: &Path, is_kept: bool, out: &mut Output) {
    let optional_rmse = |name: &str, x: f64| {
        if x.is_nan() {
            String::new()
        } else {
            format!(", {name} RMSE {}", format_rmse(x))
        }
    };
    out.line(format!(
        "{}: stopped ({}) after {}, model of epoch {}{}{}{}{}{}; {:.2} s updating, {:.2} s measuring, {}",
        target.display(),
        s.reason.name(),
        format_count(s.epochs, "epoch", "epochs"),
        s.best_epoch,
        optional_rmse("training", s.train_rmse),
        optional_rmse("validation", s.valid_rmse),
        optional_rmse("test", s.test_rmse),
        clipping(model, s.clipped),
        match s.failed_checkpoints {
            0 => String::new(),
            n => format!(", {} not written", format_count(n, "checkpoint", "checkpoints")),
        },
        s.update_seconds,
        s.eval_seconds,
        format_count(s.threads as u64, "thread", "threads")
    ));
    if s.is_without_epochs() {
        let file = target.display();
        let what = match is_kept {
            true => "is kept as it was",
            false => "is the model of epoch 0",
        };
        out.line(format!(
            "{file} {what}: the fit was stopped before the end of its first epoch"
        ));
    }
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
        "failed_checkpoints": s.failed_checkpoints,
        "peak_memory_bytes": peak_memory_bytes("self"),
        "output": (!is_kept).then(|| target.display().to_string()),
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
