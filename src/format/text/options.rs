//! How text is read: formats and options.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bins::BinnedColumn;
use super::fields::starts_with_ignore_case;
use crate::error::{Error, Result};
use crate::format::header::ValueKind;
use crate::format::names::Names;

/// The text formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// FROSTT: one entry per line, indices then the value, separated by blanks.
    Tns,
    /// Matrix Market coordinate format.
    MatrixMarket,
    /// Comma-separated with a header line.
    Csv,
    /// Tab-separated with a header line.
    Tsv,
}

impl TextFormat {
    /// The format called `name` on the command line.
    pub fn from_name(name: &str) -> Option<TextFormat> {
        match name {
            "tns" => Some(TextFormat::Tns),
            "mtx" => Some(TextFormat::MatrixMarket),
            "csv" => Some(TextFormat::Csv),
            "tsv" => Some(TextFormat::Tsv),
            _ => None,
        }
    }

    /// Detects the format by the extension (with or without `.gz`), otherwise by the start of the text.
    pub(super) fn detect(name: &str, head: &[u8]) -> TextFormat {
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let extension = Path::new(plain).extension().and_then(|e| e.to_str());
        if let Some(format) = extension
            .map(str::to_ascii_lowercase)
            .and_then(|e| TextFormat::from_name(&e))
        {
            return format;
        }
        let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
        // Comments may hold anything.
        let line = head
            .split(|&b| matches!(b, b'\n' | b'\r'))
            .find(|l| !l.trim_ascii().is_empty() && !l.starts_with(b"#"))
            .unwrap_or_default();
        if starts_with_ignore_case(head, b"%%MatrixMarket") {
            TextFormat::MatrixMarket
        } else if line.contains(&b',') {
            TextFormat::Csv
        } else if line.iter().any(u8::is_ascii_alphabetic) && line.contains(&b'\t') {
            TextFormat::Tsv
        } else {
            TextFormat::Tns
        }
    }
}

/// Options of reading text. The default reads 1-based `.tns` and `.mtx`, and CSV or TSV whose columns are indices, besides
/// the [value column](DelimitedOptions::value).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextOptions {
    /// The format; detected if not given.
    pub format: Option<TextFormat>,
    /// The sizes of the modes; the largest indices if not given.
    pub dims: Option<Vec<u64>>,
    /// Whether indices count from 0 rather than 1.
    pub zero_based: bool,
    /// Whether there is no value column; every value is then 1.
    pub no_value: bool,
    /// Whether a weight follows the value in `.tns`; CSV names its weight column instead.
    pub weighted: bool,
    /// Precision of stored values; by default 32-bit in files and 64-bit in temporary copies.
    pub value_kind: Option<ValueKind>,
    /// For CSV and TSV.
    pub delimited: DelimitedOptions,
}

