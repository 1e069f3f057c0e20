//! The tasks of a step: blocks of the tensor, and parts of matrices and graphs.

use std::array;
use std::ops::Range;

use super::plan::Place;
use super::replica_divergence::ProbeKernel;
use super::replicas::{Copied, Slot};
use super::steps::{Step, pair};
use super::task_order::Turns;
use super::{Blocked, Epoch, Shared, Sweep, WHOLE, steady};
use crate::kernel::MAX_ORDER;
use crate::kernel::{self, EntryBlock, Form, Hold, LONGEST, PartRefMut, Scratch, Settings};
use crate::random::splitmix64;
use crate::simd::AlignedVec;
use crate::solver::stream_ids;

/// What a thread has of its own.
pub(super) struct Tools {
    pub scratch: Scratch,
    pub probe: ProbeKernel,
    /// A copy of the core, for cells of classes.
    pub core: AlignedVec,
}

/// What the tasks of a sweep are done with.
pub(super) struct Work<'a> {
    pub fit: &'a Blocked<'a>,
    pub shared: &'a Shared<'a>,
    pub epoch: &'a Epoch<'a>,
    pub sweep: &'a Sweep,
    pub turns: &'a Turns,
}

/// What is leased of every cut mode.
type Leases<'a> = [Option<PartRefMut<'a>>];

