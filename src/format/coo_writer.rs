//! Writes binary COO files as a stream, in memory that does not grow with the file.
//!
//! Columns lie one after the other in the file, but entries arrive one by one. If the number of entries is known, so is
//! the offset of every column, and all are written in place. If it is not (text from a pipe), only the first column is;
//! the others go to unnamed spool files in the same folder and are appended at the end, which costs one copy through the
//! page cache. Either way the file appears under its final name complete, or not at all.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use super::atomic::AtomicFile;
use super::coo_view::{CooView, Values};
use super::header::{ALIGN, HEADER_LEN, Header, ValueKind, check_order};
use crate::error::{Error, Result};

/// The sizes of the modes of a new file.
#[derive(Debug, Clone)]
pub enum Dims {
    /// These sizes; every index must be below them.
    Stated(Vec<u64>),
    /// The largest index seen in each mode, plus one.
    Inferred,
    /// These sizes, which an earlier file inferred; every index must be below them.
    InferredEarlier(Vec<u64>),
}

impl Dims {
    /// Returns the sizes of an existing file, inferred or stated as in its header.
    pub fn from_header(header: &Header) -> Dims {
        if header.dims_inferred {
            Dims::InferredEarlier(header.dims.clone())
        } else {
            Dims::Stated(header.dims.clone())
        }
    }
}

/// Indices that [`CooWriter::renumber`] rewrites at a time: 256 KiB.
const RENUMBER_BATCH: usize = 1 << 16;

/// Writes one binary COO file. See [`CooFile`](super::CooFile) for an example.
pub struct CooWriter {
    out: Output,
    value_kind: ValueKind,
    weight_kind: Option<ValueKind>,
    columns: Vec<Column>,
    order: usize,
    count: u64,
    expected_count: Option<u64>,
    max_index: Vec<u32>,
}

/// The file being written.
enum Output {
    /// A file that is renamed to its final name when it is complete.
    Named(AtomicFile),
    /// An unnamed file with its name for messages: the binary copy of a text.
    Unnamed(File, String),
}

impl Output {
    fn file(&mut self) -> &mut File {
        match self {
            Output::Named(f) => f.file(),
            Output::Unnamed(f, _) => f,
        }
    }

    fn write_error(&self, e: io::Error) -> Error {
        match self {
            Output::Named(f) => f.write_error(e),
            Output::Unnamed(_, name) => {
                Error::io(format!("cannot write a temporary copy of {name}"), e)
            }
        }
    }
}

struct Column {
    /// Spool file, if the offset in the output is not known yet.
    spool: Option<File>,
    /// Offset of the column in its file.
    start: u64,
    written: u64,
    crc: Hasher,
}

/// A complete file under its temporary name.
pub(crate) struct StagedCoo {
    out: Output,
    pub(crate) header: Header,
}

impl StagedCoo {
    pub(crate) fn commit(self) -> Result<Header> {
        if let Output::Named(f) = self.out {
            f.commit()?;
        }
        Ok(self.header)
    }

    /// Returns the file of an unnamed output.
    pub(crate) fn into_file(self) -> File {
        match self.out {
            Output::Unnamed(f, _) => f,
            Output::Named(_) => unreachable!("only unnamed outputs are taken over"),
        }
    }
}

impl CooWriter {
    /// Starts a file of `order` modes. `count` is the number of entries if it is known; finishing
    /// with another number is then an error, and no temporary spool is needed.
    pub fn create(
        path: impl AsRef<Path>,
        order: usize,
        value_kind: ValueKind,
        weight_kind: Option<ValueKind>,
        count: Option<u64>,
    ) -> Result<Self> {
        let file = AtomicFile::create(path.as_ref())?;
        let folder = Some(file.folder());
        Self::start(
            Output::Named(file),
            folder,
            order,
            value_kind,
            weight_kind,
            count,
        )
    }

    /// Starts an unnamed file in the system's temporary folder. Messages call it `name`.
    pub(crate) fn unnamed(
        name: &str,
        order: usize,
        value_kind: ValueKind,
        weight_kind: Option<ValueKind>,
    ) -> Result<Self> {
        let file = tempfile::tempfile()
            .map_err(|e| Error::io(format!("cannot make a temporary copy of {name}"), e))?;
        let out = Output::Unnamed(file, name.into());
        Self::start(
            out,
            Some(std::env::temp_dir()),
            order,
            value_kind,
            weight_kind,
            None,
        )
    }

