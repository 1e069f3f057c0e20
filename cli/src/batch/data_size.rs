//! Estimates of the numbers of entries and rows of a data file, without reading all of it.

use std::path::Path;

use s3cmtf::Result;
use s3cmtf::format::{self, CooFile, OpenMode};

/// The length of the prefix of a text file that is parsed, in bytes.
const TEXT_PREFIX_BYTES: u64 = 1 << 20;

/// A safety factor for extrapolations from the prefix.
const SAFETY_FACTOR: f64 = 1.25;

/// The number of indices of a page of a [`RowMap`](s3cmtf::format::RowMap).
const INDICES_PER_PAGE: u64 = 512;

/// Upper bounds of the size of a data file.
pub(super) struct DataSize {
    pub entries: u64,
    /// The number of rows of each mode that occur.
    pub rows: Vec<u64>,
    /// The size of each mode.
    pub dims: Vec<u64>,
    /// The number of pages of the [`RowMap`](s3cmtf::format::RowMap)s of all modes.
    pub pages: u64,
}

impl DataSize {
    /// Reads the header of a binary file, or extrapolates from the beginning of a text file.
    pub(super) fn of_file(path: &Path) -> Result<DataSize> {
        if format::is_coo_file(path)? {
            let file = CooFile::open(path, OpenMode::Mapped)?;
            let header = file.header();
            let entries = header.count;
            let pages = header.dims.iter().map(|d| d.div_ceil(INDICES_PER_PAGE));
            return Ok(DataSize {
                entries,
                rows: header.dims.iter().map(|&d| d.min(entries)).collect(),
                dims: header.dims.clone(),
                pages: pages.sum(),
            });
        }
        let prefix = format::read_text_prefix(path, TEXT_PREFIX_BYTES)?;
        Ok(DataSize::of_text(&prefix.text, prefix.length_ratio))
    }

    /// Extrapolates from the beginning of a text to the whole text, which is `length_ratio` times as long.
    fn of_text(text: &[u8], length_ratio: f64) -> DataSize {
        let ratio = if length_ratio > 1.0 {
            length_ratio * SAFETY_FACTOR
        } else {
            1.0
        };
        let mut columns: Vec<ColumnStatistics> = Vec::new();
        let mut lines = 0u64;
        for line in text.split(|&b| b == b'\n') {
            if line.is_empty() || b"#%".contains(&line[0]) {
                continue;
            }
            lines += 1;
            let fields = line.split(|b| b" \t,;\r".contains(b));
            for (n, field) in fields.filter(|f| !f.is_empty()).enumerate() {
                if n == columns.len() {
                    columns.push(ColumnStatistics::default());
                }
                columns[n].add(std::str::from_utf8(field).unwrap_or_default());
            }
        }
        let entries = ((lines as f64 * ratio) as u64).max(1);
        // Any column may have the values. Of whole values it is counted as a mode too.
        let mut dims: Vec<u64> = Vec::new();
        for column in &columns {
            match column.contents() {
                ColumnContents::WholeNumbers => dims.push(column.rows(ratio)),
                ColumnContents::OtherNumbers => {}
                // The number of distinct names is unknown: assume one per entry.
                ColumnContents::Names => dims.push(entries),
            }
        }
        dims.resize(dims.len().max(2), entries);
        let rows: Vec<u64> = dims.iter().map(|&d| d.min(entries)).collect();
        let pages = rows.iter().map(|r| r.div_ceil(INDICES_PER_PAGE)).sum();
        DataSize {
            entries,
            rows,
            dims,
            pages,
        }
    }

    /// The number of modes.
    pub(super) fn order(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// Statistics of a column of a text.
#[derive(Default)]
struct ColumnStatistics {
    /// The number of fields that are whole numbers.
    whole_numbers: u64,
    other_numbers: u64,
    names: u64,
    largest: u64,
    last: u64,
    /// Whether a number was smaller than the one before it.
    is_unsorted: bool,
}

/// The contents of most fields of a column.
enum ColumnContents {
    WholeNumbers,
    OtherNumbers,
    Names,
}

impl ColumnStatistics {
    fn add(&mut self, field: &str) {
        let Ok(number) = field.parse() else {
            if field.parse::<f64>().is_ok() {
                self.other_numbers += 1;
            } else {
                self.names += 1;
            }
            return;
        };
        self.whole_numbers += 1;
        self.is_unsorted |= number < self.last;
        self.last = number;
        self.largest = self.largest.max(number);
    }

    fn contents(&self) -> ColumnContents {
        if self.whole_numbers >= self.other_numbers + self.names {
            ColumnContents::WholeNumbers
        } else if self.other_numbers >= self.names {
            ColumnContents::OtherNumbers
        } else {
            ColumnContents::Names
        }
    }

    /// Returns the number of rows in a text that is `ratio` times as long.
    fn rows(&self, ratio: f64) -> u64 {
        // Sorted indices keep growing. The largest of unsorted ones is nearly reached in the prefix.
        let growth = if self.is_unsorted {
            ratio.min(SAFETY_FACTOR)
        } else {
            ratio
        };
        ((self.largest + 1) as f64 * growth) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_extrapolated_from_the_beginning_of_a_text() {
        // The first column is sorted, the second is not, and values have a decimal point.
        let line = |i: u64| format!("{} {} {}.5\n", i / 10 + 1, i * 7 % 50 + 1, i % 5);
        let text: String = (0..1000).map(line).collect();
        let whole = DataSize::of_text(text.as_bytes(), 1.0);
        assert_eq!((whole.entries, &whole.rows[..]), (1000, &[101, 51][..]));
        let prefix = DataSize::of_text(text.as_bytes(), 8.0);
        assert_eq!(
            (prefix.entries, &prefix.rows[..]),
            (10_000, &[1010, 63][..])
        );
        let named = DataSize::of_text(b"# people\nann,42,3.5\nbob,7,1.5\n", 1.0);
        assert_eq!((named.entries, &named.rows[..]), (2, &[2, 2][..]));
        // The values may be in any column, and whole ones do not replace a mode.
        for text in [
            "user,film,stars\nann,heat,5\nbob,alien,3\n",
            "user,stars,film,when\nann,2.5,heat,9\nbob,3.5,alien,8\n",
        ] {
            let size = DataSize::of_text(text.as_bytes(), 1.0);
            assert_eq!(
                (size.entries, &size.rows[..]),
                (3, &[3, 3, 3][..]),
                "{text}"
            );
        }
        let empty = DataSize::of_text(b"", 1.0);
        assert_eq!((empty.entries, empty.rows.len()), (1, 2));
    }
}
