//! What became of jobs, and the files that remember it from one run of a batch to the next.
//!
//! `results.jsonl` has a line for every job that ended, `started.jsonl` one for every job that began. Both only grow,
//! and a line is on the disk before anything else happens. The last line of either may be half a line if the machine
//! went down in the middle of it: it is taken off when the batch goes on.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::spec::Job;
use crate::error::{Error, Result};
use crate::json::{self, Json, Writer};

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// Its output is written.
    Done,
    /// An earlier run of the batch did it.
    Skipped,
    /// It could not be done; the others went on.
    Failed,
    /// It was cancelled on the way; it is done when the batch goes on.
    Interrupted,
    /// The batch was cancelled before its turn.
    NotStarted,
}

impl JobStatus {
    /// One word for it.
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

/// What became of a job. Figures that were not measured are NaN, or 0.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobResult {
    /// Its name.
    pub id: String,
    /// Its line, counted from 1.
    pub line: u64,
    /// `fit` or `predict`; empty if the line cannot be read.
    pub kind: &'static str,
    /// How it ended.
    pub status: JobStatus,
    /// Why, in one word: why a fit stopped (`epochs`, `patience`, ...), `written` for predictions; of a failure
    /// `bad-input`, `system`, `refused` (it does not fit into the batch), `needs` (a job whose output it needs failed)
    /// or `panic`; `cancelled`.
    pub reason: String,
    /// What is wrong, in words; else empty.
    pub message: String,
    /// Where its output is, or was to be.
    pub output: PathBuf,
    /// Where its log is, if it began.
    pub log: Option<PathBuf>,
    /// The threads it had.
    pub threads: usize,
    /// The CPUs they were on, which no other job had meanwhile; empty if there are more threads than CPUs.
    pub cores: Vec<usize>,
    /// The memory it was thought to take, in bytes.
    pub memory: u64,
    /// How long it took.
    pub seconds: f64,
    /// Epochs that were run.
    pub epochs: u64,
    /// The error on the training entries.
    pub train_rmse: f64,
    /// The error on the test entries.
    pub test_rmse: f64,
    /// The error on the validation entries.
    pub valid_rmse: f64,
    /// How many cells were predicted.
    pub predictions: u64,
    /// The epoch of the checkpoint it went on from; 0 if it began anew.
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

    pub(super) fn of(job: &Job) -> JobResult {
        JobResult {
            kind: job.kind(),
            output: job.output.clone(),
            ..JobResult::new(&job.id, job.line)
        }
    }

    /// One line of JSON, as it is kept; `job` is the line it is of.
    fn to_line(&self, job: &str) -> String {
        let line = Writer::new()
            .text("id", &self.id)
            .whole("line", self.line)
            .text("kind", self.kind)
            .text("status", self.status.name())
            .text("reason", &self.reason)
            .text("message", &self.message)
            .text("output", &self.output.to_string_lossy());
        let line = match &self.log {
            Some(log) => line.text("log", &log.to_string_lossy()),
            None => line,
        };
        let line = line
            .whole("threads", self.threads as u64)
            .list("cores", self.cores.iter().map(|&c| c as u64))
            .whole("memory_bytes", self.memory)
            .real("seconds", self.seconds);
        self.figures(line)
            .whole("resumed_from", self.resumed_from)
            .text("job", job)
            .finish()
    }

    /// What was measured.
    pub(super) fn figures(&self, line: Writer) -> Writer {
        let line = line.whole("epochs", self.epochs);
        let all = [self.train_rmse, self.test_rmse, self.valid_rmse];
        errors(line, all).whole("predictions", self.predictions)
    }

