//! Iteration over the batches and entries of a job. Rows are prefetched some entries before they are used.
//!
//! # Safety
//! The obligations are those of [`super::dispatch`].
#![allow(unsafe_code)]

use super::job::{BatchJob, ModeRows};
use crate::entries::block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, prefetch};

/// Returns the non-fiber modes as an array, so that their number is a compile-time constant.
#[inline(always)]
pub(crate) fn non_fiber_modes<const N: usize>(job: &BatchJob<'_>) -> [ModeRows; N] {
    let mut non_fiber = [job.non_fiber[0]; N];
    // `copy_from_slice` is not always inlined.
    #[allow(clippy::manual_memcpy)]
    for n in 1..N {
        non_fiber[n] = job.non_fiber[n];
    }
    non_fiber
}

/// Returns the non-fiber modes, whose rows are one vector each, so that their stride is a compile-time constant
/// too.
#[inline(always)]
pub(crate) fn single_vector_modes<const N: usize>(job: &BatchJob<'_>) -> [ModeRows; N] {
    let mut non_fiber = non_fiber_modes(job);
    for mode in &mut non_fiber {
        debug_assert_eq!(mode.stride, LANES);
        mode.stride = LANES;
    }
    non_fiber
}

/// Prefetch distance, in entries.
const PREFETCH_DISTANCE: usize = 12;

/// Prefetch distance of records, in u32 words.
const RECORD_PREFETCH_WORDS: usize = 16 * LANES;

/// Returns the number of u32 words in the record of an entry: `rows` row indices, the value and, if weighted, the
/// weight.
#[inline(always)]
fn record_words(rows: usize, weighted: bool) -> usize {
    rows + 1 + usize::from(weighted)
}

/// Returns the residual times the weight of an entry with `rows` row indices. If `weighted` is a compile-time
/// constant `false`, nothing is computed.
#[inline(always)]
pub(crate) unsafe fn weighted_residual(
    residual: f32,
    entry: *const u32,
    rows: usize,
    weighted: bool,
) -> f32 {
    if weighted {
        // SAFETY: the weight follows the value in the record.
        residual * unsafe { f32::from_bits(*entry.add(rows + 1)) }
    } else {
        residual
    }
}

/// Returns the residual times the weight of an entry, in every lane.
#[inline(always)]
pub(crate) unsafe fn weighted_residual_vector<V: F32x16>(
    residual: V,
    entry: *const u32,
    rows: usize,
    weighted: bool,
) -> V {
    if weighted {
        // SAFETY: the weight follows the value in the record.
        residual * V::splat(unsafe { f32::from_bits(*entry.add(rows + 1)) })
    } else {
        residual
    }
}

/// Iterator over the batches of a job, each with its entries. `N` is the number of non-fiber modes and `K` the number of vectors
/// of their rows, if they are compile-time constants, and 0 otherwise.
pub(crate) struct BatchIter<'a, const N: usize, const K: usize> {
    /// u32 words per entry record.
    record_words: usize,
    entries: *const u32,
    non_fiber: &'a [ModeRows],
    batches: &'a [FiberBatch],
}

impl<'a, const N: usize, const K: usize> BatchIter<'a, N, K> {
    /// Creates the iterator and prefetches the rows of the first entries. `non_fiber` is that of the job or a copy of it;
    /// `weighted` is that of the job, or a constant.
    #[inline(always)]
    pub(crate) unsafe fn new(
        job: &BatchJob<'a>,
        non_fiber: &'a [ModeRows],
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> BatchIter<'a, N, K> {
        debug_assert!(N == 0 || N == non_fiber.len());
        let iter = BatchIter {
            record_words: record_words(non_fiber.len(), weighted),
            entries: job.entries,
            non_fiber,
            batches,
        };
        let mut first = iter.cursor(0);
        for _ in 0..PREFETCH_DISTANCE.min(first.remaining) {
            // SAFETY: the batch has that many entries.
            unsafe { prefetch_rows::<N, K>(non_fiber, first.next(iter.record_words)) };
        }
        iter
    }

    /// Returns a cursor over batch `index`; an empty one if there is no such batch.
    #[inline(always)]
    fn cursor(&self, index: usize) -> RunCursor {
        match self.batches.get(index) {
            // SAFETY: the batch consists of entries of this job.
            Some(batch) => unsafe { RunCursor::new(self.entries, self.record_words, batch) },
            None => RunCursor::empty(self.entries),
        }
    }
}

