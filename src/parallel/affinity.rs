//! One thread per core: which cores, and staying there.
#![allow(unsafe_code)]

use std::time::{SystemTime, UNIX_EPOCH};

use core_affinity::CoreId;

use super::topology::Machine;

/// The affinity library writes into a fixed set of 1024 bits and panics beyond it.
const LARGEST_ID: usize = 1023;

/// The CPUs that `threads` threads are pinned to, one each: those this process may use, as
/// [`Machine::choose`] takes them, starting at a place that differs from fit to fit, so that fits side
/// by side do not all begin on the first. Empty (nobody is pinned) if there are fewer than threads.
pub(crate) fn cores_for(threads: usize, place: u64) -> Vec<CoreId> {
    let mut allowed = core_affinity::get_core_ids().unwrap_or_default();
    allowed.retain(|c| c.id <= LARGEST_ID);
    if allowed.len() < threads || threads == 0 {
        return Vec::new();
    }
    let ids: Vec<usize> = allowed.iter().map(|c| c.id).collect();
    Machine::of_this_system(&ids)
        .choose(threads, place)
        .into_iter()
        .map(|id| CoreId { id })
        .collect()
}

/// A place that differs from one time to another. It is not part of any result.
pub(crate) fn anywhere() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_nanos() as u64);
    crate::random::key(&[u64::from(std::process::id()), now])
}

/// The CPUs to share out among work side by side that has `threads` threads in all, in the order in which they are
/// best taken; none if there are fewer than threads, or if the system does not keep threads on some of them.
pub(crate) fn cores_to_share(threads: usize) -> Vec<usize> {
    match cfg!(target_os = "linux") {
        true => cores_for(threads, anywhere())
            .into_iter()
            .map(|c| c.id)
            .collect(),
        false => Vec::new(),
    }
}

/// Keeps the calling thread, which must be one of our own, and all threads it will start, on these CPUs; without any
/// it may go on as it was. If the system refuses, it is the same.
#[cfg(target_os = "linux")]
pub(crate) fn confine(cores: &[usize]) {
    if cores.is_empty() {
        return;
    }
    // SAFETY: a set of zeros is an empty one; CPUs are below 1024, the number of its bits (`cores_for`), or are left
    // out; the call reads the set and changes nothing but where this thread may run.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores.iter().filter(|&&core| core <= LARGEST_ID) {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Other systems have no such thing for a number of CPUs.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_: &[usize]) {}

/// Pins the calling thread, which must be one of our own. If the system refuses, the thread runs
/// unpinned: slower perhaps, never wrong.
pub(crate) fn pin(core: CoreId) {
    core_affinity::set_for_current(core);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_gets_an_allowed_core_of_its_own() {
        let allowed = core_affinity::get_core_ids().unwrap_or_default();
        for threads in 1..=allowed.len() {
            for place in [0, 1, 7, u64::MAX] {
                let mut ids: Vec<usize> = cores_for(threads, place).iter().map(|c| c.id).collect();
                assert!(ids.iter().all(|id| allowed.iter().any(|a| a.id == *id)));
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), threads);
            }
        }
        assert!(cores_for(allowed.len() + 1, 0).is_empty());
        if allowed.len() > 1 {
            assert_ne!(cores_for(1, 0)[0].id, cores_for(1, 1)[0].id);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_share_of_the_cores_is_all_that_a_thread_and_its_threads_see() {
        let all = core_affinity::get_core_ids().unwrap_or_default().len();
        let mut shared = cores_to_share(all);
        assert_eq!(shared.len(), all);
        let last = shared.pop().unwrap();
        let seen = std::thread::spawn(move || {
            confine(&[]);
            let before = core_affinity::get_core_ids().unwrap_or_default().len();
            confine(&[last]);
            let inner = std::thread::spawn(|| (cores_for(1, 5), super::super::available_threads()));
            (before, inner.join().unwrap())
        });
        let (before, (cores, threads)) = seen.join().unwrap();
        assert_eq!((before, threads), (all, 1));
        assert_eq!(cores.iter().map(|c| c.id).collect::<Vec<_>>(), [last]);
        assert!(cores_to_share(all + 1).is_empty());
    }
}
