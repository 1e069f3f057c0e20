//! Bins of time: calendar units in chronological order, and cyclic units in their fixed order.

use super::calendar::{DAY, Date, iso_week, parse_iso, week_number, weekday};
use super::fields::quote;

/// Length of the bins of a time column. All units are of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Calendar years: `1996`.
    Year,
    /// Quarters: `1996-Q2`.
    Quarter,
    /// Months: `1996-04`.
    Month,
    /// ISO weeks, from Monday on: `1996-W17`.
    Week,
    /// Days: `1996-04-23`.
    Day,
    /// Hours: `1996-04-23 13:00`.
    Hour,
    /// Days of the week: `Mon` to `Sun`.
    Weekday,
    /// Hours of the week: `Mon 00:00` to `Sun 23:00`.
    HourOfWeek,
}

/// How a time column is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1970-01-01T00:00:00Z.
    Seconds,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    Milliseconds,
    /// ISO 8601 dates or dates with times.
    Iso,
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl TimeUnit {
    /// The names of the units on the command line.
    pub(super) const NAMES: &'static str =
        "year, quarter, month, week, day, hour, weekday or hour-of-week";

    /// The unit called `name` on the command line.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        Some(match name {
            "year" => TimeUnit::Year,
            "quarter" => TimeUnit::Quarter,
            "month" => TimeUnit::Month,
            "week" => TimeUnit::Week,
            "day" => TimeUnit::Day,
            "hour" => TimeUnit::Hour,
            "weekday" => TimeUnit::Weekday,
            "hour-of-week" | "hour_of_week" => TimeUnit::HourOfWeek,
            _ => return None,
        })
    }

    /// Returns the number of bins of a cyclic unit; `None` for calendar units.
    pub(super) fn cycle(self) -> Option<u32> {
        match self {
            TimeUnit::Weekday => Some(7),
            TimeUnit::HourOfWeek => Some(7 * 24),
            _ => None,
        }
    }

    /// Returns the number of the bin that a time in seconds since 1970 falls into. Consecutive bins have consecutive
    /// numbers.
    pub(super) fn bin(self, seconds: i64) -> i64 {
        let days = seconds.div_euclid(DAY);
        let hour = seconds.rem_euclid(DAY) / 3600;
        let date = || Date::from_days(days);
        match self {
            TimeUnit::Year => date().year,
            TimeUnit::Quarter => date().year * 4 + (date().month - 1) / 3,
            TimeUnit::Month => date().year * 12 + date().month - 1,
            TimeUnit::Week => week_number(days),
            TimeUnit::Day => days,
            TimeUnit::Hour => days * 24 + hour,
            TimeUnit::Weekday => weekday(days),
            TimeUnit::HourOfWeek => weekday(days) * 24 + hour,
        }
    }

    /// Returns the name of a bin.
    pub(super) fn bin_name(self, bin: i64) -> String {
        let day = |days: i64| {
            let Date { year, month, day } = Date::from_days(days);
            format!("{year:04}-{month:02}-{day:02}")
        };
        match self {
            TimeUnit::Year => format!("{bin:04}"),
            TimeUnit::Quarter => {
                format!("{:04}-Q{}", bin.div_euclid(4), bin.rem_euclid(4) + 1)
            }
            TimeUnit::Month => {
                format!("{:04}-{:02}", bin.div_euclid(12), bin.rem_euclid(12) + 1)
            }
            TimeUnit::Week => {
                let (year, week) = iso_week(bin);
                format!("{year:04}-W{week:02}")
            }
            TimeUnit::Day => day(bin),
            TimeUnit::Hour => format!("{} {:02}:00", day(bin.div_euclid(24)), bin.rem_euclid(24)),
            TimeUnit::Weekday => WEEKDAYS[bin.rem_euclid(7) as usize].into(),
            TimeUnit::HourOfWeek => {
                let weekday = WEEKDAYS[bin.div_euclid(24).rem_euclid(7) as usize];
                format!("{weekday} {:02}:00", bin.rem_euclid(24))
            }
        }
    }
}

