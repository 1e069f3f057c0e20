//! Reading sparse tensors and matrices: a file ([`CooFile`]) or slices ([`CooView`]), one slice per
//! column either way.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::{HEADER_LEN, Header, Section, ValueKind, check_dims};
use super::memory::{FileBytes, OpenMode, ordinary_len};
use crate::error::{Error, Result};
use crate::progress::{Monitor, report_progress};

/// A column of values as it is stored.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// 32-bit values.
    F32(&'a [f32]),
    /// 64-bit values.
    F64(&'a [f64]),
}

impl<'a> Values<'a> {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How they are stored.
    pub fn kind(&self) -> ValueKind {
        match self {
            Values::F32(_) => ValueKind::F32,
            Values::F64(_) => ValueKind::F64,
        }
    }

    /// The `i`-th value.
    ///
    /// # Panics
    /// If `i` is not below the length.
    #[inline]
    pub fn get(&self, i: usize) -> f64 {
        match self {
            Values::F32(v) => f64::from(v[i]),
            Values::F64(v) => v[i],
        }
    }

    /// Part of the column.
    ///
    /// # Panics
    /// If the range is not inside the column.
    pub fn slice(&self, range: Range<usize>) -> Values<'a> {
        match self {
            Values::F32(v) => Values::F32(&v[range]),
            Values::F64(v) => Values::F64(&v[range]),
        }
    }
}

/// A sparse tensor or matrix seen as one slice per column. Cheap to copy around; borrows everything.
///
/// Making a view checks only that the columns have one length and the sizes are allowed; whether
/// the indices are in range and the values finite is checked by whoever reads them (see
/// [`Problem`](crate::problem::Problem) and [`check`](crate::format::check)).
#[derive(Debug, Clone)]
pub struct CooView<'a> {
    name: String,
    dims: Vec<u64>,
    dims_inferred: bool,
    columns: Vec<&'a [u32]>,
    values: Values<'a>,
    weights: Option<Values<'a>>,
}

