//! Bins of a column: how they are chosen, and how lines are assigned to them while the text is read.
//!
//! The first and the last bin, and the borders of quantiles, are known after the last line only. Lines therefore get
//! provisional indices, one for each distinct bin of time or distinct number, and [`Bins::finish`] returns the table
//! that maps them to bins. Memory is proportional to the number of distinct ones.

use std::collections::HashMap;
use std::path::PathBuf;

use super::number_bins::NumberRule;
use super::time_bins::{TimeFormat, TimeParser, TimeUnit};
use crate::format::names::Names;

/// A column whose contents are grouped in bins.
#[derive(Debug, Clone, PartialEq)]
pub struct BinnedColumn {
    /// The column, by name or number from 1.
    pub column: String,
    /// How its contents are grouped.
    pub rule: BinRule,
}

/// How the contents of a column are grouped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BinRule {
    /// By time.
    Time(TimeUnit, Option<TimeFormat>),
    /// By number.
    Number(NumberRule),
}

impl BinnedColumn {
    /// Parses `COLUMN:UNIT` or `COLUMN:UNIT:FORMAT`, the format being s, ms or iso.
    pub(super) fn parse_time(text: &str) -> Result<BinnedColumn, String> {
        let expected = || {
            format!(
                "COLUMN:UNIT with the unit {}, such as timestamp:month; :s, :ms or :iso may follow",
                TimeUnit::NAMES
            )
        };
        let (rest, format) = match text.rsplit_once(':') {
            Some((rest, "s")) => (rest, Some(TimeFormat::Seconds)),
            Some((rest, "ms")) => (rest, Some(TimeFormat::Milliseconds)),
            Some((rest, "iso")) => (rest, Some(TimeFormat::Iso)),
            _ => (text, None),
        };
        let (column, unit) = rest.rsplit_once(':').ok_or_else(expected)?;
        let unit = TimeUnit::from_name(unit).ok_or_else(expected)?;
        if column.is_empty() {
            return Err(expected());
        }
        Ok(BinnedColumn {
            column: column.into(),
            rule: BinRule::Time(unit, format),
        })
    }

    /// Parses `COLUMN:quantiles=N`, `COLUMN:width=W` or `COLUMN:log=B`.
    pub(super) fn parse_number(text: &str) -> Result<BinnedColumn, String> {
        let expected = || {
            format!(
                "COLUMN:RULE with the rule {}, such as age:quantiles=10",
                NumberRule::EXPECTED
            )
        };
        let (column, rule) = text.rsplit_once(':').ok_or_else(expected)?;
        let rule = NumberRule::parse(rule).filter(|_| !column.is_empty());
        Ok(BinnedColumn {
            column: column.into(),
            rule: BinRule::Number(rule.ok_or_else(expected)?),
        })
    }
}

/// Largest number of bins: more than the hours of four centuries.
const MAX_BINS: u64 = 1 << 22;

/// The bins of a column while its lines are read.
#[derive(Debug)]
pub(super) struct Bins {
    rule: BinRule,
    time: TimeParser,
    /// Names of an earlier conversion, which determine the bins of time.
    given: Option<(Names, PathBuf)>,
    /// The provisional index of each key.
    index: HashMap<u64, u32, foldhash::fast::RandomState>,
    keys: Vec<u64>,
    counts: Vec<u64>,
}

