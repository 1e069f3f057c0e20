//! What blocks have copies of, and how copies become one again.

use super::blocks::Work;
use super::{Blocked, Shared};
use crate::kernel::{ExclusiveRows, PartRefMut};
use crate::simd::AlignedVec;

/// A block's copies of what no block owns, and how many entries each row saw.
#[derive(Default)]
pub(super) struct Slot {
    pub core: Copied,
    pub modes: Vec<Option<Copied>>,
    pub columns: Vec<Option<Copied>>,
    /// Squared errors since copies were made, and what their entries weigh.
    pub squares: f64,
    pub seen: f64,
    /// Predictions with these copies.
    pub probe: Vec<f32>,
}

#[derive(Default)]
pub(super) struct Copied {
    pub rows: AlignedVec,
    pub counts: Vec<u32>,
}

impl Copied {
    fn new(rows: &ExclusiveRows<'_>) -> Copied {
        let count = rows.partition().row_count();
        Copied {
            rows: AlignedVec::zeroed(count * rows.stride()),
            counts: vec![0; count],
        }
    }

    pub(super) fn row(&self, row: u32) -> &[f32] {
        let stride = self.rows.len() / self.counts.len();
        &self.rows[row as usize * stride..][..stride]
    }

    fn load(&mut self, from: &ExclusiveRows<'_>) {
        self.rows.copy_from_slice(from.borrow_all().rows());
        self.counts.fill(0);
    }
}

impl Slot {
    /// Copies everything afresh.
    pub(super) fn load(&mut self, shared: &Shared<'_>) {
        (self.squares, self.seen) = (0.0, 0.0);
        self.core.load(&shared.core);
        for (copy, rows) in self.modes.iter_mut().zip(&shared.factors) {
            copy.iter_mut().for_each(|c| c.load(rows));
        }
        for (copy, rows) in self.columns.iter_mut().zip(&shared.columns) {
            copy.iter_mut().for_each(|c| c.load(rows));
        }
    }
}

impl Blocked<'_> {
    pub(super) fn slot(
        &self,
        core: &ExclusiveRows<'_>,
        factors: &[ExclusiveRows<'_>],
        columns: &[ExclusiveRows<'_>],
    ) -> Slot {
        Slot {
            core: Copied::new(core),
            modes: factors
                .iter()
                .zip(&self.plan.modes)
                .map(|(rows, plan)| plan.coordinate.is_none().then(|| Copied::new(rows)))
                .collect(),
            columns: columns
                .iter()
                .zip(&self.plan.matrices)
                .map(|(rows, plan)| plan.copied.then(|| Copied::new(rows)))
                .collect(),
            ..Slot::default()
        }
    }

    /// All that is merged after a step: pieces of copies.
    pub(super) fn merges(&self, shared: &Shared<'_>) -> Vec<(What, usize)> {
        let mut all = Vec::new();
        let mut add = |what: What, parts: usize| all.extend((0..parts).map(|p| (what, p)));
        add(What::Core, 1);
        for (n, plan) in self.plan.modes.iter().enumerate() {
            if plan.coordinate.is_none() {
                add(What::Mode(n), plan.parts.part_count());
            }
        }
        for (m, plan) in self.plan.matrices.iter().enumerate() {
            if plan.copied {
                add(What::Columns(m), shared.columns[m].partition().part_count());
            }
        }
        all
    }
}

/// What is copied for every block.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Core,
    Mode(usize),
    Columns(usize),
}

