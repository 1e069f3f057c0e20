//! `s3cmtf fit`

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use s3cmtf::format::{CooFile, Names, OpenMode, TextOptions};
use s3cmtf::model::{self, EpochMetrics, Model};
use s3cmtf::options::{OPTION_TABLE, OptionKind, Options, PRESETS};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, Event, FitInput, FitSummary, Observer, fit};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Value, json};

use super::input::{Mixed, TextArguments, any_text, same_file, set_text};
use super::output::{Output, complain, counted, grouped, number, rmse};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Adds the arguments that say what is fitted.
pub(super) fn data_arguments(command: Command) -> Command {
    command
        .arg(path("tensor", "FILE", "The tensor: binary COO, or text").required(true))
        .arg(
            Arg::new("matrix")
                .long("matrix")
                .value_name("MODE:FILE[:WEIGHT[:PENALTY]][:KIND]")
                .action(ArgAction::Append)
                .help("A coupled matrix: its mode, its weight (else that of --matrix-weights or --lambda-m), the penalty on its columns (else --lambda-reg), and what cells are that it does not list: observed (unknown, the default), full (0) or sampled=K (K zeros are drawn for each entry)"),
        )
        .arg(
            Arg::new("graph")
                .long("graph")
                .value_name("MODE:FILE[:WEIGHT]")
                .action(ArgAction::Append)
                .help("A square matrix of similarities between the rows of a mode, which draws similar rows together"),
        )
        .arg(
            Arg::new("matrix-text")
                .long("matrix-text")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("How text of matrices and graphs is read, in the words of the options for reading text: columns=film,genre or no-value=true; --zero-based counts for them too"),
        )
        .arg(path("weights", "FILE", "Weights of the tensor's entries: a file with the same entries in the same order, whose values are the weights"))
        .arg(
            Arg::new("preset")
                .long("preset")
                .value_name("NAME")
                .value_parser(PRESETS.to_vec())
                .default_value("default")
                .help("Settings to start from: those of the paper, with or without its rank and step size for a data set"),
        )
        .arg(path("config", "FILE", "Options from a file of lines name=value; what is given here counts more"))
}

/// Adds the arguments to the command, its options made from the library's table.
pub(super) fn command(command: Command) -> Command {
    let mut command = data_arguments(command)
        .about("Fit a model to a tensor and its coupled matrices")
        .after_help(
            "Examples:\n  \
             s3cmtf fit --tensor train.coo --test test.coo --rank 8 -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --matrix 2:genres.coo:10 --preset paper --rank 12 -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --valid valid.coo --patience 3 --checkpoint run.s3m -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --valid 0.1 --patience 3 -o model.s3m\n  \
             s3cmtf fit --tensor train.coo --resume run.s3m --epochs 100 -o model.s3m",
        )
        .arg(path("test", "FILE", "Entries to measure the test error on"))
        .arg(path("valid", "FILE|FRACTION", "Entries that decide, with --patience, when to stop and which model is best: a file, or which part of the tensor's to hold out (--valid-fraction)"))
        .arg(path("output", "MODEL", "Where the model goes").short('o').required(true))
        .arg(path("init", "MODEL", "Start from this model; rows it lacks start anew"))
        .arg(path("checkpoint", "FILE", "Keep a checkpoint here while fitting"))
        .arg(path("resume", "FILE", "Go on from this checkpoint"));
    for option in OPTION_TABLE {
        let long = option.name.replace('_', "-");
        let arg = Arg::new(option.name)
            .help(format!("{} [default: {}]", option.help, option.default))
            .help_heading("Fitting");
        let arg = match option.kind {
            // Flags that are on by default are turned off.
            OptionKind::Flag if option.default == "true" => {
                let no: &'static str = Box::leak(format!("no-{long}").into_boxed_str());
                arg.long(no)
                    .action(ArgAction::SetTrue)
                    .help(format!("Not this: {}", lower_first(option.help)))
            }
            OptionKind::Flag => arg
                .long(leak(long))
                .action(ArgAction::SetTrue)
                .help(option.help),
            OptionKind::Choice(words) => arg.long(leak(long)).value_name(leak(words.join("|"))),
            OptionKind::IntegerList(..) => arg.long(leak(long)).value_name("J[,J...]"),
            OptionKind::RealList(..) => arg.long(leak(long)).value_name("X[,X...]"),
            OptionKind::Integer(..) => arg.long(leak(long)).value_name("N"),
            OptionKind::Real(..) => arg
                .long(leak(long))
                .value_name("X")
                .allow_negative_numbers(true),
        };
        command = command.arg(arg);
    }
    TextArguments::augment_args(command)
}

