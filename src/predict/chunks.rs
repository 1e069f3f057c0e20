//! Entries predicted chunk by chunk, in parallel.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::Predict;
use crate::parallel::{available_threads, run_ordered};
use crate::progress::{Monitor, report_progress};
use crate::simd::Level;

/// Fixed, so that sums per chunk do not depend on the number of threads.
pub(super) const CHUNK: usize = 1 << 15;

/// After so many entries a thread looks whether to stop, and for the indices of as many more.
const LOOK: usize = 1 << 10;

/// What writes the indices of some cells.
pub(super) type WriteIndices<'a> = dyn Fn(Range<usize>, &mut [u32]) + Sync + 'a;

/// Cells to predict: how many, of how many modes, and what writes the indices of some, one cell after the other. That
/// is called for many at a time, so that who asks makes no difference to how fast they are predicted.
pub(super) struct Cells<'a> {
    pub count: usize,
    pub order: usize,
    pub indices: Box<WriteIndices<'a>>,
}

/// The cells of the entries of a view.
pub(super) fn cells_of<'a>(view: &'a CooView<'_>) -> Cells<'a> {
    let order = view.order();
    Cells {
        count: view.len(),
        order,
        indices: Box::new(move |cells, to: &mut [u32]| {
            for m in 0..order {
                let slots = to.iter_mut().skip(m).step_by(order);
                let from = &view.column(m)[cells.clone()];
                slots.zip(from).for_each(|(slot, &index)| *slot = index);
            }
        }),
    }
}

/// Predicts every cell on `threads` threads; 0 means all this process may use. Each chunk
/// starts with a default `T`, to which `add` adds its entries and their predictions in order; `take`
/// gets the chunks in order, on the calling thread. The first error in the order of the entries ends
/// the work. One thread, or one chunk, needs no thread but the calling one.
pub(super) fn predict_chunks<T: Default + Send>(
    model: &impl Predict,
    cells: &Cells<'_>,
    threads: usize,
    phase: &str,
    monitor: &dyn Monitor,
    add: impl Fn(&mut T, usize, f64) -> Result<()> + Sync,
    take: impl FnMut(Range<usize>, T) -> Result<()>,
) -> Result<()> {
    let predictor = || model.predictor();
    chunks_of(predictor, cells, threads, (phase, monitor), add, take)
}

/// [`predict_chunks`] with anything that makes something of the index of a cell.
pub(super) fn chunks_of<T: Default + Send, V, F: FnMut(&[u32]) -> V>(
    predictor: impl Fn() -> Result<F> + Sync,
    cells: &Cells<'_>,
    threads: usize,
    (phase, monitor): (&str, &dyn Monitor),
    add: impl Fn(&mut T, usize, V) -> Result<()> + Sync,
    mut take: impl FnMut(Range<usize>, T) -> Result<()>,
) -> Result<()> {
    let n = cells.count;
    let threads = match threads {
        0 => available_threads(),
        t => t,
    };
    let range = |chunk: u64| {
        let start = chunk as usize * CHUNK;
        start..(start + CHUNK).min(n)
    };
    let make = |chunk, stop: &dyn Fn() -> bool| {
        let mut predict = predictor()?;
        let mut made = T::default();
        let Range { start, end } = range(chunk);
        let mut indices = vec![0; LOOK.min(end - start) * cells.order];
        for first in (start..end).step_by(LOOK) {
            if stop() {
                return Err(Error::Cancelled);
            }
            let some = first..(first + LOOK).min(end);
            let indices = &mut indices[..some.len() * cells.order];
            (cells.indices)(some.clone(), indices);
            for (i, index) in some.zip(indices.chunks_exact(cells.order)) {
                add(&mut made, i, predict(index))?;
            }
        }
        Ok(made)
    };
    let mut use_up = |chunk, made: Result<T>| {
        let range = range(chunk);
        report_progress(monitor, phase, range.end as u64, n as u64)?;
        take(range, made?)
    };
    // On this thread, before there are others.
    Level::forced();
    let chunks = n.div_ceil(CHUNK) as u64;
    if threads == 1 || chunks == 1 {
        return (0..chunks).try_for_each(|c| use_up(c, make(c, &|| monitor.cancelled())));
    }
    run_ordered(
        chunks,
        threads,
        monitor,
        |chunk, stop| make(chunk, &|| stop.requested()),
        use_up,
    )
}
