//! The journal of a batch, which a later run continues from.
//!
//! `results.jsonl` has a line for every job that ended, `started.jsonl` one for every job that started. Both files only
//! grow, and each line is synced to disk before the batch goes on. If the machine crashes during a write, the last line
//! may be incomplete; the next run removes it.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use s3cmtf::format::{SizeLimit, check_derived_target, read_whole};
use s3cmtf::printable::escape_json;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::job::Job;
use super::job_result::{JobResult, JobStatus};
use super::json::parse;
use crate::file_arguments::canonical;

const RESULTS: &str = "results.jsonl";
const STARTED: &str = "started.jsonl";

/// The journal of a batch, in its folder.
pub(super) struct Journal {
    /// The canonical path of the file of jobs, if the jobs come from a file.
    pub jobs_file: Option<PathBuf>,
    folder: PathBuf,
    results: File,
    started: File,
    /// The results of jobs that succeeded in earlier runs, by the text of their line.
    succeeded: HashMap<String, Value>,
    /// The fingerprint of the checkpoint file, if any, when a job first started in earlier runs, by the text of its line.
    first_checkpoints: HashMap<String, Option<String>>,
}

impl Journal {
    /// Opens the folder, which is created if needed. It is locked, so that only one batch uses it at a time.
    pub(super) fn open(folder: &Path) -> Result<Journal> {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot create the folder {}", folder.display()), e))?;
        let (results, result_lines) = open(&folder.join(RESULTS), true)?;
        let (started, started_lines) = open(&folder.join(STARTED), false)?;
        let job_of = |line: &Value| line["job"].as_str().map(String::from);
        let mut succeeded = HashMap::new();
        for line in result_lines {
            if let Some(job) = job_of(&line) {
                let status = line["status"].as_str();
                if status == Some(JobStatus::Done.name()) {
                    succeeded.insert(job, line);
                } else {
                    succeeded.remove(&job);
                }
            }
        }
        let mut first_checkpoints = HashMap::new();
        for line in started_lines {
            if let Some(job) = job_of(&line) {
                let checkpoint = line["checkpoint"].as_str();
                let checkpoint = checkpoint.map(String::from);
                first_checkpoints.entry(job).or_insert(checkpoint);
            }
        }
        Ok(Journal {
            jobs_file: None,
            folder: folder.to_path_buf(),
            results,
            started,
            succeeded,
            first_checkpoints,
        })
    }

    /// Returns the path of the log of a job.
    pub(super) fn log_path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.log"))
    }

    /// Whether a file, given by its canonical path, belongs to the batch itself.
    pub(super) fn owns(&self, path: &Path) -> bool {
        if self.jobs_file.as_deref() == Some(path) {
            return true;
        }
        let results = canonical(&self.folder.join(RESULTS));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == results.parent()
            && (name == RESULTS || name == STARTED || name.ends_with(".log"))
    }

    /// Returns the result of the same line in an earlier run, if it succeeded.
    pub(super) fn earlier_success(&self, job: &Job) -> Option<JobResult> {
        let saved = self.succeeded.get(&job.text)?;
        let mut result = JobResult::of_job(job);
        result.restore(saved);
        result.status = JobStatus::Skipped;
        Some(result)
    }

    /// If an earlier run started the same line, returns the fingerprint of its checkpoint file before the first start.
    pub(super) fn first_checkpoint(&self, job: &Job) -> Option<&Option<String>> {
        self.first_checkpoints.get(&job.text)
    }

    /// Records that a job starts. `checkpoint` is the fingerprint of its checkpoint file, if it exists.
    pub(super) fn record_start(&mut self, job: &Job, checkpoint: Option<&str>) -> Result<()> {
        let mut line = json!({"id": job.id, "line": job.line});
        if let Some(fingerprint) = checkpoint {
            line["checkpoint"] = json!(fingerprint);
        }
        line["job"] = json!(job.text);
        append(&mut self.started, &self.folder.join(STARTED), &line)
    }

    /// Records the result of a job. `job_text` is its line.
    pub(super) fn record_result(&mut self, result: &JobResult, job_text: &str) -> Result<()> {
        let line = result.to_json(job_text);
        append(&mut self.results, &self.folder.join(RESULTS), &line)
    }
}

