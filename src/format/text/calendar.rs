//! Calendar arithmetic in UTC: the proleptic Gregorian calendar, ISO weeks, and ISO 8601 dates and times.

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// A day of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
}

impl Date {
    /// Returns the date `days` days since 1970-01-01.
    ///
    /// Years start in March here, so that the leap day is the last day of a year, and are grouped in eras of 400 years
    /// (146,097 days), after which the calendar repeats.
    pub(super) fn from_days(days: i64) -> Date {
        let shifted = days + 719_468; // 0000-03-01 becomes day 0
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        Date {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
        }
    }

    /// Returns the number of days since 1970-01-01.
    pub(super) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(400) * 146_097 + day_of_era - 719_468
    }
}

/// Returns the number of days of a month.
fn month_len(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the day of the week, 0 for Monday.
pub(super) fn weekday(days: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (days + 3).rem_euclid(7)
}

/// Returns the number of weeks, which start on Monday, after the week of 1970-01-01.
pub(super) fn week_number(days: i64) -> i64 {
    (days + 3).div_euclid(7)
}

/// Returns the ISO year and week (1 to 53) of the week that [`week_number`] numbers. A week belongs to the year of its
/// Thursday.
pub(super) fn iso_week(week: i64) -> (i64, i64) {
    let thursday = week * 7;
    let year = Date::from_days(thursday).year;
    let first = Date {
        year,
        month: 1,
        day: 1,
    };
    (year, (thursday - first.days()) / 7 + 1)
}

/// Parses `YYYY-MM-DD`, optionally followed by `T` or a space, `HH:MM[:SS[.fraction]]` and `Z` or an offset
/// (`+02:00`, `+0200`, `+02`). Returns seconds since 1970-01-01T00:00:00Z, rounded down. A time without offset is UTC.
/// `YYYY-MM` is the first day of the month.
pub(super) fn parse_iso(text: &str) -> Result<i64, String> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next().unwrap_or_default(), 4);
    let month = digits(parts.next().unwrap_or_default(), 2);
    let day = match parts.next() {
        Some(day) => digits(day, 2),
        None if time.is_none() => Some(1),
        None => None,
    };
    let (Some(year), Some(month), Some(day), None) = (year, month, day, parts.next()) else {
        return Err("expected a date such as 1996-04-23 or 1996-04-23T13:05:00Z".into());
    };
    if year == 0 {
        return Err("years are 0001 to 9999".into());
    }
    if !(1..=12).contains(&month) {
        return Err(format!("month {month} does not exist"));
    }
    if !(1..=month_len(year, month)).contains(&day) {
        return Err(format!("{year:04}-{month:02} has no day {day}"));
    }
    let seconds = time.map_or(Ok(0), parse_time_of_day)?;
    Ok(Date { year, month, day }.days() * DAY + seconds)
}

/// Parses the time of day with its offset; returns seconds relative to midnight UTC of the date.
fn parse_time_of_day(text: &str) -> Result<i64, String> {
    let malformed = || {
        "expected a time such as 13:05, 13:05:59Z or 13:05:59.5+02:00 after the date".to_string()
    };
    let (clock, offset) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (&text[..at], &text[at..]),
        None => (text, "Z"),
    };
    let whole = match clock.split_once(['.', ',']) {
        Some((whole, fraction)) => {
            let all_digits = fraction.bytes().all(|b| b.is_ascii_digit());
            if fraction.is_empty() || !all_digits {
                return Err(malformed());
            }
            whole
        }
        None => clock,
    };
    let mut parts = whole.split(':').map(|part| digits(part, 2));
    let (Some(Some(hour)), Some(Some(minute))) = (parts.next(), parts.next()) else {
        return Err(malformed());
    };
    let second = parts.next().unwrap_or(Some(0)).ok_or_else(malformed)?;
    if parts.next().is_some() {
        return Err(malformed());
    }
    // Second 60 is a leap second; it belongs to the minute it ends.
    if hour > 23 || minute > 59 || second > 60 {
        return Err(format!(
            "the time {hour:02}:{minute:02}:{second:02} does not exist"
        ));
    }
    let (sign, offset) = match offset.split_at(1) {
        ("Z" | "z", "") => (0, ""),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return Err(malformed()),
    };
    let mut shift = 0;
    if sign != 0 {
        let (hours, minutes) = match offset.len() {
            2 => (offset, "00"),
            4 if offset.is_ascii() => offset.split_at(2),
            _ => offset.split_once(':').ok_or_else(malformed)?,
        };
        let hours = digits(hours, 2).ok_or_else(malformed)?;
        let minutes = digits(minutes, 2).ok_or_else(malformed)?;
        if hours > 23 || minutes > 59 {
            return Err(format!("the offset {hours:02}:{minutes:02} does not exist"));
        }
        shift = sign * (hours * 3600 + minutes * 60);
    }
    Ok(hour * 3600 + minute * 60 + second.min(59) - shift)
}

