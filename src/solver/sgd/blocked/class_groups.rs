//! Groups of blocks of one conflict-free class, whose core replicas are merged together.

use std::ops::Range;
use std::ops::RangeInclusive;

use super::curvature::Curvature;
use super::curvature_basis::CurvatureBasis;
use super::merge_interval::UNITS_PER_BLOCK;
use crate::kernel::ConflictFreeClasses;
use crate::random::RandomStream;

/// Limits of the number of blocks of a group.
const MAX_GROUP_BLOCKS: RangeInclusive<usize> = 16..=128;

/// Floats that the core deltas of a group may take together.
const MAX_GROUP_FLOATS: usize = 16 << 20;

/// Upper bound of [`core_update_period`].
const MAX_CORE_UPDATE_PERIOD: usize = 8;

/// Fraction of its error that an entry may correct by updating the core, so that it does not disturb other entries.
const MAX_CORE_CORRECTION: f64 = 0.1;

/// Blocks of one class that are merged together.
pub(super) struct ClassGroup {
    pub class: usize,
    /// Indices of blocks within the class.
    pub blocks: Vec<usize>,
}

/// Returns the largest number of blocks of a group, for a core of `core_len` floats.
pub(super) fn max_group_blocks(core_len: usize) -> usize {
    (MAX_GROUP_FLOATS / core_len.max(1)).clamp(*MAX_GROUP_BLOCKS.start(), *MAX_GROUP_BLOCKS.end())
}

/// Returns the number of entries per update of a full core with learning rate `eta`. One of so many entries updates the
/// core, by so much more, as one of P threads does in Algorithm 1 of the paper. Every entry updates its rows, but far fewer
/// updates suffice for the core if a single one hardly changes predictions.
pub(super) fn core_update_period(curvature: &Curvature, eta: f64) -> usize {
    let total = |basis: &CurvatureBasis| f64::from(basis.curvature.iter().sum::<f32>());
    let correction = eta * curvature.core.iter().map(total).product::<f64>();
    ((MAX_CORE_CORRECTION / correction.max(f64::MIN_POSITIVE)) as usize)
        .clamp(1, MAX_CORE_UPDATE_PERIOD)
}

/// Returns the groups of a partial pass over all classes. The pass takes the blocks at `units` of [`UNITS_PER_BLOCK`] of a
/// random order of each class, which `stream_id` determines.
pub(super) fn groups_of_pass(
    classes: &ConflictFreeClasses,
    units: Range<usize>,
    max_group_blocks: usize,
    stream_id: &[u64],
) -> Vec<ClassGroup> {
    let mut groups = Vec::new();
    let mut stream = RandomStream::new(stream_id);
    for class in 0..classes.count() {
        let count = classes.block_range(class).len();
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
        let position = |unit: usize| count * unit / UNITS_PER_BLOCK;
        let blocks = &order[position(units.start)..position(units.end)];
        let group_count = blocks.len().div_ceil(max_group_blocks);
        let cut = |k: usize| blocks.len() * k / group_count;
        groups.extend((0..group_count).map(|k| ClassGroup {
            class,
            blocks: blocks[cut(k)..cut(k + 1)].to_vec(),
        }));
    }
    groups
}
