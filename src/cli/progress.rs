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
        let bar = slot.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(
                "{msg:24} [{bar:40}] {percent:>3}% {elapsed} left {eta}",
            )
            .expect("the template is valid")
            .progress_chars("=> ");
            ProgressBar::new(1)
                .with_style(style)
                .with_elapsed(self.started.elapsed())
        });
        if bar.message() != phase {
            bar.set_message(phase.to_string());
        }
        bar.set_length(total.max(1));
        bar.set_position(done.min(total.max(1)));
    }
}

impl Monitor for Progress {
    fn progress(&self, phase: &str, done: u64, total: u64) {
        if self.quiet || self.started.elapsed() < PATIENCE {
            return;
        }
        if self.terminal {
            self.draw(phase, done, total);
        } else if self.last_line.get().is_none_or(|t| t.elapsed() >= EVERY) {
            self.last_line.set(Some(Instant::now()));
            let seconds = self.started.elapsed().as_secs();
            match (100 * done.min(total)).checked_div(total) {
                Some(percent) => eprintln!("{phase}: {percent}% after {seconds} s"),
                None => eprintln!("{phase}: {done} bytes after {seconds} s"),
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
