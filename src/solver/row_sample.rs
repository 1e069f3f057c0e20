//! Entries of a random part of the rows of the largest mode.
//!
//! Rows of one mode are independent given those of all others, so a part of the rows of the largest mode determines the
//! rows of the other modes. Each of its rows has as many entries as in the whole problem, where a sample of as many random
//! entries leaves all rows with few. In: a problem. Out: a smaller problem, and later a model of all rows.

use std::ops::Range;

use super::holdout_split::HoldoutSplit;
use super::initialization::copy_rows;
use super::stream_ids;
use crate::error::Result;
use crate::format::{CooView, Values};
use crate::model::Model;
use crate::options::Options;
use crate::parallel::ThreadPool;
use crate::problem::{MatrixKind, Problem};
use crate::progress::Monitor;
use crate::random::hash_words;
use crate::try_alloc::{try_collect, try_with_capacity};

/// Number of entries that one task reads.
const CHUNK: usize = 1 << 18;

/// Which rows and entries a sample has.
#[derive(Clone, Copy)]
pub(super) struct RowSampling {
    /// Fraction of the rows of the largest mode.
    pub row_fraction: f64,
    /// Split of the entries. The sample has training entries only.
    pub split: HoldoutSplit,
    pub seed: u64,
}

/// The entries of a sample, in the order and with the indices of the problem.
pub(super) struct RowSample {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
    /// Empty if entries are unweighted.
    weights: Vec<f64>,
}

impl RowSample {
    /// Copies the entries of a sample of `problem`.
    pub(super) fn read(
        problem: &Problem<'_>,
        sampling: RowSampling,
        pool: &ThreadPool<'_>,
    ) -> Result<RowSample> {
        let view = problem.tensor().view();
        let mode = largest_mode(problem);
        let largest = view.column(mode);
        let end = (sampling.row_fraction * u64::MAX as f64) as u64;
        let is_selected_row =
            |row: u32| hash_words(&[sampling.seed, stream_ids::ROW_SAMPLE, u64::from(row)]) < end;
        // A table, if there are fewer rows than entries.
        let dim = problem.modes()[mode].dim();
        let dim = if dim <= view.len() as u64 { dim } else { 0 };
        let table = (0..dim).map(|row| is_selected_row(row as u32));
        let table: Vec<bool> = try_collect(dim as usize, table, "rows")?;
        let is_selected = |&i: &usize| {
            let row = largest[i];
            let known = table.get(row as usize).copied();
            known.unwrap_or_else(|| is_selected_row(row)) && sampling.split.is_training(i)
        };
        let read = |(): &mut (), c: usize| {
            let range: Range<usize> = c * CHUNK..((c + 1) * CHUNK).min(view.len());
            let mut selected: Vec<usize> = try_with_capacity(range.len(), "entries")?;
            selected.extend(range.filter(is_selected));
            RowSample::copy(view, &selected)
        };
        let parts = pool.try_map(view.len().div_ceil(CHUNK), || Ok(()), read)?;
        let count = parts.iter().map(|part| part.values.len()).sum();
        let weight_count = parts.iter().map(|part| part.weights.len()).sum();
        let mut sample = RowSample {
            columns: Vec::new(),
            values: try_with_capacity(count, "entries")?,
            weights: try_with_capacity(weight_count, "entries")?,
        };
        for _ in 0..view.order() {
            sample.columns.push(try_with_capacity(count, "indices")?);
        }
        for part in parts {
            for (column, of_part) in sample.columns.iter_mut().zip(&part.columns) {
                column.extend_from_slice(of_part);
            }
            sample.values.extend_from_slice(&part.values);
            sample.weights.extend_from_slice(&part.weights);
        }
        Ok(sample)
    }

    /// Copies the entries of a view with these numbers.
    fn copy(view: &CooView<'_>, numbers: &[usize]) -> Result<RowSample> {
        let column = |n: usize| {
            let column = view.column(n);
            try_collect(numbers.len(), numbers.iter().map(|&i| column[i]), "indices")
        };
        let floats = |values: Values<'_>| {
            let values = numbers.iter().map(|&i| values.get(i));
            try_collect(numbers.len(), values, "entries")
        };
        Ok(RowSample {
            columns: (0..view.order()).map(column).collect::<Result<_>>()?,
            values: floats(view.values())?,
            weights: view.weights().map_or(Ok(Vec::new()), floats)?,
        })
    }

    /// Builds the problem of these entries, with all matrices of `whole`, for a fit with these options. The own weights of
    /// matrices of other modes than the largest are multiplied by `other_modes_scale`.
    pub(super) fn problem<'a>(
        &'a self,
        whole: &'a Problem<'_>,
        other_modes_scale: f64,
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<Problem<'a>> {
        let view = whole.tensor().view();
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let values = Values::F64(&self.values);
        let mut tensor = CooView::new(view.name(), view.dims(), &columns, values)?;
        if view.weights().is_some() {
            tensor = tensor.with_weights(Values::F64(&self.weights))?;
        }
        let mut builder = Problem::builder(tensor.with_inferred_dims())
            .seed(options.seed)
            .threads(options.threads as usize);
        for matrix in whole.matrices() {
            let view = matrix.entries.view().clone();
            let scale = match matrix.mode == largest_mode(whole) {
                true => 1.0,
                false => other_modes_scale,
            };
            let weight = matrix.weight.map(|w| w * scale);
            let kind = match matrix.may_be_full {
                true => MatrixKind::Auto,
                false => matrix.kind,
            };
            // What the whole problem decided holds for the sample, which has fewer entries.
            builder = builder
                .matrix(matrix.mode, view, weight, kind)
                .may_be_large();
            if let Some(penalty) = matrix.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder.build(monitor)
    }
}

