//! Converts text to binary COO files and opens any supported input.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batches::for_each_valid_batch;
use super::coo_file::CooFile;
use super::coo_view::{CooView, Values};
use super::coo_writer::{CooWriter, Dims, StagedCoo};
use super::file_bytes::OpenMode;
use super::header::{Header, MAGIC, ValueKind};
use super::names::{self, ModeNames, Names};
use super::summary::count_rows;
use super::text::{
    self, Input, Sink, SinkTarget, SkippedLines, TextOptions, TextSource, looks_missing,
};
use crate::error::{Error, Result};
use crate::progress::Monitor;

/// The files that [`convert`] wrote.
#[derive(Debug)]
pub struct ConversionReport {
    /// The header of the new file.
    pub header: Header,
    /// Names files written beside it: mode (from 0), path, number of names.
    pub names: Vec<(usize, PathBuf, usize)>,
    /// Lines of the text that have no entry.
    pub skipped: SkippedLines,
    /// What is probably not as intended, and the option that would help.
    pub warnings: Vec<String>,
}

/// Reads `input` and writes the binary COO file `output`, with a names file beside it for each mode
/// whose ids are strings. Memory does not grow with the input. The output appears complete or not at all.
///
/// The input may also be a binary COO file, to store its values in another precision or to state its sizes.
pub fn convert(
    input: Input,
    output: &Path,
    options: &TextOptions,
    monitor: &dyn Monitor,
) -> Result<ConversionReport> {
    refuse_text_name(output)?;
    if let Input::Path(path) = &input
        && is_coo_file(path)?
    {
        options.require_only_dims(path)?;
        let file = CooFile::open(path, OpenMode::Mapped)?;
        let names = names::carry(path, &output.with_extension(""), file.header().dims.len())?;
        let finished = rewrite(&file, output, options, monitor)?;
        let renamed = names::commit_all(names)?;
        return Ok(ConversionReport {
            header: finished.commit()?,
            names: Vec::new(),
            skipped: SkippedLines::default(),
            warnings: renamed.iter().map(|p| Names::renamed_warning(p)).collect(),
        });
    }
    let source = match &input {
        Input::Path(path) => Some(path.clone()),
        Input::Reader { .. } => None,
    };
    let tensor = options
        .delimited
        .rows_of
        .as_ref()
        .map(|(_, path)| path.as_path());
    let (finished, result) = import(
        input,
        SinkTarget::Named(output),
        options,
        ValueKind::F32,
        monitor,
    )?;
    let mut staged = Vec::new();
    let mut written = Vec::new();
    for (mode, list) in &result.names {
        let path = names::path_for(output, *mode);
        refuse_same(source.as_deref(), &path)?;
        staged.push(list.stage(&path)?);
        written.push((*mode, path, list.len()));
    }
    refuse_same(source.as_deref(), output)?;
    refuse_same(tensor, output)?;
    // Names before data: a data file never appears without its names.
    let mut renamed = names::commit_all(staged)?;
    let kept: Vec<usize> = written.iter().map(|w| w.0).collect();
    renamed.extend(names::set_aside_stale(output, &kept)?);
    let header = finished.commit()?;
    let mut warnings: Vec<String> = renamed.iter().map(|p| Names::renamed_warning(p)).collect();
    warnings.extend(missing_names(&result.names));
    if !options.no_value && options.delimited.value.is_none() {
        warnings.extend(values_like_times(output)?);
    }
    warnings.extend(sparse_modes(
        output,
        &header,
        &kept,
        &result.columns,
        monitor,
    )?);
    Ok(ConversionReport {
        header,
        names: written,
        skipped: result.skipped,
        warnings,
    })
}

/// A mode with fewer rows than this is never remarked on.
const MIN_SPARSE_DIM: u64 = 100_000;
/// Rows of a mode for each one that occurs, from which on the indices look like times or identifiers.
const SPARSE_RATIO: u64 = 20;
/// Size from which on the rows that occur are counted even if there are enough entries for all.
const LARGE_DIM: u64 = 10_000_000;
/// Smallest index that looks like a time in epoch seconds: 1973-03-03.
const MIN_EPOCH_SECONDS: u32 = 100_000_000;

