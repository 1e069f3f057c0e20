//! The handle of a sparse tensor or matrix, and where its entries are.

use std::sync::Arc;

use super::arg::given;
use super::status::{Failure, Outcome};
use crate::format::{CooData, CooFile, CooView, OwnedValues};

/// A sparse tensor or matrix: for each entry one index per mode, a value and, if it has any, a weight. It
/// never changes after it was made, so that every function that takes it as const may run concurrently.
/// Problems and fits made from it share it: it may be freed before them.
pub struct CooHandle {
    pub(super) source: Arc<Source>,
}

/// Where the entries are.
pub(super) enum Source {
    File(CooFile),
    Data(CooData),
    /// Memory of the caller, who promised to keep it until this is gone.
    Borrowed(CooView<'static>),
    /// Others, with weights.
    Weighted(Weighted),
}

/// Entries with weights of their own.
pub(super) struct Weighted {
    entries: Arc<Source>,
    weights: Weights,
}

pub(super) enum Weights {
    Copied(OwnedValues),
    /// The values of others.
    Of(Arc<Source>),
}

impl Weighted {
    pub fn view(&self) -> CooView<'_> {
        let weights = match &self.weights {
            Weights::Copied(weights) => weights.values(),
            Weights::Of(source) => source.view().values(),
        };
        let view = self.entries.view().with_weights(weights);
        view.expect("there was a weight for every entry when this was made")
    }
}

impl Source {
    pub fn view(&self) -> CooView<'_> {
        match self {
            Source::File(file) => file.view(),
            Source::Data(data) => data.view(),
            Source::Borrowed(view) => view.clone(),
            Source::Weighted(weighted) => weighted.view(),
        }
    }

    /// The file, for what only files can do.
    pub fn file(&self) -> Outcome<&CooFile> {
        match self {
            Source::File(file) => Ok(file),
            _ => Err(Failure::argument(
                "the entries are in memory; write them to a file and open it for this",
            )),
        }
    }
}

impl CooHandle {
    pub(super) fn weighted(coo: &CooHandle, weights: Weights) -> CooHandle {
        let entries = coo.source.clone();
        CooHandle {
            source: Arc::new(Source::Weighted(Weighted { entries, weights })),
        }
    }
}

/// The columns of a handle that must be there.
pub(super) fn of(coo: Option<&CooHandle>) -> Outcome<CooView<'_>> {
    Ok(given(coo, "coo")?.source.view())
}