/// Command lines are built once; clap wants names that live as long as the program.
pub(super) fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_lowercase().chain(chars).collect())
}

pub(super) fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

/// What is typed counts most, then the file of options; below them what the checkpoint has, or the
/// preset with the ranks of the model to start from.
fn options_of(a: &ArgMatches, init: Option<&Model>) -> Result<Options> {
    let preset = a
        .get_one::<String>("preset")
        .map_or("default", String::as_str);
    let mut options = match a.get_one::<PathBuf>("resume") {
        Some(path) => model::load(path, OpenMode::Mapped)?.options().clone(),
        None => Options::preset(preset)?,
    };
    if let Some(init) = init {
        options.rank = init.shape().ranks.clone();
        options.model = init.options().model;
    }
    apply_config(a, &mut options)?;
    for option in OPTION_TABLE {
        match option.kind {
            OptionKind::Flag => {
                if a.get_flag(option.name) {
                    let value = if option.default == "true" {
                        "false"
                    } else {
                        "true"
                    };
                    options.set(option.name, value)?;
                }
            }
            _ => {
                if let Some(value) = a.get_one::<String>(option.name) {
                    options.set(option.name, value)?;
                }
            }
        }
    }
    Ok(options)
}

/// Overrides options with those of the file that was named, if one was.
pub(super) fn apply_config(a: &ArgMatches, options: &mut Options) -> Result<()> {
    let Some(file) = a.get_one::<PathBuf>("config") else {
        return Ok(());
    };
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        action: format!("cannot read {}", file.display()),
        source,
    })?;
    options
        .apply_text(&text)
        .map_err(|e| Error::Argument(format!("{}: {e}", file.display())))
}

/// A number instead of a file.
fn fraction(path: &Path) -> Option<f64> {
    path.to_str()?.parse().ok()
}

/// A coupled matrix as typed.
pub(super) struct Coupled {
    pub mode: usize,
    pub file: PathBuf,
    pub weight: Option<f64>,
    pub penalty: Option<f64>,
    pub kind: MatrixKind,
}

/// Splits `MODE:FILE[:WEIGHT[:PENALTY]]`, and for a matrix `[:KIND]`.
pub(super) fn coupled(spec: &str, option: &str) -> Result<Coupled> {
    let bad = || {
        Error::Argument(format!(
            "{option} {spec}: expected MODE:FILE, then :WEIGHT and :PENALTY if they differ, such as 2:genres.coo:10"
        ))
    };
    let (mode, mut file) = spec.split_once(':').ok_or_else(bad)?;
    let mode = mode_from_one(mode.parse().map_err(|_| bad())?)?;
    let mut kind = MatrixKind::Graph;
    if option == "--matrix" {
        (file, kind) = kind_of(file);
    }
    // A colon may be part of a file's name; numbers behind the last ones are not.
    let mut numbers = Vec::new();
    while numbers.len() < 2
        && let Some((rest, number)) = file.rsplit_once(':')
        && let Ok(number) = number.parse::<f64>()
    {
        numbers.insert(0, number);
        file = rest;
    }
    if file.is_empty() {
        return Err(bad());
    }
    if option == "--matrix" && file.rsplit(':').next().is_some_and(|end| end == "sampled") {
        return Err(Error::Argument(format!(
            "{option} {spec}: sampled comes with the number of zeros for each entry, such as sampled=5"
        )));
    }
    Ok(Coupled {
        mode,
        file: file.into(),
        weight: numbers.first().copied(),
        penalty: numbers.get(1).copied(),
        kind,
    })
}

