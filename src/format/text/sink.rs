//! Collects entries into batches and writes them.

use std::path::{Path, PathBuf};

use super::entry::Entry;
use crate::error::Result;
use crate::format::coo_view::Values;
use crate::format::coo_writer::CooWriter;
use crate::format::header::{ValueKind, check_order};

/// Entries per write: 256 KiB per index column, large enough that system calls do not count.
const BATCH: usize = 1 << 16;

/// Where the entries go; the number of modes is known only once the first line has been read.
pub(crate) enum SinkTarget<'a> {
    /// Into a file that will have this name.
    Named(&'a Path),
    /// Into a file without a name, read back at once; the path is that of the text.
    Unnamed(&'a str),
}

pub(crate) struct Sink<'a> {
    plan: SinkTarget<'a>,
    pub value_kind: ValueKind,
    writer: Option<CooWriter>,
    weighted: bool,
    indices: Vec<Vec<u32>>,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(plan: SinkTarget<'a>, value_kind: ValueKind) -> Self {
        Sink {
            plan,
            value_kind,
            writer: None,
            weighted: false,
            indices: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Fixes the number of modes; before the first entry.
    pub(crate) fn begin(&mut self, order: usize, weighted: bool) -> Result<()> {
        check_order(order)?;
        let weight_kind = weighted.then_some(self.value_kind);
        let writer = match &self.plan {
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

    pub(crate) fn begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Appends an entry.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<()> {
        for (column, &index) in self.indices.iter_mut().zip(&entry.indices) {
            column.push(index);
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

    /// The writer with every entry in it; `None` if nothing was ever begun.
    pub(crate) fn into_writer(mut self) -> Result<Option<CooWriter>> {
        self.flush()?;
        Ok(self.writer)
    }
}