    fn start(
        mut out: Output,
        folder: Option<PathBuf>,
        order: usize,
        value_kind: ValueKind,
        weight_kind: Option<ValueKind>,
        count: Option<u64>,
    ) -> Result<Self> {
        check_order(order)?;
        let folder = match folder {
            Some(f) if !f.as_os_str().is_empty() => f,
            _ => PathBuf::from("."),
        };
        let number = order + 1 + usize::from(weight_kind.is_some());
        let mut columns = Vec::with_capacity(number);
        match count {
            Some(count) => {
                // The layout does not depend on the sizes, which are not known yet.
                let plan = Header::plan(&vec![1; order], count, value_kind, weight_kind)?;
                for (_, s) in plan.sections() {
                    columns.push(Column::new(None, s.offset));
                }
                // Padding between sections stays a hole, which reads as zeros.
                if let Err(e) = out.file().set_len(plan.file_size) {
                    return Err(out.write_error(e));
                }
            }
            None => {
                columns.push(Column::new(None, HEADER_LEN));
                for _ in 1..number {
                    let spool = tempfile::tempfile_in(&folder).map_err(|e| out.write_error(e))?;
                    columns.push(Column::new(Some(spool), 0));
                }
            }
        }
        Ok(CooWriter {
            out,
            value_kind,
            weight_kind,
            columns,
            order,
            count: 0,
            expected_count: count,
            max_index: vec![0; order],
        })
    }

    /// Appends the positions of the entries `range` of `view`, with other values. The file must have the order of the view
    /// and no weights.
    ///
    /// # Errors
    /// As [`CooWriter::push`].
    pub fn push_at_positions(
        &mut self,
        view: &CooView<'_>,
        range: Range<usize>,
        values: Values<'_>,
    ) -> Result<()> {
        let columns: Vec<&[u32]> = (0..view.order())
            .map(|n| &view.column(n)[range.clone()])
            .collect();
        self.push(&columns, values, None)
    }

    /// Appends entries: one slice of indices (from 0) per mode, the values, and the weights if the
    /// file has them. Values are converted to the file's kind; one too large for `f32` is an error.
    pub fn push(
        &mut self,
        indices: &[&[u32]],
        values: Values<'_>,
        weights: Option<Values<'_>>,
    ) -> Result<()> {
        let n = values.len();
        if indices.len() != self.order
            || indices.iter().any(|c| c.len() != n)
            || weights.is_some() != self.weight_kind.is_some()
            || weights.is_some_and(|w| w.len() != n)
        {
            return Err(Error::argument(
                "columns of unequal length, or not the columns the file was created with",
            ));
        }
        let total = self.count + n as u64;
        if self.expected_count.is_some_and(|p| total > p) {
            return Err(Error::argument(format!(
                "{total} entries, but the file was created for {}",
                self.expected_count.unwrap_or_default()
            )));
        }
        for (mode, column) in indices.iter().enumerate() {
            let mut max = self.max_index[mode];
            for &index in *column {
                max = max.max(index);
            }
            self.max_index[mode] = max;
            self.append(mode, bytemuck::cast_slice(column))?;
        }
        self.append_floats(self.order, self.value_kind, "value", values)?;
        if let (Some(kind), Some(weights)) = (self.weight_kind, weights) {
            self.append_floats(self.order + 1, kind, "weight", weights)?;
        }
        self.count = total;
        Ok(())
    }

    fn append_floats(
        &mut self,
        column: usize,
        kind: ValueKind,
        what: &str,
        values: Values<'_>,
    ) -> Result<()> {
        match (kind, values) {
            (ValueKind::F32, Values::F32(v)) => self.append(column, bytemuck::cast_slice(v)),
            (ValueKind::F64, Values::F64(v)) => self.append(column, bytemuck::cast_slice(v)),
            (ValueKind::F64, Values::F32(v)) => {
                let wide: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
                self.append(column, bytemuck::cast_slice(&wide))
            }
            (ValueKind::F32, Values::F64(v)) => {
                let narrow: Vec<f32> = v.iter().map(|&x| x as f32).collect();
                if let Some(i) = (0..v.len()).find(|&i| v[i].is_finite() && !narrow[i].is_finite())
                {
                    let name = self.name().to_string();
                    return Err(Error::entry(
                        &name,
                        self.count + i as u64,
                        too_large(what, v[i]),
                    ));
                }
                self.append(column, bytemuck::cast_slice(&narrow))
            }
        }
    }

