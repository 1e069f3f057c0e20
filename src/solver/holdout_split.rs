//! The random split of the tensor's entries into training entries and held-out entries.

use super::stream_ids;
use crate::options::Options;
use crate::random::hash_words;

/// Assigns each entry of the tensor to the held-out part, to the training part or to neither. The
/// assignment is a function of the seed and the number of the entry.
#[derive(Debug, Clone, Copy)]
pub struct HoldoutSplit {
    seed: u64,
    /// Entries whose key is below are held out.
    held_out_end: u64,
    /// Entries whose key is from `training_start` up to `training_end` are training entries.
    training_start: u64,
    training_end: u64,
}

impl HoldoutSplit {
    /// Holds out one fraction of all entries and trains on another.
    pub(super) fn new(held_out_fraction: f64, training_fraction: f64, seed: u64) -> HoldoutSplit {
        HoldoutSplit {
            seed: hash_words(&[seed, stream_ids::HOLDOUT]),
            held_out_end: key_of(held_out_fraction),
            training_start: key_of(held_out_fraction),
            training_end: key_of(held_out_fraction + training_fraction),
        }
    }

    /// Returns the split into training and validation entries that the option `valid_fraction` requires.
    pub(super) fn for_validation(options: &Options) -> Option<HoldoutSplit> {
        let fraction = options.valid_fraction;
        (fraction > 0.0).then(|| HoldoutSplit::new(fraction, 1.0 - fraction, options.seed))
    }

    /// Reduces the held-out part to this fraction of all entries, at most what it was. The training part stays.
    pub(super) fn measuring(self, fraction: f64) -> HoldoutSplit {
        HoldoutSplit {
            held_out_end: key_of(fraction).min(self.held_out_end),
            ..self
        }
    }

    /// Returns whether entry number `entry` of the tensor is held out.
    #[inline]
    pub(super) fn is_held_out(self, entry: usize) -> bool {
        self.key(entry) < self.held_out_end
    }

    /// Returns whether entry number `entry` of the tensor is a training entry.
    #[inline]
    pub(super) fn is_training(self, entry: usize) -> bool {
        (self.training_start..=self.training_end).contains(&self.key(entry))
    }

    #[inline]
    fn key(self, entry: usize) -> u64 {
        hash_words(&[self.seed, entry as u64])
    }
}

/// Returns the key below which this fraction of the entries is.
fn key_of(fraction: f64) -> u64 {
    (fraction * u64::MAX as f64) as u64
}
