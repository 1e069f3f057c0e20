//! Starting values of factors, core and matrix columns, and the prior means that penalties shrink them towards.

use std::sync::{Arc, Mutex};

use super::data::Data;
use super::reparametrization;
use super::standardization::{Standardization, ValueUnits};
use super::stream_ids;
use super::support_check::kind_of;
use super::value_scale::unit_of_tensor;
use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::kernel::CoreKind;
use crate::model::{FactorMatrix, Model, ModelMatrix, ModelMode};
use crate::options::{Initialization, Options};
use crate::parallel::ThreadPool;
use crate::problem::Problem;
use crate::progress::{Monitor, OPERATIONS_PER_NORMAL_SAMPLE, count_operations, steps_per_poll};
use crate::random::RandomStream;
use crate::sort::stable_sort_by_key;
use crate::try_alloc::{CORE_ENTRIES, try_to_vec, try_with_capacity};
use crate::value_range::ValueRange;

/// Fewest rows that a thread fills.
const MIN_ROWS_PER_TASK: usize = 1 << 12;

/// Standard deviation of the rows of the two modes around 0 and of matrix columns, for values of standard deviation 1.
/// Found with a prototype on MovieLens 1M.
const FACTOR_DEVIATION: f64 = 0.1;

/// Standard deviation around 1 of the rows of all other modes.
const UNIT_MODE_DEVIATION: f64 = 0.02;

/// Random streams of the core and of the first matrix. Those of the modes are numbered from 0.
const CORE_STREAM: u64 = 1 << 16;
const FIRST_MATRIX_STREAM: u64 = 1 << 17;

/// Fills a model of zeros with random starting values. Each thread fills part of every factor, so that its memory pages
/// are placed near that thread. With `start = identity` the rows of `zero_mean_modes` are around 0, all others near 1.
pub fn fill(
    model: &mut Model,
    problem: &Problem<'_>,
    data: &Data,
    options: &Options,
    zero_mean_modes: [usize; 2],
    pool: &ThreadPool<'_>,
) -> Result<()> {
    if options.start.defines_prior_mean() {
        return fill_identity(model, data, options.seed, zero_mean_modes, pool);
    }
    let order = model.order();
    let core_entries: f64 = match model.shape.kind() {
        CoreKind::Full => model.shape.ranks().iter().map(|&j| j as f64).product(),
        CoreKind::Diagonal => model.shape.ranks()[0] as f64,
    };
    let unit = unit_of_tensor(problem);
    // Magnitude of an element such that a product of order + 1 of them, summed over the core, has the magnitude of the
    // values.
    let size = match options.start {
        Initialization::Paper => {
            let ValueRange { min, max } = problem.range();
            let largest = if max > 0.0 { max } else { min.abs() };
            (largest / unit / core_entries).powf(1.0 / (order as f64 + 1.0))
        }
        _ => {
            let magnitude = problem.root_mean_square() / unit;
            (magnitude / core_entries.sqrt()).powf(1.0 / (order as f64 + 1.0))
        }
    };
    // Values that are all 0 determine no magnitude; any is valid.
    let size = if size.is_finite() && size > 0.0 {
        size
    } else {
        0.1
    };
    let sample = |s: &mut RandomStream, size: f64| -> f32 {
        let x = match options.start {
            Initialization::Paper => size * (0.5 + 0.5 * s.uniform()),
            _ => size * s.standard_normal(),
        };
        (if options.nonneg { x.abs() } else { x }) as f32
    };
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let count = mode.rows.len();
        fill_rows(&mut mode.factor, count, options.seed, n as u64, pool, |s| {
            sample(s, size)
        })?;
    }
    let mut s = RandomStream::new(&[options.seed, stream_ids::INITIALIZATION, CORE_STREAM]);
    match model.shape.kind() {
        CoreKind::Full => {
            let entries: usize = model.shape.ranks().iter().product();
            let mut dense = try_with_capacity(entries, CORE_ENTRIES)?;
            let per_poll = steps_per_poll(OPERATIONS_PER_NORMAL_SAMPLE);
            for first in (0..entries).step_by(per_poll) {
                pool.check_cancelled()?;
                let count = per_poll.min(entries - first);
                dense.extend((0..count).map(|_| sample(&mut s, size)));
                count_operations(count * OPERATIONS_PER_NORMAL_SAMPLE);
            }
            pool.check_cancelled()?;
            model
                .core
                .copy_from_slice(&model.shape.padded_core(&dense)?);
        }
        CoreKind::Diagonal => {
            let rank = model.shape.ranks()[0];
            model.core[..rank]
                .iter_mut()
                .for_each(|g| *g = sample(&mut s, size));
        }
    }
    for (m, matrix) in model.matrices.iter_mut().enumerate() {
        if matrix.kind.is_graph() {
            continue;
        }
        // With this magnitude of v, y = u . v reaches the largest value.
        let rank = matrix.factor.rank() as f64;
        let largest = f64::from(data.matrices[m].max_abs_value);
        let size = if largest > 0.0 {
            largest / (rank * size)
        } else {
            0.1
        };
        let count = matrix.factor.len();
        let stream = FIRST_MATRIX_STREAM + m as u64;
        fill_rows(
            &mut matrix.factor,
            count,
            options.seed,
            stream,
            pool,
            |s| match options.start {
                Initialization::Paper => (size * (1.0 + s.uniform())) as f32,
                _ => sample(s, size * rank.sqrt()),
            },
        )?;
    }
    model.update_mean_rows()
}

