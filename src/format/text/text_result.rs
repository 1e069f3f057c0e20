//! The result of reading text, besides the entries.

use crate::format::names::Names;

/// The result of reading text, besides the entries.
#[derive(Debug, Default)]
pub(crate) struct TextResult {
    /// Names of rows of the modes (from 0) whose ids are strings or bins.
    pub names: Vec<(usize, Names)>,
    /// Sizes stated in the text itself (Matrix Market), or known otherwise.
    pub dims: Option<Vec<u64>>,
    /// Modes (from 0) whose indices are provisional, with the final index of each.
    pub renumbered: Vec<(usize, Vec<u32>)>,
    /// What the text calls its index columns; empty if it has no header.
    pub columns: Vec<String>,
    /// Whether ids that are not in `names` are numbers because the text has no names for them (CSV and TSV).
    pub is_delimited: bool,
    /// Lines of the text that have no entry.
    pub skipped: SkippedLines,
}

/// Numbers of lines of a text that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// Invalid lines, skipped because the options ask for it.
    pub bad: u64,
    /// Number and fault of the first invalid line.
    pub first_bad: Option<(u64, String)>,
    /// Lines with a missing field, as the options declare it.
    pub missing: u64,
    /// Lines of an attribute table whose key is not a row of the tensor.
    pub unknown_keys: u64,
    /// Lines of an attribute table that repeat another exactly.
    pub repeated: u64,
}
