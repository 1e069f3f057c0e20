//! Algorithm 1 of the paper: lock-free parallel SGD.
//!
//! An epoch visits all tensor and matrix entries in a random order. Entries were shuffled when they
//! were copied; every epoch shuffles blocks of them and walks through each block in another order.
//! Blocks are dealt to the threads in turn, and threads update rows without synchronization
//! ([`HogwildRows`]); of modes and matrices with few rows every thread has copies, which it exchanges
//! with the others every so many entries ([`RowCache`]). One thread updates the core, with the step eta P
//! as Algorithm 1 has it (P being what its share of the entries makes it): its core is its own,
//! published after each block and read by the others before each of theirs. With one thread all of
//! this is plain sequential SGD, and bit-identical from run to run.

use crate::error::Result;
use crate::kernel::hogwild_rows::HogwildRows;
use crate::kernel::{
    Method, RowCache, Rule, Runner, Steps, TensorKernel, Walk, run_edges, run_matrix,
};
use crate::solver::data::Data;
use crate::solver::entries::Shuffled;
use crate::solver::stream_ids;

use crate::model::Model;
use crate::simd::Level;

use crate::simd::AlignedVec;

use crate::kernel::CoreShape;
use crate::options::{Algorithm, Options, Penalty};
use crate::parallel::{ThreadPool, WorkerContext};
use crate::problem::MatrixKind;
use crate::random::{RandomStream, hash_words, splitmix64};

/// Entries per block.
const BLOCK: usize = 256;

/// Floats that copies of a mode may have at most: what stays in the cache nearest to a core.
const COPIES: usize = 8 << 10;

/// A run of entries of the tensor (part 0) or of a matrix (part m + 1).
#[derive(Clone, Copy)]
struct Block {
    part: u32,
    start: usize,
    len: u32,
}

/// What stays the same from epoch to epoch.
pub(in crate::solver) struct LockFree<'a> {
    data: &'a Data,
    options: &'a Options,
    level: Level,
    blocks: Vec<Block>,
}

