//! The result of reading text, besides the entries.

use crate::format::names::Names;

/// The result of reading text, besides the entries.
#[derive(Debug, Default)]
pub(crate) struct TextResult {
    /// Names of rows of the modes (from 0) whose ids are strings.
    pub names: Vec<(usize, Names)>,
    /// Sizes stated in the text itself (Matrix Market).
    pub dims: Option<Vec<u64>>,
}
