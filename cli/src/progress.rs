//! Progress on standard error, and cancellation by Ctrl-C.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use s3cmtf::Monitor;
use s3cmtf::format::is_temporary_name;

use crate::output::{SharedBar, format_integer, print_stderr};

/// Time before a command shows any progress.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// Time between two lines where standard error is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two redraws of the bar, so that times advance during long steps.
const TICK: Duration = Duration::from_millis(500);

/// What is in progress, with its state at the first report, from which the rate is measured.
struct Phase {
    name: String,
    started: Instant,
    done_at_start: u64,
}

impl Phase {
    fn begin(name: &str, done: u64) -> Self {
        Phase {
            name: name.to_string(),
            started: Instant::now(),
            done_at_start: done,
        }
    }

    /// Returns the mean rate and the remaining time: `, 12.3M/s, 5 s left`. Empty before anything was done.
    fn describe(&self, done: u64, total: u64) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = done.saturating_sub(self.done_at_start) as f64 / seconds.max(1e-9);
        if rate <= 0.0 {
            return String::new();
        }
        let left = total.saturating_sub(done) as f64 / rate;
        format!(", {}, {} left", format_rate(rate), format_seconds(left))
    }
}

/// Shows a bar on a terminal, lines at intervals otherwise, and nothing with `--json`. Cancels on Ctrl-C.
pub struct Progress {
    quiet: bool,
    terminal: bool,
    started: Instant,
    last_line: Cell<Option<Instant>>,
    bar: SharedBar,
    phase: RefCell<Phase>,
    interrupted: Arc<AtomicBool>,
}

/// Time within which a second signal is the same Ctrl-C: a person needs longer.
const REPEATED_SIGNAL: Duration = Duration::from_millis(250);

impl Progress {
    pub fn new(json: bool) -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // If no handler can be set, Ctrl-C ends the process at once and leaves temporary files.
        let first = Mutex::new(None::<Instant>);
        let _ = ctrlc::set_handler(move || {
            // The first Ctrl-C requests cancellation; a later one ends the process at once. Programs that send the signal to a
            // process and to its group send it twice.
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            let since = first.get_or_insert_with(Instant::now).elapsed();
            if flag.swap(true, Ordering::SeqCst) && since > REPEATED_SIGNAL {
                remove_unfinished_files();
                std::process::exit(130);
            }
        });
        Progress {
            quiet: json,
            terminal: std::io::stderr().is_terminal(),
            started: Instant::now(),
            last_line: Cell::new(None),
            bar: SharedBar::default(),
            phase: RefCell::new(Phase::begin("", 0)),
            interrupted,
        }
    }

    /// Returns the flag that Ctrl-C sets.
    pub fn interrupted(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    /// Returns whether progress is shown as a bar on a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns the bar.
    pub fn bar(&self) -> SharedBar {
        self.bar.clone()
    }

    /// Hides the bar while `write` writes to the terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match self.bar.borrow().as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the bar from the terminal.
    pub fn clear(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, phase: &str, done: u64, total: u64) {
        let mut slot = self.bar.borrow_mut();
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::new(1).with_elapsed(self.started.elapsed());
            bar.enable_steady_tick(TICK);
            bar
        });
        if bar.message() != phase {
            // The total is 0 if unknown, as for a pipe: then only the amount done is shown.
            let template = if total == 0 {
                "{msg:22} {bytes}  {bytes_per_sec}  {elapsed}"
            } else {
                "{msg:22} [{bar:24}] {percent:>3}%  {elapsed} elapsed{prefix}"
            };
            let style = ProgressStyle::with_template(template).expect("the templates are valid");
            bar.set_style(style.progress_chars("=> "));
            bar.set_message(phase.to_string());
        }
        bar.set_prefix(self.phase.borrow().describe(done, total));
        bar.set_length(if total == 0 { done + 1 } else { total });
        bar.set_position(done);
    }

    /// Returns the line to print where there is no terminal, or `None` within the interval after the last one.
    fn line(&self, phase: &str, done: u64, total: u64) -> Option<String> {
        if self
            .last_line
            .get()
            .is_some_and(|t| t.elapsed() < LINE_INTERVAL)
        {
            return None;
        }
        self.last_line.set(Some(Instant::now()));
        let seconds = self.started.elapsed().as_secs();
        Some(match (100 * done.min(total)).checked_div(total) {
            Some(percent) => format!("{phase}: {percent}% after {seconds} s"),
            None => format!("{phase}: {} done after {seconds} s", format_integer(done)),
        })
    }

    fn is_silent(&self) -> bool {
        self.quiet || self.started.elapsed() < QUIET_TIME
    }
}

