//! Reads text: FROSTT `.tns`, Matrix Market `.mtx`, CSV and TSV, each also gzipped, as a stream.
//!
//! Enters: a [`TextSource`] (a file or any reader) and [`TextOptions`]. Leaves: entries in a [`Sink`], which writes a
//! binary COO file in batches, and a [`TextResult`]. Memory does not depend on the length of the text. Errors name the
//! file and the line.
//!
//! Open `tns` first: it is the shortest reader. `entry` parses one line of numbers (`number` is its fast path, `fields`
//! splits lines); `format/line_reader` yields lines from one buffer.
//!
//! CSV and TSV have three readers over `records`, which checks the `header`; `value_column` chooses the value column: `delimited` for plain ids, which is the fast one; `derived` for ids
//! computed from fields (`bins` of time or numbers, lists) and for skipping invalid lines; `attributes` for tables of
//! attributes, which become matrices.
//!
//! To add a format: write its reader in a file of its own and add an arm to [`read`]. Add a variant to [`TextFormat`], to
//! its `from_name` and `detect`, and to the messages that list the formats (here and in `options`). Add its
//! extension to `refuse_text_name` in `format/convert.rs`, and its name to the values of `--from` in `cli/src/input.rs`.

mod attributes;
mod bins;
mod calendar;
mod columns;
mod delimited;
mod derived;
mod entry;
mod fields;
mod header;
mod matrix_market;
mod number;
mod number_bins;
mod options;
mod prefix;
mod records;
mod sink;
mod source;
mod text_result;
mod time_bins;
mod tns;
mod value_column;

pub use bins::{BinRule, BinnedColumn};
pub use number_bins::NumberRule;
pub use options::{DelimitedOptions, TextFormat, TextOptions};
pub use prefix::{TextPrefix, read_text_prefix};
pub use source::Input;
pub use text_result::SkippedLines;
pub use time_bins::{TimeFormat, TimeUnit};

pub(crate) use fields::looks_missing;
pub(crate) use sink::{Sink, SinkTarget};
pub(crate) use source::TextSource;
pub(crate) use text_result::TextResult;

use crate::error::{Error, Result};
use crate::progress::Monitor;

/// Reads all of `source` into `sink`.
pub(crate) fn read(
    mut source: TextSource,
    options: &TextOptions,
    sink: &mut Sink<'_>,
    monitor: &dyn Monitor,
) -> Result<TextResult> {
    let name = source.name.clone();
    if source.head.is_empty() {
        return Err(Error::file(
            name,
            "is empty; it should hold one entry per line",
        ));
    }
    if source.head.starts_with(b"\xFF\xFE") || source.head.starts_with(b"\xFE\xFF") {
        return Err(Error::file(
            name,
            "is UTF-16 text; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)",
        ));
    }
    if source.head.contains(&0) {
        return Err(Error::file(
            name,
            "is not text (it holds zero bytes, as UTF-16 does); expected .tns, .mtx, .csv or .tsv in UTF-8, plain or gzipped",
        ));
    }
    let format = options
        .format
        .unwrap_or_else(|| TextFormat::detect(&name, &source.head));
    if !matches!(format, TextFormat::Csv | TextFormat::Tsv) && options.delimited.is_set() {
        return Err(Error::argument(
            "columns, string ids, names, bins, lists, skipped lines, a delimiter and a missing header are for CSV and TSV; \
             this input is neither (state its format with the option from)",
        ));
    }
    match format {
        TextFormat::Tns => tns::read(&mut source, options, sink, monitor),
        TextFormat::MatrixMarket => matrix_market::read(&mut source, options, sink, monitor),
        TextFormat::Csv => delimited::read(&mut source, b',', options, sink, monitor),
        TextFormat::Tsv => delimited::read(&mut source, b'\t', options, sink, monitor),
    }
}
