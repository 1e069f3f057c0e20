//! The calling thread of a batch.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use super::estimate;
use super::files::{Identity, Opened};
use super::lines::{Jobs, Line};
use super::plan::{Files, Room, Share, Waits};
use super::results::{JobResult, JobStatus, Journal};
use super::spec::{Job, NoJob, Work, name_of_line, resolved};
use super::work::{self, Common, Prepared};
use super::{BatchObserver, BatchOptions, BatchSummary};
use crate::error::{Error, ErrorKind, Result, panic_message};
use crate::parallel::{
    available_threads, cpus_for_concurrent_jobs, restrict_to_cpus, spawn, spawn_scoped,
};
use crate::progress::Monitor;
use crate::simd::Level;
use crate::solver::Control;

/// How often the calling thread looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs jobs side by side until all have ended and there are no more. A job that fails is noted and the others go on;
/// an error is returned only if the batch itself cannot go on: its folder cannot be written, or the lines not be read
/// (then what was read is run first). Cancelling, by `monitor` or by the observer, ends the jobs that run; the batch
/// goes on from there when it is run again with the same folder: jobs that were done are passed over, those that were
/// not begin anew, or where their checkpoint is.
pub fn run(
    jobs: Jobs,
    how: &BatchOptions,
    observer: &mut dyn BatchObserver,
    monitor: &dyn Monitor,
) -> Result<BatchSummary> {
    let started = Instant::now();
    let threads = match how.threads {
        0 => available_threads(),
        n => n,
    };
    let memory = match how.memory {
        0 => estimate::available().unwrap_or(u64::MAX),
        n => n,
    };
    let mut journal = Journal::open(&how.folder)?;
    journal.jobs = jobs.file.as_deref().map(resolved);
    // On this thread, before there are others.
    Level::forced();
    let common = Common {
        opened: Opened::default(),
        stop: AtomicBool::new(false),
    };
    let (send, receive) = channel();
    let lines = send.clone();
    let reader = spawn(move || jobs.each(|line| lines.send(Message::Line(line)).is_ok()))?;
    let room = Room::new(threads, memory, cpus_for_concurrent_jobs(threads));
    let shared = Shared {
        common: &common,
        send,
        threads,
        memory,
        job_threads: how.job_threads,
    };
    let mut batch = Batch::new(journal, room);
    let outcome = std::thread::scope(|scope| {
        // However this ends, jobs do not go on without it.
        let _stop = StopAtEnd(&common.stop);
        batch.run(scope, &shared, &receive, observer, monitor)
    });
    drop(receive);
    if batch.all_read {
        let _ = reader.join();
    }
    outcome?;
    // Who cancels may end the reader in whatever way.
    let unreadable = batch.unreadable.take().filter(|_| !batch.interrupted);
    unreadable.map_or(Ok(()), Err)?;
    for &index in &batch.waiting {
        batch.tasks[index].result.reason = "cancelled".into();
    }
    Ok(BatchSummary {
        jobs: batch.tasks.into_iter().map(|t| t.result).collect(),
        interrupted: batch.interrupted,
        threads,
        memory,
        seconds: started.elapsed().as_secs_f64(),
    })
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the calling thread waits for.
enum Message {
    Line(Line),
    /// A job, and what became of it.
    Ended(usize, Box<JobResult>),
}

/// What does not change while a batch runs.
struct Shared<'a> {
    common: &'a Common,
    send: Sender<Message>,
    threads: usize,
    memory: u64,
    job_threads: usize,
}

/// A job among others.
struct Task {
    job: Option<Job>,
    /// The files it reads.
    reads: Vec<PathBuf>,
    waits: Waits,
    prepared: Option<Prepared>,
    share: Share,
    /// Whether nothing more happens to it.
    over: bool,
    result: JobResult,
}

impl Task {
    fn new(result: JobResult) -> Task {
        Task {
            job: None,
            reads: Vec::new(),
            waits: Waits::default(),
            prepared: None,
            share: Share::default(),
            over: false,
            result,
        }
    }
}

/// A batch as it runs.
struct Batch {
    tasks: Vec<Task>,
    /// Those that have not begun, in their order, and how many run.
    waiting: Vec<usize>,
    running: usize,
    ids: HashMap<String, u64>,
    files: Files,
    /// How many jobs that are not over read a file.
    readers: HashMap<PathBuf, usize>,
    room: Room,
    journal: Journal,
    all_read: bool,
    unreadable: Option<Error>,
    interrupted: bool,
}

