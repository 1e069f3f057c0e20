//! Algorithm 1 of the paper: lock-free parallel SGD.
//!
//! An epoch visits all tensor and matrix entries in a random order. Entries were shuffled when they
//! were copied; every epoch shuffles blocks of them and walks through each block in another order.
//! Blocks are dealt to the threads in turn, and threads update rows without synchronization ([`RacingRows`]). One
//! thread updates the core, with the step eta P as Algorithm 1 has it (P being what its share of the
//! entries makes it): its core is its own, published
//! after each block and read by the others before each of theirs. With one thread all of this is
//! plain sequential SGD, and bit-identical from run to run.

use super::data::{Data, stream};
use crate::error::Result;
use crate::kernel::racing::RacingRows;
use crate::kernel::{Level, Method, TensorKernel};
use crate::model::{CoreShape, Model};
use crate::options::{Algorithm, Options, Penalty};
use crate::problem::MatrixKind;
use crate::random::{Stream, key, mix};
use crate::schedule::{Crew, Worker};

/// Entries per block.
const BLOCK: usize = 256;

/// A run of entries of the tensor (part 0) or of a matrix (part m + 1).
#[derive(Clone, Copy)]
struct Block {
    part: u32,
    start: usize,
    len: u32,
}

/// What stays the same from epoch to epoch.
pub(super) struct LockFree<'a> {
    data: &'a Data,
    options: &'a Options,
    level: Level,
    blocks: Vec<Block>,
}

/// Rows of all factors as threads see them.
struct Shared<'a> {
    shape: &'a CoreShape,
    core: RacingRows<'a>,
    factors: Vec<RacingRows<'a>>,
    columns: Vec<RacingRows<'a>>,
}

impl<'a> LockFree<'a> {
    pub(super) fn new(data: &'a Data, options: &'a Options, level: Level) -> Self {
        let mut blocks = Vec::new();
        let lengths = [data.tensor.len()]
            .into_iter()
            .chain(data.matrices.iter().map(|m| m.entries.len()));
        for (part, n) in lengths.enumerate() {
            for start in (0..n).step_by(BLOCK) {
                let len = BLOCK.min(n - start) as u32;
                blocks.push(Block {
                    part: part as u32,
                    start,
                    len,
                });
            }
        }
        LockFree {
            data,
            options,
            level,
            blocks,
        }
    }

    /// The blocks in the order of an epoch, and the number its walks through them are drawn from.
    fn order(&self, name: &[u64]) -> (Vec<Block>, u64) {
        let mut order = self.blocks.clone();
        let mut s = Stream::new(&[&[self.options.seed, stream::ORDER], name].concat());
        for i in (1..order.len()).rev() {
            order.swap(i, s.below(i as u64 + 1) as usize);
        }
        (
            order,
            key(&[&[self.options.seed, stream::WALK], name].concat()),
        )
    }

    /// Deals the blocks of an epoch to threads in turn, tensor and matrix blocks each for themselves.
    /// They are dealt and not taken as threads come by, because the step eta P of the core is right
    /// only if the share of its thread (the first) is known.
    fn deal(&self, order: &[Block], threads: usize) -> Vec<Vec<usize>> {
        let mut hands = vec![Vec::new(); threads.clamp(1, order.len().max(1))];
        let mut dealt = [0, 0];
        for (k, block) in order.iter().enumerate() {
            let kind = usize::from(block.part > 0);
            let to = dealt[kind] % hands.len();
            hands[to].push(k);
            dealt[kind] += 1;
        }
        hands
    }