/// Parses exactly `len` digits.
fn digits(text: &str, len: usize) -> Option<i64> {
    let all_digits = text.bytes().all(|b| b.is_ascii_digit());
    (text.len() == len && all_digits).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: i64, day: i64) -> Date {
        Date { year, month, day }
    }

    #[test]
    fn known_days() {
        for (days, expected) in [
            (0, date(1970, 1, 1)),
            (-1, date(1969, 12, 31)),
            (9609, date(1996, 4, 23)),
            (11_016, date(2000, 2, 29)),
            (11_017, date(2000, 3, 1)),
            (-25_509, date(1900, 2, 28)),
            (-25_508, date(1900, 3, 1)),
            (-719_162, date(1, 1, 1)),
            (2_932_896, date(9999, 12, 31)),
        ] {
            assert_eq!(Date::from_days(days), expected);
            assert_eq!(expected.days(), days);
        }
    }

    #[test]
    fn days_follow_each_other_over_an_era() {
        // From 1599 to 2003, one day at a time, against the lengths of the months.
        let mut today = date(1599, 1, 1);
        for days in today.days()..date(2003, 1, 1).days() {
            assert_eq!(Date::from_days(days), today);
            assert_eq!(today.days(), days);
            today.day += 1;
            if today.day > month_len(today.year, today.month) {
                (today.day, today.month) = (1, today.month + 1);
            }
            if today.month > 12 {
                (today.month, today.year) = (1, today.year + 1);
            }
        }
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        for (day, week, of_week) in [
            (date(1970, 1, 1), (1970, 1), 3),
            (date(1969, 12, 28), (1969, 52), 6),
            (date(1996, 4, 23), (1996, 17), 1),
            (date(2005, 1, 1), (2004, 53), 5),
            (date(2005, 1, 2), (2004, 53), 6),
            (date(2005, 1, 3), (2005, 1), 0),
            (date(2007, 12, 31), (2008, 1), 0),
            (date(2008, 12, 29), (2009, 1), 0),
            (date(2010, 1, 3), (2009, 53), 6),
            (date(2020, 12, 31), (2020, 53), 3),
        ] {
            assert_eq!(iso_week(week_number(day.days())), week, "{day:?}");
            assert_eq!(weekday(day.days()), of_week, "{day:?}");
        }
    }

    #[test]
    fn iso_dates_and_times() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:01", 60),
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31T19:00-0500", 0),
            ("1969-12-31t19:00:59.999-05", 59),
            ("1996-04", 828_316_800),
            ("1996-04-23T13:05:09,5Z", 830_264_709),
            ("2016-12-31T23:59:60Z", 1_483_228_799),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(parse_iso(text), Ok(seconds), "{text}");
        }
        for (text, expected) in [
            ("1996-13-01", "month 13"),
            ("1997-02-29", "1997-02 has no day 29"),
            ("1900-02-29", "no day 29"),
            ("0000-01-01", "0001 to 9999"),
            ("1996-4-23", "expected a date"),
            ("1996-04-23-01", "expected a date"),
            ("1996-04T10:00", "expected a date"),
            ("23.04.1996", "expected a date"),
            ("1996-04-23T24:00", "does not exist"),
            ("1996-04-23T10", "expected a time"),
            ("1996-04-23T10:00:00:00", "expected a time"),
            ("1996-04-23T10:00.", "expected a time"),
            ("1996-04-23T10:00+2:00", "expected a time"),
            ("1996-04-23T10:00+0é0", "expected a time"),
            ("1996-04-23T10:00+25:00", "offset"),
            ("1996-04-23T10:00Zulu", "expected a time"),
        ] {
            let error = parse_iso(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