impl<'a, const N: usize, const K: usize> Iterator for BatchIter<'a, N, K> {
    type Item = (&'a FiberBatch, EntryIter<'a, N, K>);

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
        let after_next = self.cursor(2);
        // Hardware prefetching covers the rest of a long run.
        for k in (0..(after_next.remaining * record_words).min(16 * LANES)).step_by(LANES) {
            prefetch(after_next.position.cast::<f32>().wrapping_add(k));
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

/// Cursor over the entries of a batch: consecutive records of a run, which is cyclic.
#[derive(Clone, Copy)]
struct RunCursor {
    start: *const u32,
    end: *const u32,
    position: *const u32,
    remaining: usize,
}

impl RunCursor {
    /// Returns a cursor over `batch`.
    #[inline(always)]
    unsafe fn new(entries: *const u32, record_words: usize, batch: &FiberBatch) -> RunCursor {
        // SAFETY: the run lies inside the entries.
        unsafe {
            let start = entries.add(batch.run.start as usize * record_words);
            RunCursor {
                start,
                end: start.add(batch.run.len as usize * record_words),
                position: start.add(batch.first as usize * record_words),
                remaining: batch.len as usize,
            }
        }
    }

    fn empty(entries: *const u32) -> RunCursor {
        RunCursor {
            start: entries,
            end: entries,
            position: entries,
            remaining: 0,
        }
    }

    #[inline(always)]
    unsafe fn next(&mut self, record_words: usize) -> *const u32 {
        let now = self.position;
        // SAFETY: the address is inside the run, or its end, which is replaced by its start.
        let next = unsafe { now.add(record_words) };
        self.position = if next == self.end { self.start } else { next };
        self.remaining -= 1;
        now
    }

    /// Skips `count` entries. At least as many must remain.
    #[inline(always)]
    unsafe fn skip(&mut self, count: usize, record_words: usize) {
        // SAFETY: the entries lie in one run.
        unsafe {
            let until_end = self.end.offset_from_unsigned(self.position);
            self.position = if count * record_words < until_end {
                self.position.add(count * record_words)
            } else {
                self.start.add(count * record_words - until_end)
            };
        }
        self.remaining -= count;
    }
}

/// Iterator over the entries of all batches of a job.
#[derive(Clone)]
pub(crate) struct EntryStream<'a> {
    entries: *const u32,
    record_words: usize,
    batches: &'a [FiberBatch],
    current: RunCursor,
}

impl<'a> EntryStream<'a> {
    /// `rows` is the number of row indices per record.
    #[inline(always)]
    pub(crate) unsafe fn new(
        job: &BatchJob<'a>,
        rows: usize,
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> EntryStream<'a> {
        EntryStream {
            entries: job.entries,
            record_words: record_words(rows, weighted),
            batches,
            current: RunCursor::empty(job.entries),
        }
    }

    #[inline(always)]
    pub(crate) unsafe fn next(&mut self) -> Option<*const u32> {
        // SAFETY: batches consist of entries of this job and are not empty.
        unsafe {
            if self.current.remaining == 0 {
                let (batch, rest) = self.batches.split_first()?;
                self.current = RunCursor::new(self.entries, self.record_words, batch);
                self.batches = rest;
                // Hardware prefetching covers all but the start of a batch.
                if let Some(next) = rest.first() {
                    let start = RunCursor::new(self.entries, self.record_words, next)
                        .position
                        .cast::<f32>();
                    prefetch(start);
                    prefetch(start.wrapping_add(LANES));
                }
            }
            Some(self.current.next(self.record_words))
        }
    }
}

/// Iterator over the entries of consecutive batches without a fiber mode, whose records follow one another; `N` and `K` are those
/// of [`BatchIter`].
pub(super) struct RecordIter<'a, const N: usize, const K: usize> {
    /// u32 words per entry record.
    record_words: usize,
    non_fiber: &'a [ModeRows],
    position: *const u32,
    /// The record whose rows are prefetched next.
    ahead: *const u32,
    end: *const u32,
}