    /// Runs one epoch and returns the sum of squared errors as they were met on the way, which tells
    /// a fit that diverges without another pass; `None` if `cancelled` said so before the end. `name`
    /// makes the order of this epoch its own.
    pub(super) fn epoch(
        &self,
        model: &mut Model,
        eta: f64,
        name: &[u64],
        crew: &Crew,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<f64>> {
        let (order, walk) = self.order(name);
        let core_len = model.core.len();
        let mut factors = Vec::new();
        for mode in &mut model.modes {
            let stride = mode.factor.stride();
            factors.push(RacingRows::new(mode.factor.as_mut_slice()?, stride));
        }
        let mut columns = Vec::new();
        for matrix in &mut model.matrices {
            let stride = matrix.factor.stride();
            columns.push(RacingRows::new(matrix.factor.as_mut_slice()?, stride));
        }
        let shared = Shared {
            shape: &model.shape,
            core: RacingRows::new(&mut model.core, core_len),
            factors,
            columns,
        };
        let hands = self.deal(&order, crew.threads());
        // What the thread of the core has of the tensor: P-th part, as nearly as blocks allow.
        let own: usize = hands[0]
            .iter()
            .map(|&k| order[k])
            .filter(|b| b.part == 0)
            .map(|b| b.len as usize)
            .sum();
        let core_eta = eta * self.data.tensor.len() as f64 / own.max(1) as f64;
        let squares = crew.run(hands.len(), cancelled, |worker| {
            let mut task = Task::new(self, &shared, (eta as f32, core_eta as f32), &worker);
            for &k in &hands[worker.number] {
                if worker.stop.requested() {
                    break;
                }
                task.block(&order[k], mix(walk ^ k as u64));
            }
            task.squares
        })?;
        Ok(squares.map(|parts| parts.iter().sum()))
    }
}

/// One thread's part of an epoch.
struct Task<'a> {
    plan: &'a LockFree<'a>,
    shared: &'a Shared<'a>,
    kernel: TensorKernel,
    eta: f32,
    /// The step of the core; `None` on threads that leave it alone.
    core_eta: Option<f32>,
    alone: bool,
    core: Vec<f32>,
    rows: Vec<f32>,
    slopes: Vec<f32>,
    squares: f64,
}

impl<'a> Task<'a> {
    fn new(
        plan: &'a LockFree<'a>,
        shared: &'a Shared<'a>,
        (eta, core_eta): (f32, f32),
        worker: &Worker<'_>,
    ) -> Self {
        let method = match plan.options.algorithm {
            Algorithm::Naive => Method::Naive,
            _ => Method::Shared(plan.level),
        };
        let shape = shared.shape;
        let longest = shape
            .ranks
            .iter()
            .map(|&j| crate::model::padded(j))
            .max()
            .unwrap_or(0);
        let mut core = vec![0.0; shape.core_len()];
        shared.core.load(0, &mut core);
        Task {
            plan,
            shared,
            kernel: TensorKernel::new(shape, method),
            eta,
            core_eta: (worker.number == 0).then_some(core_eta),
            alone: worker.threads == 1,
            core,
            rows: vec![0.0; shape.rows_len().max(2 * longest)],
            slopes: vec![0.0; shape.rows_len()],
            squares: 0.0,
        }
    }

    fn block(&mut self, block: &Block, walk: u64) {
        if block.part == 0 && !self.alone && self.core_eta.is_none() {
            self.shared.core.load(0, &mut self.core);
        }
        for i in entries_of(block, walk) {
            if block.part == 0 {
                self.tensor_entry(i);
            } else {
                self.matrix_entry(block.part as usize - 1, i);
            }
        }
        if block.part == 0 && self.core_eta.is_some() {
            self.shared.core.store(0, &self.core);
        }
    }

    fn tensor_entry(&mut self, i: usize) {
        let data = self.plan.data;
        let shape = self.shared.shape;
        let len = shape.rows_len();
        let tensor = data.tensor.shuffled();
        let entry = tensor.row(i);
        for (n, &row) in entry.iter().enumerate() {
            self.shared.factors[n].load(row, &mut self.rows[shape.row(n)]);
        }
        let value = self
            .kernel
            .slopes(&self.core, &self.rows[..len], &mut self.slopes);
        let error = tensor.values[i] - value;
        self.squares += f64::from(error) * f64::from(error);
        if let Some(eta) = self.core_eta {
            self.step_core(eta, error);
        }
        let options = self.plan.options;
        for (n, &row) in entry.iter().enumerate() {
            let range = shape.row(n);
            let penalty = data.row_penalty[n][row as usize];
            step(
                &mut self.rows[range.clone()],
                &self.slopes[range.clone()],
                self.eta,
                error,
                penalty,
                options,
            );
            self.shared.factors[n].store(row, &self.rows[range]);
        }
    }

    /// G <- G - eta (-e u (x) v (x) w + lambda_reg / |Omega| dG), with the rows as they were.
    fn step_core(&mut self, eta: f32, error: f32) {
        let options = self.plan.options;
        let penalty = self.plan.data.core_penalty;
        let rows = &self.rows[..self.shared.shape.rows_len()];
        match options.penalty {
            Penalty::L2 => {
                self.kernel
                    .step_core(&mut self.core, rows, 1.0 - eta * penalty, eta * error)
            }
            Penalty::L1 => {
                let shrink = eta * penalty;
                self.core.iter_mut().for_each(|g| *g -= shrink * sign(*g));
                self.kernel
                    .step_core(&mut self.core, rows, 1.0, eta * error);
            }
        }
        if options.nonneg {
            self.core.iter_mut().for_each(|g| *g = g.max(0.0));
        }
    }

