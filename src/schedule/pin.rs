//! One thread per core: which cores, and staying there.

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
}
