//! Doing one job, on a thread of its own.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::Opened;
use super::results::{JobResult, JobStatus, errors};
use super::spec::{FitJob, Job, PredictJob, Work};
use crate::error::{Error, Result};
use crate::format::{self, CooFile, CooWriter, Dims, Names, TextOptions, ValueKind, Values};
use crate::json::Writer;
use crate::model::{self, EpochMetrics};
use crate::options::Options;
use crate::predict::{PredictOptions, predict_entries};
use crate::problem::Problem;
use crate::progress::Monitor;
use crate::solver::{Control, Event, FitInput, FitSummary, Observer, StopReason, fit};

/// A job with everything that was decided before it began.
pub(super) struct Prepared {
    pub options: Options,
    /// The checkpoint to go on from.
    pub resume: Option<PathBuf>,
}

/// What jobs share while they run.
pub(super) struct Common {
    pub opened: Opened,
    pub stop: AtomicBool,
}

impl Monitor for Common {
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Does a job and fills in what became of it, but for a failure.
pub(super) fn run(
    job: &Job,
    prepared: &Prepared,
    common: &Common,
    result: &mut JobResult,
) -> Result<()> {
    let mut log = Log::open(result)?;
    log.write(
        Writer::new()
            .text("begins", &job.id)
            .whole("line", job.line)
            .whole("threads", result.threads as u64)
            .list("cores", result.cores.iter().map(|&c| c as u64))
            .whole("memory_bytes", result.memory)
            .text("job", &job.text),
    )?;
    model::check_target(&job.output)?;
    let done = match &job.work {
        Work::Fit(spec) => run_fit(job, spec, prepared, common, &mut log, result),
        Work::Predict(spec) => run_predict(job, spec, prepared, common, result),
    };
    let last = Writer::new();
    log.write(match &done {
        Ok(()) if result.status == JobStatus::Interrupted => last.text("error", "cancelled"),
        Ok(()) => last.object("summary", summary(result)),
        Err(e) => last.text("error", &e.to_string()),
    })?;
    done
}

fn summary(r: &JobResult) -> Writer {
    r.figures(Writer::new().text("reason", &r.reason))
        .whole("threads", r.threads as u64)
        .text("output", &r.output.to_string_lossy())
}

/// Options about text without a text are a mistake.
fn check_text<'a>(
    text: &TextOptions,
    name: &str,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    if *text == TextOptions::default() {
        return Ok(());
    }
    for file in files {
        if !format::is_coo_file(file)? {
            return Ok(());
        }
    }
    Err(Error::argument(format!(
        "{name:?} says how text is read, and no file that it is about is text"
    )))
}

fn run_fit(
    job: &Job,
    spec: &FitJob,
    prepared: &Prepared,
    common: &Common,
    log: &mut Log,
    result: &mut JobResult,
) -> Result<()> {
    let entries = [
        Some(&spec.tensor),
        spec.weights.as_ref(),
        spec.test.as_ref(),
        spec.valid.as_ref(),
    ];
    check_text(
        &spec.text,
        "text",
        entries.into_iter().flatten().map(|p| p.as_path()),
    )?;
    let coupled = spec.matrices.iter().map(|m| m.file.as_path());
    let mut of_matrices = spec.matrix_text.clone();
    of_matrices.zero_based = false;
    check_text(&of_matrices, "matrix_text", coupled)?;
    let open = |path: &Path, text: &TextOptions| common.opened.coo(path, text, common);
    let other = |path: &Option<PathBuf>| path.as_ref().map(|p| open(p, &spec.text)).transpose();
    let tensor = open(&spec.tensor, &spec.text)?;
    let (weights, test, valid) = (
        other(&spec.weights)?,
        other(&spec.test)?,
        other(&spec.valid)?,
    );
    let mut matrices: Vec<Arc<CooFile>> = Vec::new();
    for matrix in &spec.matrices {
        matrices.push(open(&matrix.file, &spec.matrix_text)?);
    }
    let resume = &prepared.resume;
    let init = spec.init.as_ref().filter(|_| resume.is_none());
    let init = init.map(|p| common.opened.model(p)).transpose()?;
    let options = &prepared.options;
    let entries = match &weights {
        Some(weights) => tensor.view().with_weights_of(&weights.view())?,
        None => tensor.view(),
    };
    let mut builder = Problem::builder(entries).seed(options.seed);
    for (matrix, file) in spec.matrices.iter().zip(&matrices) {
        builder = builder.matrix(matrix.mode, file.view(), matrix.weight, matrix.kind);
        if let Some(penalty) = matrix.penalty {
            builder = builder.penalty(penalty);
        }
    }
    let problem = builder.build(common)?;
    let input = FitInput {
        test: test.as_ref().map(|f| f.view()),
        valid: valid.as_ref().map(|f| f.view()),
        init: init.as_deref(),
        checkpoint: job.checkpoint().map(Path::to_path_buf),
        resume: resume.clone(),
    };
    if let Some(path) = resume {
        let epochs = common
            .opened
            .model(path)?
            .history()
            .last()
            .map_or(0, |e| e.epoch);
        result.resumed_from = epochs;
        log.write(
            Writer::new()
                .text("event", "resumed")
                .whole("epoch", epochs),
        )?;
    }
    let (model, ended) = fit(&problem, options, &input, log, common)?;
    log.failed.take().map_or(Ok(()), Err)?;
    figures(result, &ended);
    if ended.reason == StopReason::Cancelled {
        result.status = JobStatus::Interrupted;
        return Ok(());
    }
    model::save(&model, &job.output)?;
    Names::copy_to_model(&spec.tensor, &job.output, model.order())?;
    for (m, matrix) in spec.matrices.iter().enumerate() {
        if !matrix.kind.is_graph() {
            Names::save_columns(
                Names::load_beside(&matrix.file, 1)?.as_ref(),
                &job.output,
                m,
            )?;
        }
    }
    result.status = JobStatus::Done;
    Ok(())
}