    fn matrix_entry(&mut self, m: usize, i: usize) {
        let data = &self.plan.data.matrices[m];
        let entries = data.entries.shuffled();
        let &[a, b] = entries.row(i) else {
            unreachable!("a matrix has two modes")
        };
        let factor = &self.shared.factors[data.mode];
        let stride = self.shared.shape.row(data.mode).len();
        let (u, rest) = self.rows.split_at_mut(stride);
        let v = &mut rest[..stride];
        factor.load(a, u);
        let (eta, options) = (self.eta, self.plan.options);
        let value = entries.values[i];
        let penalties = &self.plan.data.matrix_row_penalty[data.mode];
        match data.kind {
            // y^ = u . v
            MatrixKind::Observed => {
                let columns = &self.shared.columns[m];
                columns.load(b, v);
                let dot: f32 = u.iter().zip(&*v).map(|(p, q)| p * q).sum();
                let pull = data.weight * (value - dot);
                let column_penalty = data.column_penalty[b as usize];
                for (p, q) in u.iter_mut().zip(&mut *v) {
                    let (x, y) = (*p, *q);
                    *p = moved(x, eta, pull * y, penalties[a as usize], options);
                    *q = moved(y, eta, pull * x, column_penalty, options);
                }
                factor.store(a, u);
                columns.store(b, v);
            }
            // w |u - v|^2 pulls the two rows together.
            MatrixKind::Graph if a != b => {
                factor.load(b, v);
                let pull = data.weight * value;
                for (p, q) in u.iter_mut().zip(&mut *v) {
                    let gap = *p - *q;
                    *p = moved(*p, eta, -pull * gap, penalties[a as usize], options);
                    *q = moved(*q, eta, pull * gap, penalties[b as usize], options);
                }
                factor.store(a, u);
                factor.store(b, v);
            }
            MatrixKind::Graph => {}
        }
    }
}

/// u <- u - eta (-e d + penalty): a row of the tensor.
#[inline]
fn step(row: &mut [f32], slope: &[f32], eta: f32, error: f32, penalty: f32, options: &Options) {
    match (options.penalty, options.nonneg) {
        (Penalty::L2, false) => {
            let (keep, scale) = (1.0 - eta * penalty, eta * error);
            for (u, d) in row.iter_mut().zip(slope) {
                *u = keep * *u + scale * d;
            }
        }
        _ => {
            for (u, d) in row.iter_mut().zip(slope) {
                *u = moved(*u, eta, error * d, penalty, options);
            }
        }
    }
}

/// One number after a step: `pull` is minus the gradient of the error.
#[inline]
fn moved(x: f32, eta: f32, pull: f32, penalty: f32, options: &Options) -> f32 {
    let weight = match options.penalty {
        Penalty::L2 => x,
        Penalty::L1 => sign(x),
    };
    let x = x + eta * (pull - penalty * weight);
    if options.nonneg { x.max(0.0) } else { x }
}

/// -1, 0 or 1: unlike `signum`, 0 at 0, where the absolute value has no slope.
#[inline]
fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// The entries of a block in the order of a walk.
fn entries_of(block: &Block, walk: u64) -> impl Iterator<Item = usize> + use<> {
    let (start, len) = (block.start, u64::from(block.len));
    let (first, stride) = (walk % len, stride(walk, len));
    (0..len).map(move |i| start + ((first + i * stride) % len) as usize)
}

/// The stride of an arithmetic walk through a block: without a divisor in common with the length it
/// visits every entry once.
fn stride(walk: u64, len: u64) -> u64 {
    let mut stride = ((walk >> 32) % len) | 1;
    while gcd(stride, len) != 1 {
        stride += 2;
    }
    stride
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What an epoch with one thread visits, in order: part (0 the tensor, m + 1 a matrix) and entry.
#[cfg(test)]
pub(super) fn visits(plan: &LockFree<'_>, name: &[u64]) -> Vec<(usize, usize)> {
    let (order, walk) = plan.order(name);
    let of = |(k, block): (usize, &Block)| {
        let part = block.part as usize;
        entries_of(block, mix(walk ^ k as u64))
            .map(move |i| (part, i))
            .collect::<Vec<_>>()
    };
    order.iter().enumerate().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_walk_visits_every_entry() {
        for len in 1..=300u32 {
            for walk in [0u64, 1 << 33, u64::MAX, 12345 << 32] {
                let block = Block {
                    part: 0,
                    start: 7,
                    len,
                };
                let mut visited: Vec<usize> = entries_of(&block, walk).collect();
                visited.sort_unstable();
                assert_eq!(visited, (7..7 + len as usize).collect::<Vec<_>>());
            }
        }
    }
}
