//! `s3cmtf batch`

use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::batch::{
    BatchObserver, BatchOptions, BatchSummary, JobResult, JobStatus, Jobs, parse_bytes,
    run as run_jobs,
};
use s3cmtf::solver::Control;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::Verdict;
use super::fit::{Watcher, finite};
use super::input::waiting;
use super::output::{Output, counted, grouped};
use super::progress::Progress;

/// Run many fits and predictions side by side, one in each line of a file
///
/// Jobs share threads, cores and memory, and files are opened once for all. A job that fails is noted, and the others go
/// on. What was done is passed over when the same command is given again: that is how a batch that was killed or
/// interrupted goes on.
#[derive(Args)]
#[command(
    after_help = "A line is an object; options are those of fit, by the names that fit --config takes:\n  \
    {\"id\":\"a\",\"job\":\"fit\",\"tensor\":\"train.coo\",\"test\":\"test.coo\",\"output\":\"a.s3m\",\"options\":{\"rank\":8,\"threads\":2}}\n  \
    {\"id\":\"p\",\"job\":\"predict\",\"model\":\"a.s3m\",\"file\":\"test.coo\",\"output\":\"p.coo\"}\n\
    The second waits for the first, which writes what it reads. docs/batch.md has all that a line may say.\n\n\
    Examples:\n  \
    s3cmtf batch jobs.jsonl\n  \
    s3cmtf batch jobs.jsonl --threads 16 --job-threads 4 --memory 32G\n  \
    make-jobs | s3cmtf batch - -o results\n\n\
    Exit codes: 0 all jobs are done, 1 the batch could not go on, 2 a job failed or bad usage, 130 interrupted."
)]
pub(super) struct Arguments {
    /// The jobs, or - for standard input, whose jobs begin as they come
    jobs: PathBuf,

    /// The folder for results.jsonl and a log for each job [default: the name of the jobs with .batch]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Threads of all jobs that run at a time; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=4096))]
    threads: u64,

    /// Threads of a job that does not say; 0 takes all of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=4096))]
    job_threads: u64,

    /// Memory of all jobs that run at a time, such as 500M or 16G [default: what the system has left]
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let piped = a.jobs == Path::new("-");
    let folder = match &a.output {
        Some(folder) => folder.clone(),
        None if piped => {
            return Err(Error::Argument(
                "jobs from standard input have no name to call the results by; name a folder with -o".into(),
            ));
        }
        None => a.jobs.with_extension("batch"),
    };
    let memory = match a.memory.as_deref().map(|text| (text, parse_bytes(text))) {
        None => 0,
        Some((_, Some(bytes))) if bytes > 0 => bytes,
        Some((text, _)) => {
            return Err(Error::Argument(format!(
                "--memory {text}: it must be a number of bytes, or of K, M, G or T of them, such as 16G"
            )));
        }
    };
    let jobs = match waiting(&a.jobs, progress) {
        Some(reader) if piped => Jobs::read("standard input", reader),
        Some(reader) => Jobs::read(a.jobs.display().to_string(), reader),
        None => Jobs::open(&a.jobs)?,
    };
    let how = BatchOptions {
        threads: a.threads as usize,
        job_threads: a.job_threads as usize,
        memory,
        ..BatchOptions::new(folder)
    };
    let mut watcher = Watcher {
        progress,
        out,
        failed: None,
    };
    let summary = run_jobs(jobs, &how, &mut watcher, progress)?;
    if let Some(e) = watcher.failed.take() {
        return Err(e);
    }
    report(&summary, &how.folder, out);
    if summary.interrupted {
        out.flush()?;
        return Err(Error::Cancelled);
    }
    Ok(match summary.count(JobStatus::Failed) {
        0 => Verdict::Good,
        _ => Verdict::Bad,
    })
}

impl BatchObserver for Watcher<'_> {
    fn started(&mut self, job: &JobResult) {
        self.out.object(&json!({
            "started": job.id,
            "line": job.line,
            "threads": job.threads,
            "cores": job.cores,
            "memory_bytes": job.memory,
        }));
        self.flush();
    }

    fn ended(&mut self, job: &JobResult) -> Control {
        let why = match job.message.is_empty() {
            true => String::new(),
            false => format!(": {}", job.message),
        };
        self.out.line(format!(
            "{}: {}{}{why}",
            job.id,
            job.status.name(),
            figures(job)
        ));
        self.out.object(&object(job));
        self.flush()
    }
}

