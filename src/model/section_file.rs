//! Files of named sections: the container of model files and checkpoints.
//!
//! Layout: a 64-byte head (magic, version, number of sections, length of the file, checksum of head and table), a table
//! of 64 bytes per section (name, offset, length, checksum), then the sections, each at a multiple of 64. Readers ignore
//! unknown sections, so that later versions can add some.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::factor_matrix::CompactRows;
use crate::error::{Error, Result};
use crate::format::{AtomicFile, FileBytes, OpenMode};
use crate::simd::padded_len;

const MAGIC: [u8; 8] = *b"\x89S3MOD\r\n";
const VERSION: u32 = 1;
/// Bytes of the head.
const HEAD_LEN: usize = 64;
/// Bytes of the head that its checksum covers.
const HEAD_CHECKED_LEN: usize = 56;
/// Bytes of a row of the table.
const TABLE_ROW_LEN: usize = 64;
/// Bytes of a section name in the table, padded with zeros.
const NAME_LEN: usize = 40;
const MAX_SECTIONS: u32 = 4096;

/// Returns whether `path` is a regular file that begins with the magic bytes. Pipes are not read.
pub(super) fn has_magic(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    std::fs::metadata(path).is_ok_and(|m| m.is_file())
        && std::fs::File::open(path)
            .and_then(|mut f| f.read_exact(&mut head))
            .is_ok()
        && head == MAGIC
}

/// Rows that [`Section::write`] pads at a time.
const ROWS_PER_WRITE: usize = 1024;

/// The contents of a section.
enum Section<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Rows that are written with padding.
    Rows(&'a CompactRows),
    /// Floats in several parts, which are joined.
    Parts(&'a [&'a [f32]]),
}

impl Section<'_> {
    /// Returns the number of bytes.
    fn len(&self) -> usize {
        match self {
            Section::Bytes(bytes) => bytes.len(),
            Section::Rows(rows) => 4 * rows.padded_len(),
            Section::Parts(parts) => parts.iter().map(|part| size_of_val(*part)).sum(),
        }
    }

    /// Writes all bytes to `out`.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = match self {
            Section::Bytes(bytes) => return out.write_all(bytes),
            Section::Parts(parts) => {
                let mut parts = parts.iter();
                return parts.try_for_each(|part| out.write_all(bytemuck::cast_slice(part)));
            }
            Section::Rows(rows) => rows.rows(),
        };
        let mut padded: Vec<f32> = Vec::new();
        let mut pending = rows.len();
        for row in rows {
            padded.extend_from_slice(row);
            padded.resize(padded.len() - row.len() + padded_len(row.len()), 0.0);
            pending -= 1;
            if pending.is_multiple_of(ROWS_PER_WRITE) {
                out.write_all(bytemuck::cast_slice(&padded))?;
                padded.clear();
            }
        }
        Ok(())
    }

    fn checksum(&self) -> io::Result<u32> {
        let mut crc = Checksum(crc32fast::Hasher::new());
        self.write(&mut crc)?;
        Ok(crc.0.finalize())
    }
}

/// Computes the checksum of everything that is written to it.
struct Checksum(crc32fast::Hasher);

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects sections and writes them as one file.
#[derive(Default)]
pub(super) struct SectionWriter<'a> {
    sections: Vec<(String, Section<'a>)>,
}

impl<'a> SectionWriter<'a> {
    /// Adds a section of at most 40 bytes of name.
    pub(super) fn add(&mut self, name: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.add_section(name.into(), Section::Bytes(bytes.into()));
    }

    /// Adds a section of rows, padded as those of a [`FactorMatrix`](super::FactorMatrix).
    pub(super) fn add_rows(&mut self, name: impl Into<String>, rows: &'a CompactRows) {
        self.add_section(name.into(), Section::Rows(rows));
    }

