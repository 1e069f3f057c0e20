//! The inputs that all steps of a demo share.

use s3cmtf::discover::RowNames;

use super::arguments::Arguments;
use super::data_set::DataSet;
use crate::progress::Progress;

/// The arguments, data and progress of a demo.
pub(super) struct Context<'a> {
    pub arguments: &'a Arguments,
    pub data: &'a DataSet,
    /// Names of the rows of all modes.
    pub names: RowNames,
    pub progress: &'a Progress,
}
