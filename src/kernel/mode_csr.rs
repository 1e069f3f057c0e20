//! Entries listed row by row of one mode: what exact solvers go through.

use crate::error::{Error, Result};
use crate::try_alloc::{try_collect, try_zeroed};

/// Entries grouped by their row of one mode, and within a row sorted by the other modes, that with
/// the fewest rows first: neighbours then share most of their rows.
///
/// Every index in it was checked against the number of rows of its mode.
pub(crate) struct Lists {
    /// The other modes, in the order in which an entry lists its rows.
    others: Vec<usize>,
    /// How many rows each of them has.
    limits: Vec<usize>,
    /// Where the entries of each row begin, and where the last end.
    starts: Vec<usize>,
    /// For each entry its other rows and the bits of its value.
    words: Vec<u32>,
    /// For each entry its weight; empty if entries have none.
    weights: Vec<f32>,
}

impl Lists {
    /// Groups entries by `mode`. `rows` holds the rows of one entry after the other, `limits` how many
    /// rows each mode has; `weights` is empty if entries have none.
    pub(crate) fn new(
        mode: usize,
        limits: &[usize],
        rows: &[u32],
        (values, weights): (&[f32], &[f32]),
    ) -> Result<Lists> {
        let order = limits.len();
        assert!(weights.is_empty() || weights.len() == values.len());
        assert_eq!(rows.len(), order * values.len());
        if values.len() > u32::MAX as usize {
            return Err(Error::argument(format!(
                "{} entries; row-wise solvers take at most {}",
                values.len(),
                u32::MAX
            )));
        }
        for (k, &row) in rows.iter().enumerate() {
            assert!(
                (row as usize) < limits[k % order],
                "a row that is not there"
            );
        }
        let mut others: Vec<usize> = (0..order).filter(|&m| m != mode).collect();
        others.sort_by_key(|&m| limits[m]);
        // The least significant first: each pass keeps the order of those before.
        let mut places: Vec<u32> = try_zeroed(values.len(), "entries")?;
        places
            .iter_mut()
            .enumerate()
            .for_each(|(i, p)| *p = i as u32);
        let mut sorted: Vec<u32> = try_zeroed(values.len(), "entries")?;
        let mut starts = Vec::new();
        for &m in others.iter().rev().chain([&mode]) {
            starts = try_zeroed(limits[m] + 1, "rows")?;
            let row = |p: u32| rows[p as usize * order + m] as usize;
            places.iter().for_each(|&p| starts[row(p) + 1] += 1);
            for i in 0..limits[m] {
                starts[i + 1] += starts[i];
            }
            let mut next = starts.clone();
            for &p in &places {
                let slot = &mut next[row(p)];
                sorted[*slot] = p;
                *slot += 1;
            }
            std::mem::swap(&mut places, &mut sorted);
        }
        drop(sorted);
        let mut words: Vec<u32> = try_zeroed(rows.len(), "indices")?;
        for (to, &p) in words.chunks_exact_mut(order).zip(&places) {
            for (slot, &m) in to.iter_mut().zip(&others) {
                *slot = rows[p as usize * order + m];
            }
            to[order - 1] = values[p as usize].to_bits();
        }
        let sorted = places[..weights.len()].iter().map(|&p| weights[p as usize]);
        Ok(Lists {
            weights: try_collect(weights.len(), sorted, "entries")?,
            limits: others.iter().map(|&m| limits[m]).collect(),
            others,
            starts,
            words,
        })
    }

    /// The other modes, in the order in which an entry lists its rows.
    pub(crate) fn others(&self) -> &[usize] {
        &self.others
    }

    pub(super) fn limits(&self) -> &[usize] {
        &self.limits
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.starts[self.rows()]
    }

    /// The entries of a row.
    pub(crate) fn of(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    pub(super) fn words(&self, entries: std::ops::Range<usize>) -> &[u32] {
        let width = self.others.len() + 1;
        &self.words[entries.start * width..entries.end * width]
    }

    /// The weights of some entries; empty if entries have none.
    pub(crate) fn weights(&self, entries: std::ops::Range<usize>) -> &[f32] {
        match self.weights.is_empty() {
            true => &[],
            false => &self.weights[entries],
        }
    }

    /// The weight of an entry: 1 if it has none.
    #[inline]
    pub(crate) fn weight(&self, entry: usize) -> f32 {
        self.weights.get(entry).copied().unwrap_or(1.0)
    }

    /// What the entries of a row weigh together: their number if they have no weights.
    pub(crate) fn weight_of(&self, row: usize) -> f64 {
        let entries = self.of(row);
        match self.weights.is_empty() {
            true => entries.len() as f64,
            false => self.weights[entries].iter().map(|&w| f64::from(w)).sum(),
        }
    }

    /// What all entries weigh together: their number if they have no weights.
    pub(crate) fn total(&self) -> f64 {
        match self.weights.is_empty() {
            true => self.len() as f64,
            false => self.weights.iter().map(|&w| f64::from(w)).sum(),
        }
    }

    /// The row of an entry, or where it would be.
    pub(crate) fn row_of(&self, entry: usize) -> usize {
        self.starts[1..].partition_point(|&end| end <= entry)
    }

    /// The other rows of an entry.
    pub(crate) fn entry(&self, entry: usize) -> &[u32] {
        let width = self.others.len() + 1;
        &self.words[entry * width..(entry + 1) * width - 1]
    }

    /// The value of an entry.
    pub(crate) fn value(&self, entry: usize) -> f32 {
        let width = self.others.len() + 1;
        f32::from_bits(self.words[(entry + 1) * width - 1])
    }
}
