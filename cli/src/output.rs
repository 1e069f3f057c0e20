//! Standard output as text or as one JSON object per line, and the formats of numbers.

use std::cell::RefCell;
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

pub use crate::number_format::{format_error, format_integer, format_rmse};
use indicatif::ProgressBar;
use s3cmtf::format::Names;
pub(crate) use s3cmtf::printable::printable;
use s3cmtf::printable::{escape_json, printable_lines};
use s3cmtf::{Error, Result};

use crate::process_start;
use crate::style::{self, Style};

/// The bar on the terminal, if there is one. Whoever else writes to the terminal hides it meanwhile.
pub(crate) type SharedBar = Rc<RefCell<Option<ProgressBar>>>;

/// Buffers the output of a command. Commands do not use `println!`, which panics when the reader of a pipe has closed it.
pub struct Output {
    pub json: bool,
    text: String,
    /// The progress bar, which is hidden while text is written.
    bar: SharedBar,
    /// Whether standard output is a terminal.
    pub is_terminal: bool,
    /// Whether the result of the command is what it prints. If not, nobody has to read it: a closed standard output is no error.
    is_result: bool,
    /// Whether the command also writes files, which it completes although nothing can be printed.
    has_files: bool,
    /// Whether standard output was closed.
    is_closed: bool,
    /// The first error of standard output of a command that writes files.
    failed: Option<Error>,
}

impl Output {
    /// `prints_result`: the result of the command goes to standard output; `writes_files`: the command writes files.
    pub fn new(json: bool, prints_result: bool, writes_files: bool, bar: SharedBar) -> Self {
        Output {
            json,
            text: String::new(),
            bar,
            is_terminal: io::stdout().is_terminal(),
            // Objects are printed for a program that reads them.
            is_result: prints_result || json,
            has_files: writes_files,
            is_closed: process_start::is_output_closed(),
            failed: None,
        }
    }

    /// Returns an error if standard output is closed and the command has no other result.
    pub fn require_open(&self) -> Result<()> {
        match self.is_closed && self.is_result && !self.has_files {
            true => Err(write_error(closed())),
            false => Ok(()),
        }
    }

    /// Appends the heading of a table, in bold on a terminal.
    pub fn heading(&mut self, line: &str) {
        let coloured = style::is_coloured(self.is_terminal);
        self.exact_line(&Style::Heading.apply(&printable_lines(line), coloured));
    }

    /// Appends a line of text; ignored with `--json`. Deceptive characters, which names and paths may contain, are replaced.
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.exact_line(&printable_lines(line.as_ref()));
    }

    /// Appends lines of data for other programs, such as CSV, each with its line end; ignored with `--json`. Deceptive
    /// characters are replaced on a terminal only.
    pub fn data_lines(&mut self, lines: &str) {
        if self.json {
            return;
        }
        if self.is_terminal {
            self.text.push_str(&printable_lines(lines));
        } else {
            self.text.push_str(lines);
        }
    }

    fn exact_line(&mut self, line: &str) {
        if !self.json {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Appends a JSON object; ignored without `--json`. Deceptive characters of names are escaped.
    pub fn object(&mut self, value: &dyn Display) {
        if self.json {
            let _ = writeln!(self.text, "{}", escape_json(&value.to_string()));
        }
    }

    /// Writes the buffered output, so that long commands show it early. A failure ends a command unless it writes files: these are
    /// completed first, and [`finish`](Self::finish) reports the failure.
    pub fn flush(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        let has_failed = self.failed.is_some() || (self.is_closed && !self.is_result);
        if text.is_empty() || has_failed {
            return Ok(());
        }
        let is_closed = self.is_closed;
        let write = || {
            if is_closed {
                return Err(closed());
            }
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        let written = match self.bar.borrow().as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        };
        let Err(source) = written else {
            return Ok(());
        };
        self.is_closed |= source.kind() == io::ErrorKind::BrokenPipe;
        if self.is_closed && !self.is_result {
            return Ok(());
        }
        let error = write_error(source);
        if self.has_files {
            self.failed = Some(error);
            return Ok(());
        }
        Err(error)
    }

    /// Writes the rest of the output. Returns the first error of standard output.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.failed.map_or(Ok(()), Err)
    }
}

/// The failures of a command that does the rest of its work nevertheless.
#[derive(Default)]
pub struct Failures(Option<Error>);

