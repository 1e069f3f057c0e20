//! Paths that outputs are written to: what they may be, and checks before the work begins.
//!
//! [`check_target`] is for a file that the caller names, [`OutputFolder`] for a folder and the files in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf, is_separator};

use super::temporary_file::folder_of;
use crate::error::{Error, Result};

/// Checks that a file can be written to `path`, as [`write_atomically`](crate::format::write_atomically) and all other functions that write files do: that it
/// names a file, that its folder accepts new files, and that what is there may be replaced. Callers check before long work,
/// so that a wrong path does not lose its result. Nothing is created or changed.
pub fn check_target(path: impl AsRef<Path>) -> Result<()> {
    let name = path.as_ref().display().to_string();
    let target = resolve(path.as_ref(), &name)?;
    let folder = folder_of(&target);
    let own = tempfile::tempfile_in(&folder).map_err(|e| no_new_file(&name, &folder, e))?;
    check_replaceable(&target, &folder, &own, &name)
}

/// Returns the error of a file that cannot be created in `folder`. It names the folder instead of the temporary file, which the
/// user does not know.
pub(super) fn no_new_file(name: &str, folder: &Path, error: io::Error) -> Error {
    // Some folders, such as /proc, refuse new files with the error "not found".
    if error.kind() == io::ErrorKind::NotFound && !folder.is_dir() {
        return Error::file(name, "its folder does not exist; make it first");
    }
    let folder = folder.display();
    let action = format!("cannot write {name}: no file can be made in {folder}");
    Error::io(action, error)
}

/// Returns the file to replace, following symbolic links. What cannot be the name of a file, a device and a folder are errors.
pub(super) fn resolve(path: &Path, name: &str) -> Result<PathBuf> {
    let text = path.as_os_str().as_encoded_bytes();
    if text.is_empty() {
        return Err(Error::argument("an empty path names no file to write"));
    }
    let mut parts = text.rsplit(|&b| b.is_ascii() && is_separator(b.into()));
    if path.file_name().is_none() || matches!(parts.next(), Some(b"" | b"." | b"..")) {
        return Err(Error::file(name, "names a folder; name a file to write"));
    }
    let target = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => fs::canonicalize(path).map_err(|_| {
            Error::file(
                name,
                "is a symbolic link without a target; remove it or name its target",
            )
        })?,
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound => return Ok(path.to_path_buf()),
            io::ErrorKind::InvalidFilename => {
                return Err(Error::file(name, "the name is too long for its folder"));
            }
            io::ErrorKind::NotADirectory => {
                return Err(Error::file(name, "its folder is a file; name a folder"));
            }
            _ => return Err(Error::io(format!("cannot write {name}"), e)),
        },
        Ok(_) => path.to_path_buf(),
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

/// A folder that the caller names for several files. Folders that it creates are removed again if no file is written into them.
pub struct OutputFolder {
    path: PathBuf,
    /// The folders that were created, the outermost first.
    created: Vec<PathBuf>,
}

impl OutputFolder {
    /// Checks that files can be written into a folder, or that it can be created. Nothing is created.
    pub fn check(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let (existing, missing) = existing_part(path, &name)?;
        for folder in &missing {
            let part = existing.join(folder.file_name().unwrap_or_default());
            if let Err(e) = fs::symlink_metadata(part)
                && e.kind() == io::ErrorKind::InvalidFilename
            {
                return Err(Error::file(name, "the name is too long for its folder"));
            }
        }
        tempfile::tempfile_in(&existing)
            .map(drop)
            .map_err(|e| no_new_file(&name, &existing, e))
    }