/// Takes the kind of a matrix off its end: `observed`, `full`, `sampled=K` or `sampled:K`.
fn kind_of(spec: &str) -> (&str, MatrixKind) {
    let colons = spec.rmatch_indices(':').take(2);
    let ends = colons.map(|(at, _)| (&spec[..at], &spec[at + 1..]));
    let named = ends.filter_map(|(rest, name)| Some((rest, MatrixKind::from_name(name)?)));
    let mut named = named.filter(|(_, kind)| !kind.is_graph());
    named.next().unwrap_or((spec, MatrixKind::Observed))
}

/// How the text of the tensor and of test and validation entries is read.
fn text_of(a: &ArgMatches) -> Result<TextOptions> {
    TextArguments::from_arg_matches(a)
        .expect("clap parsed them")
        .options()
}

/// How that of matrices and graphs is read, which have other columns.
pub(super) fn matrix_text<'a>(
    specs: impl Iterator<Item = &'a String>,
    zero_based: bool,
) -> Result<TextOptions> {
    let mut options = TextOptions {
        zero_based,
        ..TextOptions::default()
    };
    for spec in specs {
        set_text(&mut options, spec, "--matrix-text")?;
    }
    Ok(options)
}

/// What is fitted, as typed and opened.
pub(super) struct Opened {
    tensor: CooFile,
    /// Of its entries.
    weights: Option<CooFile>,
    matrices: Vec<(Coupled, CooFile)>,
    /// How further entries of the tensor are read.
    entries: Mixed,
}

impl Opened {
    /// Opens the tensor and what is coupled to it; `others` are arguments that name further entries.
    pub(super) fn new(a: &ArgMatches, others: &[&PathBuf], progress: &Progress) -> Result<Opened> {
        let tensor = a.get_one::<PathBuf>("tensor").expect("clap requires it");
        let weights = a.get_one::<PathBuf>("weights");
        let all = [tensor].into_iter().chain(weights);
        let entries = Mixed {
            options: text_of(a)?,
            any_text: any_text(all.chain(others.iter().copied()))?,
        };
        let tensor = entries.open(tensor, progress)?;
        let weights = weights.map(|w| entries.open(w, progress)).transpose()?;
        let mut coupled_to: Vec<Coupled> = Vec::new();
        for option in ["matrix", "graph"] {
            for spec in a.get_many::<String>(option).into_iter().flatten() {
                let spec = coupled(spec, &format!("--{option}"))?;
                if spec.kind.is_graph() && spec.penalty.is_some() {
                    return Err(Error::Argument(format!(
                        "--graph {}: a graph has no columns of its own to penalise; leave the second number out",
                        spec.file.display()
                    )));
                }
                coupled_to.push(spec);
            }
        }
        let any_text = any_text(coupled_to.iter().map(|spec| &spec.file))?;
        let coupled_text = Mixed {
            options: matrix_text(
                a.get_many("matrix-text").into_iter().flatten(),
                any_text && entries.options.zero_based,
            )?,
            any_text,
        };
        if coupled_to.is_empty() && coupled_text.options != TextOptions::default() {
            return Err(Error::Argument(
                "--matrix-text is about matrices and graphs, and there is none".into(),
            ));
        }
        let mut matrices: Vec<(Coupled, CooFile)> = Vec::new();
        for spec in coupled_to {
            let file = coupled_text.open(&spec.file, progress)?;
            matrices.push((spec, file));
        }
        Ok(Opened {
            tensor,
            weights,
            matrices,
            entries,
        })
    }

    /// Opens further entries of the tensor.
    pub(super) fn entries(&self, path: &Path, progress: &Progress) -> Result<CooFile> {
        self.entries.open(path, progress)
    }

