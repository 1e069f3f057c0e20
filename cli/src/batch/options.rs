//! Options, summary and observer of a batch.

use std::path::PathBuf;

use s3cmtf::solver::Control;

use super::job_result::{JobResult, JobStatus};

/// Options of [`run`](super::run).
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// The folder of results and logs. If it holds results of an earlier run, the batch continues from there.
    pub folder: PathBuf,
    /// The number of threads of all running jobs together; 0 means all that this process may use.
    pub threads: usize,
    /// The number of threads of a job that does not state it; 0 means all threads of the batch.
    pub job_threads: usize,
    /// The memory of all running jobs together, in bytes; 0 means all that the system has available.
    pub memory: u64,
    /// Whether the checksums of binary data are verified, once per file.
    pub verify: bool,
}

impl BatchOptions {
    /// Returns options with all threads and all memory, one thread per job, and verification.
    pub fn new(folder: impl Into<PathBuf>) -> BatchOptions {
        BatchOptions {
            folder: folder.into(),
            threads: 0,
            job_threads: 1,
            memory: 0,
            verify: true,
        }
    }
}

/// The outcome of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchSummary {
    /// All jobs, in the order of their lines.
    pub jobs: Vec<JobResult>,
    /// Whether the batch was cancelled.
    pub interrupted: bool,
    /// The first error of the journal, from which the next run continues.
    pub journal_error: Option<String>,
    /// The number of threads of all jobs together.
    pub threads: usize,
    /// The memory of all jobs together, in bytes; `u64::MAX` if the system does not report it.
    pub memory: u64,
    /// The elapsed time.
    pub seconds: f64,
}

impl BatchSummary {
    /// Returns the number of jobs with a status.
    pub fn count(&self, status: JobStatus) -> usize {
        self.jobs.iter().filter(|j| j.status == status).count()
    }
}

/// Observes a batch, on the thread that called [`run`](super::run). `()` observes nothing.
pub trait BatchObserver {
    /// Called when a job starts. Its threads, CPUs and memory are set.
    fn started(&mut self, job: &JobResult) {
        let _ = job;
    }

    /// Called when a job has ended and its result is recorded. [`Control::Stop`] cancels the batch.
    fn ended(&mut self, job: &JobResult) -> Control {
        let _ = job;
        Control::Continue
    }

    /// Called when the journal cannot be written, the first time. The batch goes on.
    fn warning(&mut self, text: &str) {
        let _ = text;
    }
}

impl BatchObserver for () {}
