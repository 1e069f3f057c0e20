//! How much memory a job will take, from the sizes of its files, dims and ranks, before it begins.
//!
//! Figures are sums over what is allocated, each with the place where that happens; rows are counted as if all of a mode
//! occurred. A job that takes less than was thought leaves memory unused, one that takes more may end the whole batch.
//! docs/batch.md compares them with what was measured. Mapped files do not count: the system takes their pages back when
//! it needs them.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::spec::{FitJob, Job, Work};
use crate::error::{Error, Result};
use crate::format::{self, CooFile, OpenMode};
use crate::options::{Algorithm, Initialization, ModelKind, Options};
use crate::problem::MatrixKind;
use crate::simd::padded_len;
use crate::solver::likely_rank;

/// What a job takes that has nothing to do: code, allocator and tables, which no size says; far more than was ever seen.
const LEAST: u64 = 8 << 20;

/// The stack of a thread, of which it rarely uses all.
const STACK: u64 = 2 << 20;

/// The entries that a thread reads at a time, at most (`solver::sort`).
const CHUNK: u64 = 1 << 17;

/// The bytes of text that are looked at, and how much more of everything the rest may have.
const LOOKED_AT: u64 = 1 << 20;
const MORE: f64 = 1.25;

/// The parameters of a fit are there so often: the model, `good`, `before` and `best` of `solver::fit`, what a refit starts from
/// or an exact solver goes back to, and what they become in the end (`solver::finish`).
const COPIES: u64 = 6;

/// Those of the fit that another is started from (`solver::drawn`): the model, `good`, `before`, and its last state.
const DRAWN: u64 = 4;

/// The bytes of a page of a [`RowMap`](crate::format::RowMap) and of its place in the table, and the indices of one.
const PAGE: u64 = 84;
const INDICES: u64 = 512;

/// What is known of a file without reading it.
struct Size {
    entries: u64,
    /// The most rows that each mode may have.
    rows: Vec<u64>,
    /// The pages that number them.
    pages: u64,
}

impl Size {
    fn of(path: &Path) -> Result<Size> {
        if format::is_coo_file(path)? {
            let file = CooFile::open(path, OpenMode::Mapped)?;
            let header = file.header();
            let entries = header.count;
            let pages = header.dims.iter().map(|d| d.div_ceil(INDICES)).sum();
            return Ok(Size {
                entries,
                rows: header.dims.iter().map(|&d| d.min(entries)).collect(),
                pages,
            });
        }
        let mut source = format::TextSource::open(path.into())?;
        let mut text = Vec::new();
        // What cannot be read fails when the job reads it, and says where.
        let _ = source.take_reader().take(LOOKED_AT).read_to_end(&mut text);
        let (done, total) = source.progress();
        Ok(Size::of_text(&text, total as f64 / done.max(1) as f64))
    }

    /// What the beginning of a text says about all of it, which is so many times as long.
    fn of_text(text: &[u8], times: f64) -> Size {
        let times = if times > 1.0 { times * MORE } else { 1.0 };
        let mut columns: Vec<Column> = Vec::new();
        let mut lines = 0u64;
        for line in text.split(|&b| b == b'\n') {
            if line.is_empty() || b"#%".contains(&line[0]) {
                continue;
            }
            lines += 1;
            let words = line.split(|b| b" \t,;\r".contains(b));
            for (n, word) in words.filter(|w| !w.is_empty()).enumerate() {
                if n == columns.len() {
                    columns.push(Column::default());
                }
                let number = std::str::from_utf8(word).ok().and_then(|w| w.parse().ok());
                columns[n].see(number);
            }
        }
        let entries = ((lines as f64 * times) as u64).max(1);
        // Values that are whole numbers count as a mode.
        let rows = columns.iter().filter(|c| c.numbers >= c.words);
        let mut rows: Vec<u64> = rows.map(|c| c.rows(times).min(entries)).collect();
        // Names are told apart by reading all of them.
        let named = columns.len().saturating_sub(1 + rows.len());
        rows.extend(vec![entries; named.max(2usize.saturating_sub(rows.len()))]);
        let pages = rows.iter().map(|r| r.div_ceil(INDICES)).sum();
        Size {
            entries,
            rows,
            pages,
        }
    }

