//! Arguments shared by every command that reads a tensor or matrix, and reading them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use clap::Args;
use s3cmtf::format::{
    self, CooFile, DelimitedOptions, Input, Names, OpenMode, TextFormat, TextOptions,
};
use s3cmtf::{Error, Monitor, Result};

use super::mode_from_one;
use super::progress::Progress;

/// How text is read.
#[derive(Args)]
#[command(next_help_heading = "Reading text")]
pub(super) struct TextArguments {
    /// Format of the text; by default from the extension, else from the content
    #[arg(long, value_name = "FORMAT", value_parser = ["tns", "mtx", "csv", "tsv"])]
    from: Option<String>,

    /// Sizes of the modes, such as 943,1682,8; by default the largest indices
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    dims: Vec<u64>,

    /// Indices in the text count from 0 instead of 1
    #[arg(long)]
    zero_based: bool,

    /// There is no value column; every value is 1
    #[arg(long)]
    no_value: bool,

    /// In .tns: a weight follows the value
    #[arg(long)]
    weighted: bool,

    /// CSV/TSV: the index columns, by name or number from 1; by default all but value and weight
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<String>,

    /// CSV/TSV: the value column; by default the last
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,

    /// CSV/TSV: the weight column
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,

    /// CSV/TSV: columns whose ids are words even if they look like numbers, or `all`
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    strings: Vec<String>,

    /// CSV/TSV: names from an earlier conversion (MODE:FILE), so that the same id gets the same index
    #[arg(long, value_name = "MODE:FILE")]
    names: Vec<String>,

    /// CSV/TSV: the character between columns
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<char>,

    /// CSV/TSV: the first line is data already
    #[arg(long)]
    no_header: bool,
}

impl TextArguments {
    /// Whether names say which rows are meant.
    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    pub(super) fn options(&self) -> Result<TextOptions> {
        let mut names = Vec::new();
        for spec in &self.names {
            add_names(&mut names, spec, "--names")?;
        }
        let delimiter = match self.delimiter {
            Some(c) => Some(u8::try_from(c).ok().filter(u8::is_ascii).ok_or_else(|| {
                Error::Argument(format!("--delimiter {c}: it must be one ASCII character"))
            })?),
            None => None,
        };
        let all_strings = self.strings.iter().any(|s| s == "all");
        Ok(TextOptions {
            format: self.from.as_deref().and_then(TextFormat::from_name),
            dims: (!self.dims.is_empty()).then(|| self.dims.clone()),
            zero_based: self.zero_based,
            value_kind: None,
            no_value: self.no_value,
            weighted: self.weighted,
            delimited: DelimitedOptions {
                columns: self.columns.clone(),
                value: self.value.clone(),
                weight: self.weight.clone(),
                strings: if all_strings {
                    Vec::new()
                } else {
                    self.strings.clone()
                },
                all_strings,
                names,
                delimiter,
                no_header: self.no_header,
            },
        })
    }
}

/// Adds a file of names for a mode, each once.
fn add_names(names: &mut Vec<(usize, PathBuf)>, spec: &str, option: &str) -> Result<()> {
    let (mode, file) = mode_and_file(spec, option)?;
    if names.iter().any(|(before, _)| *before == mode) {
        return Err(Error::Argument(format!(
            "{option} {spec}: mode {} has names already; give one file for each",
            mode + 1
        )));
    }
    names.push((mode, file));
    Ok(())
}

/// Splits `MODE:FILE`; modes count from 1 there and from 0 here.
pub(super) fn mode_and_file(spec: &str, option: &str) -> Result<(usize, PathBuf)> {
    let parsed = spec
        .split_once(':')
        .and_then(|(m, f)| Some((m.parse().ok()?, f)));
    match parsed {
        Some((mode, file)) if !file.is_empty() => Ok((mode_from_one(mode)?, file.into())),
        _ => Err(Error::Argument(format!(
            "{option} {spec}: expected MODE:FILE, such as 1:users.tsv"
        ))),
    }
}

/// Opens a binary COO file, or text through a temporary binary copy.
pub(super) fn open(path: &Path, text: &TextArguments, progress: &Progress) -> Result<CooFile> {
    open_with(path, &text.options()?, progress)
}