    fn append(&mut self, column: usize, bytes: &[u8]) -> Result<()> {
        let c = &mut self.columns[column];
        c.crc.update(bytes);
        let at = c.start + c.written;
        c.written += bytes.len() as u64;
        let done = match &mut c.spool {
            // Spool files are only appended to.
            Some(spool) => spool.write_all(bytes),
            None => {
                let file = self.out.file();
                file.seek(SeekFrom::Start(at))
                    .and_then(|_| file.write_all(bytes))
            }
        };
        done.map_err(|e| self.out.write_error(e))
    }

    fn name(&self) -> &str {
        match &self.out {
            Output::Named(f) => f.name(),
            Output::Unnamed(_, name) => name,
        }
    }

    /// Replaces every index `i` of `mode` written so far by `table[i]`, for rows whose order is known after the last entry
    /// only.
    pub(crate) fn renumber(&mut self, mode: usize, table: &[u32]) -> Result<()> {
        let column = &mut self.columns[mode];
        let file = match &mut column.spool {
            Some(spool) => spool,
            None => self.out.file(),
        };
        let mut crc = Hasher::new();
        let mut max = 0;
        let rewritten = (|| {
            let mut batch = vec![0u32; RENUMBER_BATCH];
            let mut done = 0;
            while done < column.written {
                let left = ((column.written - done) / 4) as usize;
                let batch = &mut batch[..left.min(RENUMBER_BATCH)];
                let at = SeekFrom::Start(column.start + done);
                file.seek(at)?;
                file.read_exact(bytemuck::cast_slice_mut(batch))?;
                for index in batch.iter_mut() {
                    *index = table[*index as usize];
                    max = max.max(*index);
                }
                let bytes = bytemuck::cast_slice(batch);
                crc.update(bytes);
                file.seek(at)?;
                file.write_all(bytes)?;
                done += bytes.len() as u64;
            }
            Ok(())
        })();
        rewritten.map_err(|e| self.out.write_error(e))?;
        self.columns[mode].crc = crc;
        self.max_index[mode] = max;
        Ok(())
    }

    /// Returns the sizes that [`Dims::Inferred`] means.
    pub(crate) fn inferred_dims(&self) -> Vec<u64> {
        self.max_index.iter().map(|&m| u64::from(m) + 1).collect()
    }

    /// Returns the number of entries so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the header, syncs the file and gives it its final name.
    pub fn finish(self, dims: Dims) -> Result<Header> {
        self.stage(dims)?.commit()
    }

    /// As [`finish`](Self::finish), but without the rename, for several files that must appear together.
    pub(crate) fn stage(mut self, dims: Dims) -> Result<StagedCoo> {
        if let Some(expected) = self.expected_count.filter(|&p| p != self.count) {
            return Err(Error::argument(format!(
                "{} entries, but the file was created for {expected}",
                self.count
            )));
        }
        let (dims, inferred) = match dims {
            Dims::Stated(dims) => (dims, false),
            Dims::InferredEarlier(dims) => (dims, true),
            Dims::Inferred if self.count == 0 => {
                return Err(Error::file(
                    self.name(),
                    "without entries the sizes of the modes cannot be inferred; state them (option dims)",
                ));
            }
            Dims::Inferred => (self.inferred_dims(), true),
        };
        if dims.len() != self.order {
            return Err(Error::argument(format!(
                "{} sizes for {} modes",
                dims.len(),
                self.order
            )));
        }
        for (n, (&dim, &max)) in dims.iter().zip(&self.max_index).enumerate() {
            if self.count > 0 && u64::from(max) >= dim {
                return Err(Error::argument(format!(
                    "an index of mode {} is {max}, counted from 0, but its size is {dim}",
                    n + 1
                )));
            }
        }
        let mut header = Header::plan(&dims, self.count, self.value_kind, self.weight_kind)?;
        header.dims_inferred = inferred;
        let offsets: Vec<u64> = header.sections().iter().map(|(_, s)| s.offset).collect();
        let crcs: Vec<u32> = self
            .columns
            .iter()
            .map(|c| c.crc.clone().finalize())
            .collect();
        for (n, s) in header.indices.iter_mut().enumerate() {
            s.crc = crcs[n];
        }
        header.values.crc = crcs[self.order];
        if self.weight_kind.is_some() {
            header.weights.crc = crcs[self.order + 1];
        }
        let written = (|| {
            for (column, &offset) in self.columns.iter_mut().zip(&offsets) {
                debug_assert_eq!(offset % ALIGN, 0);
                if let Some(spool) = &mut column.spool {
                    let file = self.out.file();
                    file.seek(SeekFrom::Start(offset))?;
                    spool.seek(SeekFrom::Start(0))?;
                    let copied = io::copy(spool, file)?;
                    if copied != column.written {
                        return Err(io::Error::other("a temporary file was cut short"));
                    }
                }
            }
            let file = self.out.file();
            file.set_len(header.file_size)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header.encode())
        })();
        written.map_err(|e| self.out.write_error(e))?;
        if let Output::Named(f) = &mut self.out {
            f.sync()?;
        }
        Ok(StagedCoo {
            out: self.out,
            header,
        })
    }
}

