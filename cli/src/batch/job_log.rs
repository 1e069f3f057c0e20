//! The log of a job. A write that fails does not end the job: its result is the output.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use s3cmtf::fit_plan::Choice;
use s3cmtf::format::check_derived_target;
use s3cmtf::model::EpochMetrics;
use s3cmtf::printable::escape_json;
use s3cmtf::solver::{Control, Event, Observer};
use s3cmtf::{Error, Result};
use serde_json::{Map, Value, json};

/// The log of a job: one JSON object per line, as `fit --json` prints them.
pub(super) struct JobLog {
    file: File,
    name: String,
    /// The first error of a write.
    failed: Option<Error>,
}

impl JobLog {
    /// Opens a log for appending.
    pub(super) fn open(path: &Path) -> Result<JobLog> {
        let name = path.display().to_string();
        check_derived_target(path)?;
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(JobLog {
            file: file.map_err(|e| Error::io(format!("cannot write {name}"), e))?,
            name,
            failed: None,
        })
    }

    /// Returns the first error of a write.
    pub(super) fn take_error(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Writes an object.
    pub(super) fn write(&mut self, object: &Value) {
        let line = format!("{}\n", escape_json(&object.to_string()));
        if let Err(e) = self.file.write_all(line.as_bytes()) {
            let name = &self.name;
            self.failed
                .get_or_insert_with(|| Error::io(format!("cannot write {name}"), e));
        }
    }
}

impl Observer for JobLog {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        // NaN, for an error that was not measured or a learning rate that there is not, becomes null.
        let line = json!({
            "epoch": e.epoch,
            "eta": e.eta,
            "loss": e.loss,
            "train_rmse": e.train_rmse,
            "test_rmse": e.test_rmse,
            "valid_rmse": e.valid_rmse,
            "update_seconds": e.update_seconds,
            "eval_seconds": e.eval_seconds,
            "entries_per_second": e.entries_per_second,
        });
        self.write(&line);
        Control::Continue
    }

    fn event(&mut self, event: &Event) {
        let line = match event {
            Event::RankLowered(text) => json!({"event": "rank-lowered", "text": text}),
            Event::RolledBack { epoch, eta } => {
                json!({"event": "rolled-back", "epoch": epoch, "eta": eta})
            }
            Event::Checkpoint { epoch } => json!({"event": "checkpoint", "epoch": epoch}),
            Event::Selected(choice) => {
                let mut line = choice_json(choice);
                line["event"] = json!("selected");
                line
            }
            Event::Warning(text) => json!({"event": "warning", "text": text}),
            Event::Stopped(reason) => json!({"event": "stopped", "reason": reason.name()}),
            _ => return,
        };
        self.write(&line);
    }
}

/// Returns the fields of an event about a choice.
pub fn choice_json(choice: &Choice) -> Value {
    let evidence = choice.evidence.iter();
    let evidence: Map<String, Value> = evidence.map(|(name, x)| (name.clone(), json!(x))).collect();
    json!({"what": choice.question, "text": choice.answer, "evidence": evidence})
}
