//! Entries in colours: no two entries of a colour have a row in common.

use bytemuck::Zeroable;

use super::blocking::{Sorted, Spec};
use crate::error::Result;
use crate::random::{hash_words, splitmix64};
use crate::simd::prefetch;
use crate::try_alloc::{try_collect, try_with_capacity, try_zeroed};

/// Masks of so many entries ahead are asked for.
const AHEAD: usize = 12;

/// Pieces there are at most, and entries that each should have.
const PIECES: usize = 8;
const PIECE: usize = 125_000;

/// Entries that a colour should have where there are several pieces: each is a step.
const COLOUR: usize = 4096;

/// The smallest colours, of so few entries in all, become one that goes without the promise: it is for
/// one thread.
pub(super) const REST: usize = 512;

/// In how many pieces entries get colours, so that threads can share that, and how many colours each
/// piece has: of the data alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Palette {
    pub pieces: usize,
    colours: usize,
}

impl Palette {
    /// For `count` entries, the longest row having `longest` of them.
    pub(crate) fn new(rows: &[usize], count: usize, longest: usize) -> Palette {
        let rows = rows.iter().copied().min().unwrap_or(0).max(1);
        let mut pieces = PIECES.min(count / PIECE);
        while pieces > 1 {
            // So many that hardly any entry finds none, in rows of the usual length and in the longest.
            let usual = count as f64 / (rows * pieces) as f64;
            let longest = longest as f64 / pieces as f64;
            let colours = (3.0 * usual + 1.5).max(longest + longest.sqrt()).ceil() as usize;
            if colours <= u64::COLOURS && pieces * colours * COLOUR <= count {
                return Palette { pieces, colours };
            }
            pieces /= 2;
        }
        Palette {
            pieces: 1,
            colours: longest.clamp(1, u64::COLOURS),
        }
    }

    /// As a test wants it.
    #[cfg(test)]
    pub(super) fn fixed(pieces: usize, colours: usize) -> Palette {
        Palette { pieces, colours }
    }

    /// Gives the entries of a piece colours; `sorted` has entries by piece.
    pub(crate) fn piece(&self, spec: &Spec, sorted: &[Sorted], piece: usize) -> Result<Piece> {
        let words = spec.gather(sorted, piece)?;
        let count = (words.len() / spec.width()) as u32;
        let numbers = try_collect(count as usize, 0..count, "entries")?;
        let seed = hash_words(&[spec.seed, piece as u64]);
        let colours = self.colours as u64;
        let turn = |i: u32| (((splitmix64(seed ^ u64::from(i)) >> 32) * colours) >> 32) as u32;
        let (colours, left) = self.round(spec, &words, &numbers, self.colours, turn)?;
        Ok(Piece {
            words,
            colours,
            left,
        })
    }

    /// Gives entries colours, with masks that are large enough and no larger.
    fn round(
        &self,
        spec: &Spec,
        words: &[u32],
        numbers: &[u32],
        colours: usize,
        turn: impl Fn(u32) -> u32,
    ) -> Result<(Vec<Vec<u32>>, Vec<u32>)> {
        if colours <= u8::COLOURS {
            return Masks::<u8>::new(spec, words)?.give(numbers, colours, turn);
        }
        Masks::<u64>::new(spec, words)?.give(numbers, colours, turn)
    }

    /// All colours of all pieces, and more for those entries that were left.
    pub(crate) fn colours(&self, spec: &Spec, pieces: Vec<Piece>) -> Result<Colours> {
        let width = spec.width();
        let left = |p: &Piece| p.left.len();
        let count: usize = pieces.iter().map(left).sum();
        let mut words = try_with_capacity(count * width, "words of entries")?;
        for piece in &pieces {
            for &i in &piece.left {
                words.extend_from_slice(&piece.words[i as usize * width..][..width]);
            }
        }
        let mut left: Vec<u32> = try_collect(count, 0..count as u32, "entries")?;
        let mut colours = Vec::new();
        let most = match self.colours <= u8::COLOURS {
            true => u8::COLOURS,
            false => u64::COLOURS,
        };
        while left.len() > REST {
            let (more, rest) = self.round(spec, &words, &left, most, |_| 0)?;
            colours.extend(more);
            left = rest;
        }
        // The largest first, and the smallest in one.
        colours.sort_by_key(|c| std::cmp::Reverse(c.len()));
        while let Some(last) = colours.pop_if(|c| c.len() + left.len() <= REST) {
            left.extend(last);
        }
        if !left.is_empty() {
            colours.push(left);
        }
        let mut all = Colours {
            words: try_with_capacity(pieces.len() + 1, "pieces")?,
            colours: Vec::new(),
        };
        let pieces = pieces.into_iter().map(|p| (p.words, p.colours));
        for (words, colours) in pieces.chain([(words, colours)]) {
            let piece = all.words.len();
            let colours = colours.into_iter().filter(|c| !c.is_empty());
            all.colours.extend(colours.map(|c| (piece, c)));
            all.words.push(words);
        }
        Ok(all)
    }
}

