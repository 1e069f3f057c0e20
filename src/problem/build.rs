//! Builds a problem: checks that tensor and matrices fit together, numbers their rows and validates all entries.

use std::sync::Arc;

use super::coupled_problem::{CoupledMatrix, Problem};
use super::entry_source::EntrySource;
use super::matrix_kind::MatrixKind;
use super::problem_mode::ProblemMode;
use super::sampled_zeros::{check_unique_positions, has_unique_positions, sample_zeros};
use super::value_statistics::ValueStatistics;
use crate::error::{Error, Result};
use crate::format::{CooView, MAX_DIM, RowMap, RowMapBuilder};
use crate::memory::require_memory;
use crate::parallel::{ThreadPool, thread_count};
use crate::progress::{Monitor, report_progress};
use crate::trace::{self, SpanKind};

/// Indices between two progress reports.
const REPORT_INTERVAL: usize = 1 << 20;

/// Rows and columns of a matrix whose unlisted cells are zeros, per entry of the tensor and the matrix, up to which a fit tries that
/// by itself; a matrix of up to [`MIN_FULL_SIZE`] is always tried. All of them become rows of the model, and time and memory of the
/// trial are proportional to them.
const MAX_FULL_SIZE_PER_ENTRY: u64 = 2;
const MIN_FULL_SIZE: u64 = 1 << 16;

/// Bytes of a row or column of such a matrix in a problem.
const FULL_ROW_BYTES: f64 = 16.0;

/// Fewest entries that are worth more than one thread.
const MIN_PARALLEL_ENTRIES: usize = 1 << 20;

/// Collects the tensor and the matrices of a [`Problem`].
pub struct ProblemBuilder<'a> {
    tensor: CooView<'a>,
    matrices: Vec<MatrixInput<'a>>,
    seed: u64,
    threads: usize,
}

/// A matrix as the caller gave it.
struct MatrixInput<'a> {
    mode: usize,
    view: CooView<'a>,
    weight: Option<f64>,
    penalty: Option<f64>,
    kind: MatrixKind,
    /// Whether it may be full whatever its size.
    may_be_large: bool,
}

/// A matrix whose entries were validated, before the rows of its mode are numbered.
struct ValidatedMatrix<'a> {
    entries: EntrySource<'a>,
    columns: RowMap,
    is_constant: bool,
    may_be_full: bool,
    refused_full_size: Option<u64>,
    statistics: ValueStatistics,
}

impl<'a> Problem<'a> {
    /// Starts a problem with its tensor.
    pub fn builder(tensor: CooView<'a>) -> ProblemBuilder<'a> {
        ProblemBuilder {
            tensor,
            matrices: Vec::new(),
            seed: 0,
            threads: 1,
        }
    }
}

impl<'a> ProblemBuilder<'a> {
    /// Couples a matrix to `mode` (counted from 0): the rows of the matrix are the rows of that mode. Without a `weight`
    /// the options of the fit decide.
    pub fn matrix(
        mut self,
        mode: usize,
        matrix: CooView<'a>,
        weight: impl Into<Option<f64>>,
        kind: MatrixKind,
    ) -> Self {
        self.matrices.push(MatrixInput {
            mode,
            view: matrix,
            weight: weight.into(),
            penalty: None,
            kind,
            may_be_large: false,
        });
        self
    }

    /// Leaves it open whether the matrix that was added last is full, whatever its size.
    pub(crate) fn may_be_large(mut self) -> Self {
        if let Some(last) = self.matrices.last_mut() {
            last.may_be_large = true;
        }
        self
    }

    /// Sets the penalty on V of the matrix that was added last.
    pub fn penalty(mut self, penalty: f64) -> Self {
        if let Some(last) = self.matrices.last_mut() {
            last.penalty = Some(penalty);
        }
        self
    }

    /// Sets the seed of sampled zeros, 0 by default. Give it the seed of the fit.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of threads that read a large tensor, at most one per mode; 0 takes all available cores. The default
    /// is 1.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Checks modes, sizes, weights and penalties without reading entries. Returns the size of each mode.
    pub fn check(&self) -> Result<Vec<u64>> {
        for matrix in &self.matrices {
            self.check_matrix(matrix)?;
        }
        self.common_dims()
    }

