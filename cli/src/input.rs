//! Opens tensors and matrices: arguments for reading text, binary and text files, standard input, names.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::discover::RowNames;
use s3cmtf::format::{
    self, CooFile, CooView, DelimitedOptions, Input, MatchedRole, Names, OpenMode, RowMatch,
    RowMatcher, TextFormat, TextOptions,
};
use s3cmtf::{Error, Monitor, Result};

use crate::interruptible_reader::InterruptibleReader;
use crate::option_arguments::ADVANCED;
use crate::output::{print_note, print_warning};
use crate::progress::Progress;

/// Arguments for reading text, which every command that reads entries has.
#[derive(Args)]
#[command(next_help_heading = "Reading text")]
pub(crate) struct TextArguments {
    /// Format: tns, mtx, csv or tsv [default: by extension or content]
    #[arg(long, value_name = "FORMAT", value_parser = ["tns", "mtx", "csv", "tsv"], hide_possible_values = true)]
    from: Option<String>,

    /// Sizes of the modes, such as 943,1682,8 [default: the largest indices]
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',')]
    dims: Vec<u64>,

    /// Indices count from 0 instead of 1
    #[arg(long)]
    zero_based: bool,

    /// There is no value column; every value is 1
    #[arg(long)]
    no_value: bool,

    /// TNS: a weight follows the value
    #[arg(long)]
    weighted: bool,

    /// CSV/TSV: index columns, name or number [default: all others]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    columns: Vec<String>,

    /// CSV/TSV: value column [default: by its name or numbers]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,

    /// CSV/TSV: weight column
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,

    /// CSV/TSV: columns whose ids are text even if they are numbers, or `all`
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    strings: Vec<String>,

    /// CSV/TSV: names of an earlier conversion, to give ids the same numbers
    #[arg(long, value_name = "MODE:FILE")]
    names: Vec<String>,

    /// CSV/TSV: column separator
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<char>,

    /// CSV/TSV: the first line is data, not a header
    #[arg(long)]
    no_header: bool,
}

impl TextArguments {
    /// Returns the options of the library.
    pub(crate) fn options(&self) -> Result<TextOptions> {
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
                ..DelimitedOptions::default()
            },
        })
    }
}

/// Adds the file of names in `MODE:FILE`. A second file for the same mode is an error.
fn add_names(names: &mut Vec<(usize, PathBuf)>, spec: &str, option: &str) -> Result<()> {
    let (mode, file) = mode_and_file(spec, option)?;
    if names.iter().any(|(named, _)| *named == mode) {
        return Err(Error::Argument(format!(
            "{option} {spec}: mode {} has names already; give one file for each",
            mode + 1
        )));
    }
    names.push((mode, file));
    Ok(())
}

/// Converts a mode as typed, counted from 1, to the count from 0 of the library.
pub(crate) fn mode_from_one(mode: usize) -> Result<usize> {
    mode.checked_sub(1)
        .ok_or_else(|| Error::Argument("mode 0 does not exist; modes are numbered from 1".into()))
}