impl<'a> CooView<'a> {
    /// A view of columns in memory. `name` is what errors call it; `dims` are the sizes of the
    /// modes; indices count from 0.
    pub fn new(
        name: impl Into<String>,
        dims: &[u64],
        columns: &[&'a [u32]],
        values: Values<'a>,
    ) -> Result<Self> {
        let name = name.into();
        check_dims(dims).map_err(|e| Error::argument(format!("{name}: {e}")))?;
        if columns.len() != dims.len() {
            return Err(Error::argument(format!(
                "{name}: {} index columns for {} modes",
                columns.len(),
                dims.len()
            )));
        }
        for (n, c) in columns.iter().enumerate() {
            if c.len() != values.len() {
                return Err(Error::argument(format!(
                    "{name}: mode {} has {} indices, but there are {} values",
                    n + 1,
                    c.len(),
                    values.len()
                )));
            }
        }
        Ok(CooView {
            name,
            dims: dims.to_vec(),
            dims_inferred: false,
            columns: columns.to_vec(),
            values,
            weights: None,
        })
    }

    /// The same view with a weight for each entry.
    pub fn with_weights(mut self, weights: Values<'a>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::argument(format!(
                "{}: {} weights for {} entries",
                self.name,
                weights.len(),
                self.len()
            )));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The same view with the values of another as weights, which lists the same entries in the same order.
    pub fn with_weights_of(self, weights: &CooView<'a>) -> Result<Self> {
        if weights.order() != self.order() {
            return Err(Error::argument(format!(
                "{}: has {} modes, {} has {}; weights are listed for the same entries, in the same order",
                weights.name(),
                weights.order(),
                self.name(),
                self.order()
            )));
        }
        let count = self.len().min(weights.len());
        let same = |n: usize| weights.column(n)[..count] == self.column(n)[..count];
        if !(0..self.order()).all(same) {
            let differs =
                |i: &usize| (0..self.order()).any(|n| weights.column(n)[*i] != self.column(n)[*i]);
            let i = (0..count).find(differs).unwrap_or(0);
            let cell = |view: &CooView<'_>| {
                let index = |n: usize| (u64::from(view.column(n)[i]) + 1).to_string();
                (0..view.order()).map(index).collect::<Vec<_>>().join(" ")
            };
            return Err(Error::entry(
                weights.name(),
                i as u64,
                format!(
                    "is {} and in {} it is {}; weights are listed for the same entries, in the same order",
                    cell(weights),
                    self.name(),
                    cell(&self)
                ),
            ));
        }
        self.with_weights(weights.values())
    }

    /// The same view, its sizes marked as the largest index seen rather than stated: a
    /// [`Problem`](crate::problem::Problem) may then widen them to match what it is coupled with.
    pub fn with_inferred_dims(mut self) -> Self {
        self.dims_inferred = true;
        self
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size of each mode.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Whether the sizes are the largest indices seen rather than stated.
    pub fn dims_inferred(&self) -> bool {
        self.dims_inferred
    }

    /// The number of modes.
    pub fn order(&self) -> usize {
        self.dims.len()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The indices of mode `n`, both counted from 0.
    ///
    /// # Panics
    /// If there is no such mode.
    pub fn column(&self, n: usize) -> &'a [u32] {
        self.columns[n]
    }

    /// The values.
    pub fn values(&self) -> Values<'a> {
        self.values
    }

    /// The weights, if there are any.
    pub fn weights(&self) -> Option<Values<'a>> {
        self.weights
    }

    /// The weight of an entry, if there are any; it must be a finite number, 0 or more.
    pub fn weight(&self, i: usize) -> Result<Option<f64>> {
        let weight = self.weights.map(|w| w.get(i));
        match weight.filter(|&w| !((w as f32).is_finite() && w >= 0.0)) {
            Some(bad) => Err(Error::entry(
                self.name(),
                i as u64,
                format!("weight {bad}; it must be a finite number, 0 or more"),
            )),
            None => Ok(weight),
        }
    }

    /// The indices of entry `i` in all modes.
    pub(crate) fn index(&self, i: usize) -> Vec<u32> {
        self.columns.iter().map(|c| c[i]).collect()
    }

    /// The error for an index that is not below the size of its mode.
    pub(crate) fn out_of_range(&self, n: usize, i: usize, index: u32) -> Error {
        Error::entry(
            &self.name,
            i as u64,
            format!(
                "index {index} of mode {}, counted from 0, is beyond its size {}; \
                 the largest allowed is {}",
                n + 1,
                self.dims[n],
                self.dims[n] - 1
            ),
        )
    }

    /// The error for a value that is NaN or infinite.
    pub(crate) fn not_finite(&self, i: usize, what: &str, value: f64) -> Error {
        Error::entry(
            &self.name,
            i as u64,
            format!("{what} {value} is not a finite number; remove the entry or give it a number"),
        )
    }
}

/// An opened binary COO file.
///
/// ```
/// use s3cmtf::format::{CooFile, CooWriter, Dims, OpenMode, ValueKind, Values};
/// # fn main() -> s3cmtf::Result<()> {
/// let dir = std::env::temp_dir().join(format!("s3cmtf-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&dir).unwrap();
/// let path = dir.join("small.coo");
/// let mut writer = CooWriter::create(&path, 2, ValueKind::F32, None, Some(3))?;
/// writer.push(&[&[0, 1, 1], &[2, 0, 1]], Values::F32(&[1.0, 2.0, 3.0]), None)?;
/// writer.finish(Dims::Stated(vec![2, 3]))?;
///
/// let file = CooFile::open(&path, OpenMode::Mapped)?;
/// assert_eq!(file.header().dims, [2, 3]);
/// assert_eq!(file.view().column(1), [2, 0, 1]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct CooFile {
    path: PathBuf,
    name: String,
    header: Header,
    bytes: FileBytes,
    temporary: bool,
}