impl Column {
    fn new(spool: Option<File>, start: u64) -> Self {
        Column {
            spool,
            start,
            written: 0,
            crc: Hasher::new(),
        }
    }
}

/// Returns the message of a value or weight that does not fit in `f32`.
pub(crate) fn too_large(what: &str, value: f64) -> String {
    format!(
        "{what} {value:e} is too large for a 32-bit number (3.4e38); store 64-bit values (option values: f64)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooFile, OpenMode};

    fn small(path: &Path, count: Option<u64>) -> Header {
        let mut w =
            CooWriter::create(path, 3, ValueKind::F32, Some(ValueKind::F64), count).unwrap();
        for start in [0u32, 5] {
            let a: Vec<u32> = (start..start + 5).collect();
            let v: Vec<f64> = a.iter().map(|&x| f64::from(x) / 4.0).collect();
            w.push(&[&a, &a, &a], Values::F64(&v), Some(Values::F64(&v)))
                .unwrap();
        }
        w.finish(Dims::Inferred).unwrap()
    }

    #[test]
    fn known_and_unknown_counts_give_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a.coo"), dir.path().join("b.coo"));
        assert_eq!(small(&a, Some(10)), small(&b, None));
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            2,
            "no temporary file is left"
        );
        for mode in [OpenMode::Mapped, OpenMode::Private] {
            let f = CooFile::open(&a, mode).unwrap();
            assert_eq!(f.header().dims, [10, 10, 10]);
            assert!(f.header().dims_inferred);
            let v = f.view();
            assert_eq!(v.column(2), (0..10).collect::<Vec<u32>>());
            assert_eq!(v.values().get(9), 2.25);
            assert_eq!(v.weights().unwrap().get(3), 0.75);
        }
    }

    #[test]
    fn inconsistent_entries_are_rejected_and_leave_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.coo");
        let start = |count| CooWriter::create(&path, 2, ValueKind::F32, None, count).unwrap();
        let push = |w: &mut CooWriter, v: f64| w.push(&[&[1], &[2]], Values::F64(&[v]), None);
        assert!(start(Some(3)).finish(Dims::Stated(vec![5, 5])).is_err());
        assert!(start(None).finish(Dims::Inferred).is_err());
        let mut w = start(None);
        push(&mut w, 1.0).unwrap();
        assert!(w.finish(Dims::Stated(vec![5, 2])).is_err());
        let mut w = start(Some(1));
        push(&mut w, 1.0).unwrap();
        assert!(push(&mut w, 1.0).is_err());
        drop(w);
        let error = push(&mut start(None), 1e300).unwrap_err().to_string();
        assert!(error.contains("too large"), "{error}");
        assert!(
            start(None)
                .push(&[&[1]], Values::F32(&[1.0]), None)
                .is_err()
        );
        assert!(
            start(None)
                .push(&[&[1], &[]], Values::F32(&[1.0]), None)
                .is_err()
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn renumbered_columns_are_those_of_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let len = 2 * RENUMBER_BATCH + 7;
        let first: Vec<u32> = (0..len as u32).map(|i| i % 5).collect();
        let values = vec![1.0; len];
        let table = [4, 3, 9, 0, 1];
        let mapped: Vec<u32> = first.iter().map(|&i| table[i as usize]).collect();
        let write = |name: &str, column: &[u32], renumbered: &[usize]| {
            let path = dir.path().join(name);
            let mut w = CooWriter::create(&path, 2, ValueKind::F32, None, None).unwrap();
            w.push(&[column, column], Values::F64(&values), None)
                .unwrap();
            for &mode in renumbered {
                w.renumber(mode, &table).unwrap();
            }
            w.finish(Dims::Inferred).unwrap();
            std::fs::read(path).unwrap()
        };
        assert_eq!(write("a", &first, &[0, 1]), write("b", &mapped, &[]));
    }

    #[test]
    fn an_empty_tensor_with_stated_sizes_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.coo");
        let w = CooWriter::create(&path, 2, ValueKind::F32, None, None).unwrap();
        w.finish(Dims::Stated(vec![5, 7])).unwrap();
        let f = CooFile::open(&path, OpenMode::Mapped).unwrap();
        assert!(f.view().is_empty());
    }
}
