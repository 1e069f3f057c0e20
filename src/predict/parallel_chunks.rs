//! The parallel loop over positions that all predictions share.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::Predict;
use crate::parallel::{run_ordered, thread_count};
use crate::progress::{Monitor, check_cancelled, report_progress, steps_per_poll};
use crate::simd::Level;

/// Positions per chunk. It is fixed, so that sums per chunk do not depend on the number of threads.
pub(super) const CHUNK_POSITIONS: usize = 1 << 15;

/// Positions whose indices are fetched together. A thread polls for a cancellation at least once per batch.
const BATCH_POSITIONS: usize = 1 << 10;

/// Writes the indices of a range of positions, position by position.
type WriteIndices<'a> = dyn Fn(Range<usize>, &mut [u32]) -> Result<()> + Sync + 'a;

/// Returns an error if a prediction, or its standard deviation, is not finite as `f32`. `position` counts from 0.
#[inline]
pub(crate) fn check_prediction(position: usize, prediction: f64) -> Result<()> {
    // Values and parameters are 32-bit numbers, and so are predictions in files and in arrays of a caller.
    match (prediction as f32).is_finite() {
        true => Ok(()),
        false => Err(overflow(position, prediction)),
    }
}

#[cold]
fn overflow(position: usize, prediction: f64) -> Error {
    Error::argument(format!(
        "prediction {} is {prediction}: the parameters of the model are so large that it overflows; the model is damaged or \
         its fit diverged",
        position + 1
    ))
}

/// Positions of a tensor.
pub(super) struct Positions<'a> {
    count: usize,
    /// The number of modes.
    order: usize,
    /// Called for many positions at a time, which makes the cost of the dynamic call negligible.
    write_indices: Box<WriteIndices<'a>>,
}

impl<'a> Positions<'a> {
    /// `count` positions, whose indices `write_indices` writes.
    pub(super) fn new(
        count: usize,
        order: usize,
        write_indices: impl Fn(Range<usize>, &mut [u32]) + Sync + 'a,
    ) -> Positions<'a> {
        Positions {
            count,
            order,
            write_indices: Box::new(move |positions, to: &mut [u32]| {
                write_indices(positions, to);
                Ok(())
            }),
        }
    }

    /// The positions of the entries of a view, which are validated.
    pub(super) fn of_entries(view: &'a CooView<'_>) -> Positions<'a> {
        Positions::of_view(view, |positions| view.validate(positions))
    }

    /// The positions of the entries of a view, of which only the indices are validated.
    pub(super) fn of_cells(view: &'a CooView<'_>) -> Positions<'a> {
        Positions::of_view(view, |positions| view.validate_indices(positions))
    }

    fn of_view(
        view: &'a CooView<'_>,
        validate: impl Fn(Range<usize>) -> Result<()> + Sync + 'a,
    ) -> Positions<'a> {
        let order = view.order();
        Positions {
            count: view.len(),
            order,
            write_indices: Box::new(move |positions, to: &mut [u32]| {
                validate(positions.clone())?;
                for m in 0..order {
                    let slots = to.iter_mut().skip(m).step_by(order);
                    let from = &view.column(m)[positions.clone()];
                    slots.zip(from).for_each(|(slot, &index)| *slot = index);
                }
                Ok(())
            }),
        }
    }
}

/// The threads and the progress reports of a loop over positions.
pub(super) struct ChunkRun<'a> {
    /// The number of threads; 0 means all that this process may use.
    pub threads: usize,
    /// The name of the work in progress reports.
    pub phase: &'a str,
    pub monitor: &'a dyn Monitor,
}

impl ChunkRun<'_> {
    /// Predicts every position. See [`map`](Self::map).
    pub(super) fn predict<T: Default + Send>(
        &self,
        model: &impl Predict,
        positions: &Positions<'_>,
        add: impl Fn(&mut T, usize, f64) -> Result<()> + Sync,
        take: impl FnMut(Range<usize>, T) -> Result<()>,
    ) -> Result<()> {
        let operations = model.operations_per_prediction();
        self.map(|| model.predictor(), operations, positions, add, take)
    }

    /// Evaluates a function at the index of every position.
    ///
    /// `evaluator` makes the function, once per chunk. A call of the function takes about `operations` multiply-adds. Each
    /// chunk starts with a default `T`, to which `add` adds the positions and their values in order. `take` receives the
    /// chunks in order, on the calling thread. The first error in the order of the positions ends the work. A single thread
    /// or chunk runs on the calling thread.
    pub(super) fn map<T: Default + Send, V, F: FnMut(&[u32]) -> V>(
        &self,
        evaluator: impl Fn() -> Result<F> + Sync,
        operations: usize,
        positions: &Positions<'_>,
        add: impl Fn(&mut T, usize, V) -> Result<()> + Sync,
        mut take: impl FnMut(Range<usize>, T) -> Result<()>,
    ) -> Result<()> {
        let (count, order, monitor) = (positions.count, positions.order, self.monitor);
        let threads = thread_count(self.threads)?;
        let range = |chunk: u64| {
            let start = chunk as usize * CHUNK_POSITIONS;
            start..(start + CHUNK_POSITIONS).min(count)
        };
        let positions_per_poll = steps_per_poll(operations);
        let process = |chunk, is_cancelled: &dyn Fn() -> bool| {
            let mut evaluate = evaluator()?;
            let mut result = T::default();
            let Range { start, end } = range(chunk);
            let mut indices = vec![0; BATCH_POSITIONS.min(end - start) * order];
            for first in (start..end).step_by(BATCH_POSITIONS) {
                let batch = first..(first + BATCH_POSITIONS).min(end);
                let indices = &mut indices[..batch.len() * order];
                (positions.write_indices)(batch.clone(), indices)?;
                for (k, index) in indices.chunks_exact(order).enumerate() {
                    if k % positions_per_poll == 0 && is_cancelled() {
                        return Err(Error::Cancelled);
                    }
                    add(&mut result, first + k, evaluate(index))?;
                }
            }
            Ok(result)
        };
        let mut consume = |chunk, result: Result<T>| {
            let range = range(chunk);
            report_progress(monitor, self.phase, range.end as u64, count as u64)?;
            take(range, result?)
        };
        // Before threads start: it reads the environment.
        Level::forced();
        let chunks = count.div_ceil(CHUNK_POSITIONS) as u64;
        if threads == 1 || chunks == 1 {
            return (0..chunks)
                .try_for_each(|c| consume(c, process(c, &|| check_cancelled(monitor).is_err())));
        }
        run_ordered(
            chunks,
            threads,
            monitor,
            |chunk, stop| process(chunk, &|| stop.requested()),
            consume,
        )
    }
}