    /// Adds a section of floats in several parts.
    pub(super) fn add_parts(&mut self, name: impl Into<String>, parts: &'a [&'a [f32]]) {
        self.add_section(name.into(), Section::Parts(parts));
    }

    fn add_section(&mut self, name: String, section: Section<'a>) {
        debug_assert!(name.len() <= NAME_LEN);
        self.sections.push((name, section));
    }

    /// Adds a section of borrowed values.
    pub(super) fn add_values<T: bytemuck::NoUninit>(
        &mut self,
        name: impl Into<String>,
        values: &'a [T],
    ) {
        self.add(name, bytemuck::cast_slice::<T, u8>(values));
    }

    /// Adds a section of borrowed values, unless there are none.
    pub(super) fn add_if_any<T: bytemuck::NoUninit>(
        &mut self,
        name: impl Into<String>,
        values: &'a [T],
    ) {
        if !values.is_empty() {
            self.add_values(name, values);
        }
    }

    /// Adds a section of values that are copied.
    pub(super) fn add_copied<T: bytemuck::NoUninit>(
        &mut self,
        name: impl Into<String>,
        values: &[T],
    ) {
        self.add(name, bytemuck::cast_slice::<T, u8>(values).to_vec());
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut end = HEAD_LEN + TABLE_ROW_LEN * self.sections.len();
        let mut table = Vec::new();
        let mut offsets = Vec::new();
        for (name, section) in &self.sections {
            end = end.next_multiple_of(64);
            let mut row = [0u8; TABLE_ROW_LEN];
            row[..name.len()].copy_from_slice(name.as_bytes());
            row[NAME_LEN..NAME_LEN + 8].copy_from_slice(&(end as u64).to_le_bytes());
            row[NAME_LEN + 8..NAME_LEN + 16].copy_from_slice(&(section.len() as u64).to_le_bytes());
            let checksum = section.checksum().map_err(|e| file.write_error(e))?;
            row[NAME_LEN + 16..NAME_LEN + 20].copy_from_slice(&checksum.to_le_bytes());
            table.extend_from_slice(&row);
            offsets.push(end as u64);
            end += section.len();
        }
        let mut head = [0u8; HEAD_LEN];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head[16..24].copy_from_slice(&(end as u64).to_le_bytes());
        let crc = head_checksum(&head, &table);
        head[HEAD_CHECKED_LEN..HEAD_CHECKED_LEN + 4].copy_from_slice(&crc.to_le_bytes());
        let written = (|| -> io::Result<()> {
            let out = file.file();
            out.write_all(&head)?;
            out.write_all(&table)?;
            for ((_, section), offset) in self.sections.iter().zip(offsets) {
                out.seek(SeekFrom::Start(offset))?;
                section.write(out)?;
            }
            out.set_len(end as u64)
        })();
        written.map_err(|e| file.write_error(e))?;
        file.commit()
    }
}

/// Returns the checksum of the head (without the checksum itself) and the table.
fn head_checksum(head: &[u8], table: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..HEAD_CHECKED_LEN]);
    crc.update(table);
    crc.finalize()
}

/// An opened file of sections.
pub(super) struct SectionFile {
    pub name: String,
    pub bytes: Arc<FileBytes>,
    /// The byte range of each section. Of two sections with the same name the first counts.
    sections: HashMap<String, Range<usize>>,
}

