//! The order in which threads take tasks.

/// Returns `0..count` in the order in which thread `thread` of `threads` tries to take tasks: its own tasks
/// `thread`, `thread + threads`, ... first, then those of the following threads.
pub fn stealing_order(thread: usize, threads: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..threads).flat_map(move |other| ((thread + other) % threads..count).step_by(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_its_own_tasks_first_and_then_all_others() {
        assert!(stealing_order(1, 3, 7).eq([1, 4, 2, 5, 0, 3, 6]));
        assert!(stealing_order(2, 4, 2).eq([0, 1]));
        assert!(stealing_order(0, 1, 3).eq([0, 1, 2]));
    }
}
