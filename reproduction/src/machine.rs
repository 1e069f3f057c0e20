//! The machine and the date, for the record.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::time::{SystemTime, UNIX_EPOCH};

use s3cmtf::parallel::available_threads;
use serde_json::{Value, json};

/// Describes the machine.
pub(super) fn describe() -> Value {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let memory = field(&file("/proc/meminfo"), "MemTotal");
    let kib = memory.and_then(|m| m.split_whitespace().next()?.parse::<u64>().ok());
    json!({
        "processor": field(&file("/proc/cpuinfo"), "model name"),
        "threads": available_threads(),
        "memory_bytes": kib.map(|k| k * 1024),
        "system": std::env::consts::OS,
    })
}

/// Returns a hash of this program, which tells builds of one version apart; `None` if it cannot be read.
pub(super) fn program_hash() -> Option<String> {
    let program = File::open(std::env::current_exe().ok()?).ok()?;
    hash(BufReader::new(program)).ok()
}

/// Returns a hash: FNV-1a, in hexadecimal.
pub(super) fn hash(bytes: impl BufRead) -> io::Result<String> {
    let add = |hash: u64, byte: io::Result<u8>| -> io::Result<u64> {
        Ok((hash ^ u64::from(byte?)).wrapping_mul(0x100_0000_01b3))
    };
    let hash = bytes.bytes().try_fold(0xcbf2_9ce4_8422_2325, add)?;
    Ok(format!("{hash:016x}"))
}

/// Returns the date in UTC as year-month-day.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
    date_of_day(seconds.map_or(0, |s| s.as_secs() / 86_400))
}

/// Returns the date of a day, counted from 1970-01-01.
fn date_of_day(day: u64) -> String {
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let (mut year, mut left) = (1970, day);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= months[month] {
        left -= months[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_453, "2025-12-31"),
        ] {
            assert_eq!(date_of_day(day), date);
        }
    }
}
