//! Removes temporary files of processes that were killed.
//!
//! A file is removed only if all of this holds: its name is one that this library makes (form and checksum, so that no
//! file of a user has it by accident), it is a regular file with one name, it belongs to the owner of the files that this
//! process makes, and nobody holds its lock. The lock is held while the file is removed. A process that has just created
//! the file and not locked it yet finds after locking that the file is gone, and creates another.
//!
//! On a network file system whose locks are local to each machine (NFS mounted with `nolock` or `local_lock`), the
//! temporary file of a process on another machine looks unlocked; removed, it makes that write fail with an error.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::temporary_file::{is_at, is_temporary_name};

/// The folders that this process has searched. Checkpoints are written often, and a folder may have millions of files.
static SEARCHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Folders that are remembered. A process that writes into more searches some of them again.
const MAX_REMEMBERED: usize = 1024;

/// Removes the leftovers in a folder, given by its absolute path, if this process has not done so before. `own` is a file
/// that it has created there. Errors are ignored: a leftover is only a waste of space.
pub(super) fn remove_once(folder: &Path, own: &File) {
    remove_unless_searched(folder, own, &SEARCHED);
}

fn remove_unless_searched(folder: &Path, own: &File, searched: &Mutex<BTreeSet<PathBuf>>) {
    // Without a wait, since another thread may hold the lock for ever: one that did not survive a fork. The search is then
    // left to a later write.
    let Ok(mut searched) = searched.try_lock() else {
        return;
    };
    if searched.len() >= MAX_REMEMBERED {
        searched.clear();
    }
    let is_new = searched.insert(folder.to_path_buf());
    drop(searched);
    if is_new && let Ok(meta) = own.metadata() {
        remove(folder, meta.uid());
    }
}

fn remove(folder: &Path, owner: u32) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary_name(&entry.file_name()) && entry.file_type().is_ok_and(|t| t.is_file()) {
            remove_unlocked(&entry.path(), owner);
        }
    }
}

fn remove_unlocked(path: &Path, owner: u32) {
    let mut options = OpenOptions::new();
    // The entry may have been replaced since it was read: follow no link, wait for no pipe.
    options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    // Some network file systems lock only files that are open for writing.
    let writable = options.clone().write(true).open(path);
    let Ok(file) = writable.or_else(|_| options.open(path)) else {
        return;
    };
    let is_removable = file
        .metadata()
        .is_ok_and(|m| m.is_file() && m.nlink() == 1 && m.uid() == owner);
    if is_removable && file.try_lock().is_ok() && is_at(&file, path) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::atomic::{AtomicFile, write_atomically};
    use crate::format::temporary_file::TemporaryFile;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Makes the leftover of a process that died while it wrote `target`.
    fn leave(target: &Path) -> PathBuf {
        let folder = target.parent().unwrap();
        let before = names(folder);
        let mut temporary = TemporaryFile::create(target).unwrap();
        temporary.file_mut().write_all(b"part").unwrap();
        let name = names(folder)
            .into_iter()
            .find(|n| !before.contains(n))
            .unwrap();
        let path = folder.join(name);
        // The same name without a lock, as the death of the process leaves it.
        let bytes = fs::read(&path).unwrap();
        drop(temporary);
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn first_write_into_a_folder_removes_leftovers() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        leave(&dir.path().join("model.s3m"));
        let read_only = leave(&dir.path().join("data.coo"));
        fs::set_permissions(&read_only, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        let own = File::create(dir.path().join("own")).unwrap();
        let searched = Mutex::default();
        remove_unless_searched(dir.path(), &own, &searched);
        assert_eq!(names(dir.path()), ["own"]);
        // The folder is searched once.
        let later = leave(&dir.path().join("model.s3m"));
        remove_unless_searched(dir.path(), &own, &searched);
        assert!(later.exists());
    }

    #[test]
    fn files_of_others_and_files_in_use_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let in_use = AtomicFile::create(&path("in-use")).unwrap();
        let linked = leave(&path("linked"));
        fs::hard_link(&linked, path("kept")).unwrap();
        let link = leave(&path("link"));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(path("kept"), &link).unwrap();
        let folder = leave(&path("folder"));
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        for name in [".tmp", ".a.tmp", ".m.s3m.Ab12Xy.tmp", ".a.s3cmtf.tmp"] {
            fs::write(path(name), "mine").unwrap();
        }
        fs::write(path(".m.0123456789abcdef01234567.s3cmtf.tmp"), "mine").unwrap();
        let before = names(dir.path());
        let meta = fs::metadata(dir.path()).unwrap();
        remove(dir.path(), meta.uid());
        assert_eq!(names(dir.path()), before);
        // A leftover of another user is kept, too.
        let leftover = leave(&path("leftover"));
        remove(dir.path(), meta.uid() + 1);
        assert!(leftover.exists());
        remove(dir.path(), meta.uid());
        assert_eq!(names(dir.path()), before);
        in_use.commit().unwrap();
    }

    #[test]
    fn concurrent_writers_and_removers_lose_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let uid = fs::metadata(dir.path()).unwrap().uid();
        let writers_left = std::sync::atomic::AtomicUsize::new(2);
        use std::sync::atomic::Ordering;
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (dir, left) = (dir.path(), &writers_left);
                scope.spawn(move || {
                    for i in 0..300 {
                        let path = dir.join(format!("{writer}-{i}"));
                        write_atomically(&path, |w| w.write_all(b"done")).unwrap();
                        assert_eq!(fs::read(&path).unwrap(), b"done");
                    }
                    left.fetch_sub(1, Ordering::Relaxed);
                });
            }
            scope.spawn(|| {
                while writers_left.load(Ordering::Relaxed) > 0 {
                    remove(dir.path(), uid);
                }
            });
        });
        assert_eq!(names(dir.path()).len(), 600);
    }
}
