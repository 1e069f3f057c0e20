//! The batches of a job one after the other, with their entries in a row, and the rows of an entry
//! asked for some entries before they are needed.
//!
//! # Safety
//! As in [`super::batch`].
#![allow(unsafe_code)]

use super::batch_job::{Job, ModeRows};
use super::entry_block::FiberBatch;
use crate::simd::LANES;
use crate::simd::{F32x16, prefetch};

/// The listed modes: their number is known when this is compiled.
#[inline(always)]
pub(super) fn first_of<const N: usize>(job: &Job<'_>) -> [ModeRows; N] {
    let mut listed = [job.listed[0]; N];
    listed.copy_from_slice(&job.listed[..N]);
    listed
}

/// The listed modes, all of one line: their width is known then, too.
#[inline(always)]
pub(super) fn one_line<const N: usize>(job: &Job<'_>) -> [ModeRows; N] {
    let mut listed = first_of(job);
    for mode in &mut listed {
        debug_assert_eq!(mode.stride, LANES);
        mode.stride = LANES;
    }
    listed
}

/// Rows are asked for this many entries ahead.
const AHEAD: usize = 12;

/// Words of an entry with so many rows: those, the bits of its value and, if it has one, of its weight.
#[inline(always)]
fn words(rows: usize, weighted: bool) -> usize {
    rows + 1 + usize::from(weighted)
}

/// What an error of an entry with so many rows is by weight: what rows and core step by. Where it is
/// known when this is compiled whether there are weights, nothing is left of it without them.
#[inline(always)]
pub(super) unsafe fn pulling(error: f32, entry: *const u32, rows: usize, weighted: bool) -> f32 {
    match weighted {
        // SAFETY: the weight is behind the value.
        true => error * unsafe { f32::from_bits(*entry.add(rows + 1)) },
        false => error,
    }
}

/// The same in every place of a line.
#[inline(always)]
pub(super) unsafe fn pulling_line<L: F32x16>(
    error: L,
    entry: *const u32,
    rows: usize,
    weighted: bool,
) -> L {
    match weighted {
        // SAFETY: the weight is behind the value.
        true => error * L::splat(unsafe { f32::from_bits(*entry.add(rows + 1)) }),
        false => error,
    }
}

/// The batches of a job, each with its entries.
pub(super) struct Batches<'a> {
    /// Words of an entry.
    words: usize,
    entries: *const u32,
    listed: &'a [ModeRows],
    batches: &'a [FiberBatch],
}

impl<'a> Batches<'a> {
    /// `listed` is that of the job, or a copy of a length known when this is compiled; whether entries have
    /// weights may be known then too.
    #[inline(always)]
    pub(super) unsafe fn new(
        job: &Job<'a>,
        listed: &'a [ModeRows],
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> Batches<'a> {
        let all = Batches {
            words: words(listed.len(), weighted),
            entries: job.entries,
            listed,
            batches,
        };
        let mut first = all.ring(0);
        for _ in 0..AHEAD.min(first.left) {
            // SAFETY: the batch has that many entries.
            unsafe { ask(listed, first.next(all.words)) };
        }
        all
    }

