//! The entries of a tensor or matrix in the arrangement that an algorithm needs.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::kernel::{BlockingSpec, ConflictFreeClasses, EntryBlock};
use crate::parallel::ThreadPool;
use crate::try_alloc::try_to_vec;

/// The entries of the tensor or of a matrix.
pub enum Entries {
    /// One after the other, for the lock-free and the row-wise algorithms.
    List(EntryList),
    /// In blocks, for `blocked` and for measuring errors.
    Blocks(Vec<EntryBlock>),
    /// In conflict-free classes, for `blocked` if hardly any entries share a row.
    Classes(ConflictFreeClasses),
}

/// Entries one after the other, in any order.
pub struct EntryList {
    /// Number of rows per entry.
    pub order: usize,
    /// The rows of one entry after the other.
    pub rows: Vec<u32>,
    pub values: Vec<f32>,
    /// Empty if entries are not weighted.
    pub weights: Vec<f32>,
    /// The values before biases were subtracted; empty if none were.
    pub values_with_biases: Vec<f32>,
}

impl EntryList {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Returns the values before biases were subtracted.
    pub fn original_values(&self) -> &[f32] {
        if self.values_with_biases.is_empty() {
            &self.values
        } else {
            &self.values_with_biases
        }
    }

    /// Returns the weight of an entry: 1 if entries are not weighted.
    #[inline]
    pub(super) fn weight(&self, i: usize) -> f32 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }

    /// Returns the total weight: the number of entries if they are not weighted.
    pub(super) fn total_weight(&self) -> f64 {
        if self.weights.is_empty() {
            self.len() as f64
        } else {
            self.weights.iter().map(|&w| f64::from(w)).sum()
        }
    }

    /// Copies the entries of a range into the only block of a blocking without cuts.
    pub(super) fn block(
        &self,
        spec: &Arc<BlockingSpec>,
        range: Range<usize>,
    ) -> Result<EntryBlock> {
        let rows = &self.rows[range.start * self.order..range.end * self.order];
        let weights = if self.is_weighted() {
            &self.weights[range.clone()]
        } else {
            &[]
        };
        EntryBlock::from_entries(spec, rows, &self.values[range], weights)
    }

    /// Returns the rows of an entry, one per mode.
    #[inline]
    pub(super) fn row(&self, i: usize) -> &[u32] {
        &self.rows[i * self.order..(i + 1) * self.order]
    }
}

impl Entries {
    /// Subtracts the biases of each mode from the values as they were read. Biases that were subtracted
    /// before are replaced.
    pub fn subtract_biases(&mut self, biases: &[Vec<f32>], pool: &ThreadPool<'_>) -> Result<()> {
        let biases: Vec<&[f32]> = biases.iter().map(Vec::as_slice).collect();
        if biases.is_empty() {
            return Ok(());
        }
        let blocks = match self {
            Entries::Blocks(blocks) => &mut blocks[..],
            Entries::Classes(classes) => classes.blocks_mut(),
            Entries::List(s) => {
                if s.values_with_biases.is_empty() {
                    s.values_with_biases = try_to_vec(&s.values, "entries")?;
                }
                for i in 0..s.len() {
                    let rows = s.row(i);
                    let mut bias = 0.0;
                    for (m, biases) in biases.iter().enumerate() {
                        bias += f64::from(biases[rows[m] as usize]);
                    }
                    s.values[i] = (f64::from(s.values_with_biases[i]) - bias) as f32;
                }
                return Ok(());
            }
        };
        let all: Vec<Mutex<&mut EntryBlock>> = blocks.iter_mut().map(Mutex::new).collect();
        let subtract = |c: usize| {
            let mut block = all[c].lock().unwrap_or_else(|e| e.into_inner());
            block.subtract_biases(&biases)
        };
        pool.try_map(all.len(), || Ok(()), |(), c| subtract(c))?;
        Ok(())
    }

    /// Frees all entries.
    pub(super) fn release(&mut self) {
        *self = Entries::Blocks(Vec::new());
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Entries::List(s) => s.len(),
            Entries::Blocks(blocks) => blocks.iter().map(EntryBlock::len).sum(),
            Entries::Classes(classes) => classes.len(),
        }
    }

    /// Returns the total weight: the number of entries if they are not weighted.
    pub(super) fn total_weight(&self) -> f64 {
        match self {
            Entries::List(s) => s.total_weight(),
            _ => self.blocks().iter().map(EntryBlock::total_weight).sum(),
        }
    }

    /// Returns whether entries are weighted.
    pub(super) fn is_weighted(&self) -> bool {
        match self {
            Entries::List(s) => s.is_weighted(),
            _ => self.blocks().first().is_some_and(|c| c.spec().weighted),
        }
    }

    /// Adds rows, values and weights to a checksum.
    pub(super) fn update_checksum(&self, crc: &mut crc32fast::Hasher) {
        match self {
            Entries::List(s) => {
                crc.update(bytemuck::cast_slice(&s.rows));
                crc.update(bytemuck::cast_slice(&s.values));
                crc.update(bytemuck::cast_slice(&s.weights));
            }
            _ => self.blocks().iter().for_each(|b| b.update_checksum(crc)),
        }
    }

    /// Calls `visit` with the rows, the value and the weight of every entry. The order is that of the layout.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u32], f32, f32)) {
        match self {
            Entries::List(s) => {
                (0..s.len()).for_each(|i| visit(s.row(i), s.values[i], s.weight(i)));
            }
            _ => self
                .blocks()
                .iter()
                .for_each(|b| b.for_each_entry(&mut visit)),
        }
    }

    /// Returns the list of entries.
    ///
    /// # Panics
    /// If they are in blocks.
    pub fn list(&self) -> &EntryList {
        match self {
            Entries::List(s) => s,
            _ => unreachable!("the algorithm asked for a list of entries"),
        }
    }

    /// Returns the blocks.
    ///
    /// # Panics
    /// If entries are in a list.
    pub(super) fn blocks(&self) -> &[EntryBlock] {
        match self {
            Entries::List(_) => unreachable!("the algorithm asked for entries in blocks"),
            Entries::Blocks(blocks) => blocks,
            Entries::Classes(classes) => classes.blocks(),
        }
    }

    /// Returns the conflict-free classes, if entries are in classes.
    pub(super) fn classes(&self) -> Option<&ConflictFreeClasses> {
        match self {
            Entries::Classes(classes) => Some(classes),
            _ => None,
        }
    }
}
