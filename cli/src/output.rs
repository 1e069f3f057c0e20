//! Standard output: text for people, or one JSON object per line.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use s3cmtf::{Error, Result};

/// Collects what a command says. Nothing is printed with `println!`, which panics when the reader
/// of a pipe has gone.
pub(super) struct Output {
    pub json: bool,
    text: String,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Output {
            json,
            text: String::new(),
        }
    }

    /// A line for people.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        if !self.json {
            self.text.push_str(line.as_ref());
            self.text.push('\n');
        }
    }

    /// An object for programs, as it is written in JSON.
    pub(super) fn object(&mut self, value: &dyn Display) {
        if self.json {
            let _ = writeln!(self.text, "{value}");
        }
    }

    /// Prints what has been said so far, for commands that take long.
    pub(super) fn flush(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Nobody reads on: `s3cmtf info x | head -3` is no failure.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(source) => Err(Error::Io {
                action: "cannot write to standard output".into(),
                source,
            }),
            Ok(()) => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

/// A line on standard error. If that cannot be written there is nowhere left to say so.
pub(super) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A name for a terminal: control characters would move its cursor or change its colours, and are replaced.
pub(super) fn plain(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => name.replace(char::is_control, "\u{fffd}").into(),
        false => name.into(),
    }
}

/// An error, in the units of the values: with so many decimals where those say something.
pub(super) fn error(x: f64, decimals: usize) -> String {
    match x == 0.0 || !x.is_finite() || (0.01..1e6).contains(&x) {
        true => format!("{x:.decimals$}"),
        false => format!("{x:.decimals$e}"),
    }
}

/// A root of a mean square.
pub(super) fn rmse(x: f64) -> String {
    error(x, 4)
}

/// A p-value behind `p`; one too small for a number is not 0.
pub(super) fn chance(p: f64) -> String {
    match p == 0.0 {
        true => "< 1e-300".into(),
        false => format!("= {p:.1e}"),
    }
}

/// A number with the noun it counts.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Sizes as `71,000 x 11,000 x 157`.
pub(super) fn shape(dims: &[u64]) -> String {
    dims.iter()
        .map(|&d| grouped(d))
        .collect::<Vec<_>>()
        .join(" x ")
}

/// A number with about six significant digits and no needless zeros.
pub(super) fn number(x: f64) -> String {
    if x != 0.0 && !(1e-4..1e7).contains(&x.abs()) {
        return format!("{x:.5e}");
    }
    // Between 1e-4 and 1e7 here, so between 0 and 9 decimals.
    let magnitude = if x == 0.0 {
        0
    } else {
        x.abs().log10().floor() as i32
    };
    let digits = (5 - magnitude).max(0) as usize;
    let text = format!("{x:.digits$}");
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
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(shape(&[71000, 157]), "71,000 x 157");
        assert_eq!(number(3.5), "3.5");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(-12.345678), "-12.3457");
        assert_eq!(number(1.5e-9), "1.50000e-9");
        assert_eq!(number(123456.0), "123456");
        assert_eq!(number(0.000123456789), "0.000123457");
        assert_eq!(chance(0.00123), "= 1.2e-3");
        assert_eq!(chance((-800f64).exp()), "< 1e-300");
        assert_eq!(counted(1, "entry", "entries"), "1 entry");
        let errors = [0.85123, 12.0, 0.0, 3.25e-7, 4.5e8, f64::NAN].map(rmse);
        let read = [
            "0.8512",
            "12.0000",
            "0.0000",
            "3.2500e-7",
            "4.5000e8",
            "NaN",
        ];
        assert_eq!(errors, read);
    }
}