impl CooFile {
    /// Opens `path` and checks its structure against its length. Takes time independent of the
    /// number of entries when mapped; contents are not looked at: see
    /// [`check`](crate::format::check).
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<CooFile> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
        CooFile::from_file(file, path, path.display().to_string(), mode)
    }

    /// Opens an already opened file, which may have no name any more. `name` is what messages call
    /// it, `path` where names of its rows are looked for.
    pub(crate) fn from_file(
        mut file: File,
        path: &Path,
        name: String,
        mode: OpenMode,
    ) -> Result<CooFile> {
        let reading = |e| Error::io(format!("cannot read {name}"), e);
        let len = ordinary_len(&file, &name)?;
        let mut head = Vec::with_capacity(HEADER_LEN as usize);
        file.seek(SeekFrom::Start(0)).map_err(reading)?;
        (&mut file)
            .take(HEADER_LEN)
            .read_to_end(&mut head)
            .map_err(reading)?;
        let header = Header::decode(&head, len, &name)?;
        file.seek(SeekFrom::Start(0)).map_err(reading)?;
        let bytes = FileBytes::load(&file, header.file_size, mode, &name)?;
        // What was checked must be what is used, also if the file changed in between.
        if bytes.as_slice()[..HEADER_LEN as usize] != head[..] {
            return Err(Error::file(name, "changed while it was being opened"));
        }
        Ok(CooFile {
            path: path.to_path_buf(),
            name,
            header,
            bytes,
            temporary: false,
        })
    }

    /// The same file, known to be the copy of a text.
    pub(crate) fn into_temporary(mut self) -> CooFile {
        self.temporary = true;
        self
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its decoded header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether it is the unnamed copy of a text rather than a file of its own.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The sections whose bytes do not match their checksum.
    pub(crate) fn damaged_sections(&self, monitor: &dyn Monitor) -> Result<Vec<String>> {
        let sections = self.header.sections();
        let total: u64 = sections.iter().map(|(_, s)| s.len).sum();
        let mut done = 0;
        let mut damaged = Vec::new();
        for (what, section) in sections {
            let mut crc = crc32fast::Hasher::new();
            for piece in self.section(section).chunks(1 << 22) {
                report_progress(monitor, "checksums", done, total)?;
                crc.update(piece);
                done += piece.len() as u64;
            }
            if crc.finalize() != section.crc {
                damaged.push(what);
            }
        }
        Ok(damaged)
    }

    /// Refuses a damaged file, before its contents go into a new one with checksums that match.
    pub(crate) fn require_intact(&self, monitor: &dyn Monitor) -> Result<()> {
        let damaged = self.damaged_sections(monitor)?;
        if damaged.is_empty() {
            return Ok(());
        }
        Err(Error::file(
            &self.name,
            format!(
                "the bytes of {} do not match their checksum, so any entry may be wrong and nothing \
                 can be mended; get the file again, or convert its original again",
                damaged.join(", ")
            ),
        ))
    }

    pub(crate) fn section(&self, s: Section) -> &[u8] {
        // The header was checked against the length of these bytes, which fits `usize`.
        &self.bytes.as_slice()[s.offset as usize..(s.offset + s.len) as usize]
    }

    fn floats(&self, kind: ValueKind, s: Section) -> Values<'_> {
        // Sections start at multiples of 64 in page-aligned memory, so the casts cannot fail.
        match kind {
            ValueKind::F32 => Values::F32(bytemuck::cast_slice(self.section(s))),
            ValueKind::F64 => Values::F64(bytemuck::cast_slice(self.section(s))),
        }
    }

    /// The columns.
    pub fn view(&self) -> CooView<'_> {
        let h = &self.header;
        CooView {
            name: self.name.clone(),
            dims: h.dims.clone(),
            dims_inferred: h.dims_inferred,
            columns: h
                .indices
                .iter()
                .map(|&s| bytemuck::cast_slice(self.section(s)))
                .collect(),
            values: self.floats(h.value_kind, h.values),
            weights: h.weight_kind.map(|kind| self.floats(kind, h.weights)),
        }
    }
}
