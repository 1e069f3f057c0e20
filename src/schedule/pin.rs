//! One thread per core: which cores, and staying there.

use core_affinity::CoreId;

/// The affinity library writes into a fixed set of 1024 bits and panics beyond it.
const LARGEST_ID: usize = 1023;

/// The cores that `threads` threads are pinned to, one each: those this process may use, starting at
/// a place that differs from fit to fit, so that fits side by side do not all begin on the first.
/// Empty (nobody is pinned) if there are fewer cores than threads.
pub(crate) fn cores_for(threads: usize, place: u64) -> Vec<CoreId> {
    let mut allowed = core_affinity::get_core_ids().unwrap_or_default();
    allowed.retain(|c| c.id <= LARGEST_ID);
    if allowed.len() < threads || threads == 0 {
        return Vec::new();
    }
    // With a core for everybody the place does not matter.
    let first = if allowed.len() == threads {
        0
    } else {
        place as usize % allowed.len()
    };
    (0..threads)
        .map(|t| allowed[(first + t) % allowed.len()])
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