/// Appends a line and syncs it to disk. Of a line that cannot be written nothing is left, so that the file stays readable.
fn append(file: &mut File, path: &Path, line: &Value) -> Result<()> {
    let write = |file: &mut File| {
        let before = file.metadata()?.len();
        let written = file
            .write_all(format!("{}\n", escape_json(&line.to_string())).as_bytes())
            .and_then(|()| file.sync_data());
        written.inspect_err(|_| drop(file.set_len(before)))
    };
    write(file).map_err(|e| Error::io(format!("cannot write {}", path.display()), e))
}

/// Opens a file of JSON lines for appending, and returns its lines. An incomplete last line is removed.
fn open(path: &Path, lock: bool) -> Result<(File, Vec<Value>)> {
    let io_error = |e| Error::io(format!("cannot open {}", path.display()), e);
    check_derived_target(path)?;
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(io_error)?;
    if lock {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let folder = path.parent().unwrap_or(path).display().to_string();
                return Err(Error::file(
                    folder,
                    "another batch is running there; wait for it, or write to another folder",
                ));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
    }
    if !file.metadata().map_err(io_error)?.is_file() {
        let name = path.display().to_string();
        return Err(Error::file(
            name,
            "is a device or a pipe; it must be an ordinary file",
        ));
    }
    let mut bytes = read_whole(path, SizeLimit::Table)?;
    let complete = bytes
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    if complete < bytes.len() {
        file.set_len(complete as u64).map_err(io_error)?;
        file.seek(SeekFrom::End(0)).map_err(io_error)?;
        bytes.truncate(complete);
    }
    let name = path.display().to_string();
    let mut lines = Vec::new();
    for (number, line) in bytes.split(|&b| b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_string());
        let parsed = text.and_then(parse);
        lines.push(parsed.map_err(|message| {
            let message = format!("{message}; the file was not written by a batch, move it away");
            Error::text(&name, number as u64 + 1, message)
        })?);
    }
    Ok((file, lines))
}

#[cfg(test)]
mod tests {
    use super::super::job_parsing::parse_job;
    use super::*;

    fn job(text: &str) -> Job {
        parse_job(1, text).map_err(|failed| failed.error).unwrap()
    }

    #[test]
    fn results_of_earlier_runs_are_restored() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("made");
        let a = job(r#"{"id":"a","job":"predict","model":"m","file":"f","output":"é\n"}"#);
        let b = job(r#"{"id":"b","job":"predict","model":"m","file":"f","output":"y"}"#);
        let mut journal = Journal::open(&folder).unwrap();
        assert!(journal.earlier_success(&a).is_none() && journal.first_checkpoint(&a).is_none());
        // The folder is locked.
        let second = Journal::open(&folder).err().unwrap().to_string();
        assert!(second.contains("another batch"), "{second}");
        let mut result = JobResult::of_job(&a);
        result.status = JobStatus::Done;
        result.test_rmse = 0.1 + 0.2;
        journal.record_start(&a, Some("x")).unwrap();
        journal.record_start(&a, Some("y")).unwrap();
        journal.record_result(&result, &a.text).unwrap();
        result.status = JobStatus::Failed;
        journal.record_result(&result, &b.text).unwrap();
        drop(journal);
        // An incomplete last line, as after a crash.
        let path = folder.join("results.jsonl");
        let complete = fs::read(&path).unwrap();
        let crashed = [&complete[..], &complete[..complete.len() / 3]].concat();
        fs::write(&path, crashed).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        let restored = journal.earlier_success(&a).unwrap();
        assert_eq!(
            (restored.test_rmse, restored.status),
            (0.1 + 0.2, JobStatus::Skipped)
        );
        assert!(restored.train_rmse.is_nan() && journal.earlier_success(&b).is_none());
        assert_eq!(journal.first_checkpoint(&a), Some(&Some("x".into())));
        assert_eq!(fs::read(&path).unwrap(), complete);
        // A later failure overrides an earlier success.
        journal.record_result(&result, &a.text).unwrap();
        drop(journal);
        assert!(
            Journal::open(&folder)
                .unwrap()
                .earlier_success(&a)
                .is_none()
        );
        fs::write(&path, "what?\n{}\n").unwrap();
        let error = Journal::open(&folder).err().unwrap().to_string();
        assert!(
            error.contains("line 1") && error.contains("move it away"),
            "{error}"
        );
    }
}