/// Returns the two modes with the most rows, counted from 0, in ascending order.
pub fn two_largest_modes(problem: &Problem<'_>) -> [usize; 2] {
    let mut modes: Vec<usize> = (0..problem.order()).collect();
    stable_sort_by_key(&mut modes, &|&n| {
        std::cmp::Reverse(problem.modes()[n].rows().len())
    });
    [modes[0].min(modes[1]), modes[0].max(modes[1])]
}

/// Fills a model for `start = identity`: a core with ones on its diagonal, two modes normal around 0, the others near 1.
fn fill_identity(
    model: &mut Model,
    data: &Data,
    seed: u64,
    zero_mean_modes: [usize; 2],
    pool: &ThreadPool<'_>,
) -> Result<()> {
    let core = model.shape.identity()?;
    model.core.copy_from_slice(&core);
    let size = FACTOR_DEVIATION * data.deviation.sqrt();
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let count = mode.rows.len();
        let (mean, size) = if zero_mean_modes.contains(&n) {
            (0.0, size)
        } else {
            (1.0, UNIT_MODE_DEVIATION)
        };
        fill_rows(&mut mode.factor, count, seed, n as u64, pool, |s| {
            (mean + size * s.standard_normal()) as f32
        })?;
    }
    for (m, matrix) in model.matrices.iter_mut().enumerate() {
        let stream = FIRST_MATRIX_STREAM + m as u64;
        let count = matrix.factor.len();
        fill_rows(&mut matrix.factor, count, seed, stream, pool, |s| {
            (FACTOR_DEVIATION * s.standard_normal()) as f32
        })?;
    }
    model.update_mean_rows()
}

/// Fills the first `count` rows of a factor; each row has a random stream of its own.
fn fill_rows(
    rows: &mut FactorMatrix,
    count: usize,
    seed: u64,
    stream: u64,
    pool: &ThreadPool<'_>,
    sample: impl Fn(&mut RandomStream) -> f32 + Sync,
) -> Result<()> {
    let rank = rows.rank();
    for_each_row(rows, count, pool, |i, row| {
        let mut s = RandomStream::new(&[seed, stream_ids::INITIALIZATION, stream, i as u64]);
        row[..rank].iter_mut().for_each(|x| *x = sample(&mut s));
    })
}

