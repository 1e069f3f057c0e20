//! Entries sorted into cells: the parts of some modes that an entry's rows are in decide its cell, so
//! that cells without a part in common can be worked on at the same time. Inside a cell, entries that
//! share their row of one mode, the fiber mode, lie together.

use std::ops::Range;
use std::sync::Arc;

use super::exclusive_rows::Parts;
use crate::error::Result;
use crate::kernel::MAX_ORDER;

use crate::kernel::EntryChunk;
use crate::random::{RandomStream, splitmix64};
use crate::try_alloc::{try_collect, try_with_capacity, try_zeroed};

/// How entries are sorted.
pub(crate) struct Spec {
    /// For each mode, one more than the largest row.
    pub rows: Vec<usize>,
    /// The mode whose rows entries are grouped by.
    pub fiber: Option<usize>,
    /// For each mode that is cut, which coordinate of the cell its part is.
    pub cuts: Vec<Option<(usize, Arc<Parts>)>>,
    /// The number of values of a coordinate.
    pub pieces: usize,
    /// The number of coordinates.
    pub coordinates: usize,
    /// Decides coordinates that no mode does, and the order of entries.
    pub seed: u64,
    /// Whether entries have weights.
    pub weighted: bool,
}

impl Spec {
    /// The number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.pieces.pow(self.coordinates as u32)
    }

    /// The coordinates of a cell.
    pub(crate) fn place(&self, cell: usize) -> [usize; MAX_ORDER] {
        let mut place = [0; MAX_ORDER];
        let mut rest = cell;
        for slot in place.iter_mut().take(self.coordinates) {
            (*slot, rest) = (rest % self.pieces, rest / self.pieces);
        }
        place
    }

    /// The cell with these coordinates.
    pub(crate) fn cell(&self, place: &[usize]) -> usize {
        place[..self.coordinates]
            .iter()
            .rev()
            .fold(0, |cell, p| cell * self.pieces + p)
    }

    fn order(&self) -> usize {
        self.rows.len()
    }

    /// Words of an entry that is not in a cell yet.
    pub(super) fn width(&self) -> usize {
        self.order() + self.numbers()
    }

    /// Words of an entry behind its rows: the bits of its value and, if it has one, of its weight.
    fn numbers(&self) -> usize {
        1 + usize::from(self.weighted)
    }

    /// The same rows, with every entry in one of so many pieces by chance.
    pub(crate) fn in_pieces(&self, pieces: usize) -> Spec {
        Spec {
            rows: self.rows.clone(),
            fiber: None,
            cuts: vec![None; self.rows.len()],
            pieces,
            coordinates: 1,
            seed: self.seed,
            weighted: self.weighted,
        }
    }

    /// The modes whose rows an entry lists: all but the fiber mode.
    pub(crate) fn listed(&self) -> Vec<usize> {
        (0..self.order())
            .filter(|&n| self.fiber != Some(n))
            .collect()
    }

    /// Sorts some entries, the first of which is number `first` of all, by cell.
    ///
    /// # Panics
    /// If entries have weights and are not to, or the other way round.
    pub(crate) fn sort(&self, chunk: &EntryChunk, first: usize) -> Result<Sorted> {
        let (n, order, width) = (chunk.values.len(), self.order(), self.width());
        assert_eq!(chunk.weights.len(), if self.weighted { n } else { 0 });
        let mut cells = try_with_capacity(n, "entries")?;
        let mut starts = vec![0u32; self.cells() + 1];
        let free: Vec<bool> = (0..self.coordinates)
            .map(|c| !self.cuts.iter().flatten().any(|(k, _)| *k == c))
            .collect();
        let factor: Vec<usize> = (0..self.coordinates)
            .map(|c| self.pieces.pow(c as u32))
            .collect();
        for i in 0..n {
            let mut cell = 0;
            for (column, cut) in chunk.rows.iter().zip(&self.cuts) {
                if let Some((coordinate, parts)) = cut {
                    cell += usize::from(parts.of(column[i])) * factor[*coordinate];
                }
            }
            for c in 0..self.coordinates {
                if free[c] {
                    let hash =
                        splitmix64(self.seed ^ splitmix64((first + i) as u64 * 8 + c as u64));
                    cell += ((u128::from(hash) * self.pieces as u128) >> 64) as usize * factor[c];
                }
            }
            starts[cell + 1] += 1;
            cells.push(cell as u32);
        }
        for c in 0..self.cells() {
            starts[c + 1] += starts[c];
        }
        let mut at = starts.clone();
        let mut words: Vec<u32> = try_zeroed(n * width, "words of entries")?;
        for i in 0..n {
            let slot = &mut at[cells[i] as usize];
            let to = &mut words[*slot as usize * width..][..width];
            *slot += 1;
            for (t, column) in to.iter_mut().zip(&chunk.rows) {
                *t = column[i];
            }
            to[order] = chunk.values[i].to_bits();
            if self.weighted {
                to[order + 1] = chunk.weights[i].to_bits();
            }
        }
        Ok(Sorted { words, starts })
    }

    /// The words of a cell's entries from all sorted chunks.
    pub(super) fn gather(&self, sorted: &[Sorted], cell: usize) -> Result<Vec<u32>> {
        let parts = sorted.iter().map(|s| s.cell(self, cell));
        let mut words =
            try_with_capacity(parts.clone().map(<[u32]>::len).sum(), "words of entries")?;
        parts.for_each(|part| words.extend_from_slice(part));
        Ok(words)
    }

    /// Puts together a cell from all sorted chunks. The order of its entries is random.
    ///
    /// # Panics
    /// If an entry does not belong into the cell.
    pub(crate) fn build(self: &Arc<Self>, sorted: &[Sorted], cell: usize) -> Result<Cell> {
        let (order, width) = (self.order(), self.width());
        let words = self.gather(sorted, cell)?;
        let n = words.len() / width;
        assert!(n < u32::MAX as usize, "a cell of too many entries");
        let place = self.place(cell);
        for entry in words.chunks_exact(width) {
            for (m, &row) in entry[..order].iter().enumerate() {
                let inside = match &self.cuts[m] {
                    Some((c, parts)) => {
                        (row as usize) < parts.rows() && usize::from(parts.of(row)) == place[*c]
                    }
                    None => true,
                };
                assert!(
                    inside && (row as usize) < self.rows[m],
                    "an entry in the wrong cell"
                );
            }
        }
        let mut stream = RandomStream::new(&[self.seed, cell as u64]);
        let mut order_of: Vec<u32> = try_collect(n, 0..n as u32, "entries")?;
        for i in (1..n).rev() {
            order_of.swap(i, stream.below(i as u64 + 1) as usize);
        }
        let mut runs = Vec::new();
        match self.fiber {
            Some(f) => {
                let key = |i: u32| words[i as usize * width + f];
                radix(&mut order_of, self.rows[f], key)?;
                let mut start = 0;
                for at in 1..=n {
                    if at == n || key(order_of[at]) != key(order_of[start]) {
                        runs.push(Run {
                            fiber: key(order_of[start]),
                            start: start as u32,
                            len: (at - start) as u32,
                        });
                        start = at;
                    }
                }
            }
            None if n > 0 => runs.push(Run {
                fiber: 0,
                start: 0,
                len: n as u32,
            }),
            None => {}
        }
        let listed = self.listed();
        let words_of_one = listed.len() + self.numbers();
        let mut entries = try_with_capacity(n * words_of_one, "words of entries")?;
        for &i in &order_of {
            let entry = &words[i as usize * width..][..width];
            entries.extend(listed.iter().map(|&m| entry[m]));
            entries.extend_from_slice(&entry[order..]);
        }
        Ok(Cell {
            spec: self.clone(),
            number: cell,
            total: self.total(&entries, words_of_one),
            entries,
            runs,
            base: Vec::new(),
        })
    }
}

