//! `--trace FILE`: where the time of a command goes, as a file for Perfetto.

use std::path::{Path, PathBuf};

use crate::time_shares::{activity_label, format_share};
use s3cmtf::Result;
use s3cmtf::format::write_atomically;
use s3cmtf::trace::{PhaseTime, SpanKind, Trace};
use serde_json::{Value, json};

use crate::output::{Output, format_count};

/// The help of `--trace`.
pub(crate) const TRACE_HELP: &str = "Write a trace of where the time goes, for Perfetto";

/// A trace and the file that it is written to.
pub(crate) struct TraceFile {
    path: PathBuf,
    pub trace: Trace,
}

impl TraceFile {
    pub(crate) fn new(path: &Path) -> TraceFile {
        TraceFile {
            path: path.to_path_buf(),
            trace: Trace::new(),
        }
    }

    /// Writes the file, and prints the shares of phases and of what threads did during the epochs.
    pub(crate) fn write(&self, out: &mut Output) -> Result<()> {
        write_atomically(&self.path, |file| self.trace.write_json(file))?;
        let times = self.trace.phase_times();
        let total: f64 = times.iter().map(|t| t.seconds).sum();
        let phases = times.iter().map(|t| (t.phase, t.seconds));
        out.line(format!(
            "{}: {total:.2} s: {}",
            self.path.display(),
            shares(phases, total, "")
        ));
        let epochs = times.iter().find(|t| t.phase == SpanKind::Epoch);
        if let Some(epochs) = epochs.filter(|t| !t.thread_seconds.is_empty()) {
            let spent = epochs.thread_seconds.iter().copied();
            let shares = shares(spent, thread_total(epochs), epochs.phase.name());
            out.line(format!("threads during epochs: {shares}"));
        }
        let dropped = self.trace.dropped_spans();
        if dropped > 0 {
            let spans = format_count(dropped, "span", "spans");
            out.line(format!(
                "the trace lacks {spans} of threads that had too many; the shares include them"
            ));
        }
        out.object(&json!({
            "event": "trace",
            "output": self.path.display().to_string(),
            "dropped_spans": dropped,
            "phases": times.iter().map(phase_json).collect::<Vec<Value>>(),
        }));
        Ok(())
    }
}

/// Returns the seconds of all threads but the calling one.
fn thread_total(time: &PhaseTime) -> f64 {
    time.thread_seconds.iter().map(|(_, seconds)| seconds).sum()
}

/// Returns a list of names and percentages of `total`, in the order of spans.
fn shares(times: impl Iterator<Item = (SpanKind, f64)>, total: f64, phase: &str) -> String {
    let shares = times.map(|(kind, seconds)| {
        let label = activity_label(kind.name(), phase);
        format!("{label} {}", format_share(seconds / total))
    });
    shares.collect::<Vec<String>>().join(", ")
}

fn phase_json(time: &PhaseTime) -> Value {
    let by_kind = time.thread_seconds.iter();
    let by_kind = by_kind.map(|(kind, seconds)| (kind.name().to_string(), json!(seconds)));
    json!({
        "phase": time.phase.name(),
        "seconds": time.seconds,
        "thread_seconds": by_kind.collect::<serde_json::Map<String, Value>>(),
    })
}
