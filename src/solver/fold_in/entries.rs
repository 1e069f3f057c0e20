//! The entries of new rows, read from the input and grouped by row.

use super::input::{FoldIn, FoldSummary};
use super::units::Units;
use crate::error::{Error, Result};
use crate::format::{CooView, for_each_valid_batch};
use crate::kernel::{CooSlices, ModeCsr};
use crate::model::{Model, PosteriorSamples, ProbitLink};
use crate::problem::MatrixKind;
use crate::progress::{Monitor, report_progress};
use crate::try_alloc::try_with_capacity;

/// Validates all entries and returns the indices of the new rows, ascending.
pub(super) fn new_row_indices(input: &FoldIn<'_>, monitor: &dyn Monitor) -> Result<Vec<u32>> {
    let tensor = input.tensor.iter().map(|view| (view, input.mode));
    let views = tensor.chain(input.matrices.iter().map(|m| (&m.entries, 0)));
    let mut indices = Vec::new();
    for (view, n) in views {
        for_each_valid_batch(view, monitor, "finding rows", &mut |columns, _| {
            for &index in columns[n] {
                if indices.last() != Some(&index) {
                    indices.push(index);
                }
            }
            Ok(())
        })?;
    }
    indices.sort_unstable();
    indices.dedup();
    Ok(indices)
}

/// Returns the position of the new row of entry `i` among the new rows.
fn row_position(indices: &[u32], view: &CooView<'_>, i: usize, index: u32) -> Result<u32> {
    let position = indices.binary_search(&index).map_err(|_| {
        Error::entry(
            view.name(),
            i as u64,
            "has changed while it was read; do not change a file in use, or open it as a private copy",
        )
    })?;
    Ok(position as u32)
}

/// Groups the tensor entries by new row, with scaled values, and counts them in `summary`.
pub(super) fn tensor_entries(
    model: &Model,
    input: &FoldIn<'_>,
    indices: &[u32],
    units: &Units,
    summary: &mut FoldSummary,
    monitor: &dyn Monitor,
) -> Result<ModeCsr> {
    let count = input.tensor.as_ref().map_or(0, CooView::len);
    let mut rows: Vec<u32> = try_with_capacity(count * model.order(), "indices")?;
    let mut values: Vec<f32> = try_with_capacity(count, "entries")?;
    let mut weights: Vec<f32> = Vec::new();
    let link = model.samples().and_then(PosteriorSamples::link);
    if let Some(view) = &input.tensor {
        for i in 0..count {
            if i % (1 << 16) == 0 {
                report_progress(monitor, "reading entries", i as u64, count as u64)?;
            }
            match view.weight(i)? {
                Some(0.0) => continue,
                weight => weights.extend(weight.map(|w| (w / model.weight_unit) as f32)),
            }
            let mut unknown = false;
            for n in 0..model.order() {
                let index = view.column(n)[i];
                if n == input.mode {
                    rows.push(row_position(indices, view, i, index)?);
                    continue;
                }
                let row = model.row_of(n, index);
                unknown |= row as usize == model.modes[n].rows.len();
                rows.push(row);
            }
            summary.unknown += u64::from(unknown);
            let value = view.values().get(i);
            let scaled = ((value - units.mean) / units.scale) as f32;
            if !scaled.is_finite() {
                return Err(view.not_finite(i, "standardized value", value));
            }
            let is_neither =
                |l: &ProbitLink| ![l.low as f32, l.high as f32].contains(&(value as f32));
            if let Some(link) = link.filter(is_neither) {
                return Err(Error::argument(format!(
                    "{}: entry {} has the value {value}; the model was fitted to the values {} and {}",
                    view.name(),
                    i + 1,
                    link.low,
                    link.high
                )));
            }
            values.push(scaled);
        }
    }
    summary.entries = values.len() as u64;
    let row_counts = model.modes.iter().enumerate().map(|(n, mode)| {
        if n == input.mode {
            indices.len()
        } else {
            mode.factor.len()
        }
    });
    let row_counts: Vec<usize> = row_counts.collect();
    let entries = CooSlices {
        row_counts: &row_counts,
        rows: &rows,
        values: &values,
        weights: &weights,
    };
    ModeCsr::new(input.mode, entries, monitor)
}

/// Groups the entries of each matrix by new row, with scaled values, and counts them in `summary`.
pub(super) fn matrix_entries(
    model: &Model,
    input: &FoldIn<'_>,
    indices: &[u32],
    units: &Units,
    summary: &mut FoldSummary,
    monitor: &dyn Monitor,
) -> Result<Vec<ModeCsr>> {
    let mut grouped = Vec::new();
    for given in &input.matrices {
        let (view, matrix) = (&given.entries, &model.matrices[given.number]);
        let (mut rows, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..view.len() {
            if i % (1 << 16) == 0 {
                report_progress(monitor, "reading entries", i as u64, view.len() as u64)?;
            }
            let (index, column) = (view.column(0)[i], view.column(1)[i]);
            let value = view.values().get(i);
            if !(value as f32).is_finite() {
                return Err(view.not_finite(i, "value (as a 32-bit number)", value));
            }
            let row = row_position(indices, view, i, index)?;
            let weight = view.weight(i)?;
            if weight == Some(0.0) {
                continue;
            }
            if let Some(column) = matrix.columns.compact(column) {
                weights.extend(weight.map(|w| (w / matrix.weight_unit) as f32));
                // Entries of a full matrix are differences to the unobserved value, which contains the offset.
                let offset = match matrix.kind {
                    MatrixKind::Full => None,
                    _ => matrix.offsets.get(column as usize).copied(),
                };
                let centered = value - f64::from(offset.unwrap_or(0.0));
                rows.extend([row, column]);
                values.push((centered / units.matrix_scales[given.number]) as f32);
            }
        }
        summary.matrix_entries += values.len() as u64;
        let row_counts = [indices.len(), matrix.columns.len()];
        let entries = CooSlices {
            row_counts: &row_counts,
            rows: &rows,
            values: &values,
            weights: &weights,
        };
        grouped.push(ModeCsr::new(0, entries, monitor)?);
    }
    Ok(grouped)
}
