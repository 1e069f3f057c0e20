//! Entry point of a batch: sets up the reader thread, the resources and the scheduler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use s3cmtf::Monitor;
use s3cmtf::Result;
use s3cmtf::memory::available_memory;
use s3cmtf::parallel::{available_threads, cpus_for_concurrent_jobs, spawn};

use super::execution::SharedState;
use super::file_cache::FileCache;
use super::job_reader::JobReader;
use super::journal::Journal;
use super::options::{BatchObserver, BatchOptions, BatchSummary};
use super::resources::ResourcePool;
use super::scheduler::{BatchContext, Message, Scheduler};
use crate::file_arguments::canonical;

/// Lines that the reader may be ahead of the scheduler.
const QUEUED_MESSAGES: usize = 64;

/// Runs jobs in parallel until the input ends and all jobs have ended.
///
/// The failure of a job is recorded, and the other jobs go on. Returns an error only if the batch itself cannot go on: its
/// folder cannot be opened, or the lines cannot be read (the jobs read before are run first).
///
/// A cancellation, by `monitor` or by the observer, stops the running jobs. The next run with the same folder continues
/// the batch: it skips jobs that succeeded, and restarts the others, from their checkpoint if there is one.
pub fn run(
    jobs: JobReader,
    options: &BatchOptions,
    observer: &mut dyn BatchObserver,
    monitor: &dyn Monitor,
) -> Result<BatchSummary> {
    let started = Instant::now();
    let threads = match options.threads {
        0 => available_threads(),
        n => n,
    };
    let memory = match options.memory {
        0 => available_memory().unwrap_or(u64::MAX),
        n => n,
    };
    let mut journal = Journal::open(&options.folder)?;
    journal.jobs_file = jobs.file.as_deref().map(canonical);
    let shared = SharedState {
        files: FileCache::new(options.verify),
        stop: AtomicBool::new(false),
    };
    let (sender, receiver) = sync_channel(QUEUED_MESSAGES);
    let lines = sender.clone();
    let reader = spawn(move || jobs.for_each(|line| lines.send(Message::Line(line)).is_ok()))?;
    let pool = ResourcePool::new(threads, memory, cpus_for_concurrent_jobs(threads));
    let context = BatchContext {
        shared: &shared,
        sender,
        threads,
        memory,
        job_threads: options.job_threads,
    };
    let mut scheduler = Scheduler::new(journal, pool);
    std::thread::scope(|scope| {
        // The scope waits for the jobs. They stop early even if the scheduler panics.
        let _stop = StopOnDrop(&shared.stop);
        scheduler.run(scope, &context, &receiver, observer, monitor);
    });
    drop(receiver);
    if scheduler.all_lines_read() {
        let _ = reader.join();
    }
    scheduler.finish(&context, started)
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
