//! Splits a tensor into training, validation and test files.

use std::path::{Path, PathBuf};

use super::batches::for_each_valid_batch;
use super::convert::refuse_same;
use super::coo_file::CooFile;
use super::coo_view::Values;
use super::coo_writer::{CooWriter, Dims};
use super::group_by_key::{DEFAULT_MEMORY, for_each_group};
use super::names;
use super::output_target::check_derived_target;
use crate::error::{Error, Result};
use crate::progress::Monitor;
use crate::random::Permutation;

/// How entries are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRule {
    /// Uniformly at random; the numbers of entries are exact.
    Random,
    /// In each row of `row_mode`, the fraction (rounded to whole entries) of its entries with the largest index in
    /// `order_mode`; among equals, those later in the file. Both modes count from 0.
    LastPerRow {
        /// Mode whose rows each lose their last entries.
        row_mode: usize,
        /// Mode that orders the entries of a row, such as time.
        order_mode: usize,
    },
}

/// Options of [`split`].
#[derive(Debug, Clone)]
pub struct SplitOptions {
    /// Fraction of the entries to hold out for testing.
    pub test_fraction: f64,
    /// Fraction to hold out for validation.
    pub valid_fraction: f64,
    /// Seed of [`SplitRule::Random`].
    pub seed: u64,
    /// How entries are chosen.
    pub rule: SplitRule,
}

/// A file that [`split`] wrote.
#[derive(Debug, Clone)]
pub struct SplitPart {
    /// `train`, `valid` or `test`.
    pub name: &'static str,
    /// Its file.
    pub path: PathBuf,
    /// Its number of entries.
    pub count: u64,
}

const NAMES: [&str; 3] = ["train", "valid", "test"];
const TRAIN: u8 = 0;
const VALID: u8 = 1;
const TEST: u8 = 2;

/// Assigns entries to parts.
enum Assignment {
    Random {
        order: Permutation,
        test: u64,
        valid: u64,
    },
    /// Two bits per entry.
    Listed(Vec<u8>),
}

impl Assignment {
    fn part(&self, i: usize) -> u8 {
        match self {
            Assignment::Random { order, test, valid } => {
                let position = order.apply(i as u64);
                if position < *test {
                    TEST
                } else if position < test + valid {
                    VALID
                } else {
                    TRAIN
                }
            }
            Assignment::Listed(bits) => bits[i / 4] >> (2 * (i % 4)) & 3,
        }
    }
}

/// Writes `PREFIX.train.coo`, `PREFIX.test.coo` and, if asked for, `PREFIX.valid.coo`; all appear
/// together. Sizes, precision and weights are kept, and names of rows are copied.
pub fn split(
    file: &CooFile,
    prefix: &Path,
    options: &SplitOptions,
    monitor: &dyn Monitor,
) -> Result<Vec<SplitPart>> {
    let (test, valid) = (options.test_fraction, options.valid_fraction);
    if !(0.0..1.0).contains(&test) || !(0.0..1.0).contains(&valid) || test + valid >= 1.0 {
        return Err(Error::argument(format!(
            "test {test} and valid {valid} must be 0 or more and add up to less than 1"
        )));
    }
    if test + valid == 0.0 {
        return Err(Error::argument(
            "nothing would be held out; give test or valid a part, such as 0.2",
        ));
    }
    refuse_leftovers(prefix, [true, valid > 0.0, test > 0.0])?;
    file.verify(monitor)?;
    let view = file.view();
    let n = view.len() as u64;
    let count_of = |fraction: f64, of: u64| (fraction * of as f64).round() as u64;
    let (assignment, counts) = match options.rule {
        SplitRule::Random => {
            let (test, valid) = (count_of(test, n), count_of(valid, n));
            let order = Permutation::new(n, &[options.seed, 0x5911_7000]);
            (
                Assignment::Random { order, test, valid },
                [n.saturating_sub(test + valid), valid, test],
            )
        }
        SplitRule::LastPerRow {
            row_mode: row,
            order_mode: by,
        } => {
            for mode in [row, by] {
                if mode >= view.order() {
                    return Err(Error::argument(format!(
                        "mode {} does not exist; {} has {} modes",
                        mode + 1,
                        file.name(),
                        view.order()
                    )));
                }
            }
            if row == by {
                return Err(Error::argument(format!(
                    "rows of mode {} cannot be ordered by that same mode; name another",
                    row + 1
                )));
            }
            let mut bits = vec![0u8; view.len().div_ceil(4)];
            let mut counts = [n, 0, 0];
            let (rows, times) = (view.column(row), view.column(by));
            let key = |i: usize| u64::from(rows[i]);
            let mut sorted = Vec::new();
            for_each_group(n, DEFAULT_MEMORY, true, key, monitor, |group| {
                sorted.clear();
                sorted.extend_from_slice(group);
                sorted.sort_unstable_by_key(|&i| (times[i as usize], i));
                let len = sorted.len() as u64;
                let (held_test, held_valid) = (count_of(test, len), count_of(valid, len));
                for (back, &i) in sorted.iter().rev().enumerate() {
                    let back = back as u64;
                    let part = if back < held_test {
                        TEST
                    } else if back < held_test + held_valid {
                        VALID
                    } else {
                        break;
                    };
                    bits[i as usize / 4] |= part << (2 * (i % 4));
                    counts[part as usize] += 1;
                    counts[0] -= 1;
                }
                Ok(())
            })?;
            (Assignment::Listed(bits), counts)
        }
    };
    let wanted = [true, valid > 0.0, test > 0.0];
    for part in 0..3 {
        if wanted[part] && counts[part] == 0 {
            return Err(Error::argument(format!(
                "the {} part of {n} entries would be empty; hold out another share",
                NAMES[part]
            )));
        }
    }
    write_parts(file, prefix, &assignment, counts, wanted, monitor)
}

