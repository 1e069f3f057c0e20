//! The result of a job, and its form in JSON.

use std::path::PathBuf;

use super::job::Job;
use crate::json::{Json, ObjectWriter};

/// The state of a job at the end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// It succeeded: its output is written.
    Done,
    /// It succeeded in an earlier run of the batch.
    Skipped,
    /// It failed.
    Failed,
    /// It was cancelled while it ran. The next run of the batch continues it.
    Interrupted,
    /// The batch was cancelled before it started.
    NotStarted,
}

impl JobStatus {
    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            JobStatus::Done => "done",
            JobStatus::Skipped => "skipped",
            JobStatus::Failed => "failed",
            JobStatus::Interrupted => "interrupted",
            JobStatus::NotStarted => "not-started",
        }
    }
}

/// The result of a job. Errors that were not measured are NaN, counts are 0.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobResult {
    /// Its id.
    pub id: String,
    /// Its line, counted from 1.
    pub line: u64,
    /// `fit` or `predict`; empty if the line is not a valid job.
    pub kind: &'static str,
    /// Its status.
    pub status: JobStatus,
    /// The reason of the status: why a fit stopped (`epochs`, `patience`, ...), `written` for predictions, `cancelled`; for
    /// a failure `bad-input`, `system`, `refused` (it exceeds the resources of the batch), `needs` (a job that writes one
    /// of its inputs failed) or `panic`.
    pub reason: String,
    /// The error message of a failure; else empty.
    pub message: String,
    /// The path of its output.
    pub output: PathBuf,
    /// The path of its log, if it started.
    pub log: Option<PathBuf>,
    /// The number of its threads.
    pub threads: usize,
    /// The CPUs that were reserved for it; empty if there are more threads than CPUs.
    pub cores: Vec<usize>,
    /// The memory that was reserved for it, in bytes.
    pub memory: u64,
    /// The elapsed time.
    pub seconds: f64,
    /// The number of epochs.
    pub epochs: u64,
    /// The RMSE on the training entries.
    pub train_rmse: f64,
    /// The RMSE on the test entries.
    pub test_rmse: f64,
    /// The RMSE on the validation entries.
    pub valid_rmse: f64,
    /// The number of predictions.
    pub predictions: u64,
    /// The epoch of the checkpoint that it resumed from; 0 if it started from the beginning.
    pub resumed_from: u64,
}

impl JobResult {
    pub(super) fn new(id: &str, line: u64) -> JobResult {
        JobResult {
            id: id.into(),
            line,
            kind: "",
            status: JobStatus::NotStarted,
            reason: String::new(),
            message: String::new(),
            output: PathBuf::new(),
            log: None,
            threads: 0,
            cores: Vec::new(),
            memory: 0,
            seconds: 0.0,
            epochs: 0,
            train_rmse: f64::NAN,
            test_rmse: f64::NAN,
            valid_rmse: f64::NAN,
            predictions: 0,
            resumed_from: 0,
        }
    }

    pub(super) fn of_job(job: &Job) -> JobResult {
        JobResult {
            kind: job.task_name(),
            output: job.output.clone(),
            ..JobResult::new(&job.id, job.line)
        }
    }

    /// Returns the line of JSON for the journal. `job_text` is the line of the job.
    pub(super) fn to_json(&self, job_text: &str) -> String {
        let line = ObjectWriter::new()
            .string("id", &self.id)
            .integer("line", self.line)
            .string("kind", self.kind)
            .string("status", self.status.name())
            .string("reason", &self.reason)
            .string("message", &self.message)
            .string("output", &self.output.to_string_lossy());
        let line = match &self.log {
            Some(log) => line.string("log", &log.to_string_lossy()),
            None => line,
        };
        let line = line
            .integer("threads", self.threads as u64)
            .integers("cores", self.cores.iter().map(|&c| c as u64))
            .integer("memory_bytes", self.memory)
            .number("seconds", self.seconds);
        self.write_metrics(line)
            .integer("resumed_from", self.resumed_from)
            .string("job", job_text)
            .finish()
    }

    /// Appends epochs, errors and predictions.
    pub(super) fn write_metrics(&self, line: ObjectWriter) -> ObjectWriter {
        let line = line.integer("epochs", self.epochs);
        write_errors(line, self.train_rmse, self.test_rmse, self.valid_rmse)
            .integer("predictions", self.predictions)
    }

    /// Restores the result of an earlier run, for a job that is skipped.
    pub(super) fn restore(&mut self, saved: &Json) {
        let real = |name: &str| {
            saved
                .get(name)
                .and_then(Json::parse_number)
                .unwrap_or(f64::NAN)
        };
        let whole = |name: &str| saved.get(name).and_then(Json::parse_number).unwrap_or(0);
        let text = |name: &str| saved.get(name).and_then(Json::as_str);
        self.reason = text("reason").unwrap_or_default().into();
        self.log = text("log").map(PathBuf::from);
        self.threads = whole("threads") as usize;
        self.memory = whole("memory_bytes");
        self.epochs = whole("epochs");
        self.predictions = whole("predictions");
        self.resumed_from = whole("resumed_from");
        self.seconds = real("seconds");
        self.train_rmse = real("train_rmse");
        self.test_rmse = real("test_rmse");
        self.valid_rmse = real("valid_rmse");
    }
}

/// Appends the errors on training, test and validation entries.
pub(super) fn write_errors(line: ObjectWriter, train: f64, test: f64, valid: f64) -> ObjectWriter {
    line.number("train_rmse", train)
        .number("test_rmse", test)
        .number("valid_rmse", valid)
}
