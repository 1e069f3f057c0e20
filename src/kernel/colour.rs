//! Entries in colours: no two entries of a colour have a row in common.

use super::grid::{Sorted, Spec};
use super::lines::prefetch;
use crate::error::Result;
use crate::format::{room, zeros};
use crate::random::mix;

/// Colours that are kept apart at a time: the bits of a mask.
const BITS: usize = 64;

/// Masks of so many entries ahead are asked for.
const AHEAD: usize = 12;

/// The smallest colours, of so few entries in all, become one that goes without the promise: it is for
/// one thread.
pub(super) const REST: usize = 512;

/// All entries, those of a colour together.
pub(crate) struct Colours {
    /// Numbers of entries.
    order: Vec<u32>,
    starts: Vec<usize>,
}

impl Colours {
    /// Gives every entry a colour that none of its rows has seen yet: any of so many as the longest row
    /// has entries, or else the first beyond those. Colours come out nearly even that way, but for a few.
    pub(crate) fn new(spec: &Spec, sorted: &[Sorted], longest: usize) -> Result<Colours> {
        let count: usize = sorted.iter().map(|s| s.count(spec)).sum();
        let mut of: Vec<u16> = zeros(count, "entries")?;
        let mut counts: Vec<usize> = Vec::new();
        let mut left: Option<Vec<u32>> = None;
        let mut wanted = longest.clamp(1, BITS);
        loop {
            let mut masks = Masks::new(spec, sorted)?;
            let first = counts.len();
            let all = left.as_ref().map_or(count, Vec::len);
            let number = |k: usize| left.as_ref().map_or(k as u32, |left| left[k]);
            let mut rest = Vec::new();
            for k in 0..all {
                if k + AHEAD < all {
                    masks.ask(number(k + AHEAD));
                }
                let i = number(k);
                match masks.take(i, wanted, spec.seed) {
                    Some(colour) => {
                        wanted = wanted.max(colour + 1);
                        counts.resize(counts.len().max(first + wanted), 0);
                        counts[first + colour] += 1;
                        of[i as usize] = (first + colour) as u16;
                    }
                    None => rest.push(i),
                }
            }
            if rest.is_empty() {
                return Colours::sorted(&of, &counts);
            }
            (left, wanted) = (Some(rest), 1);
        }
    }

    /// Numbers of entries by colour, the largest colour first and the smallest in one.
    fn sorted(of: &[u16], counts: &[usize]) -> Result<Colours> {
        let mut by_size: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
        by_size.sort_by_key(|&c| std::cmp::Reverse(counts[c]));
        let mut starts = vec![0];
        let mut at = vec![0; counts.len()];
        let mut end = 0;
        for &c in &by_size {
            at[c] = end;
            end += counts[c];
            starts.push(end);
        }
        let rest = starts.iter().copied().find(|s| end - s <= REST);
        starts.retain(|&s| s == end || Some(s) <= rest);
        let mut order: Vec<u32> = zeros(of.len(), "entries")?;
        for (i, &colour) in of.iter().enumerate() {
            let slot = &mut at[usize::from(colour)];
            order[*slot] = i as u32;
            *slot += 1;
        }
        Ok(Colours { order, starts })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The entries of a colour.
    pub(super) fn members(&self, colour: usize) -> &[u32] {
        &self.order[self.starts[colour]..self.starts[colour + 1]]
    }
}

/// For every row of every mode, which colours it has seen.
struct Masks<'a> {
    sorted: &'a [Sorted],
    words: usize,
    /// Entries of all but the last of the sorted.
    chunk: usize,
    modes: Vec<Vec<u64>>,
}

impl<'a> Masks<'a> {
    fn new(spec: &Spec, sorted: &'a [Sorted]) -> Result<Masks<'a>> {
        let mut modes = room(spec.rows.len(), "modes")?;
        for &rows in &spec.rows {
            modes.push(zeros(rows, "rows")?);
        }
        Ok(Masks {
            sorted,
            words: spec.rows.len() + 1,
            chunk: sorted.first().map_or(1, |s| s.count(spec).max(1)),
            modes,
        })
    }

    fn rows(&self, i: u32) -> &'a [u32] {
        let (chunk, at) = (i as usize / self.chunk, i as usize % self.chunk);
        &self.sorted[chunk].words()[at * self.words..][..self.modes.len()]
    }

    fn ask(&self, i: u32) {
        for (mode, &row) in self.modes.iter().zip(self.rows(i)) {
            prefetch(mode.as_ptr().wrapping_add(row as usize).cast());
        }
    }

    /// A colour for entry `i`: any free one below `wanted`, or the first.
    fn take(&mut self, i: u32, wanted: usize, seed: u64) -> Option<usize> {
        let rows = self.rows(i);
        let pairs = self.modes.iter().zip(rows);
        let seen = pairs.fold(0, |seen, (mode, &row)| seen | mode[row as usize]);
        let free = !seen & (u64::MAX >> (BITS - wanted));
        let colour = if free == 0 {
            (!seen).trailing_zeros() as usize
        } else {
            let turn = mix(seed ^ u64::from(i)) as u32 % wanted as u32;
            ((free.rotate_right(turn).trailing_zeros() + turn) % BITS as u32) as usize
        };
        if colour == BITS {
            return None;
        }
        for (mode, &row) in self.modes.iter_mut().zip(rows) {
            mode[row as usize] |= 1 << colour;
        }
        Some(colour)
    }
}
