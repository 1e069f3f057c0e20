//! Types of options, and how their values are parsed and printed.

use crate::kernel::MAX_ORDER;
use crate::nearest_name::did_you_mean;

/// The type of an option and the range of its values; bounds are inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Flag,
    /// An integer from the first bound to the second.
    Integer(u64, u64),
    /// A finite number from the first bound to the second.
    Real(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One integer from the first bound to the second, or one per mode separated by commas.
    IntegerList(usize, usize),
    /// Finite numbers from the first bound to the second, separated by commas.
    RealList(f64, f64),
}

impl OptionKind {
    /// Checks a value and returns it in its printed form. The error says what the value must be.
    pub(super) fn normalized(&self, text: &str) -> std::result::Result<String, String> {
        match self {
            OptionKind::Flag => Ok(bool::parse(text, self)?.print()),
            OptionKind::Integer(..) => Ok(u64::parse(text, self)?.print()),
            OptionKind::Real(..) => Ok(f64::parse(text, self)?.print()),
            OptionKind::Choice(words) if words.contains(&text) => Ok(text.into()),
            OptionKind::Choice(words) => Err(unknown_word(text, words)),
            OptionKind::IntegerList(..) => Ok(Vec::<usize>::parse(text, self)?.print()),
            OptionKind::RealList(..) => Ok(Vec::<f64>::parse(text, self)?.print()),
        }
    }
}

/// Returns the reason why `text` is none of `words`.
pub(super) fn unknown_word(text: &str, words: &[&str]) -> String {
    let suggestion = did_you_mean(text, words.iter().copied());
    format!("it must be one of {}{suggestion}", words.join(", "))
}

/// A type that options can have.
pub(super) trait OptionValue: Sized {
    /// Parses `text` and checks the range of `kind`. The error says what the value must be.
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String>;

    /// Prints the value in the form that `parse` accepts.
    fn print(&self) -> String;
}

impl OptionValue for bool {
    fn parse(text: &str, _: &OptionKind) -> std::result::Result<Self, String> {
        match text {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err("it must be true or false".into()),
        }
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for Option<bool> {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        if text == AUTO {
            return Ok(None);
        }
        bool::parse(text, kind)
            .map(Some)
            .map_err(|reason| format!("{reason}, or {AUTO}"))
    }

    fn print(&self) -> String {
        self.map_or(AUTO.into(), |x| x.print())
    }
}

impl OptionValue for u64 {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        let OptionKind::Integer(low, high) = *kind else {
            unreachable!("integers have kind Integer")
        };
        text.parse::<u64>()
            .ok()
            .filter(|x| (low..=high).contains(x))
            .ok_or_else(|| match high {
                u64::MAX => format!("it must be a whole number, {low} or more"),
                _ => format!("it must be a whole number from {low} to {high}"),
            })
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for f64 {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        let OptionKind::Real(low, high) = *kind else {
            unreachable!("numbers have kind Real")
        };
        text.parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && (low..=high).contains(x))
            .ok_or_else(|| {
                if high == f64::MAX {
                    format!("it must be a finite number, {low} or more")
                } else {
                    format!("it must be a number from {low} to {high}")
                }
            })
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

/// The text of a value that the library chooses.
const AUTO: &str = "auto";

impl OptionValue for Option<f64> {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        if text == AUTO {
            return Ok(None);
        }
        f64::parse(text, kind)
            .map(Some)
            .map_err(|reason| format!("{reason}, or {AUTO}"))
    }

    fn print(&self) -> String {
        self.map_or(AUTO.into(), |x| x.print())
    }
}

impl OptionValue for Vec<usize> {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        let OptionKind::IntegerList(low, high) = *kind else {
            unreachable!("lists of integers have kind IntegerList")
        };
        if text == AUTO {
            return Ok(Vec::new());
        }
        let ranks: Option<Vec<usize>> = text
            .split(',')
            .map(|j| j.trim().parse().ok().filter(|j| (low..=high).contains(j)))
            .collect();
        ranks.filter(|r| r.len() <= MAX_ORDER).ok_or_else(|| {
            format!("it must be one whole number from {low} to {high}, or one per mode separated by commas, or {AUTO}")
        })
    }

    fn print(&self) -> String {
        if self.is_empty() {
            return AUTO.into();
        }
        self.iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl OptionValue for Vec<f64> {
    fn parse(text: &str, kind: &OptionKind) -> std::result::Result<Self, String> {
        let OptionKind::RealList(low, high) = *kind else {
            unreachable!("lists of numbers have kind RealList")
        };
        if text == AUTO {
            return Ok(Vec::new());
        }
        text.split(',')
            .map(|x| f64::parse(x.trim(), &OptionKind::Real(low, high)))
            .collect::<std::result::Result<_, _>>()
            .map_err(|reason| format!("{reason}, or several separated by commas, or {AUTO}"))
    }

    fn print(&self) -> String {
        if self.is_empty() {
            return AUTO.into();
        }
        let words: Vec<String> = self.iter().map(f64::to_string).collect();
        words.join(",")
    }
}
