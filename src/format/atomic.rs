//! Files that appear complete or not at all.
//!
//! A file is written under a temporary name in the folder of its final one, synced to disk and renamed. Unnamed files
//! (`O_TMPFILE`) would leave nothing behind when a process is killed, but not all file systems have them, and they cannot
//! replace an existing file. `leftovers` removes the temporary files of processes that were killed.
//!
//! A symbolic link is followed if the caller named it. Names of other files are derived from the caller's, such as those of names
//! of rows; a link of such a name may belong to anyone and is never followed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::leftovers;
use super::output_target::{no_new_file, resolve};
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
    /// Creates the temporary file beside the target. A link is followed, and a device or a folder is an error.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let target = resolve(path, &name)?;
        AtomicFile::beside(&target, name)
    }

    /// Creates the temporary file of a path that the caller did not name. What is at the path is neither followed nor looked at:
    /// before the commit it has to be renamed if it is to be kept.
    pub(crate) fn create_companion(path: &Path) -> Result<Self> {
        AtomicFile::beside(path, path.display().to_string())
    }

    fn beside(target: &Path, name: String) -> Result<Self> {
        // The file must not move if the working directory of the process changes.
        let target = std::path::absolute(target).unwrap_or_else(|_| target.to_path_buf());
        let file = TemporaryFile::create(&target)
            .map_err(|e| no_new_file(&name, &folder_of(&target), e))?;
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

/// Writes several files, which appear under their paths together, at the end, as those of [`write_atomically`] do.
pub fn write_all_atomically(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    let staged = files
        .iter()
        .map(|(path, bytes)| stage(path, |w| w.write_all(bytes)));
    let staged: Vec<AtomicFile> = staged.collect::<Result<_>>()?;
    staged.into_iter().try_for_each(AtomicFile::commit)
}

/// Writes and syncs a file but leaves it under its temporary name until it is committed.
pub(crate) fn stage(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<AtomicFile> {
    fill_and_sync(AtomicFile::create(path)?, fill)
}

/// Like [`stage`], for a path that the caller did not name.
pub(crate) fn stage_companion(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<AtomicFile> {
    fill_and_sync(AtomicFile::create_companion(path)?, fill)
}

fn fill_and_sync(
    mut file: AtomicFile,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<AtomicFile> {
    let mut buffered = BufWriter::with_capacity(1 << 16, file.file());
    let done = fill(&mut buffered).and_then(|()| buffered.flush());
    drop(buffered);
    done.map_err(|e| file.write_error(e))?;
    file.sync()?;
    Ok(file)
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
    use std::fs;

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

    #[cfg(unix)]
    #[test]
    fn companions_do_not_follow_links() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let staged = stage_companion(&link, |w| w.write_all(b"new")).unwrap();
        staged.commit().unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"old");
        assert_eq!(fs::read(&link).unwrap(), b"new");
    }
}