impl Work<'_> {
    /// Merges one part of the copies: the moves of a row are added up in block order and come to what
    /// its curvature makes of them.
    pub(super) fn merge(&self, (what, part): (What, usize)) {
        let slots: Vec<_> = self
            .shared
            .slots
            .iter()
            .map(|slot| slot.read().unwrap_or_else(|e| e.into_inner()))
            .collect();
        let copies: Vec<&Copied> = slots
            .iter()
            .filter_map(|slot| match what {
                What::Core => Some(&slot.core),
                What::Mode(n) => slot.modes[n].as_ref(),
                What::Columns(m) => slot.columns[m].as_ref(),
            })
            .collect();
        let (shared, data) = (self.shared, self.fit.data);
        let curvature = &self.epoch.curvature;
        let (rows, basis, penalties, step) = match what {
            What::Core => return self.merge_core(&copies),
            What::Mode(n) => (
                &shared.factors[n],
                &curvature.slopes[n],
                &data.row_penalty[n],
                data.mode_eta_scales[n],
            ),
            What::Columns(m) => (
                &shared.columns[m],
                &curvature.columns[m],
                &data.matrices[m].column_penalty,
                1.0,
            ),
        };
        let eta = self.epoch.eta * step * self.sweep.share() as f32;
        let stride = rows.stride();
        let mut lease = rows.borrow_part_mut(part);
        let mut moves = vec![0.0f32; stride];
        for &row in rows.partition().rows_of(part) {
            let at = row as usize * stride;
            let old = lease.row_mut(row);
            if let Some((all, one)) = add_moves(&copies, row as usize, at, old, &mut moves) {
                basis.apply(&mut moves, eta, penalties[row as usize], (all, one));
                let next = old.iter_mut().zip(&moves);
                next.for_each(|(x, m)| *x = self.epoch.rule.bounded(*x + m));
            }
        }
    }

    /// The core moves as a whole: its directions go through all of it.
    fn merge_core(&self, copies: &[&Copied]) {
        let rows = &self.shared.core;
        let stride = rows.stride();
        let mut moves = vec![0.0f32; rows.partition().row_count() * stride];
        let mut leases: Vec<PartRefMut<'_>> = (0..rows.partition().part_count())
            .map(|p| rows.borrow_part_mut(p))
            .collect();
        let mut seen = None;
        for lease in &mut leases {
            let part = lease.part();
            for &slab in rows.partition().rows_of(part) {
                let at = slab as usize * stride;
                let old = lease.row_mut(slab);
                seen = add_moves(copies, slab as usize, at, old, &mut moves[at..at + stride]);
            }
        }
        if seen.is_none() {
            return;
        }
        drop(leases);
        self.move_core(&mut moves, &self.sweep.core_shares);
    }

    /// Moves the core by what the sum of moves comes to, given what it is multiplied with.
    pub(super) fn move_core(&self, moves: &mut Vec<f32>, shares: &[f32]) {
        let rows = &self.shared.core;
        let stride = rows.stride();
        self.epoch.core.apply(moves, &mut Vec::new(), shares);
        for part in 0..rows.partition().part_count() {
            let mut lease = rows.borrow_part_mut(part);
            for &slab in rows.partition().rows_of(lease.part()) {
                let moves = &moves[slab as usize * stride..][..stride];
                let old = lease.row_mut(slab);
                let next = old.iter_mut().zip(moves);
                next.for_each(|(x, m)| *x = self.epoch.rule.bounded(*x + m));
            }
        }
    }
}

/// Adds up the moves of copies away from `old`. Returns the number of entries they saw and that of
/// one block, by entries; `None` if nobody saw any.
fn add_moves(
    copies: &[&Copied],
    row: usize,
    at: usize,
    old: &[f32],
    moves: &mut [f32],
) -> Option<(f32, f32)> {
    let (mut all, mut squares) = (0.0f64, 0.0f64);
    moves.fill(0.0);
    for copy in copies {
        let count = f64::from(copy.counts[row]);
        if count > 0.0 {
            let copy = &copy.rows[at..at + old.len()];
            let each = moves.iter_mut().zip(copy).zip(old);
            each.for_each(|((m, &x), &y)| *m += x - y);
            (all, squares) = (all + count, squares + count * count);
        }
    }
    (all > 0.0).then(|| (all as f32, (squares / all) as f32))
}
