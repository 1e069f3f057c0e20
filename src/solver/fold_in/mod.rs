//! New rows of a fitted model, in closed form.

mod extended_mode;
#[cfg(test)]
mod tests;
mod work;

use work::FoldWork;

use super::rowwise::Fold;
use crate::error::{Error, Result};
use crate::format::{CooView, MAX_DIM};

use crate::kernel::{CooSlices, ModeCsr};
use crate::try_alloc::try_with_capacity;

use crate::model::Model;
use crate::options::{Algorithm, Penalty};
use crate::parallel::{ThreadPool, available_threads};
use crate::problem::MatrixKind;
use crate::progress::{Monitor, report_progress};
use crate::simd::Level;

/// Everything that is known of new rows of one mode.
#[derive(Default)]
pub struct FoldIn<'a> {
    /// The mode, counted from 0.
    pub mode: usize,
    /// Tensor entries of the new rows. Rows of other modes that the model does not know count as the
    /// mean row of their mode. A cell listed twice counts twice, as in a fit.
    pub tensor: Option<CooView<'a>>,
    /// Entries of matrices that are coupled to the mode.
    pub matrices: Vec<FoldMatrix<'a>>,
    /// Whether rows that the model has from tensor entries are found anew from these entries alone;
    /// otherwise they are an error.
    pub replace: bool,
    /// The number of threads; 0 takes all this process may use. The result does not depend on it.
    pub threads: usize,
}

/// Entries of a coupled matrix for new rows.
pub struct FoldMatrix<'a> {
    /// Its number among the matrices of the model, counted from 0.
    pub number: usize,
    /// Rows of the mode, and columns that the model knows; entries of other columns say nothing.
    pub entries: CooView<'a>,
    /// Its weight; `None` is that of the fit.
    pub weight: Option<f64>,
}

/// What was folded in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoldSummary {
    /// Rows that the model did not have.
    pub added: u64,
    /// Rows that it had.
    pub replaced: u64,
    /// Of all these rows, those without tensor entries.
    pub without_entries: u64,
    /// Tensor entries.
    pub entries: u64,
    /// Those of them that have a row of another mode which the model does not know.
    pub unknown: u64,
    /// Entries of matrices, in columns that the model knows.
    pub matrix_entries: u64,
}

/// A model with the rows that `input` says something of, which are found given everything else, as the fit
/// would have found them: by least squares with its penalties, priors, weights and offsets; of a model of
/// samples, drawn once for each sample. All other predictions stay as they are, bit by bit.
pub fn fold_in(
    model: &Model,
    input: &FoldIn<'_>,
    monitor: &dyn Monitor,
) -> Result<(Model, FoldSummary)> {
    check(model, input)?;
    let mut summary = FoldSummary::default();
    let names = names(input)?;
    if names.is_empty() {
        return Err(Error::argument(match &input.tensor {
            Some(view) => format!(
                "{}: without entries there is nothing to fold in",
                view.name()
            ),
            None => "without entries there is nothing to fold in".into(),
        }));
    }
    let mode = &model.modes[input.mode];
    for &name in &names {
        match mode.rows.compact(name) {
            None => summary.added += 1,
            Some(row) if input.replace || mode.counts[row as usize] == 0 => summary.replaced += 1,
            Some(_) => {
                return Err(Error::argument(format!(
                    "row {} of mode {} is in the model already, from {} entries; leave it out, or \
                     replace it by what all its entries together give",
                    u64::from(name) + 1,
                    input.mode + 1,
                    mode.counts[mode.rows.compact(name).unwrap_or(0) as usize],
                )));
            }
        }
    }
    let units = Units::of(model);
    let level = Level::choose(None)?;
    let fold = Fold {
        mode: input.mode,
        names: &names,
        tensor: tensor_lists(model, input, &names, &units, &mut summary, monitor)?,
        matrices: matrix_lists(model, input, &names, &units, &mut summary, monitor)?,
        level,
    };
    summary.without_entries = (0..names.len())
        .filter(|&i| fold.tensor.row_entries(i).is_empty())
        .count() as u64;
    let threads = match input.threads {
        0 => available_threads(),
        n => n,
    };
    let pool = ThreadPool::new(threads, false, 0);
    let work = FoldWork {
        model,
        input,
        fold: &fold,
        units: &units,
        pool: &pool,
        monitor,
    };
    let folded = work.folded()?;
    match folded.is_finite() {
        true => Ok((folded, summary)),
        false => Err(Error::argument(
            "the rows that follow from these entries are not finite; scale down the values",
        )),
    }
}