impl TextOptions {
    /// Sets an option by the name it has on the command line, with underscores or dashes: `from`
    /// (tns, mtx, csv or tsv), `dims`, `columns` and `strings` (separated by commas; `strings` may be
    /// `all`), `value`, `weight`, `values` (f32 or f64), `delimiter`, the flags `zero_based`,
    /// `no_value`, `weighted`, `no_header` and `skip_bad_lines` (true or false), and `names` (`MODE:FILE`,
    /// the mode counted from 0; each adds one).
    ///
    /// For [`convert`](crate::format::convert) also `time` (`COLUMN:UNIT[:FORMAT]`), `bin` (`COLUMN:RULE`) and `split`
    /// (`COLUMN:SEPARATOR`), of which each adds one; `rows_of` (`MODE:FILE`, the mode counted from 0), `numeric`
    /// (columns separated by commas) and `missing`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let wrong =
            |right: &str| Error::argument(format!("{name} = {value:?}: it must be {right}"));
        let words = || value.split(',').map(|w| w.trim().to_string()).collect();
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        let delimited = &mut self.delimited;
        match name.replace('-', "_").as_str() {
            "from" => {
                let format = TextFormat::from_name(value);
                self.format = Some(format.ok_or_else(|| wrong("tns, mtx, csv or tsv"))?);
            }
            "dims" => {
                let dims: std::result::Result<_, _> =
                    value.split(',').map(|d| d.trim().parse()).collect();
                self.dims = Some(dims.map_err(|_| wrong("sizes separated by commas"))?);
            }
            "values" => {
                self.value_kind = Some(match value {
                    "f32" => ValueKind::F32,
                    "f64" => ValueKind::F64,
                    _ => return Err(wrong("f32 or f64")),
                });
            }
            "zero_based" => self.zero_based = flag()?,
            "no_value" => self.no_value = flag()?,
            "weighted" => self.weighted = flag()?,
            "no_header" => delimited.no_header = flag()?,
            "columns" => delimited.columns = words(),
            "value" => delimited.value = Some(value.into()),
            "weight" => delimited.weight = Some(value.into()),
            "strings" if value == "all" => delimited.all_strings = true,
            "strings" => delimited.strings = words(),
            "delimiter" => match value.as_bytes() {
                [byte] if byte.is_ascii() => delimited.delimiter = Some(*byte),
                _ => return Err(wrong("one ASCII character")),
            },
            "names" => {
                let (mode, file) =
                    mode_and_file(value).ok_or_else(|| wrong("MODE:FILE, such as 0:users.tsv"))?;
                delimited.names.push((mode, file));
            }
            "rows_of" => {
                let file = mode_and_file(value);
                delimited.rows_of =
                    Some(file.ok_or_else(|| wrong("MODE:FILE, such as 1:ratings.coo"))?);
            }
            "time" => {
                let column = BinnedColumn::parse_time(value).map_err(|right| wrong(&right))?;
                delimited.bins.push(column);
            }
            "bin" => {
                let column = BinnedColumn::parse_number(value).map_err(|right| wrong(&right))?;
                delimited.bins.push(column);
            }
            "split" => {
                let (column, separator) = value
                    .split_once(':')
                    .filter(|(column, separator)| !column.is_empty() && !separator.is_empty())
                    .ok_or_else(|| wrong("COLUMN:SEPARATOR, such as genres:|"))?;
                delimited.split.push((column.into(), separator.into()));
            }
            "numeric" => delimited.numeric = words(),
            "missing" => delimited.missing = Some(value.into()),
            "skip_bad_lines" => delimited.skip_bad_lines = flag()?,
            _ => {
                return Err(Error::argument(format!(
                    "there is no option '{name}' for reading text; options are from, dims, zero_based, no_value, \
                     weighted, values, columns, value, weight, strings, names, delimiter, no_header, time, bin, \
                     split, rows_of, numeric, missing, skip_bad_lines"
                )));
            }
        }
        Ok(())
    }

    /// Returns an error if an option besides sizes and precision is set, since the others do not apply to binary files.
    pub(crate) fn require_only_dims(&self, path: &Path) -> Result<()> {
        let about_text = self.format.is_some()
            || self.zero_based
            || self.no_value
            || self.weighted
            || self.delimited.is_set();
        if about_text {
            return Err(Error::file(
                path.display().to_string(),
                "is binary; options about reading text (format, base, columns, ids) do not apply to it",
            ));
        }
        Ok(())
    }
}

/// Options of reading CSV and TSV. Columns are named by their header or numbered from 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DelimitedOptions {
    /// The columns that are indices, one per mode in this order; all but value and weight if empty.
    pub columns: Vec<String>,
    /// The value column. If not given: the only column that `columns` leaves; else the one called rating, value, stars, score or
    /// count; else the only one with numbers. Without a header, the last column.
    pub value: Option<String>,
    /// The weight column, if there is one.
    pub weight: Option<String>,
    /// Columns whose ids are strings even if the first looks like a number.
    pub strings: Vec<String>,
    /// Whether all ids are strings.
    pub all_strings: bool,
    /// Names given earlier, by mode (from 0): the same id gets the same index again, new ids are
    /// added behind.
    pub names: Vec<(usize, PathBuf)>,
    /// Names of the rows that ids mean, by mode (from 0), where `names` has no file: those of the tensor or model that the
    /// entries go with.
    pub known_names: Vec<(usize, Arc<Names>)>,
    /// Separator of columns, if not a comma or tab.
    pub delimiter: Option<u8>,
    /// Whether the first line is data. Otherwise it must have names.
    pub no_header: bool,
    /// Index columns whose contents are grouped in bins; each bin is a row.
    pub bins: Vec<BinnedColumn>,
    /// Index columns that hold several ids, each with the separator. A line gives an entry for each of them.
    pub split: Vec<(String, String)>,
    /// Reads an attribute table: the first index column is the key of a row of this mode (from 0) of this binary COO
    /// file, and the other columns become the columns of a matrix.
    pub rows_of: Option<(usize, PathBuf)>,
    /// Columns of an attribute table whose numbers are values of the matrix.
    pub numeric: Vec<String>,
    /// Text of a missing field. Lines that have it are skipped and counted.
    pub missing: Option<String>,
    /// Whether invalid lines are skipped and counted instead of an error.
    pub skip_bad_lines: bool,
}

impl DelimitedOptions {
    pub(super) fn is_set(&self) -> bool {
        !self.columns.is_empty()
            || self.value.is_some()
            || self.weight.is_some()
            || !self.strings.is_empty()
            || self.all_strings
            || !self.names.is_empty()
            || self.delimiter.is_some()
            || self.no_header
            || self.derives_ids()
            || self.rows_of.is_some()
            || !self.numeric.is_empty()
    }

