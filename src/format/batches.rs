//! Visits the entries of a view in batches, with progress reports.

use std::ops::Range;

use super::coo_view::CooView;
use crate::error::Result;
use crate::progress::{Monitor, report_progress};

/// Entries per batch, and between two progress reports.
const BATCH: usize = 1 << 16;

/// Receives one slice of indices per mode and the range of entries they belong to.
type VisitBatch<'v> = dyn FnMut(&[&[u32]], Range<usize>) -> Result<()> + 'v;

/// As [`for_each_batch`], but an invalid entry is an error ([`CooView::validate`]).
pub(crate) fn for_each_valid_batch(
    view: &CooView<'_>,
    monitor: &dyn Monitor,
    phase: &str,
    visit: &mut VisitBatch<'_>,
) -> Result<()> {
    for_each_batch(view, monitor, phase, &mut |columns, range| {
        view.validate(range.clone())?;
        visit(columns, range)
    })
}

/// Calls `visit` with consecutive batches of entries and reports progress before each.
pub(crate) fn for_each_batch(
    view: &CooView<'_>,
    monitor: &dyn Monitor,
    phase: &str,
    visit: &mut VisitBatch<'_>,
) -> Result<()> {
    let mut start = 0;
    while start < view.len() {
        report_progress(monitor, phase, start as u64, view.len() as u64)?;
        let end = (start + BATCH).min(view.len());
        let columns: Vec<&[u32]> = (0..view.order())
            .map(|n| &view.column(n)[start..end])
            .collect();
        visit(&columns, start..end)?;
        start = end;
    }
    Ok(())
}
