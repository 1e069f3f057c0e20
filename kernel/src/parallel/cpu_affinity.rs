//! The CPUs that threads run on: selection and pinning.
#![allow(unsafe_code)]

use std::time::{SystemTime, UNIX_EPOCH};

pub(super) use core_affinity::CoreId;

use super::cpu_topology::CpuTopology;
use crate::error::{Error, Result};

/// `core_affinity` writes into a fixed set of 1024 bits and panics beyond it.
const LARGEST_CPU_ID: usize = 1023;

/// Returns the number of CPUs this process may run on, within its cgroup quota: the default thread count.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The largest number of threads of an operation; no machine has more CPUs.
pub const MAX_THREADS: usize = 4096;

/// Returns the number of threads of an operation that was asked to use `threads`; 0 asks for all that this process may use.
pub fn thread_count(threads: usize) -> Result<usize> {
    Error::check_range("threads", threads, 0..=MAX_THREADS)?;
    Ok(match threads {
        0 => available_threads(),
        n => n,
    })
}

/// Returns the CPUs to pin `threads` threads to, one each, in the order of [`CpuTopology::choose`]. Callers vary
/// `first` from fit to fit, so that concurrent fits do not all start on the first CPU. Returns an empty list
/// (no pinning) if the process may use fewer CPUs than there are threads.
pub(super) fn cpus_for_threads(threads: usize, first: u64) -> Vec<CoreId> {
    let mut allowed = core_affinity::get_core_ids().unwrap_or_default();
    allowed.retain(|c| c.id <= LARGEST_CPU_ID);
    if allowed.len() < threads || threads == 0 {
        return Vec::new();
    }
    let ids: Vec<usize> = allowed.iter().map(|c| c.id).collect();
    CpuTopology::of_this_system(&ids)
        .choose(threads, first)
        .into_iter()
        .map(|id| CoreId { id })
        .collect()
}

/// Returns a number that differs between processes and calls, for the `first` CPU of a pool. No result depends
/// on it.
pub fn varying_first_cpu() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_nanos() as u64);
    crate::random::hash_words(&[u64::from(std::process::id()), now])
}

/// Returns the CPUs to distribute among concurrent jobs that have `threads` threads in total, best first. Returns
/// an empty list if there are fewer CPUs than threads, or if the system cannot restrict a thread to a set of CPUs.
pub fn cpus_for_concurrent_jobs(threads: usize) -> Vec<usize> {
    if cfg!(target_os = "linux") {
        cpus_for_threads(threads, varying_first_cpu())
            .into_iter()
            .map(|c| c.id)
            .collect()
    } else {
        Vec::new()
    }
}

/// Restricts the calling thread, and all threads it starts later, to `cpus`. The restriction stays: call it on a
/// thread that ends with the job. Does nothing if `cpus` is empty or the system refuses.
#[cfg(target_os = "linux")]
pub fn restrict_to_cpus(cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    // SAFETY: a zeroed `cpu_set_t` is the empty set. The filter keeps ids below its 1024 bits. The call reads the
    // set and changes nothing but the CPUs this thread may run on.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu <= LARGEST_CPU_ID) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Does nothing: this system cannot restrict a thread to a set of CPUs.
#[cfg(not(target_os = "linux"))]
pub fn restrict_to_cpus(_: &[usize]) {}

/// Pins the calling thread, which must belong to this library, to one CPU. If the system refuses, the thread
/// runs unpinned; only speed is affected.
pub(super) fn pin_current_thread(cpu: CoreId) {
    core_affinity::set_for_current(cpu);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_gets_a_distinct_allowed_cpu() {
        let allowed = core_affinity::get_core_ids().unwrap_or_default();
        for threads in 1..=allowed.len() {
            for first in [0, 1, 7, u64::MAX] {
                let mut ids: Vec<usize> = cpus_for_threads(threads, first)
                    .iter()
                    .map(|c| c.id)
                    .collect();
                assert!(ids.iter().all(|id| allowed.iter().any(|a| a.id == *id)));
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), threads);
            }
        }
        assert!(cpus_for_threads(allowed.len() + 1, 0).is_empty());
        if allowed.len() > 1 {
            assert_ne!(cpus_for_threads(1, 0)[0].id, cpus_for_threads(1, 1)[0].id);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_restricted_thread_and_its_children_see_only_their_cpus() {
        let all = core_affinity::get_core_ids().unwrap_or_default().len();
        let mut shared = cpus_for_concurrent_jobs(all);
        assert_eq!(shared.len(), all);
        let last = shared.pop().unwrap();
        let seen = std::thread::spawn(move || {
            restrict_to_cpus(&[]);
            let before = core_affinity::get_core_ids().unwrap_or_default().len();
            restrict_to_cpus(&[last]);
            let inner = std::thread::spawn(|| (cpus_for_threads(1, 5), available_threads()));
            (before, inner.join().unwrap())
        });
        let (before, (cpus, threads)) = seen.join().unwrap();
        assert_eq!((before, threads), (all, 1));
        assert_eq!(cpus.iter().map(|c| c.id).collect::<Vec<_>>(), [last]);
        assert!(cpus_for_concurrent_jobs(all + 1).is_empty());
    }
}
