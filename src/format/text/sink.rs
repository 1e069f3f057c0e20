//! Collects entries and writes them to a binary COO file in batches.

use std::path::{Path, PathBuf};

use super::entry::Entry;
use crate::error::Result;
use crate::format::coo_view::Values;
use crate::format::coo_writer::CooWriter;
use crate::format::header::{ValueKind, check_order};

/// Entries per write: 256 KiB per index column, which makes the cost of system calls negligible.
const BATCH: usize = 1 << 16;

/// The output of a [`Sink`]. The file is created when the first line has given the number of modes.
pub(crate) enum SinkTarget<'a> {
    /// A file of this name.
    Named(&'a Path),
    /// An unnamed file; messages use the name of the text.
    Unnamed(&'a str),
}

/// Receives parsed entries.
pub(crate) struct Sink<'a> {
    target: SinkTarget<'a>,
    pub value_kind: ValueKind,
    writer: Option<CooWriter>,
    weighted: bool,
    indices: Vec<Vec<u32>>,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(target: SinkTarget<'a>, value_kind: ValueKind) -> Self {
        Sink {
            target,
            value_kind,
            writer: None,
            weighted: false,
            indices: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Creates the file. Must be called once, before the first entry.
    pub(crate) fn begin(&mut self, order: usize, weighted: bool) -> Result<()> {
        check_order(order)?;
        let weight_kind = weighted.then_some(self.value_kind);
        let writer = match &self.target {
            SinkTarget::Named(path) => CooWriter::create(
                PathBuf::from(path),
                order,
                self.value_kind,
                weight_kind,
                None,
            )?,
            SinkTarget::Unnamed(name) => {
                CooWriter::unnamed(name, order, self.value_kind, weight_kind)?
            }
        };
        self.writer = Some(writer);
        self.weighted = weighted;
        self.indices = vec![Vec::with_capacity(BATCH); order];
        self.values.reserve(BATCH);
        Ok(())
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Appends an entry.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<()> {
        for (mode, column) in self.indices.iter_mut().enumerate() {
            column.push(entry.indices[mode]);
        }
        self.values.push(entry.value);
        if self.weighted {
            self.weights.push(entry.weight);
        }
        if self.values.len() < BATCH {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let columns: Vec<&[u32]> = self.indices.iter().map(Vec::as_slice).collect();
        let weights = self.weighted.then_some(Values::F64(&self.weights));
        writer.push(&columns, Values::F64(&self.values), weights)?;
        self.indices.iter_mut().for_each(Vec::clear);
        self.values.clear();
        self.weights.clear();
        Ok(())
    }

    /// Returns the writer with all entries; `None` if the file was never created.
    pub(crate) fn into_writer(mut self) -> Result<Option<CooWriter>> {
        self.flush()?;
        Ok(self.writer)
    }
}
