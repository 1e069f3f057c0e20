//! Many jobs side by side.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::io::Cursor;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::arg::{
    Sized64, c_text, given, hand_over, path, struct_out, text, threads as checked_threads,
};
use super::cancel::CancelHandle;
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::host::{Call, Flag, ran};
use super::status::Outcome;
use super::tables::one_of;
use crate::batch::{BatchObserver, BatchOptions, JobReader, JobResult, JobStatus, run};
use crate::error::Error;
use crate::solver::Control;

/// A job is done: its output is written.
pub const S3CMTF_JOB_DONE: i32 = 1;
/// An earlier run of the batch did it.
pub const S3CMTF_JOB_SKIPPED: i32 = 2;
/// It could not be done; the others went on.
pub const S3CMTF_JOB_FAILED: i32 = 3;
/// It was cancelled on the way.
pub const S3CMTF_JOB_INTERRUPTED: i32 = 4;
/// The batch was cancelled before its turn.
pub const S3CMTF_JOB_NOT_STARTED: i32 = 5;

/// A job is a fit.
pub const S3CMTF_JOB_FIT: i32 = 1;
/// A job is a prediction. The number is 0 for a line that cannot be read.
pub const S3CMTF_JOB_PREDICT: i32 = 2;

/// What became of a job. It grows at its end in later versions, which is what `size` is for: set it to sizeof before
/// handing the struct to a function, and a field beyond it is never touched; in a callback, use only fields within it.
/// Texts live until the callback returns, or until the batch runs again or is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct JobFigures {
    /// The bytes of this struct that mean something.
    pub size: u64,
    /// The line of the job, counted from 1.
    pub line: u64,
    /// S3CMTF_JOB_DONE and so on.
    pub status: i32,
    /// S3CMTF_JOB_FIT or S3CMTF_JOB_PREDICT.
    pub kind: i32,
    /// The threads it had.
    pub threads: u64,
    /// The bytes it was thought to take.
    pub memory: u64,
    /// The epochs of a fit.
    pub epochs: u64,
    /// The epoch of the checkpoint it went on from; 0 if it began anew.
    pub resumed_from: u64,
    /// How many cells were predicted.
    pub predictions: u64,
    /// How long it took.
    pub seconds: f64,
    /// The error on the training entries; NaN if there is none.
    pub train_rmse: f64,
    /// The error on the test entries; NaN if there is none.
    pub test_rmse: f64,
    /// The error on the validation entries; NaN if there is none.
    pub valid_rmse: f64,
    /// Its name.
    pub id: *const c_char,
    /// Why it ended, in one word: why a fit stopped ("epochs", "patience", ...), "written" for predictions; of a
    /// failure "bad-input", "system", "refused" (it does not fit into the batch), "needs" (a job whose output it needs
    /// failed) or "panic"; "cancelled".
    pub reason: *const c_char,
    /// What is wrong; else empty.
    pub message: *const c_char,
    /// The file it writes.
    pub output: *const c_char,
    /// Its log; empty if it did not begin.
    pub log: *const c_char,
}

// SAFETY: laid out as C does, the size first.
unsafe impl Sized64 for JobFigures {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(JobFigures, line) == 8);
    assert!(offset_of!(JobFigures, status) == 16);
    assert!(offset_of!(JobFigures, threads) == 24);
    assert!(offset_of!(JobFigures, seconds) == 64);
    assert!(offset_of!(JobFigures, id) == 96);
    assert!(offset_of!(JobFigures, log) == 128);
    assert!(size_of::<JobFigures>() == 136);
};

/// Called on the thread that called s3cmtf_batch_run(), whenever a job has ended. Returning anything but 0 cancels the
/// batch. It must not throw, longjmp out, or use the batch it is called from; other calls of the library are fine.
/// `job` lives until it returns, `user` is what it was set with.
pub type JobCallback =
    Option<unsafe extern "C" fn(job: *const JobFigures, user: *mut c_void) -> i32>;

