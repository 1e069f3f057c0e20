//! One thread's part of a lock-free epoch.

use super::naive_kernel::NaiveKernel;
use super::segments::{Component, CyclicWalk, Segment};
use crate::error::Result;
use crate::kernel::hogwild_rows::HogwildRows;
use crate::kernel::{
    CorePenalty, CoreShape, EntryWalk, HogwildKernel, HogwildSettings, RowCache,
    update_graph_edges, update_matrix_entries,
};
use crate::options::{Algorithm, Options};
use crate::parallel::WorkerContext;
use crate::problem::MatrixKind;
use crate::progress::{StopFlag, steps_per_poll};
use crate::simd::Level;
use crate::solver::data::Data;
use crate::solver::sgd::outer_updates::regularizer;

/// The rows of a factor, and the period with which threads exchange replicas of them, if they have any.
pub(super) struct SharedFactor<'a> {
    pub rows: HogwildRows<'a>,
    pub exchange_period: Option<usize>,
}

/// The parameters of the model as all threads see them.
pub(super) struct SharedParameters<'a> {
    pub shape: &'a CoreShape,
    /// One row, in the layout of the kernel.
    pub core: HogwildRows<'a>,
    pub factors: Vec<SharedFactor<'a>>,
    /// For each matrix, the rows of its columns.
    pub columns: Vec<SharedFactor<'a>>,
}

/// The inputs of an epoch that all threads share.
pub(super) struct EpochInputs<'a> {
    pub data: &'a Data,
    pub options: &'a Options,
    pub level: Level,
    pub eta: f32,
    /// Learning rate of the core.
    pub core_eta: f64,
}

impl EpochInputs<'_> {
    pub(super) fn is_naive(&self) -> bool {
        self.options.algorithm == Algorithm::Naive
    }
}

/// One thread with its kernel, its core and its access to the rows.
pub(super) struct Worker<'a> {
    inputs: &'a EpochInputs<'a>,
    shared: &'a SharedParameters<'a>,
    kernel: Kernel,
    /// Whether this thread updates the core; the others only read it.
    updates_core: bool,
    core_penalty: CorePenalty,
    is_only_thread: bool,
    factors: Vec<RowCache<'a>>,
    columns: Vec<RowCache<'a>>,
    squared_error: f64,
    /// Ends updates early.
    stop: &'a StopFlag,
}

/// The kernel for tensor entries, with the thread's core.
enum Kernel {
    Opt(HogwildKernel),
    Naive(NaiveKernel),
}

