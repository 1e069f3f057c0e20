//! The order of tasks in `blocked`, and its models.

#[allow(dead_code)]
#[path = "../../../src/solver/sgd/blocked/task_order.rs"]
mod task_order;

/// Calls `task_order` with the visibility of this crate.
pub use models::{independent_tasks_run_once, tasks_of_rounds_do_not_overlap};

mod models {
    use super::task_order::{ContiguousTasks, RoundTasks, run_shared_tasks};
    use crate::{Cells, together};
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    /// Two axes of two parts. In round r, task t has the parts t and t + r: both tasks of a round are disjoint, and each
    /// waits for the tasks of the round before that have one of its parts.
    pub fn tasks_of_rounds_do_not_overlap() {
        const ROUNDS: usize = 2;
        let tasks = Arc::new(RoundTasks::new(2, 2, 2));
        let cells = Arc::new(Cells::new(4));
        together(2, {
            let cells = cells.clone();
            move |thread| {
                let all = tasks.run(ROUNDS, 2, thread, 2, |round, t| {
                    let parts = [t, (t + round) % 2];
                    assert!(tasks.wait_for_earlier_rounds(&parts, round, || false));
                    cells.add(parts[0], 1);
                    cells.add(2 + parts[1], 1);
                    tasks.finish(&parts, round);
                    Ok(true)
                });
                assert!(all.unwrap());
            }
        });
        (0..4).for_each(|part| assert_eq!(cells.get(part), ROUNDS));
    }

    pub fn independent_tasks_run_once() {
        let (own, shared) = (
            Arc::new(ContiguousTasks::new(2)),
            Arc::new(AtomicUsize::new(0)),
        );
        let cells = Arc::new(Cells::new(5));
        together(2, {
            let cells = cells.clone();
            move |thread| {
                own.run(3, thread, |task| {
                    cells.add(task, 1);
                    Ok(())
                })
                .unwrap();
                run_shared_tasks(&shared, 2, |task| {
                    cells.add(3 + task, 1);
                    Ok(())
                })
                .unwrap();
            }
        });
        (0..5).for_each(|task| assert_eq!(cells.get(task), 1));
    }
}
