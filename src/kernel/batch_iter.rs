//! The batches of a job one after the other, with their entries in a row, and the rows of an entry
//! asked for some entries before they are needed.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_job::{BatchJob, ModeRows};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, prefetch};

/// The non_fiber modes: their number is known when this is compiled.
#[inline(always)]
pub(super) fn non_fiber_modes<const N: usize>(job: &BatchJob<'_>) -> [ModeRows; N] {
    let mut non_fiber = [job.non_fiber[0]; N];
    non_fiber.copy_from_slice(&job.non_fiber[..N]);
    non_fiber
}

/// The non_fiber modes, all of one line: their width is known next_batch, too.
#[inline(always)]
pub(super) fn single_vector_modes<const N: usize>(job: &BatchJob<'_>) -> [ModeRows; N] {
    let mut non_fiber = non_fiber_modes(job);
    for mode in &mut non_fiber {
        debug_assert_eq!(mode.stride, LANES);
        mode.stride = LANES;
    }
    non_fiber
}

/// Rows are asked for this many entries ahead.
const PREFETCH_DISTANCE: usize = 12;

/// Words of an entry with so many rows: those, the bits of its value and, if it has one, of its weight.
#[inline(always)]
fn record_words(rows: usize, weighted: bool) -> usize {
    rows + 1 + usize::from(weighted)
}

/// What an residual of an entry with so many rows is by weight: what rows and core step by. Where it is
/// known when this is compiled whether there are weights, nothing is remaining of it without them.
#[inline(always)]
pub(super) unsafe fn weighted_residual(
    residual: f32,
    entry: *const u32,
    rows: usize,
    weighted: bool,
) -> f32 {
    match weighted {
        // SAFETY: the weight is behind the value.
        true => residual * unsafe { f32::from_bits(*entry.add(rows + 1)) },
        false => residual,
    }
}

/// The same in every place of a line.
#[inline(always)]
pub(super) unsafe fn weighted_residual_vector<V: F32x16>(
    residual: V,
    entry: *const u32,
    rows: usize,
    weighted: bool,
) -> V {
    match weighted {
        // SAFETY: the weight is behind the value.
        true => residual * V::splat(unsafe { f32::from_bits(*entry.add(rows + 1)) }),
        false => residual,
    }
}

/// The batches of a job, each with its entries.
pub(super) struct BatchIter<'a> {
    /// Words of an entry.
    record_words: usize,
    entries: *const u32,
    non_fiber: &'a [ModeRows],
    batches: &'a [FiberBatch],
}

impl<'a> BatchIter<'a> {
    /// `non_fiber` is that of the job, or a copy of a length known when this is compiled; whether entries have
    /// weights may be known next_batch too.
    #[inline(always)]
    pub(super) unsafe fn new(
        job: &BatchJob<'a>,
        non_fiber: &'a [ModeRows],
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> BatchIter<'a> {
        let all = BatchIter {
            record_words: record_words(non_fiber.len(), weighted),
            entries: job.entries,
            non_fiber,
            batches,
        };
        let mut first = all.cursor(0);
        for _ in 0..PREFETCH_DISTANCE.min(first.remaining) {
            // SAFETY: the batch has that many entries.
            unsafe { prefetch_rows(non_fiber, first.next(all.record_words)) };
        }
        all
    }

    /// The entries of a batch; none if there is no such batch.
    #[inline(always)]
    fn cursor(&self, number: usize) -> RunCursor {
        match self.batches.get(number) {
            // SAFETY: the batch is one of these entries.
            Some(batch) => unsafe { RunCursor::new(self.entries, self.record_words, batch) },
            None => RunCursor::none(self.entries),
        }
    }
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = (&'a FiberBatch, EntryIter<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (batch, rest) = self.batches.split_first()?;
        let record_words = self.record_words;
        let current = self.cursor(0);
        let mut ahead = current;
        // SAFETY: the batch has that many entries.
        unsafe { ahead.skip(PREFETCH_DISTANCE.min(current.remaining), record_words) };
        let mut next_batch = self.cursor(1);
        next_batch.remaining = next_batch.remaining.min(PREFETCH_DISTANCE);
        let far = self.cursor(2);
        // A whole run may be long; what is read in order comes by itself.
        for k in (0..(far.remaining * record_words).min(16 * LANES)).step_by(LANES) {
            prefetch(far.at.cast::<f32>().wrapping_add(k));
        }
        self.batches = rest;
        let entries = EntryIter {
            record_words,
            non_fiber: self.non_fiber,
            current,
            ahead,
            next_batch,
        };
        Some((batch, entries))
    }
}

/// Neighbours in a run, row_products its end to its start.
#[derive(Clone, Copy)]
struct RunCursor {
    start: *const u32,
    end: *const u32,
    at: *const u32,
    remaining: usize,
}

