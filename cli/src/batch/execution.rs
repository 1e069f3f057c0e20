//! Execution of one job, on its own thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use s3cmtf::Monitor;
use s3cmtf::format::{self, CooFile, CooWriter, Dims, Names, TextOptions, ValueKind, Values};
use s3cmtf::model;
use s3cmtf::options::Options;
use s3cmtf::predict::{PredictOptions, predict_entries};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, FitSummary, StopReason, fit};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::file_cache::FileCache;
use super::job::{FitTask, Job, PredictTask, Task};
use super::job_log::JobLog;
use super::job_result::{JobResult, JobStatus};

/// The settings of a job that are resolved before it starts.
pub(super) struct ResolvedSettings {
    pub options: Options,
    /// The checkpoint to resume from.
    pub resume: Option<PathBuf>,
}

/// The state that running jobs share.
pub(super) struct SharedState {
    pub files: FileCache,
    pub stop: AtomicBool,
}

impl Monitor for SharedState {
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Executes a job and fills in its result. The caller records errors.
pub(super) fn execute(
    job: &Job,
    settings: &ResolvedSettings,
    shared: &SharedState,
    result: &mut JobResult,
) -> Result<()> {
    let mut log = JobLog::open(result.log.as_deref().unwrap_or(Path::new("")))?;
    log.write(&json!({
        "begins": job.id,
        "line": job.line,
        "threads": result.threads,
        "cores": result.cores,
        "memory_bytes": result.memory,
        "job": job.text,
    }))?;
    model::check_target(&job.output)?;
    let outcome = match &job.task {
        Task::Fit(task) => execute_fit(job, task, settings, shared, &mut log, result),
        Task::Predict(task) => execute_prediction(job, task, settings, shared, result),
    };
    log.write(&match &outcome {
        Ok(()) if result.status == JobStatus::Interrupted => json!({"error": "cancelled"}),
        Ok(()) => json!({"summary": summary(result)}),
        Err(e) => json!({"error": e.to_string()}),
    })?;
    outcome
}

fn summary(r: &JobResult) -> Value {
    let mut summary = json!({"reason": r.reason});
    r.add_metrics(&mut summary);
    summary["threads"] = json!(r.threads);
    summary["output"] = json!(r.output.to_string_lossy());
    summary
}

/// Returns an error if text parsing options are given although no file is text. `name` is the field of the options.
fn check_text_options<'a>(
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
        "{name:?} has options for text files, but none of its files is text"
    )))
}

fn execute_fit(
    job: &Job,
    task: &FitTask,
    settings: &ResolvedSettings,
    shared: &SharedState,
    log: &mut JobLog,
    result: &mut JobResult,
) -> Result<()> {
    let entries = [
        Some(&task.tensor),
        task.weights.as_ref(),
        task.test.as_ref(),
        task.valid.as_ref(),
    ];
    check_text_options(
        &task.text,
        "text",
        entries.into_iter().flatten().map(|p| p.as_path()),
    )?;
    let coupled = task.matrices.iter().map(|m| m.file.as_path());
    // The options of the tensor may have set this one for the matrices too.
    let mut matrix_text = task.matrix_text.clone();
    matrix_text.zero_based = false;
    check_text_options(&matrix_text, "matrix_text", coupled)?;
    let open = |path: &Path, text: &TextOptions| shared.files.coo(path, text, shared);
    let open_optional =
        |path: &Option<PathBuf>| path.as_ref().map(|p| open(p, &task.text)).transpose();
    let tensor = open(&task.tensor, &task.text)?;
    let weights = open_optional(&task.weights)?;
    let test = open_optional(&task.test)?;
    let valid = open_optional(&task.valid)?;
    let mut matrices: Vec<Arc<CooFile>> = Vec::new();
    for matrix in &task.matrices {
        matrices.push(open(&matrix.file, &task.matrix_text)?);
    }
    let resume = &settings.resume;
    let init = task.init.as_ref().filter(|_| resume.is_none());
    let init = init.map(|p| shared.files.model(p)).transpose()?;
    let options = &settings.options;
    let entries = match &weights {
        Some(weights) => tensor.view().with_weights_of(&weights.view())?,
        None => tensor.view(),
    };
    let mut builder = Problem::builder(entries).seed(options.seed);
    for (matrix, file) in task.matrices.iter().zip(&matrices) {
        builder = builder.matrix(matrix.mode, file.view(), matrix.weight, matrix.kind);
        if let Some(penalty) = matrix.penalty {
            builder = builder.penalty(penalty);
        }
    }
    let problem = builder.build(shared)?;
    let input = FitInput {
        test: test.as_ref().map(|f| f.view()),
        valid: valid.as_ref().map(|f| f.view()),
        init: init.as_deref(),
        checkpoint: job.checkpoint().map(Path::to_path_buf),
        resume: resume.clone(),
        ..FitInput::default()
    };
    if let Some(path) = resume {
        let checkpoint = shared.files.model(path)?;
        let epoch = checkpoint.history().last().map_or(0, |e| e.epoch);
        result.resumed_from = epoch;
        log.write(&json!({"event": "resumed", "epoch": epoch}))?;
    }
    let (model, summary) = fit(&problem, options, &input, log, shared)?;
    log.check()?;
    copy_metrics(&summary, result);
    if summary.reason == StopReason::Cancelled {
        result.status = JobStatus::Interrupted;
        return Ok(());
    }
    model::save(&model, &job.output)?;
    Names::copy_to_model(&task.tensor, &job.output, model.order())?;
    for (m, matrix) in task.matrices.iter().enumerate() {
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

fn copy_metrics(summary: &FitSummary, result: &mut JobResult) {
    result.reason = summary.reason.name().into();
    result.epochs = summary.epochs;
    result.train_rmse = summary.train_rmse;
    result.test_rmse = summary.test_rmse;
    result.valid_rmse = summary.valid_rmse;
}

fn execute_prediction(
    job: &Job,
    task: &PredictTask,
    settings: &ResolvedSettings,
    shared: &SharedState,
    result: &mut JobResult,
) -> Result<()> {
    check_text_options(&task.text, "text", [task.file.as_path()])?;
    let model = shared.files.model(&task.model)?;
    let file = shared.files.coo(&task.file, &task.text, shared)?;
    let view = file.view();
    model.check_order(&view)?;
    let count = Some(view.len() as u64);
    let mut writer = CooWriter::create(&job.output, view.order(), ValueKind::F32, None, count)?;
    let options = PredictOptions {
        clip: settings.options.clip.unwrap_or(model.clips()),
        threads: settings.options.threads as usize,
    };
    predict_entries(&model, &view, &options, shared, |range, values| {
        writer.push_at_positions(&view, range, Values::F64(values))
    })?;
    let header = writer.finish(Dims::Stated(view.dims().to_vec()))?;
    result.predictions = header.count;
    result.reason = "written".into();
    result.status = JobStatus::Done;
    Ok(())
}
