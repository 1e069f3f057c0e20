//! Pairs of rows that occur together in observed entries, which recommendations leave out.

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::try_alloc::try_with_capacity;

/// For each row of the query mode (users, say), the rows of the ranked mode (items) that it has entries with. Indices of
/// the other modes do not matter.
pub struct ObservedPairs {
    query_mode: usize,
    ranked_mode: usize,
    /// Made by [`pair`]; sorted, without duplicates.
    pairs: Vec<u64>,
}

impl ObservedPairs {
    /// Collects the pairs of all entries of `views`, which are validated. Entries of weight 0 are ignored.
    pub fn new(
        views: &[CooView<'_>],
        query_mode: usize,
        ranked_mode: usize,
    ) -> Result<ObservedPairs> {
        if query_mode == ranked_mode {
            return Err(Error::argument(format!(
                "mode {} is the ranked mode; observed rows are excluded for rows of another mode",
                ranked_mode + 1
            )));
        }
        let count = views.iter().map(CooView::len).sum();
        let mut pairs = try_with_capacity(count, "entries")?;
        for view in views {
            if query_mode.max(ranked_mode) >= view.order() {
                return Err(Error::argument(format!(
                    "{}: has {} modes; there is no mode {}",
                    view.name(),
                    view.order(),
                    query_mode.max(ranked_mode) + 1
                )));
            }
            view.validate(0..view.len())?;
            let (users, rows) = (view.column(query_mode), view.column(ranked_mode));
            for (i, (&user, &row)) in users.iter().zip(rows).enumerate() {
                if view.weight(i)? != Some(0.0) {
                    pairs.push(pair(user, row));
                }
            }
        }
        Ok(ObservedPairs::from_pairs(pairs, query_mode, ranked_mode))
    }

    /// Collects pairs made by [`pair`], in any order and with duplicates.
    pub(super) fn from_pairs(
        mut pairs: Vec<u64>,
        query_mode: usize,
        ranked_mode: usize,
    ) -> ObservedPairs {
        pairs.sort_unstable();
        pairs.dedup();
        ObservedPairs {
            query_mode,
            ranked_mode,
            pairs,
        }
    }

    /// Returns the rows of the query mode that have pairs, ascending.
    pub(super) fn query_rows(&self) -> Vec<u32> {
        let rows = self.pairs.chunk_by(|a, b| a >> 32 == b >> 32);
        rows.map(|pairs| (pairs[0] >> 32) as u32).collect()
    }

    /// The mode of the rows that recommendations are made for, counted from 0.
    pub fn query_mode(&self) -> usize {
        self.query_mode
    }

    /// The mode of the rows that are left out, counted from 0.
    pub fn ranked_mode(&self) -> usize {
        self.ranked_mode
    }

    /// Returns the rows of the ranked mode that `row` of the query mode has entries with.
    pub(super) fn partners(&self, row: u32) -> ObservedRows<'_> {
        let start = self.pairs.partition_point(|&p| p < pair(row, 0));
        let end = start + self.pairs[start..].partition_point(|&p| p <= pair(row, u32::MAX));
        ObservedRows(&self.pairs[start..end])
    }
}

/// Packs two rows: that of the query mode in the upper 32 bits, that of the ranked mode in the lower 32.
pub(super) fn pair(query_row: u32, ranked_row: u32) -> u64 {
    u64::from(query_row) << 32 | u64::from(ranked_row)
}

/// The observed rows of one row of the query mode, ascending.
#[derive(Clone, Copy, Default)]
pub(super) struct ObservedRows<'a>(&'a [u64]);

impl ObservedRows<'_> {
    /// Number of rows.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(self, row: u32) -> bool {
        self.0.binary_search_by_key(&row, |&p| p as u32).is_ok()
    }
}
