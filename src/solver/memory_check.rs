//! The refusal of fits that need more memory than is available.

use std::io;

use super::fit_sizes::FitSizes;
use crate::error::{Error, Result};
use crate::memory::available_memory;

/// Refuses a fit that needs more bytes than are available.
pub(super) fn refuse_above_available_memory(
    algorithm: &str,
    needed: f64,
    sizes: &FitSizes,
) -> Result<()> {
    let Some(available) = available_memory().filter(|a| needed > *a as f64) else {
        return Ok(());
    };
    let rows = sizes.modes.iter().map(|m| m.rows).enumerate();
    let (n, rows) = rows.max_by_key(|(_, rows)| *rows).unwrap_or_default();
    Err(Error::io(
        format!(
            "{algorithm} needs about {} of memory, and {} are available; lower the ranks or the size of mode {} ({rows} rows), \
             or use another algorithm",
            describe(needed),
            describe(available as f64),
            n + 1
        ),
        io::ErrorKind::OutOfMemory.into(),
    ))
}

/// Writes a number of bytes with its unit.
fn describe(bytes: f64) -> String {
    let units = ["MB", "GB", "TB", "PB", "EB"];
    let unit = ((bytes.log10() / 3.0) as usize).clamp(2, units.len() + 1);
    format!(
        "{:.1} {}",
        bytes / 1000f64.powi(unit as i32),
        units[unit - 2]
    )
}