/// Many fits and predictions side by side, within a number of threads and an amount of memory; each job has CPUs of
/// its own, and files are opened once for all. A job is a line of JSON:
///
///   {"id":"a","job":"fit","tensor":"train.coo","output":"a.s3m","options":{"rank":8,"threads":2}}
///   {"id":"p","job":"predict","model":"a.s3m","file":"test.coo","output":"p.coo"}
///
/// with the options of s3cmtf_options_set(); the second waits for the first, whose output it reads. Modes count from 1
/// there. docs/batch.md has all that a line may say. What became of jobs is written to a folder as they end; a batch
/// that is run again, perhaps after a crash, passes over jobs that were done.
pub struct BatchHandle {
    options: BatchOptions,
    lines: Vec<u8>,
    cancel: Option<Arc<AtomicBool>>,
    callback: Option<Call<JobFigures>>,
    found: Option<Vec<(JobResult, Words)>>,
}

/// Makes a batch without jobs, to be freed with s3cmtf_batch_free(). Results and logs go to `folder`, which is made
/// if need be.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_batch_new(
    folder: *const c_char,
    batch: Option<&mut MaybeUninit<*mut BatchHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        // SAFETY: a text of the caller, for this call.
        let folder = unsafe { path(folder, "folder") }?;
        let out = given(batch, "batch")?;
        hand_over(
            out,
            BatchHandle {
                options: BatchOptions::new(folder),
                lines: Vec::new(),
                cancel: None,
                callback: None,
                found: None,
            },
        );
        Ok(())
    })
}

/// Adds jobs, one in each line of a text. A line that is no job is found when the batch runs, and fails alone. Empty
/// lines and those that begin with # count as lines but are passed over.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_batch_add(
    batch: Option<&mut BatchHandle>,
    lines: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let batch = given(batch, "batch")?;
        // SAFETY: a text of the caller, for this call.
        batch.add(unsafe { text(lines, "lines") }?.as_bytes());
        Ok(())
    })
}

/// Adds jobs, one in each line of a file, which is read now.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_batch_add_file(
    batch: Option<&mut BatchHandle>,
    file: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let batch = given(batch, "batch")?;
        // SAFETY: a text of the caller, for this call.
        let file: PathBuf = unsafe { path(file, "file") }?;
        let lines = std::fs::read(&file).map_err(|e| Error::cannot_open(&file, e))?;
        // Lines may be there already, and a mark of Unicode is one only at the beginning of a file.
        batch.add(lines.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&lines));
        Ok(())
    })
}

/// Sets the threads of all jobs that run at a time; 0, as at first, takes all that the process may use.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_set_threads(
    batch: Option<&mut BatchHandle>,
    threads: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        given(batch, "batch")?.options.threads = checked_threads(threads)?;
        Ok(())
    })
}

/// Sets the threads of a job that does not say (1 at first); 0 takes all of the batch.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_set_job_threads(
    batch: Option<&mut BatchHandle>,
    threads: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        given(batch, "batch")?.options.job_threads = checked_threads(threads)?;
        Ok(())
    })
}

/// Sets the bytes of all jobs that run at a time; 0, as at first, takes what the system has left. What a job takes is
/// estimated before it begins; one that takes more than all of it is refused.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_set_memory(
    batch: Option<&mut BatchHandle>,
    bytes: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        given(batch, "batch")?.options.memory = bytes;
        Ok(())
    })
}

/// Sets a token that cancels the batch from any thread: jobs that run are interrupted, others do not begin. NULL for
/// none. The token may be freed before the batch.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_set_cancel(
    batch: Option<&mut BatchHandle>,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        given(batch, "batch")?.cancel = cancel.map(|c| c.flag.clone());
        Ok(())
    })
}

/// Sets what s3cmtf_batch_run() calls as jobs end. NULL for nothing. `user` is handed to the callback as it is.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_set_callback(
    batch: Option<&mut BatchHandle>,
    callback: JobCallback,
    user: *mut c_void,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        given(batch, "batch")?.callback = Call::new(callback, user);
        Ok(())
    })
}