impl SectionFile {
    /// Opens a file and checks everything, including the checksum of every section: a model is small next to its data,
    /// and a damaged one must not predict.
    pub(super) fn open(path: &Path, mode: OpenMode) -> Result<SectionFile> {
        let name = path.display().to_string();
        let (bytes, len) = FileBytes::open(path, mode)?;
        let all = bytes.as_slice();
        let bad = |byte: usize, reason: &str| Err(Error::format(&name, byte as u64, reason));
        if len < 8 || all[..8] != MAGIC {
            return bad(
                0,
                "this is not a model file (its first bytes are wrong); `s3cmtf fit` makes one",
            );
        }
        if all.len() < HEAD_LEN {
            return bad(all.len(), "the file ends inside its head; copy it again");
        }
        let get32 = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four bytes"));
        let get64 =
            |at: usize| u64::from_le_bytes(all[at..at + 8].try_into().expect("eight bytes"));
        if get32(8) != VERSION {
            return bad(
                8,
                &format!(
                    "model version {}; this library reads {VERSION}, so another s3cmtf is needed",
                    get32(8)
                ),
            );
        }
        if get64(16) != len {
            return bad(
                16,
                &format!(
                    "the file should have {} bytes and has {len}; copy it again",
                    get64(16)
                ),
            );
        }
        let count = get32(12);
        let table_end = HEAD_LEN + TABLE_ROW_LEN * count as usize;
        if count > MAX_SECTIONS || table_end > all.len() {
            return bad(12, &format!("{count} sections do not fit in the file"));
        }
        let table = &all[HEAD_LEN..table_end];
        if head_checksum(&all[..HEAD_LEN], table) != get32(HEAD_CHECKED_LEN) {
            return bad(
                HEAD_CHECKED_LEN,
                "the head of the file is damaged; copy it again",
            );
        }
        let mut sections = HashMap::new();
        // All sections together are no longer than the file, so that the time to read it is proportional to its length.
        let mut room = all.len() - table_end;
        for k in 0..count as usize {
            let row = HEAD_LEN + TABLE_ROW_LEN * k;
            let padded_name = &all[row..row + NAME_LEN];
            let end = padded_name.iter().position(|&b| b == 0).unwrap_or(NAME_LEN);
            let section = String::from_utf8_lossy(&padded_name[..end]).into_owned();
            let (offset, length) = (get64(row + NAME_LEN), get64(row + NAME_LEN + 8));
            let range = match offset.checked_add(length) {
                Some(end) if end <= len && offset.is_multiple_of(64) => {
                    offset as usize..end as usize
                }
                _ => {
                    return bad(
                        row + NAME_LEN,
                        &format!("section {section} does not lie in the file"),
                    );
                }
            };
            let Some(left) = room.checked_sub(range.len()) else {
                return bad(
                    row + NAME_LEN,
                    &format!("section {section} overlaps another"),
                );
            };
            room = left;
            if crc32fast::hash(&all[range.clone()]) != get32(row + NAME_LEN + 16) {
                return bad(
                    range.start,
                    &format!(
                        "section {section} is damaged (its checksum is wrong); copy the file again"
                    ),
                );
            }
            sections.entry(section).or_insert(range);
        }
        Ok(SectionFile {
            name,
            bytes: Arc::new(bytes),
            sections,
        })
    }

    /// Returns the byte range of a section, if the file has it.
    pub(super) fn range(&self, name: &str) -> Option<Range<usize>> {
        self.sections.get(name).cloned()
    }

    /// Returns the bytes of a section.
    pub(super) fn section(&self, name: &str) -> Result<&[u8]> {
        match self.range(name) {
            Some(range) => Ok(&self.bytes.as_slice()[range]),
            None => Err(self.invalid(&format!("section {name} is missing"))),
        }
    }

    /// Returns a section of UTF-8 text.
    pub(super) fn text(&self, name: &str) -> Result<&str> {
        std::str::from_utf8(self.section(name)?)
            .map_err(|_| self.invalid(&format!("section {name} is not text")))
    }

    /// Returns a section as a slice of values.
    pub(super) fn values<T: bytemuck::AnyBitPattern>(&self, name: &str) -> Result<&[T]> {
        bytemuck::try_cast_slice(self.section(name)?)
            .map_err(|_| self.invalid(&format!("section {name} has the wrong length")))
    }

    /// Returns a section of `count` values, or no values if the file does not have it.
    pub(super) fn optional_values<T: bytemuck::AnyBitPattern>(
        &self,
        name: &str,
        count: usize,
    ) -> Result<&[T]> {
        if self.range(name).is_none() {
            return Ok(&[]);
        }
        let values = self.values::<T>(name)?;
        if values.len() != count {
            return Err(self.invalid(&format!("section {name} has the wrong length")));
        }
        Ok(values)
    }

    /// Returns the error of a file whose sections are intact but do not make a model.
    pub(super) fn invalid(&self, reason: &str) -> Error {
        Error::file(
            &self.name,
            format!("{reason}; the file was not written by this library"),
        )
    }
}

/// Returns the values of the lines `key=value` of a text by their keys. Of two lines with the same key the first counts.
pub(super) fn values_by_key(text: &str) -> HashMap<&str, &str> {
    let mut values = HashMap::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        values.entry(key).or_insert(value);
    }
    values
}
