//! Opened binary COO files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::coo_view::{CooView, Values};
use super::file_bytes::{FileBytes, OpenMode, open_regular, regular_file_len};
use super::header::{ALIGN, HEADER_LEN, Header, Section, ValueKind};
use super::names::{ModeNames, Names};
use crate::error::{Error, Result};
use crate::progress::{Monitor, report_progress};
use crate::sort::stable_sort_by;

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
    /// Set when the checksums were found to match.
    verified: OnceLock<()>,
    /// The names of its rows: of the ids of a text, or loaded from the files beside it.
    names: OnceLock<ModeNames>,
    /// Whether these are the ids of a text.
    has_text_ids: bool,
    /// Modes of a text whose rows a table of names numbered.
    given_names: Vec<usize>,
}

impl CooFile {
    /// Opens `path` and checks its header against its length. A mapped file opens in constant time. The checksums are not
    /// compared: see [`verify`](Self::verify) and [`format::open`](crate::format::open). Nor are the entries checked: see
    /// [`check`](crate::format::check).
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<CooFile> {
        let path = path.as_ref();
        let file = open_regular(path)?;
        CooFile::from_file(file, path, path.display().to_string(), mode)
    }

    /// Reads an already opened file, which may have no name any more. Messages call it `name`; names of its rows are
    /// searched beside `path`.
    pub(crate) fn from_file(
        mut file: File,
        path: &Path,
        name: String,
        mode: OpenMode,
    ) -> Result<CooFile> {
        let reading = |e| Error::io(format!("cannot read {name}"), e);
        let len = regular_file_len(&file, &name)?;
        let mut head = Vec::with_capacity(HEADER_LEN as usize);
        file.seek(SeekFrom::Start(0)).map_err(reading)?;
        (&mut file)
            .take(HEADER_LEN)
            .read_to_end(&mut head)
            .map_err(reading)?;
        let header = Header::decode(&head, len, &name)?;
        file.seek(SeekFrom::Start(0)).map_err(reading)?;
        let bytes = FileBytes::load(&file, header.file_size, mode, &name)?;
        // The header that was checked must be the one in use, even if the file changed in between.
        if bytes.as_slice()[..HEADER_LEN as usize] != head[..] {
            return Err(Error::file(
                name,
                "changed while it was being opened; open it again when nothing writes to it",
            ));
        }
        check_padding(&header, bytes.as_slice(), &name)?;
        Ok(CooFile {
            path: path.to_path_buf(),
            name,
            header,
            bytes,
            temporary: false,
            verified: OnceLock::new(),
            names: OnceLock::new(),
            has_text_ids: false,
            given_names: Vec::new(),
        })
    }

    /// Marks the file as the unnamed binary copy of a text.
    /// `names`: those of its rows, where the text has any; `None` if they are in files beside it.
    /// `given` are the modes whose rows a table of names numbered.
    pub(crate) fn into_temporary(mut self, names: Option<ModeNames>, given: Vec<usize>) -> CooFile {
        self.temporary = true;
        self.given_names = given;
        self.has_text_ids = names.is_some();
        if let Some(names) = names {
            self.names = OnceLock::from(names);
        }
        // Its checksums were computed a moment ago from the same bytes.
        self.verified = OnceLock::from(());
        self
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name that messages use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the decoded header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the names of the rows of each mode: the ids of a text, or those of the names files beside the file.
    pub fn names(&self) -> Result<&ModeNames> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = Names::load_all_beside(&self.path, self.header.dims.len())?;
        Ok(self.names.get_or_init(|| names))
    }

    /// Returns whether its names are the ids of a text.
    pub(crate) fn has_text_ids(&self) -> bool {
        self.has_text_ids
    }

    /// Returns whether a table of names numbered the rows of a mode of this text.
    pub(crate) fn has_given_names(&self, mode: usize) -> bool {
        self.given_names.contains(&mode)
    }

    /// Returns whether it is the unnamed binary copy of a text.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Returns the names of the sections whose checksum does not match.
    pub(crate) fn damaged_sections(&self, monitor: &dyn Monitor) -> Result<Vec<String>> {
        let sections = self.header.sections();
        let total: u64 = sections.iter().map(|(_, s)| s.len).sum();
        let mut done = 0;
        let mut damaged = Vec::new();
        for (name, section) in sections {
            let mut crc = crc32fast::Hasher::new();
            for piece in self.section(section).chunks(1 << 22) {
                report_progress(monitor, "checksums", done, total)?;
                crc.update(piece);
                done += piece.len() as u64;
            }
            if crc.finalize() != section.crc {
                damaged.push(name);
            }
        }
        Ok(damaged)
    }

    /// Returns an error if a checksum does not match. The whole file is read, once: after a success further calls return
    /// immediately. The temporary copy of a text needs no verification.
    pub fn verify(&self, monitor: &dyn Monitor) -> Result<()> {
        if self.verified.get().is_some() {
            return Ok(());
        }
        let damaged = self.damaged_sections(monitor)?;
        if damaged.is_empty() {
            self.verified.get_or_init(|| ());
            return Ok(());
        }
        Err(Error::file(
            &self.name,
            format!(
                "the bytes of {} do not match their checksum, so any entry may be wrong and nothing \
                 can be repaired; copy the file again, or convert its original again",
                damaged.join(", ")
            ),
        ))
    }

    pub(crate) fn section(&self, s: Section) -> &[u8] {
        // The header was checked against the length of these bytes, which fits `usize`.
        &self.bytes.as_slice()[s.offset as usize..(s.offset + s.len) as usize]
    }

    fn values_of(&self, kind: ValueKind, s: Section) -> Values<'_> {
        // Sections start at multiples of 64 in page-aligned memory, so the casts cannot fail.
        match kind {
            ValueKind::F32 => Values::F32(bytemuck::cast_slice(self.section(s))),
            ValueKind::F64 => Values::F64(bytemuck::cast_slice(self.section(s))),
        }
    }

    /// Returns the columns.
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
            values: self.values_of(h.value_kind, h.values),
            weights: h.weight_kind.map(|kind| self.values_of(kind, h.weights)),
        }
    }
}

/// Returns an error unless the bytes between sections are zeros, fewer than [`ALIGN`] at a time.
fn check_padding(header: &Header, bytes: &[u8], name: &str) -> Result<()> {
    let mut sections: Vec<(u64, u64)> = header
        .sections()
        .iter()
        .filter(|(_, s)| s.len > 0)
        .map(|(_, s)| (s.offset, s.offset + s.len))
        .collect();
    stable_sort_by(&mut sections, &Ord::cmp);
    sections.push((header.file_size, header.file_size));
    let mut end = HEADER_LEN;
    for (start, next_end) in sections {
        // The header was checked: sections do not overlap and lie behind it.
        if start - end >= ALIGN {
            return Err(Error::format(
                name,
                end,
                format!(
                    "{} bytes here belong to no section; convert the file again",
                    start - end
                ),
            ));
        }
        let padding = &bytes[end as usize..start as usize];
        if let Some(at) = padding.iter().position(|&b| b != 0) {
            return Err(Error::format(
                name,
                end + at as u64,
                "the padding between sections is not zero; copy or convert the file again",
            ));
        }
        end = next_end;
    }
    Ok(())
}
