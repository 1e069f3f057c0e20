//! The peak memory of a process.

use std::fs;

/// Returns the peak resident memory of a running process in bytes, on Linux. `process` is its number, or `self`.
pub fn peak_memory_bytes(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
