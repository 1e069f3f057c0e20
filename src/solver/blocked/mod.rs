//! The default algorithm: SGD on batches in blocks that have nothing in common.
//!
//! An epoch goes in steps. In a step of the tensor, block p has part p + s of each cut mode, s being
//! its own for every mode and step: no two blocks share a row, so they run at once, on any number of
//! threads. The core, the rows of modes that are not cut and the columns of small matrices are copied
//! for every block and merged after the step, in block order: between their average and the sum of
//! what they moved, as curvature has it ([`curvature`]). Matrices and graphs that no block owns have steps of their own in between.
//!
//! Nothing depends on which thread runs what, so that the result is the same for any number of them.

mod copies;
mod core;
mod curvature;
mod pace;
mod plan;
mod probe;
mod steps;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use copies::{Copied, Slot, merge};
use core::CoreMerge;
use curvature::{Basis, Curvature};
use pace::Apart;
pub(super) use pace::Pace;
use plan::Place;
pub(super) use plan::Plan;
use probe::{Probe, ProbeKernel};
use steps::{Step, round_pairs};

use super::data::{Data, stream};
use crate::error::Result;
use crate::kernel::{
    self, Cell, Form, Hold, LONGEST, Lease, LeasedRows, Level, Parts, Rule, Scratch, Settings,
};
use crate::model::{CoreKind, CoreShape, Model};
use crate::options::{Options, Penalty};
use crate::problem::MatrixKind;
use crate::random::{key, mix};
use crate::schedule::{Crew, Meeting};

/// What the step size times the curvature of a whole batch may be.
const STEADY: f64 = 0.7;

/// What a cell counts as when sweeps take shares of it.
const WHOLE: usize = 1 << 10;

/// What a thread has of its own.
struct Tools {
    scratch: Scratch,
    probe: ProbeKernel,
}

/// What stays the same from epoch to epoch.
pub(super) struct Blocked<'a> {
    pub data: &'a Data,
    pub plan: &'a Plan,
    pub options: &'a Options,
    pub level: Level,
}

/// Everything an epoch changes, as threads see it.
struct Shared<'a> {
    form: Form,
    core: LeasedRows<'a>,
    factors: Vec<LeasedRows<'a>>,
    columns: Vec<LeasedRows<'a>>,
    slots: Vec<RwLock<Slot>>,
}

/// The settings of an epoch.
struct Epoch<'a> {
    eta: f32,
    name: &'a [u64],
    /// The most entries of a batch of each matrix, with its steepest direction.
    matrix_limits: Vec<(usize, Vec<f32>, f32)>,
    /// The steepest direction of the fiber mode's rows, and its share of all curvature.
    steepest: (Vec<f32>, f64),
    probe: Probe,
    rule: Rule,
    curvature: Curvature,
    core: CoreMerge,
    /// What the moves of the core are multiplied with in this sweep.
    core_shares: RwLock<Vec<f32>>,
}

