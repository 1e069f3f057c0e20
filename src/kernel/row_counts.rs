//! The number of entries of each row of a block, counted once.

use std::sync::OnceLock;

use crate::try_alloc::{try_collect, try_zeroed};

/// A list of rows is kept if there are at least this many entries per row. Counting the entries again costs little more than
/// reading a longer list.
const MIN_ENTRIES_PER_ROW: usize = 4;

/// Rows and their numbers of entries.
type CountedRows = Box<[(u32, u32)]>;

/// For each mode, the rows with entries; counted on first use.
#[derive(Default)]
pub(super) struct RowCounts {
    modes: OnceLock<Box<[OnceLock<Option<CountedRows>>]>>,
}

impl RowCounts {
    /// Adds the number of entries of each row of mode `m` to `counts`. `add` adds them from the entries.
    pub(super) fn add(
        &self,
        order: usize,
        m: usize,
        entries: usize,
        counts: &mut [u32],
        add: impl Fn(&mut [u32]),
    ) {
        let modes = self.modes.get_or_init(|| {
            let modes = (0..order).map(|_| OnceLock::new());
            modes.collect()
        });
        let counted = modes[m].get_or_init(|| counted_rows(counts.len(), entries, &add));
        match counted {
            Some(rows) => {
                for &(row, count) in rows {
                    counts[row as usize] += count;
                }
            }
            None => add(counts),
        }
    }
}

/// Returns the rows with entries, or `None` if they are too many to keep.
fn counted_rows(row_count: usize, entries: usize, add: impl Fn(&mut [u32])) -> Option<CountedRows> {
    let mut counts = try_zeroed(row_count, "rows").ok()?;
    add(&mut counts);
    let used = counts.iter().filter(|&&count| count > 0).count();
    if used * MIN_ENTRIES_PER_ROW > entries {
        return None;
    }
    let counted = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
    let counted = counted.map(|(row, &count)| (row as u32, count));
    let rows: Vec<(u32, u32)> = try_collect(used, counted, "rows").ok()?;
    Some(rows.into_boxed_slice())
}
