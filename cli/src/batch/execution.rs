//! Execution of one job, on its own thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use s3cmtf::Monitor;
use s3cmtf::format::{
    self, CooFile, CooView, CooWriter, Dims, MatchedRole, ModelNames, Names, RowMatch, RowMatcher,
    TextOptions, ValueKind, Values,
};
use s3cmtf::model;
use s3cmtf::options::Options;
use s3cmtf::predict::{PredictOptions, predict_entries};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, FitSummary, StopReason, fit};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::file_cache::{FileCache, Reference};
use super::file_identity::FileIdentity;
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
    }));
    for output in job.outputs() {
        format::check_target(output)?;
    }
    let outcome = match &job.task {
        Task::Fit(task) => execute_fit(job, task, settings, shared, &mut log, result),
        Task::Predict(task) => execute_prediction(job, task, settings, shared, &mut log, result),
    };
    log.write(&match &outcome {
        Ok(()) if result.status == JobStatus::Interrupted => json!({"error": "cancelled"}),
        Ok(()) => json!({"summary": summary(result)}),
        Err(e) => json!({"error": e.to_string()}),
    });
    if let Some(error) = log.take_error() {
        result.add_warning(&error.to_string());
    }
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

/// The rows of the tensor or model of a job, which those of its other files are matched with.
#[derive(Clone)]
struct JobRows<'a> {
    /// Identifies the names in the cache of files.
    key: String,
    matcher: RowMatcher,
    shared: &'a SharedState,
}

/// A file whose rows were matched.
struct JobFile {
    file: Arc<CooFile>,
    rows: RowMatch,
}

impl JobRows<'_> {
    fn all_modes(&self) -> Vec<Option<usize>> {
        (0..self.matcher.order()).map(Some).collect()
    }

    fn open(
        &mut self,
        path: &Path,
        text: &TextOptions,
        modes: &[Option<usize>],
        role: MatchedRole,
    ) -> Result<JobFile> {
        let reference = Reference {
            key: format!("{} {modes:?} {}", self.key, self.matcher.fingerprint()),
            names: self.matcher.known_names(modes),
        };
        let file = self
            .shared
            .files
            .coo(path, text, Some(&reference), self.shared)?;
        let rows = self.matcher.match_file(&file, modes, role)?;
        Ok(JobFile { file, rows })
    }
}

impl JobFile {
    fn view(&self) -> CooView<'_> {
        self.rows.apply(&self.file.view())
    }

    /// Records how many rows only one side has, and what to check.
    fn report(&self, log: &mut JobLog, result: &mut JobResult) {
        for note in &self.rows.notes {
            log.write(&json!({"event": "note", "text": note}));
        }
        self.rows
            .warnings
            .iter()
            .for_each(|text| result.add_warning(text));
    }
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
    let tensor = shared.files.coo(&task.tensor, &task.text, None, shared)?;
    let matcher = RowMatcher::of_tensor(&tensor.view(), tensor.names()?.clone());
    let mut rows = JobRows {
        key: format!("{:?} {:?}", FileIdentity::of(&task.tensor), task.text),
        matcher,
        shared,
    };
    let modes = rows.all_modes();
    let weights = match &task.weights {
        Some(path) => Some(
            rows.clone()
                .open(path, &task.text, &modes, MatchedRole::Entries)?,
        ),
        None => None,
    };
    let mut matrices: Vec<JobFile> = Vec::new();
    for matrix in &task.matrices {
        let modes = [
            Some(matrix.mode),
            matrix.kind.is_graph().then_some(matrix.mode),
        ];
        matrices.push(rows.open(
            &matrix.file,
            &task.matrix_text,
            &modes,
            MatchedRole::Coupled,
        )?);
    }
    for file in &mut matrices {
        file.rows.update_sizes(&rows.matcher);
    }
    let open_optional = |path: &Option<PathBuf>| {
        let open = |path: &PathBuf| {
            rows.clone()
                .open(path, &task.text, &modes, MatchedRole::Entries)
        };
        path.as_ref().map(open).transpose()
    };
    let (test, valid) = (open_optional(&task.test)?, open_optional(&task.valid)?);
    for file in matrices.iter().chain(&weights).chain(&test).chain(&valid) {
        file.report(log, result);
    }
    let resume = &settings.resume;
    let init = task.init.as_ref().filter(|_| resume.is_none());
    let init = init.map(|p| shared.files.model(p)).transpose()?;
    let columns = task.matrices.iter().zip(&matrices).map(|(matrix, file)| {
        let names = file.file.names()?.get(1).cloned().flatten();
        Ok(names.filter(|_| !matrix.kind.is_graph()))
    });
    let names = ModelNames {
        modes: rows.matcher.names(),
        columns: columns.collect::<Result<_>>()?,
    };
    if let (Some(init), Some(path)) = (&init, &task.init) {
        let own = RowMatcher::of_model(
            tensor.name(),
            rows.matcher.tensor(tensor.view()).dims(),
            &matrices
                .iter()
                .map(|m| m.view().dims()[1])
                .collect::<Vec<u64>>(),
            names.clone(),
        );
        for warning in init.row_matcher(path)?.require_same_rows(&own)? {
            result.add_warning(&warning);
        }
    }
    let options = &settings.options;
    let entries = rows.matcher.tensor(tensor.view());
    let entries = match &weights {
        Some(weights) => entries.with_weights_of(&weights.view())?,
        None => entries,
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
        log.write(&json!({"event": "resumed", "epoch": epoch}));
    }
    let (model, summary) = fit(&problem, options, &input, log, shared)?;
    copy_metrics(&summary, result);
    if let Some(file) = job.checkpoint().filter(|_| summary.lacks_last_checkpoint) {
        let (file, count) = (file.display(), summary.failed_checkpoints);
        result.add_warning(&format!("cannot write {file}: {count} checkpoints failed"));
    }
    if summary.reason == StopReason::Cancelled {
        result.status = JobStatus::Interrupted;
        return Ok(());
    }
    if summary.is_without_epochs() && job.output.exists() {
        return Err(Error::argument(format!(
            "time_limit = {}: the time was up before the first epoch, and {} is kept as it was; increase it",
            options.time_limit,
            job.output.display()
        )));
    }
    let names = names.stage(&job.output)?;
    model::save(&model, &job.output)?;
    names.commit()?;
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
    log: &mut JobLog,
    result: &mut JobResult,
) -> Result<()> {
    check_text_options(&task.text, "text", [task.file.as_path()])?;
    let model = shared.files.model(&task.model)?;
    let mut rows = JobRows {
        key: format!("{:?}", FileIdentity::of(&task.model)),
        matcher: model.row_matcher(&task.model)?,
        shared,
    };
    let modes = rows.all_modes();
    let file = rows.open(&task.file, &task.text, &modes, MatchedRole::Entries)?;
    file.report(log, result);
    let (matched, view) = (file.view(), file.file.view());
    model.check_order(&view)?;
    let count = Some(view.len() as u64);
    let mut writer = CooWriter::create(&job.output, view.order(), ValueKind::F32, None, count)?;
    let options = PredictOptions {
        clip: settings.options.clip.unwrap_or(model.clips()),
        threads: settings.options.threads as usize,
    };
    predict_entries(&model, &matched, &options, shared, |range, values| {
        writer.push_at_positions(&view, range, Values::F64(values))
    })?;
    Names::save_to_data(file.file.names()?, &job.output)?;
    let header = writer.finish(Dims::Stated(view.dims().to_vec()))?;
    result.predictions = header.count;
    result.reason = "written".into();
    result.status = JobStatus::Done;
    Ok(())
}