impl<'a, const N: usize, const K: usize> RecordIter<'a, N, K> {
    /// Creates the iterator and prefetches the rows of the first entries. Arguments are those of [`BatchIter::new`].
    #[inline(always)]
    pub(crate) unsafe fn new(
        job: &BatchJob<'a>,
        non_fiber: &'a [ModeRows],
        batches: &[FiberBatch],
        weighted: bool,
    ) -> RecordIter<'a, N, K> {
        debug_assert!(N == 0 || N == non_fiber.len());
        let record_words = record_words(non_fiber.len(), weighted);
        let (mut first, mut count) = (0, 0);
        if let Some(batch) = batches.first() {
            first = batch.run.start as usize + batch.first as usize;
        }
        for batch in batches {
            debug_assert_eq!(
                batch.run.start as usize + batch.first as usize,
                first + count
            );
            count += batch.len as usize;
        }
        // SAFETY: the batches consist of entries of this job.
        unsafe {
            let position = job.entries.add(first * record_words);
            let mut iter = RecordIter {
                record_words,
                non_fiber,
                position,
                ahead: position,
                end: position.add(count * record_words),
            };
            for _ in 0..PREFETCH_DISTANCE {
                iter.prefetch_next();
            }
            iter
        }
    }

    #[inline(always)]
    fn prefetch_next(&mut self) {
        if self.ahead < self.end {
            // Hardware prefetching ends with a page.
            prefetch(self.ahead.cast::<f32>().wrapping_add(RECORD_PREFETCH_WORDS));
            // SAFETY: the record is one of the entries.
            unsafe {
                prefetch_rows::<N, K>(self.non_fiber, self.ahead);
                self.ahead = self.ahead.add(self.record_words);
            }
        }
    }
}

impl<const N: usize, const K: usize> Iterator for RecordIter<'_, N, K> {
    type Item = *const u32;

    #[inline(always)]
    fn next(&mut self) -> Option<*const u32> {
        if self.position == self.end {
            return None;
        }
        self.prefetch_next();
        let now = self.position;
        // SAFETY: the address is that of the next record, or the end.
        self.position = unsafe { now.add(self.record_words) };
        Some(now)
    }
}

/// Iterator over the entry records of a batch; see [`BatchIter`].
pub(crate) struct EntryIter<'a, const N: usize, const K: usize> {
    /// u32 words per entry record.
    record_words: usize,
    non_fiber: &'a [ModeRows],
    current: RunCursor,
    ahead: RunCursor,
    /// Continuation of `ahead`: the first entries of the next batch.
    next_batch: RunCursor,
}

impl<const N: usize, const K: usize> EntryIter<'_, N, K> {
    /// Returns the number of remaining entries.
    #[inline(always)]
    pub(crate) fn remaining(&self) -> usize {
        self.current.remaining
    }

    /// Returns the next `COUNT` records without consuming them.
    ///
    /// # Safety
    /// At least `COUNT` entries must remain.
    #[inline(always)]
    pub(super) unsafe fn peek<const COUNT: usize>(&self) -> [*const u32; COUNT] {
        let mut cursor = self.current;
        let mut records = [cursor.position; COUNT];
        for entry in &mut records {
            // SAFETY: the caller guarantees that `COUNT` entries remain.
            *entry = unsafe { cursor.next(self.record_words) };
        }
        records
    }

    /// Returns the next record and prefetches the rows of a later one.
    ///
    /// # Safety
    /// At least one entry must remain.
    #[inline(always)]
    pub(super) unsafe fn next_record(&mut self) -> *const u32 {
        let record_words = self.record_words;
        // SAFETY: the caller guarantees that an entry remains; `ahead` and `next_batch` count their own.
        unsafe {
            if self.ahead.remaining > 0 {
                prefetch_rows::<N, K>(self.non_fiber, self.ahead.next(record_words));
            } else if self.next_batch.remaining > 0 {
                self.ahead = self.next_batch;
                self.next_batch.remaining = 0;
                prefetch_rows::<N, K>(self.non_fiber, self.ahead.next(record_words));
            }
            self.current.next(record_words)
        }
    }
}

impl<const N: usize, const K: usize> Iterator for EntryIter<'_, N, K> {
    type Item = *const u32;

    #[inline(always)]
    fn next(&mut self) -> Option<*const u32> {
        if self.current.remaining == 0 {
            return None;
        }
        // SAFETY: an entry remains.
        Some(unsafe { self.next_record() })
    }
}

/// Prefetches the non-fiber rows of an entry; `N` and `K` are those of [`BatchIter`].
#[inline(always)]
unsafe fn prefetch_rows<const N: usize, const K: usize>(non_fiber: &[ModeRows], entry: *const u32) {
    let count = if N > 0 { N } else { non_fiber.len() };
    for n in 0..count {
        let mut mode = non_fiber[n];
        if K > 0 {
            mode.stride = K * LANES;
        }
        // SAFETY: the record is inside a run and names rows that exist.
        unsafe {
            let row = mode.row(*entry.add(n));
            for k in (0..mode.stride).step_by(LANES) {
                prefetch(row.add(k));
            }
        }
    }
}
