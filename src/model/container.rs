//! A file of named sections: what model files and checkpoints are made of.
//!
//! A 64-byte head (magic, version, number of sections, length of the file, checksum of head and
//! table), a table of 64 bytes per section (name, offset, length, checksum), then the sections, each
//! at a multiple of 64. Unknown sections are ignored by readers, so that later versions can add some.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{AtomicFile, FileBytes, OpenMode};

const MAGIC: [u8; 8] = *b"\x89S3MOD\r\n";
const VERSION: u32 = 1;
const HEAD: usize = 64;
const ROW: usize = 64;
const NAME: usize = 40;
const MOST_SECTIONS: u32 = 4096;

/// Whether an ordinary file begins with the magic; a pipe is not looked into.
pub(super) fn has_magic(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    std::fs::metadata(path).is_ok_and(|m| m.is_file())
        && std::fs::File::open(path)
            .and_then(|mut f| f.read_exact(&mut head))
            .is_ok()
        && head == MAGIC
}

/// Sections to be written.
#[derive(Default)]
pub(super) struct Container<'a> {
    sections: Vec<(String, std::borrow::Cow<'a, [u8]>)>,
}

impl<'a> Container<'a> {
    pub(super) fn add(
        &mut self,
        name: impl Into<String>,
        bytes: impl Into<std::borrow::Cow<'a, [u8]>>,
    ) {
        let name = name.into();
        debug_assert!(name.len() <= NAME);
        self.sections.push((name, bytes.into()));
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut at = HEAD + ROW * self.sections.len();
        let mut table = Vec::new();
        let mut places = Vec::new();
        for (name, bytes) in &self.sections {
            at = at.next_multiple_of(64);
            let mut row = [0u8; ROW];
            row[..name.len()].copy_from_slice(name.as_bytes());
            row[NAME..NAME + 8].copy_from_slice(&(at as u64).to_le_bytes());
            row[NAME + 8..NAME + 16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            row[NAME + 16..NAME + 20].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
            table.extend_from_slice(&row);
            places.push(at as u64);
            at += bytes.len();
        }
        let mut head = [0u8; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head[16..24].copy_from_slice(&(at as u64).to_le_bytes());
        let crc = checksum(&head, &table);
        head[56..60].copy_from_slice(&crc.to_le_bytes());
        let done = (|| -> io::Result<()> {
            let out = file.file();
            out.write_all(&head)?;
            out.write_all(&table)?;
            for ((_, bytes), place) in self.sections.iter().zip(places) {
                out.seek(SeekFrom::Start(place))?;
                out.write_all(bytes)?;
            }
            out.set_len(at as u64)
        })();
        done.map_err(|e| file.failed(e))?;
        file.commit()
    }
}

fn checksum(head: &[u8], table: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..56]);
    crc.update(table);
    crc.finalize()
}

/// An opened file of sections.
pub(super) struct Opened {
    pub name: String,
    pub bytes: Arc<FileBytes>,
    sections: Vec<(String, std::ops::Range<usize>)>,
}

impl Opened {
    /// Opens, maps and checks everything, section checksums included: a model is small next to its
    /// data, and a damaged one must not predict.
    pub(super) fn open(path: &Path, mode: OpenMode) -> Result<Opened> {
        let name = path.display().to_string();
        let (bytes, len) = FileBytes::open(path, mode)?;
        let all = bytes.as_slice();
        let bad = |byte: usize, what: &str| Err(Error::format(&name, byte as u64, what));
        if len < 8 || all[..8] != MAGIC {
            return bad(
                0,
                "this is not a model file (its first bytes are wrong); `s3cmtf fit` makes one",
            );
        }
        if all.len() < HEAD {
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
        let table_end = HEAD + ROW * count as usize;
        if count > MOST_SECTIONS || table_end > all.len() {
            return bad(12, &format!("{count} sections do not fit in the file"));
        }
        let table = &all[HEAD..table_end];
        if checksum(&all[..HEAD], table) != get32(56) {
            return bad(56, "the head of the file is damaged; copy it again");
        }
        let mut sections = Vec::new();
        for k in 0..count as usize {
            let row = HEAD + ROW * k;
            let text = &all[row..row + NAME];
            let end = text.iter().position(|&b| b == 0).unwrap_or(NAME);
            let title = String::from_utf8_lossy(&text[..end]).into_owned();
            let (offset, length) = (get64(row + NAME), get64(row + NAME + 8));
            let range = match offset.checked_add(length) {
                Some(end) if end <= len && offset.is_multiple_of(64) => {
                    offset as usize..end as usize
                }
                _ => {
                    return bad(
                        row + NAME,
                        &format!("section {title} does not lie in the file"),
                    );
                }
            };
            if crc32fast::hash(&all[range.clone()]) != get32(row + NAME + 16) {
                return bad(
                    range.start,
                    &format!(
                        "section {title} is damaged (its checksum is wrong); copy the file again"
                    ),
                );
            }
            sections.push((title, range));
        }
        Ok(Opened {
            name,
            bytes: Arc::new(bytes),
            sections,
        })
    }

    pub(super) fn range(&self, name: &str) -> Option<std::ops::Range<usize>> {
        self.sections
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, r)| r.clone())
    }

    pub(super) fn section(&self, name: &str) -> Result<&[u8]> {
        match self.range(name) {
            Some(range) => Ok(&self.bytes.as_slice()[range]),
            None => Err(self.wrong(&format!("section {name} is missing"))),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&str> {
        std::str::from_utf8(self.section(name)?)
            .map_err(|_| self.wrong(&format!("section {name} is not text")))
    }

    pub(super) fn numbers<T: bytemuck::AnyBitPattern>(&self, name: &str) -> Result<&[T]> {
        bytemuck::try_cast_slice(self.section(name)?)
            .map_err(|_| self.wrong(&format!("section {name} has the wrong length")))
    }

    pub(super) fn wrong(&self, what: &str) -> Error {
        Error::file(
            &self.name,
            format!("{what}; the file was not written by this library"),
        )
    }
}