impl Work<'_> {
    /// Does one task of a round of steps that are merged together; `false` if `stop` says so before it
    /// may begin.
    pub(super) fn task(
        &self,
        steps: &[Step],
        round: usize,
        task: usize,
        stop: impl Fn() -> bool,
        tools: &mut Tools,
    ) -> bool {
        match steps[round] {
            Step::Blocks(s) => {
                let cell = self.fit.plan.cell(s, task);
                let place = self.fit.plan.spec.coordinates(cell);
                let place = &place[..self.fit.plan.spec.axes];
                if !self.turns.wait(place, round, stop) {
                    return false;
                }
                let mut slot = self.shared.slots[task]
                    .write()
                    .unwrap_or_else(|e| e.into_inner());
                if round == 0 {
                    slot.load(self.shared);
                }
                self.block(cell, &mut slot, tools);
                if round + 1 == steps.len() {
                    self.predict(&mut slot, tools);
                }
                drop(slot);
                self.turns.done(place, round);
            }
            Step::Group(_) => unreachable!("threads take cells of a group as they come by"),
            Step::Matrix(m, ahead) => self.part_of_matrix(m, ahead, task, tools),
            Step::Graph(m, turn) => self.part_of_graph(m, turn, task, tools),
        }
        true
    }

    /// A block: a cell of the tensor and the matrix entries that go with it.
    fn block(&self, cell: usize, slot: &mut Slot, tools: &mut Tools) {
        let place = self.fit.plan.spec.coordinates(cell);
        let modes = &self.fit.plan.modes;
        let leases: [Option<PartRefMut<'_>>; MAX_ORDER] = array::from_fn(|n| {
            let coordinate = modes.get(n)?.coordinate?;
            Some(self.shared.factors[n].borrow_part_mut(place[coordinate]))
        });
        let leases = &leases[..modes.len()];
        // Matrices come before or after the tensor, as chance has it.
        let first = splitmix64(self.epoch.key ^ cell as u64) & 1 == 1;
        if first {
            self.matrices(cell, slot, leases, tools);
        }
        self.tensor(cell, slot, leases, tools);
        if !first {
            self.matrices(cell, slot, leases, tools);
        }
    }

    /// What the copies of a block say about some entries.
    fn predict(&self, slot: &mut Slot, tools: &mut Tools) {
        let modes = slot.modes.iter().map(|m| m.as_ref().map(|m| &m.rows[..]));
        tools
            .probe
            .predict(&self.epoch.probe, &slot.core.rows, modes, &mut slot.probe);
    }

    fn tensor(&self, number: usize, slot: &mut Slot, leases: &Leases<'_>, tools: &mut Tools) {
        let data = self.fit.data;
        let cell = &data.tensor.blocks()[number];
        let (limit, steepness) = self.limit(cell, slot, leases, &mut tools.probe);
        for (n, copy) in slot.modes.iter_mut().enumerate() {
            copy.iter_mut()
                .for_each(|c| cell.add_row_counts(n, &mut c.counts));
        }
        let seen = cell.len() as u32;
        slot.core.counts.iter_mut().for_each(|c| *c += seen);
        let mut pairs = leases.iter().zip(&mut slot.modes);
        let mut holds: [Hold<'_>; MAX_ORDER] = array::from_fn(|_| match pairs.next() {
            Some((lease, copy)) => hold(lease.as_ref(), copy.as_mut()),
            None => Hold::Own(&mut []),
        });
        let settings = Settings {
            core_penalty: data.core_penalty,
            core_eta: self.epoch.core_eta,
            limit,
            steepest: (&self.epoch.steepest.0, steepness),
            share: self.share(),
            ..self.settings(
                1.0,
                &self.epoch.penalties,
                &self.epoch.priors,
                &data.mode_eta_scales,
            )
        };
        slot.squares += kernel::run(
            cell,
            &self.shared.form,
            &mut slot.core.rows,
            &mut holds[..leases.len()],
            &settings,
            &self.name(0, number),
            &mut tools.scratch,
        );
        slot.seen += cell.total_weight() * self.sweep.share();
    }

    /// The matrix entries that go with a block.
    fn matrices(&self, number: usize, slot: &mut Slot, leases: &Leases<'_>, tools: &mut Tools) {
        for (m, plan) in self.fit.plan.matrices.iter().enumerate() {
            if !matches!(plan.place, Place::Blocks) {
                continue;
            }
            let data = &self.fit.data.matrices[m];
            let cell = &data.entries.blocks()[number];
            if cell.len() == 0 {
                continue;
            }
            let lease = plan.spec.cuts[1]
                .as_ref()
                .map(|cut| self.shared.columns[m].borrow_part_mut(cell.coordinates()[cut.axis]));
            if let Some(copy) = slot.columns[m].as_mut() {
                cell.add_row_counts(1, &mut copy.counts);
            }
            let copy = slot.columns[m].as_mut();
            let mut holds = [
                hold(leases[data.mode].as_ref(), None),
                hold(lease.as_ref(), copy),
            ];
            self.matrix(m, cell, self.share(), &mut holds, tools);
        }
    }

    fn part_of_matrix(&self, m: usize, ahead: usize, task: usize, tools: &mut Tools) {
        let spec = &self.fit.plan.matrices[m].spec;
        let data = &self.fit.data.matrices[m];
        let place = [task, (task + ahead) % spec.parts_per_axis];
        let cell = &data.entries.blocks()[spec.block_at(&place)];
        if cell.len() == 0 {
            return;
        }
        let rows = self.shared.factors[data.mode].borrow_part_mut(place[0]);
        let columns = self.shared.columns[m].borrow_part_mut(place[1]);
        let mut holds = [Hold::Leased(&rows), Hold::Leased(&columns)];
        self.matrix(m, cell, 0.0..1.0, &mut holds, tools);
    }

    fn part_of_graph(&self, m: usize, round: usize, task: usize, tools: &mut Tools) {
        let data = &self.fit.data.matrices[m];
        let spec = &self.fit.plan.matrices[m].spec;
        let (p, q) = pair(spec.parts_per_axis, round, task);
        let rows = &self.shared.factors[data.mode];
        let mut leases = vec![rows.borrow_part_mut(p)];
        if q != p {
            leases.push(rows.borrow_part_mut(q));
        }
        let penalty = &self.fit.data.matrix_row_penalty[data.mode][..];
        let penalties = [penalty; 2];
        let priors = [&self.fit.data.prior_means[data.mode][..]; 2];
        let steps = [self.fit.data.mode_eta_scales[data.mode]; 2];
        let settings = self.settings(data.weight, &penalties, &priors, &steps);
        let cells = [spec.block_at(&[p, q]), spec.block_at(&[q, p])];
        for &cell in &cells[..1 + usize::from(p != q)] {
            let name = self.name(m + 1, cell);
            let cell = &data.entries.blocks()[cell];
            kernel::run_graph(cell, &mut leases, &settings, &name, &mut tools.scratch);
        }
    }

    fn matrix(
        &self,
        m: usize,
        cell: &EntryBlock,
        share: Range<f64>,
        holds: &mut [Hold<'_>],
        tools: &mut Tools,
    ) {
        let data = &self.fit.data.matrices[m];
        let rows = &self.fit.data.matrix_row_penalty[data.mode];
        let penalties: [&[f32]; 2] = [rows, &data.column_penalty];
        let priors: [&[f32]; 2] = [&self.fit.data.prior_means[data.mode], &data.prior_mean];
        let steps = [self.fit.data.mode_eta_scales[data.mode], 1.0];
        let (limit, direction, steepness) = &self.epoch.matrix_limits[m];
        let settings = Settings {
            limit: *limit,
            steepest: (direction, *steepness),
            share,
            ..self.settings(data.weight, &penalties, &priors, &steps)
        };
        kernel::run(
            cell,
            &self.epoch.matrix_forms[m],
            &mut [],
            holds,
            &settings,
            &self.name(m + 1, cell.index()),
            &mut tools.scratch,
        );
    }

    /// What most cells are run with.
    pub(super) fn settings<'a>(
        &self,
        weight: f32,
        penalties: &'a [&'a [f32]],
        priors: &'a [&'a [f32]],
        mode_steps: &'a [f32],
    ) -> Settings<'a> {
        Settings {
            level: self.fit.level,
            eta: self.epoch.eta,
            weight,
            rule: self.epoch.rule,
            core_penalty: 0.0,
            core_eta: 0.0,
            core_every: 1,
            penalties,
            priors,
            mode_steps,
            limit: LONGEST,
            steepest: (&[], 0.0),
            share: 0.0..1.0,
        }
    }

    /// The share of each cell.
    fn share(&self) -> Range<f64> {
        let part = |x: usize| x as f64 / WHOLE as f64;
        part(self.sweep.from)..part(self.sweep.until)
    }

    /// The name of what is random in a cell of the tensor (part 0) or a matrix (part m + 1).
    pub(super) fn name(&self, part: usize, cell: usize) -> [u64; 4] {
        [
            self.fit.options.seed ^ stream_ids::BLOCK,
            self.epoch.key,
            part as u64,
            cell as u64,
        ]
    }

    /// The most entries of a batch: a batch steps once where single entries step many times, and must
    /// not overshoot where those would not. Along the row of the fiber mode and the core it closes
    /// eta times the squared slopes of its entries of the distance. The direction in which that is most
    /// is damped instead; its curvature comes with the limit. Slopes change fast at the start of a
    /// fit, so every block looks at some of its own entries.
    fn limit(
        &self,
        cell: &EntryBlock,
        slot: &Slot,
        leases: &Leases<'_>,
        probe: &mut ProbeKernel,
    ) -> (usize, f32) {
        let Some(fiber) = self.fit.plan.spec.fiber_mode else {
            return (LONGEST, 0.0);
        };
        let row = |n: usize, row: u32| match (&leases[n], &slot.modes[n]) {
            (Some(lease), _) => lease.row(row),
            (None, Some(copy)) => copy.row(row),
            (None, None) => unreachable!("what is not cut is copied"),
        };
        let (rows, core) = probe.curvature(&self.epoch.probe, cell, &slot.core.rows, row);
        let steepest = rows * self.epoch.steepest.1;
        let eta = f64::from(self.epoch.eta) * f64::from(self.fit.data.mode_eta_scales[fiber]);
        let core_eta = f64::from(self.epoch.core_eta);
        let limit = steady(eta * (rows - steepest) + core_eta * core);
        (limit, steepest as f32)
    }
}

/// What stands between rows and columns of each matrix.
pub(super) fn matrix_forms(fit: &Blocked<'_>) -> Vec<Form> {
    let ranks = fit.data.matrices.iter().map(|m| m.rank);
    ranks.map(Form::matrix).collect()
}

fn hold<'a>(lease: Option<&'a PartRefMut<'a>>, copy: Option<&'a mut Copied>) -> Hold<'a> {
    match (lease, copy) {
        (Some(lease), _) => Hold::Leased(lease),
        (None, Some(copy)) => Hold::Own(&mut copy.rows),
        (None, None) => unreachable!("what is not cut is copied"),
    }
}
