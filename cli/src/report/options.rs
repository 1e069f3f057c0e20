//! Options of a report.

use s3cmtf::discover::RowNames;
use s3cmtf::format::CooView;
use s3cmtf::model::Model;

/// The optional contents of a report.
#[derive(Clone)]
pub struct ReportOptions<'a> {
    /// The heading.
    pub title: String,
    /// The training entries.
    pub data: Option<CooView<'a>>,
    /// Entries to evaluate the model on.
    pub test: Option<CooView<'a>>,
    /// The names of the modes, such as `user` and `film`. Modes without a name are numbered.
    pub modes: Vec<String>,
    /// The names of the rows of each mode.
    pub names: RowNames,
    /// Matrices that label clusters, each with the mode of its rows (counted from 0), in the order in which the model was
    /// fitted with them.
    pub matrices: Vec<(usize, CooView<'a>)>,
    /// The names of the columns of each matrix.
    pub columns: RowNames,
    /// Another model of the same data to compare with, such as one fitted without matrices.
    pub against: Option<&'a Model>,
    /// The largest number of clusters per mode that is tried; 0 computes no gap curves and clusters only the modes in
    /// `clusters`.
    pub max_k: usize,
    /// Modes, counted from 0, with their number of clusters. The gap statistic chooses for the others. Each mode occurs
    /// at most once.
    pub clusters: Vec<(usize, usize)>,
    /// The number of listed rows and columns per concept and cluster.
    pub top: usize,
    /// The seed of the clustering.
    pub seed: u64,
    /// The number of threads; 0 means all that this process may use. The page does not depend on it.
    pub threads: usize,
}

impl Default for ReportOptions<'_> {
    fn default() -> Self {
        ReportOptions {
            title: "A fitted model".into(),
            data: None,
            test: None,
            modes: Vec::new(),
            names: RowNames::default(),
            matrices: Vec::new(),
            columns: RowNames::default(),
            against: None,
            max_k: 12,
            clusters: Vec::new(),
            top: 6,
            seed: 0,
            threads: 0,
        }
    }
}
