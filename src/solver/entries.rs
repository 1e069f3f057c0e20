//! The entries of a tensor or matrix, as an algorithm wants them.

use std::sync::Mutex;

use crate::error::Result;
use crate::kernel::{ConflictFreeClasses, EntryBlock};
use crate::parallel::ThreadPool;
use crate::try_alloc::try_to_vec;

/// The entries of the tensor or of a matrix, as an algorithm wants them.
pub(super) enum Entries {
    /// For the lock-free algorithms: in random order.
    Shuffled(Shuffled),
    /// For `blocked`, and for measuring errors: sorted into cells.
    Cells(Vec<EntryBlock>),
    /// For `blocked`, if hardly any entries share a row.
    Classes(ConflictFreeClasses),
}

/// Entries with their rows one after the other.
pub(super) struct Shuffled {
    /// Rows per entry.
    pub order: usize,
    pub rows: Vec<u32>,
    pub values: Vec<f32>,
    /// Empty if entries have no weights.
    pub weights: Vec<f32>,
    /// The values without biases taken out, if any were.
    pub base: Vec<f32>,
}

impl Shuffled {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The weight of an entry: 1 if it has none.
    #[inline]
    pub(super) fn weight(&self, i: usize) -> f32 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }

    /// What all weigh together: their number if they have no weights.
    pub(super) fn total(&self) -> f64 {
        match self.weights.is_empty() {
            true => self.len() as f64,
            false => self.weights.iter().map(|&w| f64::from(w)).sum(),
        }
    }

    #[inline]
    pub(super) fn row(&self, i: usize) -> &[u32] {
        &self.rows[i * self.order..(i + 1) * self.order]
    }
}

impl Entries {
    /// Takes the biases of each mode out of the values as they were read.
    pub(super) fn take_out(&mut self, biases: &[Vec<f32>], pool: &ThreadPool) -> Result<()> {
        let biases: Vec<&[f32]> = biases.iter().map(Vec::as_slice).collect();
        if biases.is_empty() {
            return Ok(());
        }
        let cells = match self {
            Entries::Cells(cells) => &mut cells[..],
            Entries::Classes(classes) => classes.blocks_mut(),
            Entries::Shuffled(s) => {
                if s.base.is_empty() {
                    s.base = try_to_vec(&s.values, "entries")?;
                }
                for i in 0..s.len() {
                    let each = biases.iter().zip(s.row(i));
                    let bias: f64 = each.map(|(b, &row)| f64::from(b[row as usize])).sum();
                    s.values[i] = (f64::from(s.base[i]) - bias) as f32;
                }
                return Ok(());
            }
        };
        let all: Vec<Mutex<&mut EntryBlock>> = cells.iter_mut().map(Mutex::new).collect();
        let take_out = |c: usize| {
            let mut cell = all[c].lock().unwrap_or_else(|e| e.into_inner());
            cell.subtract_biases(&biases)
        };
        let done = pool.map(all.len(), &mut || false, || (), |(), c| take_out(c))?;
        done.unwrap_or_default().into_iter().collect()
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Entries::Shuffled(s) => s.len(),
            Entries::Cells(cells) => cells.iter().map(EntryBlock::len).sum(),
            Entries::Classes(classes) => classes.len(),
        }
    }

    /// What all weigh together: their number if they have no weights.
    pub(super) fn total(&self) -> f64 {
        match self {
            Entries::Shuffled(s) => s.total(),
            _ => self.cells().iter().map(EntryBlock::total_weight).sum(),
        }
    }

    /// Whether they have weights.
    pub(super) fn is_weighted(&self) -> bool {
        match self {
            Entries::Shuffled(s) => !s.weights.is_empty(),
            _ => self.cells().first().is_some_and(|c| c.spec().weighted),
        }
    }

    /// Adds everything to a checksum.
    pub(super) fn mark(&self, crc: &mut crc32fast::Hasher) {
        match self {
            Entries::Shuffled(s) => {
                crc.update(bytemuck::cast_slice(&s.rows));
                crc.update(bytemuck::cast_slice(&s.values));
                crc.update(bytemuck::cast_slice(&s.weights));
            }
            _ => self.cells().iter().for_each(|c| c.update_checksum(crc)),
        }
    }

    /// All entries with their values and weights, in an order of no meaning.
    pub(super) fn each(&self, mut take: impl FnMut(&[u32], f32, f32)) {
        match self {
            Entries::Shuffled(s) => {
                (0..s.len()).for_each(|i| take(s.row(i), s.values[i], s.weight(i)));
            }
            _ => self
                .cells()
                .iter()
                .for_each(|c| c.for_each_entry(&mut take)),
        }
    }

    /// For the algorithms that want them so.
    ///
    /// # Panics
    /// If they are sorted into cells.
    pub(super) fn shuffled(&self) -> &Shuffled {
        match self {
            Entries::Shuffled(s) => s,
            _ => unreachable!("lock-free algorithms have shuffled entries"),
        }
    }

    /// For the algorithms that want them so.
    ///
    /// # Panics
    /// If they are in random order.
    pub(super) fn cells(&self) -> &[EntryBlock] {
        match self {
            Entries::Shuffled(_) => unreachable!("blocked has entries in cells"),
            Entries::Cells(cells) => cells,
            Entries::Classes(classes) => classes.blocks(),
        }
    }

    /// The classes, if entries are in classes.
    pub(super) fn classes(&self) -> Option<&ConflictFreeClasses> {
        match self {
            Entries::Classes(classes) => Some(classes),
            _ => None,
        }
    }
}