impl Spec {
    /// What entries of so many words weigh together.
    fn total(&self, entries: &[u32], words: usize) -> f64 {
        match self.weighted {
            true => {
                let entries = entries.chunks_exact(words);
                entries
                    .map(|e| f64::from(f32::from_bits(e[words - 1])))
                    .sum()
            }
            false => (entries.len() / words) as f64,
        }
    }

    /// A cell of entries that nothing sorts, each with the rows of all modes.
    ///
    /// # Panics
    /// If an entry names a row that is not there, or entries are grouped.
    pub(super) fn cell_of(self: &Arc<Self>, entries: Vec<u32>) -> Cell {
        let (order, width) = (self.order(), self.width());
        assert!(self.fiber.is_none() && self.cuts.iter().all(Option::is_none));
        assert!(entries.len().is_multiple_of(width) && entries.len() / width < u32::MAX as usize);
        for entry in entries.chunks_exact(width) {
            let inside = entry[..order].iter().zip(&self.rows);
            assert!(
                inside
                    .into_iter()
                    .all(|(&row, &rows)| (row as usize) < rows)
            );
        }
        let run = Run {
            fiber: 0,
            start: 0,
            len: (entries.len() / width) as u32,
        };
        Cell {
            spec: self.clone(),
            number: 0,
            runs: if run.len > 0 { vec![run] } else { Vec::new() },
            total: self.total(&entries, width),
            entries,
            base: Vec::new(),
        }
    }
}