/// Splits `MODE:FILE` and returns the mode counted from 0. Errors name `option`.
pub(crate) fn mode_and_file(spec: &str, option: &str) -> Result<(usize, PathBuf)> {
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

/// The argument of commands that read entries without writing them to another file, which would have new checksums.
#[derive(Args, Clone, Copy)]
pub(crate) struct VerifyArguments {
    /// Do not verify the checksums of binary COO files
    #[arg(long, help_heading = ADVANCED)]
    no_verify: bool,
}

impl VerifyArguments {
    /// For commands that verify checksums in any case, or report damage instead of failing.
    pub(crate) const LATER: VerifyArguments = VerifyArguments { no_verify: true };
    /// For commands without the argument.
    pub(crate) const NOW: VerifyArguments = VerifyArguments { no_verify: false };

    /// Whether checksums are verified.
    pub(crate) fn is_wanted(self) -> bool {
        !self.no_verify
    }
}

/// Opens a binary COO file and verifies its checksums, or converts text to a temporary binary file and opens that.
pub(crate) fn open(
    path: &Path,
    text: &TextArguments,
    verify: VerifyArguments,
    progress: &Progress,
) -> Result<CooFile> {
    open_with(path, &text.options()?, verify, progress)
}

/// Like [`open`], with the options of the library.
pub(crate) fn open_with(
    path: &Path,
    options: &TextOptions,
    verify: VerifyArguments,
    progress: &Progress,
) -> Result<CooFile> {
    if s3cmtf::model::is_model(path) {
        return Err(Error::File {
            file: path.display().to_string(),
            reason: "is a model, not data; `s3cmtf info` describes it".into(),
        });
    }
    let open = if verify.is_wanted() {
        format::open
    } else {
        format::open_unverified
    };
    open(
        input_of(path, progress),
        OpenMode::Mapped,
        options,
        progress,
    )
    .map_err(|e| cancelled_or(e, progress))
}

/// Returns `Cancelled` if Ctrl-C was pressed, since then it interrupted a read; else `error`.
pub(crate) fn cancelled_or(error: Error, progress: &Progress) -> Error {
    if progress.cancelled() {
        Error::Cancelled
    } else {
        error
    }
}

/// The options for a set of files, some of which may be text and others binary.
pub(crate) struct InputFormat {
    /// Options for the text files.
    pub options: TextOptions,
    /// Whether any file of the set is text.
    pub any_text: bool,
    pub verify: VerifyArguments,
}

impl InputFormat {
    /// Returns the format of files that are read without options of text.
    pub(crate) fn of<'a>(
        files: impl IntoIterator<Item = &'a PathBuf>,
        verify: VerifyArguments,
    ) -> Result<InputFormat> {
        Ok(InputFormat {
            options: TextOptions::default(),
            any_text: any_text(files)?,
            verify,
        })
    }

    /// Opens a file of the set. The options apply to text only; if no file is text, they are passed on to the library,
    /// which rejects them for a binary file.
    pub(crate) fn open(&self, path: &Path, progress: &Progress) -> Result<CooFile> {
        if self.any_text && !is_text(path)? {
            return open_with(path, &TextOptions::default(), self.verify, progress);
        }
        open_with(path, &self.options, self.verify, progress)
    }

    /// Opens entries of the tensor or model, whose rows are matched with its own.
    pub(crate) fn open_entries(
        &self,
        path: &Path,
        matcher: &mut RowMatcher,
        progress: &Progress,
    ) -> Result<MatchedFile> {
        let modes: Vec<Option<usize>> = (0..matcher.order()).map(Some).collect();
        let file = self
            .with_known_names(matcher, &modes)
            .open(path, progress)?;
        MatchedFile::new(file, matcher, &modes, MatchedRole::Entries)
    }

    /// Opens a matrix or a graph of `mode`, whose rows are matched with those of the mode, and its columns with those that `columns`
    /// are in the matcher.
    pub(crate) fn open_coupled(
        &self,
        path: &Path,
        matcher: &mut RowMatcher,
        mode: usize,
        columns: Option<usize>,
        progress: &Progress,
    ) -> Result<MatchedFile> {
        let modes = [Some(mode), columns];
        let format = self.with_known_names(matcher, &modes);
        let file = format.open_matrix(path, progress)?;
        MatchedFile::new(file, matcher, &modes, MatchedRole::Coupled)
    }

    /// Returns the format in which ids of text are names of the rows of these modes.
    fn with_known_names(&self, matcher: &RowMatcher, modes: &[Option<usize>]) -> InputFormat {
        let mut options = self.options.clone();
        options.delimited.known_names = matcher.known_names(modes);
        InputFormat { options, ..*self }
    }

    /// Opens a matrix or a graph of the set. Where a message names an option of reading text, it adds how those of matrices
    /// are set.
    fn open_matrix(&self, path: &Path, progress: &Progress) -> Result<CooFile> {
        self.open(path, progress).map_err(|error| match error {
            Error::Text { file, line, reason } if reason.contains("(option") => Error::Text {
                file,
                line,
                reason: format!("{reason}; for matrices and graphs: --matrix-text NAME=VALUE"),
            },
            other => other,
        })
    }
}

/// An opened file whose rows were matched with those of a tensor or model.
pub(crate) struct MatchedFile {
    pub file: CooFile,
    pub rows: RowMatch,
}

impl MatchedFile {
    /// Matches the rows of a file. Prints how many rows only one side has, and what to check.
    fn new(
        file: CooFile,
        matcher: &mut RowMatcher,
        modes: &[Option<usize>],
        role: MatchedRole,
    ) -> Result<MatchedFile> {
        let rows = matcher.match_file(&file, modes, role)?;
        rows.warnings.iter().for_each(|text| print_warning(text));
        rows.notes.iter().for_each(|text| print_note(text));
        Ok(MatchedFile { file, rows })
    }

    /// Sets the names of the columns of matrix `m`, unless they are set.
    pub(crate) fn set_column_names(&self, columns: &mut RowNames, m: usize) -> Result<()> {
        match self.file.names()?.get(1) {
            Some(Some(names)) if columns.of_mode(m).is_none() => {
                columns.set(m, Names::clone(names))
            }
            _ => Ok(()),
        }
    }

    /// Returns the entries, with the rows of the tensor or model.
    pub(crate) fn view(&self) -> CooView<'_> {
        self.rows.apply(&self.file.view())
    }
}

/// Returns whether any of the files is text.
pub(crate) fn any_text<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<bool> {
    let mut found = false;
    for file in files {
        found |= is_text(file)?;
    }
    Ok(found)
}

fn is_text(path: &Path) -> Result<bool> {
    Ok(path == Path::new("-") || !format::is_coo_file(path)?)
}

/// Sets an option for reading text from `NAME=VALUE` as typed. Errors name `option`.
pub(crate) fn set_text_option(options: &mut TextOptions, spec: &str, option: &str) -> Result<()> {
    match spec.split_once('=') {
        // The library counts modes from 0, the command line from 1.
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

/// Returns whether two paths name the same existing file.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Returns the input for a path; `-` is standard input.
pub(crate) fn input_of(path: &Path, progress: &Progress) -> Input {
    let name = if path == Path::new("-") {
        "standard input".into()
    } else {
        path.display().to_string()
    };
    match stream(path, progress) {
        Some(reader) => Input::Reader {
            name,
            reader: Box::new(reader),
        },
        None => Input::Path(path.to_path_buf()),
    }
}

/// Returns a reader for an input that may wait for data: standard input (`-`) or a named pipe. `None` for other files.
pub(crate) fn stream(path: &Path, progress: &Progress) -> Option<InterruptibleReader> {
    if path == Path::new("-") {
        return Some(InterruptibleReader::new(
            || Ok(io::stdin()),
            progress.interrupted(),
        ));
    }
    let metadata = std::fs::metadata(path);
    let is_stream = metadata.is_ok_and(|m| !m.is_file() && !m.is_dir());
    let file = path.to_path_buf();
    is_stream.then(|| {
        InterruptibleReader::new(move || std::fs::File::open(file), progress.interrupted())
    })
}
