//! Which rows occurred together, so that nobody is recommended what he knows.

use crate::error::{Error, Result};
use crate::format::CooView;

use crate::try_alloc::try_with_capacity;

/// For each row of one mode (users, say) the rows of another that it has entries with, whatever the other modes.
pub struct Seen {
    by: usize,
    mode: usize,
    /// The row of `by` in the upper half, that of `mode` in the lower; sorted, each pair once.
    pairs: Vec<u64>,
}

impl Seen {
    /// The rows of `mode` that each row of `by` has entries with in any of `views`. Entries of weight 0 do not count.
    pub fn new(views: &[CooView<'_>], by: usize, mode: usize) -> Result<Seen> {
        if by == mode {
            return Err(Error::argument(format!(
                "mode {} cannot have seen itself; rows are ranked for rows of another mode",
                mode + 1
            )));
        }
        let count = views.iter().map(CooView::len).sum();
        let mut pairs = try_with_capacity(count, "entries")?;
        for view in views {
            if by.max(mode) >= view.order() {
                return Err(Error::argument(format!(
                    "{}: has {} modes; there is no mode {}",
                    view.name(),
                    view.order(),
                    by.max(mode) + 1
                )));
            }
            let (users, rows) = (view.column(by), view.column(mode));
            for (i, (&user, &row)) in users.iter().zip(rows).enumerate() {
                if view.weight(i)? != Some(0.0) {
                    pairs.push(pair(user, row));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        Ok(Seen { by, mode, pairs })
    }

    /// The mode whose rows have seen others.
    pub fn by(&self) -> usize {
        self.by
    }

    /// The mode whose rows were seen.
    pub fn mode(&self) -> usize {
        self.mode
    }

    /// What a row has seen, ascending.
    pub(super) fn of(&self, row: u32) -> SeenBy<'_> {
        let start = self.pairs.partition_point(|&p| p < pair(row, 0));
        let end = start + self.pairs[start..].partition_point(|&p| p <= pair(row, u32::MAX));
        SeenBy(&self.pairs[start..end])
    }
}

fn pair(by: u32, row: u32) -> u64 {
    u64::from(by) << 32 | u64::from(row)
}

/// What one row has seen.
#[derive(Clone, Copy, Default)]
pub(super) struct SeenBy<'a>(&'a [u64]);

impl SeenBy<'_> {
    pub(super) fn contains(self, row: u32) -> bool {
        self.0.binary_search_by_key(&row, |&p| p as u32).is_ok()
    }
}
