//! The rows of a mode, partitioned into numbered parts.

use std::sync::Arc;

/// A partition of rows `0..row_count` into parts `0..part_count`.
pub(crate) struct RowPartition {
    /// The part of each row.
    part_of: Vec<u16>,
    /// All rows, those of a part adjacent and ascending.
    rows: Vec<u32>,
    /// Where the rows of each part start in `rows`, and the end of the last.
    starts: Vec<usize>,
}

impl RowPartition {
    /// Builds a partition from the part of every row.
    ///
    /// # Panics
    /// If the part of a row is not below `part_count`.
    pub(crate) fn new(part_of: Vec<u16>, part_count: usize) -> Arc<RowPartition> {
        let mut starts = vec![0usize; part_count + 1];
        for &p in &part_of {
            starts[usize::from(p) + 1] += 1;
        }
        for p in 0..part_count {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; part_of.len()];
        for (row, &p) in part_of.iter().enumerate() {
            rows[next[usize::from(p)]] = row as u32;
            next[usize::from(p)] += 1;
        }
        Arc::new(RowPartition {
            part_of,
            rows,
            starts,
        })
    }

    /// Cuts `row_count` rows into at most `part_count` contiguous parts of nearly equal size.
    pub(crate) fn contiguous(row_count: usize, part_count: usize) -> Arc<RowPartition> {
        let part_count = part_count.clamp(1, row_count.max(1));
        let part_of = (0..row_count)
            .map(|r| (r * part_count / row_count) as u16)
            .collect();
        RowPartition::new(part_of, part_count)
    }

    /// Number of parts.
    pub(crate) fn part_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.part_of.len()
    }

    /// Returns the part of a row.
    #[inline]
    pub(crate) fn part_of(&self, row: u32) -> u16 {
        self.part_of[row as usize]
    }

    /// Returns the rows of a part in ascending order.
    pub(crate) fn rows_of(&self, part: usize) -> &[u32] {
        &self.rows[self.starts[part]..self.starts[part + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_lists_the_rows_of_each_part() {
        let partition = RowPartition::new(vec![0, 2, 0, 1], 3);
        assert_eq!(
            (
                partition.rows_of(0),
                partition.rows_of(1),
                partition.rows_of(2)
            ),
            (&[0, 2][..], &[3][..], &[1][..])
        );
        let partition = RowPartition::contiguous(10, 3);
        assert_eq!((partition.part_count(), partition.row_count()), (3, 10));
        assert_eq!(partition.rows_of(0), [0, 1, 2, 3]);
        assert_eq!(RowPartition::contiguous(2, 5).part_count(), 2);
        assert_eq!(RowPartition::contiguous(0, 5).row_count(), 0);
    }
}