impl Failures {
    /// Takes over the error of a step. The first is kept; others are printed at once.
    pub fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(error) if self.0.is_none() => self.0 = Some(error),
            Err(error) => print_error(&error.to_string()),
        }
        None
    }

    /// Returns the first error.
    pub fn first(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn write_error(source: io::Error) -> Error {
    Error::io("cannot write to standard output", source)
}

/// Returns the error of a standard output that was closed before the program started.
fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "it is closed")
}

/// Writes a line to standard error. A failure to write is ignored, since it cannot be reported anywhere.
fn print_stderr_exactly(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a line to standard error. Deceptive characters, which names and paths may contain, are replaced.
pub fn print_stderr(line: &str) {
    print_stderr_exactly(&printable_lines(line));
}

/// Writes an error message to standard error.
pub fn print_error(message: &str) {
    let prefix = style::on_stderr("error:", Style::Error);
    print_stderr_exactly(&format!("{prefix} {}", printable_lines(message)));
}

/// Ends the program with the help that was asked for, or with the message of invalid arguments.
pub fn exit_with_usage(error: &clap::Error) -> ! {
    let message = error.to_string();
    let printable = printable_lines(&message);
    if printable != message {
        print_stderr(printable.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Writes a remark about input that may be right to standard error.
pub fn print_note(message: &str) {
    print_stderr(&format!("note: {message}"));
}

/// Writes a warning to standard error.
pub fn print_warning(message: &str) {
    let prefix = style::on_stderr("warning:", Style::Warning);
    print_stderr_exactly(&format!("{prefix} {}", printable_lines(message)));
}

/// Warns about names files that were renamed, because they do not belong to a new model.
pub fn warn_renamed<'a>(renamed: impl IntoIterator<Item = &'a PathBuf>) {
    for path in renamed {
        print_warning(&Names::renamed_warning(path));
    }
}

/// Formats a p-value as the text after `p`. A value that underflowed to 0 is printed as a bound.
pub fn format_p_value(p: f64) -> String {
    if p == 0.0 {
        "< 1e-300".into()
    } else {
        format!("= {p:.1e}")
    }
}

/// Formats a count with its noun: `1 row`, `2 rows`.
pub fn format_count(n: u64, singular: &str, plural: &str) -> String {
    format!(
        "{} {}",
        format_integer(n),
        if n == 1 { singular } else { plural }
    )
}

/// Formats the sizes of modes: `71,000 x 11,000 x 157`.
pub fn format_dims(dims: &[u64]) -> String {
    dims.iter()
        .map(|&d| format_integer(d))
        .collect::<Vec<_>>()
        .join(" x ")
}

/// Formats a value with about six significant digits, without trailing zeros.
pub fn format_number(x: f64) -> String {
    if x != 0.0 && !(1e-4..1e7).contains(&x.abs()) {
        return format!("{x:.5e}");
    }
    // The magnitude is -4 to 6 here, so there are 0 to 9 decimals.
    let magnitude = if x == 0.0 {
        0
    } else {
        x.abs().log10().floor() as i32
    };
    let decimals = (5 - magnitude).max(0) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_reading() {
        assert_eq!(format_integer(0), "0");
        assert_eq!(format_integer(999), "999");
        assert_eq!(format_integer(1234567), "1,234,567");
        assert_eq!(format_dims(&[71000, 157]), "71,000 x 157");
        assert_eq!(format_number(3.5), "3.5");
        assert_eq!(format_number(0.0), "0");
        assert_eq!(format_number(-12.345678), "-12.3457");
        assert_eq!(format_number(1.5e-9), "1.50000e-9");
        assert_eq!(format_number(123456.0), "123456");
        assert_eq!(format_number(0.000123456789), "0.000123457");
        assert_eq!(format_p_value(0.00123), "= 1.2e-3");
        assert_eq!(format_p_value((-800f64).exp()), "< 1e-300");
        assert_eq!(format_count(1, "entry", "entries"), "1 entry");
        let errors = [0.85123, 12.0, 0.0, 3.25e-7, 4.5e8, f64::NAN].map(format_rmse);
        let expected = [
            "0.8512",
            "12.0000",
            "0.0000",
            "3.2500e-7",
            "4.5000e8",
            "NaN",
        ];
        assert_eq!(errors, expected);
    }
}
