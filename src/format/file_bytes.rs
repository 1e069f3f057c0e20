//! The bytes of an opened file, mapped or copied into memory.
//!
//! A mapped file is read through the page cache without a copy, but it is only as stable as the file: a process that
//! writes to it changes the bytes read, and one that truncates it turns the next access into a fatal signal (SIGBUS).
//! This library replaces files by renaming and never rewrites them in place. For files that others may change,
//! [`OpenMode::Private`] makes a copy.
#![allow(unsafe_code)]

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::Path;

use memmap2::{Mmap, MmapMut};

use crate::error::{Error, Result};

/// How the bytes of an open file are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Mapped: no copy, pages are read on demand. The file must not be changed while it is open.
    #[default]
    Mapped,
    /// Copied into memory when opened: takes the size of the file in memory; later changes of the file have no effect.
    Private,
}

/// The bytes of an opened file.
pub(crate) enum FileBytes {
    Mapped(Mmap),
    Private(MmapMut),
}

impl FileBytes {
    /// Maps or copies the first `len` bytes of `file`, a length that the caller has checked. Messages call it `name`.
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
                // SAFETY: the map is read-only and lives as long as the slices borrowed from it. The caller of
                // `OpenMode::Mapped` has the documented obligation not to modify the file meanwhile; no index or
                // length read from the map is used without a check.
                let map =
                    unsafe { memmap2::MmapOptions::new().len(len).map(file) }.map_err(failed)?;
                Ok(FileBytes::Mapped(map))
            }
            OpenMode::Private => {
                // An anonymous map is page-aligned, so columns keep their alignment, and its memory returns to the
                // system when the file is closed.
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

    /// Opens a regular file and returns its bytes and its length.
    pub(crate) fn open(path: &Path, mode: OpenMode) -> Result<(FileBytes, u64)> {
        let name = path.display().to_string();
        let file = open_regular(path)?;
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

/// Opens a file that must be regular. The check precedes the opening, since to open a named pipe is to wait for its writer.
pub(crate) fn open_regular(path: &Path) -> Result<File> {
    let failed = |e| Error::cannot_open(path, e);
    let meta = fs::metadata(path).map_err(failed)?;
    require_regular(&meta, &path.display().to_string())?;
    File::open(path).map_err(failed)
}

/// Returns the length of a regular file. A folder, a device or a pipe is an error.
pub(crate) fn regular_file_len(file: &File, name: &str) -> Result<u64> {
    let meta = file
        .metadata()
        .map_err(|e| Error::io(format!("cannot read {name}"), e))?;
    require_regular(&meta, name)?;
    Ok(meta.len())
}

fn require_regular(meta: &Metadata, name: &str) -> Result<()> {
    if meta.is_dir() {
        return Err(Error::file(name, "is a folder; name a file in it"));
    }
    if !meta.is_file() {
        return Err(Error::file(
            name,
            "is a device or a pipe; it must be an ordinary file",
        ));
    }
    Ok(())
}
