//! Compact numbers of the rows of a mode that occur, in memory proportional to those rows.
//!
//! [`RowMap`] numbers the rows that occur from 0 in the order of their indices. It is a rank-indexed bitmap in pages of
//! 512 rows, of which only pages with rows exist. Each page stores the number of rows before it and before each of its
//! words, so a lookup is one table read and a popcount. A mode of 100M indices with 1M rows
//! costs 16 MB, one of 4G indices with 1M rows 115 MB. The table is 4 bytes per page of the mode, of which a system provides only
//! the part that is used: a mode of 4G indices with ten rows reserves 32 MiB and uses some of its pages.

use crate::error::{Error, Result};
use crate::try_alloc::{try_reserve, try_zeroed};

const PAGE_BITS: usize = 512;
/// Words of a page.
const WORDS: usize = PAGE_BITS / 64;
/// Table entry of a stretch of indices without rows. It is 0, so that a table of them takes no memory.
const NO_PAGE: u32 = 0;

struct Page {
    words: [u64; WORDS],
    /// Number of rows before this page.
    before: u32,
    /// Number of rows of this page before its second word, its third and so on: at most 448, in nine bits each. The
    /// highest bit is 0.
    within: u64,
}

impl Page {
    const EMPTY: Page = Page {
        words: [0; WORDS],
        before: 0,
        within: 0,
    };

    /// Returns the number of rows of this page before word `w`. For the first word the shift yields 0: its nine bits
    /// begin at the highest bit, which is 0.
    #[inline]
    fn before_word(&self, w: usize) -> u32 {
        (self.within >> (9 * ((w + WORDS - 1) % WORDS)) & 511) as u32
    }

    /// Computes `within` and returns the number of rows of the page.
    fn count(&mut self) -> u32 {
        self.within = 0;
        let mut rows = self.words[0].count_ones();
        for w in 1..WORDS {
            self.within |= u64::from(rows) << (9 * (w - 1));
            rows += self.words[w].count_ones();
        }
        rows
    }
}

/// Maps the indices of a mode that occur to compact row numbers.
pub struct RowMap {
    dim: u64,
    /// Page of each stretch of 512 indices, counted from 1, or [`NO_PAGE`].
    table: Vec<u32>,
    pages: Vec<Page>,
    /// The stretches that have a page, ascending.
    stretches: Vec<u32>,
    rows: u32,
}

/// Collects rows for a [`RowMap`].
pub(crate) struct RowMapBuilder {
    map: RowMap,
    /// Whether a page could not be allocated. `finish` reports it, so that `mark` stays quick.
    out_of_memory: bool,
}

impl RowMapBuilder {
    pub(crate) fn new(dim: u64) -> Result<Self> {
        let stretches = dim.div_ceil(PAGE_BITS as u64) as usize;
        Ok(RowMapBuilder {
            map: RowMap {
                dim,
                table: try_zeroed(stretches, "stretches of rows")?,
                pages: Vec::new(),
                stretches: Vec::new(),
                rows: 0,
            },
            out_of_memory: false,
        })
    }

    /// The size of the mode.
    pub(crate) fn dim(&self) -> u64 {
        self.map.dim
    }

    /// Marks a row as occurring. Returns `false` if `index` is beyond the mode.
    #[inline]
    pub(crate) fn mark(&mut self, index: u32) -> bool {
        let map = &mut self.map;
        if u64::from(index) >= map.dim {
            return false;
        }
        let stretch = index as usize / PAGE_BITS;
        if map.table[stretch] == NO_PAGE {
            if map.pages.try_reserve(1).is_err() || map.stretches.try_reserve(1).is_err() {
                self.out_of_memory = true;
                return true;
            }
            map.add_page(stretch);
        }
        let bit = index as usize % PAGE_BITS;
        let page = &mut map.pages[map.table[stretch] as usize - 1];
        page.words[bit / 64] |= 1 << (bit % 64);
        true
    }

    /// Marks every row of the mode.
    pub(crate) fn mark_all(&mut self) -> Result<()> {
        let map = &mut self.map;
        let missing = map.table.len() - map.pages.len();
        try_reserve(&mut map.pages, missing, "pages of rows")?;
        try_reserve(&mut map.stretches, missing, "pages of rows")?;
        for stretch in 0..map.table.len() {
            if map.table[stretch] == NO_PAGE {
                map.add_page(stretch);
            }
            let rows = (map.dim - (stretch * PAGE_BITS) as u64).min(PAGE_BITS as u64) as usize;
            let page = &mut map.pages[map.table[stretch] as usize - 1];
            for (k, word) in page.words.iter_mut().enumerate() {
                *word = match rows.saturating_sub(64 * k) {
                    0 => 0,
                    bits @ 1..64 => (1 << bits) - 1,
                    _ => u64::MAX,
                };
            }
        }
        Ok(())
    }

