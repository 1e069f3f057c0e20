//! Temporary files with names that no other program makes, locked while they are written.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// The end of every name.
const TAG: &str = ".s3cmtf.tmp";

/// Characters of the final name that the temporary one begins with. File systems limit names to 255 bytes.
const STEM_CHARS: usize = 32;

/// Hexadecimal digits of a name: 16 random ones and a checksum of 8.
const DIGITS: usize = 24;

/// Attempts to create a file. Each fails only if another process has just made the same name or removed the new file.
const ATTEMPTS: usize = 16;

/// A temporary file in the folder of its final one. It is removed on drop.
///
/// An exclusive advisory lock is held from its creation until it is closed, which the system does when a process dies:
/// a temporary file without a lock is of no use to anyone. File systems without locks are written without one.
pub(super) struct TemporaryFile {
    file: File,
    path: PathBuf,
    is_renamed: bool,
}

impl TemporaryFile {
    /// Creates a file beside `target`, with the permissions of the target if that exists.
    pub(super) fn create(target: &Path) -> io::Result<TemporaryFile> {
        let folder = folder_of(target);
        let options = new_file_options(target);
        for _ in 0..ATTEMPTS {
            let path = folder.join(temporary_name(target.file_name().unwrap_or_default()));
            let file = match options.open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let created = TemporaryFile {
                file,
                path,
                is_renamed: false,
            };
            // Until it is locked, another process may take the file for a leftover and remove it.
            let is_locked = match created.file.try_lock() {
                Ok(()) => is_at(&created.file, &created.path),
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(_)) => true,
            };
            if is_locked {
                return Ok(created);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its final name.
    pub(super) fn rename_to(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns how a new file is opened that is to replace `target`. A name that exists is an error, also if it is a link.
fn new_file_options(target: &Path) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        // The permissions of the file it replaces; else those of `open`, before the umask.
        let existing = fs::symlink_metadata(target).ok().filter(|m| m.is_file());
        options.mode(existing.map_or(0o666, |m| m.permissions().mode() & 0o777));
    }
    let _ = target;
    options
}

/// Returns the folder of a file.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Returns a new name for the temporary file of a final name: `.model.s3m.<random><checksum>.s3cmtf.tmp`.
fn temporary_name(final_name: &OsStr) -> String {
    let stem: String = final_name
        .to_string_lossy()
        .chars()
        .take(STEM_CHARS)
        .collect();
    // A new state has new random keys.
    let random = format!("{:016x}", RandomState::new().build_hasher().finish());
    let checksum = checksum(&stem, &random);
    format!(".{stem}.{random}{checksum}{TAG}")
}

fn checksum(stem: &str, random: &str) -> String {
    let mut crc = crc32fast::Hasher::new();
    for part in [TAG, stem, ".", random] {
        crc.update(part.as_bytes());
    }
    format!("{:08x}", crc.finalize())
}

/// Returns whether a file name is one that this library gives to temporary files, by its form and its checksum.
pub fn is_temporary_name(name: &OsStr) -> bool {
    let stem_and_digits = name
        .to_str()
        .and_then(|n| n.strip_prefix('.')?.strip_suffix(TAG)?.rsplit_once('.'));
    stem_and_digits.is_some_and(|(stem, digits)| {
        digits.len() == DIGITS
            && digits.is_ascii()
            && checksum(stem, &digits[..DIGITS - 8]) == digits[DIGITS - 8..]
    })
}

/// Returns whether `path` names an open file.
#[cfg(unix)]
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), fs::symlink_metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognized_by_their_checksum() {
        for final_name in ["m.s3m", "", ".", "a.b.c", "Amélie.coo", &"é".repeat(200)] {
            let name = temporary_name(OsStr::new(final_name));
            assert!(name.len() < 255, "{name}");
            assert!(is_temporary_name(OsStr::new(&name)), "{name}");
            // Changed in any character, it is a file of someone else.
            for (at, c) in name.char_indices() {
                let other = if c == '0' { "1" } else { "0" };
                let mut changed = name.clone();
                changed.replace_range(at..at + c.len_utf8(), other);
                assert!(!is_temporary_name(OsStr::new(&changed)), "{changed}");
            }
        }
        for name in [
            ".m.s3m.Ab12Xy.tmp",
            ".s3cmtf.tmp",
            ".m.s3m..s3cmtf.tmp",
            ".m.0123456789abcdef01234567.s3cmtf.tmp",
        ] {
            assert!(!is_temporary_name(OsStr::new(name)), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn name_that_is_a_link_is_never_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("link"), dir.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for contents in [None, Some("mine")] {
            if let Some(text) = contents {
                fs::write(&target, text).unwrap();
            }
            let error = new_file_options(&target).open(&link).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&target).ok().as_deref(), contents);
        }
    }

    #[test]
    fn file_is_locked_until_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let temporary = TemporaryFile::create(&dir.path().join("a")).unwrap();
        let other = File::open(&temporary.path).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        temporary.rename_to(&dir.path().join("a")).unwrap();
        assert!(other.try_lock().is_ok());
    }
}
