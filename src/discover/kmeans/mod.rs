//! k-means clustering with restarts.
//!
//! A [`PointSet`] and the number of clusters enter as a [`KMeansTask`]; the best [`Clustering`] of several restarts
//! leaves. A run samples its initial centres (`seeding.rs`, greedy k-means++) and then iterates (`lloyd.rs`).
//!
//! Squared distances in single precision decide the assignments. Sums are made in double precision, chunk by chunk and
//! then in the order of the chunks. The result is therefore independent of the number of threads.

mod assignment;
mod lloyd;
mod point_set;
mod seeding;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::parallel::ThreadPool;
use crate::progress::{Monitor, check_cancelled};
use assignment::{ChunkRunner, ChunkWork};

pub(super) use lloyd::{Clustering, KMeansTask};
pub(super) use point_set::PointSet;

/// From this number of chunks on, threads share the chunks of one run. Below it, each thread takes whole runs.
const MIN_CHUNKS_TO_SHARE: usize = 16;

/// Runs k-means tasks with restarts on a thread pool.
pub(super) struct KMeansRunner<'a> {
    pub pool: &'a ThreadPool<'a>,
    /// The number of runs per task.
    pub restarts: usize,
    /// The name of the work in progress reports.
    pub phase: &'a str,
}

impl KMeansRunner<'_> {
    /// Runs every task `restarts` times and returns `summarize` of the run with the smallest within-cluster sum of
    /// squares, the first of equal ones.
    pub(super) fn best_of_restarts<T: Send>(
        &self,
        tasks: &[KMeansTask<'_>],
        summarize: impl Fn(Clustering) -> T + Sync,
    ) -> Result<Vec<T>> {
        let restarts = self.restarts.max(1);
        let total = tasks.len() * restarts;
        let done = AtomicU64::new(0);
        let report = |monitor: &dyn Monitor| {
            let done = done.load(Ordering::Relaxed);
            monitor.progress(self.phase, done, total as u64);
        };
        self.pool.check_cancelled()?;
        let stop = self.pool.stop();
        let summarized = |clustering: Clustering| (clustering.within, summarize(clustering));
        let share_chunks = tasks
            .iter()
            .any(|task| task.points.chunks() >= MIN_CHUNKS_TO_SHARE);
        let results: Vec<Result<(f64, T)>> = if share_chunks {
            let mut results = Vec::new();
            for at in 0..total {
                self.pool.check_cancelled()?;
                report(self.pool.monitor());
                let task = &tasks[at / restarts];
                let chunks = ChunkRunner {
                    map: &|work: &ChunkWork<'_>| {
                        let chunks = task.points.chunks();
                        self.pool.try_map(chunks, || Ok(()), |(), i| work(i))
                    },
                    stop,
                };
                let clustering = lloyd::run(task, (at % restarts) as u64, &chunks);
                results.push(clustering.map(summarized));
                done.fetch_add(1, Ordering::Relaxed);
            }
            results
        } else {
            let one_run = |(): &mut (), at: usize| {
                let task = &tasks[at / restarts];
                let chunks = ChunkRunner {
                    map: &|work: &ChunkWork<'_>| {
                        let chunk = |i| check_cancelled(stop).and_then(|()| work(i));
                        (0..task.points.chunks()).map(chunk).collect()
                    },
                    stop,
                };
                let clustering = lloyd::run(task, (at % restarts) as u64, &chunks);
                let result = clustering.map(summarized);
                done.fetch_add(1, Ordering::Relaxed);
                result
            };
            self.pool.map_with_report(total, &report, || (), one_run)?
        };
        let mut best: Vec<Option<(f64, T)>> = Vec::new();
        best.resize_with(tasks.len(), || None);
        for (at, result) in results.into_iter().enumerate() {
            let result = result?;
            let slot = &mut best[at / restarts];
            if slot.as_ref().is_none_or(|(within, _)| result.0 < *within) {
                *slot = Some(result);
            }
        }
        let summaries = best.into_iter().flatten();
        Ok(summaries.map(|(_, summary)| summary).collect())
    }
}
