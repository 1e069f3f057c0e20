//! Turning text into binary COO files and back.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::atomic::AtomicFile;
use super::coo::{CooFile, CooView, Values};
use super::layout::{Header, MAGIC, ValueKind};
use super::memory::OpenMode;
use super::names;
use super::text::{self, Input, Sink, Source, TextOptions, WriterPlan};
use super::write::{CooWriter, Dims, Finished};
use crate::error::{Error, Result};
use crate::monitor::{Monitor, step};

/// Entries handled between two looks at the monitor.
const BATCH: usize = 1 << 16;

/// What [`convert`] made.
#[derive(Debug)]
pub struct Converted {
    /// The header of the new file.
    pub header: Header,
    /// The names files written beside it: mode (from 0), path, number of names.
    pub names: Vec<(usize, PathBuf, usize)>,
}

/// Reads `input` and writes the binary COO file `output`, with a names file beside it for each mode
/// whose ids are words. Streams: memory does not grow with the input. The output appears complete
/// or not at all.
///
/// The input may also be a binary COO file, to store its values as another kind or state its sizes.
pub fn convert(
    input: Input,
    output: &Path,
    options: &TextOptions,
    value_kind: ValueKind,
    monitor: &dyn Monitor,
) -> Result<Converted> {
    if let Input::Path(path) = &input
        && is_binary(path)?
    {
        let file = CooFile::open(path, OpenMode::Mapped)?;
        let header = rewrite(&file.view(), output, options, value_kind, monitor)?;
        return Ok(Converted {
            header,
            names: Vec::new(),
        });
    }
    let (finished, result) = import(
        input,
        WriterPlan::Named(output),
        options,
        value_kind,
        monitor,
    )?;
    let mut staged = Vec::new();
    let mut written = Vec::new();
    for (mode, list) in &result.names {
        let path = names::path_for(output, *mode);
        staged.push(list.stage(&path)?);
        written.push((*mode, path, list.len()));
    }
    // The names first: where the data is, its names are.
    for file in staged {
        file.commit()?;
    }
    Ok(Converted {
        header: finished.commit()?,
        names: written,
    })
}

/// Opens any supported file: binary COO as it is, text through a binary copy that has no name and
/// goes away when it is closed (in the system's temporary folder).
pub fn open(
    path: &Path,
    mode: OpenMode,
    options: &TextOptions,
    monitor: &dyn Monitor,
) -> Result<CooFile> {
    if is_binary(path)? {
        return CooFile::open(path, mode);
    }
    let name = path.display().to_string();
    // Words for ids would get numbers of their own in every file, so that two files of one problem
    // would not mean the same rows; `convert` keeps the names.
    let (finished, result) = import(
        Input::from(path),
        WriterPlan::Unnamed(&name),
        options,
        ValueKind::F64,
        monitor,
    )?;
    if let Some((mode, _)) = result.names.first() {
        return Err(Error::file(
            name,
            format!(
                "the ids of mode {} are words; convert the file first, so that their names are kept",
                mode + 1
            ),
        ));
    }
    CooFile::from_file(finished.into_file(), path, name, mode)
}

fn import(
    input: Input,
    plan: WriterPlan<'_>,
    options: &TextOptions,
    value_kind: ValueKind,
    monitor: &dyn Monitor,
) -> Result<(Finished, text::TextResult)> {
    let source = Source::open(input)?;
    if source.head.starts_with(&MAGIC) {
        return Err(Error::file(
            source.name,
            "is binary; it can only be read from an ordinary file",
        ));
    }
    let name = source.name.clone();
    let mut sink = Sink::new(plan, value_kind);
    let result = text::read(source, options, &mut sink, monitor)?;
    let Some(writer) = sink.into_writer()? else {
        return Err(Error::file(
            name,
            "holds no entries, so the sizes of the modes are unknown; state them (--dims) if that is right",
        ));
    };
    let dims = match options.dims.as_ref().or(result.dims.as_ref()) {
        Some(dims) => Dims::Stated(dims.clone()),
        None => Dims::Inferred,
    };
    Ok((writer.stage(dims)?, result))
}

/// Whether the file is meant to be binary COO: by its extension or by its first bytes.
fn is_binary(path: &Path) -> Result<bool> {
    if path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("coo"))
    {
        return Ok(true);
    }
    let mut file = File::open(path).map_err(|e| Error::opening(path, e))?;
    // A pipe must not lose its first bytes to a look.
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Ok(false);
    }
    let mut head = [0; MAGIC.len()];
    Ok(file.read_exact(&mut head).is_ok() && head == MAGIC)
}

fn rewrite(
    view: &CooView<'_>,
    output: &Path,
    options: &TextOptions,
    value_kind: ValueKind,
    monitor: &dyn Monitor,
) -> Result<Header> {
    let weight_kind = view.weights().map(|_| value_kind);
    let mut writer = CooWriter::create(
        output,
        view.order(),
        value_kind,
        weight_kind,
        Some(view.len() as u64),
    )?;
    for_each_batch(view, monitor, "writing", |columns, range| {
        let weights = view.weights().map(|w| w.slice(range.clone()));
        writer.push(columns, view.values().slice(range), weights)
    })?;
    writer.finish(match &options.dims {
        Some(dims) => Dims::Stated(dims.clone()),
        None if view.dims_inferred() && !view.is_empty() => Dims::Inferred,
        None => Dims::Stated(view.dims().to_vec()),
    })
}

/// Walks over a view in pieces that keep a monitor informed.
pub(crate) fn for_each_batch(
    view: &CooView<'_>,
    monitor: &dyn Monitor,
    phase: &str,
    mut visit: impl FnMut(&[&[u32]], std::ops::Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    while start < view.len() {
        step(monitor, phase, start as u64, view.len() as u64)?;
        let end = (start + BATCH).min(view.len());
        let columns: Vec<&[u32]> = (0..view.order())
            .map(|n| &view.column(n)[start..end])
            .collect();
        visit(&columns, start..end)?;
        start = end;
    }
    Ok(())
}

/// Writes a tensor as FROSTT text, 1-based, with the shortest digits that read back the same value;
/// a weight column follows if there are weights.
pub fn write_tns(view: &CooView<'_>, output: &Path, monitor: &dyn Monitor) -> Result<()> {
    let mut file = AtomicFile::create(output)?;
    let name = file.name().to_string();
    let failed = |e| Error::io(format!("cannot write {name}"), e);
    let mut out = BufWriter::with_capacity(1 << 18, file.file());
    for_each_batch(view, monitor, "writing", |columns, range| {
        for (k, i) in range.enumerate() {
            write_line(&mut out, columns, k, view, i).map_err(failed)?;
        }
        Ok(())
    })?;
    out.flush().map_err(failed)?;
    drop(out);
    file.commit()
}

fn write_line(
    out: &mut impl Write,
    columns: &[&[u32]],
    k: usize,
    view: &CooView<'_>,
    i: usize,
) -> io::Result<()> {
    for column in columns {
        write!(out, "{} ", u64::from(column[k]) + 1)?;
    }
    write_float(out, view.values(), i)?;
    if let Some(weights) = view.weights() {
        out.write_all(b" ")?;
        write_float(out, weights, i)?;
    }
    out.write_all(b"\n")
}

fn write_float(out: &mut impl Write, values: Values<'_>, i: usize) -> io::Result<()> {
    match values {
        Values::F32(v) => write!(out, "{}", v[i]),
        Values::F64(v) => write!(out, "{}", v[i]),
    }
}
