//! Entries that a tensor or matrix cannot have, in memory and in binary COO files with right checksums.

use std::fs;
use std::path::Path;

use s3cmtf::format::{CooView, CooWriter, Dims, HEADER_LEN, Header, ValueKind, Values};

/// Number of the entry that [`ForgedEntries::with_fault`] changes, counted from 0.
pub const CHANGED_ENTRY: usize = 7;

/// What is invalid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// An index of this mode is not below its size, by this number.
    Index(usize, u32),
    /// A value is not a number.
    Value(f64),
    /// A weight is not a number that weights may be.
    Weight(f64),
}

/// Returns all faults of entries with `order` modes.
pub fn faults(order: usize) -> Vec<Fault> {
    let indices = (0..order).flat_map(|n| [0, 1, 1000].map(|beyond| Fault::Index(n, beyond)));
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Fault::Value);
    let weights = [f64::NAN, f64::INFINITY, -1.0, -f64::MIN_POSITIVE].map(Fault::Weight);
    indices.chain(values).chain(weights).collect()
}

/// Columns of a tensor or matrix.
pub struct ForgedEntries {
    pub dims: Vec<u64>,
    pub columns: Vec<Vec<u32>>,
    pub values: Vec<f64>,
    pub weights: Option<Vec<f64>>,
}

impl ForgedEntries {
    /// Returns valid entries in all cells, with small whole numbers as values.
    pub fn all_cells(dims: &[u64]) -> ForgedEntries {
        let count: u64 = dims.iter().product();
        let mut stride = 1;
        let mut column = |&dim: &u64| {
            let column = (0..count).map(|i| (i / stride % dim) as u32).collect();
            stride *= dim;
            column
        };
        ForgedEntries {
            columns: dims.iter().map(&mut column).collect(),
            dims: dims.to_vec(),
            values: (0..count).map(|i| (i * 7 % 5) as f64).collect(),
            weights: None,
        }
    }

    /// Returns the entries with this fault in entry [`CHANGED_ENTRY`].
    pub fn with_fault(mut self, fault: Fault) -> ForgedEntries {
        match fault {
            Fault::Index(n, beyond) => {
                self.columns[n][CHANGED_ENTRY] = self.dims[n] as u32 + beyond;
            }
            Fault::Value(value) => self.values[CHANGED_ENTRY] = value,
            Fault::Weight(weight) => {
                let mut weights = vec![1.0; self.values.len()];
                weights[CHANGED_ENTRY] = weight;
                self.weights = Some(weights);
            }
        }
        self
    }

    /// Returns a view of the columns, named `forged`.
    pub fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let values = Values::F64(&self.values);
        let view = CooView::new("forged", &self.dims, &columns, values).unwrap();
        match &self.weights {
            Some(weights) => view.with_weights(Values::F64(weights)).unwrap(),
            None => view,
        }
    }

    /// Writes a file whose header states the sizes, whatever the indices are.
    pub fn write(&self, path: &Path) {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let weight_kind = self.weights.as_ref().map(|_| ValueKind::F64);
        let order = self.dims.len();
        let mut writer = CooWriter::create(path, order, ValueKind::F64, weight_kind, None).unwrap();
        let weights = self.weights.as_deref().map(Values::F64);
        writer
            .push(&columns, Values::F64(&self.values), weights)
            .unwrap();
        writer.finish(Dims::Inferred).unwrap();
        let mut bytes = fs::read(path).unwrap();
        let mut header = Header::decode(&bytes, bytes.len() as u64, "forged").unwrap();
        (header.dims, header.dims_inferred) = (self.dims.clone(), false);
        bytes[..HEADER_LEN as usize].copy_from_slice(&header.encode());
        fs::write(path, bytes).unwrap();
    }
}
