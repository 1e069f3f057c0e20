//! The handle of a sparse tensor or matrix, and the storage of its entries.

use std::sync::Arc;

use super::arg::given;
use super::status::{Failure, Outcome};
use crate::error::Result;
use crate::format::{
    CooData, CooFile, CooView, MatchedRole, ModeNames, OwnedValues, RowMatch, RowMatcher,
};

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

    /// The names of the rows of each mode, where there are any.
    pub fn names(&self) -> Result<ModeNames> {
        let names = self.named_file().map(|file| file.names().cloned());
        names.unwrap_or(Ok(Vec::new()))
    }

    /// The file whose rows these are.
    fn named_file(&self) -> Option<&CooFile> {
        match self {
            Source::File(file) => Some(file),
            Source::Weighted(weighted) => weighted.entries.named_file(),
            Source::Data(_) | Source::Borrowed(_) => None,
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

/// Entries whose rows were matched with those of a tensor or model.
pub(super) struct MatchedSource<'a> {
    source: &'a Source,
    pub rows: RowMatch,
}

impl<'a> MatchedSource<'a> {
    /// Matches the rows of entries of a tensor or model.
    pub fn entries(source: &'a Source, matcher: &mut RowMatcher) -> Result<MatchedSource<'a>> {
        let modes: Vec<Option<usize>> = (0..matcher.order()).map(Some).collect();
        MatchedSource::new(source, matcher, &modes, MatchedRole::Entries)
    }

    /// Matches the rows of a matrix or graph of a mode, and its columns with those that `columns` are in the matcher.
    pub fn coupled(
        source: &'a Source,
        matcher: &mut RowMatcher,
        mode: usize,
        columns: Option<usize>,
    ) -> Result<MatchedSource<'a>> {
        let modes = [Some(mode), columns];
        MatchedSource::new(source, matcher, &modes, MatchedRole::Coupled)
    }

    fn new(
        source: &'a Source,
        matcher: &mut RowMatcher,
        modes: &[Option<usize>],
        role: MatchedRole,
    ) -> Result<MatchedSource<'a>> {
        let rows = match source.named_file() {
            Some(file) => matcher.match_file(file, modes, role)?,
            None => {
                let mut rows = matcher.match_rows(&source.view(), &[], modes, role)?;
                // The host knows the numbers of its rows.
                rows.warnings.clear();
                rows
            }
        };
        Ok(MatchedSource { source, rows })
    }

    /// Returns the entries, with the rows of the tensor or model.
    pub fn view(&self) -> CooView<'_> {
        self.rows.apply(&self.source.view())
    }
}
