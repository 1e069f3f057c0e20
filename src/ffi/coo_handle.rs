//! The handle of a sparse tensor or matrix, and the storage of its entries.

use std::sync::Arc;

use super::arg::given;
use super::status::{Failure, Outcome};
use crate::format::{CooData, CooFile, CooView, OwnedValues};

/// A sparse tensor or matrix: per entry one index per mode, a value and optionally a weight.
pub struct CooHandle {
    pub(super) source: Arc<Source>,
}

/// The storage of entries.
pub(super) enum Source {
    File(CooFile),
    Data(CooData),
    /// Memory of the caller, who keeps it unchanged until this is dropped.
    Borrowed(CooView<'static>),
    /// Other entries, with weights.
    Weighted(Weighted),
}

/// Entries with weights of their own.
pub(super) struct Weighted {
    entries: Arc<Source>,
    weights: Weights,
}

pub(super) enum Weights {
    Copied(OwnedValues),
    /// The values of other entries.
    Of(Arc<Source>),
}

impl Weighted {
    pub fn view(&self) -> CooView<'_> {
        let weights = match &self.weights {
            Weights::Copied(weights) => weights.values(),
            Weights::Of(source) => source.view().values(),
        };
        let view = self.entries.view().with_weights(weights);
        view.expect("the constructor checks that every entry has a weight")
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
                "the entries are in memory; this needs an opened file (s3cmtf_coo_write(), then s3cmtf_coo_open())",
            )),
        }
    }
}

impl CooHandle {
    pub(super) fn new(source: Source) -> CooHandle {
        CooHandle {
            source: Arc::new(source),
        }
    }

    pub(super) fn weighted(coo: &CooHandle, weights: Weights) -> CooHandle {
        let entries = coo.source.clone();
        CooHandle::new(Source::Weighted(Weighted { entries, weights }))
    }
}

/// The columns of a handle that must be there.
pub(super) fn of(coo: Option<&CooHandle>) -> Outcome<CooView<'_>> {
    Ok(given(coo, "coo")?.source.view())
}