impl Monitor for Progress {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        let is_new = {
            let now = self.phase.borrow();
            now.name != phase || done < now.done_at_start
        };
        if is_new {
            self.phase.replace(Phase::begin(phase, done));
        }
        if self.is_silent() {
            return;
        }
        if self.terminal {
            self.draw(phase, done, total);
        } else if let Some(line) = self.line(phase, done, total) {
            print_stderr(&line);
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Formats a rate with three digits and a metric prefix: `12.3M/s`.
fn format_rate(per_second: f64) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.iter().find(|(unit, _)| per_second >= *unit) {
        Some((unit, prefix)) => format!("{:.1}{prefix}/s", per_second / unit),
        None => format!("{per_second:.1}/s"),
    }
}

/// Formats a duration with its unit: `42 s`, `3.5 min`, `2.0 h`.
fn format_seconds(seconds: f64) -> String {
    if seconds < 60.0 {
        format!("{seconds:.0} s")
    } else if seconds < 3600.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Removes the temporary files that this process is writing. They stay where `/proc` does not exist to list them.
fn remove_unfinished_files() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    for entry in open.flatten() {
        let number = entry.file_name();
        // Descriptors up to 2 come from the parent process.
        let descriptor = number.to_str().and_then(|n| n.parse::<u32>().ok());
        let Ok(path) = std::fs::read_link(entry.path()) else {
            continue;
        };
        if descriptor.is_some_and(|n| n > 2 && is_open_for_writing(n))
            && path.file_name().is_some_and(is_temporary_name)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns whether a file descriptor is open for writing. A file that is only read may have any name.
fn is_open_for_writing(descriptor: u32) -> bool {
    let info =
        std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
    // The lowest two bits are the access mode; 0 is read-only.
    flags
        .and_then(|f| u64::from_str_radix(f.trim(), 8).ok())
        .is_some_and(|f| f & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_temporary_files_open_for_writing_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let names = || -> Vec<String> {
            let entries = std::fs::read_dir(dir.path()).unwrap();
            let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
            names.collect()
        };
        let mut read = None;
        let outcome = s3cmtf::format::write_atomically(&dir.path().join("out.coo"), |_| {
            // The unfinished file, and a copy under a name of the same kind that is only read.
            let unfinished = names();
            assert_eq!(unfinished.len(), 1);
            let mine = dir.path().join(".mine.tmp");
            let written = std::fs::File::create(&mine)?;
            remove_unfinished_files();
            assert_eq!(names(), [".mine.tmp"]);
            drop(written);
            let same_name = dir.path().join(&unfinished[0]);
            std::fs::rename(&mine, &same_name)?;
            read = Some(std::fs::File::open(&same_name)?);
            remove_unfinished_files();
            assert_eq!(names(), unfinished);
            Ok(())
        });
        // What took the place of the unfinished file is what was committed.
        assert!(outcome.is_ok() && names() == ["out.coo"]);
        drop(read);
    }

    fn progress_started(ago: Duration, json: bool) -> Progress {
        let mut progress = Progress::new(json);
        progress.started = Instant::now() - ago;
        progress
    }

    #[test]
    fn short_commands_and_json_show_no_progress() {
        assert!(progress_started(Duration::ZERO, false).is_silent());
        assert!(progress_started(2 * QUIET_TIME, true).is_silent());
        assert!(!progress_started(2 * QUIET_TIME, false).is_silent());
    }

    #[test]
    fn remaining_time_follows_from_the_mean_rate() {
        let mut phase = Phase::begin("reading", 100);
        phase.started = Instant::now() - Duration::from_secs(10);
        let text = phase.describe(1100, 4100);
        assert!(text.contains("/s, ") && text.ends_with("left"), "{text}");
        assert_eq!(phase.describe(100, 4100), "");
        assert_eq!(
            [59.4, 90.0, 7200.0].map(format_seconds),
            ["59 s", "1.5 min", "2.0 h"]
        );
    }

    #[test]
    fn rates_have_metric_prefixes() {
        let rates = [0.25, 999.0, 1234.0, 12.34e6, 5e9].map(format_rate);
        assert_eq!(rates, ["0.2/s", "999.0/s", "1.2k/s", "12.3M/s", "5.0G/s"]);
    }

    #[test]
    fn lines_are_printed_at_intervals() {
        let progress = progress_started(Duration::from_secs(7), false);
        assert_eq!(
            progress.line("reading", 1, 4).unwrap(),
            "reading: 25% after 7 s"
        );
        assert_eq!(progress.line("reading", 2, 4), None);
        progress.last_line.set(Some(Instant::now() - LINE_INTERVAL));
        assert_eq!(
            progress.line("reading", 1234, 0).unwrap(),
            "reading: 1,234 done after 7 s"
        );
    }

    #[test]
    fn bar_shows_percentage_or_amount_if_total_is_unknown() {
        let progress = progress_started(2 * QUIET_TIME, false);
        progress.draw("reading", 30, 120);
        let bar = progress.bar.borrow().as_ref().unwrap().clone();
        assert_eq!((bar.position(), bar.length()), (30, Some(120)));
        progress.draw("from a pipe", 500, 0);
        assert!(
            bar.length() > Some(500),
            "a bar of unknown length must not look finished"
        );
        progress.clear();
        assert!(progress.bar.borrow().is_none());
    }
}
