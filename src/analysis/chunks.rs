//! Entries predicted chunk by chunk, in parallel.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::kernel::Level;
use crate::model::Predict;
use crate::monitor::{Monitor, step};
use crate::schedule::{available_threads, in_order};

/// Fixed, so that sums per chunk do not depend on the number of threads.
pub(super) const CHUNK: usize = 1 << 15;

/// After so many entries a thread looks whether to stop.
const LOOK: usize = 1 << 10;

/// Cells to predict: how many, of how many modes, and what writes the index of one.
pub(super) struct Cells<F: Fn(usize, &mut [u32]) + Sync> {
    pub count: usize,
    pub order: usize,
    pub index: F,
}

/// The cells of the entries of a view.
pub(super) fn cells_of(view: &CooView<'_>) -> Cells<impl Fn(usize, &mut [u32]) + Sync> {
    Cells {
        count: view.len(),
        order: view.order(),
        index: |i, index: &mut [u32]| {
            for (m, slot) in index.iter_mut().enumerate() {
                *slot = view.column(m)[i];
            }
        },
    }
}

/// Predicts every cell on `threads` threads; 0 means all this process may use. Each chunk
/// starts with a default `T`, to which `add` adds its entries and their predictions in order; `take`
/// gets the chunks in order, on the calling thread. The first error in the order of the entries ends
/// the work. One thread, or one chunk, needs no thread but the calling one.
pub(super) fn predict_chunks<T: Default + Send>(
    model: &impl Predict,
    cells: &Cells<impl Fn(usize, &mut [u32]) + Sync>,
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
    cells: &Cells<impl Fn(usize, &mut [u32]) + Sync>,
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
        let mut index = vec![0; cells.order];
        let mut made = T::default();
        for i in range(chunk) {
            if i.is_multiple_of(LOOK) && stop() {
                return Err(Error::Cancelled);
            }
            (cells.index)(i, &mut index);
            add(&mut made, i, predict(&index))?;
        }
        Ok(made)
    };
    let mut use_up = |chunk, made: Result<T>| {
        let range = range(chunk);
        step(monitor, phase, range.end as u64, n as u64)?;
        take(range, made?)
    };
    // On this thread, before there are others.
    Level::forced();
    let chunks = n.div_ceil(CHUNK) as u64;
    if threads == 1 || chunks == 1 {
        return (0..chunks).try_for_each(|c| use_up(c, make(c, &|| monitor.cancelled())));
    }
    in_order(
        chunks,
        threads,
        monitor,
        |chunk, stop| make(chunk, &|| stop.requested()),
        use_up,
    )
}