/// What cannot be folded in.
fn check(model: &Model, input: &FoldIn<'_>) -> Result<()> {
    let n = input.mode;
    if n >= model.order() {
        return Err(Error::argument(format!(
            "mode {}; the model has {}",
            n + 1,
            model.order()
        )));
    }
    let draws = model.options.algorithm == Algorithm::Gibbs;
    if draws && model.samples().is_none() {
        return Err(Error::argument(
            "the model has no samples yet, so that there is nothing to fold rows into; finish its fit",
        ));
    }
    let kept = match draws {
        true => true,
        false => model.precision.is_some(),
    };
    if !kept {
        return Err(earlier());
    }
    if !draws && model.options.penalty == Penalty::L1 {
        return Err(Error::argument(
            "the model has an l1 penalty, with which rows have no closed form; fit one with l2",
        ));
    }
    input.tensor.iter().try_for_each(|t| model.check_order(t))?;
    for (k, given) in input.matrices.iter().enumerate() {
        let (view, number) = (&given.entries, given.number);
        let wrong = |what: String| Err(Error::argument(format!("{}: {what}", view.name())));
        let Some(matrix) = model.matrices.get(number) else {
            return wrong(format!(
                "is given as matrix {} of the model, which has {}",
                number + 1,
                model.matrices.len()
            ));
        };
        if matrix.mode != n {
            return wrong(format!(
                "matrix {} of the model is coupled to mode {}, not to mode {}",
                number + 1,
                matrix.mode + 1,
                n + 1
            ));
        }
        if matrix.kind == MatrixKind::Graph {
            return wrong(format!(
                "matrix {} of the model is a graph; rows are folded in without graphs",
                number + 1
            ));
        }
        if view.order() != 2 {
            return wrong(format!("has {} modes; a matrix has 2", view.order()));
        }
        if input.matrices[..k].iter().any(|m| m.number == number) {
            return wrong(format!("matrix {} of the model is given twice", number + 1));
        }
        if let Some(weight) = given.weight.filter(|w| !(w.is_finite() && *w >= 0.0)) {
            return wrong(format!(
                "a weight of {weight}; it must be a finite number, 0 or more"
            ));
        }
        let kept = match model.samples() {
            Some(samples) => samples.iter().all(|s| s.columns.len() > number),
            None => matrix.precision.is_some(),
        };
        if !kept {
            return Err(earlier());
        }
    }
    Ok(())
}

fn earlier() -> Error {
    Error::argument(
        "the model was saved by an earlier version, which did not keep what folding in needs; fit it again",
    )
}

