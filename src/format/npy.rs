//! Writing NumPy `.npy` files (version 1.0), streamed.

use std::io::{BufWriter, Write};
use std::path::Path;

use super::atomic::AtomicFile;
use crate::error::{Error, Result};

/// Writes an `.npy` file in C order, row by row.
pub(crate) struct NpyWriter {
    out: BufWriter<NpyFile>,
    /// Number of values still to be written.
    remaining: u64,
}

struct NpyFile(AtomicFile);

impl Write for NpyFile {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.file().write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.file().flush()
    }
}

impl NpyWriter {
    /// Starts a file. `kind` is the NumPy type string of the values, such as `<f4`.
    pub(crate) fn create(path: &Path, kind: &str, shape: &[u64]) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        let mut writer = NpyWriter {
            out: BufWriter::with_capacity(1 << 18, NpyFile(file)),
            remaining: shape.iter().product(),
        };
        let sizes: Vec<String> = shape.iter().map(|s| format!("{s},")).collect();
        let mut header = format!(
            "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
            sizes.join(" ")
        );
        // Magic, version and length take 10 bytes. The header ends with a line end at a multiple of 64.
        let total = (10 + header.len() + 1).next_multiple_of(64);
        while 10 + header.len() + 1 < total {
            header.push(' ');
        }
        header.push('\n');
        let mut head = b"\x93NUMPY\x01\x00".to_vec();
        head.extend_from_slice(&(header.len() as u16).to_le_bytes());
        head.extend_from_slice(header.as_bytes());
        writer.write(&head)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.out.write_all(bytes);
        done.map_err(|e| self.out.get_ref().0.write_error(e))
    }

    pub(crate) fn push<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Result<()> {
        self.remaining = self
            .remaining
            .checked_sub(values.len() as u64)
            .ok_or_else(|| Error::argument("more values than the shape holds"))?;
        self.write(bytemuck::cast_slice(values))
    }

    /// Returns the complete file, still under its temporary name.
    pub(crate) fn stage(self) -> Result<AtomicFile> {
        if self.remaining != 0 {
            return Err(Error::argument("fewer values than the shape holds"));
        }
        let file = self.out.into_inner().map_err(|e| {
            let (error, out) = e.into_parts();
            out.get_ref().0.write_error(error)
        })?;
        let mut file = file.0;
        file.sync()?;
        Ok(file)
    }
}
