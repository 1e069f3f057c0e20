//! The log of a job.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::job_result::write_errors;
use crate::error::{Error, Result};
use crate::json::ObjectWriter;
use crate::model::EpochMetrics;
use crate::solver::{Control, Event, Observer};

/// The log of a job: one JSON object per line, as `fit --json` prints them.
pub(super) struct JobLog {
    file: File,
    name: String,
    /// The first error of a write during a fit.
    failed: Option<Error>,
}

impl JobLog {
    /// Opens a log for appending.
    pub(super) fn open(path: &Path) -> Result<JobLog> {
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(JobLog {
            file: file.map_err(|e| Error::io(format!("cannot write {name}"), e))?,
            name,
            failed: None,
        })
    }

    /// Returns an error if a write during a fit failed.
    pub(super) fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes an object.
    pub(super) fn write(&mut self, object: ObjectWriter) -> Result<()> {
        let line = object.finish() + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|e| Error::io(format!("cannot write {}", self.name), e))
    }
}

impl Observer for JobLog {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        let line = ObjectWriter::new()
            .integer("epoch", e.epoch)
            .number("eta", e.eta)
            .number("loss", e.loss);
        let line = write_errors(line, e.train_rmse, e.test_rmse, e.valid_rmse)
            .number("update_seconds", e.update_seconds)
            .number("eval_seconds", e.eval_seconds)
            .number("entries_per_second", e.entries_per_second);
        match self.write(line) {
            Ok(()) => Control::Continue,
            Err(e) => {
                self.failed.get_or_insert(e);
                Control::Stop
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let line = |name: &str| ObjectWriter::new().string("event", name);
        let line = match event {
            Event::RankLowered(text) => line("rank-lowered").string("text", text),
            Event::RolledBack { epoch, eta } => line("rolled-back")
                .integer("epoch", *epoch)
                .number("eta", *eta),
            Event::Checkpoint { epoch } => line("checkpoint").integer("epoch", *epoch),
            Event::Warning(text) => line("warning").string("text", text),
            Event::Stopped(reason) => line("stopped").string("reason", reason.name()),
        };
        if let Err(e) = self.write(line) {
            self.failed.get_or_insert(e);
        }
    }
}
