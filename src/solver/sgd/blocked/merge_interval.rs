//! How often copies are merged: in how many sweeps over all blocks an epoch goes.
//!
//! Blocks that work on their own for long each find a model of their own, and the average of two
//! models is none. So copies must not get far apart before they are merged, and where everything
//! still moves fast, blocks must take turns often.

use super::{Blocked, Shared, WHOLE, groups, replica_divergence};

/// Copies whose predictions differ by more than this share of the squared error are merged more often.
const TOO_FAR: f64 = 0.006;

/// Copies whose predictions differ by less are merged less often.
const CLOSE: f64 = 0.0035;

/// A squared error that falls by more than this share in a sweep wants more sweeps, one that falls by
/// less wants fewer.
const FAST: f64 = 0.03;
const SLOW: f64 = 0.01;

/// The most sweeps of a fit that starts from an identity: more do not lower its error.
const CENTRED: usize = 2;

/// Entries that a block should have between merges.
const SHARE: usize = 128;

/// How an epoch is divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct Pace {
    /// Sweeps of an epoch, as things stand: a power of two.
    pub sweeps: usize,
    /// The mean squared error of the last sweep.
    pub error: f64,
}

/// How far the copies of blocks were apart in a sweep.
#[derive(Default)]
pub(super) struct Apart {
    /// The variance of predictions, and steps it was added up over.
    apart: f64,
    steps: f64,
    /// Squared errors and what their entries weigh.
    pub squares: f64,
    seen: f64,
}

impl Apart {
    /// Adds a step of copies that saw too little to be apart.
    pub(super) fn add(&mut self, squares: f64, seen: f64) {
        self.steps += 1.0;
        self.squares += squares;
        self.seen += seen;
    }
}

impl Blocked<'_> {
    /// So many sweeps that a block still has entries between merges.
    pub(super) fn most_sweeps(&self) -> usize {
        if let Some(classes) = self.data.tensor.classes() {
            return groups::most_sweeps(classes);
        }
        let entries = self.data.tensor.len() / self.plan.spec.block_count() * self.plan.together;
        let most = 1 << (entries / SHARE).clamp(1, WHOLE).ilog2();
        match self.options.start.defines_prior_mean() {
            // What all blocks have in common stays near its prior.
            true => most.min(CENTRED),
            false => most,
        }
    }

    /// Looks how far the copies of blocks are apart after a step.
    pub(super) fn look(&self, shared: &Shared<'_>, apart: &mut Apart) {
        let slots: Vec<_> = shared
            .slots
            .iter()
            .map(|slot| slot.read().unwrap_or_else(|e| e.into_inner()))
            .collect();
        let probes: Vec<&[f32]> = slots.iter().map(|s| s.probe.as_slice()).collect();
        apart.apart += replica_divergence::apart(&probes);
        apart.steps += 1.0;
        for slot in &slots {
            apart.squares += slot.squares;
            apart.seen += slot.seen;
        }
    }

    /// How many sweeps an epoch has from here on, after a sweep: more if the copies of blocks predict
    /// differently or the error falls fast, fewer if they agree and it does not.
    pub(super) fn next_sweeps(&self, apart: &Apart, pace: &mut Pace) {
        let error = (apart.squares / apart.seen).max(f64::MIN_POSITIVE);
        let share = apart.apart / apart.steps / error;
        let fall = 1.0 - error / pace.error;
        pace.error = error;
        let most = self.most_sweeps();
        let now = pace.sweeps.min(most);
        if share > TOO_FAR || fall > FAST {
            pace.sweeps = (now * 4).min(most);
        } else if share < CLOSE && fall < SLOW {
            pace.sweeps = (now / 2).max(1);
        }
    }
}
