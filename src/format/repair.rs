//! Repairs a file: writes a copy without invalid entries and with one entry for each position.

use std::path::Path;

use super::batches::for_each_batch;
use super::check::for_each_duplicate;
use super::convert::refuse_same;
use super::coo_file::CooFile;
use super::coo_view::Values;
use super::coo_writer::{CooWriter, Dims, StagedCoo};
use super::header::Header;
use super::names;
use crate::error::{Error, Result};
use crate::progress::{Monitor, report_progress};
use crate::sort::stable_sort_by_key;
use crate::try_alloc::try_zeroed;

/// Which entry [`repair`] keeps of several at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicatePolicy {
    /// One entry in place of the first, with the mean of the values. With weights: the weighted mean and the sum of the
    /// weights, which leaves the least-squares solution unchanged.
    #[default]
    Mean,
    /// The first in the file.
    First,
    /// The last in the file.
    Last,
}

/// The changes that [`repair`] made.
#[derive(Debug, Clone)]
pub struct RepairReport {
    /// The header of the new file.
    pub header: Header,
    /// Number of entries dropped because an index was out of range or a value not finite.
    pub dropped: u64,
    /// Number of entries merged into, or replaced by, another at the same position.
    pub merged: u64,
}

/// Writes a copy of `file` that passes [`check`](super::check()): without invalid entries and with one entry per position.
/// A file whose checksums do not match is an error, since any of its entries may be wrong.
pub fn repair(
    file: &CooFile,
    output: &Path,
    keep: DuplicatePolicy,
    monitor: &dyn Monitor,
) -> Result<RepairReport> {
    file.verify(monitor)?;
    let view = file.view();
    let n = view.len();
    // Bitmap of entries to drop, and merged entries: (entry, value, weight).
    let mut dropped_bits: Vec<u64> = try_zeroed(n.div_ceil(64), "words for entries")?;
    let mut drop_entry = |i: u64| dropped_bits[(i / 64) as usize] |= 1 << (i % 64);
    let mut means: Vec<(u64, f64, f64)> = Vec::new();
    let is_valid = |i: usize| view.mode_out_of_range(i).is_none() && view.has_valid_numbers(i);
    let mut dropped = 0;
    for i in 0..n {
        if i % (1 << 20) == 0 {
            report_progress(monitor, "values and indices", i as u64, n as u64)?;
        }
        if !is_valid(i) {
            drop_entry(i as u64);
            dropped += 1;
        }
    }
    let mut merged = 0;
    for_each_duplicate(&view, monitor, &mut |entries| {
        let good: Vec<u64> = entries
            .iter()
            .copied()
            .filter(|&e| is_valid(e as usize))
            .collect();
        if good.len() < 2 {
            return Ok(());
        }
        let kept = match keep {
            DuplicatePolicy::Mean | DuplicatePolicy::First => good[0],
            DuplicatePolicy::Last => good[good.len() - 1],
        };
        if keep == DuplicatePolicy::Mean {
            let weight = |e: u64| view.weights().map_or(1.0, |w| w.get(e as usize));
            let value = |e: u64| view.values().get(e as usize);
            let total: f64 = good.iter().map(|&e| weight(e)).sum();
            let mean = if total > 0.0 {
                let sum: f64 = good.iter().map(|&e| weight(e) * value(e)).sum();
                // If the sum overflows, divide before summing.
                let divided_first = || good.iter().map(|&e| weight(e) / total * value(e)).sum();
                if sum.is_finite() {
                    sum / total
                } else {
                    divided_first()
                }
            } else {
                good.iter().map(|&e| value(e) / good.len() as f64).sum()
            };
            means.push((kept, mean, total));
        }
        merged += good.len() as u64 - 1;
        good.iter()
            .filter(|&&e| e != kept)
            .for_each(|&e| drop_entry(e));
        Ok(())
    })?;
    stable_sort_by_key(&mut means, &|m| m.0);
    // A binary file may be replaced by its repaired copy; a text input would be lost.
    if file.is_temporary() {
        refuse_same(Some(file.path()), output)?;
    }
    let names = names::carry(file.path(), &output.with_extension(""), view.order())?;
    let finished = write_kept(
        file,
        output,
        &dropped_bits,
        &means,
        n as u64 - dropped - merged,
        monitor,
    )?;
    names::commit_all(names)?;
    Ok(RepairReport {
        header: finished.commit()?,
        dropped,
        merged,
    })
}