/// Smallest number that is taken for epoch seconds if the format is not stated: 1973-03-03. Years, dates written as
/// 19960423 and counters are smaller.
const MIN_SECONDS: f64 = 1e8;
/// Smallest number that is taken for epoch milliseconds if the format is not stated: 1973-03-03, or in seconds the
/// year 5138.
const MIN_MILLISECONDS: f64 = 1e11;
/// Smallest number that is taken for neither: the year 5138 in milliseconds.
const MIN_NEITHER: f64 = 1e14;
/// Seconds of 0001-01-01T00:00:00Z and of 10000-01-01T00:00:00Z.
const VALID_SECONDS: std::ops::Range<f64> = -62_135_596_800.0..253_402_300_800.0;

/// Parses the fields of a time column.
#[derive(Debug, Clone)]
pub(super) struct TimeParser {
    format: Option<TimeFormat>,
    /// Whether the caller stated the format; otherwise the first field decides.
    stated: bool,
}

impl TimeParser {
    pub(super) fn new(format: Option<TimeFormat>) -> Self {
        TimeParser {
            format,
            stated: format.is_some(),
        }
    }

    /// Returns the time in seconds since 1970, rounded down.
    pub(super) fn parse(&mut self, field: &[u8]) -> Result<i64, String> {
        let invalid = |why: &str| format!("{} is not a valid time: {why}", quote(field));
        let Ok(text) = std::str::from_utf8(field) else {
            return Err(invalid("it is not UTF-8 text"));
        };
        let number = text.parse::<f64>().ok().filter(|x| x.is_finite());
        let format = match (self.format, number) {
            (Some(format), _) => format,
            (None, None) => TimeFormat::Iso,
            (None, Some(x)) if (MIN_SECONDS..MIN_MILLISECONDS).contains(&x.abs()) => {
                TimeFormat::Seconds
            }
            (None, Some(x)) if (MIN_MILLISECONDS..MIN_NEITHER).contains(&x.abs()) => {
                TimeFormat::Milliseconds
            }
            (None, Some(_)) => {
                return Err(invalid(
                    "the number may be seconds or milliseconds since 1970, or a date; state which \
                     (:s or :ms after the unit), or write dates as 1996-04-23",
                ));
            }
        };
        let seconds = match (format, number) {
            (TimeFormat::Iso, None) => parse_iso(text).map_err(|why| {
                let epoch = "; numbers are seconds or milliseconds since 1970";
                invalid(&format!("{why}{}", if self.stated { "" } else { epoch }))
            })? as f64,
            (TimeFormat::Iso, Some(_)) => {
                return Err(invalid(
                    "this column has ISO 8601 dates, such as 1996-04-23T13:05:00Z",
                ));
            }
            (TimeFormat::Seconds, Some(x)) => {
                if !self.stated && x.abs() >= MIN_MILLISECONDS {
                    return Err(invalid(
                        "the first time of this column is in seconds; if all are, state it (:s after the unit)",
                    ));
                }
                x.floor()
            }
            (TimeFormat::Milliseconds, Some(x)) => {
                if !self.stated && x.abs() < MIN_MILLISECONDS {
                    return Err(invalid(
                        "the first time of this column is in milliseconds; if all are, state it (:ms after the unit)",
                    ));
                }
                (x / 1000.0).floor()
            }
            (TimeFormat::Seconds | TimeFormat::Milliseconds, None) => {
                return Err(invalid(
                    "this column has numbers: seconds or milliseconds since 1970",
                ));
            }
        };
        if !VALID_SECONDS.contains(&seconds) {
            return Err(invalid("it is not between the years 0001 and 9999"));
        }
        self.format = Some(format);
        Ok(seconds as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_names_and_follow_each_other() {
        let time = parse_iso("1996-04-23T13:05:00Z").unwrap();
        for (unit, expected, next) in [
            (TimeUnit::Year, "1996", "1997"),
            (TimeUnit::Quarter, "1996-Q2", "1996-Q3"),
            (TimeUnit::Month, "1996-04", "1996-05"),
            (TimeUnit::Week, "1996-W17", "1996-W18"),
            (TimeUnit::Day, "1996-04-23", "1996-04-24"),
            (TimeUnit::Hour, "1996-04-23 13:00", "1996-04-23 14:00"),
            (TimeUnit::Weekday, "Tue", "Wed"),
            (TimeUnit::HourOfWeek, "Tue 13:00", "Tue 14:00"),
        ] {
            let bin = unit.bin(time);
            assert_eq!(unit.bin_name(bin), expected);
            assert_eq!(unit.bin_name(bin + 1), next);
        }
        // Before 1970 and at the borders of bins.
        assert_eq!(
            TimeUnit::Hour.bin_name(TimeUnit::Hour.bin(-1)),
            "1969-12-31 23:00"
        );
        assert_eq!(TimeUnit::Month.bin_name(TimeUnit::Month.bin(-1)), "1969-12");
        assert_eq!(
            TimeUnit::Quarter.bin_name(TimeUnit::Quarter.bin(-1)),
            "1969-Q4"
        );
        assert_eq!(TimeUnit::Weekday.bin_name(TimeUnit::Weekday.bin(-1)), "Wed");
        let year_end = parse_iso("2004-12-31T23:59:59Z").unwrap();
        assert_eq!(
            TimeUnit::Week.bin_name(TimeUnit::Week.bin(year_end)),
            "2004-W53"
        );
        for unit in [TimeUnit::Month, TimeUnit::Quarter, TimeUnit::Year] {
            assert_eq!(unit.bin(year_end) + 1, unit.bin(year_end + 1));
        }
    }

    #[test]
    fn the_first_field_decides_the_format_of_the_column() {
        let parse = |format: Option<TimeFormat>, fields: &[&str]| {
            let mut parser = TimeParser::new(format);
            let parsed = fields.iter().map(|f| parser.parse(f.as_bytes()));
            parsed.collect::<Result<Vec<i64>, String>>()
        };
        assert_eq!(
            parse(None, &["1112486027", "-5", "0", "1.5"]),
            Ok(vec![1_112_486_027, -5, 0, 1])
        );
        assert_eq!(
            parse(None, &["1112486027999", "-1112486027001"]),
            Ok(vec![1_112_486_027, -1_112_486_028])
        );
        assert_eq!(parse(None, &["2005-04-02"]), Ok(vec![1_112_400_000]));
        assert_eq!(parse(Some(TimeFormat::Seconds), &["1996"]), Ok(vec![1996]));
        assert_eq!(parse(Some(TimeFormat::Milliseconds), &["-1"]), Ok(vec![-1]));
        for (format, fields, expected) in [
            (None, &["1996"][..], "state which"),
            (None, &["19960423"], "state which"),
            (None, &["1112486027000000"], "state which"),
            (None, &["1112486027", "1112486027000"], "is in seconds"),
            (None, &["1112486027000", "1112486027"], "is in milliseconds"),
            (
                None,
                &["1112486027", "1996-04-23"],
                "this column has numbers",
            ),
            (None, &["1996-04-23", "1112486027"], "ISO 8601"),
            (None, &["soon"], "expected a date"),
            (None, &["nan"], "expected a date"),
            (None, &[""], "expected a date"),
            (Some(TimeFormat::Seconds), &["1e12"], "0001 and 9999"),
            (Some(TimeFormat::Iso), &["1112486027"], "ISO 8601"),
        ] {
            let error = parse(format, fields).unwrap_err();
            assert!(error.contains(expected), "{fields:?}: {error}");
        }
    }
}