    /// Reads and validates everything.
    pub fn build(self, monitor: &dyn Monitor) -> Result<Problem<'a>> {
        let _span = trace::span(SpanKind::Reading);
        let dims = self.check()?;
        let tensor = EntrySource::new(self.tensor.clone(), monitor)?;
        let scan = |n: usize, monitor: &dyn Monitor| {
            // The thread of the first mode also validates the entries.
            let statistics = match n {
                0 => Some(ValueStatistics::compute(&tensor, monitor)?),
                _ => None,
            };
            let mut rows = RowMapBuilder::new(dims[n])?;
            mark_rows(&tensor, n, &mut rows, monitor)?;
            Ok((statistics, rows))
        };
        let (statistics, mut rows): (Vec<_>, Vec<RowMapBuilder>) =
            self.for_each_mode(monitor, scan)?.into_iter().unzip();
        let statistics = statistics.into_iter().flatten().next();
        let statistics = statistics.expect("a tensor has a first mode");
        let mut validated = Vec::new();
        for (m, matrix) in self.matrices.iter().enumerate() {
            let stream = [self.seed, m as u64];
            let entries = self.tensor.len();
            validated.push(matrix.validate(&mut rows[matrix.mode], entries, &stream, monitor)?);
        }
        let finish = |rows: RowMapBuilder| rows.finish().map(Arc::new);
        let rows: Vec<Arc<RowMap>> = rows.into_iter().map(finish).collect::<Result<_>>()?;
        let count = |n: usize, monitor: &dyn Monitor| {
            ProblemMode::count(rows[n].clone(), &tensor, n, monitor)
        };
        let modes = self.for_each_mode(monitor, count)?;
        let mut matrices = Vec::with_capacity(validated.len());
        for (matrix, validated) in self.matrices.into_iter().zip(validated) {
            let mode_rows = modes[matrix.mode].rows.len();
            matrices.push(matrix.couple(validated, mode_rows, monitor)?);
        }
        Ok(Problem {
            tensor,
            modes,
            matrices,
            statistics,
        })
    }

    /// Calls `work` with the number of each mode and a monitor, in parallel for a large tensor. Returns the results in order.
    fn for_each_mode<T: Send>(
        &self,
        monitor: &dyn Monitor,
        work: impl Fn(usize, &dyn Monitor) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let order = self.tensor.order();
        let threads = thread_count(self.threads)?;
        if threads == 1 || self.tensor.len() < MIN_PARALLEL_ENTRIES {
            return (0..order).map(|n| work(n, monitor)).collect();
        }
        report_progress(monitor, "checking entries", 0, self.tensor.len() as u64)?;
        let pool = ThreadPool::new(threads.min(order), false, 0).with_monitor(monitor);
        let stop = pool.stop();
        pool.try_map(order, || Ok(()), |(), n| work(n, stop))
    }

    fn check_matrix(&self, input: &MatrixInput<'_>) -> Result<()> {
        let MatrixInput {
            mode,
            view: matrix,
            weight,
            penalty,
            kind,
            ..
        } = input;
        let order = self.tensor.order();
        let bad = |reason: String| Err(Error::argument(format!("{}: {reason}", matrix.name())));
        if *mode >= order {
            return bad(format!(
                "coupled to mode {}, but {} has modes 1 to {order}",
                mode + 1,
                self.tensor.name()
            ));
        }
        if matrix.order() != 2 {
            return bad(format!(
                "has {} modes; a coupled matrix has 2 (rows of the tensor's mode, columns of its own)",
                matrix.order()
            ));
        }
        if let Some(weight) = weight.filter(|w| !(w.is_finite() && *w >= 0.0)) {
            return bad(format!(
                "weight {weight}; it must be a finite number, 0 or more"
            ));
        }
        if let Some(p) = penalty.filter(|p| !(p.is_finite() && *p >= 0.0)) {
            return bad(format!(
                "penalty {p}; it must be a finite number, 0 or more"
            ));
        }
        let (rows, columns) = (matrix.dims()[0], matrix.dims()[1]);
        if *kind == MatrixKind::Graph && rows != columns && !matrix.dims_inferred() {
            return bad(format!(
                "is {rows} x {columns}; a graph between the rows of a mode must be square"
            ));
        }
        if *kind == MatrixKind::Sampled(0) {
            return bad(
                "sampled with 0 zeros for each entry; give 1 or more, or leave it observed".into(),
            );
        }
        let has_implicit_zeros = matches!(kind, MatrixKind::Full | MatrixKind::Sampled(_));
        if has_implicit_zeros && matrix.weights().is_some() {
            return bad(format!(
                "has weights, which zeros that are not listed lack; a matrix that is {kind} has none"
            ));
        }
        Ok(())
    }