/// Rows of all factors as threads see them, each with the period of its copies if it has any.
struct Shared<'a> {
    shape: &'a CoreShape,
    core: HogwildRows<'a>,
    factors: Vec<(HogwildRows<'a>, Option<usize>)>,
    columns: Vec<(HogwildRows<'a>, Option<usize>)>,
}

impl<'a> LockFree<'a> {
    pub(in crate::solver) fn new(data: &'a Data, options: &'a Options, level: Level) -> Self {
        let mut blocks = Vec::new();
        let lengths = [data.tensor.len()]
            .into_iter()
            // A full matrix is not run entry by entry.
            .chain(data.matrices.iter().map(|m| match m.full {
                Some(_) => 0,
                None => m.entries.len(),
            }));
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
        let mut s =
            RandomStream::new(&[&[self.options.seed, stream_ids::BLOCK_ORDER], name].concat());
        for i in (1..order.len()).rev() {
            order.swap(i, s.below(i as u64 + 1) as usize);
        }
        (
            order,
            hash_words(&[&[self.options.seed, stream_ids::ENTRY_ORDER], name].concat()),
        )
    }

    /// The entries of a block with a walk through them, and those of the block after it.
    fn entries(&self, block: &Block, next: Option<&Block>, at: (usize, usize)) -> Walk<'a> {
        let data = self.data;
        let of = |block: &Block| {
            let entries = match block.part {
                0 => data.tensor.shuffled(),
                part => data.matrices[part as usize - 1].entries.shuffled(),
            };
            let (start, end) = (block.start, block.start + block.len as usize);
            let rows = &entries.rows[start * entries.order..end * entries.order];
            let weights = match entries.weights.is_empty() {
                true => &[][..],
                false => &entries.weights[start..end],
            };
            (entries.order, rows, &entries.values[start..end], weights)
        };
        let (order, rows, values, weights) = of(block);
        Walk {
            order,
            rows,
            values,
            weights,
            at: at.0,
            stride: at.1,
            next: next.map(of).map(|(_, rows, values, _)| (rows, values)),
        }
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

    fn naive(&self) -> bool {
        self.options.algorithm == Algorithm::Naive
    }

    /// Runs one epoch and returns the sum of squared errors as they were met on the way, which tells
    /// a fit that diverges without another pass; `None` if `cancelled` said so before the end. `name`
    /// makes the order of this epoch its own.
    pub(in crate::solver) fn epoch(
        &self,
        model: &mut Model,
        eta: f64,
        name: &[u64],
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<f64>> {
        let (order, walk) = self.order(name);
        let hands = self.deal(&order, pool.threads());
        let mut factors = Vec::new();
        for (n, mode) in model.modes.iter_mut().enumerate() {
            let (rows, stride) = (mode.factor.len(), mode.factor.stride());
            let period = period(self.data.tensor.shuffled(), n, (rows, stride), hands.len());
            factors.push((
                HogwildRows::new(mode.factor.as_mut_slice()?, stride),
                period,
            ));
        }
        let mut columns = Vec::new();
        for (matrix, data) in model.matrices.iter_mut().zip(&self.data.matrices) {
            let (rows, stride) = (matrix.factor.len(), matrix.factor.stride());
            let period = match data.kind {
                // The columns of a graph are rows of its mode, and those of a full matrix stay.
                MatrixKind::Graph | MatrixKind::Full => None,
                _ => period(data.entries.shuffled(), 1, (rows, stride), hands.len()),
            };
            let rows = HogwildRows::new(matrix.factor.as_mut_slice()?, stride);
            columns.push((rows, period));
        }
        let mut core = match self.naive() {
            true => {
                let mut core = AlignedVec::zeroed(model.core.len());
                core.copy_from_slice(&model.core);
                core
            }
            false => Runner::new(&model.shape, self.level).pack(&model.core),
        };
        let core_len = core.len();
        let shared = Shared {
            shape: &model.shape,
            core: HogwildRows::new(&mut core, core_len),
            factors,
            columns,
        };
        // What the thread of the core has of the tensor: P-th part, as nearly as blocks allow.
        let own: usize = hands[0]
            .iter()
            .map(|&k| order[k])
            .filter(|b| b.part == 0)
            .map(|b| b.len as usize)
            .sum();
        let all = self.data.tensor.len() as f64 * self.data.core_eta_scale;
        let core_eta = eta * all / own.max(1) as f64;
        let squares = pool.run(hands.len(), cancelled, |worker| {
            let mut task = Task::new(self, &shared, (eta as f32, core_eta as f32), &worker);
            for (i, &k) in hands[worker.index].iter().enumerate() {
                if worker.stop.requested() {
                    break;
                }
                let next = hands[worker.index].get(i + 1).map(|&k| &order[k]);
                task.block(&order[k], splitmix64(walk ^ k as u64), next);
            }
            task.end()
        })?;
        drop(shared);
        match self.naive() {
            true => model.core.copy_from_slice(&core),
            false => Runner::new(&model.shape, self.level).unpack(&core, &mut model.core),
        }
        Ok(squares.map(|parts| parts.iter().sum()))
    }
}

/// One thread's part of an epoch.
struct Task<'a> {
    plan: &'a LockFree<'a>,
    shared: &'a Shared<'a>,
    kernel: Kernel,
    level: Level,
    eta: f32,
    /// The step of the core; `None` on threads that leave it alone.
    core_eta: Option<f32>,
    alone: bool,
    factors: Vec<RowCache<'a>>,
    columns: Vec<RowCache<'a>>,
    squares: f64,
}

/// How tensor entries are run.
enum Kernel {
    Opt(Runner),
    Naive(Naive),
}

impl<'a> Task<'a> {
    fn new(
        plan: &'a LockFree<'a>,
        shared: &'a Shared<'a>,
        (eta, core_eta): (f32, f32),
        worker: &WorkerContext<'_>,
    ) -> Self {
        let (kernel, level) = match plan.naive() {
            true => (Kernel::Naive(Naive::new(shared.shape)), Level::Scalar),
            false => (
                Kernel::Opt(Runner::new(shared.shape, plan.level)),
                plan.level,
            ),
        };
        let hand = |(rows, period): &'a (HogwildRows<'a>, Option<usize>)| {
            RowCache::new(rows, level, *period, plan.options.nonneg)
        };
        let mut task = Task {
            plan,
            shared,
            kernel,
            level,
            eta,
            core_eta: (worker.index == 0).then_some(core_eta),
            alone: worker.threads == 1,
            factors: shared.factors.iter().map(hand).collect(),
            columns: shared.columns.iter().map(hand).collect(),
            squares: 0.0,
        };
        shared.core.load(level, 0, task.kernel.core());
        task
    }

    /// Runs a block; `next` is the one that comes after it.
    fn block(&mut self, block: &Block, walk: u64, next: Option<&Block>) {
        let tensor = block.part == 0;
        if tensor && !self.alone && self.core_eta.is_none() {
            self.shared.core.load(self.level, 0, self.kernel.core());
        }
        let (first, stride) = walk_of(block, walk);
        let mut left = block.len as usize;
        let mut at = first;
        while left > 0 {
            let count = left.min(self.room(block.part));
            let entries = self.plan.entries(block, next, (at, stride));
            at = match block.part {
                0 => self.tensor_entries(&entries, count),
                part => self.matrix_entries(part as usize - 1, &entries, count),
            };
            left -= count;
        }
        if tensor && !self.alone && self.core_eta.is_some() {
            self.shared.core.store(self.level, 0, self.kernel.core());
        }
    }

    /// How many entries of a part may be run before copies have to be exchanged.
    fn room(&self, part: u32) -> usize {
        match (part as usize).checked_sub(1) {
            None => self
                .factors
                .iter()
                .map(RowCache::entries_until_exchange)
                .min()
                .unwrap_or(1),
            Some(m) => {
                let mode = self.plan.data.matrices[m].mode;
                self.factors[mode]
                    .entries_until_exchange()
                    .min(self.columns[m].entries_until_exchange())
            }
        }
    }

    /// Gives back what the thread has of its own, and the sum of squared errors.
    fn end(mut self) -> f64 {
        if self.core_eta.is_some() {
            self.shared.core.store(self.level, 0, self.kernel.core());
        }
        let all = self.factors.iter_mut().chain(&mut self.columns);
        all.for_each(RowCache::exchange);
        self.squares
    }

    fn rule(&self) -> Rule {
        Rule {
            l1: self.plan.options.penalty == Penalty::L1,
            nonneg: self.plan.options.nonneg,
        }
    }

    fn tensor_entries(&mut self, walk: &Walk<'_>, count: usize) -> usize {
        let data = self.plan.data;
        let penalties: Vec<&[f32]> = data.row_penalty.iter().map(Vec::as_slice).collect();
        let priors: Vec<&[f32]> = data.prior_means.iter().map(Vec::as_slice).collect();
        let steps = Steps {
            eta: self.eta,
            weight: 1.0,
            rule: self.rule(),
            core: self.core_eta.map(|eta| (eta, data.core_penalty)),
            penalties: &penalties,
            priors: &priors,
            modes: &data.mode_eta_scales,
        };
        let (at, squares) = match &mut self.kernel {
            Kernel::Opt(runner) => runner.tensor(&mut self.factors, walk, count, &steps),
            Kernel::Naive(naive) => naive.tensor(&mut self.factors, walk, count, &steps),
        };
        self.squares += squares;
        self.factors.iter_mut().for_each(|f| f.count_entries(count));
        at
    }

    fn matrix_entries(&mut self, m: usize, walk: &Walk<'_>, count: usize) -> usize {
        let data = &self.plan.data.matrices[m];
        let rows = &self.plan.data.matrix_row_penalty[data.mode];
        let steps = Steps {
            eta: self.eta,
            weight: data.weight,
            rule: self.rule(),
            core: None,
            penalties: &[rows, &data.column_penalty],
            priors: &[&self.plan.data.prior_means[data.mode], &data.prior_mean],
            // Columns have the step of the epoch.
            modes: &[self.plan.data.mode_eta_scales[data.mode], 1.0],
        };
        let (factor, columns) = (&mut self.factors[data.mode], &mut self.columns[m]);
        let at = match data.kind {
            MatrixKind::Graph => run_edges(self.level, factor, walk, count, &steps),
            _ => run_matrix(self.level, factor, columns, walk, count, &steps),
        };
        factor.count_entries(count);
        columns.count_entries(count);
        at
    }
}

