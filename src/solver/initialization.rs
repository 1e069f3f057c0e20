//! Where factors start.

use std::sync::Mutex;

use super::data::{Data, stream};
use super::reparametrization;
use super::standardization::Centre;
use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::model::{FactorMatrix, Model};

use crate::kernel::CoreKind;
use crate::options::{Initialization, Options};
use crate::parallel::ThreadPool;
use crate::problem::Problem;
use crate::random::RandomStream;

/// Rows that a thread fills at least.
const PIECE: usize = 1 << 12;

/// Fills a model of zeros with starting values, every thread a piece of each factor: whoever touches memory
/// first gets it near.
pub(super) fn fill(
    model: &mut Model,
    problem: &Problem<'_>,
    data: &Data,
    options: &Options,
    pool: &ThreadPool,
) -> Result<()> {
    if options.start.defines_prior_mean() {
        return identity(model, data, options, pool);
    }
    let order = model.order();
    let core_entries: f64 = match model.shape.kind {
        CoreKind::Full => model.shape.ranks.iter().map(|&j| j as f64).product(),
        CoreKind::Diagonal => model.shape.ranks[0] as f64,
    };
    // The size of one factor such that a product of order + 1 of them, summed over the core, has the
    // size of the values.
    let size = match options.start {
        Initialization::Paper => {
            let (low, high) = problem.range();
            let largest = if high > 0.0 { high } else { low.abs() };
            (largest / core_entries).powf(1.0 / (order as f64 + 1.0))
        }
        _ => (problem.root_mean_square() / core_entries.sqrt()).powf(1.0 / (order as f64 + 1.0)),
    };
    // Data that is all zero gives no size; any will do.
    let size = if size.is_finite() && size > 0.0 {
        size
    } else {
        0.1
    };
    let draw = |s: &mut RandomStream, size: f64| -> f32 {
        let x = match options.start {
            Initialization::Paper => size * (0.5 + 0.5 * s.uniform()),
            _ => size * s.standard_normal(),
        };
        (if options.nonneg { x.abs() } else { x }) as f32
    };
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let count = mode.rows.len();
        fill_rows(
            &mut mode.factor,
            count,
            &[options.seed, n as u64],
            pool,
            |s| draw(s, size),
        )?;
    }
    let mut s = RandomStream::new(&[options.seed, stream::START, 1 << 16]);
    match model.shape.kind {
        CoreKind::Full => {
            let entries: usize = model.shape.ranks.iter().product();
            let dense: Vec<f32> = (0..entries).map(|_| draw(&mut s, size)).collect();
            model.core.copy_from_slice(&model.shape.padded_core(&dense));
        }
        CoreKind::Diagonal => {
            let rank = model.shape.ranks[0];
            model.core[..rank]
                .iter_mut()
                .for_each(|g| *g = draw(&mut s, size));
        }
    }
    for (m, matrix) in model.matrices.iter_mut().enumerate() {
        if matrix.kind.is_graph() {
            continue;
        }
        // y = u . v is as large as the largest value when v is.
        let rank = matrix.factor.rank() as f64;
        let largest = f64::from(data.matrices[m].largest);
        let size = if largest > 0.0 {
            largest / (rank * size)
        } else {
            0.1
        };
        let count = matrix.factor.len();
        let name = [options.seed, (1 << 17) + m as u64];
        fill_rows(&mut matrix.factor, count, &name, pool, |s| {
            match options.start {
                Initialization::Paper => (size * (1.0 + s.uniform())) as f32,
                _ => draw(s, size * rank.sqrt()),
            }
        })?;
    }
    model.update_mean_rows()
}

/// How far rows of two modes are from 0 at the start, for values of deviation 1, and others from 1.
const SPREAD: f64 = 0.1;
const NEAR_ONE: f64 = 0.02;

/// A core of ones on its diagonal; two modes normal around 0, the others near 1.
fn identity(model: &mut Model, data: &Data, options: &Options, pool: &ThreadPool) -> Result<()> {
    let core = model.shape.identity();
    model.core.copy_from_slice(&core);
    let size = SPREAD * data.deviation.sqrt();
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let count = mode.rows.len();
        let (around, size) = match options.start_modes.contains(&(n + 1)) {
            true => (0.0, size),
            false => (1.0, NEAR_ONE),
        };
        fill_rows(
            &mut mode.factor,
            count,
            &[options.seed, n as u64],
            pool,
            |s| (around + size * s.standard_normal()) as f32,
        )?;
    }
    for (m, matrix) in model.matrices.iter_mut().enumerate() {
        let name = [options.seed, (1 << 17) + m as u64];
        let count = matrix.factor.len();
        fill_rows(&mut matrix.factor, count, &name, pool, |s| {
            (SPREAD * s.standard_normal()) as f32
        })?;
    }
    model.update_mean_rows()
}