    /// Returns the names or numbers of columns that the options mention.
    pub(super) fn column_names(&self) -> impl Iterator<Item = &str> {
        let listed = self.columns.iter().chain(&self.numeric);
        let named = listed.chain(&self.value).chain(&self.weight);
        named.map(String::as_str).chain(self.id_column_names())
    }

    /// Returns the names or numbers of index columns whose ids the options describe.
    pub(super) fn id_column_names(&self) -> impl Iterator<Item = &str> {
        let bins = self.bins.iter().map(|binned| &binned.column);
        let split = self.split.iter().map(|(column, _)| column);
        self.strings
            .iter()
            .chain(bins)
            .chain(split)
            .map(String::as_str)
    }

    /// Returns whether a field has the text of a missing one.
    pub(super) fn is_missing(&self, field: &[u8]) -> bool {
        let text = self.missing.as_deref();
        text.is_some_and(|text| text.as_bytes() == field)
    }

    /// Returns whether ids are computed from fields, or lines may be skipped: `derived` then reads the text.
    pub(super) fn derives_ids(&self) -> bool {
        !self.bins.is_empty()
            || !self.split.is_empty()
            || self.missing.is_some()
            || self.skip_bad_lines
    }

    /// Returns an error if an option is set that only a conversion to a file can apply, since its result depends on all
    /// lines of one text.
    pub(crate) fn require_plain(&self, file: &str) -> Result<()> {
        if self.derives_ids() || self.rows_of.is_some() || !self.numeric.is_empty() {
            return Err(Error::file(
                file,
                "bins, lists, attribute tables and skipped lines need a conversion to a .coo file first, \
                 so that all files of a problem have the same rows",
            ));
        }
        Ok(())
    }
}

/// Splits `MODE:FILE`.
fn mode_and_file(text: &str) -> Option<(usize, PathBuf)> {
    let (mode, file) = text.split_once(':')?;
    let mode = mode.parse().ok()?;
    (!file.is_empty()).then(|| (mode, file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_extension_then_content() {
        let detect = |name: &str, head: &str| TextFormat::detect(name, head.as_bytes());
        assert_eq!(detect("a/b.TNS.gz", "x,y"), TextFormat::Tns);
        assert_eq!(detect("b.mtx", ""), TextFormat::MatrixMarket);
        assert_eq!(detect("b.csv.gz", ""), TextFormat::Csv);
        assert_eq!(detect("b.tsv", ""), TextFormat::Tsv);
        assert_eq!(
            detect("-", "%%matrixmarket matrix"),
            TextFormat::MatrixMarket
        );
        assert_eq!(detect("-", "user,item,rating\n"), TextFormat::Csv);
        assert_eq!(detect("-", "user\titem\trating\n"), TextFormat::Tsv);
        assert_eq!(detect("-", "1\t2\t3\n"), TextFormat::Tns);
        assert_eq!(detect("ratings.dat", "1 2 3\n"), TextFormat::Tns);
        assert_eq!(detect("-", "# user, item\n1 2 3\n"), TextFormat::Tns);
    }

    #[test]
    fn options_are_set_by_name() {
        let mut o = TextOptions::default();
        for (name, value) in [
            ("from", "csv"),
            ("dims", "3, 4"),
            ("zero-based", "true"),
            ("values", "f64"),
            ("columns", "user,film"),
            ("strings", "all"),
            ("delimiter", ";"),
            ("names", "1:films.tsv"),
            ("time", "when:week:ms"),
            ("bin", "age:log=2"),
            ("split", "genres:|"),
            ("rows-of", "1:ratings.coo"),
            ("missing", "NA"),
            ("skip-bad-lines", "true"),
        ] {
            o.set(name, value).unwrap();
        }
        assert_eq!(o.format, Some(TextFormat::Csv));
        assert_eq!(o.dims, Some(vec![3, 4]));
        assert!(o.zero_based && o.delimited.all_strings);
        assert_eq!(o.value_kind, Some(ValueKind::F64));
        assert_eq!(o.delimited.columns, ["user", "film"]);
        assert_eq!(o.delimited.delimiter, Some(b';'));
        assert_eq!(o.delimited.names, [(1, "films.tsv".into())]);
        assert_eq!(o.delimited.bins.len(), 2);
        assert_eq!(o.delimited.split, [("genres".into(), "|".into())]);
        assert_eq!(o.delimited.rows_of, Some((1, "ratings.coo".into())));
        for (name, value) in [
            ("time", "when:fortnight"),
            ("bin", "age"),
            ("split", "genres:"),
            ("rows_of", "ratings.coo"),
            ("from", "xls"),
            ("dims", "3,x"),
            ("zero_based", "maybe"),
            ("values", "f16"),
            ("delimiter", "::"),
            ("names", "films.tsv"),
        ] {
            let error = o.set(name, value).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("must be"), "{error}");
        }
        let error = o.set("colums", "a").unwrap_err().to_string();
        assert!(error.contains("columns"), "{error}");
    }
}