/// Returns the mode with the most rows.
pub(super) fn largest_mode(problem: &Problem<'_>) -> usize {
    let rows = |&n: &usize| problem.modes()[n].rows().len();
    (0..problem.order()).max_by_key(rows).unwrap_or(0)
}

/// Returns a model of all rows of `problem` with the parameters of `part`, a CP model of some of them. Rows that it lacks are
/// its mean rows.
pub(super) fn with_all_rows(problem: &Problem<'_>, part: &Model) -> Result<Model> {
    let mut options = part.options.clone();
    options.rank = vec![part.shape.ranks()[0]];
    let (mut model, _) = Model::zeros(problem, &options)?;
    model.core.copy_from_slice(&part.core);
    for (mode, known) in model.modes.iter_mut().zip(&part.modes) {
        let mean = known.factor.row(known.factor.len() - 1);
        let stride = mode.factor.stride();
        let rows = mode.factor.as_mut_slice()?.chunks_exact_mut(stride);
        rows.for_each(|row| row[..mean.len()].copy_from_slice(mean));
        copy_rows(&mut mode.factor, &mode.rows, &known.factor, &known.rows)?;
    }
    for (matrix, known) in model.matrices.iter_mut().zip(&part.matrices) {
        if !matrix.kind.is_graph() {
            let (columns, known_columns) = (&matrix.columns, &known.columns);
            copy_rows(&mut matrix.factor, columns, &known.factor, known_columns)?;
        }
    }
    model.options = options;
    model.update_mean_rows()?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ModelKind;

    #[test]
    fn a_sample_has_all_entries_of_its_rows() {
        let rows: Vec<u32> = (0..600).map(|i| i / 3).collect();
        let columns: Vec<u32> = (0..600).map(|i| i % 5).collect();
        let values: Vec<f32> = (0..600).map(|i| (i % 7) as f32).collect();
        let weights = vec![0.5; 600];
        let view = CooView::new("t", &[200, 5], &[&rows, &columns], Values::F32(&values)).unwrap();
        let view = view.with_weights(Values::F32(&weights)).unwrap();
        let whole = Problem::builder(view).build(&()).unwrap();
        let sampling = RowSampling {
            row_fraction: 0.25,
            split: HoldoutSplit::new(0.0, 1.0, 3),
            seed: 3,
        };
        let pool = ThreadPool::new(2, false, 0);
        let sample = RowSample::read(&whole, sampling, &pool).unwrap();
        let part = sample.problem(&whole, 1.0, &cp(), &()).unwrap();
        let count = part.modes()[0].rows().len();
        assert!((25..75).contains(&count), "{count} of 200 rows");
        assert!(part.modes()[0].counts().iter().all(|&n| n == 3));
        assert_eq!(
            (part.count(), part.total_weight()),
            (3 * count as u64, 1.5 * count as f64)
        );
        assert_eq!(part.modes()[0].dim(), 200);
    }

    #[test]
    fn rows_outside_of_the_sample_are_mean_rows() {
        let all: Vec<u32> = (0..6).collect();
        let some = [1u32, 4];
        let problem = |rows: &[u32]| {
            let values = vec![1.0f32; rows.len()];
            let view = CooView::new("t", &[6, 6], &[rows, rows], Values::F32(&values));
            Problem::builder(view.unwrap())
                .build(&())
                .map(|p| Model::zeros(&p, &cp()).unwrap().0)
        };
        let mut part = problem(&some).unwrap();
        let stride = part.modes[0].factor.stride();
        let rows = part.modes[0].factor.as_mut_slice().unwrap();
        (rows[0], rows[stride]) = (2.0, 4.0);
        part.update_mean_rows().unwrap();
        let values = vec![1.0f32; 6];
        let view = CooView::new("t", &[6, 6], &[&all, &all], Values::F32(&values)).unwrap();
        let whole = Problem::builder(view).build(&()).unwrap();
        let model = with_all_rows(&whole, &part).unwrap();
        let first = |i: usize| model.modes[0].factor.row(i)[0];
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(first),
            [3.0, 2.0, 3.0, 3.0, 4.0, 3.0]
        );
    }

    fn cp() -> Options {
        Options {
            model: ModelKind::Cp,
            rank: vec![2],
            ..Options::default()
        }
    }
}