impl Batch {
    fn new(journal: Journal, room: Room) -> Batch {
        Batch {
            tasks: Vec::new(),
            waiting: Vec::new(),
            running: 0,
            ids: HashMap::new(),
            files: Files::default(),
            readers: HashMap::new(),
            room,
            journal,
            all_read: false,
            unreadable: None,
            interrupted: false,
        }
    }

    fn run<'scope, 'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env Shared<'env>,
        receive: &Receiver<Message>,
        observer: &mut dyn BatchObserver,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        loop {
            if !self.interrupted {
                self.begin(scope, shared, observer)?;
            }
            let over = self.all_read && self.waiting.is_empty();
            if self.running == 0 && (over || self.interrupted) {
                return Ok(());
            }
            match receive.recv_timeout(LOOK) {
                Ok(Message::Line(line)) => self.add(line, observer)?,
                Ok(Message::Ended(index, result)) => self.end(index, *result, shared, observer)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if monitor.cancelled() {
                self.interrupted = true;
            }
            if self.interrupted {
                shared.common.stop.store(true, Ordering::Relaxed);
            }
            let done = self.tasks.len() - self.waiting.len() - self.running;
            monitor.progress("jobs", done as u64, self.tasks.len() as u64);
        }
    }

    /// Takes a line.
    fn add(&mut self, line: Line, observer: &mut dyn BatchObserver) -> Result<()> {
        let (number, text, parsed) = match line {
            Line::End(failed) => {
                (self.all_read, self.unreadable) = (true, failed);
                return Ok(());
            }
            Line::Bad(number, what) => (number, String::new(), Err(NoJob::new(number, what))),
            Line::Job(number, text) => {
                let parsed = Job::parse(number, &text);
                (number, text, parsed)
            }
        };
        let index = self.tasks.len();
        let called = match &parsed {
            Ok(job) => job.id.clone(),
            Err(bad) => bad.id.clone(),
        };
        let twice = self.ids.get(&called).copied();
        // What became of a job is known by its name, and must not be what became of another.
        let id = match twice {
            Some(_) => name_of_line(number),
            None => called.clone(),
        };
        self.ids.entry(id.clone()).or_insert(number);
        let mut task = Task::new(JobResult::new(&id, number));
        let known = match (parsed, twice) {
            (Err(bad), _) => {
                task.result.output = bad.output.unwrap_or_default();
                Err(bad.error)
            }
            (Ok(job), Some(other)) => {
                task.result = JobResult {
                    id,
                    ..JobResult::of(&job)
                };
                Err(Error::argument(format!(
                    "line {number}: line {other} is called {called:?} too; give each job a name of its own"
                )))
            }
            (Ok(job), None) => {
                task.result = JobResult::of(&job);
                self.relate(index, job, &mut task)
            }
        };
        let known = match known {
            Ok(known) => known,
            Err(error) => {
                fail(&mut task.result, &error);
                if !task.result.output.as_os_str().is_empty() {
                    // Whoever reads it is not to find what was there before.
                    self.files.not_written(index, resolved(&task.result.output));
                }
                task.over = true;
                self.tasks.push(task);
                return self.note(index, &text, observer);
            }
        };
        if let Some(result) = known {
            (task.result, task.over) = (result, true);
            self.tasks.push(task);
            self.tell(index, observer);
            return Ok(());
        }
        for file in &task.reads {
            *self.readers.entry(file.clone()).or_default() += 1;
        }
        self.tasks.push(task);
        self.waiting.push(index);
        Ok(())
    }

    /// Finds out what a job waits for, and what became of it before if it need not be run again.
    fn relate(&mut self, index: usize, job: Job, task: &mut Task) -> Result<Option<JobResult>> {
        let all = |paths: Vec<&Path>| -> Vec<PathBuf> { paths.into_iter().map(resolved).collect() };
        let (reads, writes) = (all(job.reads()), all(job.writes()));
        let refused = |file: &Path, why: String| {
            Error::argument(format!("line {}: {} {why}", job.line, file.display()))
        };
        if let Some(own) = writes.iter().find(|file| self.journal.owns(file)) {
            let why = "is a file of the batch itself; write to another file";
            return Err(refused(own, why.into()));
        }
        let added = self.files.add(index, &reads, &writes);
        task.waits = added.map_err(|(other, file)| {
            let other = &self.tasks[other].result;
            let why = format!(
                "is written by job {:?} (line {}) too; write to another file",
                other.id, other.line
            );
            refused(&file, why)
        })?;
        let known = self.journal.recall(&job).filter(|_| job.output.exists());
        // What it was made from may be made anew.
        let stays = |&other: &usize| self.tasks[other].result.status == JobStatus::Skipped;
        let known = known.filter(|_| task.waits.needs.iter().all(stays));
        (task.reads, task.job) = (reads, Some(job));
        Ok(known)
    }

