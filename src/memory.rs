//! The memory that this process can still use.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Where the hierarchy of control groups is mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Returns the memory that is available to this process, in bytes, if the system reports it: that of the machine, or less if a
/// control group, such as that of a container, has a lower limit.
pub fn available_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let available = kib.saturating_mul(1024);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|l| l.strip_prefix("0::/"));
    let limits = Path::new(own.unwrap_or_default())
        .ancestors()
        .filter_map(|group| group_limit(&Path::new(CGROUPS).join(group)));
    Some(limits.fold(available, u64::min))
}

/// Fails if more than the available memory is needed, which a system may grant, and then end the process that uses it. `who` is the
/// beginning of the message, such as `the table needs`; `advice` says how to need less.
pub(crate) fn require_memory(bytes: f64, who: &str, advice: &str) -> Result<()> {
    let Some(available) = available_memory().filter(|a| bytes > *a as f64) else {
        return Ok(());
    };
    Err(Error::io(
        format!(
            "{who} about {} of memory, and {} are available; {advice}",
            describe(bytes),
            describe(available as f64)
        ),
        io::ErrorKind::OutOfMemory.into(),
    ))
}

/// Writes a number of bytes with its unit.
fn describe(bytes: f64) -> String {
    let units = ["MB", "GB", "TB", "PB", "EB"];
    let unit = ((bytes.log10() / 3.0) as usize).clamp(2, units.len() + 1);
    format!(
        "{:.1} {}",
        bytes / 1000f64.powi(unit as i32),
        units[unit - 2]
    )
}

/// Returns the memory that a control group may still use, if it has a limit. Pages of files that the system can evict count as
/// used, except inactive ones.
fn group_limit(group: &Path) -> Option<u64> {
    let number = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(group.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let limit = number("memory.max")?;
    let used = number("memory.current").unwrap_or(0);
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let inactive = statistics
        .lines()
        .find_map(|l| l.strip_prefix("inactive_file "));
    let inactive = inactive.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(inactive)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_control_groups_are_read() {
        let folder = std::env::temp_dir().join(format!("s3cmtf-memory-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(group_limit(&folder), None);
        let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        write("memory.max", "max\n");
        assert_eq!(group_limit(&folder), None);
        write("memory.max", "1000\n");
        assert_eq!(group_limit(&folder), Some(1000));
        write("memory.current", "700\n");
        write(
            "memory.stat",
            "anon 500\ninactive_file 200\nactive_file 0\n",
        );
        assert_eq!(group_limit(&folder), Some(500));
        fs::remove_dir_all(&folder).unwrap();
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