/// What a job gave, in a few words.
fn figures(job: &JobResult) -> String {
    let mut words = Vec::new();
    if !job.reason.is_empty() {
        words.push(job.reason.clone());
    }
    if job.epochs > 0 {
        words.push(counted(job.epochs, "epoch", "epochs"));
    }
    for (name, error) in [
        ("train", job.train_rmse),
        ("valid", job.valid_rmse),
        ("test", job.test_rmse),
    ] {
        if error.is_finite() {
            words.push(format!("{name} {error:.4}"));
        }
    }
    if job.predictions > 0 {
        words.push(counted(job.predictions, "prediction", "predictions"));
    }
    if job.seconds > 0.0 {
        words.push(format!("{:.1} s", job.seconds));
    }
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}

fn object(job: &JobResult) -> Value {
    let path = |p: &Path| p.display().to_string();
    json!({
        "id": job.id,
        "line": job.line,
        "kind": job.kind,
        "status": job.status.name(),
        "reason": job.reason,
        "message": job.message,
        "output": path(&job.output),
        "log": job.log.as_deref().map(path),
        "threads": job.threads,
        "cores": job.cores,
        "memory_bytes": job.memory,
        "seconds": job.seconds,
        "epochs": job.epochs,
        "train_rmse": finite(job.train_rmse),
        "test_rmse": finite(job.test_rmse),
        "valid_rmse": finite(job.valid_rmse),
        "predictions": job.predictions,
        "resumed_from": job.resumed_from,
    })
}

fn report(summary: &BatchSummary, folder: &Path, out: &mut Output) {
    let error = |x: f64| match x.is_finite() {
        true => format!("{x:.4}"),
        false => "-".into(),
    };
    let head = [
        "job", "kind", "status", "reason", "threads", "MiB", "s", "epochs", "train", "test",
    ];
    let mut rows = vec![head.map(String::from)];
    for job in &summary.jobs {
        rows.push([
            job.id.clone(),
            job.kind.into(),
            job.status.name().into(),
            job.reason.clone(),
            job.threads.to_string(),
            grouped(job.memory >> 20),
            format!("{:.1}", job.seconds),
            job.epochs.to_string(),
            error(job.train_rmse),
            error(job.test_rmse),
        ]);
    }
    out.line("");
    if !summary.jobs.is_empty() {
        let width = |column: usize| {
            rows.iter()
                .map(|r| r[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate();
            // Words to the left, numbers to the right.
            let cells = cells.map(|(column, (cell, &w))| match column < 4 {
                true => format!("{cell:<w$}"),
                false => format!("{cell:>w$}"),
            });
            out.line(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
    let statuses = [
        JobStatus::Done,
        JobStatus::Skipped,
        JobStatus::Failed,
        JobStatus::Interrupted,
        JobStatus::NotStarted,
    ];
    let counts: Vec<String> = statuses
        .iter()
        .map(|&s| (s, summary.count(s)))
        .filter(|(s, n)| *n > 0 || *s == JobStatus::Done)
        .map(|(s, n)| format!("{n} {}", s.name()))
        .collect();
    out.line(format!(
        "{}: {}: {}; {}, {:.1} s",
        folder.display(),
        counted(summary.jobs.len() as u64, "job", "jobs"),
        counts.join(", "),
        counted(summary.threads as u64, "thread", "threads"),
        summary.seconds
    ));
    out.object(&json!({"summary": {
        "jobs": summary.jobs.len(),
        "done": summary.count(JobStatus::Done),
        "skipped": summary.count(JobStatus::Skipped),
        "failed": summary.count(JobStatus::Failed),
        "interrupted": summary.count(JobStatus::Interrupted),
        "not_started": summary.count(JobStatus::NotStarted),
        "threads": summary.threads,
        "memory_bytes": (summary.memory < u64::MAX).then_some(summary.memory),
        "seconds": summary.seconds,
        "folder": folder.display().to_string(),
    }}));
}