/// Calls `write` with the number of each of the first `count` rows of a factor and the row with its padding. Each thread
/// writes to consecutive rows.
fn for_each_row(
    rows: &mut FactorMatrix,
    count: usize,
    pool: &ThreadPool<'_>,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<()> {
    let stride = rows.stride();
    let all = &mut rows.as_mut_slice()?[..count * stride];
    let rows_per_task = count.div_ceil(pool.threads()).max(MIN_ROWS_PER_TASK);
    let tasks: Vec<Mutex<&mut [f32]>> = all
        .chunks_mut(rows_per_task * stride)
        .map(Mutex::new)
        .collect();
    let stop = pool.stop();
    let run_task = |t: usize| {
        let mut rows = tasks[t].lock().unwrap_or_else(|e| e.into_inner());
        for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
            if i % MIN_ROWS_PER_TASK == 0 && stop.requested() {
                break;
            }
            write(t * rows_per_task + i, row);
        }
    };
    pool.map(tasks.len(), || (), |(), t| run_task(t))?;
    Ok(())
}

/// Returns whether the factors of a finished model are still those of a fit with prior means: neither orthogonalized nor
/// normalized.
pub(super) fn has_prior_means(model: &Model) -> bool {
    model.options.start.defines_prior_mean() && !model.orthogonal && !model.options.nonneg
}

/// Returns whether [`take_parameters`] can fill `model` from `start` as [`fill`] and [`from_model`] would.
pub(super) fn has_all_parameters(start: &Model, model: &Model) -> bool {
    let same_rows = |(a, b): (&ModelMode, &ModelMode)| Arc::ptr_eq(&a.rows, &b.rows);
    let same_columns = |(a, b): (&ModelMatrix, &ModelMatrix)| Arc::ptr_eq(&a.columns, &b.columns);
    has_prior_means(start)
        && start.shape == model.shape
        && start.matrices.len() == model.matrices.len()
        && start.modes.iter().zip(&model.modes).all(same_rows)
        && start.matrices.iter().zip(&model.matrices).all(same_columns)
}

/// Moves the parameters of `start`, for which [`has_all_parameters`] holds, into a model of zeros. Frees each factor before
/// the next one is copied. Each thread writes to the same rows as in [`fill`].
pub(super) fn take_parameters(
    model: &mut Model,
    start: &mut Model,
    standardization: &Standardization,
    pool: &ThreadPool<'_>,
) -> Result<()> {
    model.core.copy_from_slice(&start.core);
    for (mode, old) in model.modes.iter_mut().zip(&mut start.modes) {
        let from = std::mem::replace(&mut old.factor, FactorMatrix::zeros(0, mode.factor.rank())?);
        let rows = from.len();
        for_each_row(&mut mode.factor, rows, pool, |i, row| {
            row.copy_from_slice(from.padded_row(i));
        })?;
    }
    for (matrix, old) in model.matrices.iter_mut().zip(&mut start.matrices) {
        std::mem::swap(&mut matrix.factor, &mut old.factor);
    }
    standardization.convert_model(model, ValueUnits::Standardized)?;
    model.update_mean_rows()
}

/// How [`from_model`] treats a model that does not fit exactly.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarmStart {
    /// Whether negative elements become 0.
    pub nonneg: bool,
    /// Whether a CP model may have a smaller rank. Components that it lacks keep their starting values.
    pub allows_smaller_rank: bool,
}

