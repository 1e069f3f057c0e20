//! The scheduler of a batch, on the calling thread: it queues, starts and records jobs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread::Scope;
use std::time::{Duration, Instant};

use s3cmtf::Monitor;
use s3cmtf::parallel::{restrict_to_cpus, spawn_scoped};
use s3cmtf::solver::Control;
use s3cmtf::{Error, Result};

use super::dependencies::{Dependencies, DependencyGraph};
use super::execution::{ResolvedSettings, SharedState, execute};
use super::failure::{JobFailure, catch_panic};
use super::file_identity::FileIdentity;
use super::job::{Job, Task};
use super::job_parsing::{JobParseError, default_id, parse_job};
use super::job_reader::JobLine;
use super::job_result::{JobResult, JobStatus};
use super::journal::Journal;
use super::memory_estimate::estimate_bytes;
use super::options::{BatchObserver, BatchSummary};
use super::resources::{Allocation, ResourcePool};
use super::waiting_jobs::WaitingJobs;
use crate::file_arguments::canonical;

/// The longest time between two checks for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The largest number of jobs of a batch, all of which are kept until its end.
const MAX_JOBS: usize = 1_000_000;

/// So many invalid lines in succession end the input: it is no list of jobs, and may never end.
const MAX_INVALID_LINES: usize = 1000;

/// A message to the scheduler.
pub(super) enum Message {
    Line(JobLine),
    Ended {
        index: usize,
        result: Box<JobResult>,
    },
}

/// The constants of a batch.
pub(super) struct BatchContext<'a> {
    pub shared: &'a SharedState,
    /// For the jobs, to report their end.
    pub sender: SyncSender<Message>,
    /// The number of threads of all jobs together.
    pub threads: usize,
    /// The memory of all jobs together, in bytes.
    pub memory: u64,
    /// The number of threads of a job that does not state it.
    pub job_threads: usize,
}

/// A job in the scheduler.
struct ScheduledJob {
    /// The job, unless its line is invalid.
    job: Option<Job>,
    /// The canonical paths of the files that it reads.
    inputs: Vec<PathBuf>,
    dependencies: Dependencies,
    /// Set when its dependencies are satisfied.
    settings: Option<ResolvedSettings>,
    allocation: Allocation,
    has_ended: bool,
    result: JobResult,
}

impl ScheduledJob {
    fn new(result: JobResult) -> ScheduledJob {
        ScheduledJob {
            job: None,
            inputs: Vec::new(),
            dependencies: Dependencies::default(),
            settings: None,
            allocation: Allocation::default(),
            has_ended: false,
            result,
        }
    }
}

/// The state of a batch.
pub(super) struct Scheduler {
    /// All jobs, in the order of their lines.
    jobs: Vec<ScheduledJob>,
    waiting: WaitingJobs,
    /// The number of running jobs.
    running: usize,
    /// The line of each id.
    ids: HashMap<String, u64>,
    dependencies: DependencyGraph,
    /// For each file, the number of jobs that read it and have not ended.
    reader_counts: HashMap<PathBuf, usize>,
    pool: ResourcePool,
    journal: Journal,
    /// Whether no further job comes.
    input_ended: bool,
    input_error: Option<Error>,
    all_lines_read: bool,
    /// The number of invalid lines since the last valid one.
    invalid_lines: usize,
    /// The first error of the journal.
    journal_error: Option<String>,
    interrupted: bool,
}

impl Scheduler {
    pub(super) fn new(journal: Journal, pool: ResourcePool) -> Scheduler {
        Scheduler {
            jobs: Vec::new(),
            waiting: WaitingJobs::default(),
            running: 0,
            ids: HashMap::new(),
            dependencies: DependencyGraph::default(),
            reader_counts: HashMap::new(),
            pool,
            journal,
            input_ended: false,
            input_error: None,
            all_lines_read: false,
            invalid_lines: 0,
            journal_error: None,
            interrupted: false,
        }
    }

    /// Whether all lines have been read, so that the thread that reads them ends.
    pub(super) fn all_lines_read(&self) -> bool {
        self.all_lines_read
    }