impl<'a> Blocked<'a> {
    /// Runs one epoch, in sweeps as `pace` has them. Returns the sum of squared errors as
    /// they were met on the way, and the pace for the next epoch; `None` if
    /// `cancelled` said so before the end. `name` makes the order of this epoch its own.
    pub(super) fn epoch(
        &self,
        model: &mut Model,
        eta: f64,
        pace: Pace,
        name: &[u64],
        crew: &Crew,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(f64, Pace)>> {
        let curvature = Curvature::measure(model, self.data, self.level);
        let form = Form::tensor(&model.shape, self.plan.spec.fiber);
        let core_merge = self.core_merge(&form, &model.shape, &curvature);
        let shares = self.core_shares(&core_merge, eta, WHOLE / pace.sweeps);
        let epoch = Epoch {
            core: core_merge,
            core_shares: RwLock::new(shares),
            eta: eta as f32,
            rule: self.rule(),
            name,
            matrix_limits: self.matrix_limits(&curvature, eta),
            steepest: match self.plan.spec.fiber {
                Some(f) => curvature.slopes[f].steepest(),
                None => (Vec::new(), 0.0),
            },
            probe: Probe::new(model, self.data, &self.plan.spec),
            curvature,
        };
        let mut core = form.fiber_first(&model.core);
        let core_parts = Parts::neighbours(form.slabs(), 4);
        let mut factors = Vec::new();
        for (mode, plan) in model.modes.iter_mut().zip(&self.plan.modes) {
            let stride = mode.factor.stride();
            let memory = mode.factor.as_mut_slice()?;
            factors.push(LeasedRows::new(memory, stride, &plan.parts));
        }
        let none = Parts::neighbours(0, 1);
        let mut columns = Vec::new();
        for (matrix, plan) in model.matrices.iter_mut().zip(&self.plan.matrices) {
            let stride = matrix.factor.stride();
            let memory = matrix.factor.as_mut_slice()?;
            let parts = plan.columns.as_ref().unwrap_or(&none);
            columns.push(LeasedRows::new(memory, stride, parts));
        }
        let core_rows = LeasedRows::new(&mut core, form.slab(), &core_parts);
        let shared = Shared {
            slots: (0..self.plan.spec.pieces)
                .map(|_| RwLock::new(self.slot(&core_rows, &factors, &columns)))
                .collect(),
            form,
            core: core_rows,
            factors,
            columns,
        };
        let threads = crew.threads().min(self.widest());
        let meeting = Meeting::new(threads);
        let tasks = Turns::new(self.widest());
        let merging = AtomicUsize::new(0);
        let merges = self.merges(&shared);
        let sweeps = AtomicUsize::new(pace.sweeps);
        let looking = Mutex::new((Apart::default(), pace));
        let done = crew.run(threads, cancelled, |worker| {
            let _guard = meeting.guard();
            let mut tools = Tools {
                scratch: Scratch::default(),
                probe: epoch.probe.kernel(self.level),
            };
            // The last thread to arrive prepares what comes next, while the others wait.
            let stop = || worker.stop.requested();
            let (mut from, mut round) = (0, 0);
            while from < WHOLE {
                let share = WHOLE / sweeps.load(Ordering::Relaxed);
                let part = from..(from + share).min(WHOLE);
                let steps = self.steps(&[name, &[from as u64]].concat(), from == 0);
                for &step in &steps {
                    tasks.take(round, self.tasks(step), worker.number, threads, |t| {
                        self.run(&shared, &epoch, step, &part, t, &mut tools);
                    });
                    round += 1;
                    if !meeting.wait(stop) {
                        return;
                    }
                    if !matches!(step, Step::Blocks(_)) {
                        continue;
                    }
                    take_turns(&merging, merges.len(), |t| {
                        merge(&shared, &epoch, &part, merges[t]);
                    });
                    let next = || {
                        merging.store(0, Ordering::Relaxed);
                        let mut looking = looking.lock().unwrap_or_else(|e| e.into_inner());
                        self.look(&shared, &mut looking.0);
                        stop()
                    };
                    if !meeting.wait(next) {
                        return;
                    }
                }
                let next = || {
                    let mut looking = looking.lock().unwrap_or_else(|e| e.into_inner());
                    let (apart, pace) = &mut *looking;
                    self.next_sweeps(apart, pace);
                    sweeps.store(pace.sweeps, Ordering::Relaxed);
                    let share = WHOLE / pace.sweeps;
                    *epoch.core_shares.write().unwrap_or_else(|e| e.into_inner()) =
                        self.core_shares(&epoch.core, eta, share.min(WHOLE - part.end));
                    *apart = Apart::default();
                    stop()
                };
                if !meeting.wait(next) {
                    return;
                }
                from = part.end;
            }
        })?;
        let squares = shared
            .slots
            .iter()
            .map(|slot| slot.read().unwrap_or_else(|e| e.into_inner()).squares)
            .sum();
        let Shared { form, .. } = shared;
        form.fiber_in_place(&core, &mut model.core);
        let (_, pace) = looking.into_inner().unwrap_or_else(|e| e.into_inner());
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

    /// What moves of the core are multiplied with in a sweep that takes `share` of each cell: blocks of
    /// a step have nearly the same number of entries.
    fn core_shares(&self, merge: &CoreMerge, eta: f64, share: usize) -> Vec<f32> {
        let entries = self.data.tensor.len() as f64 * share as f64 / WHOLE as f64;
        let all = entries / self.plan.steps() as f64;
        let one = all / self.plan.spec.pieces as f64;
        merge.shares(eta as f32, all as f32, one as f32)
    }

    fn rule(&self) -> Rule {
        Rule {
            l1: self.options.penalty == Penalty::L1,
            nonneg: self.options.nonneg,
        }
    }

    /// Runs one task of a step.
    fn run(
        &self,
        shared: &Shared<'_>,
        epoch: &Epoch<'_>,
        step: Step,
        share: &Range<usize>,
        task: usize,
        tools: &mut Tools,
    ) {
        match step {
            Step::Blocks(s) => {
                let cell = self.plan.cell(s, task);
                self.block(shared, epoch, (cell, share), task, tools);
            }
            Step::Matrix(m, s) => {
                let plan = &self.plan.matrices[m];
                let pieces = plan.spec.pieces;
                let cell = plan.spec.cell(&[task, (task + s) % pieces]);
                let cell = &self.data.matrices[m].entries.cells()[cell];
                if cell.len() == 0 {
                    return;
                }
                let place = cell.place();
                let rows = shared.factors[self.data.matrices[m].mode].lease(place[0]);
                let columns = shared.columns[m].lease(place[1]);
                let mut holds = [Hold::Leased(&rows), Hold::Leased(&columns)];
                self.matrix(m, cell, 0.0..1.0, epoch, &mut holds, tools);
            }
            Step::Graph(m, round) => {
                let data = &self.data.matrices[m];
                let spec = &self.plan.matrices[m].spec;
                let (p, q) = round_pairs(spec.pieces, round)[task];
                let rows = &shared.factors[data.mode];
                let mut leases = vec![rows.lease(p)];
                if q != p {
                    leases.push(rows.lease(q));
                }
                let cells = [spec.cell(&[p, q]), spec.cell(&[q, p])];
                let penalty = &self.data.matrix_row_penalty[data.mode][..];
                let settings = Settings {
                    level: self.level,
                    eta: epoch.eta,
                    weight: data.weight,
                    rule: epoch.rule,
                    core_penalty: 0.0,
                    penalties: vec![penalty; 2],
                    limit: LONGEST,
                    steepest: (&[], 0.0),
                    share: 0.0..1.0,
                };
                for &cell in &cells[..1 + usize::from(p != q)] {
                    let name = self.name(epoch, m + 1, cell);
                    let cell = &data.entries.cells()[cell];
                    kernel::run_graph(cell, &mut leases, &settings, &name, &mut tools.scratch);
                }
            }
        }
    }

    /// The name of what is random in a cell of the tensor (part 0) or a matrix (part m + 1).
    fn name(&self, epoch: &Epoch<'_>, part: usize, cell: usize) -> [u64; 4] {
        let epoch = key(epoch.name);
        [
            self.options.seed ^ stream::BLOCK,
            epoch,
            part as u64,
            cell as u64,
        ]
    }

    /// Runs a block: a cell of the tensor and the matrix entries that go with it.
    fn block(
        &self,
        shared: &Shared<'_>,
        epoch: &Epoch<'_>,
        (cell, share): (usize, &Range<usize>),
        slot: usize,
        tools: &mut Tools,
    ) {
        let mut slot = shared.slots[slot]
            .write()
            .unwrap_or_else(|e| e.into_inner());
        let slot = &mut *slot;
        slot.core.load(&shared.core);
        for (copy, rows) in slot.modes.iter_mut().zip(&shared.factors) {
            copy.iter_mut().for_each(|c| c.load(rows));
        }
        for (copy, rows) in slot.columns.iter_mut().zip(&shared.columns) {
            copy.iter_mut().for_each(|c| c.load(rows));
        }
        let place = self.plan.spec.place(cell);
        let leases: Vec<Option<Lease<'_>>> = shared
            .factors
            .iter()
            .zip(&self.plan.modes)
            .map(|(rows, plan)| plan.coordinate.map(|c| rows.lease(place[c])))
            .collect();
        // Matrices come before or after the tensor, as chance has it.
        let first = mix(key(epoch.name) ^ cell as u64) & 1 == 1;
        if first {
            self.matrices(shared, epoch, (cell, share), slot, &leases, tools);
        }
        self.tensor(shared, epoch, (cell, share), slot, &leases, tools);
        if !first {
            self.matrices(shared, epoch, (cell, share), slot, &leases, tools);
        }
        let modes = slot.modes.iter().map(|m| m.as_ref().map(|m| &m.rows[..]));
        tools
            .probe
            .predict(&epoch.probe, &slot.core.rows, modes, &mut slot.probe);
    }

    fn tensor(
        &self,
        shared: &Shared<'_>,
        epoch: &Epoch<'_>,
        (number, share): (usize, &Range<usize>),
        slot: &mut Slot,
        leases: &[Option<Lease<'_>>],
        tools: &mut Tools,
    ) {
        let cell = &self.data.tensor.cells()[number];
        let (limit, steepest) = self.limit(epoch, cell, slot, leases, &mut tools.probe);
        for (n, copy) in slot.modes.iter_mut().enumerate() {
            copy.iter_mut().for_each(|c| cell.count(n, &mut c.counts));
        }
        slot.core.counts.fill(cell.len() as u32);
        let mut holds: Vec<Hold<'_>> = leases
            .iter()
            .zip(&mut slot.modes)
            .map(|(lease, copy)| hold(lease.as_ref(), copy.as_mut()))
            .collect();
        let settings = Settings {
            level: self.level,
            eta: epoch.eta,
            weight: 1.0,
            rule: epoch.rule,
            core_penalty: self.data.core_penalty,
            penalties: self.data.row_penalty.iter().map(Vec::as_slice).collect(),
            limit,
            steepest: (&epoch.steepest.0, steepest),
            share: fraction(share),
        };
        let name = self.name(epoch, 0, number);
        let core = &mut slot.core.rows;
        slot.last_squares = kernel::run(
            cell,
            &shared.form,
            core,
            &mut holds,
            &settings,
            &name,
            &mut tools.scratch,
        );
        slot.last_seen = cell.len() as f64 * share.len() as f64 / WHOLE as f64;
        slot.squares += slot.last_squares;
    }

    /// The matrix entries that go with a block.
    fn matrices(
        &self,
        shared: &Shared<'_>,
        epoch: &Epoch<'_>,
        (number, share): (usize, &Range<usize>),
        slot: &mut Slot,
        leases: &[Option<Lease<'_>>],
        tools: &mut Tools,
    ) {
        for (m, plan) in self.plan.matrices.iter().enumerate() {
            if !matches!(plan.place, Place::Blocks) {
                continue;
            }
            let data = &self.data.matrices[m];
            let cell = &data.entries.cells()[number];
            if cell.len() == 0 {
                continue;
            }
            let lease = plan.spec.cuts[1]
                .as_ref()
                .map(|(c, _)| shared.columns[m].lease(cell.place()[*c]));
            if let Some(copy) = slot.columns[m].as_mut() {
                cell.count(1, &mut copy.counts);
            }
            let copy = slot.columns[m].as_mut();
            let mut holds = [
                hold(leases[data.mode].as_ref(), None),
                hold(lease.as_ref(), copy),
            ];
            self.matrix(m, cell, fraction(share), epoch, &mut holds, tools);
        }
    }

    fn matrix(
        &self,
        m: usize,
        cell: &Cell,
        share: Range<f64>,
        epoch: &Epoch<'_>,
        holds: &mut [Hold<'_>],
        tools: &mut Tools,
    ) {
        let data = &self.data.matrices[m];
        let settings = Settings {
            level: self.level,
            eta: epoch.eta,
            weight: data.weight,
            rule: epoch.rule,
            core_penalty: 0.0,
            penalties: vec![
                &self.data.matrix_row_penalty[data.mode],
                &data.column_penalty,
            ],
            limit: epoch.matrix_limits[m].0,
            steepest: (&epoch.matrix_limits[m].1, epoch.matrix_limits[m].2),
            share,
        };
        let name = self.name(epoch, m + 1, cell.spec().cell(&cell.place()));
        let form = Form::matrix(data.rank);
        kernel::run(
            cell,
            &form,
            &mut [],
            holds,
            &settings,
            &name,
            &mut tools.scratch,
        );
    }

    /// The most entries of a batch: a batch steps once where single entries step many times, and must
    /// not overshoot where those would not. Along the row of the fiber mode and the core it closes
    /// eta times the squared slopes of its entries of the distance. The direction in which that is most
    /// is damped instead; its curvature comes with the limit. Slopes change fast at the start of a
    /// fit, so every block looks at some of its own entries.
    fn limit(
        &self,
        epoch: &Epoch<'_>,
        cell: &Cell,
        slot: &Slot,
        leases: &[Option<Lease<'_>>],
        probe: &mut ProbeKernel,
    ) -> (usize, f32) {
        if self.plan.spec.fiber.is_none() {
            return (LONGEST, 0.0);
        }
        let row = |n: usize, row: u32| match (&leases[n], &slot.modes[n]) {
            (Some(lease), _) => lease.get(row),
            (None, Some(copy)) => copy.row(row),
            (None, None) => unreachable!("what is not cut is copied"),
        };
        let (rows, core) = probe.curvature(&epoch.probe, cell, &slot.core.rows, row);
        let steepest = rows * epoch.steepest.1;
        let limit = steady(f64::from(epoch.eta) * (rows - steepest + core));
        (limit, steepest as f32)
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
            Step::Blocks(_) => self.plan.spec.pieces,
            Step::Matrix(m, _) => self.plan.matrices[m].spec.pieces,
            Step::Graph(m, round) => round_pairs(self.plan.matrices[m].spec.pieces, round).len(),
        }
    }

    /// The most tasks a step has.
    fn widest(&self) -> usize {
        let matrices = self.plan.matrices.iter().map(|m| m.spec.pieces);
        matrices.chain([self.plan.spec.pieces]).max().unwrap_or(1)
    }

    /// The steps of a sweep, in order. Matrices and graphs that have steps of their own are worked on
    /// once per epoch.
    fn steps(&self, name: &[u64], all: bool) -> Vec<Step> {
        let alone: Vec<(usize, MatrixKind, usize)> = self
            .plan
            .matrices
            .iter()
            .enumerate()
            .filter(|(_, plan)| all && matches!(plan.place, Place::Steps))
            .map(|(m, plan)| (m, self.data.matrices[m].kind, plan.spec.pieces))
            .collect();
        let name = [&[self.options.seed, stream::ORDER], name].concat();
        steps::order(self.plan.steps(), &alone, &name)
    }
}

fn fraction(share: &Range<usize>) -> Range<f64> {
    share.start as f64 / WHOLE as f64..share.end as f64 / WHOLE as f64
}

/// The longest batch whose curvature, given that of one entry, keeps it steady.
fn steady(curvature: f64) -> usize {
    let longest = STEADY / curvature.max(1e-9);
    // A curvature that is not a number belongs to a fit that has diverged, which is found out later.
    (longest as usize).clamp(1, LONGEST)
}

fn hold<'a>(lease: Option<&'a Lease<'a>>, copy: Option<&'a mut Copied>) -> Hold<'a> {
    match (lease, copy) {
        (Some(lease), _) => Hold::Leased(lease),
        (None, Some(copy)) => Hold::Own(&mut copy.rows),
        (None, None) => unreachable!("what is not cut is copied"),
    }
}

/// Who does which task of a step. Every thread has tasks of its own, the same in every step, whose rows
/// stay in its cache; when it is done with them it helps the others.
struct Turns {
    /// For each task, how many steps it was taken in.
    taken: Vec<AtomicUsize>,
}

impl Turns {
    fn new(most: usize) -> Turns {
        Turns {
            taken: (0..most).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Does tasks `0..count` of step `round`, each once, together with the other threads.
    fn take(
        &self,
        round: usize,
        count: usize,
        thread: usize,
        threads: usize,
        mut task: impl FnMut(usize),
    ) {
        for other in 0..threads {
            for t in ((thread + other) % threads..count).step_by(threads) {
                // Tasks a step does not have stay behind and are caught up with.
                let taken = &self.taken[t];
                let last = taken.load(Ordering::Relaxed);
                let mine = last <= round
                    && taken
                        .compare_exchange(last, round + 1, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok();
                if mine {
                    task(t);
                }
            }
        }
    }
}

/// Does tasks `0..count`, each once, together with the other threads that share the counter.
fn take_turns(next: &AtomicUsize, count: usize, mut task: impl FnMut(usize)) {
    loop {
        let t = next.fetch_add(1, Ordering::Relaxed);
        if t >= count {
            return;
        }
        task(t);
    }
}