/// Fills the first `count` rows; each has random numbers of its own.
fn fill_rows(
    rows: &mut FactorMatrix,
    count: usize,
    &[seed, name]: &[u64; 2],
    pool: &ThreadPool,
    draw: impl Fn(&mut RandomStream) -> f32 + Sync,
) -> Result<()> {
    let (rank, stride) = (rows.rank(), rows.stride());
    let all = &mut rows.as_mut_slice()?[..count * stride];
    let piece = count.div_ceil(pool.threads()).max(PIECE);
    let pieces: Vec<Mutex<&mut [f32]>> = all.chunks_mut(piece * stride).map(Mutex::new).collect();
    let fill = |p: usize| {
        let mut rows = pieces[p].lock().unwrap_or_else(|e| e.into_inner());
        for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
            let mut s = RandomStream::new(&[seed, stream::START, name, (p * piece + i) as u64]);
            row[..rank].iter_mut().for_each(|x| *x = draw(&mut s));
        }
    };
    pool.map(pieces.len(), &mut || false, || (), |(), p| fill(p))?;
    Ok(())
}

/// Whether a finished model still is where its priors are: nothing was turned or normalised at the end.
pub(super) fn is_centred(model: &Model) -> bool {
    model.options.start.defines_prior_mean() && !model.orthogonal && !model.options.nonneg
}

/// Takes over the rows, core and columns of a fitted model; rows it lacks keep their starting values, and so do
/// columns where a CP model has fewer and `fewer` allows it. Its sizes may be smaller, its ranks must
/// be the same otherwise. With `nonneg`, what is negative becomes 0.
pub(super) fn from_model(
    model: &mut Model,
    init: &Model,
    centre: &Centre,
    (nonneg, fewer): (bool, bool),
) -> Result<()> {
    let part = fewer
        && [&init.shape, &model.shape].map(|s| s.kind) == [CoreKind::Diagonal; 2]
        && init.shape.ranks[0] < model.shape.ranks[0];
    if init.shape != model.shape && !part {
        return Err(Error::argument(format!(
            "the model to start from has ranks {:?} ({:?}), this fit has {:?} ({:?}); they must be the same",
            init.shape.ranks, init.shape.kind, model.shape.ranks, model.shape.kind
        )));
    }
    let mut balanced = init.try_clone()?;
    let columns = balanced.matrices.iter_mut().map(|m| &mut m.factor);
    centre.rescale(&mut balanced.core, &mut columns.collect::<Vec<_>>(), false)?;
    if !is_centred(init) {
        // Factors of norm 1 and a large core do not suit one step size.
        reparametrization::rebalance(&mut balanced)?;
    }
    let taken = match part {
        true => init.shape.ranks[0],
        false => model.core.len(),
    };
    model.core[..taken].copy_from_slice(&balanced.core[..taken]);
    for (mode, old) in model.modes.iter_mut().zip(&balanced.modes) {
        take_rows(&mut mode.factor, &mode.rows, &old.factor, &old.rows)?;
    }
    // Matrices belong together in the order they were given, where the mode is the same and both have
    // columns or neither.
    for (matrix, old) in model.matrices.iter_mut().zip(&balanced.matrices) {
        if (matrix.mode, matrix.kind.is_graph()) == (old.mode, old.kind.is_graph()) {
            take_rows(
                &mut matrix.factor,
                &matrix.columns,
                &old.factor,
                &old.columns,
            )?;
        }
    }
    if nonneg {
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

/// Notes where penalties pull rows and core to: for a model that was drawn, the mean of the rows of each mode and
/// the core; for one that starts as an identity and is `fresh`, where its numbers are around.
pub(super) fn pull(model: &mut Model, options: &Options, fresh: bool) {
    for (n, mode) in model.modes.iter_mut().enumerate() {
        let around_1 = fresh && !options.start_modes.contains(&(n + 1));
        mode.prior.linear = match options.start {
            // The mean of all rows is kept behind them.
            Initialization::Gibbs => mode.factor.row(mode.factor.len() - 1).to_vec(),
            Initialization::Identity if around_1 => vec![1.0; mode.factor.rank()],
            _ => Vec::new(),
        };
    }
    model.core_prior_mean = match (options.start, model.shape.kind) {
        (Initialization::Gibbs, CoreKind::Full) => model.core.to_vec(),
        (Initialization::Identity, CoreKind::Full) if fresh => model.shape.identity(),
        _ => Vec::new(),
    };
}

fn take_rows(
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