    /// Returns the summary of the batch, or the error of the input.
    pub(super) fn finish(
        mut self,
        context: &BatchContext<'_>,
        started: Instant,
    ) -> Result<BatchSummary> {
        // A cancellation may close the input, which is then no error.
        if let Some(error) = self.input_error.take().filter(|_| !self.interrupted) {
            return Err(error);
        }
        for index in self.waiting.jobs() {
            self.jobs[index].result.reason = "cancelled".into();
        }
        Ok(BatchSummary {
            jobs: self.jobs.into_iter().map(|j| j.result).collect(),
            interrupted: self.interrupted,
            journal_error: self.journal_error,
            threads: context.threads,
            memory: context.memory,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// Runs the event loop until all jobs have ended, or the batch is cancelled and no job runs.
    pub(super) fn run<'scope, 'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        context: &'env BatchContext<'env>,
        receiver: &Receiver<Message>,
        observer: &mut dyn BatchObserver,
        monitor: &dyn Monitor,
    ) {
        loop {
            if !self.interrupted {
                self.start_jobs(scope, context, observer);
            }
            let is_complete = self.input_ended && self.waiting.len() == 0;
            if self.running == 0 && (is_complete || self.interrupted) {
                return;
            }
            match receiver.recv_timeout(CANCEL_CHECK_INTERVAL) {
                Ok(Message::Line(line)) => self.add_line(line, observer),
                Ok(Message::Ended { index, result }) => {
                    self.job_ended(index, *result, context, observer);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if monitor.cancelled() {
                self.interrupted = true;
            }
            if self.interrupted {
                context.shared.stop.store(true, Ordering::Relaxed);
            }
            let ended = self.jobs.len() - self.waiting.len() - self.running;
            monitor.progress("jobs", ended as u64, self.jobs.len() as u64);
        }
    }

    /// Records that no further job comes. The first error counts.
    fn end_input(&mut self, error: Option<Error>) {
        self.input_ended = true;
        self.input_error = self.input_error.take().or(error);
    }

    /// Parses a line and queues its job, or records why it is not run.
    fn add_line(&mut self, line: JobLine, observer: &mut dyn BatchObserver) {
        let (number, text, parsed) = match line {
            JobLine::End(error) => {
                self.all_lines_read = true;
                self.end_input(error);
                return;
            }
            // The input was no list of jobs.
            _ if self.input_ended => return,
            JobLine::Unreadable { number, message } => {
                let error = JobParseError::new(number, message);
                (number, String::new(), Err(error))
            }
            JobLine::Job { number, text } => {
                let parsed = parse_job(number, &text);
                (number, text, parsed)
            }
        };
        self.invalid_lines = match &parsed {
            Ok(_) => 0,
            Err(_) => self.invalid_lines + 1,
        };
        let limit_error = if self.jobs.len() == MAX_JOBS {
            Some(format!(
                "a batch has at most {MAX_JOBS} jobs; run the rest in another batch"
            ))
        } else if self.invalid_lines > MAX_INVALID_LINES {
            Some(format!(
                "the {MAX_INVALID_LINES} lines before it are no jobs either; is the input a list of jobs?"
            ))
        } else {
            None
        };
        if let Some(message) = limit_error {
            self.end_input(Some(Error::argument(format!("line {number}: {message}"))));
            return;
        }
        let index = self.jobs.len();
        let given_id = match &parsed {
            Ok(job) => job.id.clone(),
            Err(failed) => failed.id.clone(),
        };
        let same_id = self.ids.get(&given_id).copied();
        // Results are identified by their id, so a repeated one is replaced.
        let id = match same_id {
            Some(_) => default_id(number),
            None => given_id.clone(),
        };
        self.ids.entry(id.clone()).or_insert(number);
        let mut scheduled = ScheduledJob::new(JobResult::new(&id, number));
        let earlier = match (parsed, same_id) {
            (Err(failed), _) => {
                scheduled.result.output = failed.output.unwrap_or_default();
                Err(failed.error)
            }
            (Ok(job), Some(other)) => {
                scheduled.result = JobResult {
                    id,
                    ..JobResult::of_job(&job)
                };
                Err(Error::argument(format!(
                    "line {number}: line {other} has the id {given_id:?} too; give each job an id of its own"
                )))
            }
            (Ok(job), None) => {
                scheduled.result = JobResult::of_job(&job);
                self.add_dependencies(index, job, &mut scheduled)
            }
        };
        match earlier {
            Err(error) => {
                JobFailure::from(error).record(&mut scheduled.result);
                if !scheduled.result.output.as_os_str().is_empty() {
                    // Jobs that read the output must not use a file from before.
                    let output = canonical(&scheduled.result.output);
                    self.dependencies.add_unwritten(index, output);
                }
                scheduled.has_ended = true;
                self.jobs.push(scheduled);
                self.record_result(index, &text, observer);
            }
            Ok(Some(result)) => {
                (scheduled.result, scheduled.has_ended) = (result, true);
                self.jobs.push(scheduled);
                self.notify_ended(index, observer);
            }
            Ok(None) => {
                for file in &scheduled.inputs {
                    *self.reader_counts.entry(file.clone()).or_default() += 1;
                }
                let has_ended = |job: usize| self.jobs[job].has_ended;
                self.waiting.add(index, &scheduled.dependencies, has_ended);
                self.jobs.push(scheduled);
            }
        }
    }

    /// Finds the dependencies of a job. Returns its result from an earlier run, if the job can be skipped.
    fn add_dependencies(
        &mut self,
        index: usize,
        job: Job,
        scheduled: &mut ScheduledJob,
    ) -> Result<Option<JobResult>> {
        let canonical_all =
            |paths: Vec<&Path>| -> Vec<PathBuf> { paths.into_iter().map(canonical).collect() };
        let inputs = canonical_all(job.inputs());
        let outputs = canonical_all(job.outputs());
        let rejected = |file: &Path, reason: String| {
            Error::argument(format!("line {}: {} {reason}", job.line, file.display()))
        };
        if let Some(own) = outputs.iter().find(|file| self.journal.owns(file)) {
            let reason = "is a file of the batch itself; write to another file";
            return Err(rejected(own, reason.into()));
        }
        let dependencies = self.dependencies.add(index, &inputs, &outputs);
        scheduled.dependencies = dependencies.map_err(|conflict| {
            let other = &self.jobs[conflict.job].result;
            let reason = format!(
                "is written by job {:?} (line {}) too; write to another file",
                other.id, other.line
            );
            rejected(&conflict.file, reason)
        })?;
        let earlier = self.journal.earlier_success(&job);
        let earlier = earlier.filter(|_| job.output.exists());
        // A job is only skipped if all jobs that write its inputs are.
        let is_skipped = |&other: &usize| self.jobs[other].result.status == JobStatus::Skipped;
        let writers = &scheduled.dependencies.writers;
        let earlier = earlier.filter(|_| writers.iter().all(is_skipped));
        (scheduled.inputs, scheduled.job) = (inputs, Some(job));
        Ok(earlier)
    }

    /// Starts waiting jobs whose dependencies are satisfied, while resources are free.
    fn start_jobs<'scope, 'env>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        context: &'env BatchContext<'env>,
        observer: &mut dyn BatchObserver,
    ) {
        while let Some(index) = self.waiting.first_ready()
            && !self.interrupted
        {
            let resolved = self.check_inputs_written(index);
            if let Err(failure) = resolved.and_then(|()| self.resolve_settings(index, context)) {
                self.waiting.remove(index);
                failure.record(&mut self.jobs[index].result);
                self.finish_job(index, observer);
                continue;
            }
            let result = &self.jobs[index].result;
            // No later job overtakes this one, or it might wait for ever.
            let Some(allocation) = self.pool.allocate(result.threads, result.memory) else {
                return;
            };
            self.waiting.remove(index);
            self.start_job(index, allocation, scope, context, observer);
        }
    }

    /// Returns a failure if a job that writes an input of this one failed.
    fn check_inputs_written(&self, index: usize) -> std::result::Result<(), JobFailure> {
        let writers = &self.jobs[index].dependencies.writers;
        let mut ended = writers.iter().map(|&other| &self.jobs[other]);
        let failed = ended.find(|job| job.has_ended && job.result.status == JobStatus::Failed);
        match failed.map(|job| &job.result) {
            None => Ok(()),
            Some(r) => Err(JobFailure::new(
                "needs",
                format!(
                    "it needs {}, which job {:?} (line {}) did not write",
                    r.output.display(),
                    r.id,
                    r.line
                ),
            )),
        }
    }

    /// Resolves the options, the checkpoint and the resources of a job, once.
    fn resolve_settings(
        &mut self,
        index: usize,
        context: &BatchContext<'_>,
    ) -> std::result::Result<(), JobFailure> {
        let scheduled = &self.jobs[index];
        let (Some(job), None) = (&scheduled.job, &scheduled.settings) else {
            return Ok(());
        };
        job.require_regular_inputs()?;
        let resume = self.checkpoint_to_resume(job);
        let options =
            job.resolve_options(resume.as_deref(), context.job_threads, context.threads)?;
        options.validate()?;
        if options.threads > context.threads as u64 {
            let message = format!(
                "it asks for {} threads, and the batch has {}; give it fewer, or the batch more (--threads)",
                options.threads, context.threads
            );
            return Err(JobFailure::new("refused", message));
        }
        let memory = match job.memory {
            Some(memory) => memory,
            None => estimate_bytes(job, &options)?,
        };
        if memory > context.memory {
            let message = format!(
                "it takes about {} MiB, and the batch has {} MiB; give the batch more (--memory), or state the memory of \
                 the job in its line (\"memory\") if that is less",
                memory >> 20,
                context.memory >> 20
            );
            return Err(JobFailure::new("refused", message));
        }
        let scheduled = &mut self.jobs[index];
        scheduled.result.threads = options.threads as usize;
        scheduled.result.memory = memory;
        scheduled.settings = Some(ResolvedSettings { options, resume });
        Ok(())
    }

    /// Returns the checkpoint to resume from: that of an earlier run of the same line, or else the one in the line.
    fn checkpoint_to_resume(&self, job: &Job) -> Option<PathBuf> {
        let Task::Fit(fit) = &job.task else {
            return None;
        };
        let current = job.checkpoint().and_then(FileIdentity::of);
        let current = current.map(|identity| identity.fingerprint());
        // The file is from an earlier run if it changed since the job first started.
        let is_own = match (self.journal.first_checkpoint(job), current) {
            (Some(first), Some(current)) => first.as_ref() != Some(&current),
            _ => false,
        };
        if is_own {
            job.checkpoint().map(Path::to_path_buf)
        } else {
            fit.resume.clone()
        }
    }

    /// Starts a job on a thread of its own.
    fn start_job<'scope, 'env>(
        &mut self,
        index: usize,
        allocation: Allocation,
        scope: &'scope Scope<'scope, 'env>,
        context: &'env BatchContext<'env>,
        observer: &mut dyn BatchObserver,
    ) {
        let scheduled = &mut self.jobs[index];
        let (Some(job), Some(mut settings)) = (scheduled.job.clone(), scheduled.settings.take())
        else {
            return;
        };
        scheduled.result.cores = allocation.cpus.clone();
        scheduled.result.log = Some(self.journal.log_path(&job.id));
        if allocation.cpus.is_empty() {
            // Without CPUs of their own, the threads of two jobs might be pinned to the same one.
            settings.options.pin = false;
        }
        scheduled.allocation = allocation;
        let checkpoint = job.checkpoint().and_then(FileIdentity::of);
        let checkpoint = checkpoint.map(|identity| identity.fingerprint());
        let mut result = scheduled.result.clone();
        let recorded = self.journal.record_start(&job, checkpoint.as_deref());
        self.keep_journal_error(recorded, observer);
        observer.started(&result);
        let sender = context.sender.clone();
        let shared = context.shared;
        let run_job = move || {
            restrict_to_cpus(&result.cores);
            let started = Instant::now();
            match catch_panic(|| execute(&job, &settings, shared, &mut result)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => JobFailure::from(error).record(&mut result),
                Err(panic) => panic.record(&mut result),
            }
            result.seconds = started.elapsed().as_secs_f64();
            let result = Box::new(result);
            // Sending fails only if the calling thread panicked.
            let _ = sender.send(Message::Ended { index, result });
        };
        match spawn_scoped(scope, run_job) {
            Ok(_) => self.running += 1,
            Err(error) => {
                let scheduled = &mut self.jobs[index];
                JobFailure::from(error).record(&mut scheduled.result);
                self.pool.release(std::mem::take(&mut scheduled.allocation));
                self.finish_job(index, observer);
            }
        }
    }

    /// Takes the result of a job that ran.
    fn job_ended(
        &mut self,
        index: usize,
        result: JobResult,
        context: &BatchContext<'_>,
        observer: &mut dyn BatchObserver,
    ) {
        self.running -= 1;
        let scheduled = &mut self.jobs[index];
        scheduled.result = result;
        self.pool.release(std::mem::take(&mut scheduled.allocation));
        self.finish_job(index, observer);
        let readers = &self.reader_counts;
        let files = &context.shared.files;
        files.close_unused(|path| readers.contains_key(path));
    }

    /// Records the end of a job that waited or ran.
    fn finish_job(&mut self, index: usize, observer: &mut dyn BatchObserver) {
        let scheduled = &mut self.jobs[index];
        scheduled.has_ended = true;
        let is_failed = scheduled.result.status == JobStatus::Failed;
        self.waiting.job_ended(index, is_failed);
        for file in std::mem::take(&mut scheduled.inputs) {
            if let Some(count) = self.reader_counts.get_mut(&file) {
                *count -= 1;
                if *count == 0 {
                    self.reader_counts.remove(&file);
                }
            }
        }
        let text = scheduled.job.as_ref().map(|j| j.text.clone());
        self.record_result(index, &text.unwrap_or_default(), observer);
    }

    /// Writes the result of a job to the journal and notifies the observer.
    fn record_result(&mut self, index: usize, text: &str, observer: &mut dyn BatchObserver) {
        let recorded = self.journal.record_result(&self.jobs[index].result, text);
        self.keep_journal_error(recorded, observer);
        self.notify_ended(index, observer);
    }

    /// Warns of the first error of the journal. The jobs go on: their outputs do not depend on it.
    fn keep_journal_error(&mut self, recorded: Result<()>, observer: &mut dyn BatchObserver) {
        if let (Err(error), None) = (recorded, &self.journal_error) {
            observer.warning(&format!(
                "{error}; the batch goes on, and the next run will not know all that was done"
            ));
            self.journal_error = Some(error.to_string());
        }
    }

    fn notify_ended(&mut self, index: usize, observer: &mut dyn BatchObserver) {
        if observer.ended(&self.jobs[index].result) == Control::Stop {
            self.interrupted = true;
        }
    }
}