/// Returns a remark on each mode without names whose indices look like times or identifiers: almost no row below the
/// largest index occurs. `columns` are the names of the columns, if the text has any.
fn sparse_modes(
    file: &Path,
    header: &Header,
    named: &[usize],
    columns: &[String],
    monitor: &dyn Monitor,
) -> Result<Vec<String>> {
    let mut remarks = Vec::new();
    for (n, &dim) in header.dims.iter().enumerate() {
        let few_entries = header.count.saturating_mul(SPARSE_RATIO) < dim;
        let suspicious = dim >= MIN_SPARSE_DIM && (few_entries || dim >= LARGE_DIM);
        if !header.dims_inferred || named.contains(&n) || !suspicious {
            continue;
        }
        let opened = CooFile::open(file, OpenMode::Mapped)?;
        let (rows, _) = count_rows(&opened.view(), n, monitor)?;
        let used = rows.len() as u64;
        if used.saturating_mul(SPARSE_RATIO) >= dim {
            continue;
        }
        let column = columns.get(n).map_or("COLUMN", String::as_str);
        let of_column = match columns.get(n) {
            Some(column) => format!(" (column {column})"),
            None => String::new(),
        };
        let is_time = rows.indices().next() >= Some(MIN_EPOCH_SECONDS);
        let (kind, remedy) = if is_time {
            (
                "times in seconds",
                format!("--time {column}:month makes a row of each month"),
            )
        } else {
            (
                "identifiers",
                format!("--strings {column} numbers those that occur"),
            )
        };
        let only_csv = if columns.is_empty() {
            " in CSV or TSV"
        } else {
            ""
        };
        remarks.push(format!(
            "mode {}{of_column} has {dim} rows, of which {used} occur; if these are {kind}, {remedy}{only_csv}",
            n + 1
        ));
    }
    Ok(remarks)
}

/// Returns a remark on the first row of each mode whose name, or the category in it, often marks a missing field.
fn missing_names(names: &[(usize, Names)]) -> impl Iterator<Item = String> {
    names.iter().filter_map(|(mode, names)| {
        let (_, name) = names.iter().find(|(_, name)| {
            let category = name.rsplit_once('=').map_or(*name, |(_, category)| category);
            looks_missing(category)
        })?;
        Some(format!(
            "mode {} has a row called {name:?}; if this marks a missing field, set --missing to its text",
            mode + 1
        ))
    })
}

/// The first values that are examined for a remark on them.
const MAX_EXAMINED_VALUES: usize = 1000;

/// Returns a remark if the values, whose column was not named, look like times in seconds or milliseconds since 1970.
fn values_like_times(file: &Path) -> Result<Option<String>> {
    let opened = CooFile::open(file, OpenMode::Mapped)?;
    let values = opened.view().values();
    let count = values.len().min(MAX_EXAMINED_VALUES);
    let is_time = |x: f64| x >= f64::from(MIN_EPOCH_SECONDS) && x.fract() == 0.0;
    if count == 0 || !(0..count).all(|i| is_time(values.get(i))) {
        return Ok(None);
    }
    Ok(Some(
        "the values look like times in seconds or milliseconds since 1970; if another column has the values, read the text as \
         CSV or TSV and name it: --value COLUMN (with --no-header if there is no header)"
            .into(),
    ))
}

/// Returns an error if the binary output has the extension of a text format.
fn refuse_text_name(output: &Path) -> Result<()> {
    let extension = output
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    if ["gz", "csv", "tsv", "tns", "mtx", "txt"].contains(&extension.as_str()) {
        return Err(Error::file(
            output.display().to_string(),
            format!("the output is binary; .{extension} would say it is text, call it .coo"),
        ));
    }
    Ok(())
}