impl Kernel {
    fn core(&mut self) -> &mut [f32] {
        match self {
            Kernel::Opt(kernel) => kernel.core(),
            Kernel::Naive(naive) => &mut naive.core,
        }
    }
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        inputs: &'a EpochInputs<'a>,
        shared: &'a SharedParameters<'a>,
        thread: &WorkerContext<'a>,
    ) -> Result<Self> {
        let kernel = if inputs.is_naive() {
            Kernel::Naive(NaiveKernel::new(shared.shape)?)
        } else {
            Kernel::Opt(HogwildKernel::new(shared.shape, inputs.level)?)
        };
        let cache = |factor: &'a SharedFactor<'a>| {
            let nonneg = inputs.options.nonneg;
            RowCache::new(&factor.rows, factor.exchange_period, nonneg)
        };
        let mut worker = Worker {
            inputs,
            shared,
            kernel,
            updates_core: thread.index == 0,
            core_penalty: match thread.index {
                0 => CorePenalty::new(
                    inputs.core_eta,
                    inputs.data.core_penalty,
                    regularizer(inputs.options).l1,
                ),
                _ => CorePenalty::NONE,
            },
            is_only_thread: thread.threads == 1,
            factors: shared.factors.iter().map(cache).collect(),
            columns: shared.columns.iter().map(cache).collect(),
            squared_error: 0.0,
            stop: thread.stop,
        };
        worker.load_core();
        Ok(worker)
    }

    fn load_core(&mut self) {
        self.shared.core.load(0, self.kernel.core());
    }

    fn store_core(&mut self) {
        self.shared.core.store(0, self.kernel.core());
    }

    /// Updates with the entries of a segment; `next` is the segment after it. Ends early if a stop is requested.
    pub(super) fn update_segment(
        &mut self,
        segment: &Segment,
        walk: CyclicWalk,
        next: Option<&Segment>,
    ) {
        let shares_core = segment.component == Component::Tensor && !self.is_only_thread;
        if shares_core && !self.updates_core {
            self.load_core();
        }
        let mut remaining = segment.len;
        let mut at = walk.first;
        let entries_per_poll = self.entries_per_poll(segment.component);
        while remaining > 0 && !self.stop.requested() {
            let count = remaining
                .min(self.entries_until_pause(segment.component))
                .min(entries_per_poll);
            let entries = segment.entries(self.inputs.data, next, at, walk.stride);
            at = match segment.component {
                Component::Tensor => self.update_tensor(&entries, count),
                Component::Matrix(m) => self.update_matrix(m, &entries, count),
            };
            remaining -= count;
        }
        if shares_core && self.updates_core {
            self.store_core();
        }
    }

    /// Returns the number of entries between two polls for a cancellation.
    fn entries_per_poll(&self, component: Component) -> usize {
        let shape = self.shared.shape;
        steps_per_poll(match component {
            // `naive` computes the gradient by each row from the whole core.
            Component::Tensor if self.inputs.is_naive() => (shape.order() + 2) * shape.core_len(),
            Component::Tensor => 3 * shape.core_len(),
            Component::Matrix(m) => 3 * self.inputs.data.matrices[m].rank,
        })
    }

    /// Returns the number of entries before a replica has to be exchanged, or the core to be updated by its penalty.
    fn entries_until_pause(&self, component: Component) -> usize {
        match component {
            Component::Tensor => self
                .factors
                .iter()
                .map(RowCache::entries_until_exchange)
                .min()
                .unwrap_or(1)
                .min(self.core_penalty.entries_until_due()),
            Component::Matrix(m) => {
                let mode = self.inputs.data.matrices[m].mode;
                self.factors[mode]
                    .entries_until_exchange()
                    .min(self.columns[m].entries_until_exchange())
            }
        }
    }

    /// Publishes the core and the replicas. Returns the weighted sum of squared errors.
    pub(super) fn finish(mut self) -> f64 {
        if self.updates_core {
            self.core_penalty.apply(self.kernel.core());
            self.store_core();
        }
        let caches = self.factors.iter_mut().chain(&mut self.columns);
        caches.for_each(RowCache::exchange);
        self.squared_error
    }

    fn update_tensor(&mut self, walk: &EntryWalk<'_>, count: usize) -> usize {
        let data = self.inputs.data;
        let penalties: Vec<&[f32]> = data.row_penalty.iter().map(Vec::as_slice).collect();
        let prior_means: Vec<&[f32]> = data.prior_means.iter().map(Vec::as_slice).collect();
        let settings = HogwildSettings {
            eta: self.inputs.eta,
            loss_weight: 1.0,
            regularizer: regularizer(self.inputs.options),
            core_eta: self.updates_core.then_some(self.inputs.core_eta as f32),
            penalties: &penalties,
            prior_means: &prior_means,
        };
        let outcome = match &mut self.kernel {
            Kernel::Opt(kernel) => {
                kernel.update_tensor_entries(&mut self.factors, walk, count, &settings)
            }
            Kernel::Naive(naive) => naive.update_tensor(&mut self.factors, walk, count, &settings),
        };
        self.squared_error += outcome.squared_error;
        self.core_penalty.add_entries(count as f64);
        if let Some(shrinkage) = self.core_penalty.take_due() {
            shrinkage.apply(self.kernel.core());
        }
        self.factors.iter_mut().for_each(|f| f.count_entries(count));
        outcome.next_position
    }

    fn update_matrix(&mut self, m: usize, walk: &EntryWalk<'_>, count: usize) -> usize {
        let data = self.inputs.data;
        let matrix = &data.matrices[m];
        let settings = HogwildSettings {
            eta: self.inputs.eta,
            loss_weight: matrix.weight,
            regularizer: regularizer(self.inputs.options),
            core_eta: None,
            penalties: &[
                &data.matrix_row_penalty[matrix.mode],
                &matrix.column_penalty,
            ],
            prior_means: &[&data.prior_means[matrix.mode], &matrix.prior_mean],
        };
        let (factor, columns) = (&mut self.factors[matrix.mode], &mut self.columns[m]);
        let at = match matrix.kind {
            MatrixKind::Graph => update_graph_edges(factor, walk, count, &settings),
            _ => update_matrix_entries(factor, columns, walk, count, &settings),
        };
        factor.count_entries(count);
        columns.count_entries(count);
        at
    }
}