    /// `seed` names the zeros that are drawn.
    pub(super) fn problem(&self, seed: u64, progress: &Progress) -> Result<Problem<'_>> {
        let entries = match &self.weights {
            Some(weights) => self.tensor.view().with_weights_of(&weights.view())?,
            None => self.tensor.view(),
        };
        let mut builder = Problem::builder(entries).seed(seed);
        for (spec, file) in &self.matrices {
            builder = builder.matrix(spec.mode, file.view(), spec.weight, spec.kind);
            if let Some(penalty) = spec.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder.build(progress)
    }

    /// Outputs must not overwrite what is read: `others`, the tensor and the matrices.
    pub(super) fn spare(
        &self,
        a: &ArgMatches,
        others: &[Option<&PathBuf>],
        outputs: &[Option<&PathBuf>],
    ) -> Result<()> {
        let named = ["tensor", "weights", "config"].map(|name| a.get_one::<PathBuf>(name));
        let inputs = named.into_iter().chain(others.iter().copied()).flatten();
        let coupled = self.matrices.iter().map(|(spec, _)| &spec.file);
        let inputs: Vec<&PathBuf> = inputs.chain(coupled).collect();
        for output in outputs.iter().copied().flatten() {
            if inputs.iter().any(|input| same_file(input, output)) {
                return Err(Error::Argument(format!(
                    "{} is read here and would be overwritten; write to another file",
                    output.display()
                )));
            }
        }
        Ok(())
    }
}

pub(super) fn run(a: &ArgMatches, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let given = |name: &str| {
        a.get_one::<PathBuf>(name)
            .filter(|p| name != "valid" || fraction(p).is_none())
    };
    let target = given("output").expect("clap requires it");
    let init = given("init")
        .map(|p| model::load(p, OpenMode::Mapped))
        .transpose()?;
    let mut options = options_of(a, init.as_ref())?;
    if let Some(part) = a.get_one::<PathBuf>("valid").and_then(|p| fraction(p)) {
        if !(part > 0.0 && part < 1.0) {
            return Err(Error::Argument(format!(
                "--valid {part}: a part of the entries is above 0 and below 1; a file of that name is ./{part}"
            )));
        }
        options.valid_fraction = part;
    }
    model::check_target(target)?;
    let others: Vec<&PathBuf> = ["test", "valid"].into_iter().filter_map(given).collect();
    let opened = Opened::new(a, &others, progress)?;
    let open = |path: &PathBuf| opened.entries(path, progress);
    let test = given("test").map(open).transpose()?;
    let valid = given("valid").map(open).transpose()?;
    let problem = opened.problem(options.seed, progress)?;
    let checkpoint = given("checkpoint").or(given("resume"));
    let others = [given("test"), given("valid"), given("init")];
    opened.spare(a, &others, &[Some(target), checkpoint])?;
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
    };
    let mut watcher = Watcher {
        progress,
        out,
        failed: None,
    };
    let (model, summary) = fit(&problem, &options, &input, &mut watcher, progress)?;
    let failed = watcher.failed.take();
    // Whatever ended the fit, the work is kept.
    model::save(&model, target)?;
    if let Some(tensor) = given("tensor") {
        Names::copy_to_model(tensor, target, model.order())?;
    }
    for (m, (spec, _)) in opened.matrices.iter().enumerate() {
        if !spec.kind.is_graph() {
            Names::save_columns(Names::load_beside(&spec.file, 1)?.as_ref(), target, m)?;
        }
    }
    if let Some(e) = failed {
        return Err(e);
    }
    report(&model, &summary, target, out);
    if progress.cancelled() {
        out.flush()?;
        return Err(Error::Cancelled);
    }
    Ok(Verdict::Good)
}

/// Prints what happens on the way, and stops it if that fails or is cancelled.
pub(super) struct Watcher<'a> {
    pub progress: &'a Progress,
    pub out: &'a mut Output,
    pub failed: Option<Error>,
}