/// Returns the path of a part.
fn part_path(prefix: &Path, part: u8) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{}.coo", NAMES[part as usize]));
    PathBuf::from(name)
}

/// Returns an error if a part of an earlier split exists that this split would not replace: it would look like a part of
/// the new one.
fn refuse_leftovers(prefix: &Path, wanted: [bool; 3]) -> Result<()> {
    for part in [TRAIN, VALID, TEST] {
        let path = part_path(prefix, part);
        if !wanted[part as usize] && path.exists() {
            return Err(Error::file(
                path.display().to_string(),
                "is left from an earlier split and would not fit the new parts; remove it or choose another prefix",
            ));
        }
    }
    Ok(())
}

fn write_parts(
    file: &CooFile,
    prefix: &Path,
    assignment: &Assignment,
    counts: [u64; 3],
    wanted: [bool; 3],
    monitor: &dyn Monitor,
) -> Result<Vec<SplitPart>> {
    let view = file.view();
    let h = file.header();
    let mut outputs: Vec<(u8, PathBuf, CooWriter)> = Vec::new();
    for part in [TRAIN, VALID, TEST] {
        if wanted[part as usize] {
            let path = part_path(prefix, part);
            refuse_same(Some(file.path()), &path)?;
            check_derived_target(&path)?;
            let count = Some(counts[part as usize]);
            let writer =
                CooWriter::create(&path, view.order(), h.value_kind, h.weight_kind, count)?;
            outputs.push((part, path, writer));
        }
    }
    let mut indices: Vec<Vec<u32>> = vec![Vec::new(); view.order()];
    let (mut chosen, mut parts) = (Vec::new(), Vec::new());
    for_each_valid_batch(&view, monitor, "writing", &mut |columns, range| {
        parts.clear();
        parts.extend(range.clone().map(|i| assignment.part(i)));
        for (part, _, writer) in &mut outputs {
            chosen.clear();
            chosen.extend((0..parts.len()).filter(|&k| parts[k] == *part));
            for (list, column) in indices.iter_mut().zip(columns) {
                list.clear();
                list.extend(chosen.iter().map(|&k| column[k]));
            }
            let columns: Vec<&[u32]> = indices.iter().map(Vec::as_slice).collect();
            let pick = |v: Values<'_>| {
                chosen
                    .iter()
                    .map(|&k| v.get(range.start + k))
                    .collect::<Vec<f64>>()
            };
            let values = pick(view.values());
            let weights = view.weights().map(pick);
            writer.push(
                &columns,
                Values::F64(&values),
                weights.as_deref().map(Values::F64),
            )?;
        }
        Ok(())
    })?;
    let mut staged = Vec::new();
    for (part, path, writer) in outputs {
        // Parts keep the sizes of the whole, because one may lack the last row.
        staged.push((part, path, writer.stage(Dims::from_header(h))?));
    }
    let names = names::carry(file.path(), prefix, h.dims.len())?;
    names::commit_all(names)?;
    let mut written = Vec::new();
    for (part, path, finished) in staged {
        let header = finished.commit()?;
        written.push(SplitPart {
            name: NAMES[part as usize],
            path,
            count: header.count,
        });
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{OpenMode, ValueKind};
    use std::collections::BTreeSet;

    fn example(dir: &Path, n: u32) -> CooFile {
        let path = dir.join("x.coo");
        let mut w = CooWriter::create(&path, 3, ValueKind::F32, None, None).unwrap();
        let user: Vec<u32> = (0..n).map(|i| i % 10).collect();
        let item: Vec<u32> = (0..n).collect();
        let time: Vec<u32> = (0..n).map(|i| (i * 7919) % 101).collect();
        let value: Vec<f64> = (0..n).map(f64::from).collect();
        w.push(&[&user, &item, &time], Values::F64(&value), None)
            .unwrap();
        w.finish(Dims::Inferred).unwrap();
        CooFile::open(&path, OpenMode::Mapped).unwrap()
    }

    fn read(parts: &[SplitPart], name: &str) -> Vec<(u32, u32, u32)> {
        let part = parts.iter().find(|p| p.name == name).unwrap();
        let f = CooFile::open(&part.path, OpenMode::Private).unwrap();
        let v = f.view();
        assert_eq!(v.len() as u64, part.count);
        (0..v.len())
            .map(|i| {
                assert_eq!(
                    v.values().get(i),
                    f64::from(v.column(1)[i]),
                    "values stay with their entry"
                );
                (v.column(0)[i], v.column(1)[i], v.column(2)[i])
            })
            .collect()
    }

    #[test]
    fn random_parts_are_exact_disjoint_complete_and_seeded() {
        let dir = tempfile::tempdir().unwrap();
        let f = example(dir.path(), 100_003);
        let run = |seed, prefix: &str| {
            let options = SplitOptions {
                test_fraction: 0.2,
                valid_fraction: 0.1,
                seed,
                rule: SplitRule::Random,
            };
            split(&f, &dir.path().join(prefix), &options, &()).unwrap()
        };
        let parts = run(1, "a");
        let (train, valid, test) = (
            read(&parts, "train"),
            read(&parts, "valid"),
            read(&parts, "test"),
        );
        assert_eq!(
            (train.len(), valid.len(), test.len()),
            (70_002, 10_000, 20_001)
        );
        let all: BTreeSet<_> = train.iter().chain(&valid).chain(&test).collect();
        assert_eq!(all.len(), 100_003);
        // Uniform: each user keeps about a fifth of its entries in the test part.
        for user in 0..10 {
            let held = test.iter().filter(|e| e.0 == user).count();
            assert!((1800..2200).contains(&held), "{held}");
        }
        assert_eq!(read(&run(1, "b"), "test"), test);
        assert_ne!(read(&run(2, "c"), "test"), test);
        let header = CooFile::open(&parts[2].path, OpenMode::Mapped).unwrap();
        assert_eq!(header.header().dims, f.header().dims);
    }

    #[test]
    fn last_per_row_holds_out_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let f = example(dir.path(), 1000);
        let rule = SplitRule::LastPerRow {
            row_mode: 0,
            order_mode: 2,
        };
        let options = SplitOptions {
            test_fraction: 0.2,
            valid_fraction: 0.1,
            seed: 0,
            rule,
        };
        let parts = split(&f, &dir.path().join("l"), &options, &()).unwrap();
        let (train, valid, test) = (
            read(&parts, "train"),
            read(&parts, "valid"),
            read(&parts, "test"),
        );
        for user in 0..10 {
            let times = |p: &[(u32, u32, u32)]| {
                p.iter()
                    .filter(|e| e.0 == user)
                    .map(|e| e.2)
                    .collect::<Vec<_>>()
            };
            let (a, b, c) = (times(&train), times(&valid), times(&test));
            assert_eq!((a.len(), b.len(), c.len()), (70, 10, 20));
            assert!(a.iter().max() <= b.iter().min() && b.iter().max() <= c.iter().min());
        }
    }

    #[test]
    fn invalid_options_are_rejected_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let f = example(dir.path(), 10);
        let r = SplitRule::Random;
        for (test, valid, rule) in [
            (1.0, 0.0, r),
            (-0.1, 0.0, r),
            (f64::NAN, 0.0, r),
            (0.6, 0.4, r),
            (0.0, 0.0, r),
            (0.01, 0.0, r),
            (
                0.2,
                0.0,
                SplitRule::LastPerRow {
                    row_mode: 3,
                    order_mode: 2,
                },
            ),
            (
                0.2,
                0.0,
                SplitRule::LastPerRow {
                    row_mode: 0,
                    order_mode: 3,
                },
            ),
            (
                0.2,
                0.0,
                SplitRule::LastPerRow {
                    row_mode: 1,
                    order_mode: 1,
                },
            ),
        ] {
            let options = SplitOptions {
                test_fraction: test,
                valid_fraction: valid,
                seed: 0,
                rule,
            };
            assert!(
                split(&f, &dir.path().join("z"), &options, &()).is_err(),
                "{options:?}"
            );
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