/// Sorts by a key below `limit`, keeping the order of equal ones: least significant digits first.
pub(super) fn radix(items: &mut Vec<u32>, limit: usize, key: impl Fn(u32) -> u32) -> Result<()> {
    const BITS: u32 = 8;
    let mut to = try_zeroed(items.len(), "entries")?;
    let mut shift = 0;
    while shift < u32::BITS && limit.saturating_sub(1) >> shift > 0 {
        let digit = |i: u32| (key(i) >> shift) as usize & ((1 << BITS) - 1);
        let mut starts = [0usize; (1 << BITS) + 1];
        for &i in items.iter() {
            starts[digit(i) + 1] += 1;
        }
        for d in 0..1 << BITS {
            starts[d + 1] += starts[d];
        }
        for &i in items.iter() {
            let slot = &mut starts[digit(i)];
            to[*slot] = i;
            *slot += 1;
        }
        std::mem::swap(items, &mut to);
        shift += BITS;
    }
    Ok(())
}

/// Some entries sorted by cell: their rows and the bits of their values and weights.
pub(crate) struct Sorted {
    pub(super) words: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

impl Sorted {
    /// The entries of a cell: the rows of all modes and the bits of value and weight, one after the other.
    fn cell(&self, spec: &Spec, cell: usize) -> &[u32] {
        let at = |c: usize| self.starts[c] as usize * spec.width();
        &self.words[at(cell)..at(cell + 1)]
    }
}

/// Entries that share their row of the fiber mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub fiber: u32,
    pub start: u32,
    pub len: u32,
}

/// Some neighbours in a run, which is a ring: from `first`, `len` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(super) run: Run,
    pub(super) first: u32,
    pub(super) len: u32,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The words of its entries of `cell`: up to the end of the run, and from its start.
    pub(super) fn pieces<'a>(&self, cell: &'a Cell) -> [&'a [u32]; 2] {
        let width = cell.words();
        let run = &cell.entries[self.run.start as usize * width..][..self.run.len as usize * width];
        let (first, len) = (self.first as usize, self.len as usize);
        let until = (first + len).min(self.run.len as usize);
        let rest = first + len - until;
        [&run[first * width..until * width], &run[..rest * width]]
    }
}

/// The entries of a cell. Every entry's rows are in the cell's parts and within the sizes: that was
/// checked when it was built, and nothing changes it afterwards.
pub(crate) struct Cell {
    spec: Arc<Spec>,
    number: usize,
    /// For each entry its listed rows, the bits of its value and, if it has one, of its weight.
    entries: Vec<u32>,
    runs: Vec<Run>,
    /// What they weigh together.
    total: f64,
    /// The values without biases taken out, if any were.
    base: Vec<f32>,
}

impl Cell {
    /// Takes the biases of each mode out of the values as they were built.
    ///
    /// # Panics
    /// If a row has no bias.
    pub(crate) fn take_out(&mut self, biases: &[&[f32]]) -> Result<()> {
        let (width, listed) = (self.words(), self.spec.listed());
        let at = listed.len();
        if self.base.is_empty() {
            let values = self.entries.chunks_exact(width);
            let values = values.map(|e| f32::from_bits(e[at]));
            self.base = try_collect(self.len(), values, "entries")?;
        }
        for run in &self.runs {
            let fiber = self.spec.fiber;
            let shared = fiber.map_or(0.0, |f| f64::from(biases[f][run.fiber as usize]));
            for i in run.start as usize..(run.start + run.len) as usize {
                let entry = &mut self.entries[i * width..][..width];
                let rows = listed.iter().zip(&*entry);
                let each = rows.map(|(&m, &row)| f64::from(biases[m][row as usize]));
                let bias = shared + each.sum::<f64>();
                entry[at] = ((f64::from(self.base[i]) - bias) as f32).to_bits();
            }
        }
        Ok(())
    }

    /// Hands over every entry with its row of mode `m`, in the order in which errors are.
    #[inline]
    pub(crate) fn rows_in(&self, m: usize, mut take: impl FnMut(usize, u32)) {
        let each = |run: &Run| run.start as usize..(run.start + run.len) as usize;
        if self.spec.fiber == Some(m) {
            for run in &self.runs {
                each(run).for_each(|i| take(i, run.fiber));
            }
            return;
        }
        let at = m - usize::from(self.spec.fiber.is_some_and(|f| f < m));
        let entries = self.entries.chunks_exact(self.words());
        entries
            .enumerate()
            .for_each(|(i, entry)| take(i, entry[at]));
    }

