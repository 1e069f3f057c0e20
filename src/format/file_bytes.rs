//! The bytes of an opened file: mapped, or copied into memory of our own.
//!
//! A mapped file is read through the page cache without a copy, but it is only as stable as the
//! file: another process that writes to it changes what is read, and one that truncates it makes
//! the next access a fatal signal (SIGBUS). Files are replaced by renaming here, never rewritten in
//! place, so our own programs never do that. For files that others may change, [`OpenMode::Private`]
//! copies first.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memmap2::{Mmap, MmapMut};

use crate::error::{Error, Result};

/// How a file's bytes are held while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Mapped: no copy, pages are read on demand. The file must not be changed while it is open.
    #[default]
    Mapped,
    /// Read into memory once: costs the file's size in memory; later changes to the file do not
    /// matter.
    Private,
}

pub(crate) enum FileBytes {
    Mapped(Mmap),
    Private(MmapMut),
}

impl FileBytes {
    /// `len` is the length the caller has checked the header against.
    pub(crate) fn load(file: &File, len: u64, mode: OpenMode, name: &str) -> Result<FileBytes> {
        let len = usize::try_from(len).map_err(|_| {
            Error::file(
                name,
                format!("has {len} bytes, more than this machine can address"),
            )
        })?;
        let failed = |e| Error::io(format!("cannot map {name} ({len} bytes) into memory"), e);
        match mode {
            OpenMode::Mapped => {
                // SAFETY: the map is read-only and lives as long as the slices handed out from it.
                // That the file is not modified meanwhile is the documented obligation of the
                // caller of `OpenMode::Mapped`; no index or length read from the map is trusted
                // without a check at the place of use.
                let map =
                    unsafe { memmap2::MmapOptions::new().len(len).map(file) }.map_err(failed)?;
                Ok(FileBytes::Mapped(map))
            }
            OpenMode::Private => {
                // An anonymous map: page-aligned, so columns keep their alignment, and memory that
                // is given back to the system when the file is closed.
                let mut copy = MmapMut::map_anon(len).map_err(failed)?;
                let mut file = file;
                file.read_exact(&mut copy).map_err(|e| {
                    if e.kind() == std::io::ErrorKind::UnexpectedEof {
                        Error::file(name, "was cut short while it was being read")
                    } else {
                        Error::io(format!("cannot read {name}"), e)
                    }
                })?;
                Ok(FileBytes::Private(copy))
            }
        }
    }

    /// Opens a whole ordinary file; also returns its length.
    pub(crate) fn open(path: &Path, mode: OpenMode) -> Result<(FileBytes, u64)> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
        let len = regular_file_len(&file, &name)?;
        if len == 0 {
            return Err(Error::file(name, "is empty"));
        }
        Ok((FileBytes::load(&file, len, mode, &name)?, len))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(map) => map,
            FileBytes::Private(map) => map,
        }
    }
}

/// The length of a file that can be mapped: not a folder, a device or a pipe.
pub(crate) fn regular_file_len(file: &File, name: &str) -> Result<u64> {
    let meta = file
        .metadata()
        .map_err(|e| Error::io(format!("cannot read {name}"), e))?;
    if meta.is_dir() {
        return Err(Error::file(name, "is a folder; name a file in it"));
    }
    if !meta.is_file() {
        return Err(Error::file(
            name,
            "is a device or a pipe; it must be an ordinary file",
        ));
    }
    Ok(meta.len())
}
