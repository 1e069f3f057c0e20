//! The refusal of fits that need more memory than is available.

use super::fit_sizes::FitSizes;
use crate::error::Result;
use crate::memory::require_memory;

/// Refuses a fit that needs more bytes than are available.
pub(super) fn refuse_above_available_memory(
    algorithm: &str,
    needed: f64,
    sizes: &FitSizes,
) -> Result<()> {
    let modes = (1..).zip(&sizes.modes);
    let modes = modes.map(|(n, m)| (m.rows, format!("mode {n} ({} rows)", m.rows)));
    let matrices = (1..).zip(&sizes.matrices);
    let matrices =
        matrices.map(|(n, m)| (m.columns, format!("matrix {n} ({} columns)", m.columns)));
    let largest = modes.chain(matrices).max_by_key(|(size, _)| *size);
    let largest = largest.map_or(String::new(), |(_, name)| format!(" or the size of {name}"));
    require_memory(
        needed,
        &format!("{algorithm} needs"),
        &format!("lower the ranks{largest}, or use another algorithm"),
    )
}