impl Bins {
    /// `given` has the names of an earlier conversion and their file.
    pub(super) fn new(rule: BinRule, given: Option<(Names, PathBuf)>) -> Result<Bins, String> {
        let format = match rule {
            BinRule::Time(_, format) => format,
            BinRule::Number(_) if given.is_some() => {
                return Err(
                    "names of an earlier conversion cannot be given for bins of numbers; \
                     convert all lines at once and split the entries afterwards"
                        .into(),
                );
            }
            BinRule::Number(rule) if !rule.is_valid() => {
                return Err(format!("bins {rule:?}: {}", NumberRule::EXPECTED));
            }
            BinRule::Number(_) => None,
        };
        Ok(Bins {
            rule,
            time: TimeParser::new(format),
            given,
            index: HashMap::default(),
            keys: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Parses a field. The key is the number of a bin of time, or the bits of a number.
    pub(super) fn key(&mut self, field: &[u8]) -> Result<u64, String> {
        if field.is_empty() {
            return Err("the field is empty".into());
        }
        match self.rule {
            BinRule::Number(rule) => rule.number(field).map(f64::to_bits),
            BinRule::Time(unit, _) => {
                let bin = unit.bin(self.time.parse(field)?);
                let key = bin as u64;
                if let Some((names, path)) = &self.given
                    && !self.index.contains_key(&key)
                    && names.find(&unit.bin_name(bin)).is_none()
                {
                    return Err(format!(
                        "{} is not among the names in {}",
                        unit.bin_name(bin),
                        path.display()
                    ));
                }
                Ok(key)
            }
        }
    }

    /// Returns the provisional index of a key and counts a line.
    pub(super) fn intern(&mut self, key: u64) -> u32 {
        // A text has fewer than 2^32 distinct keys: each needs a line of its own and its bytes in memory.
        let next = self.keys.len() as u32;
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.keys.push(key);
            self.counts.push(0);
        }
        self.counts[at as usize] += 1;
        at
    }

    /// Returns the bin of each provisional index, and the names of all bins.
    pub(super) fn finish(self) -> Result<(Vec<u32>, Names), String> {
        let unit = match self.rule {
            BinRule::Time(unit, _) => unit,
            BinRule::Number(rule) => {
                let distinct: Vec<f64> = self.keys.iter().map(|&k| f64::from_bits(k)).collect();
                let (table, names) = rule.assign(&distinct, &self.counts, MAX_BINS)?;
                return Ok((table, Names::from_names(names)));
            }
        };
        let bins: Vec<i64> = self.keys.iter().map(|&k| k as i64).collect();
        if let Some((names, _)) = self.given {
            let find = |&bin: &i64| names.find(&unit.bin_name(bin));
            let table = bins.iter().map(|bin| find(bin).expect("`key` found it"));
            return Ok((table.collect(), names));
        }
        let (first, count) = match (unit.cycle(), bins.iter().min(), bins.iter().max()) {
            (Some(cycle), ..) => (0, u64::from(cycle)),
            (None, Some(&first), Some(&last)) => (first, last.abs_diff(first) + 1),
            (None, ..) => (0, 0),
        };
        if count > MAX_BINS {
            return Err(format!(
                "{count} bins from {} to {}; at most {MAX_BINS} are possible, choose a longer unit",
                unit.bin_name(first),
                unit.bin_name(first + count as i64 - 1)
            ));
        }
        let table = bins.iter().map(|&bin| (bin - first) as u32).collect();
        let names = (0..count as i64).map(|k| unit.bin_name(first + k));
        Ok((table, Names::from_names(names)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the bins of all fields, and the names of all bins.
    fn bin(spec: BinnedColumn, fields: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut bins = Bins::new(spec.rule, None).unwrap();
        let mut rows = Vec::new();
        for field in fields {
            let key = bins.key(field.as_bytes()).unwrap();
            rows.push(bins.intern(key));
        }
        let (table, names) = bins.finish().unwrap();
        let of_row = |&row: &u32| names.name(u64::from(table[row as usize])).unwrap().into();
        (
            rows.iter().map(of_row).collect(),
            names.iter().map(|(_, name)| name.into()).collect(),
        )
    }

    #[test]
    fn calendar_bins_are_consecutive_and_cyclic_ones_complete() {
        let months = BinnedColumn::parse_time("t:month").unwrap();
        let (rows, all) = bin(
            months,
            &["1996-12-31", "1997-02-01", "1996-12-01", "1996-11-05"],
        );
        assert_eq!(rows, ["1996-12", "1997-02", "1996-12", "1996-11"]);
        assert_eq!(all, ["1996-11", "1996-12", "1997-01", "1997-02"]);
        let weekdays = BinnedColumn::parse_time("t:weekday").unwrap();
        let (rows, all) = bin(weekdays, &["1996-04-23"]);
        assert_eq!((rows.as_slice(), all.len()), (&["Tue".to_string()][..], 7));
        let quantiles = BinnedColumn::parse_number("a:quantiles=2").unwrap();
        let (rows, _) = bin(quantiles, &["4", "1", "1", "9"]);
        assert_eq!(rows, ["(1, 9]", "[1, 1]", "[1, 1]", "(1, 9]"]);
    }

    #[test]
    fn given_names_determine_the_bins() {
        let names = Names::from_names(["1996-12", "1997-01"]);
        let rule = BinnedColumn::parse_time("t:month").unwrap().rule;
        let mut bins = Bins::new(rule, Some((names.clone(), "m.tsv".into()))).unwrap();
        let key = bins.key(b"1997-01-20").unwrap();
        bins.intern(key);
        let error = bins.key(b"1997-02-01").unwrap_err();
        assert!(
            error.contains("1997-02") && error.contains("m.tsv"),
            "{error}"
        );
        let (table, all) = bins.finish().unwrap();
        assert_eq!((table, all.len()), (vec![1], 2));
        let rule = BinnedColumn::parse_number("a:width=2").unwrap().rule;
        assert!(Bins::new(rule, Some((names, "m.tsv".into()))).is_err());
    }

    #[test]
    fn specifications() {
        let parse = |text: &str| BinnedColumn::parse_time(text);
        let column = parse("a:b:hour-of-week:ms").unwrap();
        assert_eq!(column.column, "a:b");
        let rule = BinRule::Time(TimeUnit::HourOfWeek, Some(TimeFormat::Milliseconds));
        assert_eq!(column.rule, rule);
        for text in [
            "timestamp",
            "timestamp:moth",
            ":month",
            "t:month:us",
            "t:ms",
        ] {
            assert!(parse(text).unwrap_err().contains("hour-of-week"), "{text}");
        }
        for text in ["age", "age:10", ":width=2", "age:width=0"] {
            let error = BinnedColumn::parse_number(text).unwrap_err();
            assert!(error.contains("quantiles=N"), "{text}");
        }
    }
}
