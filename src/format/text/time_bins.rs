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
const VALID_SECONDS: std::ops::Range<i64> = -62_135_596_800..253_402_300_800;

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
            })?,
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
                floor_decimal(text, 0)
            }
            (TimeFormat::Milliseconds, Some(x)) => {
                if !self.stated && x.abs() < MIN_MILLISECONDS {
                    return Err(invalid(
                        "the first time of this column is in milliseconds; if all are, state it (:ms after the unit)",
                    ));
                }
                floor_decimal(text, 3)
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
        Ok(seconds)
    }
}

/// Returns a decimal number divided by `10^shift` and rounded down. The number is not rounded to 64 bits before: that could
/// move it to the next second. Numbers beyond `i64` become its limits.
fn floor_decimal(text: &str, shift: i64) -> i64 {
    let unsigned = text.trim_start_matches(['+', '-']);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let too_long = if exponent.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    let exponent = exponent.parse().unwrap_or(too_long);
    // Digits before the decimal point of the result; none if the point is left of all.
    let mut whole_digits = exponent.saturating_add(whole.len() as i64 - shift);
    let mut number = 0i64;
    let mut has_fraction = false;
    for byte in whole.bytes().chain(decimals.bytes()) {
        if whole_digits > 0 {
            number = number
                .saturating_mul(10)
                .saturating_add(i64::from(byte - b'0'));
        } else {
            has_fraction |= byte != b'0';
        }
        whole_digits = whole_digits.saturating_sub(1);
    }
    // Zeros that the exponent adds.
    while whole_digits > 0 && number != 0 && number != i64::MAX {
        number = number.saturating_mul(10);
        whole_digits -= 1;
    }
    if text.starts_with('-') {
        -number - i64::from(has_fraction)
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

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
        // Rounded down as decimal numbers: as 64-bit numbers they are those of the next second.
        for (format, field, seconds) in [
            (TimeFormat::Seconds, "1112486027.99999999", 1_112_486_027),
            (TimeFormat::Seconds, "-1112486027.00000001", -1_112_486_028),
            (TimeFormat::Seconds, "+1.112486027E+09", 1_112_486_027),
            (TimeFormat::Seconds, "1112486027e-9", 1),
            (TimeFormat::Seconds, "-0.0", 0),
            (TimeFormat::Seconds, "-1e-400", -1),
            (TimeFormat::Seconds, "0e99999999999999999999", 0),
            (
                TimeFormat::Milliseconds,
                "1112486027999.9999",
                1_112_486_027,
            ),
            (
                TimeFormat::Milliseconds,
                "1112486027999.9999999",
                1_112_486_027,
            ),
            (TimeFormat::Milliseconds, "-1e-9", -1),
            (TimeFormat::Milliseconds, ".5e4", 5),
            (TimeFormat::Milliseconds, "-12e2", -2),
        ] {
            assert_eq!(parse(Some(format), &[field]), Ok(vec![seconds]), "{field}");
        }
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
            (Some(TimeFormat::Seconds), &["1e300"], "0001 and 9999"),
            (Some(TimeFormat::Iso), &["1112486027"], "ISO 8601"),
        ] {
            let error = parse(format, fields).unwrap_err();
            assert!(error.contains(expected), "{fields:?}: {error}");
        }
    }

    /// Dates of the years 0001 to 9999 by counting days from 0001-01-01, a Monday: independent of `calendar`.
    struct CountedDays {
        /// Year, month and day of each day.
        days: Vec<(i64, i64, i64)>,
    }

    impl CountedDays {
        fn new() -> CountedDays {
            let mut days = Vec::new();
            for year in 1..=9999 {
                let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
                let february = if is_leap { 29 } else { 28 };
                let lens = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
                for (month, len) in (1..).zip(lens) {
                    days.extend((1..=len).map(|day| (year, month, day)));
                }
            }
            CountedDays { days }
        }

        /// Returns the name of the bin of a time in seconds since 0001-01-01T00:00:00.
        fn name(&self, unit: TimeUnit, seconds: i64) -> String {
            let (at, hour) = ((seconds / 86_400) as usize, seconds / 3600 % 24);
            let (year, month, day) = self.days[at];
            let weekday = at % 7;
            match unit {
                TimeUnit::Year => format!("{year:04}"),
                TimeUnit::Quarter => format!("{year:04}-Q{}", (month + 2) / 3),
                TimeUnit::Month => format!("{year:04}-{month:02}"),
                TimeUnit::Week => {
                    let thursday = at - weekday + 3;
                    let year = self.days[thursday].0;
                    let first = self.days.partition_point(|date| *date < (year, 1, 1));
                    format!("{year:04}-W{:02}", (thursday - first) / 7 + 1)
                }
                TimeUnit::Day => format!("{year:04}-{month:02}-{day:02}"),
                TimeUnit::Hour => format!("{year:04}-{month:02}-{day:02} {hour:02}:00"),
                TimeUnit::Weekday => WEEKDAYS[weekday].into(),
                TimeUnit::HourOfWeek => format!("{} {hour:02}:00", WEEKDAYS[weekday]),
            }
        }
    }

    const UNITS: [TimeUnit; 8] = [
        TimeUnit::Year,
        TimeUnit::Quarter,
        TimeUnit::Month,
        TimeUnit::Week,
        TimeUnit::Day,
        TimeUnit::Hour,
        TimeUnit::Weekday,
        TimeUnit::HourOfWeek,
    ];

    #[test]
    #[cfg_attr(miri, ignore = "counts the days of ten millennia")]
    fn bins_are_those_of_counted_days() {
        let calendar = CountedDays::new();
        let epoch = calendar.days.binary_search(&(1970, 1, 1)).unwrap() as i64 * 86_400;
        let end = calendar.days.len() as i64 * 86_400;
        let mut s = RandomStream::new(&[23]);
        for round in 0..40_000 {
            // Anywhere, within decades of 1970, or around the turn of a year.
            let random = |s: &mut RandomStream, span: i64| s.below(span as u64) as i64;
            let whole = match round % 4 {
                0 => random(&mut s, end),
                1 => epoch - (1 << 31) + random(&mut s, 1 << 32),
                2 => epoch - 100_000 + random(&mut s, 200_000),
                _ => {
                    let day = (1 + random(&mut s, 9998), 1, 1);
                    let turn = calendar.days.partition_point(|date| *date < day) as i64 * 86_400;
                    (turn - 8 * 86_400 + random(&mut s, 16 * 86_400)).clamp(0, end - 1)
                }
            };
            let since_1970 = whole - epoch;
            // The fraction counts up also before 1970: -1.25 is -2 and 0.75.
            let nanoseconds =
                [0, 1, 999_999_999, random(&mut s, 1_000_000_000)][s.below(4) as usize];
            let total = i128::from(since_1970) * 1_000_000_000 + i128::from(nanoseconds);
            let sign = if total < 0 { "-" } else { "" };
            let decimal = |unit: u128, digits: usize| {
                let total = total.unsigned_abs();
                format!("{sign}{}.{:0digits$}", total / unit, total % unit)
            };
            let (year, month, day) = calendar.days[(whole / 86_400) as usize];
            let (hour, minute, second) = (whole / 3600 % 24, whole / 60 % 60, whole % 60);
            let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
            // The same time on the clocks of another time zone.
            let shift = random(&mut s, 2 * 14 * 60) - 14 * 60;
            let shifted = (whole + shift * 60).clamp(0, end - 1);
            let local = calendar.days[(shifted / 86_400) as usize];
            let offset = shift.abs();
            let zoned = format!(
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02},5{}{:02}:{:02}",
                local.0,
                local.1,
                local.2,
                shifted / 3600 % 24,
                shifted / 60 % 60,
                shifted % 60,
                if shift < 0 { '-' } else { '+' },
                offset / 60,
                offset % 60
            );
            let texts = [
                (Some(TimeFormat::Seconds), decimal(1_000_000_000, 9)),
                (Some(TimeFormat::Milliseconds), decimal(1_000_000, 6)),
                (None, format!("{date}.{nanoseconds:09}Z")),
                (Some(TimeFormat::Iso), date.clone()),
                (
                    None,
                    if shifted == whole + shift * 60 {
                        zoned
                    } else {
                        date
                    },
                ),
            ];
            for (format, text) in texts {
                let seconds = TimeParser::new(format).parse(text.as_bytes());
                assert_eq!(seconds, Ok(since_1970), "{text}");
            }
            for unit in UNITS {
                let bin = unit.bin(since_1970);
                assert_eq!(
                    unit.bin_name(bin),
                    calendar.name(unit, whole),
                    "{unit:?} {whole}"
                );
                // The next bin begins with a later second.
                if unit.cycle().is_none() && whole + 1 < end {
                    let next = unit.bin(since_1970 + 1);
                    let is_same = calendar.name(unit, whole) == calendar.name(unit, whole + 1);
                    assert_eq!(next, bin + i64::from(!is_same), "{unit:?} {whole}");
                }
            }
        }
    }
}
