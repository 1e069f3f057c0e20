//! The result of a job, and its form in JSON.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::job::Job;

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
    /// Files beside the output that could not be written, such as checkpoints; else empty.
    pub warning: String,
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
            warning: String::new(),
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

    /// Returns the result as the JSON object that the journal stores. `job_text` is the input line of the job.
    pub(super) fn to_json(&self, job_text: &str) -> Value {
        let mut object = json!({
            "id": self.id,
            "line": self.line,
            "kind": self.kind,
            "status": self.status.name(),
            "reason": self.reason,
            "message": self.message,
            "warning": self.warning,
            "output": self.output.to_string_lossy(),
        });
        if let Some(log) = &self.log {
            object["log"] = json!(log.to_string_lossy());
        }
        object["threads"] = json!(self.threads);
        object["cores"] = json!(self.cores);
        object["memory_bytes"] = json!(self.memory);
        object["seconds"] = json!(self.seconds);
        self.add_metrics(&mut object);
        object["resumed_from"] = json!(self.resumed_from);
        object["job"] = json!(job_text);
        object
    }

    /// Adds a file beside the output that could not be written.
    pub(super) fn add_warning(&mut self, text: &str) {
        if !self.warning.is_empty() {
            self.warning += "; ";
        }
        self.warning += text;
    }

    /// Adds epochs, errors and predictions to an object. Errors that were not measured are null.
    pub(super) fn add_metrics(&self, object: &mut Value) {
        object["epochs"] = json!(self.epochs);
        object["train_rmse"] = json!(self.train_rmse);
        object["test_rmse"] = json!(self.test_rmse);
        object["valid_rmse"] = json!(self.valid_rmse);
        object["predictions"] = json!(self.predictions);
    }

    /// Restores the result of an earlier run, for a job that is skipped.
    pub(super) fn restore(&mut self, saved: &Value) {
        let real = |name: &str| saved[name].as_f64().unwrap_or(f64::NAN);
        let whole = |name: &str| saved[name].as_u64().unwrap_or(0);
        let text = |name: &str| saved[name].as_str();
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
