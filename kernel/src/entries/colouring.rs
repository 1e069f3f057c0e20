//! Greedy colouring of the conflict graph of entries: two entries conflict if they share a row, and no two
//! entries of one colour conflict.
//!
//! Each row has a bit mask of the colours of its entries. An entry takes the first colour, from a random first
//! choice on, that no mask of its rows contains. Entries are split into random shards that threads colour
//! independently, each with colours of its own. Entries for which no colour is left are coloured together at the
//! end.

use bytemuck::Zeroable;

use super::chunk::{SortedChunk, concat_records};
use super::grid::BlockingSpec;
use crate::error::Result;
use crate::random::{hash_words, splitmix64};
use crate::simd::prefetch;
use crate::try_alloc::{try_collect, try_with_capacity, try_zeroed};

/// The masks of the entry this many entries ahead are prefetched.
const PREFETCH_DISTANCE: usize = 12;

/// Upper bound of the number of shards.
const MAX_SHARDS: usize = 8;

/// Entries that each shard should have.
const MIN_SHARD_ENTRIES: usize = 125_000;

/// Entries that a colour should have if there are several shards: each colour costs a barrier per epoch.
const MIN_COLOUR_ENTRIES: usize = 4096;

/// The smallest colours, of at most this many entries together, are merged into a last colour whose entries may
/// conflict. One thread processes it alone.
pub(super) const MAX_CONFLICTING_ENTRIES: usize = 512;

/// Number of shards and of colours per shard: a function of the data alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColouringPlan {
    /// Number of shards.
    pub shards: usize,
    colours_per_shard: usize,
}

impl ColouringPlan {
    /// Plans the colouring of `entries` entries in modes of `row_counts` rows. `longest_row` is the largest number
    /// of entries of a row.
    pub fn new(row_counts: &[usize], entries: usize, longest_row: usize) -> ColouringPlan {
        let rows = row_counts.iter().copied().min().unwrap_or(0).max(1);
        let mut shards = MAX_SHARDS.min(entries / MIN_SHARD_ENTRIES);
        while shards > 1 {
            // Enough colours that hardly any entry finds none, in rows of mean length and in the longest.
            let mean = entries as f64 / (rows * shards) as f64;
            let longest = longest_row as f64 / shards as f64;
            let colours = (3.0 * mean + 1.5).max(longest + longest.sqrt()).ceil() as usize;
            if colours <= u64::MAX_COLOURS && shards * colours * MIN_COLOUR_ENTRIES <= entries {
                return ColouringPlan {
                    shards,
                    colours_per_shard: colours,
                };
            }
            shards /= 2;
        }
        ColouringPlan {
            shards: 1,
            colours_per_shard: longest_row.clamp(1, u64::MAX_COLOURS),
        }
    }

    #[cfg(test)]
    pub(crate) fn fixed(shards: usize, colours_per_shard: usize) -> ColouringPlan {
        ColouringPlan {
            shards,
            colours_per_shard,
        }
    }

    /// Colours the entries of one shard. `chunks` are sorted by shard
    /// ([`BlockingSpec::random_shards`]).
    pub fn colour_shard(
        &self,
        spec: &BlockingSpec,
        chunks: &[SortedChunk],
        shard: usize,
    ) -> Result<ColouredShard> {
        let records = concat_records(spec, chunks, shard)?;
        let count = (records.len() / spec.full_record_words()) as u32;
        let entries = try_collect(count as usize, 0..count, "entries")?;
        let seed = hash_words(&[spec.seed, shard as u64]);
        let colours = self.colours_per_shard as u64;
        let first_choice =
            |i: u32| (((splitmix64(seed ^ u64::from(i)) >> 32) * colours) >> 32) as u32;
        let (colours, uncoloured) = colour_entries(
            spec,
            &records,
            &entries,
            self.colours_per_shard,
            first_choice,
        )?;
        Ok(ColouredShard {
            records,
            colours,
            uncoloured,
        })
    }