impl Kernel {
    /// The thread's core, as it is shared.
    fn core(&mut self) -> &mut [f32] {
        match self {
            Kernel::Opt(runner) => runner.core(),
            Kernel::Naive(naive) => &mut naive.core,
        }
    }
}

/// Algorithm 2 of the paper in Algorithm 1: every entry by itself, one number at a time.
struct Naive {
    shape: CoreShape,
    kernel: TensorKernel,
    core: Vec<f32>,
    rows: Vec<f32>,
    slopes: Vec<f32>,
}

impl Naive {
    fn new(shape: &CoreShape) -> Naive {
        Naive {
            kernel: TensorKernel::new(shape, Method::Naive),
            core: vec![0.0; shape.core_len()],
            rows: vec![0.0; shape.rows_len()],
            slopes: vec![0.0; shape.rows_len()],
            shape: shape.clone(),
        }
    }

    /// As [`Runner::tensor`].
    fn tensor(
        &mut self,
        hands: &mut [RowCache<'_>],
        walk: &Walk<'_>,
        count: usize,
        steps: &Steps<'_>,
    ) -> (usize, f64) {
        let mut squares = 0.0;
        let mut at = walk.at;
        for _ in 0..count {
            let entry = &walk.rows[at * walk.order..][..walk.order];
            for (n, &row) in entry.iter().enumerate() {
                hands[n].load(row, &mut self.rows[self.shape.row(n)]);
            }
            let value = self.kernel.slopes(&self.core, &self.rows, &mut self.slopes);
            let error = walk.values[at] - value;
            let pull = error * walk.weights.get(at).copied().unwrap_or(1.0);
            squares += f64::from(error) * f64::from(pull);
            if let Some((eta, penalty)) = steps.core {
                self.step_core(eta, pull, penalty, steps.rule);
            }
            for (n, &row) in entry.iter().enumerate() {
                let (eta, penalty) = (steps.eta * steps.modes[n], steps.penalties[n][row as usize]);
                let range = self.shape.row(n);
                let slopes = &self.slopes[range.clone()];
                let each = self.rows[range.clone()].iter_mut().zip(slopes);
                for ((u, d), prior) in each.zip(steps.priors[n]) {
                    *u = moved(*u, *prior, eta, pull * d, penalty, steps.rule);
                }
                hands[n].store(row, &self.rows[range]);
            }
            at = walk.after(at);
        }
        (at, squares)
    }

    /// G <- G - eta (-e u (x) v (x) w + lambda_reg / |Omega| dG), with the rows as they were.
    fn step_core(&mut self, eta: f32, error: f32, penalty: f32, rule: Rule) {
        let shrink = eta * penalty;
        if rule.l1 {
            self.core.iter_mut().for_each(|g| *g -= shrink * sign(*g));
        }
        let keep = if rule.l1 { 1.0 } else { 1.0 - shrink };
        self.kernel
            .step_core(&mut self.core, &self.rows, keep, eta * error);
        if rule.nonneg {
            self.core.iter_mut().for_each(|g| *g = g.max(0.0));
        }
    }
}

/// One number after a step: `pull` is minus the gradient of the error, the penalty pulls to `prior`.
#[inline]
fn moved(x: f32, prior: f32, eta: f32, pull: f32, penalty: f32, rule: Rule) -> f32 {
    let off = x - prior;
    let weight = if rule.l1 { sign(off) } else { off };
    let x = x + eta * (pull - penalty * weight);
    if rule.nonneg { x.max(0.0) } else { x }
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

/// After how many entries a thread exchanges its copies of the rows at place `n` of the entries, if
/// it is to have copies. Moves that threads do not know of from each other add up, so that the
/// rows that come up most must not be moved often in between: with a few times as many entries as
/// there are rows, rows that come up more counting for more.
fn period(
    entries: &Shuffled,
    n: usize,
    (rows, stride): (usize, usize),
    threads: usize,
) -> Option<usize> {
    /// Entries looked at; they are in random order.
    const SAMPLE: usize = 1 << 13;
    if threads == 1 || rows * stride > COPIES {
        return None;
    }
    let mut counts = vec![0u64; rows];
    let sample = entries.len().min(SAMPLE);
    (0..sample).for_each(|i| counts[entries.row(i)[n] as usize] += 1);
    // How many rows there would be if all came up as often as two entries share one now.
    let pairs: u64 = counts.iter().map(|&c| c * c.saturating_sub(1)).sum();
    let rows = (sample * sample.saturating_sub(1)) as f64 / pairs.max(1) as f64;
    let moves = (64.0 / threads as f64).clamp(2.0, 8.0);
    let period = (moves * rows).ceil() as usize;
    // A few entries are not worth copies.
    (entries.len() / threads >= 16 * period).then_some(period)
}

/// Where in a block a walk starts, and how far it goes from each entry to the next.
fn walk_of(block: &Block, walk: u64) -> (usize, usize) {
    let len = u64::from(block.len);
    ((walk % len) as usize, (stride(walk, len) % len) as usize)
}

/// The entries of a block in the order of a walk.
#[cfg(test)]
fn entries_of(block: &Block, walk: u64) -> impl Iterator<Item = usize> + use<> {
    let (start, len) = (block.start, block.len as usize);
    let (first, stride) = walk_of(block, walk);
    (0..len).map(move |i| start + (first + i * stride) % len)
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
pub(in crate::solver) fn visits(plan: &LockFree<'_>, name: &[u64]) -> Vec<(usize, usize)> {
    let (order, walk) = plan.order(name);
    let of = |(k, block): (usize, &Block)| {
        let part = block.part as usize;
        entries_of(block, splitmix64(walk ^ k as u64))
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

    #[test]
    fn small_modes_have_copies_when_threads_share_them() {
        let entries = |rows: u32, skewed: bool| {
            let mut s = RandomStream::new(&[1]);
            let row = (0..200_000).map(|_| match skewed && s.below(2) == 0 {
                true => 0,
                false => s.below(u64::from(rows)) as u32,
            });
            Shuffled {
                order: 1,
                rows: row.collect(),
                values: vec![0.0; 200_000],
                weights: Vec::new(),
                values_with_biases: Vec::new(),
            }
        };
        let even = entries(100, false);
        assert_eq!(period(&even, 0, (100, 16), 1), None);
        let two = period(&even, 0, (100, 16), 2).unwrap();
        assert!((760..840).contains(&two), "{two}");
        let sixteen = period(&even, 0, (100, 16), 16).unwrap();
        assert!((380..420).contains(&sixteen), "{sixteen}");
        // A row that has half of the entries is what counts.
        let skewed = period(&entries(100, true), 0, (100, 16), 2).unwrap();
        assert!((28..36).contains(&skewed), "{skewed}");
        // Many rows, or few entries per row.
        assert_eq!(period(&entries(1000, false), 0, (1000, 16), 2), None);
        assert_eq!(period(&entries(500, false), 0, (500, 16), 16), None);
    }
}
