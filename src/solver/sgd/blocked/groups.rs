//! Steps of a tensor whose entries are in classes: groups of cells of one class, which threads take as
//! they come by. Every cell works on a copy of the core, and all copies of a group are merged.

use std::array;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

use super::blocks::{Tools, Work};
use super::curvature::{Basis, Curvature};
use super::merge_interval::Apart;
use super::task_order::Runs;
use super::tree_reduce::Gather;
use super::{Blocked, WHOLE};
use crate::kernel::MAX_ORDER;
use crate::kernel::{
    self, ClassRows, ConflictFreeClasses, EntryBlock, ExclusiveRows, Hold, Settings,
};
use crate::random::RandomStream;
use crate::solver::stream_ids;

/// Cells of a group at most, and the floats that their moves of the core may take.
const CELLS: RangeInclusive<usize> = 16..=128;
const FLOATS: usize = 16 << 20;

/// Entries that a group should have at least where an epoch goes in sweeps.
const LEAST: usize = 4096;

/// One of so many entries moves a full core, by so much more, as in Algorithm 1 of the paper one of so
/// many threads does: every entry is a step of its rows, but the core has enough of them.
const CORE_EVERY: usize = 8;

/// How much of its error an entry may close by moving the core, so that others do not feel it.
const CORE_STEADY: f64 = 0.1;

/// Cells of a class that are merged together.
pub(super) struct Group {
    class: usize,
    /// Which of the class.
    cells: Vec<usize>,
}

/// What the groups of an epoch are run with.
pub(super) struct Groups<'a> {
    classes: &'a ConflictFreeClasses,
    factors: &'a [ExclusiveRows<'a>],
    gather: Gather,
    /// The class of the group that runs; it is opened while threads wait for each other.
    open: Mutex<Option<Arc<ClassRows<'a>>>>,
    /// Who does which cell of it.
    runs: Runs,
    /// What the moves of the core are multiplied with after it.
    shares: Mutex<Vec<f32>>,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(|e| e.into_inner())
}

impl<'a> Groups<'a> {
    pub(super) fn new(
        classes: &'a ConflictFreeClasses,
        factors: &'a [ExclusiveRows<'a>],
        most_cells: usize,
        threads: usize,
    ) -> Self {
        Groups {
            classes,
            factors,
            gather: Gather::new(most_cells),
            open: Mutex::new(None),
            runs: Runs::new(threads),
            shares: Mutex::new(Vec::new()),
        }
    }

    /// Opens the class of a group that is about to run. All threads must be waiting.
    pub(super) fn open(&self, group: &Group) {
        let class = self.classes.borrow_rows(group.class, self.factors);
        *locked(&self.open) = Some(Arc::new(class));
    }

    /// The cells of a group.
    fn cells<'g>(&'g self, group: &'g Group) -> impl Iterator<Item = &'g EntryBlock> {
        let cells = &self.classes.blocks()[self.classes.block_range(group.class)];
        group.cells.iter().map(|&c| &cells[c])
    }

    /// Entries of a group, and those of each of its cells by and large.
    fn entries(&self, group: &Group) -> (usize, f64) {
        let all: usize = self.cells(group).map(EntryBlock::len).sum();
        (all, all as f64 / group.cells.len() as f64)
    }
}

/// The most cells of a group, for a core of so many floats.
pub(super) fn most_cells(core: usize) -> usize {
    (FLOATS / core.max(1)).clamp(*CELLS.start(), *CELLS.end())
}

/// One of how many entries moves the core, by steps of `eta`: not all if it hardly feels one.
pub(super) fn core_every(curvature: &Curvature, eta: f64) -> usize {
    let size = |basis: &Basis| f64::from(basis.curvature.iter().sum::<f32>());
    let closed = eta * curvature.core.iter().map(size).product::<f64>();
    ((CORE_STEADY / closed.max(f64::MIN_POSITIVE)) as usize).clamp(1, CORE_EVERY)
}

/// So many sweeps that groups still have entries.
pub(super) fn most_sweeps(classes: &ConflictFreeClasses) -> usize {
    1 << (classes.len() / classes.count().max(1) / LEAST)
        .clamp(1, WHOLE)
        .ilog2()
}

impl Blocked<'_> {
    /// The groups of a sweep: of each class the share `from..until` of its cells, which are in another
    /// order in every epoch.
    pub(super) fn groups(
        &self,
        classes: &ConflictFreeClasses,
        name: &[u64],
        (from, until): (usize, usize),
        most: usize,
    ) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut stream =
            RandomStream::new(&[&[self.options.seed, stream_ids::ENTRY_ORDER], name].concat());
        for class in 0..classes.count() {
            let count = classes.block_range(class).len();
            let mut order: Vec<usize> = (0..count).collect();
            for i in (1..count).rev() {
                order.swap(i, stream.below(i as u64 + 1) as usize);
            }
            let cells = &order[count * from / WHOLE..count * until / WHOLE];
            let parts = cells.len().div_ceil(most);
            let cut = |p: usize| cells.len() * p / parts;
            groups.extend((0..parts).map(|p| Group {
                class,
                cells: cells[cut(p)..cut(p + 1)].to_vec(),
            }));
        }
        groups
    }
}

impl Work<'_> {
    /// Does cells of a group, together with the other threads.
    pub(super) fn cells(
        &self,
        groups: &Groups<'_>,
        group: &Group,
        thread: usize,
        tools: &mut Tools,
    ) {
        let open = locked(&groups.open).clone();
        let open = open.expect("the class was opened before the step");
        let order = self.shared.factors.len();
        groups.runs.take(group.cells.len(), thread, |task| {
            if task == 0 {
                let (all, one) = groups.entries(group);
                let shares = self.fit.core_shares(self.epoch, (all as f64, one));
                *locked(&groups.shares) = shares;
            }
            let rows = open.take_block(group.cells[task]);
            let before = self.shared.core.borrow_all();
            tools.core.copy_from_slice(before.rows());
            let mut holds: [Hold<'_>; MAX_ORDER] = array::from_fn(|_| Hold::Class(&rows));
            let settings = Settings {
                core_penalty: self.fit.data.core_penalty,
                core_eta: self.epoch.core_eta,
                core_every: self.epoch.core_every,
                ..self.settings(
                    1.0,
                    &self.epoch.penalties,
                    &self.epoch.priors,
                    &self.fit.data.mode_eta_scales,
                )
            };
            let squares = kernel::run(
                rows.block(),
                &self.shared.form,
                &mut tools.core,
                &mut holds[..order],
                &settings,
                &self.name(0, rows.block().index()),
                &mut tools.scratch,
            );
            groups.gather.put(task, group.cells.len(), |sum| {
                let both = tools.core.iter().zip(before.rows());
                sum.moves.clear();
                sum.moves.extend(both.map(|(x, y)| x - y));
                sum.squares = squares;
            });
        });
    }

    /// Merges what the cells of a group have done, when all have.
    pub(super) fn merge_group(&self, groups: &Groups<'_>, group: &Group, apart: &mut Apart) {
        *locked(&groups.open) = None;
        groups.runs.again();
        let mut sum = groups.gather.total();
        apart.add(
            sum.squares,
            groups.cells(group).map(EntryBlock::total_weight).sum(),
        );
        self.move_core(&mut sum.moves, &locked(&groups.shares));
    }
}