/// Some of the entries, those of a colour together.
pub(crate) struct Piece {
    /// Rows and values, one entry after the other.
    words: Vec<u32>,
    /// For each colour, numbers of entries.
    colours: Vec<Vec<u32>>,
    /// Entries that found none.
    left: Vec<u32>,
}

/// All entries, those of a colour together.
pub(crate) struct Colours {
    /// For each piece, rows and values, one entry after the other.
    words: Vec<Vec<u32>>,
    /// For each colour, its piece and numbers of entries of that.
    colours: Vec<(usize, Vec<u32>)>,
}

impl Colours {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.colours.len()
    }

    /// The entries of a colour, and the words that they are numbers of.
    pub(super) fn members(&self, colour: usize) -> (&[u32], &[u32]) {
        let (piece, members) = &self.colours[colour];
        (members, &self.words[*piece])
    }
}

/// Some colours.
trait Mask: Copy + Zeroable {
    /// How many there can be.
    const COLOURS: usize;
    fn bits(self) -> u64;
    fn add(&mut self, colour: usize);
}

impl Mask for u8 {
    const COLOURS: usize = 8;

    fn bits(self) -> u64 {
        self.into()
    }

    fn add(&mut self, colour: usize) {
        *self |= 1 << colour;
    }
}

impl Mask for u64 {
    const COLOURS: usize = 64;

    fn bits(self) -> u64 {
        self
    }

    fn add(&mut self, colour: usize) {
        *self |= 1 << colour;
    }
}

/// For every row of every mode, which colours it has seen.
struct Masks<'a, M> {
    /// The entries, of so many words each.
    words: &'a [u32],
    width: usize,
    modes: Vec<Vec<M>>,
}

impl<'a, M: Mask> Masks<'a, M> {
    fn new(spec: &Spec, words: &'a [u32]) -> Result<Self> {
        let modes = spec.rows.iter().map(|&rows| try_zeroed(rows, "rows"));
        Ok(Masks {
            words,
            width: spec.width(),
            modes: modes.collect::<Result<_>>()?,
        })
    }

    fn rows(&self, i: u32) -> &'a [u32] {
        &self.words[i as usize * self.width..][..self.modes.len()]
    }

    fn ask(&self, i: u32) {
        for (mode, &row) in self.modes.iter().zip(self.rows(i)) {
            prefetch(mode.as_ptr().wrapping_add(row as usize).cast());
        }
    }

    /// Gives each entry of `numbers` one of so many colours, the first from its `turn` on that none of
    /// its rows has seen. Returns the entries of each colour, and those that found none.
    fn give(
        mut self,
        numbers: &[u32],
        colours: usize,
        turn: impl Fn(u32) -> u32,
    ) -> Result<(Vec<Vec<u32>>, Vec<u32>)> {
        let each = numbers.len() / colours;
        let given = (0..colours).map(|_| try_with_capacity(each + each / 8, "entries"));
        let mut given: Vec<Vec<u32>> = given.collect::<Result<_>>()?;
        let mut left = Vec::new();
        for (k, &i) in numbers.iter().enumerate() {
            if let Some(&next) = numbers.get(k + AHEAD) {
                self.ask(next);
            }
            match self.take(i, colours, turn(i)) {
                Some(colour) => given[colour].push(i),
                None => left.push(i),
            }
        }
        Ok((given, left))
    }

    /// A colour for entry `i`, the first free one from `turn` on.
    fn take(&mut self, i: u32, colours: usize, turn: u32) -> Option<usize> {
        let rows = self.rows(i);
        let pairs = self.modes.iter().zip(rows);
        let seen = pairs.fold(0, |seen, (mode, &row)| seen | mode[row as usize].bits());
        let free = !seen & (u64::MAX >> (u64::BITS as usize - colours));
        if free == 0 {
            return None;
        }
        let from_turn = free.rotate_right(turn).trailing_zeros();
        let colour = ((from_turn + turn) % u64::BITS) as usize;
        for (mode, &row) in self.modes.iter_mut().zip(rows) {
            mode[row as usize].add(colour);
        }
        Some(colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_large_and_so_are_colours() {
        let palette = |rows, count, longest| {
            let p = Palette::new(&[rows, 2 * rows, rows], count, longest);
            (p.pieces, p.colours)
        };
        // Rows of hardly one entry, of ten, of a hundred, and a long one among short ones.
        assert_eq!(palette(990_000, 1_000_000, 3), (8, 2));
        assert_eq!(palette(100_000, 1_000_000, 27), (8, 6));
        assert_eq!(palette(10_000, 1_000_000, 140), (1, 64));
        assert_eq!(palette(900_000, 1_000_000, 400), (1, 64));
        assert_eq!(palette(200_000, 249_999, 9), (1, 9));
        assert_eq!(palette(0, 0, 0), (1, 1));
    }
}
