//! The data that `bench` fits.

use std::path::PathBuf;

use s3cmtf::format::{CooFile, CooView, OpenMode, TextOptions, Values};
use s3cmtf::generate::{generate, preset};
use s3cmtf::parallel::available_threads;
use s3cmtf::{Error, Result};
use tempfile::TempDir;

use super::arguments::Arguments;
use crate::input::{InputFormat, VerifyArguments, any_text};
use crate::progress::Progress;

/// The tensor that is fitted.
pub(super) struct BenchData {
    pub name: String,
    pub train: CooFile,
    pub test: Option<CooFile>,
    /// The folder of planted data, removed on drop.
    _folder: Option<TempDir>,
}

impl BenchData {
    /// Opens the files of the user, or generates planted data in a temporary folder.
    pub fn open(a: &Arguments, progress: &Progress) -> Result<BenchData> {
        let options = a.text.options()?;
        if let Some(path) = &a.tensor {
            let format = InputFormat {
                options,
                any_text: any_text(a.tensor.iter().chain(&a.test))?,
                verify: VerifyArguments::NOW,
            };
            let open = |path: &PathBuf| format.open(path, progress);
            return Ok(BenchData {
                name: path.display().to_string(),
                train: open(path)?,
                test: a.test.as_ref().map(open).transpose()?,
                _folder: None,
            });
        }
        if options != TextOptions::default() {
            return Err(Error::Argument(
                "options for reading text require --tensor".into(),
            ));
        }
        let like = a.like.as_deref().unwrap_or("movielens");
        let mut o = preset(like, a.scale)?;
        o.matrices.clear();
        o.write_truth = false;
        o.seed = a.seed;
        o.threads = available_threads();
        let folder = tempfile::tempdir().map_err(|source| Error::Io {
            action: "cannot make a temporary folder".into(),
            source,
        })?;
        let generated = generate(folder.path(), &o, progress)?;
        let open = |path: &PathBuf| CooFile::open(path, OpenMode::Mapped);
        Ok(BenchData {
            name: format!("planted data like {like} at scale {}", a.scale),
            train: open(&generated.train.0)?,
            test: generated.test.as_ref().map(|t| open(&t.0)).transpose()?,
            _folder: Some(folder),
        })
    }
}

/// Entries of a tensor at equal distances.
pub(super) struct EntrySample {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl EntrySample {
    /// Takes `max_entries` entries, or all if there are fewer.
    pub fn new(tensor: &CooView<'_>, max_entries: usize) -> EntrySample {
        let count = tensor.len().min(max_entries);
        let entry = |k: usize| (k as u64 * tensor.len() as u64 / count as u64) as usize;
        EntrySample {
            columns: (0..tensor.order())
                .map(|n| (0..count).map(|k| tensor.column(n)[entry(k)]).collect())
                .collect(),
            values: (0..count).map(|k| tensor.values().get(entry(k))).collect(),
        }
    }

    /// Returns the sample with the name and sizes of the tensor.
    pub fn view(&self, tensor: &CooView<'_>) -> Result<CooView<'_>> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let values = Values::F64(&self.values);
        CooView::new(tensor.name(), tensor.dims(), &columns, values)
    }
}