/// The indices of the new rows, ascending.
fn names(input: &FoldIn<'_>) -> Result<Vec<u32>> {
    let tensor = input.tensor.iter().map(|view| (view, input.mode));
    let columns = tensor.chain(input.matrices.iter().map(|m| (&m.entries, 0)));
    let mut names = Vec::new();
    for (view, n) in columns {
        for (i, &index) in view.column(n).iter().enumerate() {
            if u64::from(index) >= view.dims()[n].min(MAX_DIM) {
                return Err(view.out_of_range(n, i, index));
            }
            if names.last() != Some(&index) {
                names.push(index);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// What lists, biases and columns are divided by: near 1 inside, whatever the values are.
struct Units {
    mean: f64,
    by: f64,
    matrices: Vec<f64>,
}

impl Units {
    fn of(model: &Model) -> Units {
        let unit = |precision: Option<f64>| precision.map_or(1.0, |p| p.powf(-0.5));
        match model.samples() {
            Some(samples) => Units {
                mean: samples.mean(),
                by: samples.scale(),
                matrices: vec![1.0; model.matrices.len()],
            },
            None => Units {
                mean: model.mean,
                by: unit(model.precision),
                matrices: model.matrices.iter().map(|m| unit(m.precision)).collect(),
            },
        }
    }
}

/// Where a new row stands among the new rows.
fn place(names: &[u32], view: &CooView<'_>, i: usize, index: u32) -> Result<u32> {
    let place = names.binary_search(&index).map_err(|_| {
        Error::entry(
            view.name(),
            i as u64,
            "has changed while it was read; do not change a file in use, or open it as a private copy",
        )
    })?;
    Ok(place as u32)
}

fn tensor_lists(
    model: &Model,
    input: &FoldIn<'_>,
    names: &[u32],
    units: &Units,
    summary: &mut FoldSummary,
    monitor: &dyn Monitor,
) -> Result<ModeCsr> {
    let count = input.tensor.as_ref().map_or(0, CooView::len);
    let mut rows: Vec<u32> = try_with_capacity(count * model.order(), "indices")?;
    let mut values: Vec<f32> = try_with_capacity(count, "entries")?;
    let mut weights: Vec<f32> = Vec::new();
    if let Some(view) = &input.tensor {
        for i in 0..count {
            if i % (1 << 16) == 0 {
                report_progress(monitor, "reading entries", i as u64, count as u64)?;
            }
            match view.weight(i)? {
                Some(0.0) => continue,
                weight => weights.extend(weight.map(|w| w as f32)),
            }
            let mut unknown = false;
            for n in 0..model.order() {
                let index = view.column(n)[i];
                if u64::from(index) >= view.dims()[n] {
                    return Err(view.out_of_range(n, i, index));
                }
                if n == input.mode {
                    rows.push(place(names, view, i, index)?);
                    continue;
                }
                let row = model.row_of(n, index);
                unknown |= row as usize == model.modes[n].rows.len();
                rows.push(row);
            }
            summary.unknown += u64::from(unknown);
            let value = view.values().get(i);
            let inside = ((value - units.mean) / units.by) as f32;
            if !value.is_finite() || !inside.is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            values.push(inside);
        }
    }
    summary.entries = values.len() as u64;
    let limits = model.modes.iter().enumerate().map(|(n, mode)| match n {
        n if n == input.mode => names.len(),
        _ => mode.factor.len(),
    });
    let limits: Vec<usize> = limits.collect();
    let entries = CooSlices {
        row_counts: &limits,
        rows: &rows,
        values: &values,
        weights: &weights,
    };
    ModeCsr::new(input.mode, entries)
}

/// The entries of each matrix that is given, in their order.
fn matrix_lists(
    model: &Model,
    input: &FoldIn<'_>,
    names: &[u32],
    units: &Units,
    summary: &mut FoldSummary,
    monitor: &dyn Monitor,
) -> Result<Vec<ModeCsr>> {
    let mut all = Vec::new();
    for given in &input.matrices {
        let (view, matrix) = (&given.entries, &model.matrices[given.number]);
        let (mut rows, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..view.len() {
            if i % (1 << 16) == 0 {
                report_progress(monitor, "reading entries", i as u64, view.len() as u64)?;
            }
            let (index, column) = (view.column(0)[i], view.column(1)[i]);
            if u64::from(column) >= view.dims()[1] {
                return Err(view.out_of_range(1, i, column));
            }
            let value = view.values().get(i);
            if !(value as f32).is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            let row = place(names, view, i, index)?;
            let weight = view.weight(i)?;
            if weight == Some(0.0) {
                continue;
            }
            if let Some(column) = matrix.columns.compact(column) {
                weights.extend(weight.map(|w| w as f32));
                // What a full matrix lists counts from 0.
                let offset = match matrix.kind {
                    MatrixKind::Full => None,
                    _ => matrix.offsets.get(column as usize).copied(),
                };
                let left = value - f64::from(offset.unwrap_or(0.0));
                rows.extend([row, column]);
                values.push((left / units.matrices[given.number]) as f32);
            }
        }
        summary.matrix_entries += values.len() as u64;
        let limits = [names.len(), matrix.columns.len()];
        let entries = CooSlices {
            row_counts: &limits,
            rows: &rows,
            values: &values,
            weights: &weights,
        };
        all.push(ModeCsr::new(0, entries)?);
    }
    Ok(all)
}
