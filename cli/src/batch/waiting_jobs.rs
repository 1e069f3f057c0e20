//! The jobs of a batch that have not started.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::dependencies::Dependencies;

/// The jobs that have not started, and those of them that are ready: all jobs that they depend on have ended, or one that
/// writes an input of theirs failed. An event costs time for the jobs that it affects, not for all that wait.
#[derive(Default)]
pub(super) struct WaitingJobs {
    /// For each waiting job, the number of its dependencies that have not ended.
    pending: BTreeMap<usize, usize>,
    ready: BTreeSet<usize>,
    /// For each job that has not ended, the jobs that depend on it.
    dependents: HashMap<usize, Vec<Dependent>>,
}

struct Dependent {
    job: usize,
    needs_output: bool,
}

impl WaitingJobs {
    /// Adds a job. `has_ended` says of a job that it depends on whether it has ended.
    pub(super) fn add(
        &mut self,
        job: usize,
        dependencies: &Dependencies,
        has_ended: impl Fn(usize) -> bool,
    ) {
        let writers = dependencies.writers.iter().map(|&other| (other, true));
        let readers = dependencies.readers.iter().map(|&other| (other, false));
        let mut pending = 0;
        for (other, needs_output) in writers.chain(readers) {
            if !has_ended(other) {
                pending += 1;
                let dependents = self.dependents.entry(other).or_default();
                dependents.push(Dependent { job, needs_output });
            }
        }
        self.pending.insert(job, pending);
        if pending == 0 {
            self.ready.insert(job);
        }
    }

    /// Records that a job has ended. If it failed, the jobs that read its output become ready: the scheduler examines ready jobs,
    /// and fails those whose inputs are missing.
    pub(super) fn job_ended(&mut self, job: usize, is_failed: bool) {
        for dependent in self.dependents.remove(&job).unwrap_or_default() {
            let Some(pending) = self.pending.get_mut(&dependent.job) else {
                continue;
            };
            *pending -= 1;
            if *pending == 0 || (is_failed && dependent.needs_output) {
                self.ready.insert(dependent.job);
            }
        }
    }

    /// Returns the ready job with the smallest number.
    pub(super) fn first_ready(&self) -> Option<usize> {
        self.ready.first().copied()
    }

    /// Removes a job that starts, or fails without a start.
    pub(super) fn remove(&mut self, job: usize) {
        self.pending.remove(&job);
        self.ready.remove(&job);
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns all waiting jobs, in order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = usize> {
        self.pending.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depends_on(writers: &[usize], readers: &[usize]) -> Dependencies {
        Dependencies {
            writers: writers.to_vec(),
            readers: readers.to_vec(),
        }
    }

    #[test]
    fn jobs_are_ready_when_their_dependencies_have_ended() {
        let mut waiting = WaitingJobs::default();
        let has_ended = |job: usize| job == 0;
        waiting.add(3, &depends_on(&[0, 1], &[2]), has_ended);
        waiting.add(4, &depends_on(&[0], &[]), has_ended);
        waiting.add(5, &depends_on(&[1, 2], &[1]), has_ended);
        waiting.add(6, &depends_on(&[], &[2]), has_ended);
        assert_eq!(waiting.jobs().collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert_eq!(waiting.first_ready(), Some(4));
        waiting.remove(4);
        assert_eq!((waiting.first_ready(), waiting.len()), (None, 3));
        // Job 5 needs the output of job 2; jobs 3 and 6 only wait for its end.
        waiting.job_ended(2, true);
        assert_eq!(waiting.first_ready(), Some(5));
        waiting.remove(5);
        assert_eq!(waiting.first_ready(), Some(6));
        waiting.remove(6);
        assert_eq!(waiting.first_ready(), None);
        waiting.job_ended(1, false);
        assert_eq!(waiting.first_ready(), Some(3));
        waiting.remove(3);
        assert_eq!((waiting.first_ready(), waiting.len()), (None, 0));
    }
}