/// The same with options of the library.
pub(super) fn open_with(
    path: &Path,
    options: &TextOptions,
    progress: &Progress,
) -> Result<CooFile> {
    if s3cmtf::model::is_model(path) {
        return Err(Error::File {
            file: path.display().to_string(),
            reason: "is a model, not data; `s3cmtf info` shows what it holds".into(),
        });
    }
    format::open(input(path, progress), OpenMode::Mapped, options, progress)
        // A read that Ctrl-C interrupted is a cancellation, not a failure.
        .map_err(|e| {
            if progress.cancelled() {
                Error::Cancelled
            } else {
                e
            }
        })
}

/// How the text among the files of a problem is read; binary ones may stand beside it.
pub(super) struct Mixed {
    pub options: TextOptions,
    /// Of all the files.
    pub any_text: bool,
}

impl Mixed {
    /// Opens one of the files. If none is text the options are wrong, which opening any of them says.
    pub(super) fn open(&self, path: &Path, progress: &Progress) -> Result<CooFile> {
        if self.any_text && !is_text(path)? {
            return open_with(path, &TextOptions::default(), progress);
        }
        open_with(path, &self.options, progress)
    }
}

/// Whether any of some files is text.
pub(super) fn any_text<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<bool> {
    let mut any = false;
    for file in files {
        any |= is_text(file)?;
    }
    Ok(any)
}

fn is_text(path: &Path) -> Result<bool> {
    Ok(path == Path::new("-") || !format::is_coo_file(path)?)
}

/// Sets an option of text from `NAME=VALUE` as typed.
pub(super) fn set_text(options: &mut TextOptions, spec: &str, option: &str) -> Result<()> {
    match spec.split_once('=') {
        // Modes count from 1 here.
        Some(("names", file)) => add_names(&mut options.delimited.names, file, option)?,
        Some((name, value)) => options.set(name, value)?,
        None => {
            return Err(Error::Argument(format!(
                "{option} {spec}: expected NAME=VALUE, such as columns=film,genre"
            )));
        }
    }
    Ok(())
}

/// Whether two names mean one file that exists.
pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The names of each mode of `file` that has any.
pub(super) fn names_of(file: &CooFile) -> Result<Vec<Option<Names>>> {
    (0..file.header().dims.len())
        .map(|mode| Names::load_beside(file.path(), mode))
        .collect()
}

/// A file, or standard input for `-`.
pub(super) fn input(path: &Path, progress: &Progress) -> Input {
    let name = match path == Path::new("-") {
        true => "standard input".into(),
        false => path.display().to_string(),
    };
    match waiting(path, progress) {
        Some(reader) => Input::Reader {
            name,
            reader: Box::new(reader),
        },
        None => Input::Path(path.to_path_buf()),
    }
}

/// What may keep a reader waiting (standard input for `-`, a named pipe) is read so that Ctrl-C ends the wait.
pub(super) fn waiting(path: &Path, progress: &Progress) -> Option<Waiting> {
    if path == Path::new("-") {
        return Some(Waiting::new(|| Ok(io::stdin()), progress.interrupted()));
    }
    let meta = std::fs::metadata(path);
    let waits = meta.is_ok_and(|m| !m.is_file() && !m.is_dir());
    // Opening a pipe waits for its writer.
    let file = path.to_path_buf();
    waits.then(|| Waiting::new(move || std::fs::File::open(file), progress.interrupted()))
}

/// A reader that Ctrl-C interrupts even while it waits for data: another thread reads.
pub(super) struct Waiting {
    pieces: Receiver<io::Result<Vec<u8>>>,
    current: io::Cursor<Vec<u8>>,
    interrupted: Arc<AtomicBool>,
}

impl Waiting {
    fn new<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let (send, pieces) = sync_channel(4);
        std::thread::spawn(move || {
            let mut source = match open() {
                Ok(source) => source,
                Err(e) => {
                    let _ = send.send(Err(e));
                    return;
                }
            };
            loop {
                let mut piece = vec![0; 1 << 18];
                let read = source.read(&mut piece);
                let end = matches!(read, Ok(0));
                let message = read.map(|n| {
                    piece.truncate(n);
                    piece
                });
                let failed = message.is_err();
                if send.send(message).is_err() || end || failed {
                    return;
                }
            }
        });
        Waiting {
            pieces,
            current: io::Cursor::default(),
            interrupted,
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let n = self.current.read(buf)?;
            if n > 0 {
                return Ok(n);
            }
            match self.pieces.recv_timeout(Duration::from_millis(50)) {
                Ok(Ok(piece)) if piece.is_empty() => return Ok(0),
                Ok(Ok(piece)) => self.current = io::Cursor::new(piece),
                Ok(Err(e)) => return Err(e),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
