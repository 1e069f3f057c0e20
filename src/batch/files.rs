//! Files that jobs have in common are opened once.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::spec::resolved;
use crate::error::{Error, Result};
use crate::format::{self, CooFile, OpenMode, TextOptions};
use crate::model::{self, Model};
use crate::progress::Monitor;

/// What a file is, so that another one of the same name is told from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    path: PathBuf,
    place: (u64, u64),
    len: u64,
    changed: i128,
}

impl Identity {
    /// Of a file that is there.
    pub(super) fn of(path: &Path) -> Option<Identity> {
        let meta = std::fs::metadata(path).ok()?;
        let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
        Some(Identity {
            path: resolved(path),
            place: place(&meta),
            len: meta.len(),
            changed: since.map_or(-1, |d| d.as_nanos() as i128),
        })
    }

    /// As a text to compare with.
    pub(super) fn mark(&self) -> String {
        format!(
            "{}-{}-{}-{}",
            self.place.0, self.place.1, self.len, self.changed
        )
    }
}

#[cfg(unix)]
fn place(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn place(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// A file that is opened by the first who wants it, while others wait.
type Slot<T> = Arc<Mutex<Option<Arc<T>>>>;

/// Opened files, by what they are and how their text is read.
#[derive(Default)]
pub(super) struct Opened {
    coo: Mutex<HashMap<(Identity, String), Slot<CooFile>>>,
    models: Mutex<HashMap<Identity, Slot<Model>>>,
}

impl Opened {
    /// A tensor or matrix: binary, or text that is read as `text` says. Text is read once, into a copy.
    pub(super) fn coo(
        &self,
        path: &Path,
        text: &TextOptions,
        monitor: &dyn Monitor,
    ) -> Result<Arc<CooFile>> {
        if model::is_model(path) {
            let name = path.display().to_string();
            return Err(Error::file(name, "is a model, not data"));
        }
        let how = match format::is_coo_file(path)? {
            true => TextOptions::default(),
            false => text.clone(),
        };
        let open = || format::open(path.into(), OpenMode::Mapped, &how, monitor);
        match Identity::of(path) {
            Some(identity) => shared(&self.coo, (identity, format!("{how:?}")), open),
            None => open().map(Arc::new),
        }
    }

    pub(super) fn model(&self, path: &Path) -> Result<Arc<Model>> {
        let open = || model::load(path, OpenMode::Mapped);
        match Identity::of(path) {
            Some(identity) => shared(&self.models, identity, open),
            None => open().map(Arc::new),
        }
    }

    /// Closes files that nobody has, and nobody will want.
    pub(super) fn keep(&self, wanted: impl Fn(&Path) -> bool) {
        let mut coo = locked(&self.coo);
        coo.retain(|(identity, _), slot| wanted(&identity.path) || in_use(slot));
        let mut models = locked(&self.models);
        models.retain(|identity, slot| wanted(&identity.path) || in_use(slot));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn in_use<T>(slot: &Slot<T>) -> bool {
    // Somebody who opens it, or has it.
    Arc::strong_count(slot) > 1
        || locked(slot)
            .as_ref()
            .is_some_and(|f| Arc::strong_count(f) > 1)
}

fn shared<K: std::hash::Hash + Eq, T>(
    all: &Mutex<HashMap<K, Slot<T>>>,
    key: K,
    open: impl FnOnce() -> Result<T>,
) -> Result<Arc<T>> {
    let slot = locked(all).entry(key).or_default().clone();
    let mut file = locked(&slot);
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
    fn a_file_is_opened_once_and_a_new_one_of_its_name_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tns");
        std::fs::write(&path, "1 1 1 1\n2 2 2 2\n").unwrap();
        let (opened, text) = (Opened::default(), TextOptions::default());
        let get = |text: &TextOptions| opened.coo(&path, text, &()).unwrap();
        let (a, b) = (get(&text), get(&text));
        assert!(Arc::ptr_eq(&a, &b));
        // Read in another way it is something else.
        let zero_based = TextOptions {
            zero_based: true,
            ..text.clone()
        };
        assert!(!Arc::ptr_eq(&a, &get(&zero_based)));
        drop((a, b));
        opened.keep(|_| true);
        assert_eq!(locked(&opened.coo).len(), 2);
        let again = get(&text);
        opened.keep(|_| false);
        assert_eq!(locked(&opened.coo).len(), 1);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "1 1 1 1\n2 2 2 2\n3 3 3 3\n").unwrap();
        assert_eq!((again.view().len(), get(&text).view().len()), (2, 3));
        // Waiting for one that cannot be opened does no harm.
        let bad = dir.path().join("bad.tns");
        std::fs::write(&bad, "x\n").unwrap();
        assert!(opened.coo(&bad, &text, &()).is_err() && opened.coo(&bad, &text, &()).is_err());
    }
}