    /// Returns the size of each mode, on which tensor and matrices must agree. Stated sizes must be equal; inferred sizes,
    /// which are the largest index seen, may be smaller.
    fn common_dims(&self) -> Result<Vec<u64>> {
        struct ModeSize<'n> {
            name: &'n str,
            size: u64,
            is_stated: bool,
        }
        let mut dims = Vec::with_capacity(self.tensor.order());
        for n in 0..self.tensor.order() {
            let mut sizes = vec![ModeSize {
                name: self.tensor.name(),
                size: self.tensor.dims()[n],
                is_stated: !self.tensor.dims_inferred(),
            }];
            for MatrixInput { view, kind, .. } in self.matrices.iter().filter(|m| m.mode == n) {
                let size = match kind {
                    MatrixKind::Graph => view.dims()[0].max(view.dims()[1]),
                    _ => view.dims()[0],
                };
                sizes.push(ModeSize {
                    name: view.name(),
                    size,
                    is_stated: !view.dims_inferred(),
                });
            }
            let stated = sizes.iter().find(|s| s.is_stated);
            let size = stated.map_or_else(
                || sizes.iter().map(|s| s.size).max().unwrap_or(MAX_DIM),
                |s| s.size,
            );
            for other in &sizes {
                if (other.is_stated && other.size != size) || other.size > size {
                    let stated = stated.expect("without a stated size the largest is taken");
                    let relation = if other.is_stated {
                        "rows"
                    } else {
                        "rows at least"
                    };
                    return Err(Error::argument(format!(
                        "mode {} has size {size} in {}, but {} has {} {relation}; \
                         both must state the same size (convert with the option dims)",
                        n + 1,
                        stated.name,
                        other.name,
                        other.size
                    )));
                }
            }
            dims.push(size);
        }
        Ok(dims)
    }
}