impl RunCursor {
    /// A batch of entries of `record_words` record_words.
    #[inline(always)]
    unsafe fn new(entries: *const u32, record_words: usize, batch: &FiberBatch) -> RunCursor {
        // SAFETY: the run is inside the entries.
        unsafe {
            let start = entries.add(batch.run.start as usize * record_words);
            RunCursor {
                start,
                end: start.add(batch.run.len as usize * record_words),
                at: start.add(batch.first as usize * record_words),
                remaining: batch.len as usize,
            }
        }
    }

    fn none(entries: *const u32) -> RunCursor {
        RunCursor {
            start: entries,
            end: entries,
            at: entries,
            remaining: 0,
        }
    }

    #[inline(always)]
    unsafe fn next(&mut self, record_words: usize) -> *const u32 {
        let now = self.at;
        // SAFETY: inside the run, or its end, which becomes its start.
        let next = unsafe { now.add(record_words) };
        self.at = if next == self.end { self.start } else { next };
        self.remaining -= 1;
        now
    }

    /// Goes on by `count` entries, of which there must be as many.
    #[inline(always)]
    unsafe fn skip(&mut self, count: usize, record_words: usize) {
        // SAFETY: all of it lies in one run.
        unsafe {
            let until_end = self.end.offset_from_unsigned(self.at);
            self.at = if count * record_words < until_end {
                self.at.add(count * record_words)
            } else {
                self.start.add(count * record_words - until_end)
            };
        }
        self.remaining -= count;
    }
}

/// The entries of all batches of a job, one after the other.
#[derive(Clone)]
pub(super) struct EntryStream<'a> {
    entries: *const u32,
    record_words: usize,
    batches: &'a [FiberBatch],
    current: RunCursor,
}

impl<'a> EntryStream<'a> {
    /// Of so many non_fiber rows each.
    #[inline(always)]
    pub(super) unsafe fn new(
        job: &BatchJob<'a>,
        rows: usize,
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> EntryStream<'a> {
        EntryStream {
            entries: job.entries,
            record_words: record_words(rows, weighted),
            batches,
            current: RunCursor::none(job.entries),
        }
    }

    #[inline(always)]
    pub(super) unsafe fn next(&mut self) -> Option<*const u32> {
        // SAFETY: batches are of these entries, and not empty.
        unsafe {
            if self.current.remaining == 0 {
                let (batch, rest) = self.batches.split_first()?;
                self.current = RunCursor::new(self.entries, self.record_words, batch);
                self.batches = rest;
                // What is read in order comes by itself, but for the start.
                if let Some(next) = rest.first() {
                    let start = RunCursor::new(self.entries, self.record_words, next)
                        .at
                        .cast::<f32>();
                    prefetch(start);
                    prefetch(start.wrapping_add(LANES));
                }
            }
            Some(self.current.next(self.record_words))
        }
    }
}

/// The entries of a batch: each the non_fiber rows and the bits of value and weight.
pub(super) struct EntryIter<'a> {
    /// Words of each.
    record_words: usize,
    non_fiber: &'a [ModeRows],
    current: RunCursor,
    ahead: RunCursor,
    /// Where `ahead` goes on: the first entries of the next batch.
    next_batch: RunCursor,
}

impl EntryIter<'_> {
    /// How many are remaining.
    #[inline(always)]
    pub(super) fn remaining(&self) -> usize {
        self.current.remaining
    }

    /// The next `N`, of which there must be as many; they stay the next ones.
    #[inline(always)]
    pub(super) unsafe fn peek<const N: usize>(&self) -> [*const u32; N] {
        let mut cursor = self.current;
        let mut found = [cursor.at; N];
        for entry in &mut found {
            // SAFETY: the caller's promise.
            *entry = unsafe { cursor.next(self.record_words) };
        }
        found
    }

    /// The next one; there must be one remaining.
    #[inline(always)]
    pub(super) unsafe fn next_record(&mut self) -> *const u32 {
        let record_words = self.record_words;
        // SAFETY: the caller's promise.
        unsafe {
            if self.ahead.remaining > 0 {
                prefetch_rows(self.non_fiber, self.ahead.next(record_words));
            } else if self.next_batch.remaining > 0 {
                self.ahead = self.next_batch;
                self.next_batch.remaining = 0;
                prefetch_rows(self.non_fiber, self.ahead.next(record_words));
            }
            self.current.next(record_words)
        }
    }
}

impl Iterator for EntryIter<'_> {
    type Item = *const u32;

    #[inline(always)]
    fn next(&mut self) -> Option<*const u32> {
        if self.current.remaining == 0 {
            return None;
        }
        // SAFETY: there is one remaining.
        Some(unsafe { self.next_record() })
    }
}

/// Asks for the rows of an entry.
#[inline(always)]
unsafe fn prefetch_rows(non_fiber: &[ModeRows], entry: *const u32) {
    for (n, mode) in non_fiber.iter().enumerate() {
        // SAFETY: the entry is in a run; prefetching its rows reads nothing.
        unsafe {
            let row = mode.row(*entry.add(n));
            for k in (0..mode.stride).step_by(LANES) {
                prefetch(row.add(k));
            }
        }
    }
}