fn figures(result: &mut JobResult, ended: &FitSummary) {
    result.reason = ended.reason.name().into();
    result.epochs = ended.epochs;
    result.train_rmse = ended.train_rmse;
    result.test_rmse = ended.test_rmse;
    result.valid_rmse = ended.valid_rmse;
}

fn run_predict(
    job: &Job,
    spec: &PredictJob,
    prepared: &Prepared,
    common: &Common,
    result: &mut JobResult,
) -> Result<()> {
    check_text(&spec.text, "text", [spec.file.as_path()])?;
    let model = common.opened.model(&spec.model)?;
    let file = common.opened.coo(&spec.file, &spec.text, common)?;
    let view = file.view();
    model.check_order(&view)?;
    let count = Some(view.len() as u64);
    let mut writer = CooWriter::create(&job.output, view.order(), ValueKind::F32, None, count)?;
    let (clip, threads) = (prepared.options.clip, prepared.options.threads as usize);
    predict_entries(
        &model,
        &view,
        &PredictOptions { clip, threads },
        common,
        |range, values| {
            let columns: Vec<&[u32]> = (0..view.order())
                .map(|n| &view.column(n)[range.clone()])
                .collect();
            writer.push(&columns, Values::F64(values), None)
        },
    )?;
    let header = writer.finish(Dims::Stated(view.dims().to_vec()))?;
    result.predictions = header.count;
    result.reason = "written".into();
    result.status = JobStatus::Done;
    Ok(())
}

/// The log of a job: the objects that `fit --json` prints, one in each line.
struct Log {
    file: File,
    name: String,
    /// Why it could not be written.
    failed: Option<Error>,
}

impl Log {
    fn open(result: &JobResult) -> Result<Log> {
        let path = result.log.as_deref().unwrap_or(Path::new(""));
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Log {
            file: file.map_err(|e| Error::io(format!("cannot write {name}"), e))?,
            name,
            failed: None,
        })
    }

    fn write(&mut self, object: Writer) -> Result<()> {
        let line = object.finish() + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|e| Error::io(format!("cannot write {}", self.name), e))
    }
}

impl Observer for Log {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        let line = Writer::new()
            .whole("epoch", e.epoch)
            .real("eta", e.eta)
            .real("loss", e.loss);
        let line = errors(line, [e.train_rmse, e.test_rmse, e.valid_rmse])
            .real("update_seconds", e.update_seconds)
            .real("eval_seconds", e.eval_seconds)
            .real("entries_per_second", e.entries_per_second);
        match self.write(line) {
            Ok(()) => Control::Continue,
            Err(e) => {
                self.failed.get_or_insert(e);
                Control::Stop
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let line = |name: &str| Writer::new().text("event", name);
        let line = match event {
            Event::RankLowered(text) => line("rank-lowered").text("text", text),
            Event::RolledBack { epoch, eta } => {
                line("rolled-back").whole("epoch", *epoch).real("eta", *eta)
            }
            Event::Refit { epochs } => line("refit").whole("epochs", *epochs),
            Event::Checkpoint { epoch } => line("checkpoint").whole("epoch", *epoch),
            Event::Warning(text) => line("warning").text("text", text),
            Event::Stopped(reason) => line("stopped").text("reason", reason.name()),
        };
        if let Err(e) = self.write(line) {
            self.failed.get_or_insert(e);
        }
    }
}