    /// Begins what can begin.
    fn begin<'scope, 'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env Shared<'env>,
        observer: &mut dyn BatchObserver,
    ) -> Result<()> {
        let mut at = 0;
        while at < self.waiting.len() && !self.interrupted {
            let index = self.waiting[at];
            let ready = match self.ready(index) {
                Ok(true) => self.prepare(index, shared),
                Ok(false) => {
                    at += 1;
                    continue;
                }
                Err(failed) => Err(failed),
            };
            if let Err(failed) = ready {
                self.waiting.remove(at);
                failed.note(&mut self.tasks[index].result);
                self.note_job(index, observer)?;
                continue;
            }
            let task = &mut self.tasks[index];
            let (threads, memory) = (task.result.threads, task.result.memory);
            // Nobody overtakes it, or it might wait for ever.
            let Some(share) = self.room.take(threads, memory) else {
                return Ok(());
            };
            self.waiting.remove(at);
            self.start(index, share, scope, shared, observer)?;
        }
        Ok(())
    }

    /// Whether all that a job waits for is over.
    fn ready(&self, index: usize) -> std::result::Result<bool, Failed> {
        let waits = &self.tasks[index].waits;
        let status = |other: &usize| {
            let task = &self.tasks[*other];
            task.over.then_some(&task.result)
        };
        for other in &waits.needs {
            match status(other) {
                Some(r) if r.status == JobStatus::Failed => {
                    return Err(Failed {
                        reason: "needs",
                        message: format!(
                            "it needs {}, which job {:?} (line {}) did not write",
                            r.output.display(),
                            r.id,
                            r.line
                        ),
                    });
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
        Ok(waits.after.iter().all(|other| status(other).is_some()))
    }

    /// Decides how a job is run, once.
    fn prepare(&mut self, index: usize, shared: &Shared<'_>) -> std::result::Result<(), Failed> {
        let task = &self.tasks[index];
        let (Some(job), None) = (&task.job, &task.prepared) else {
            return Ok(());
        };
        let resume = self.resume(job);
        let options = job.options(resume.as_deref(), shared.job_threads, shared.threads)?;
        options.validate()?;
        if options.threads > shared.threads as u64 {
            return Err(Failed {
                reason: "refused",
                message: format!(
                    "it asks for {} threads, and the batch has {}; give it fewer, or the batch more (--threads)",
                    options.threads, shared.threads
                ),
            });
        }
        let memory = match job.memory {
            Some(memory) => memory,
            None => estimate::bytes(job, &options)?,
        };
        if memory > shared.memory {
            return Err(Failed {
                reason: "refused",
                message: format!(
                    "it takes about {} MiB, and the batch has {} MiB; give the batch more (--memory), or say in the \
                     line what it takes (\"memory\") if that is less",
                    memory >> 20,
                    shared.memory >> 20
                ),
            });
        }
        let task = &mut self.tasks[index];
        task.result.threads = options.threads as usize;
        task.result.memory = memory;
        task.prepared = Some(Prepared { options, resume });
        Ok(())
    }

    /// The checkpoint to go on from: the one that an earlier run of the same line left, or the one the line names.
    fn resume(&self, job: &Job) -> Option<PathBuf> {
        let now = job.checkpoint().and_then(Identity::of).map(|i| i.mark());
        let own = match (self.journal.began(job), now) {
            (Some(before), Some(now)) => before.as_ref() != Some(&now),
            _ => false,
        };
        match &job.work {
            Work::Fit(_) if own => job.checkpoint().map(Path::to_path_buf),
            Work::Fit(fit) => fit.resume.clone(),
            Work::Predict(_) => None,
        }
    }

    fn start<'scope, 'env>(
        &mut self,
        index: usize,
        share: Share,
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env Shared<'env>,
        observer: &mut dyn BatchObserver,
    ) -> Result<()> {
        let log = self.tasks[index]
            .job
            .as_ref()
            .map(|job| self.journal.log(&job.id));
        let task = &mut self.tasks[index];
        let (Some(job), Some(mut prepared)) = (task.job.clone(), task.prepared.take()) else {
            return Ok(());
        };
        task.result.cores = share.cores.clone();
        task.result.log = log;
        if share.cores.is_empty() {
            // Cores are not shared out: threads of two jobs might get the same one.
            prepared.options.pin = false;
        }
        task.share = share;
        let there = job.checkpoint().and_then(Identity::of).map(|i| i.mark());
        self.journal.start(&job, there.as_deref())?;
        let mut result = task.result.clone();
        observer.started(&result);
        let send = shared.send.clone();
        let common = shared.common;
        let live = move || {
            restrict_to_cpus(&result.cores);
            let began = Instant::now();
            let done = caught(|| work::run(&job, &prepared, common, &mut result));
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => fail(&mut result, &error),
                Err(panic) => panic.note(&mut result),
            }
            result.seconds = began.elapsed().as_secs_f64();
            // Nobody listens only if the calling thread panicked.
            let _ = send.send(Message::Ended(index, Box::new(result)));
        };
        match spawn_scoped(scope, live) {
            Ok(_) => self.running += 1,
            Err(error) => {
                fail(&mut self.tasks[index].result, &error);
                self.room.give(std::mem::take(&mut self.tasks[index].share));
                self.note_job(index, observer)?;
            }
        }
        Ok(())
    }

    /// Takes what became of a job.
    fn end(
        &mut self,
        index: usize,
        result: JobResult,
        shared: &Shared<'_>,
        observer: &mut dyn BatchObserver,
    ) -> Result<()> {
        self.running -= 1;
        self.tasks[index].result = result;
        self.room.give(std::mem::take(&mut self.tasks[index].share));
        self.note_job(index, observer)?;
        let readers = &self.readers;
        shared.common.opened.keep(|path| readers.contains_key(path));
        Ok(())
    }

    /// Notes that nothing more happens to a job that waited or ran.
    fn note_job(&mut self, index: usize, observer: &mut dyn BatchObserver) -> Result<()> {
        let task = &mut self.tasks[index];
        task.over = true;
        for file in std::mem::take(&mut task.reads) {
            if let Some(count) = self.readers.get_mut(&file) {
                *count -= 1;
                if *count == 0 {
                    self.readers.remove(&file);
                }
            }
        }
        let text = task.job.as_ref().map_or(String::new(), |j| j.text.clone());
        self.note(index, &text, observer)
    }

    /// Writes down what became of a job, and tells.
    fn note(&mut self, index: usize, text: &str, observer: &mut dyn BatchObserver) -> Result<()> {
        self.journal.end(&self.tasks[index].result, text)?;
        self.tell(index, observer);
        Ok(())
    }

    fn tell(&mut self, index: usize, observer: &mut dyn BatchObserver) {
        if observer.ended(&self.tasks[index].result) == Control::Stop {
            self.interrupted = true;
        }
    }
}

/// Why a job was not done.
struct Failed {
    reason: &'static str,
    message: String,
}

impl Failed {
    fn note(self, result: &mut JobResult) {
        result.status = JobStatus::Failed;
        result.reason = self.reason.into();
        result.message = self.message;
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed {
            reason: match error.kind() {
                ErrorKind::BadInput => "bad-input",
                ErrorKind::System => "system",
                ErrorKind::Cancelled => "cancelled",
            },
            message: error.to_string(),
        }
    }
}

fn fail(result: &mut JobResult, error: &Error) {
    result.message = error.to_string();
    (result.status, result.reason) = match error.kind() {
        ErrorKind::BadInput => (JobStatus::Failed, "bad-input".into()),
        ErrorKind::System => (JobStatus::Failed, "system".into()),
        ErrorKind::Cancelled => (JobStatus::Interrupted, "cancelled".into()),
    };
}

/// Runs a job; a panic is a failure of that job alone.
fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, Failed> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| Failed {
        reason: "panic",
        message: format!(
            "internal error, please report it: {}",
            panic_message(&*panic)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_end_of_one_job() {
        let failed = caught(|| panic!("in a job")).err().unwrap();
        let mut result = JobResult::new("a", 1);
        failed.note(&mut result);
        assert_eq!(
            (result.status, &result.reason[..]),
            (JobStatus::Failed, "panic")
        );
        assert!(result.message.contains("in a job"), "{}", result.message);
        assert!(caught(|| 1).is_ok_and(|n| n == 1));
    }
}
