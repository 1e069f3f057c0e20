//! Opened files, shared by the jobs of a batch.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use s3cmtf::Monitor;
use s3cmtf::format::{self, CooFile, Names, OpenMode, TextOptions};
use s3cmtf::model::{self, Model};
use s3cmtf::{Error, Result};

use super::file_identity::FileIdentity;

/// A file that the first job opens while other jobs wait on the lock.
type Slot<T> = Arc<Mutex<Option<Arc<T>>>>;

/// Opened files, by identity and, for data, by the options of text parsing.
pub(super) struct FileCache {
    /// Whether the checksums of binary data are verified when it is opened.
    verify: bool,
    coo: Mutex<HashMap<(FileIdentity, String), Slot<CooFile>>>,
    models: Mutex<HashMap<FileIdentity, Slot<Model>>>,
}

/// The names that ids of a text mean.
pub(super) struct Reference {
    /// Different for different names.
    pub key: String,
    /// The names, by the modes of the text.
    pub names: Vec<(usize, Arc<Names>)>,
}

impl FileCache {
    pub(super) fn new(verify: bool) -> FileCache {
        FileCache {
            verify,
            coo: Mutex::default(),
            models: Mutex::default(),
        }
    }

    /// Opens a tensor or matrix, in binary or text format. Text is converted once, into a temporary binary file, for each tensor or
    /// model whose names its ids are.
    pub(super) fn coo(
        &self,
        path: &Path,
        text: &TextOptions,
        reference: Option<&Reference>,
        monitor: &dyn Monitor,
    ) -> Result<Arc<CooFile>> {
        if model::is_model(path) {
            let name = path.display().to_string();
            return Err(Error::file(name, "is a model, not data"));
        }
        let is_binary = format::is_coo_file(path)?;
        let mut options = match is_binary {
            true => TextOptions::default(),
            false => text.clone(),
        };
        let mut key = format!("{options:?}");
        if let Some(reference) = reference.filter(|_| !is_binary) {
            key += &reference.key;
            options.delimited.known_names = reference.names.clone();
        }
        let open = || {
            let open = if self.verify {
                format::open
            } else {
                format::open_unverified
            };
            open(path.into(), OpenMode::Mapped, &options, monitor)
        };
        match FileIdentity::of(path) {
            Some(identity) => open_once(&self.coo, (identity, key), open),
            None => open().map(Arc::new),
        }
    }

    /// Opens a model.
    pub(super) fn model(&self, path: &Path) -> Result<Arc<Model>> {
        let open = || model::load(path, OpenMode::Mapped);
        match FileIdentity::of(path) {
            Some(identity) => open_once(&self.models, identity, open),
            None => open().map(Arc::new),
        }
    }

    /// Closes the files that no job uses and that are not `needed` later.
    pub(super) fn close_unused(&self, needed: impl Fn(&Path) -> bool) {
        let mut coo = lock_ignoring_poison(&self.coo);
        coo.retain(|(identity, _), slot| needed(&identity.path) || is_used(slot));
        let mut models = lock_ignoring_poison(&self.models);
        models.retain(|identity, slot| needed(&identity.path) || is_used(slot));
    }
}

/// Locks a mutex whose data stays consistent if a holder panics.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether a job opens the file or has it open.
fn is_used<T>(slot: &Slot<T>) -> bool {
    Arc::strong_count(slot) > 1
        || lock_ignoring_poison(slot)
            .as_ref()
            .is_some_and(|f| Arc::strong_count(f) > 1)
}

fn open_once<K: std::hash::Hash + Eq, T>(
    slots: &Mutex<HashMap<K, Slot<T>>>,
    key: K,
    open: impl FnOnce() -> Result<T>,
) -> Result<Arc<T>> {
    let slot = lock_ignoring_poison(slots).entry(key).or_default().clone();
    let mut file = lock_ignoring_poison(&slot);
    if let Some(file) = file.as_ref() {
        return Ok(file.clone());
    }
    let opened = Arc::new(open()?);
    *file = Some(opened.clone());
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_once_and_reopened_after_it_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tns");
        std::fs::write(&path, "1 1 1 1\n2 2 2 2\n").unwrap();
        let (cache, text) = (FileCache::new(true), TextOptions::default());
        let get = |text: &TextOptions| cache.coo(&path, text, None, &()).unwrap();
        let (a, b) = (get(&text), get(&text));
        assert!(Arc::ptr_eq(&a, &b));
        // Other options of text parsing give other data.
        let zero_based = TextOptions {
            zero_based: true,
            ..text.clone()
        };
        assert!(!Arc::ptr_eq(&a, &get(&zero_based)));
        drop((a, b));
        cache.close_unused(|_| true);
        assert_eq!(lock_ignoring_poison(&cache.coo).len(), 2);
        let again = get(&text);
        cache.close_unused(|_| false);
        assert_eq!(lock_ignoring_poison(&cache.coo).len(), 1);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "1 1 1 1\n2 2 2 2\n3 3 3 3\n").unwrap();
        assert_eq!((again.view().len(), get(&text).view().len()), (2, 3));
        // A file that cannot be opened fails every time, without a deadlock.
        let bad = dir.path().join("bad.tns");
        std::fs::write(&bad, "x\n").unwrap();
        assert!(
            cache.coo(&bad, &text, None, &()).is_err()
                && cache.coo(&bad, &text, None, &()).is_err()
        );
    }
}
