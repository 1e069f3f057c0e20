//! Fitting models to problems.

mod biases;
mod blocked;
mod centre;
mod compress;
mod data;
mod dense;
mod descent;
mod drawn;
mod entries;
mod exact;
mod finish;
mod fit;
mod fold_in;
mod full;
#[cfg(test)]
mod gradients;
mod input;
mod lockfree;
mod loss;
mod moments;
mod observer;
mod refit;
mod resume;
mod settle;
mod sort;
mod start;
mod stepped;
pub mod tune;

pub use biases::{BiasOptions, fit_biases};
pub(crate) use dense::eigen;
pub use fit::fit;
pub use fold_in::{FoldIn, FoldMatrix, FoldSummary, fold_in};
pub use input::{FitInput, FitSummary};
pub use observer::{Control, Event, Observer, StopReason};

pub(crate) use settle::likely_rank;
