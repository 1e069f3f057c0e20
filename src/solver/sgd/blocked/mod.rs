//! The default algorithm: SGD on batches in blocks that have nothing in common.
//!
//! An epoch goes in steps. In a step of the tensor, block p has part p + s of each cut mode, s being
//! its own for every mode and step: no two blocks share a row, so they run at once, on any number of
//! threads. The core, the rows of modes that are not cut and the columns of small matrices are copied
//! for every block and merged after the step, in block order: between their average and the sum of
//! what they moved, as curvature has it ([`curvature`]). Matrices and graphs that no block owns have
//! steps of their own in between.
//!
//! If hardly any entries share a row, those of a step are cells of a class instead, which have no rows in
//! common at all, and only the core is copied ([`groups`]).
//!
//! Nothing depends on which thread runs what, so that the result is the same for any number of them.

mod algorithm;
mod blocks;
mod core_merge;
mod curvature;
mod groups;
mod merge_interval;
mod plan;
mod replica_divergence;
mod replicas;
mod steps;
mod task_order;
mod tree_reduce;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

pub(in crate::solver) use algorithm::BlockedSgd;
use blocks::{Tools, Work, matrix_forms};
use core_merge::CoreMerge;
use curvature::{Basis, Curvature};
use groups::{Group, Groups, most_cells};
use merge_interval::{Apart, Pace};
use plan::Place;
pub(in crate::solver) use plan::Plan;
use replica_divergence::Probe;
use replicas::Slot;
use steps::{Step, pairs};
use task_order::{Turns, take_turns};

use crate::error::Result;
use crate::kernel::{
    ConflictFreeClasses, ExclusiveRows, Form, LONGEST, RowPartition, Rule, Scratch,
};
use crate::solver::data::Data;
use crate::solver::stream_ids;

use crate::model::Model;
use crate::simd::Level;

use crate::simd::AlignedVec;

use crate::kernel::{CoreKind, CoreShape};
use crate::options::{Options, Penalty};
use crate::parallel::{Barrier, ThreadPool};
use crate::problem::MatrixKind;
use crate::random::hash_words;

/// What the step size times the curvature of a whole batch may be.
const STEADY: f64 = 0.7;

/// What a cell counts as when sweeps take shares of it.
const WHOLE: usize = 1 << 10;

/// What stays the same from epoch to epoch.
pub(in crate::solver) struct Blocked<'a> {
    pub data: &'a Data,
    pub plan: &'a Plan,
    pub options: &'a Options,
    pub level: Level,
}

/// Everything an epoch changes, as threads see it.
struct Shared<'a> {
    form: Form,
    core: ExclusiveRows<'a>,
    factors: Vec<ExclusiveRows<'a>>,
    columns: Vec<ExclusiveRows<'a>>,
    slots: Vec<RwLock<Slot>>,
}

/// The settings of an epoch.
struct Epoch<'a> {
    eta: f32,
    core_eta: f32,
    name: &'a [u64],
    /// One key out of the name.
    key: u64,
    /// For each mode, the penalty of each row per entry.
    penalties: Vec<&'a [f32]>,
    /// For each mode, the row that penalties pull to.
    priors: Vec<&'a [f32]>,
    /// What stands between rows and columns of each matrix.
    matrix_forms: Vec<Form>,
    /// The most entries of a batch of each matrix, with its steepest direction.
    matrix_limits: Vec<(usize, Vec<f32>, f32)>,
    /// The steepest direction of the fiber mode's rows, and its share of all curvature.
    steepest: (Vec<f32>, f64),
    probe: Probe,
    rule: Rule,
    curvature: Curvature,
    core: CoreMerge,
    /// The most cells of a group, and one of how many of their entries moves the core.
    cells: usize,
    core_every: usize,
}

/// What a sweep does: its share of each cell, out of [`WHOLE`], in these steps.
#[derive(Default)]
struct Sweep {
    from: usize,
    until: usize,
    steps: Vec<Step>,
    /// Of a tensor in classes.
    groups: Vec<Group>,
    /// What the moves of the core are multiplied with.
    core_shares: Vec<f32>,
}