    /// The entries of a batch; none if there is no such batch.
    #[inline(always)]
    fn ring(&self, number: usize) -> Ring {
        match self.batches.get(number) {
            // SAFETY: the batch is one of these entries.
            Some(batch) => unsafe { Ring::new(self.entries, self.words, batch) },
            None => Ring::none(self.entries),
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = (&'a FiberBatch, Entries<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (batch, rest) = self.batches.split_first()?;
        let words = self.words;
        let here = self.ring(0);
        let mut ahead = here;
        // SAFETY: the batch has that many entries.
        unsafe { ahead.skip(AHEAD.min(here.left), words) };
        let mut then = self.ring(1);
        then.left = then.left.min(AHEAD);
        let far = self.ring(2);
        // A whole run may be long; what is read in order comes by itself.
        for k in (0..(far.left * words).min(16 * LANES)).step_by(LANES) {
            prefetch(far.at.cast::<f32>().wrapping_add(k));
        }
        self.batches = rest;
        let entries = Entries {
            words,
            listed: self.listed,
            here,
            ahead,
            then,
        };
        Some((batch, entries))
    }
}

/// Neighbours in a run, around its end to its start.
#[derive(Clone, Copy)]
struct Ring {
    start: *const u32,
    end: *const u32,
    at: *const u32,
    left: usize,
}

impl Ring {
    /// A batch of entries of `words` words.
    #[inline(always)]
    unsafe fn new(entries: *const u32, words: usize, batch: &FiberBatch) -> Ring {
        // SAFETY: the run is inside the entries.
        unsafe {
            let start = entries.add(batch.run.start as usize * words);
            Ring {
                start,
                end: start.add(batch.run.len as usize * words),
                at: start.add(batch.first as usize * words),
                left: batch.len as usize,
            }
        }
    }

    fn none(entries: *const u32) -> Ring {
        Ring {
            start: entries,
            end: entries,
            at: entries,
            left: 0,
        }
    }

    #[inline(always)]
    unsafe fn next(&mut self, words: usize) -> *const u32 {
        let now = self.at;
        // SAFETY: inside the run, or its end, which becomes its start.
        let next = unsafe { now.add(words) };
        self.at = if next == self.end { self.start } else { next };
        self.left -= 1;
        now
    }

    /// Goes on by `count` entries, of which there must be as many.
    #[inline(always)]
    unsafe fn skip(&mut self, count: usize, words: usize) {
        // SAFETY: all of it lies in one run.
        unsafe {
            let until_end = self.end.offset_from_unsigned(self.at);
            self.at = if count * words < until_end {
                self.at.add(count * words)
            } else {
                self.start.add(count * words - until_end)
            };
        }
        self.left -= count;
    }
}

/// The entries of all batches of a job, one after the other.
#[derive(Clone)]
pub(super) struct Singles<'a> {
    entries: *const u32,
    words: usize,
    batches: &'a [FiberBatch],
    here: Ring,
}

impl<'a> Singles<'a> {
    /// Of so many listed rows each.
    #[inline(always)]
    pub(super) unsafe fn new(
        job: &Job<'a>,
        rows: usize,
        batches: &'a [FiberBatch],
        weighted: bool,
    ) -> Singles<'a> {
        Singles {
            entries: job.entries,
            words: words(rows, weighted),
            batches,
            here: Ring::none(job.entries),
        }
    }

    #[inline(always)]
    pub(super) unsafe fn next(&mut self) -> Option<*const u32> {
        // SAFETY: batches are of these entries, and not empty.
        unsafe {
            if self.here.left == 0 {
                let (batch, rest) = self.batches.split_first()?;
                self.here = Ring::new(self.entries, self.words, batch);
                self.batches = rest;
                // What is read in order comes by itself, but for the start.
                if let Some(next) = rest.first() {
                    let start = Ring::new(self.entries, self.words, next).at.cast::<f32>();
                    prefetch(start);
                    prefetch(start.wrapping_add(LANES));
                }
            }
            Some(self.here.next(self.words))
        }
    }
}

/// The entries of a batch: each the listed rows and the bits of value and weight.
pub(super) struct Entries<'a> {
    /// Words of each.
    words: usize,
    listed: &'a [ModeRows],
    here: Ring,
    ahead: Ring,
    /// Where `ahead` goes on: the first entries of the next batch.
    then: Ring,
}

impl Entries<'_> {
    /// How many are left.
    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        self.here.left
    }

    /// The next `N`, of which there must be as many; they stay the next ones.
    #[inline(always)]
    pub(super) unsafe fn peek<const N: usize>(&self) -> [*const u32; N] {
        let mut ring = self.here;
        let mut found = [ring.at; N];
        for entry in &mut found {
            // SAFETY: the caller's promise.
            *entry = unsafe { ring.next(self.words) };
        }
        found
    }

    /// The next one; there must be one left.
    #[inline(always)]
    pub(super) unsafe fn step(&mut self) -> *const u32 {
        let words = self.words;
        // SAFETY: the caller's promise.
        unsafe {
            if self.ahead.left > 0 {
                ask(self.listed, self.ahead.next(words));
            } else if self.then.left > 0 {
                self.ahead = self.then;
                self.then.left = 0;
                ask(self.listed, self.ahead.next(words));
            }
            self.here.next(words)
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = *const u32;

    #[inline(always)]
    fn next(&mut self) -> Option<*const u32> {
        if self.here.left == 0 {
            return None;
        }
        // SAFETY: there is one left.
        Some(unsafe { self.step() })
    }
}

/// Asks for the rows of an entry.
#[inline(always)]
unsafe fn ask(listed: &[ModeRows], entry: *const u32) {
    for (n, mode) in listed.iter().enumerate() {
        // SAFETY: the entry is in a run; prefetching its rows reads nothing.
        unsafe {
            let row = mode.row(*entry.add(n));
            for k in (0..mode.stride).step_by(LANES) {
                prefetch(row.add(k));
            }
        }
    }
}
