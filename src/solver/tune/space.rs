//! The search space: for each option a list of values or an interval.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::options::{ExternalAlgorithm, OPTION_TABLE, OptionInfo, OptionKind, Options};

/// The values of an option. State files contain a checksum of the debug format, so names of variants must not change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OptionRange {
    /// One of these values.
    List(Vec<String>),
    /// A number between these, uniform in its logarithm if the first is above 0.
    Between(f64, f64),
}

impl OptionRange {
    /// Returns an interval with both ends multiplied by `factor`; a list stays as it is.
    pub(super) fn scaled(&self, factor: f64) -> OptionRange {
        match self {
            OptionRange::Between(low, high) => OptionRange::Between(low * factor, high * factor),
            list => list.clone(),
        }
    }
}

/// The ranges of options. Options without a range here are sampled around the values that a fit would choose if they are
/// the rank, model, learning rates, penalties or the common matrix weight, as far as the algorithm uses them. All other options are
/// those that `tune` is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    /// The algorithms of other crates whose options can have ranges.
    algorithms: &'static [&'static ExternalAlgorithm],
    pub(super) ranges: BTreeMap<&'static str, OptionRange>,
}

impl Space {
    /// Returns a space without ranges, in which options of these algorithms of other crates can have ranges.
    #[doc(hidden)]
    pub fn with_algorithms(algorithms: &'static [&'static ExternalAlgorithm]) -> Space {
        Space {
            algorithms,
            ..Space::default()
        }
    }

    /// Restricts an option to values separated by commas (`8,16,32`) or to an interval (`0.005..0.1`).
    pub fn set(&mut self, name: &str, range: &str) -> Result<()> {
        let key = name.replace('-', "_");
        let options = || Options::default().with_algorithms(self.algorithms);
        let all = Options::options_with(self.algorithms);
        let Some(info) = all.iter().find(|o| o.name == key) else {
            // Fails with the message for unknown options.
            return options().set(name, range);
        };
        if !info.is_searched() {
            return Err(Error::argument(format!(
                "{key} is the same for all trials; give it one value, with the other options"
            )));
        }
        let invalid = |why: String| Error::argument(format!("{key} = {range:?}: {why}"));
        let numeric = !matches!(info.kind, OptionKind::Flag | OptionKind::Choice(_));
        let parsed = match range.split_once("..").filter(|_| numeric) {
            Some((low, high)) => {
                let parse = |end: &str| -> Result<f64> {
                    let end = end.trim();
                    options().set(info.name, end)?;
                    end.parse().map_err(|_| {
                        invalid(
                            "an interval goes from a number to a number, such as 0.005..0.1".into(),
                        )
                    })
                };
                let (low, high) = (parse(low)?, parse(high)?);
                if low > high {
                    return Err(invalid(format!(
                        "the interval is empty; did you mean {high}..{low}?"
                    )));
                }
                OptionRange::Between(low, high)
            }
            None => {
                let words: Vec<String> = range.split(',').map(|w| w.trim().to_string()).collect();
                for word in &words {
                    if word.is_empty() {
                        return Err(invalid(
                            "a value is missing; give values such as 8,16,32 or an interval such as 8..32"
                                .into(),
                        ));
                    }
                    if word == "auto" {
                        return Err(invalid(
                            "trials need values; leave the option out to search around the automatic choice".into(),
                        ));
                    }
                    options().set(info.name, word)?;
                }
                OptionRange::List(words)
            }
        };
        self.ranges.insert(info.name, parsed);
        Ok(())
    }

    /// Returns whether an option can have a range.
    pub fn searches(name: &str) -> bool {
        let key = name.replace('-', "_");
        let option = OPTION_TABLE.iter().find(|o| o.name == key);
        option.is_none_or(OptionInfo::is_searched)
    }

    /// Returns whether an option has a range of more than one value.
    pub(super) fn varies(&self, name: &str) -> bool {
        self.ranges.contains_key(name) && self.fixed(name).is_none()
    }

    /// Returns the value of an option that has only one.
    pub(super) fn fixed(&self, name: &str) -> Option<&str> {
        match self.ranges.get(name)? {
            OptionRange::List(values) => match &values[..] {
                [one] => Some(one),
                _ => None,
            },
            OptionRange::Between(..) => None,
        }
    }

    /// Returns a text that identifies the ranges, for the checksum of state files.
    pub(super) fn describe(&self) -> String {
        format!("{:?}", self.ranges)
    }
}
