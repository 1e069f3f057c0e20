//! The batch runner: many fits and predictions in parallel, each described by one line of JSON.
//!
//! Lines enter through a [`JobReader`]; a [`BatchSummary`] leaves, and a folder of results and logs from which a later run
//! continues. `docs/reference/batch.md` defines the fields of a line. Start with `scheduler.rs`.
//!
//! The calling thread reads lines, decides which job starts next and records the outcome of those that ended. Each job
//! runs on a thread of its own; this thread, and all threads that it starts, are restricted to the CPUs of the job. A job
//! starts when
//! - all earlier jobs that write a file it reads have ended,
//! - all earlier jobs that read a file it writes have ended, and
//! - enough threads and memory are free.
//!
//! Jobs start in the order of their lines: the first job whose dependencies are satisfied is never overtaken.
//!
//! ```
//! use s3cmtf_cli::batch::{self, BatchOptions, JobReader, JobStatus};
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
//! let jobs = JobReader::new("lines", std::io::Cursor::new(lines));
//! let summary = batch::run(jobs, &BatchOptions::new(dir.join("results")), &mut (), &())?;
//! assert_eq!(summary.count(JobStatus::Done), 2);
//! assert_eq!(summary.jobs[1].predictions, 4);
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```

mod byte_size;
mod data_size;
mod dependencies;
mod execution;
mod failure;
mod file_cache;
mod file_identity;
mod job;
mod job_log;
mod job_parsing;
mod job_reader;
mod job_result;
mod journal;
mod json;
mod json_fields;
mod memory_estimate;
mod options;
mod resources;
mod run;
mod scheduler;
mod waiting_jobs;

pub use byte_size::parse_bytes;
pub use job_log::choice_json;
pub use job_reader::{JobReader, MAX_LINE_BYTES};
pub use job_result::{JobResult, JobStatus};
pub use options::{BatchObserver, BatchOptions, BatchSummary};
pub use run::run;
