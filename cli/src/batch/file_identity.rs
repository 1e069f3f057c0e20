//! The identity of a file on disk.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::file_arguments::canonical;

/// The identity of a file. It changes when the file is replaced or modified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity {
    pub path: PathBuf,
    /// The device and inode numbers; 0 where the system has none.
    inode: (u64, u64),
    len: u64,
    /// The time of the last modification, in nanoseconds since 1970; -1 if it is earlier.
    modified_nanos: i128,
}

impl FileIdentity {
    /// Returns the identity of an existing file.
    pub(super) fn of(path: &Path) -> Option<FileIdentity> {
        let meta = std::fs::metadata(path).ok()?;
        let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
        Some(FileIdentity {
            path: canonical(path),
            inode: inode(&meta),
            len: meta.len(),
            modified_nanos: since.map_or(-1, |d| d.as_nanos() as i128),
        })
    }

    /// Returns a text that is equal for equal identities, without the path.
    pub(super) fn fingerprint(&self) -> String {
        format!(
            "{}-{}-{}-{}",
            self.inode.0, self.inode.1, self.len, self.modified_nanos
        )
    }
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
