//! `s3cmtf batch`

use std::io;
use std::path::{Path, PathBuf};

use crate::batch::{
    BatchObserver, BatchOptions, BatchSummary, JobReader, JobResult, JobStatus, parse_bytes,
    run as run_jobs,
};
use crate::file_arguments::batch_folder;
use clap::Args;
use s3cmtf::solver::Control;
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use crate::fit_observer::{ConsoleObserver, json_number};
use crate::input::{VerifyArguments, stream};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_integer};
use crate::progress::Progress;

/// Run many fits and predictions concurrently, one job per line of a file
///
/// Jobs share threads, cores, memory and opened files. A failed job is recorded, and the others continue. To continue a
/// batch that was killed or interrupted, give the same command again: finished jobs are skipped.
#[derive(Args)]
#[command(
    after_help = "A line is an object; options are those of fit, by the names that fit --config takes:\n  \
    {\"id\":\"a\",\"job\":\"fit\",\"tensor\":\"train.coo\",\"test\":\"test.coo\",\"output\":\"a.s3m\",\"options\":{\"rank\":8,\"threads\":2}}\n  \
    {\"id\":\"p\",\"job\":\"predict\",\"model\":\"a.s3m\",\"file\":\"test.coo\",\"output\":\"p.coo\"}\n\
    The second job waits for the first, whose output it reads. docs/reference/batch.md describes all fields.\n\n\
    Examples:\n  \
    s3cmtf batch jobs.jsonl\n  \
    s3cmtf batch jobs.jsonl --threads 4 --job-threads 2 --memory 16G\n  \
    cat jobs.jsonl | s3cmtf batch - -o results\n\n\
    Exit codes: 0 all jobs are done, 1 the system failed, 2 a job failed or bad usage, 130 interrupted.\n\
    An interrupted job leaves its checkpoint, if it has one, and no output."
)]
pub(crate) struct Arguments {
    /// File of jobs, or - for standard input
    jobs: PathBuf,

    /// Folder for results.jsonl and logs [default: JOBS with extension .batch]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Number of threads of all concurrent jobs; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=4096))]
    threads: u64,

    /// Number of threads of a job without its own setting; 0: all
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=4096))]
    job_threads: u64,

    /// Memory of all concurrent jobs, such as 500M or 16G [default: the available memory]
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,

    #[command(flatten)]
    verify: VerifyArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let piped = a.jobs == Path::new("-");
    let folder = a.output.clone().or_else(|| batch_folder(&a.jobs));
    let folder = folder.ok_or_else(|| {
        Error::argument(
            "jobs from standard input need a folder for their results; name one with -o",
        )
    })?;
    let memory = match a.memory.as_deref().map(|text| (text, parse_bytes(text))) {
        None => 0,
        Some((_, Some(bytes))) if bytes > 0 => bytes,
        Some((text, _)) => {
            return Err(Error::Argument(format!(
                "--memory {text}: expected a number of bytes, optionally with K, M, G or T, such as 16G"
            )));
        }
    };
    let jobs = match stream(&a.jobs, progress) {
        Some(reader) if piped => JobReader::new("standard input", reader),
        Some(reader) => JobReader::new(a.jobs.display().to_string(), reader),
        None => JobReader::open(&a.jobs)?,
    };
    let options = BatchOptions {
        threads: a.threads as usize,
        job_threads: a.job_threads as usize,
        memory,
        verify: a.verify.is_wanted(),
        ..BatchOptions::new(folder)
    };
    let mut observer = ConsoleObserver::new(progress, out);
    let summary = run_jobs(jobs, &options, &mut observer, progress)?;
    report(&summary, &options.folder, out);
    out.flush()?;
    if summary.interrupted {
        return Err(Error::Cancelled);
    }
    if summary.count(JobStatus::Failed) > 0 {
        return Ok(Outcome::InvalidInput);
    }
    let warnings = summary.jobs.iter().map(|job| &job.warning);
    let warnings = warnings.filter(|warning| !warning.is_empty());
    let unwritten = summary.journal_error.iter().chain(warnings).next();
    match unwritten {
        None => Ok(Outcome::Success),
        Some(first) => Err(Error::io(
            "the jobs are done, but not all files beside their outputs",
            io::Error::other(first.clone()),
        )),
    }
}

impl BatchObserver for ConsoleObserver<'_> {
    fn warning(&mut self, text: &str) {
        self.warn(text);
    }

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
        let shown = |text: &String| match text.is_empty() {
            true => String::new(),
            false => format!(": {text}"),
        };
        let message = shown(&job.message) + &shown(&job.warning);
        self.out.line(format!(
            "{}: {}{}{message}",
            job.id,
            job.status.name(),
            format_metrics(job)
        ));
        self.out.object(&job_json(job));
        self.flush()
    }
}

/// Formats the metrics of a finished job: ` (reason, epochs, errors, time)`.
fn format_metrics(job: &JobResult) -> String {
    let mut words = Vec::new();
    if !job.reason.is_empty() {
        words.push(job.reason.clone());
    }
    if job.epochs > 0 {
        words.push(format_count(job.epochs, "epoch", "epochs"));
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
        words.push(format_count(job.predictions, "prediction", "predictions"));
    }
    if job.seconds > 0.0 {
        words.push(format!("{:.1} s", job.seconds));
    }
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}

fn job_json(job: &JobResult) -> Value {
    let path = |p: &Path| p.display().to_string();
    json!({
        "id": job.id,
        "line": job.line,
        "kind": job.kind,
        "status": job.status.name(),
        "reason": job.reason,
        "message": job.message,
        "warning": job.warning,
        "output": path(&job.output),
        "log": job.log.as_deref().map(path),
        "threads": job.threads,
        "cores": job.cores,
        "memory_bytes": job.memory,
        "seconds": job.seconds,
        "epochs": job.epochs,
        "train_rmse": json_number(job.train_rmse),
        "test_rmse": json_number(job.test_rmse),
        "valid_rmse": json_number(job.valid_rmse),
        "predictions": job.predictions,
        "resumed_from": job.resumed_from,
    })
}

/// Prints the table of jobs and the totals.
fn report(summary: &BatchSummary, folder: &Path, out: &mut Output) {
    let format_rmse = |x: f64| {
        if x.is_finite() {
            format!("{x:.4}")
        } else {
            "-".into()
        }
    };
    /// The first columns are text, aligned to the left; the others are numbers, aligned to the right.
    const TEXT_COLUMNS: usize = 4;
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
            format_integer(job.memory >> 20),
            format!("{:.1}", job.seconds),
            job.epochs.to_string(),
            format_rmse(job.train_rmse),
            format_rmse(job.test_rmse),
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
            let cells = cells.map(|(column, (cell, &w))| {
                if column < TEXT_COLUMNS {
                    format!("{cell:<w$}")
                } else {
                    format!("{cell:>w$}")
                }
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
        format_count(summary.jobs.len() as u64, "job", "jobs"),
        counts.join(", "),
        format_count(summary.threads as u64, "thread", "threads"),
        summary.seconds
    ));
    if summary.interrupted {
        out.line(
            "What is done is kept; the same command continues, with checkpoints where jobs have them.",
        );
    }
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
