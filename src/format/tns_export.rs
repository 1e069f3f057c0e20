//! Writes FROSTT `.tns` text.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::atomic::AtomicFile;
use super::batches::for_each_valid_batch;
use super::convert::refuse_same;
use super::coo_file::CooFile;
use super::coo_view::{CooView, Values};
use crate::error::{Error, Result};
use crate::progress::Monitor;

/// Writes a tensor as FROSTT text, 1-based, with the fewest digits that parse to the same value. A weight column follows
/// if there are weights.
pub fn write_tns(input: &CooFile, output: &Path, monitor: &dyn Monitor) -> Result<()> {
    input.verify(monitor)?;
    refuse_same(Some(input.path()), output)?;
    let view = &input.view();
    let mut file = AtomicFile::create(output)?;
    let name = file.name().to_string();
    let failed = |e| Error::io(format!("cannot write {name}"), e);
    let mut out = BufWriter::with_capacity(1 << 18, file.file());
    for_each_valid_batch(view, monitor, "writing", &mut |columns, range| {
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
