//! The penalty of the core in SGD, applied between kernel calls.
//!
//! Every tensor entry shrinks the core by eta lambda / |Omega|. With many entries that is below the rounding error of an `f32`,
//! so an update per entry would lose it. The shrinkage of entries therefore accumulates in `f64` and is applied to the core when
//! it is large against the rounding error, and at the end of an epoch. Rows need no such treatment: their updates add the penalty
//! to the gradient of the loss before the sum is rounded (`batch_job::RowUpdate`), so that it is not lost on average.

/// Accumulated shrinkage at which the core is updated. An `f32` is rounded by at most 2^-24 of its value, which is 2^-12 of this.
const MAX_PENDING: f64 = 1.0 / 4096.0;

/// The penalty of the core during an epoch.
#[derive(Debug, Clone, Copy)]
pub struct CorePenalty {
    /// Learning rate of the core times its penalty per entry.
    per_entry: f64,
    /// The penalty is the absolute value (L1) instead of the square (L2).
    l1: bool,
    /// Shrinkage that has not been applied yet.
    pending: f64,
}

impl CorePenalty {
    /// No penalty.
    pub const NONE: CorePenalty = CorePenalty {
        per_entry: 0.0,
        l1: false,
        pending: 0.0,
    };

    /// Creates the penalty of cores with learning rate `eta`, where `penalty` is that of one entry.
    pub fn new(eta: f64, penalty: f64, l1: bool) -> CorePenalty {
        CorePenalty {
            per_entry: eta * penalty,
            l1,
            pending: 0.0,
        }
    }

    /// Returns the number of entries after which the core should be updated, at least 1.
    pub fn entries_until_due(&self) -> usize {
        if self.per_entry > 0.0 {
            ((MAX_PENDING - self.pending) / self.per_entry)
                .ceil()
                .max(1.0) as usize
        } else {
            usize::MAX
        }
    }

    /// Adds the shrinkage of `entries` entries.
    pub fn add_entries(&mut self, entries: f64) {
        self.pending += self.per_entry * entries;
    }

    /// Returns what is pending if the core should be updated now. The caller applies it to all parts of the core.
    pub fn take_due(&mut self) -> Option<CoreShrinkage> {
        (self.pending >= MAX_PENDING).then(|| self.take())
    }

    /// Shrinks the core by what is pending, due or not.
    pub fn apply(&mut self, core: &mut [f32]) {
        self.take().apply(core);
    }

    fn take(&mut self) -> CoreShrinkage {
        CoreShrinkage {
            amount: std::mem::take(&mut self.pending),
            l1: self.l1,
        }
    }
}

/// A part of the penalty that is applied at once.
#[derive(Debug, Clone, Copy)]
pub struct CoreShrinkage {
    amount: f64,
    l1: bool,
}

impl CoreShrinkage {
    /// Shrinks values of the core: the solution of dG/dt = -G after the time `amount`, or of dG/dt = -sign(G) for an L1 penalty.
    pub fn apply(self, values: &mut [f32]) {
        if self.amount == 0.0 {
            return;
        }
        if self.l1 {
            for g in values {
                let rest = (f64::from(g.abs()) - self.amount).max(0.0);
                *g = (rest as f32).copysign(*g);
            }
        } else {
            let kept = (-self.amount).exp();
            for g in values {
                *g = (kept * f64::from(*g)) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the core after an epoch of `entries` entries, in calls of `call` entries at most.
    fn after_epoch(entries: usize, call: usize, lambda: f64, l1: bool) -> Vec<f32> {
        let mut core = vec![1.0, -0.3, 0.0017, 0.0];
        let mut penalty = CorePenalty::new(0.001, lambda / entries as f64, l1);
        let mut left = entries;
        while left > 0 {
            let count = left.min(call).min(penalty.entries_until_due());
            penalty.add_entries(count as f64);
            if let Some(shrinkage) = penalty.take_due() {
                shrinkage.apply(&mut core);
            }
            left -= count;
        }
        penalty.apply(&mut core);
        core
    }

    #[test]
    fn shrinkage_is_independent_of_the_number_of_entries() {
        for entries in [1, 7, 2_000, 400_000, 3_000_000_000] {
            for call in [256, 1 << 40] {
                // Calls of 256 entries would take long here.
                if entries > 1_000_000 && call == 256 {
                    continue;
                }
                let core = after_epoch(entries, call, 10.0, false);
                for (g, start) in core.iter().zip([1.0, -0.3, 0.0017, 0.0]) {
                    let expected = (-0.01f64).exp() * start;
                    let error = (f64::from(*g) - expected).abs();
                    assert!(error <= 2e-6 * expected.abs(), "{entries} {call}: {core:?}");
                }
                let core = after_epoch(entries, call, 10.0, true);
                for (g, expected) in core.iter().zip([0.99, -0.29, 0.0, 0.0]) {
                    assert!((g - expected).abs() < 4e-6, "{entries} {call}: {core:?}");
                }
            }
        }
    }

    #[test]
    fn no_penalty_leaves_the_core_as_it_is() {
        assert_eq!(after_epoch(100, 256, 0.0, false), [1.0, -0.3, 0.0017, 0.0]);
        assert_eq!(after_epoch(100, 256, 0.0, true), [1.0, -0.3, 0.0017, 0.0]);
    }
}