/// Writes the entries that are not dropped, with merged values and weights.
fn write_kept(
    file: &CooFile,
    output: &Path,
    dropped_bits: &[u64],
    means: &[(u64, f64, f64)],
    kept: u64,
    monitor: &dyn Monitor,
) -> Result<StagedCoo> {
    let view = file.view();
    let h = file.header();
    if kept == 0 && !view.is_empty() {
        return Err(Error::file(
            file.name(),
            "no entry is valid, so the repaired file would be empty",
        ));
    }
    let mut writer = CooWriter::create(
        output,
        view.order(),
        h.value_kind,
        h.weight_kind,
        Some(kept),
    )?;
    let mut indices: Vec<Vec<u32>> = vec![Vec::new(); view.order()];
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    let mut next_mean = means.iter().peekable();
    for_each_batch(&view, monitor, "writing", &mut |columns, range| {
        indices.iter_mut().for_each(Vec::clear);
        values.clear();
        weights.clear();
        for (k, i) in range.enumerate() {
            if dropped_bits[i / 64] >> (i % 64) & 1 == 1 {
                continue;
            }
            let (mut value, mut weight) = (view.values().get(i), view.weights().map(|w| w.get(i)));
            if let Some((_, mean, total)) = next_mean.next_if(|m| m.0 == i as u64) {
                value = *mean;
                weight = weight.map(|_| *total);
            }
            for (list, column) in indices.iter_mut().zip(columns) {
                list.push(column[k]);
            }
            values.push(value);
            weights.extend(weight);
        }
        let columns: Vec<&[u32]> = indices.iter().map(Vec::as_slice).collect();
        let weights = h.weight_kind.map(|_| Values::F64(&weights));
        writer.push(&columns, Values::F64(&values), weights)
    })?;
    writer.stage(Dims::from_header(h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{OpenMode, ValueKind, check};

    /// Row, column, value, weight.
    type Row = (u32, u32, f64, f64);

    fn write(path: &Path, rows: &[Row], dims: &[u64]) -> CooFile {
        let weighted = rows.iter().any(|r| r.3 != 1.0);
        let kind = weighted.then_some(ValueKind::F64);
        let mut w = CooWriter::create(path, 2, ValueKind::F64, kind, None).unwrap();
        let a: Vec<u32> = rows.iter().map(|r| r.0).collect();
        let b: Vec<u32> = rows.iter().map(|r| r.1).collect();
        let values: Vec<f64> = rows.iter().map(|r| r.2).collect();
        let weights: Vec<f64> = rows.iter().map(|r| r.3).collect();
        let weights = weighted.then_some(Values::F64(&weights));
        w.push(&[&a, &b], Values::F64(&values), weights).unwrap();
        w.finish(Dims::Inferred).unwrap();
        // Sizes smaller than the indices, as a faulty writer might leave them.
        let mut bytes = std::fs::read(path).unwrap();
        let mut h = Header::decode(&bytes, bytes.len() as u64, "x").unwrap();
        h.dims = dims.to_vec();
        bytes[..512].copy_from_slice(&h.encode());
        std::fs::write(path, bytes).unwrap();
        CooFile::open(path, OpenMode::Private).unwrap()
    }

    #[test]
    fn faults_are_counted_and_repaired() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("a.coo"), dir.path().join("b.coo"));
        let rows = [
            (0, 0, 1.0, 1.0),
            (1, 1, 2.0, 1.0),
            (0, 0, 3.0, 1.0),
            (9, 1, 4.0, 1.0),
            (2, 2, f64::NAN, 1.0),
            (0, 0, 8.0, 1.0),
            (1, 1, 6.0, 1.0),
            (2, 0, 5.0, 1.0),
        ];
        let file = write(&path, &rows, &[4, 3]);
        let r = check(&file, &()).unwrap();
        assert!(!r.is_clean() && r.damaged.is_empty());
        assert_eq!(
            (r.out_of_range.count, r.out_of_range.examples[0].mode),
            (1, Some(0))
        );
        assert_eq!((r.not_finite.count, r.not_finite.examples[0].entry), (1, 4));
        assert_eq!((r.duplicates.count, r.repeated_entries), (2, 3));
        assert_eq!(
            r.duplicates.examples[0].entries,
            [(0, 1.0), (2, 3.0), (5, 8.0)]
        );
        assert_eq!(r.empty_rows, [1, 0]);
        for (keep, expected) in [
            (DuplicatePolicy::Mean, vec![4.0, 4.0, 5.0]),
            (DuplicatePolicy::First, vec![1.0, 2.0, 5.0]),
            (DuplicatePolicy::Last, vec![8.0, 6.0, 5.0]),
        ] {
            let fixed = repair(&file, &out, keep, &()).unwrap();
            assert_eq!((fixed.dropped, fixed.merged, fixed.header.count), (2, 3, 3));
            let back = CooFile::open(&out, OpenMode::Mapped).unwrap();
            let values: Vec<f64> = (0..3).map(|i| back.view().values().get(i)).collect();
            assert_eq!(values, expected, "{keep:?}");
            assert!(check(&back, &()).unwrap().is_clean());
        }
    }

    #[test]
    fn weighted_duplicates_keep_the_least_squares_solution() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("a.coo"), dir.path().join("b.coo"));
        let file = write(&path, &[(0, 0, 1.0, 3.0), (0, 0, 5.0, 1.0)], &[1, 1]);
        repair(&file, &out, DuplicatePolicy::Mean, &()).unwrap();
        let back = CooFile::open(&out, OpenMode::Mapped).unwrap();
        assert_eq!(
            (
                back.view().values().get(0),
                back.view().weights().unwrap().get(0)
            ),
            (2.0, 4.0)
        );
    }

    #[test]
    fn a_flipped_byte_is_detected_and_not_repaired() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("a.coo"), dir.path().join("b.coo"));
        drop(write(&path, &[(0, 0, 1.0, 1.0), (1, 1, 5.0, 1.0)], &[2, 2]));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = Header::decode(&bytes, bytes.len() as u64, "x")
            .unwrap()
            .values
            .offset as usize;
        bytes[at + 3] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let file = CooFile::open(&path, OpenMode::Mapped).unwrap();
        assert_eq!(check(&file, &()).unwrap().damaged, ["values"]);
        let error = repair(&file, &out, DuplicatePolicy::Mean, &())
            .unwrap_err()
            .to_string();
        assert!(error.contains("values") && !out.exists(), "{error}");
    }
}