    /// The figures of an earlier run, for a job that need not be run again.
    fn recall(&mut self, kept: &Json) {
        let real = |name: &str| kept.get(name).and_then(Json::number).unwrap_or(f64::NAN);
        let whole = |name: &str| kept.get(name).and_then(Json::number).unwrap_or(0);
        let text = |name: &str| kept.get(name).and_then(Json::text);
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

/// Errors on training, test and validation entries.
pub(super) fn errors(line: Writer, [train, test, valid]: [f64; 3]) -> Writer {
    line.real("train_rmse", train)
        .real("test_rmse", test)
        .real("valid_rmse", valid)
}

/// The folder of a batch.
pub(super) struct Journal {
    /// The file of jobs, if it is one.
    pub jobs: Option<PathBuf>,
    folder: PathBuf,
    results: File,
    started: File,
    /// The last result of each job that was done, by its line.
    done: HashMap<String, Json>,
    /// What was at the place of its checkpoint when a job first began, by its line.
    began: HashMap<String, Option<String>>,
}

impl Journal {
    /// Opens the folder, which is made if need be. It belongs to one batch at a time.
    pub(super) fn open(folder: &Path) -> Result<Journal> {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot make the folder {}", folder.display()), e))?;
        let (results, kept) = open(&folder.join("results.jsonl"), true)?;
        let (started, begun) = open(&folder.join("started.jsonl"), false)?;
        let job_of = |line: &Json| line.get("job").and_then(Json::text).map(String::from);
        let mut done = HashMap::new();
        for line in kept {
            if let Some(job) = job_of(&line) {
                let status = line.get("status").and_then(Json::text);
                match status == Some(JobStatus::Done.name()) {
                    true => done.insert(job, line),
                    false => done.remove(&job),
                };
            }
        }
        let mut began = HashMap::new();
        for line in begun {
            if let Some(job) = job_of(&line) {
                let there = line
                    .get("checkpoint")
                    .and_then(Json::text)
                    .map(String::from);
                began.entry(job).or_insert(there);
            }
        }
        Ok(Journal {
            jobs: None,
            folder: folder.to_path_buf(),
            results,
            started,
            done,
            began,
        })
    }

    /// Where the log of a job goes.
    pub(super) fn log(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.log"))
    }

    /// Whether a file is one of the batch itself.
    pub(super) fn owns(&self, path: &Path) -> bool {
        if self.jobs.as_deref() == Some(path) {
            return true;
        }
        let own = super::spec::resolved(&self.folder.join("results.jsonl"));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == own.parent()
            && (name == "results.jsonl" || name == "started.jsonl" || name.ends_with(".log"))
    }

    /// What an earlier run made of the same line, if it was done.
    pub(super) fn recall(&self, job: &Job) -> Option<JobResult> {
        let kept = self.done.get(&job.text)?;
        let mut result = JobResult::of(job);
        result.recall(kept);
        result.status = JobStatus::Skipped;
        Some(result)
    }

    /// Whether an earlier run began the same line, and what was at the place of its checkpoint then.
    pub(super) fn began(&self, job: &Job) -> Option<&Option<String>> {
        self.began.get(&job.text)
    }

    /// Notes that a job begins; `there` is at the place of its checkpoint.
    pub(super) fn start(&mut self, job: &Job, there: Option<&str>) -> Result<()> {
        let line = Writer::new().text("id", &job.id).whole("line", job.line);
        let line = match there {
            Some(mark) => line.text("checkpoint", mark),
            None => line,
        };
        let line = line.text("job", &job.text).finish();
        append(&mut self.started, &self.folder.join("started.jsonl"), &line)
    }

    /// Notes what became of a job.
    pub(super) fn end(&mut self, result: &JobResult, job: &str) -> Result<()> {
        let line = result.to_line(job);
        append(&mut self.results, &self.folder.join("results.jsonl"), &line)
    }
}

fn append(file: &mut File, path: &Path, line: &str) -> Result<()> {
    let written = file
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| file.sync_data());
    written.map_err(|e| Error::io(format!("cannot write {}", path.display()), e))
}

/// Opens a file of lines to add to, and reads those that are there.
fn open(path: &Path, alone: bool) -> Result<(File, Vec<Json>)> {
    let failed = |e| Error::io(format!("cannot open {}", path.display()), e);
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(failed)?;
    if alone {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let folder = path.parent().unwrap_or(path).display().to_string();
                return Err(Error::file(
                    folder,
                    "another batch is running there; wait for it, or write to another folder",
                ));
            }
            // Where files cannot be locked nobody else is kept out.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let whole = bytes
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    if whole < bytes.len() {
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        bytes.truncate(whole);
    }
    let name = path.display().to_string();
    let mut lines = Vec::new();
    for (number, line) in bytes.split(|&b| b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_string());
        let read = text.and_then(json::parse);
        lines.push(read.map_err(|what| {
            let what = format!("{what}; it was not written by a batch, move it away");
            Error::text(&name, number as u64 + 1, what)
        })?);
    }
    Ok((file, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(text: &str) -> Job {
        Job::parse(1, text).map_err(|bad| bad.error).unwrap()
    }

    #[test]
    fn a_batch_remembers_what_was_done() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("made");
        let a = job(r#"{"id":"a","job":"predict","model":"m","file":"f","output":"é\n"}"#);
        let b = job(r#"{"id":"b","job":"predict","model":"m","file":"f","output":"y"}"#);
        let mut journal = Journal::open(&folder).unwrap();
        assert!(journal.recall(&a).is_none() && journal.began(&a).is_none());
        // Nobody else meanwhile.
        let second = Journal::open(&folder).err().unwrap().to_string();
        assert!(second.contains("another batch"), "{second}");
        let mut result = JobResult::of(&a);
        result.status = JobStatus::Done;
        result.test_rmse = 0.1 + 0.2;
        journal.start(&a, Some("x")).unwrap();
        journal.start(&a, Some("y")).unwrap();
        journal.end(&result, &a.text).unwrap();
        result.status = JobStatus::Failed;
        journal.end(&result, &b.text).unwrap();
        drop(journal);
        // Half a line, of which nobody knows what it was going to be.
        let path = folder.join("results.jsonl");
        let whole = fs::read(&path).unwrap();
        let half = [&whole[..], &whole[..whole.len() / 3]].concat();
        fs::write(&path, half).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        let kept = journal.recall(&a).unwrap();
        assert_eq!(
            (kept.test_rmse, kept.status),
            (0.1 + 0.2, JobStatus::Skipped)
        );
        assert!(kept.train_rmse.is_nan() && journal.recall(&b).is_none());
        assert_eq!(journal.began(&a), Some(&Some("x".into())));
        assert_eq!(fs::read(&path).unwrap(), whole);
        // What failed later is not done.
        journal.end(&result, &a.text).unwrap();
        drop(journal);
        assert!(Journal::open(&folder).unwrap().recall(&a).is_none());
        fs::write(&path, "what?\n{}\n").unwrap();
        let error = Journal::open(&folder).err().unwrap().to_string();
        assert!(
            error.contains("line 1") && error.contains("move it away"),
            "{error}"
        );
    }
}