/// Returns an error if `output` is the input itself, which it would replace.
pub(crate) fn refuse_same(input: Option<&Path>, output: &Path) -> Result<()> {
    let same = input.is_some_and(
        |input| match (input.canonicalize(), output.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
    );
    if same {
        return Err(Error::file(
            output.display().to_string(),
            "is the input itself; write to another file",
        ));
    }
    Ok(())
}

/// Opens any supported input. The checksums of a binary file are verified, which reads it once. Text is converted to an
/// unnamed binary file in the system's temporary folder, which is removed when it is closed; its values have 64 bits
/// unless the options say otherwise.
pub fn open(
    input: Input,
    mode: OpenMode,
    options: &TextOptions,
    monitor: &dyn Monitor,
) -> Result<CooFile> {
    let file = open_unverified(input, mode, options, monitor)?;
    file.verify(monitor)?;
    Ok(file)
}

/// Opens any supported input like [`open`], but does not verify the checksums of a binary file.
pub fn open_unverified(
    input: Input,
    mode: OpenMode,
    options: &TextOptions,
    monitor: &dyn Monitor,
) -> Result<CooFile> {
    let path = match &input {
        Input::Path(path) => path.clone(),
        Input::Reader { name, .. } => PathBuf::from(name),
    };
    if let Input::Path(path) = &input
        && is_coo_file(path)?
    {
        options.require_only_dims(path)?;
        let file = CooFile::open(path, mode)?;
        return match &options.dims {
            Some(dims) if *dims != file.header().dims => Err(Error::file(
                file.name(),
                format!(
                    "has sizes {:?}, not {dims:?}; convert it to change them",
                    file.header().dims
                ),
            )),
            _ => Ok(file),
        };
    }
    let name = path.display().to_string();
    options.delimited.require_plain(&name)?;
    let (finished, result) = import(
        input,
        SinkTarget::Unnamed(&name),
        options,
        ValueKind::F64,
        monitor,
    )?;
    // The rows of other text have numbers, of which files beside it may have the names.
    let file = CooFile::from_file(finished.into_file(), &path, name, mode)?;
    let names = result.is_delimited.then(|| {
        let mut names: ModeNames = vec![None; file.header().dims.len()];
        for (mode, list) in result.names {
            names[mode] = Some(Arc::new(list));
        }
        names
    });
    let given = options.delimited.names.iter().map(|(mode, _)| *mode);
    Ok(file.into_temporary(names, given.collect()))
}

/// Reads text into a binary COO file, which is not committed yet.
fn import(
    input: Input,
    target: SinkTarget<'_>,
    options: &TextOptions,
    default_kind: ValueKind,
    monitor: &dyn Monitor,
) -> Result<(StagedCoo, text::TextResult)> {
    let source = TextSource::open(input)?;
    if source.head.starts_with(&MAGIC) {
        return Err(Error::file(
            source.name,
            "is binary; it can only be read from an ordinary file",
        ));
    }
    let name = source.name.clone();
    let mut sink = Sink::new(target, options.value_kind.unwrap_or(default_kind));
    let result = text::read(source, options, &mut sink, monitor)?;
    let Some(mut writer) = sink.into_writer()? else {
        return Err(Error::file(
            name,
            "holds no entries, so the sizes of the modes are unknown; state them (option dims) if that is right",
        ));
    };
    for (mode, table) in &result.renumbered {
        writer.renumber(*mode, table)?;
    }
    let dims = match options.dims.as_ref().or(result.dims.as_ref()) {
        Some(dims) => Dims::Stated(dims.clone()),
        None if result.renumbered.is_empty() => Dims::Inferred,
        None => {
            // All bins are rows, also those behind the last one that occurs.
            let mut dims = writer.inferred_dims();
            for (mode, _) in &result.renumbered {
                let names = result.names.iter().find(|(named, _)| named == mode);
                let bins = names.map_or(0, |(_, names)| names.len() as u64);
                dims[*mode] = dims[*mode].max(bins);
            }
            Dims::InferredEarlier(dims)
        }
    };
    Ok((writer.stage(dims)?, result))
}

/// Returns whether the file is binary COO, by its extension or by its first bytes.
pub fn is_coo_file(path: &Path) -> Result<bool> {
    if path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("coo"))
    {
        return Ok(true);
    }
    // Reading the first bytes of a pipe would consume them.
    if !std::fs::metadata(path)
        .map_err(|e| Error::cannot_open(path, e))?
        .is_file()
    {
        return Ok(false);
    }
    let mut file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
    let mut head = [0; MAGIC.len()];
    Ok(file.read_exact(&mut head).is_ok() && head == MAGIC)
}

/// Copies a binary file with the precision and sizes of `options`.
fn rewrite(
    file: &CooFile,
    output: &Path,
    options: &TextOptions,
    monitor: &dyn Monitor,
) -> Result<StagedCoo> {
    file.verify(monitor)?;
    let dims = match &options.dims {
        Some(dims) => Dims::Stated(dims.clone()),
        None => Dims::from_header(file.header()),
    };
    stage(&file.view(), output, options.value_kind, dims, monitor)
}

/// Writes entries as a binary COO file, with values of `kind` or of their own precision. The output appears complete or
/// not at all.
pub fn write(
    view: &CooView<'_>,
    output: &Path,
    kind: Option<ValueKind>,
    monitor: &dyn Monitor,
) -> Result<Header> {
    refuse_text_name(output)?;
    let dims = view.dims().to_vec();
    let dims = if view.dims_inferred() {
        Dims::InferredEarlier(dims)
    } else {
        Dims::Stated(dims)
    };
    stage(view, output, kind, dims, monitor)?.commit()
}

fn stage(
    view: &CooView<'_>,
    output: &Path,
    kind: Option<ValueKind>,
    dims: Dims,
    monitor: &dyn Monitor,
) -> Result<StagedCoo> {
    let kind = |own: Values<'_>| kind.unwrap_or(own.kind());
    let mut writer = CooWriter::create(
        output,
        view.order(),
        kind(view.values()),
        view.weights().map(kind),
        Some(view.len() as u64),
    )?;
    for_each_valid_batch(view, monitor, "writing", &mut |columns, range| {
        let weights = view.weights().map(|w| w.slice(range.clone()));
        writer.push(columns, view.values().slice(range), weights)
    })?;
    writer.stage(dims)
}