    /// Creates the folder if it does not exist.
    pub fn create(path: impl AsRef<Path>) -> Result<OutputFolder> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let (_, missing) = existing_part(path, &name)?;
        let mut folder = OutputFolder {
            path: path.to_path_buf(),
            created: Vec::new(),
        };
        for part in missing {
            match fs::create_dir(&part) {
                Ok(()) => folder.created.push(part),
                // Another process was faster.
                Err(_) if part.is_dir() => {}
                Err(e) => return Err(Error::io(format!("cannot create the folder {name}"), e)),
            }
        }
        Ok(folder)
    }

    /// Creates a folder in this one if it does not exist. A symbolic link is an error.
    pub fn subfolder(&self, name: impl AsRef<Path>) -> Result<OutputFolder> {
        let path = self.path.join(name);
        refuse_link(&path)?;
        OutputFolder::create(path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in the folder, after a check that it can be written. A symbolic link is an error: the caller named
    /// the folder, not the file that the link leads to.
    pub fn file(&self, name: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.path.join(name);
        check_derived_target(&path)?;
        Ok(path)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        // Fails for a folder with files.
        self.created
            .iter()
            .rev()
            .all(|folder| fs::remove_dir(folder).is_ok());
    }
}

/// Checks that a file can be written whose name was derived from one that the caller gave. A symbolic link is an error.
pub fn check_derived_target(path: &Path) -> Result<()> {
    refuse_link(path)?;
    check_target(path)
}

fn refuse_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => Err(Error::file(
            path.display().to_string(),
            "is a symbolic link, which is followed only if you name it; remove it, or write elsewhere",
        )),
        _ => Ok(()),
    }
}

/// Splits the path of a folder: the nearest existing folder, and the folders that are missing, the outermost first.
fn existing_part(path: &Path, name: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
    if path.as_os_str().is_empty() {
        return Err(Error::argument(
            "an empty path names no folder to write into",
        ));
    }
    let mut missing = Vec::new();
    let mut current = path;
    loop {
        match fs::metadata(current) {
            Ok(meta) if meta.is_dir() => break,
            Ok(_) => {
                let file = current.display().to_string();
                return Err(Error::file(
                    file,
                    "is no folder; name a folder to write into",
                ));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(current).is_ok() {
                    let reason = "is a symbolic link without a target; remove it or name a folder";
                    return Err(Error::file(current.display().to_string(), reason));
                }
            }
            // A part before it is a file, which is found next.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {}
            Err(e) if e.kind() == io::ErrorKind::InvalidFilename => {
                return Err(Error::file(name, "the name is too long for its folder"));
            }
            Err(e) => return Err(Error::io(format!("cannot write into {name}"), e)),
        }
        missing.push(current.to_path_buf());
        match current.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => current = parent,
            _ => {
                current = Path::new(".");
                break;
            }
        }
    }
    missing.reverse();
    Ok((current.to_path_buf(), missing))
}

#[cfg(not(unix))]
fn check_replaceable(_: &Path, _: &Path, _: &fs::File, _: &str) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
use replaceable::check as check_replaceable;

/// Files that cannot be replaced although their folder accepts new ones.
#[cfg(unix)]
mod replaceable {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use crate::error::{Error, Result};

    /// In a folder with this permission, such as /tmp, only the owner of a file may replace it.
    const STICKY: u32 = 0o1000;

