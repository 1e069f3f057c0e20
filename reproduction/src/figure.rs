//! The figures that can be measured.

use s3cmtf::{Error, Result};

/// The word of the command line for tables and charts of the results that a folder has.
const REPORT: &str = "report";

/// A figure or table of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Accuracy,
    IterationTime,
    Dimensionality,
    Entries,
    Cores,
    Sals,
    Gap,
}

impl Figure {
    /// In the order of measurement: those whose measurements others use come first.
    pub const ALL: [Figure; 7] = [
        Figure::Accuracy,
        Figure::Sals,
        Figure::IterationTime,
        Figure::Dimensionality,
        Figure::Entries,
        Figure::Cores,
        Figure::Gap,
    ];

    /// Returns its word on the command line and in the results.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Accuracy => "accuracy",
            Figure::IterationTime => "iteration-time",
            Figure::Dimensionality => "dimensionality",
            Figure::Entries => "entries",
            Figure::Cores => "cores",
            Figure::Sals => "sals",
            Figure::Gap => "gap",
        }
    }

    /// Returns the words of the command line.
    pub fn names() -> Vec<&'static str> {
        let names = Figure::ALL.iter().map(|f| f.name());
        names.chain(["all", REPORT]).collect()
    }

    /// Returns the figures that some words name, in the order of measurement; none for [`REPORT`].
    pub fn chosen(words: &[String]) -> Result<Vec<Figure>> {
        if words.len() > 1 && words.iter().any(|w| w == REPORT) {
            return Err(Error::argument(format!(
                "{REPORT} measures nothing; give it without figures"
            )));
        }
        let is_chosen = |f: &Figure| words.iter().any(|w| w == "all" || w == f.name());
        Ok(Figure::ALL.into_iter().filter(is_chosen).collect())
    }

    /// Returns its part of the time, relative to the others.
    pub fn weight(self) -> f64 {
        match self {
            Figure::Accuracy => 8.0,
            // Mostly measured with `accuracy` already.
            Figure::Sals => 1.0,
            Figure::IterationTime => 2.0,
            Figure::Dimensionality => 3.0,
            Figure::Entries => 3.0,
            Figure::Cores => 2.0,
            Figure::Gap => 1.0,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Figure::Accuracy => "Test RMSE against training time",
            Figure::IterationTime => "Time per iteration",
            Figure::Dimensionality => "Time per iteration against the size of the modes",
            Figure::Entries => "Time per iteration against the number of entries",
            Figure::Cores => "Speed-up against the number of threads",
            Figure::Sals => "Comparison with SALS-single, without matrices",
            Figure::Gap => "Gap statistic with and without coupling",
        }
    }
}