/// Runs the jobs; the calling thread waits for them. `undone` gets the number of jobs that failed, were interrupted or
/// did not begin, and may be NULL. The call itself fails only if the batch could not go on: its folder cannot be
/// written, or belongs to another batch that is running. A batch may be run again, with more jobs or without: what
/// was done is passed over.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_run(
    batch: Option<&mut BatchHandle>,
    undone: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let batch = given(batch, "batch")?;
        let jobs = JobReader::new("the jobs", Cursor::new(batch.lines.clone()));
        let monitor = Flag(batch.cancel.as_ref());
        let summary = run(jobs, &batch.options, &mut Watch(batch.callback), &monitor)?;
        let over = |j: &&JobResult| matches!(j.status, JobStatus::Done | JobStatus::Skipped);
        let done = summary.jobs.iter().filter(over).count();
        let count = (summary.jobs.len() - done) as u64;
        let jobs = summary.jobs.into_iter();
        batch.found = Some(
            jobs.map(|job| {
                let words = Words::of(&job);
                (job, words)
            })
            .collect(),
        );
        undone.map(|out| out.write(count));
        Ok(())
    })
}

/// Writes the number of jobs of a batch that has run.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_get_count(
    batch: Option<&BatchHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (batch, out) = (given(batch, "batch")?, given(count, "count")?);
        out.write(batch.found()?.len() as u64);
        Ok(())
    })
}

/// Writes what became of a job: set `job->size` before. `index` counts from 0, in the order of the lines.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_batch_get_job(
    batch: Option<&BatchHandle>,
    index: u64,
    job: *mut JobFigures,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let found = given(batch, "batch")?.found()?;
        let (result, words) = one_of(found, index)?;
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&JobFigures::new(result, words), job, "job") }
    })
}

/// Frees a batch. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_batch_free(batch: Option<Box<BatchHandle>>) {
    release(|| drop(batch));
}

impl BatchHandle {
    fn add(&mut self, lines: &[u8]) {
        self.lines.extend_from_slice(lines);
        if self.lines.last().is_some_and(|&b| b != b'\n') {
            self.lines.push(b'\n');
        }
    }

    fn found(&self) -> Outcome<&[(JobResult, Words)]> {
        ran(self.found.as_ref(), "the batch")
    }
}

/// The texts of a job, for C.
struct Words {
    id: CString,
    reason: CString,
    message: CString,
    output: CString,
    log: CString,
}

impl Words {
    fn of(job: &JobResult) -> Words {
        let log = job.log.as_ref().map(|p| p.to_string_lossy().into_owned());
        Words {
            id: c_text(&job.id),
            reason: c_text(&job.reason),
            message: c_text(&job.message),
            output: c_text(&job.output.to_string_lossy()),
            log: c_text(&log.unwrap_or_default()),
        }
    }
}

impl JobFigures {
    fn new(job: &JobResult, words: &Words) -> JobFigures {
        JobFigures {
            size: size_of::<JobFigures>() as u64,
            line: job.line,
            status: match job.status {
                JobStatus::Done => S3CMTF_JOB_DONE,
                JobStatus::Skipped => S3CMTF_JOB_SKIPPED,
                JobStatus::Failed => S3CMTF_JOB_FAILED,
                JobStatus::Interrupted => S3CMTF_JOB_INTERRUPTED,
                JobStatus::NotStarted => S3CMTF_JOB_NOT_STARTED,
            },
            kind: match job.kind {
                "fit" => S3CMTF_JOB_FIT,
                "predict" => S3CMTF_JOB_PREDICT,
                _ => 0,
            },
            threads: job.threads as u64,
            memory: job.memory,
            epochs: job.epochs,
            resumed_from: job.resumed_from,
            predictions: job.predictions,
            seconds: job.seconds,
            train_rmse: job.train_rmse,
            test_rmse: job.test_rmse,
            valid_rmse: job.valid_rmse,
            id: words.id.as_ptr(),
            reason: words.reason.as_ptr(),
            message: words.message.as_ptr(),
            output: words.output.as_ptr(),
            log: words.log.as_ptr(),
        }
    }
}

/// Calls the host.
struct Watch(Option<Call<JobFigures>>);

impl BatchObserver for Watch {
    fn ended(&mut self, job: &JobResult) -> Control {
        let Some(call) = self.0 else {
            return Control::Continue;
        };
        let words = Words::of(job);
        let figures = JobFigures::new(job, &words);
        call.call(&figures)
    }
}