impl Sweep {
    /// The share of all entries.
    fn share(&self) -> f64 {
        (self.until - self.from) as f64 / WHOLE as f64
    }
}

impl Blocked<'_> {
    /// Runs one epoch, in sweeps as `pace` has them. Returns the sum of squared errors as
    /// they were met on the way, and the pace for the next epoch; `None` if
    /// `cancelled` said so before the end. `name` makes the order of this epoch its own.
    pub(in crate::solver) fn epoch(
        &self,
        model: &mut Model,
        eta: f64,
        pace: Pace,
        name: &[u64],
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(f64, Pace)>> {
        let curvature = Curvature::measure(model, self.data, self.level);
        let form = Form::tensor(&model.shape, self.plan.spec.fiber_mode);
        let core_merge = self.core_merge(&form, &model.shape, &curvature);
        let epoch = Epoch {
            core: core_merge,
            cells: most_cells(form.slabs() * form.slab()),
            core_every: groups::core_every(&curvature, eta * self.data.core_eta_scale),
            eta: eta as f32,
            core_eta: (eta * self.data.core_eta_scale) as f32,
            priors: self.data.prior_means.iter().map(Vec::as_slice).collect(),
            rule: self.rule(),
            name,
            key: hash_words(name),
            penalties: self.data.row_penalty.iter().map(Vec::as_slice).collect(),
            matrix_forms: matrix_forms(self),
            matrix_limits: self.matrix_limits(&curvature, eta),
            steepest: match self.plan.spec.fiber_mode {
                Some(f) => curvature.slopes[f].steepest(),
                None => (Vec::new(), 0.0),
            },
            probe: Probe::new(model, self.data, &self.plan.spec),
            curvature,
        };
        let mut core = form.fiber_first(&model.core);
        let core_parts = RowPartition::contiguous(form.slabs(), 4);
        let mut factors = Vec::new();
        for (mode, plan) in model.modes.iter_mut().zip(&self.plan.modes) {
            let stride = mode.factor.stride();
            let memory = mode.factor.as_mut_slice()?;
            factors.push(ExclusiveRows::new(memory, stride, &plan.parts));
        }
        let none = RowPartition::contiguous(0, 1);
        let mut columns = Vec::new();
        for (matrix, plan) in model.matrices.iter_mut().zip(&self.plan.matrices) {
            let stride = matrix.factor.stride();
            let memory = matrix.factor.as_mut_slice()?;
            let parts = plan.columns.as_ref().unwrap_or(&none);
            columns.push(ExclusiveRows::new(memory, stride, parts));
        }
        let core_rows = ExclusiveRows::new(&mut core, form.slab(), &core_parts);
        let shared = Shared {
            slots: (0..self.blocks())
                .map(|_| RwLock::new(self.slot(&core_rows, &factors, &columns)))
                .collect(),
            form,
            core: core_rows,
            factors,
            columns,
        };
        let core_len = shared.core.partition().row_count() * shared.core.stride();
        let classes = self.data.tensor.classes();
        let threads = pool.threads().min(self.widest());
        let groups = classes.map(|c| Groups::new(c, &shared.factors, epoch.cells, threads));
        let barrier = Barrier::new(threads);
        let spec = &self.plan.spec;
        let turns = Turns::new(self.widest(), spec.axes, spec.parts_per_axis);
        let merging = AtomicUsize::new(0);
        let merges = self.merges(&shared);
        // The sweep that runs, and the one before or after it.
        let sweeps = [self.sweep(&epoch, 0, pace), Sweep::default()].map(RwLock::new);
        let looking = Mutex::new((Apart::default(), pace, 0.0));
        // Makes ready for a step, while all threads wait.
        let prepare = |sweep: &Sweep, at: usize| {
            if let (Some(groups), Some(Step::Group(g))) = (&groups, sweep.steps.get(at)) {
                groups.open(&sweep.groups[*g]);
            }
        };
        prepare(&sweeps[0].read().unwrap_or_else(|e| e.into_inner()), 0);
        let done = pool.run(threads, cancelled, |worker| {
            let _guard = barrier.cancel_on_panic();
            let mut tools = Tools {
                scratch: Scratch::default(),
                probe: epoch.probe.kernel(self.level),
                core: AlignedVec::zeroed(core_len),
            };
            let stop = || worker.stop.requested() || barrier.is_cancelled();
            for number in 0.. {
                let now = sweeps[number % 2].read().unwrap_or_else(|e| e.into_inner());
                let work = Work {
                    fit: self,
                    shared: &shared,
                    epoch: &epoch,
                    sweep: &now,
                    turns: &turns,
                };
                // Groups are never together, so that steps are counted right where there are any.
                let all_steps = steps::together(&now.steps, self.plan.together);
                for (at, steps) in all_steps.enumerate() {
                    if let (Step::Group(g), Some(groups)) = (steps[0], &groups) {
                        work.cells(groups, &now.groups[g], worker.index, &mut tools);
                        let next = || {
                            let mut looking = looking.lock().unwrap_or_else(|e| e.into_inner());
                            work.merge_group(groups, &now.groups[g], &mut looking.0);
                            prepare(&now, at + 1);
                            stop()
                        };
                        if !barrier.wait(next) {
                            return;
                        }
                        continue;
                    }
                    let me = (worker.index, threads);
                    let tasks = self.tasks(steps[0]);
                    let all = turns.take(steps.len(), tasks, me, |round, task| {
                        work.task(steps, round, task, stop, &mut tools)
                    });
                    if !all {
                        barrier.cancel();
                    }
                    // The last thread to arrive prepares what comes next, while the others wait.
                    let next = || {
                        turns.again();
                        prepare(&now, at + 1);
                        stop()
                    };
                    if !barrier.wait(next) {
                        return;
                    }
                    if !matches!(steps[0], Step::Blocks(_)) {
                        continue;
                    }
                    take_turns(&merging, merges.len(), |t| work.merge(merges[t]));
                    let next = || {
                        merging.store(0, Ordering::Relaxed);
                        let mut looking = looking.lock().unwrap_or_else(|e| e.into_inner());
                        self.look(&shared, &mut looking.0);
                        stop()
                    };
                    if !barrier.wait(next) {
                        return;
                    }
                }
                let next = || {
                    let mut looking = looking.lock().unwrap_or_else(|e| e.into_inner());
                    let (apart, pace, squares) = &mut *looking;
                    self.next_sweeps(apart, pace);
                    *squares += apart.squares;
                    *apart = Apart::default();
                    let mut after = sweeps[(number + 1) % 2]
                        .write()
                        .unwrap_or_else(|e| e.into_inner());
                    *after = self.sweep(&epoch, now.until, *pace);
                    prepare(&after, 0);
                    stop()
                };
                if !barrier.wait(next) || now.until == WHOLE {
                    return;
                }
            }
        })?;
        drop(groups);
        let Shared { form, .. } = shared;
        form.fiber_in_place(&core, &mut model.core);
        let (_, pace, squares) = looking.into_inner().unwrap_or_else(|e| e.into_inner());
        Ok(done.map(|_| (squares, pace)))
    }

    /// How copies of the core are merged in this epoch.
    fn core_merge(&self, form: &Form, shape: &CoreShape, curvature: &Curvature) -> CoreMerge {
        let order = form.mode_order();
        let ranks: Vec<usize> = order.iter().map(|&n| shape.ranks[n]).collect();
        let bases: Vec<&Basis> = match shape.kind {
            CoreKind::Full => order.iter().map(|&n| &curvature.core[n]).collect(),
            CoreKind::Diagonal => curvature.core.iter().collect(),
        };
        CoreMerge::new(self.level, &CoreShape::new(shape.kind, &ranks), &bases)
    }

    /// The sweep that begins with share `from` of each cell.
    fn sweep(&self, epoch: &Epoch<'_>, from: usize, pace: Pace) -> Sweep {
        let sweeps = pace.sweeps.min(self.most_sweeps());
        let until = (from + WHOLE / sweeps).min(WHOLE);
        // Blocks have nearly the same number of entries.
        let entries = self.data.tensor.len() as f64 * (until - from) as f64 / WHOLE as f64;
        let all = entries / self.plan.steps() as f64 * self.plan.together as f64;
        let one = all / self.plan.spec.parts_per_axis as f64;
        let groups = match self.data.tensor.classes() {
            Some(classes) => self.groups(classes, epoch.name, (from, until), epoch.cells),
            None => Vec::new(),
        };
        Sweep {
            from,
            until,
            steps: self.steps(
                &[epoch.name, &[from as u64]].concat(),
                from == 0,
                groups.len(),
            ),
            core_shares: self.core_shares(epoch, (all, one)),
            groups,
        }
    }

    /// What moves of the core are multiplied with, for so many entries in all and in one block.
    fn core_shares(&self, epoch: &Epoch<'_>, (all, one): (f64, f64)) -> Vec<f32> {
        let entries = (all as f32, one as f32);
        let penalty = self.data.core_penalty;
        epoch.core.shares(epoch.core_eta, penalty, entries)
    }

    fn rule(&self) -> Rule {
        Rule {
            l1: self.options.penalty == Penalty::L1,
            nonneg: self.options.nonneg,
        }
    }

    /// The same for the columns of matrices, whose slopes are the rows.
    fn matrix_limits(&self, curvature: &Curvature, eta: f64) -> Vec<(usize, Vec<f32>, f32)> {
        let limit = |basis: &Basis| {
            let (direction, share) = basis.steepest();
            let size = f64::from(basis.curvature.iter().sum::<f32>());
            let limit = steady(eta * size * (1.0 - share));
            (limit, direction, (size * share) as f32)
        };
        curvature.columns.iter().map(limit).collect()
    }

    /// Tasks of a step.
    fn tasks(&self, step: Step) -> usize {
        match step {
            Step::Blocks(_) | Step::Group(_) => self.blocks(),
            Step::Matrix(m, _) => self.plan.matrices[m].spec.parts_per_axis,
            Step::Graph(m, round) => pairs(self.plan.matrices[m].spec.parts_per_axis, round),
        }
    }

    /// Blocks of the tensor in a step; none if its entries are in classes.
    fn blocks(&self) -> usize {
        match self.plan.longest {
            Some(_) => 0,
            None => self.plan.spec.parts_per_axis,
        }
    }

    /// The most tasks a step has.
    fn widest(&self) -> usize {
        let matrices = self.plan.matrices.iter().map(|m| m.spec.parts_per_axis);
        let classes = self.data.tensor.classes();
        let cells = |c: &ConflictFreeClasses| (0..c.count()).map(|k| c.block_range(k).len()).max();
        let cells = classes.and_then(cells).unwrap_or(0);
        matrices.chain([self.blocks(), cells]).max().unwrap_or(1)
    }

    /// The steps of a sweep, in order. Matrices and graphs that have steps of their own are worked on
    /// once per epoch.
    fn steps(&self, name: &[u64], all: bool, groups: usize) -> Vec<Step> {
        let alone: Vec<(usize, MatrixKind, usize)> = self
            .plan
            .matrices
            .iter()
            .enumerate()
            .filter(|(_, plan)| all && matches!(plan.place, Place::Steps))
            .map(|(m, plan)| (m, self.data.matrices[m].kind, plan.spec.parts_per_axis))
            .collect();
        let name = [&[self.options.seed, stream_ids::BLOCK_ORDER], name].concat();
        if self.plan.longest.is_some() {
            return steps::order((groups, 1), Step::Group, &alone, &name);
        }
        let in_a_row = match self.plan.together {
            1 => 1,
            _ => self.plan.spec.parts_per_axis,
        };
        steps::order((self.plan.steps(), in_a_row), Step::Blocks, &alone, &name)
    }
}

/// The longest batch whose curvature, given that of one entry, keeps it steady.
fn steady(curvature: f64) -> usize {
    let longest = STEADY / curvature.max(1e-9);
    // A curvature that is not a number belongs to a fit that has diverged, which is found out later.
    (longest as usize).clamp(1, LONGEST)
}