    /// Counts the rows and returns the map.
    pub(crate) fn finish(self) -> Result<RowMap> {
        if self.out_of_memory {
            return Err(Error::out_of_memory(
                self.map.pages.len() + 1,
                "pages of rows",
            ));
        }
        let mut map = self.map;
        map.stretches.sort_unstable();
        let mut before = 0u32;
        for &stretch in &map.stretches {
            let page = &mut map.pages[map.table[stretch as usize] as usize - 1];
            page.before = before;
            before += page.count();
        }
        map.rows = before;
        Ok(map)
    }
}

impl RowMap {
    /// Returns the size of the mode.
    pub fn dim(&self) -> u64 {
        self.dim
    }

    /// Returns the number of rows that occur.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Returns whether no row occurs.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the compact number of row `index`, if it occurs.
    #[inline]
    pub fn compact(&self, index: u32) -> Option<u32> {
        let slot = *self.table.get(index as usize / PAGE_BITS)?;
        if slot == NO_PAGE {
            return None;
        }
        let page = &self.pages[slot as usize - 1];
        let bit = index as usize % PAGE_BITS;
        let word = page.words[bit / 64];
        if word >> (bit % 64) & 1 == 0 {
            return None;
        }
        let before_bit = (word & ((1u64 << (bit % 64)) - 1)).count_ones();
        Some(page.before + page.before_word(bit / 64) + before_bit)
    }

    /// Iterates over the indices of the rows that occur, ascending: the inverse of [`compact`](Self::compact).
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.stretches.iter().flat_map(move |&stretch| {
            let base = stretch as usize * PAGE_BITS;
            let words = &self.pages[self.table[stretch as usize] as usize - 1].words;
            (0..PAGE_BITS)
                .filter(move |bit| words[bit / 64] >> (bit % 64) & 1 == 1)
                .map(move |bit| (base + bit) as u32)
        })
    }

    /// Returns the memory of the map, in bytes.
    pub fn memory(&self) -> usize {
        self.table.capacity() * 4 + self.pages.capacity() * (size_of::<Page>() + 4)
    }

    /// Adds an empty page, for which there is room.
    fn add_page(&mut self, stretch: usize) {
        self.pages.push(Page::EMPTY);
        self.stretches.push(stretch as u32);
        self.table[stretch] = self.pages.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_sorted_set() {
        let mut s = RandomStream::new(&[1]);
        for (dim, marks) in [
            (1u64, 3),
            (511, 100),
            (512, 512),
            (513, 2000),
            (1 << 20, 5000),
            (u64::from(u32::MAX), 3000),
        ] {
            let mut set = BTreeSet::new();
            let mut b = RowMapBuilder::new(dim).unwrap();
            for _ in 0..marks {
                let i = s.below(dim) as u32;
                assert!(b.mark(i));
                set.insert(i);
            }
            assert!(b.mark((dim - 1) as u32) && b.mark(0));
            set.extend([0, (dim - 1) as u32]);
            assert!(u32::try_from(dim).is_err() || !b.mark(dim as u32));
            let map = b.finish().unwrap();
            assert_eq!(map.len(), set.len());
            assert_eq!(
                map.indices().collect::<Vec<_>>(),
                set.iter().copied().collect::<Vec<_>>()
            );
            for (rank, &i) in set.iter().enumerate() {
                assert_eq!(map.compact(i), Some(rank as u32));
            }
            for _ in 0..1000 {
                let i = s.below(dim) as u32;
                assert_eq!(map.compact(i).is_some(), set.contains(&i));
            }
        }
    }

    #[test]
    fn all_rows_can_be_marked_at_once() {
        for dim in [0u64, 1, 63, 64, 65, 511, 512, 513, 1500] {
            for first in [None, Some(dim / 2)] {
                let mut b = RowMapBuilder::new(dim).unwrap();
                first
                    .iter()
                    .for_each(|&i| assert_eq!(b.mark(i as u32), i < dim));
                b.mark_all().unwrap();
                let map = b.finish().unwrap();
                assert!(map.indices().eq(0..dim as u32), "{dim}");
                assert!((0..dim as u32).all(|i| map.compact(i) == Some(i)));
            }
        }
    }

    #[test]
    fn memory_is_proportional_to_the_rows() {
        let mut s = RandomStream::new(&[2]);
        let mut b = RowMapBuilder::new(100_000_000).unwrap();
        for _ in 0..1_000_000 {
            b.mark(s.below(100_000_000) as u32);
        }
        let map = b.finish().unwrap();
        assert!(map.memory() < 40 << 20, "{}", map.memory());
    }
}