    /// Combines the colours of all shards and adds colours for the entries that are still without one.
    pub fn combine(
        &self,
        spec: &BlockingSpec,
        shards: Vec<ColouredShard>,
    ) -> Result<EntryColouring> {
        let width = spec.full_record_words();
        let count: usize = shards.iter().map(|shard| shard.uncoloured.len()).sum();
        let mut records = try_with_capacity(count * width, "words of entries")?;
        for shard in &shards {
            for &i in &shard.uncoloured {
                records.extend_from_slice(&shard.records[i as usize * width..][..width]);
            }
        }
        let mut uncoloured: Vec<u32> = try_collect(count, 0..count as u32, "entries")?;
        let mut colours = Vec::new();
        let colours_per_round = if self.colours_per_shard <= u8::MAX_COLOURS {
            u8::MAX_COLOURS
        } else {
            u64::MAX_COLOURS
        };
        while uncoloured.len() > MAX_CONFLICTING_ENTRIES {
            let (more, rest) =
                colour_entries(spec, &records, &uncoloured, colours_per_round, |_| 0)?;
            colours.extend(more);
            uncoloured = rest;
        }
        colours.sort_by_key(|c| std::cmp::Reverse(c.len()));
        let mut conflicting = uncoloured;
        while let Some(smallest) =
            colours.pop_if(|c| c.len() + conflicting.len() <= MAX_CONFLICTING_ENTRIES)
        {
            conflicting.extend(smallest);
        }
        if !conflicting.is_empty() {
            colours.push(conflicting);
        }
        let mut all = EntryColouring {
            records: try_with_capacity(shards.len() + 1, "pieces")?,
            colours: Vec::new(),
        };
        let shards = shards.into_iter().map(|s| (s.records, s.colours));
        for (records, colours) in shards.chain([(records, colours)]) {
            let shard = all.records.len();
            let colours = colours.into_iter().filter(|c| !c.is_empty());
            all.colours
                .extend(colours.map(|entries| Colour { shard, entries }));
            all.records.push(records);
        }
        Ok(all)
    }
}

/// The entries of one shard by colour.
pub struct ColouredShard {
    /// Complete entry records.
    records: Vec<u32>,
    /// For each colour, the indices of its entries.
    colours: Vec<Vec<u32>>,
    /// Indices of the entries for which no colour was left.
    uncoloured: Vec<u32>,
}

/// The entries of one colour.
struct Colour {
    shard: usize,
    /// Indices of entries in the shard.
    entries: Vec<u32>,
}

/// All entries by colour.
pub struct EntryColouring {
    /// For each shard, complete entry records.
    records: Vec<Vec<u32>>,
    colours: Vec<Colour>,
}

impl EntryColouring {
    /// Number of colours.
    pub fn count(&self) -> usize {
        self.colours.len()
    }

    /// Returns the indices of the entries of a colour, and the records that they index.
    pub(crate) fn entries(&self, colour: usize) -> (&[u32], &[u32]) {
        let Colour { shard, entries } = &self.colours[colour];
        (entries, &self.records[*shard])
    }
}

/// A set of colours as a bit mask.
trait ColourMask: Copy + Zeroable {
    /// Number of bits.
    const MAX_COLOURS: usize;
    fn bits(self) -> u64;
    fn insert(&mut self, colour: usize);
}

impl ColourMask for u8 {
    const MAX_COLOURS: usize = 8;

    fn bits(self) -> u64 {
        self.into()
    }

    fn insert(&mut self, colour: usize) {
        *self |= 1 << colour;
    }
}

impl ColourMask for u64 {
    const MAX_COLOURS: usize = 64;

    fn bits(self) -> u64 {
        self
    }

    fn insert(&mut self, colour: usize) {
        *self |= 1 << colour;
    }
}

