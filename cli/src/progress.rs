//! Progress on standard error and Ctrl-C.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use s3cmtf::Monitor;

/// Anything shorter shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(5);

/// A bar on a terminal, a line now and then otherwise, nothing with `--json`. Cancels on Ctrl-C.
pub(super) struct Progress {
    quiet: bool,
    terminal: bool,
    started: Instant,
    last_line: Cell<Option<Instant>>,
    bar: RefCell<Option<ProgressBar>>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    pub(super) fn new(json: bool) -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // Without a handler Ctrl-C still ends the program, only less tidily.
        let _ = ctrlc::set_handler(move || {
            // The first asks; the second does not wait for an answer.
            if flag.swap(true, Ordering::SeqCst) {
                remove_unfinished();
                std::process::exit(130);
            }
        });
        Progress {
            quiet: json,
            terminal: std::io::stderr().is_terminal(),
            started: Instant::now(),
            last_line: Cell::new(None),
            bar: RefCell::new(None),
            interrupted,
        }
    }

    /// Set by Ctrl-C.
    pub(super) fn interrupted(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    /// Takes the bar off the screen.
    pub(super) fn clear(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, phase: &str, done: u64, total: u64) {
        let mut slot = self.bar.borrow_mut();
        let bar =
            slot.get_or_insert_with(|| ProgressBar::new(1).with_elapsed(self.started.elapsed()));
        if bar.message() != phase {
            // The input's length is not known from a pipe: then only what has been done is shown.
            let template = if total == 0 {
                "{msg:24} {bytes} {elapsed}"
            } else {
                "{msg:24} [{bar:40}] {percent:>3}% {elapsed} left {eta}"
            };
            let style = ProgressStyle::with_template(template).expect("the templates are valid");
            bar.set_style(style.progress_chars("=> "));
            bar.set_message(phase.to_string());
        }
        bar.set_length(if total == 0 { done + 1 } else { total });
        bar.set_position(done);
    }

    /// The line to print now where there is no terminal, if it is time for one.
    fn line(&self, phase: &str, done: u64, total: u64) -> Option<String> {
        if self.last_line.get().is_some_and(|t| t.elapsed() < EVERY) {
            return None;
        }
        self.last_line.set(Some(Instant::now()));
        let seconds = self.started.elapsed().as_secs();
        Some(match (100 * done.min(total)).checked_div(total) {
            Some(percent) => format!("{phase}: {percent}% after {seconds} s"),
            None => format!(
                "{phase}: {} done after {seconds} s",
                super::output::grouped(done)
            ),
        })
    }

    fn shows_nothing(&self) -> bool {
        self.quiet || self.started.elapsed() < PATIENCE
    }
}

impl Monitor for Progress {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        if self.shows_nothing() {
            return;
        }
        if self.terminal {
            self.draw(phase, done, total);
        } else if let Some(line) = self.line(phase, done, total) {
            super::output::complain(&line);
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Removes files that this process is writing under hidden temporary names: nobody will finish them. Where the system does not tell which they are, they stay.
fn remove_unfinished() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    for entry in open.flatten() {
        let number = entry.file_name();
        // What the shell gave us is not ours.
        let ours = number.to_str().and_then(|n| n.parse::<u32>().ok());
        let Ok(path) = std::fs::read_link(entry.path()) else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ours.is_some_and(|n| n > 2 && written(n))
            && name.starts_with('.')
            && name.ends_with(".tmp")
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Whether an open file may be written to; those that are read may have any name.
fn written(number: u32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
    // The lowest two bits are 0 for reading only.
    flags
        .and_then(|f| u64::from_str_radix(f.trim(), 8).ok())
        .is_some_and(|f| f & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_unfinished_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let unfinished = tempfile::Builder::new()
            .prefix(".out.coo.")
            .suffix(".tmp")
            .tempfile_in(dir.path())
            .unwrap();
        let written = std::fs::File::create(dir.path().join("out.coo")).unwrap();
        let mine = dir.path().join(".mine.tmp");
        std::fs::write(&mine, "read").unwrap();
        let read = std::fs::File::open(&mine).unwrap();
        remove_unfinished();
        assert!(!unfinished.path().exists());
        assert!(dir.path().join("out.coo").exists() && mine.exists());
        drop((written, read));
    }

    fn started(ago: Duration, json: bool) -> Progress {
        let mut progress = Progress::new(json);
        progress.started = Instant::now() - ago;
        progress
    }

    #[test]
    fn short_work_and_json_show_nothing() {
        assert!(started(Duration::ZERO, false).shows_nothing());
        assert!(started(2 * PATIENCE, true).shows_nothing());
        assert!(!started(2 * PATIENCE, false).shows_nothing());
    }

    #[test]
    fn lines_come_now_and_then() {
        let progress = started(Duration::from_secs(7), false);
        assert_eq!(
            progress.line("reading", 1, 4).unwrap(),
            "reading: 25% after 7 s"
        );
        assert_eq!(progress.line("reading", 2, 4), None);
        progress.last_line.set(Some(Instant::now() - EVERY));
        assert_eq!(
            progress.line("reading", 1234, 0).unwrap(),
            "reading: 1,234 done after 7 s"
        );
    }

    #[test]
    fn a_bar_shows_the_share_or_only_what_is_done() {
        let progress = started(2 * PATIENCE, false);
        progress.draw("reading", 30, 120);
        let bar = progress.bar.borrow().as_ref().unwrap().clone();
        assert_eq!((bar.position(), bar.length()), (30, Some(120)));
        progress.draw("from a pipe", 500, 0);
        assert!(bar.length() > Some(500), "an unknown end is not reached");
        progress.clear();
        assert!(progress.bar.borrow().is_none());
    }
}