impl<'a> MatrixInput<'a> {
    /// Validates the entries, samples zeros, and marks the rows and columns that occur. `mode_rows` are the rows of the
    /// coupled mode; `stream` identifies the random stream of sampled zeros. The tensor has `tensor_entries`.
    fn validate(
        &self,
        mode_rows: &mut RowMapBuilder,
        tensor_entries: usize,
        stream: &[u64],
        monitor: &dyn Monitor,
    ) -> Result<ValidatedMatrix<'a>> {
        let matrix = &self.view;
        let mut entries = EntrySource::new(matrix.clone(), monitor)?;
        let statistics = ValueStatistics::compute(&entries, monitor)?;
        let range = statistics.range;
        mark_rows(&entries, 0, mode_rows, monitor)?;
        if self.kind.is_graph() {
            mark_rows(&entries, 1, mode_rows, monitor)?;
        }
        let width = match self.kind {
            MatrixKind::Graph => 0,
            _ => matrix.dims()[1],
        };
        let full_size = mode_rows.dim() + width;
        let mut columns = RowMapBuilder::new(width)?;
        match self.kind {
            MatrixKind::Graph => {}
            MatrixKind::Observed | MatrixKind::Auto => {
                mark_rows(&entries, 1, &mut columns, monitor)?;
            }
            MatrixKind::Full => {
                mark_rows(&entries, 1, &mut columns, monitor)?;
                check_unique_positions(matrix, monitor)?;
                require_memory(
                    full_size as f64 * FULL_ROW_BYTES,
                    &format!(
                        "{}: {full_size} rows and columns of a full matrix need",
                        matrix.name()
                    ),
                    "state smaller sizes, or couple the matrix as observed or sampled",
                )?;
                mode_rows.mark_all()?;
                columns.mark_all()?;
            }
            MatrixKind::Sampled(per_entry) => {
                mark_rows(&entries, 1, &mut columns, monitor)?;
                entries.zeros = sample_zeros(matrix, per_entry, stream, monitor)?;
                for_each_zero(&entries, monitor, |column| {
                    columns.mark(column);
                })?;
            }
        }
        let is_constant = range.min == range.max && entries.zeros[0].is_empty();
        let is_unweighted = matrix.weights().is_none() && !matrix.is_empty();
        let is_open =
            self.kind == MatrixKind::Auto && is_constant && is_unweighted && range.min != 0.0;
        let all_entries = (tensor_entries + matrix.len()) as u64;
        let max_size = MIN_FULL_SIZE.max(MAX_FULL_SIZE_PER_ENTRY * all_entries);
        let is_small = full_size <= max_size || self.may_be_large;
        let may_be_full = is_open && is_small && has_unique_positions(matrix, monitor)?;
        Ok(ValidatedMatrix {
            is_constant,
            may_be_full,
            refused_full_size: (is_open && !is_small).then_some(full_size),
            entries,
            columns: columns.finish()?,
            statistics,
        })
    }

    /// Counts the entries of each column. `mode_rows` is the number of rows of the coupled mode.
    fn couple(
        self,
        validated: ValidatedMatrix<'a>,
        mode_rows: usize,
        monitor: &dyn Monitor,
    ) -> Result<CoupledMatrix<'a>> {
        let ValidatedMatrix {
            entries,
            columns,
            is_constant,
            may_be_full,
            refused_full_size,
            statistics,
        } = validated;
        let mut columns = match self.kind {
            MatrixKind::Graph => ProblemMode::empty(columns),
            _ => ProblemMode::count(Arc::new(columns), &entries, 1, monitor)?,
        };
        let counts = Arc::make_mut(&mut columns.counts);
        if self.kind == MatrixKind::Full {
            counts.fill(mode_rows as u64);
        }
        for_each_zero(&entries, monitor, |column| {
            if let Some(row) = columns.rows.compact(column) {
                counts[row as usize] += 1;
            }
        })?;
        Ok(CoupledMatrix {
            mode: self.mode,
            weight: self.weight,
            penalty: self.penalty,
            kind: match self.kind {
                MatrixKind::Auto => MatrixKind::Observed,
                kind => kind,
            },
            entries,
            columns,
            is_constant,
            may_be_full,
            refused_full_size,
            statistics,
        })
    }
}

/// Calls `visit` with the column of each sampled zero.
fn for_each_zero(
    entries: &EntrySource<'_>,
    monitor: &dyn Monitor,
    mut visit: impl FnMut(u32),
) -> Result<()> {
    let columns = &entries.zeros[1];
    for (chunk, zeros) in columns.chunks(REPORT_INTERVAL).enumerate() {
        let done = (chunk * REPORT_INTERVAL) as u64;
        report_progress(monitor, "finding columns", done, columns.len() as u64)?;
        zeros.iter().for_each(|&column| visit(column));
    }
    Ok(())
}

/// Marks the rows that occur in column `n` with positive weight. The entries must be valid; one that a mapped file shows only now,
/// because it changed, is rejected when the entries are copied.
fn mark_rows(
    entries: &EntrySource<'_>,
    n: usize,
    rows: &mut RowMapBuilder,
    monitor: &dyn Monitor,
) -> Result<()> {
    let (view, is_weighted) = (entries.view(), entries.is_weighted());
    for (chunk, indices) in view.column(n).chunks(REPORT_INTERVAL).enumerate() {
        let start = chunk * REPORT_INTERVAL;
        report_progress(monitor, "finding rows", start as u64, view.len() as u64)?;
        for (k, &index) in indices.iter().enumerate() {
            if !is_weighted || entries.weights.get(start + k) > 0.0 {
                rows.mark(index);
            }
        }
    }
    Ok(())
}