    fn order(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// A column of text.
#[derive(Default)]
struct Column {
    /// Words that are whole numbers, and others.
    numbers: u64,
    words: u64,
    largest: u64,
    last: u64,
    /// Whether a number was smaller than the one before.
    falls: bool,
}

impl Column {
    fn see(&mut self, number: Option<u64>) {
        let Some(number) = number else {
            self.words += 1;
            return;
        };
        self.numbers += 1;
        self.falls |= number < self.last;
        self.last = number;
        self.largest = self.largest.max(number);
    }

    /// The rows of all of a text that is so many times as long.
    fn rows(&self, times: f64) -> u64 {
        // Numbers in order go on growing; those in any order have shown nearly how large they are.
        let by = if self.falls { times.min(MORE) } else { times };
        ((self.largest + 1) as f64 * by) as u64
    }
}

/// The bytes that a job will take.
pub(super) fn bytes(job: &Job, options: &Options) -> Result<u64> {
    let threads = options.threads.saturating_mul(STACK).saturating_add(LEAST);
    let rest = match &job.work {
        Work::Fit(spec) => of_fit(spec, options)?,
        Work::Predict(spec) => {
            // Not more than its file, which is mapped; what text is read into is a file, too.
            Size::of(&spec.file)?;
            fs::metadata(&spec.model)
                .map_err(|e| Error::cannot_open(&spec.model, e))?
                .len()
        }
    };
    Ok(threads.saturating_add(rest))
}

fn of_fit(spec: &FitJob, options: &Options) -> Result<u64> {
    let draws = options.algorithm == Algorithm::Gibbs;
    // Lists of the entries of each row.
    let exact = options.algorithm.is_rowwise();
    let drawn = !exact
        && (options.start == Initialization::Gibbs
            || (options.start == Initialization::Auto && !options.nonneg));
    let lists = exact || drawn;
    let copies = COPIES + if drawn { DRAWN } else { 0 };
    let weight = u64::from(spec.weights.is_some());
    let tensor = Size::of(&spec.tensor)?;
    let mut rows = tensor.rows.clone();
    let mut total: u64 = 0;
    let mut add = |count: u64, each: u64| total = total.saturating_add(count.saturating_mul(each));
    // The rows of an entry, its value and its weight.
    let entry = |order: u64| 4 * (order + 1 + weight);
    let of_entry = |order: u64| {
        // Chunks that are sorted and the cells that are made of them (`solver::sort`), or shuffled entries and their values
        // without biases, which are less.
        let cells = 2 * entry(order);
        // For each mode a list with the other rows, value and weight of each entry (`kernel::ModeCsr`), made from a copy.
        let listed = order * 4 * (order + weight) + entry(order);
        cells + if lists { listed } else { 0 }
    };
    add(tensor.entries, of_entry(tensor.order()));
    add(tensor.pages, PAGE);
    add(
        options.threads,
        CHUNK.min(tensor.entries) * entry(tensor.order()),
    );
    for held_out in [&spec.test, &spec.valid].into_iter().flatten() {
        let size = Size::of(held_out)?;
        // Sorted into cells, too, and without weights.
        add(size.entries, 2 * 4 * (size.order() + 1));
    }
    let mut columns = Vec::new();
    for matrix in &spec.matrices {
        let size = Size::of(&matrix.file)?;
        let entries = match matrix.kind {
            MatrixKind::Sampled(zeros) => size.entries.saturating_mul(1 + u64::from(zeros)),
            _ => size.entries,
        };
        add(entries, of_entry(2));
        add(size.pages, PAGE);
        if let Some(of_mode) = rows.get_mut(matrix.mode) {
            *of_mode = of_mode.saturating_add(size.rows[0]);
        }
        if !matrix.kind.is_graph() {
            columns.push((matrix.mode, size.rows[1]));
        }
    }
    let rank_of = |mode: usize| match options.rank.as_slice() {
        [] if options.model == ModelKind::Tucker => 10,
        [] => likely_rank(tensor.entries, &tensor.rows, options.algorithm),
        [one] => *one,
        list => list.get(mode).copied().unwrap_or(1),
    };
    let numbered = rows.iter().copied().enumerate().chain(columns);
    // What all samples take, and what those of the largest mode do.
    let (mut samples, mut largest) = (0u64, 0u64);
    for (mode, count) in numbered {
        // Its numbers and its bias; counts of the problem and of the model, what entries weigh there, and two penalties.
        let row = 4 * padded_len(rank_of(mode)) as u64 + 4;
        let kept = 2 * 8 + weight * 2 * 8 + 2 * 4;
        add(count, (copies * row).saturating_add(kept));
        if draws {
            // Digits of half the bits and a scale (`model::QuantizedRows`).
            let sample = 2 * (rank_of(mode) as u64 + 1) + 4;
            let all = count.saturating_mul(options.samples.saturating_mul(sample));
            samples = samples.saturating_add(all);
            largest = largest.max(all);
        }
    }
    // Those of one mode are there twice, with smooth rows.
    samples = samples.saturating_add(largest);
    let cp = options.model == ModelKind::Cp
        || (options.model == ModelKind::Auto && options.rank.is_empty());
    // The last mode is padded (`CoreShape::core_len`).
    let last = rows.len().saturating_sub(1);
    let core = match cp {
        true => padded_len(rank_of(last)) as u64,
        false => (0..last).fold(padded_len(rank_of(last)) as u64, |size, mode| {
            size.saturating_mul(rank_of(mode) as u64)
        }),
    };
    // A thread has its own, its slopes, and what batches make of it.
    add(core, 4 * (copies + 4 * options.threads));
    if draws {
        samples = samples.saturating_add(core.saturating_mul(4 * options.samples));
    }
    // A file is written from a copy of all samples, made mode by mode. What was fitted to is gone by then, unless it is a
    // checkpoint, but the allocator may not have given it back.
    let written = samples.saturating_add(largest);
    Ok(total.saturating_add(samples).saturating_add(written))
}

/// The memory that the system has left, where it tells.
pub(super) fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let free = kib.saturating_mul(1024);
    // A container may have less than the machine.
    let number = |file: &str| -> Option<u64> {
        let path = Path::new("/sys/fs/cgroup").join(file);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let limit =
        number("memory.max").map(|m| m.saturating_sub(number("memory.current").unwrap_or(0)));
    Some(limit.map_or(free, |limit| free.min(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_says_how_large_it_is() {
        // The first column in order, the second not, values with a point.
        let line = |i: u64| format!("{} {} {}.5\n", i / 10 + 1, i * 7 % 50 + 1, i % 5);
        let text: String = (0..1000).map(line).collect();
        let whole = Size::of_text(text.as_bytes(), 1.0);
        assert_eq!((whole.entries, &whole.rows[..]), (1000, &[101, 51][..]));
        let part = Size::of_text(text.as_bytes(), 8.0);
        assert_eq!((part.entries, &part.rows[..]), (10_000, &[1010, 63][..]));
        let named = Size::of_text(b"# people\nann,42,3.5\nbob,7,1.5\n", 1.0);
        assert_eq!((named.entries, &named.rows[..]), (2, &[2, 2][..]));
        let nothing = Size::of_text(b"", 1.0);
        assert_eq!((nothing.entries, nothing.rows.len()), (1, 2));
    }
}