    /// Returns an error if a rename could not replace `target`. `own` is a file that this process has created in its folder.
    pub(super) fn check(target: &Path, folder: &Path, own: &File, name: &str) -> Result<()> {
        let (Ok(meta), Ok(folder), Ok(own_meta)) =
            (fs::metadata(target), fs::metadata(folder), own.metadata())
        else {
            return Ok(());
        };
        let user = own_meta.uid();
        if folder.mode() & STICKY != 0 && ![0, meta.uid(), folder.uid()].contains(&user) {
            return Err(Error::file(
                name,
                "belongs to another user, whose files cannot be replaced in this folder; write to another file",
            ));
        }
        // Without a wait for another process that has a lease on it.
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(target);
        match opened {
            // Permissions to write into a file are not needed to replace it.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && !is_immutable(&e) => Ok(()),
            Err(e) if is_immutable(&e) || e.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Err(Error::io(format!("cannot write {name}"), e))
            }
            Ok(file) if is_mount_point(&file, own) => Err(Error::file(
                name,
                "is a mount point, which cannot be replaced; write to another file",
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether a file could not be opened because of its attributes, which its owner and root must respect too.
    fn is_immutable(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EPERM)
    }

    /// Returns whether a file is on another mount than one of its folder, on Linux.
    fn is_mount_point(file: &File, own: &File) -> bool {
        match (mount(file), mount(own)) {
            (Some(file), Some(own)) => file != own,
            _ => false,
        }
    }

    fn mount(file: &File) -> Option<String> {
        use std::os::fd::AsRawFd;
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
        let line = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        line.map(|id| id.trim().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::format::AtomicFile;

    #[test]
    fn paths_that_cannot_be_written_are_found_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", dir.path().display());
        fs::write(at("file"), "old").unwrap();
        fs::create_dir(at("folder")).unwrap();
        for (path, words) in [
            (at("new/"), "names a folder"),
            (at("new/."), "names a folder"),
            (at("file/"), "names a folder"),
            (at("folder/.."), "names a folder"),
            (String::new(), "empty path"),
            (at("folder"), "is a folder"),
            (at("no/such/x"), "folder does not exist"),
            (at("file/x"), "its folder is a file"),
            (at(&"n".repeat(256)), "too long"),
        ] {
            let error = check_target(&path).unwrap_err();
            assert!(error.to_string().contains(words), "{path}: {error}");
            assert_eq!(error.kind(), ErrorKind::BadInput, "{path}");
            let written = AtomicFile::create(path.as_ref()).err().unwrap();
            assert_eq!(written.to_string(), error.to_string());
        }
        for path in [
            at("file"),
            at("new"),
            at("folder/../new"),
            at(&"n".repeat(255)),
        ] {
            check_target(&path).unwrap();
        }
        // The check leaves no trace.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert_eq!(fs::read(at("file")).unwrap(), b"old");
    }

    #[test]
    fn folders_are_checked_and_created_ones_are_removed_unless_used() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", dir.path().display());
        fs::write(at("file"), "old").unwrap();
        for (path, words) in [
            (String::new(), "empty path"),
            (at("file"), "is no folder"),
            (at("file/x/y"), "is no folder"),
            (at(&"n".repeat(256)), "too long"),
            (at(&format!("new/{}", "n".repeat(256))), "too long"),
        ] {
            let error = OutputFolder::check(&path).unwrap_err().to_string();
            assert!(error.contains(words), "{path}: {error}");
            assert!(OutputFolder::create(&path).is_err());
        }
        OutputFolder::check(at("a/b/")).unwrap();
        OutputFolder::check(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(OutputFolder::create(at("a/b/")).unwrap());
        assert!(!dir.path().join("a").exists());
        let folder = OutputFolder::create(at("a/b/")).unwrap();
        fs::write(folder.file("x").unwrap(), "new").unwrap();
        drop(folder);
        assert!(dir.path().join("a/b/x").exists());
        drop(OutputFolder::create(at("a/c")).unwrap());
        assert!(dir.path().join("a").exists() && !dir.path().join("a/c").exists());
    }

    #[cfg(unix)]
    #[test]
    fn files_in_a_folder_are_no_links() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("real"), "old").unwrap();
        symlink(path("real"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        // The folder itself may be a link.
        symlink(dir.path(), path("self")).unwrap();
        let folder = OutputFolder::create(path("self")).unwrap();
        for (name, words) in [
            ("link", "symbolic link"),
            ("dangling", "symbolic link"),
            ("folder", "is a folder"),
        ] {
            let error = folder.file(name).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        folder.file("real").unwrap();
        let error = OutputFolder::check(path("dangling")).unwrap_err();
        assert!(error.to_string().contains("without a target"), "{error}");
    }
}
