//! Files that appear complete or not at all.
//!
//! A file is written under a temporary name in the folder of its final one, synced to disk and renamed. Unnamed files
//! (`O_TMPFILE`) would leave nothing behind when a process is killed, but not all file systems have them, and they cannot
//! replace an existing file. `leftovers` removes the temporary files of processes that were killed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::leftovers;
use super::temporary_file::{TemporaryFile, folder_of};
use crate::error::{Error, Result};

/// A file being written under a temporary name in the folder of its final one. [`commit`] syncs and
/// renames it; dropping it instead removes it.
///
/// [`commit`]: AtomicFile::commit
pub(crate) struct AtomicFile {
    file: TemporaryFile,
    target: PathBuf,
    /// The name the user gave, for messages.
    name: String,
}

impl AtomicFile {
    /// Creates the temporary file beside the target.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let given = resolve(path, &name)?;
        // The file must not move if the working directory of the process changes.
        let target = std::path::absolute(&given).unwrap_or_else(|_| given.clone());
        let file = TemporaryFile::create(&target).map_err(|e| {
            let folder = folder_of(&given);
            // Some folders, such as /proc, refuse new files with the error "not found".
            if e.kind() == io::ErrorKind::NotFound && !folder.is_dir() {
                Error::file(&name, "its folder does not exist; make it first")
            } else {
                // The message names the folder instead of the temporary file, which the user does not know.
                let folder = folder.display();
                let action = format!("cannot write {name}: no file can be made in {folder}");
                Error::io(action, e)
            }
        })?;
        #[cfg(unix)]
        leftovers::remove_once(&folder_of(&target), file.file());
        Ok(AtomicFile { file, target, name })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        self.file.file_mut()
    }

    /// Returns the folder of the final file, after symbolic links.
    pub(crate) fn folder(&self) -> PathBuf {
        folder_of(&self.target)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn write_error(&self, source: io::Error) -> Error {
        Error::io(format!("cannot write {}", self.name), source)
    }

    /// Syncs the contents to disk, so that [`commit`](Self::commit) only renames.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let synced = self.file.file().sync_all();
        synced.map_err(|e| self.write_error(e))
    }

    /// Gives the file its final name.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.sync()?;
        let AtomicFile { file, target, name } = self;
        file.rename_to(&target)
            .map_err(|e| Error::io(format!("cannot write {name}"), e))?;
        sync_folder(&folder_of(&target));
        Ok(())
    }
}

/// Writes a file that appears under `path` complete, and synced to disk, or not at all.
///
/// `fill` writes the contents into a temporary file beside `path`, which is removed if `fill` fails. A file that exists at
/// `path` is replaced. A symbolic link is followed; a device or a folder is an error.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    stage(path, fill)?.commit()
}

/// Writes and syncs a file but leaves it under its temporary name until it is committed.
pub(crate) fn stage(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(path)?;
    let mut buffered = BufWriter::with_capacity(1 << 16, file.file());
    let done = fill(&mut buffered).and_then(|()| buffered.flush());
    drop(buffered);
    done.map_err(|e| file.write_error(e))?;
    file.sync()?;
    Ok(file)
}

/// Returns the file to replace, following symbolic links. A device or a folder is an error.
fn resolve(path: &Path, name: &str) -> Result<PathBuf> {
    if path.file_name().is_none() {
        return Err(Error::file(name, "is not a file name"));
    }
    let target = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => fs::canonicalize(path).map_err(|_| {
            Error::file(
                name,
                "is a symbolic link without a target; remove it or name its target",
            )
        })?,
        _ => path.to_path_buf(),
    };
    match fs::metadata(&target) {
        Ok(meta) if meta.is_dir() => Err(Error::file(name, "is a folder; name a file to write")),
        // Renaming onto a device would replace the device.
        Ok(meta) if !meta.is_file() => Err(Error::file(
            name,
            "is a device or a pipe; the output must be an ordinary file",
        )),
        _ => Ok(target),
    }
}

/// Makes the rename durable. Some file systems cannot sync a folder; that is no error, since the file is in place.
fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(dir) = File::open(folder)
    {
        let _ = dir.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appears_only_when_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut f = AtomicFile::create(&path).unwrap();
        f.file().write_all(b"new").unwrap();
        assert!(!path.exists());
        drop(f);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

        fs::write(&path, "old").unwrap();
        let mut f = AtomicFile::create(&path).unwrap();
        f.file().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        f.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_never_replaced_and_links_are_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let error = AtomicFile::create(Path::new("/dev/null"))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("device"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write_atomically(&link, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_ne!(fs::metadata(&real).unwrap().permissions().mode() & 0o444, 0);
        // A private file stays private.
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&real, |w| w.write_all(b"secret")).unwrap();
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let nowhere = dir.path().join("nowhere");
        symlink(dir.path().join("missing"), &nowhere).unwrap();
        assert!(AtomicFile::create(&nowhere).is_err());
        // The longest name the system allows.
        write_atomically(&dir.path().join("n".repeat(255)), |w| w.write_all(b"x")).unwrap();
    }

    #[test]
    fn a_missing_folder_and_a_folder_as_target_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let error = AtomicFile::create(&dir.path().join("no/such/x"))
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("folder does not exist"),
            "{error}"
        );
        let error = AtomicFile::create(dir.path()).err().unwrap();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }
}
