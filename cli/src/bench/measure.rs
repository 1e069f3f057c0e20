//! Measures the speed of one fit, or of several independent fits that run at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use s3cmtf::model::EpochMetrics;
use s3cmtf::options::Options;
use s3cmtf::parallel::{cpus_for_concurrent_jobs, restrict_to_cpus, spawn_scoped};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{Control, Event, FitInput, Observer, fit};
use s3cmtf::{Error, Monitor, Result};

/// The speed and the result of a fit.
#[derive(Default)]
pub(super) struct Measurement {
    /// Seconds of the updates of each epoch.
    pub update_seconds: Vec<f64>,
    pub test_rmse: f64,
    /// The ranks of the model, which may be lower than requested.
    pub ranks: Vec<usize>,
    /// Notes on lowered ranks.
    pub notes: Vec<String>,
}

/// Measures a fit. `interrupted` cancels it.
pub(super) fn measure_fit(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    interrupted: &AtomicBool,
) -> Result<Measurement> {
    measure(problem, options, input, interrupted, None)
}

/// Measures `fits` independent fits of `options.threads` threads each, at the same time. Every fit has its own copy of the
/// entries, its own parameters and its own CPUs, as if it were a process of its own. All fits begin an epoch together, from
/// the second on.
pub(super) fn measure_independent_fits(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    interrupted: &AtomicBool,
    fits: usize,
) -> Result<Vec<Measurement>> {
    let threads = options.threads as usize;
    let cpus = cpus_for_concurrent_jobs(fits * threads);
    let gate = &EpochGate::new(fits);
    std::thread::scope(|scope| {
        let mut running = Vec::with_capacity(fits);
        for k in 0..fits {
            let member = GateMember(gate);
            let own_cpus = cpus.get(k * threads..(k + 1) * threads).unwrap_or(&[]);
            running.push(spawn_scoped(scope, move || {
                restrict_to_cpus(own_cpus);
                measure(problem, options, input, interrupted, Some(&member))
            }));
        }
        let results = running.into_iter().map(|started| {
            let fit = started?;
            fit.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
        });
        results.collect()
    })
}

/// Returns the entries per second of all fits together, in the epoch in which that is highest.
pub(super) fn total_entries_per_second(fits: &[Measurement], entries: u64) -> f64 {
    let epochs = fits.iter().map(|f| f.update_seconds.len()).min();
    (0..epochs.unwrap_or(0))
        .map(|e| {
            let speed = |f: &Measurement| entries as f64 / f.update_seconds[e].max(1e-9);
            fits.iter().map(speed).sum()
        })
        .fold(0.0, f64::max)
}

fn measure(
    problem: &Problem<'_>,
    options: &Options,
    input: &FitInput<'_>,
    interrupted: &AtomicBool,
    gate: Option<&GateMember<'_>>,
) -> Result<Measurement> {
    let mut recorder = EpochRecorder {
        interrupted,
        gate,
        measurement: Measurement::default(),
    };
    let monitor = InterruptMonitor(interrupted);
    let (model, summary) = fit(problem, options, input, &mut recorder, &monitor)?;
    if monitor.cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(Measurement {
        test_rmse: summary.test_rmse,
        ranks: model.shape().ranks().to_vec(),
        ..recorder.measurement
    })
}

/// Passes Ctrl-C on to a fit, and shows none of its progress.
struct InterruptMonitor<'a>(&'a AtomicBool);

impl Monitor for InterruptMonitor<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Records the time of each epoch and the notes on lowered ranks.
struct EpochRecorder<'a> {
    interrupted: &'a AtomicBool,
    gate: Option<&'a GateMember<'a>>,
    measurement: Measurement,
}

impl Observer for EpochRecorder<'_> {
    fn epoch(&mut self, epoch: &EpochMetrics) -> Control {
        self.measurement.update_seconds.push(epoch.update_seconds);
        if let Some(member) = self.gate {
            member.wait();
        }
        if self.interrupted.load(Ordering::Relaxed) {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::RankLowered(text) = event {
            self.measurement.notes.push(text.clone());
        }
    }
}

/// A barrier that fits may leave for good, since any of them can fail or end early.
struct EpochGate {
    state: Mutex<GateState>,
    opened: Condvar,
}

struct GateState {
    members: usize,
    waiting: usize,
    /// Number of rounds in which all members arrived at the barrier.
    round: u64,
}

impl EpochGate {
    fn new(members: usize) -> EpochGate {
        EpochGate {
            state: Mutex::new(GateState {
                members,
                waiting: 0,
                round: 0,
            }),
            opened: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn open_if_all_wait(&self, state: &mut GateState) {
        if state.waiting == state.members {
            state.waiting = 0;
            state.round += 1;
            self.opened.notify_all();
        }
    }
}

/// One member of a gate, which leaves it on drop.
struct GateMember<'a>(&'a EpochGate);

impl GateMember<'_> {
    /// Waits until all members wait.
    fn wait(&self) {
        let GateMember(gate) = self;
        let mut state = gate.state();
        let round = state.round;
        state.waiting += 1;
        gate.open_if_all_wait(&mut state);
        while state.round == round {
            state = gate.opened.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }
}

impl Drop for GateMember<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.members -= 1;
        self.0.open_if_all_wait(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_for_the_members_that_remain() {
        let gate = &EpochGate::new(3);
        std::thread::scope(|scope| {
            for rounds in [2, 5, 9] {
                let member = GateMember(gate);
                scope.spawn(move || (0..rounds).for_each(|_| member.wait()));
            }
        });
        let state = gate.state();
        assert_eq!((state.members, state.waiting), (0, 0));
        // The last opening is that of the last member, which finds the gate empty.
        assert_eq!(state.round, 10);
    }

    #[test]
    fn speeds_of_the_same_epoch_are_added() {
        let fit = |update_seconds: &[f64]| Measurement {
            update_seconds: update_seconds.to_vec(),
            ..Measurement::default()
        };
        let fits = [fit(&[2.0, 1.0]), fit(&[1.0, 2.0, 0.1])];
        assert_eq!(total_entries_per_second(&fits, 100), 150.0);
        assert_eq!(total_entries_per_second(&[], 100), 0.0);
    }
}
