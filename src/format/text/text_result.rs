//! The result of reading text, besides the entries.

use crate::format::names::Names;

/// What reading text produced besides the entries.
#[derive(Debug, Default)]
pub(crate) struct TextResult {
    /// Names of rows, for the modes (from 0) whose ids were strings.
    pub names: Vec<(usize, Names)>,
    /// Sizes stated in the text itself (Matrix Market).
    pub dims: Option<Vec<u64>>,
}