/// Copies rows, core and matrix columns of a fitted model into `model`. Rows that it lacks keep their starting values. Its
/// sizes may be smaller; its ranks must be equal unless `warm_start` allows otherwise.
pub(super) fn from_model(
    model: &mut Model,
    init: &Model,
    standardization: &Standardization,
    warm_start: WarmStart,
    monitor: &dyn Monitor,
) -> Result<()> {
    let is_smaller = warm_start.allows_smaller_rank
        && [&init.shape, &model.shape].map(|s| s.kind()) == [CoreKind::Diagonal; 2]
        && init.shape.ranks()[0] < model.shape.ranks()[0];
    if init.shape != model.shape && !is_smaller {
        return Err(Error::argument(format!(
            "the model to start from is {} with ranks {:?}, this fit is {} with ranks {:?}; they must be the same",
            kind_of(init).name(),
            init.shape.ranks(),
            kind_of(model).name(),
            model.shape.ranks()
        )));
    }
    // No single learning rate suits factors of norm 1 and a large core. Rows of other models are copied as they are.
    let balanced = if has_prior_means(init) {
        None
    } else {
        let mut balanced = init.try_clone()?;
        standardization.convert_model(&mut balanced, ValueUnits::Standardized)?;
        reparametrization::rebalance(&mut balanced, monitor)?;
        Some(balanced)
    };
    let source = balanced.as_ref().unwrap_or(init);
    let matrices = source.matrices.iter();
    let mut columns: Vec<FactorMatrix> = matrices
        .map(|m| m.factor.try_clone())
        .collect::<Result<_>>()?;
    let core_len = if is_smaller {
        init.shape.ranks()[0]
    } else {
        model.core.len()
    };
    model.core[..core_len].copy_from_slice(&source.core[..core_len]);
    if balanced.is_none() {
        let core = &mut model.core[..core_len];
        standardization.convert_factors(core, columns.iter_mut(), ValueUnits::Standardized)?;
    }
    for (mode, old) in model.modes.iter_mut().zip(&source.modes) {
        copy_rows(&mut mode.factor, &mode.rows, &old.factor, &old.rows)?;
    }
    // Matrices correspond by their order, if the mode is the same and both or neither are graphs.
    let old_matrices = source.matrices.iter().zip(&columns);
    for (matrix, (old, columns)) in model.matrices.iter_mut().zip(old_matrices) {
        if (matrix.mode, matrix.kind.is_graph()) == (old.mode, old.kind.is_graph()) {
            copy_rows(&mut matrix.factor, &matrix.columns, columns, &old.columns)?;
        }
    }
    if warm_start.nonneg {
        let rows = model.modes.iter_mut().map(|m| &mut m.factor);
        for rows in rows.chain(model.matrices.iter_mut().map(|m| &mut m.factor)) {
            rows.as_mut_slice()?
                .iter_mut()
                .for_each(|x| *x = x.max(0.0));
        }
        model.core.iter_mut().for_each(|g| *g = g.max(0.0));
    }
    model.update_mean_rows()
}

/// Sets the prior means that penalties shrink rows and core towards. After a start from posterior samples these are the
/// mean row of each mode and the core itself. After an identity start they are the means of the starting distribution, if
/// the values come `from_identity`: from the start itself, or from a model for which [`has_prior_means`] holds.
pub(super) fn set_prior_means(
    model: &mut Model,
    options: &Options,
    zero_mean_modes: [usize; 2],
    from_identity: bool,
) -> Result<()> {
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let starts_at_1 = from_identity && !zero_mean_modes.contains(&n);
        mode.prior.linear = match options.start {
            // The last row of a factor is the mean of all others.
            Initialization::Gibbs => mode.factor.row(mode.factor.len() - 1).to_vec(),
            Initialization::Identity if starts_at_1 => vec![1.0; mode.factor.rank()],
            _ => Vec::new(),
        };
    }
    model.core_prior_mean = match (options.start, model.shape.kind()) {
        (Initialization::Gibbs, CoreKind::Full) => try_to_vec(&model.core, CORE_ENTRIES)?,
        (Initialization::Identity, CoreKind::Full) if from_identity => model.shape.identity()?,
        _ => Vec::new(),
    };
    Ok(())
}

/// Copies the rows of indices that both factors have.
pub(super) fn copy_rows(
    to: &mut FactorMatrix,
    to_map: &RowMap,
    from: &FactorMatrix,
    from_map: &RowMap,
) -> Result<()> {
    let stride = to.stride();
    let out = to.as_mut_slice()?;
    for (row, index) in out.chunks_exact_mut(stride).zip(to_map.indices()) {
        if let Some(old) = from_map.compact(index) {
            let old = from.row(old as usize);
            row[..old.len()].copy_from_slice(old);
        }
    }
    Ok(())
}