    /// The value of entry `i` as it was built, before any biases were taken out.
    #[inline]
    pub(crate) fn base(&self, i: usize) -> f32 {
        match self.base.get(i) {
            Some(base) => *base,
            None => f32::from_bits(self.entries[i * self.words() + self.spec.listed().len()]),
        }
    }

    /// The weight of entry `i`: 1 if it has none.
    #[inline]
    pub(crate) fn weight(&self, i: usize) -> f32 {
        match self.spec.weighted {
            true => f32::from_bits(self.entries[(i + 1) * self.words() - 1]),
            false => 1.0,
        }
    }

    /// What all entries weigh together: their number if they have no weights.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    pub(crate) fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Which cell of the grid, or of all classes, it is.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn set_number(&mut self, number: usize) {
        self.number = number;
    }

    /// The coordinates.
    pub(crate) fn place(&self) -> [usize; MAX_ORDER] {
        self.spec.place(self.number)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() / self.words()
    }

    /// Words per entry.
    pub(super) fn words(&self) -> usize {
        self.spec.rows.len() - usize::from(self.spec.fiber.is_some()) + self.spec.numbers()
    }

    pub(super) fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// All entries with all their rows, in order of modes, their values and weights.
    pub(crate) fn each(&self, mut take: impl FnMut(&[u32], f32, f32)) {
        let width = self.words();
        let mut rows = vec![0; self.spec.rows.len()];
        let listed = self.spec.listed();
        for run in &self.runs {
            if let Some(f) = self.spec.fiber {
                rows[f] = run.fiber;
            }
            for i in run.start..run.start + run.len {
                let entry = &self.entries[i as usize * width..][..width];
                for (k, &m) in listed.iter().enumerate() {
                    rows[m] = entry[k];
                }
                let value = f32::from_bits(entry[listed.len()]);
                take(&rows, value, self.weight(i as usize));
            }
        }
    }

    /// The rows of entry `i`, in order of modes.
    pub(crate) fn rows_of(&self, i: usize, rows: &mut [u32]) {
        let width = self.words();
        if let Some(f) = self.spec.fiber {
            let run = self.runs.partition_point(|r| (r.start as usize) <= i) - 1;
            rows[f] = self.runs[run].fiber;
        }
        let fiber = self.spec.fiber;
        let listed = (0..rows.len()).filter(|&m| fiber != Some(m));
        for (k, m) in listed.enumerate() {
            rows[m] = self.entries[i * width + k];
        }
    }

    /// Adds the number of entries that each row of mode `m` has here.
    pub(crate) fn count(&self, m: usize, counts: &mut [u32]) {
        if self.spec.fiber == Some(m) {
            for run in &self.runs {
                counts[run.fiber as usize] += run.len;
            }
        } else {
            let at = m - usize::from(self.spec.fiber.is_some_and(|f| f < m));
            for entry in self.entries.chunks_exact(self.words()) {
                counts[entry[at] as usize] += 1;
            }
        }
    }

    /// Adds everything to a checksum.
    pub(crate) fn mark(&self, crc: &mut crc32fast::Hasher) {
        crc.update(bytemuck::cast_slice(&self.entries));
        for run in &self.runs {
            crc.update(bytemuck::cast_slice(&[run.fiber, run.len]));
        }
    }

    /// Whole runs.
    pub(super) fn whole(&self) -> impl Iterator<Item = Batch> {
        self.runs.iter().map(|&run| Batch {
            run,
            first: 0,
            len: run.len,
        })
    }

    /// Batches of at most `limit` entries, in random order: each run is a ring that begins anywhere
    /// and is cut evenly. The entries stay where they are.
    pub(crate) fn batches(&self, limit: usize, name: &[u64], batches: &mut Vec<Batch>) {
        batches.clear();
        let mut stream = RandomStream::new(name);
        for &run in &self.runs {
            let count = run.len.div_ceil(limit as u32);
            let turn = stream.below(u64::from(run.len)) as u32;
            let cut = |k: u32| (u64::from(run.len) * u64::from(k) / u64::from(count)) as u32;
            for k in 0..count {
                let Range { start, end } = cut(k)..cut(k + 1);
                batches.push(Batch {
                    run,
                    first: (turn + start) % run.len,
                    len: end - start,
                });
            }
        }
        for i in (1..batches.len()).rev() {
            batches.swap(i, stream.below(i as u64 + 1) as usize);
        }
    }
}
