//! Many fits and predictions side by side, each a line of JSON.
//!
//! The calling thread reads lines, decides which job begins next and notes what became of those that ended; every job
//! runs on a thread of its own, which is kept, with all threads it starts, on the CPUs that are the job's share. A job
//! begins when the jobs before it that write what it reads have ended, when those that read what it writes have, and
//! when there are threads and memory for it; of those that could begin the first does, or all wait until it can.
//!
//! `docs/batch.md` says what a line has.
//!
//! ```
//! use s3cmtf::batch::{self, BatchOptions, JobStatus, Jobs};
//! # fn main() -> s3cmtf::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("s3cmtf-batch-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! let data = dir.join("ratings.tns");
//! std::fs::write(&data, "1 1 1 4.5\n1 3 2 2\n2 1 1 5\n2 2 2 3\n").unwrap();
//! let at = |name: &str| dir.join(name).display().to_string();
//! let lines = format!(
//!     r#"{{"job":"fit","preset":"paper","tensor":"{0}","output":"{1}","options":{{"rank":2,"epochs":5}}}}
//!        {{"job":"predict","model":"{1}","file":"{0}","output":"{2}"}}"#,
//!     data.display(), at("model.s3m"), at("predictions.coo"),
//! );
//! let jobs = Jobs::read("lines", std::io::Cursor::new(lines));
//! let summary = batch::run(jobs, &BatchOptions::new(dir.join("results")), &mut (), &())?;
//! assert_eq!(summary.count(JobStatus::Done), 2);
//! assert_eq!(summary.jobs[1].predictions, 4);
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```

mod estimate;
mod fields;
mod files;
mod lines;
mod plan;
mod results;
mod run;
mod spec;
mod work;

pub use lines::{Jobs, LONGEST_LINE};
pub use results::{JobResult, JobStatus};
pub use run::run;
pub use spec::parse_bytes;

use std::path::PathBuf;

use crate::solver::Control;

/// How a batch is run.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Where results and logs go; results that are there already are those of an earlier run, which goes on.
    pub folder: PathBuf,
    /// The threads of all jobs that run at a time; 0 takes all this process may use.
    pub threads: usize,
    /// The threads of a job that does not say; 0 takes all of them.
    pub job_threads: usize,
    /// The bytes of all jobs that run at a time; 0 takes what the system has left.
    pub memory: u64,
}

impl BatchOptions {
    /// All threads, one for each job, all memory.
    pub fn new(folder: impl Into<PathBuf>) -> BatchOptions {
        BatchOptions {
            folder: folder.into(),
            threads: 0,
            job_threads: 1,
            memory: 0,
        }
    }
}

/// What a batch ended with.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchSummary {
    /// All jobs in the order of their lines.
    pub jobs: Vec<JobResult>,
    /// Whether it was cancelled.
    pub interrupted: bool,
    /// The threads there were for all jobs.
    pub threads: usize,
    /// The memory there was; `u64::MAX` if the system does not tell.
    pub memory: u64,
    /// How long it took.
    pub seconds: f64,
}

impl BatchSummary {
    /// How many jobs ended so.
    pub fn count(&self, status: JobStatus) -> usize {
        self.jobs.iter().filter(|j| j.status == status).count()
    }
}

/// Watches a batch, on the thread that called it. `()` watches nothing.
pub trait BatchObserver {
    /// When a job begins: it has threads, CPUs and memory, and is not ended.
    fn started(&mut self, job: &JobResult) {
        let _ = job;
    }

    /// When a job has ended, in whatever way, and that is noted.
    fn ended(&mut self, job: &JobResult) -> Control {
        let _ = job;
        Control::Continue
    }
}

impl BatchObserver for () {}
