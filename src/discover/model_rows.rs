//! Checks that a mode and a row exist in a model.

use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::model::Model;

/// Returns the compact row of an index, or an error if the model has no such row.
pub(super) fn compact_row(model: &Model, mode: usize, index: u32) -> Result<u32> {
    let rows = &model.modes()[mode].rows;
    let number = u64::from(index) + 1;
    rows.compact(index)
        .ok_or_else(|| unknown_row(rows, mode, &number.to_string(), number))
}

/// Returns the error for a row that the model does not have.
///
/// `number` is the row counted from 1, and `text` is the user's spelling of it.
pub(super) fn unknown_row(rows: &RowMap, mode: usize, text: &str, number: u64) -> Error {
    let distance = |&i: &u32| (u64::from(i) + 1).abs_diff(number);
    let nearest = rows.indices().min_by_key(distance);
    let nearest = nearest.map_or(String::new(), |i| {
        format!("; the nearest that it has is {}", u64::from(i) + 1)
    });
    Error::argument(format!(
        "row {text} of mode {} is not in the model, which has {} of {} rows of that mode{nearest}",
        mode + 1,
        rows.len(),
        rows.dim(),
    ))
}

/// Returns an error if the model has no such mode.
pub(super) fn check_mode(model: &Model, mode: usize) -> Result<()> {
    if mode < model.order() {
        return Ok(());
    }
    Err(Error::argument(format!(
        "mode {}; the model has {} modes",
        mode + 1,
        model.order()
    )))
}