/// Colours `entries` of `records` with the smallest masks that hold `colours` colours. See
/// [`RowMasks::colour_entries`].
fn colour_entries(
    spec: &BlockingSpec,
    records: &[u32],
    entries: &[u32],
    colours: usize,
    first_choice: impl Fn(u32) -> u32,
) -> Result<(Vec<Vec<u32>>, Vec<u32>)> {
    if colours <= u8::MAX_COLOURS {
        RowMasks::<u8>::new(spec, records)?.colour_entries(entries, colours, first_choice)
    } else {
        RowMasks::<u64>::new(spec, records)?.colour_entries(entries, colours, first_choice)
    }
}

/// For every row of every mode, the set of colours of its entries.
struct RowMasks<'a, M> {
    /// Complete entry records of `record_words` words.
    records: &'a [u32],
    record_words: usize,
    modes: Vec<Vec<M>>,
}

impl<'a, M: ColourMask> RowMasks<'a, M> {
    fn new(spec: &BlockingSpec, records: &'a [u32]) -> Result<Self> {
        let modes = spec.row_counts.iter().map(|&rows| try_zeroed(rows, "rows"));
        Ok(RowMasks {
            records,
            record_words: spec.full_record_words(),
            modes: modes.collect::<Result<_>>()?,
        })
    }

    fn rows(&self, i: u32) -> &'a [u32] {
        &self.records[i as usize * self.record_words..][..self.modes.len()]
    }

    fn prefetch(&self, i: u32) {
        for (mode, &row) in self.modes.iter().zip(self.rows(i)) {
            prefetch(mode.as_ptr().wrapping_add(row as usize).cast());
        }
    }

    /// Gives each of `entries` the first of `colours` colours, cyclically from `first_choice` on, that none of its
    /// rows has. Returns the entries of each colour, and those for which no colour was left.
    fn colour_entries(
        mut self,
        entries: &[u32],
        colours: usize,
        first_choice: impl Fn(u32) -> u32,
    ) -> Result<(Vec<Vec<u32>>, Vec<u32>)> {
        let mean = entries.len() / colours;
        let coloured = (0..colours).map(|_| try_with_capacity(mean + mean / 8, "entries"));
        let mut coloured: Vec<Vec<u32>> = coloured.collect::<Result<_>>()?;
        let mut uncoloured = Vec::new();
        for (k, &i) in entries.iter().enumerate() {
            if let Some(&next) = entries.get(k + PREFETCH_DISTANCE) {
                self.prefetch(next);
            }
            match self.assign_colour(i, colours, first_choice(i)) {
                Some(colour) => coloured[colour].push(i),
                None => uncoloured.push(i),
            }
        }
        Ok((coloured, uncoloured))
    }

    /// Returns the first free colour of entry `i` from `first_choice` on, and adds it to the masks of its rows.
    fn assign_colour(&mut self, i: u32, colours: usize, first_choice: u32) -> Option<usize> {
        let rows = self.rows(i);
        let masks = self.modes.iter().zip(rows);
        let used = masks.fold(0, |used, (mode, &row)| used | mode[row as usize].bits());
        let free = !used & (u64::MAX >> (u64::BITS as usize - colours));
        if free == 0 {
            return None;
        }
        let offset = free.rotate_right(first_choice).trailing_zeros();
        let colour = ((offset + first_choice) % u64::BITS) as usize;
        for (mode, &row) in self.modes.iter_mut().zip(rows) {
            mode[row as usize].insert(colour);
        }
        Some(colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_and_colours_have_many_entries() {
        let plan = |rows, entries, longest_row| {
            let p = ColouringPlan::new(&[rows, 2 * rows, rows], entries, longest_row);
            (p.shards, p.colours_per_shard)
        };
        // Rows of hardly one entry, of ten, of a hundred, and a long one among short ones.
        assert_eq!(plan(990_000, 1_000_000, 3), (8, 2));
        assert_eq!(plan(100_000, 1_000_000, 27), (8, 6));
        assert_eq!(plan(10_000, 1_000_000, 140), (1, 64));
        assert_eq!(plan(900_000, 1_000_000, 400), (1, 64));
        assert_eq!(plan(200_000, 249_999, 9), (1, 9));
        assert_eq!(plan(0, 0, 0), (1, 1));
    }
}