impl Observer for Watcher<'_> {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        let shown = |name: &str, x: f64| {
            if x.is_nan() {
                String::new()
            } else {
                format!("  {name} {}", rmse(x))
            }
        };
        self.out.line(format!(
            "epoch {:>4}  eta {}{}{}{}  {:.2} s  {} entries/s",
            e.epoch,
            number(e.eta),
            shown("train", e.train_rmse),
            shown("valid", e.valid_rmse),
            shown("test", e.test_rmse),
            e.update_seconds,
            grouped(e.entries_per_second as u64)
        ));
        self.out.object(&epoch_json(e));
        self.flush()
    }

    fn event(&mut self, event: &Event) {
        let (name, text, fields) = match event {
            Event::RankLowered(text) => ("rank-lowered", text.clone(), json!({"text": text})),
            Event::RolledBack { epoch, eta } => (
                "rolled-back",
                format!(
                    "the loss exploded: back to epoch {epoch}, eta {}",
                    number(*eta)
                ),
                json!({"epoch": epoch, "eta": eta}),
            ),
            Event::Refit { epochs } => (
                "refit",
                format!(
                    "fitting to all entries for {}",
                    counted(*epochs, "epoch", "epochs")
                ),
                json!({"epochs": epochs}),
            ),
            Event::Checkpoint { epoch } => ("checkpoint", String::new(), json!({"epoch": epoch})),
            Event::Warning(text) => {
                if !self.out.json {
                    complain(&format!("warning: {text}"));
                }
                ("warning", String::new(), json!({"text": text}))
            }
            Event::Stopped(reason) => ("stopped", String::new(), json!({"reason": reason.name()})),
            _ => return,
        };
        if !text.is_empty() {
            self.out.line(text);
        }
        let mut object = json!({"event": name});
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        self.out.object(&object);
        self.flush();
    }
}

impl Watcher<'_> {
    /// Output that cannot be written ends the fit.
    pub(super) fn flush(&mut self) -> Control {
        if let Err(e) = self.out.flush() {
            self.failed.get_or_insert(e);
        }
        if self.failed.is_some() || self.progress.cancelled() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// The figures of an epoch.
pub(super) fn epoch_json(e: &EpochMetrics) -> Value {
    json!({
        "epoch": e.epoch,
        "eta": e.eta,
        "loss": finite(e.loss),
        "train_rmse": finite(e.train_rmse),
        "test_rmse": finite(e.test_rmse),
        "valid_rmse": finite(e.valid_rmse),
        "update_seconds": e.update_seconds,
        "eval_seconds": e.eval_seconds,
        "entries_per_second": e.entries_per_second,
    })
}

/// JSON has no NaN: what was not measured is null.
pub(super) fn finite(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

fn report(model: &Model, s: &FitSummary, target: &Path, out: &mut Output) {
    let shown = |name: &str, x: f64| {
        if x.is_nan() {
            String::new()
        } else {
            format!(", {name} RMSE {}", rmse(x))
        }
    };
    out.line(format!(
        "{}: stopped ({}) after {} epochs, model of epoch {}{}{}{}{}; {:.2} s updating, {:.2} s measuring, {}",
        target.display(),
        s.reason.name(),
        s.epochs,
        s.best_epoch,
        shown("training", s.train_rmse),
        shown("validation", s.valid_rmse),
        shown("test", s.test_rmse),
        if s.clipped { " (clipped)" } else { " (not clipped)" },
        s.update_seconds,
        s.eval_seconds,
        counted(s.threads as u64, "thread", "threads")
    ));
    let o = model.options();
    out.object(&json!({"summary": {
        "train_rmse": finite(s.train_rmse),
        "test_rmse": finite(s.test_rmse),
        "valid_rmse": finite(s.valid_rmse),
        "best_epoch": s.best_epoch,
        "clipped": s.clipped,
        "threads": s.threads,
        "kernel": s.kernel.name(),
        "algorithm": o.get("algorithm"),
        "model": o.get("model"),
        "ranks": model.shape().ranks,
        "seed": o.seed,
        "epochs": s.epochs,
        "reason": s.reason.name(),
        "seconds": s.seconds,
        "update_seconds": s.update_seconds,
        "eval_seconds": s.eval_seconds,
        "peak_memory_bytes": peak_memory(),
        "output": target.display().to_string(),
    }}));
}

/// The most memory this process ever had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kb| kb * 1024)
}
