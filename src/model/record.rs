//! How a fit went, besides the figures of its epochs.

use std::fmt::Write;
use std::str::FromStr;

/// Something that happened in a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitEvent {
    /// After this epoch.
    pub epoch: u64,
    /// What it was, in a word: `rolled-back`, `rank-lowered`, `refit`, `warning`.
    pub kind: String,
    /// The same for people.
    pub message: String,
}

/// How a fit ended. Errors are those of the model; NaN if not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitOutcome {
    /// Why it ended, in a word.
    pub reason: String,
    /// Epochs run.
    pub epochs: u64,
    /// The epoch of the model.
    pub best_epoch: u64,
    /// Error on the training entries.
    pub train_rmse: f64,
    /// Error on the test entries.
    pub test_rmse: f64,
    /// Error on the validation entries.
    pub valid_rmse: f64,
    /// Whether predictions were clipped to the range of the training values.
    pub clipped: bool,
    /// The number of threads.
    pub threads: u64,
    /// The instruction set of the kernels.
    pub kernel: String,
    /// Seconds spent updating.
    pub update_seconds: f64,
    /// Seconds spent measuring errors.
    pub eval_seconds: f64,
    /// All seconds.
    pub seconds: f64,
}

/// What is kept of a fit. Models of earlier versions have none of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitRecord {
    /// What happened, in order.
    pub events: Vec<FitEvent>,
    /// How it ended; a checkpoint does not know yet.
    pub outcome: Option<FitOutcome>,
}

impl FitRecord {
    /// Adds what happened.
    pub(crate) fn add_event(&mut self, epoch: u64, kind: &str, text: &str) {
        self.events.push(FitEvent {
            epoch,
            kind: kind.into(),
            message: text.replace(['\n', '\r'], " "),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.outcome.is_none()
    }

    /// Lines `name=value`: `note=EPOCH WHAT TEXT` for each note, then the fields of the ending by their names.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            let _ = writeln!(
                text,
                "note={} {} {}",
                event.epoch, event.kind, event.message
            );
        }
        if let Some(e) = &self.outcome {
            let _ = write!(
                text,
                "reason={}\nepochs={}\nbest_epoch={}\ntrain_rmse={:e}\ntest_rmse={:e}\nvalid_rmse={:e}\nclipped={}\n\
                 threads={}\nkernel={}\nupdate_seconds={:e}\neval_seconds={:e}\nseconds={:e}\n",
                e.reason,
                e.epochs,
                e.best_epoch,
                e.train_rmse,
                e.test_rmse,
                e.valid_rmse,
                e.clipped,
                e.threads,
                e.kernel,
                e.update_seconds,
                e.eval_seconds,
                e.seconds
            );
        }
        text
    }

    /// Reads such lines, perhaps of a later version: names this one does not know are passed over. The error is the line
    /// that makes no sense.
    pub(super) fn from_text(text: &str) -> Result<FitRecord, String> {
        fn set<T: FromStr>(slot: &mut T, value: &str) -> Option<()> {
            *slot = value.parse().ok()?;
            Some(())
        }
        let mut record = FitRecord::default();
        for line in text.lines() {
            let (name, value) = line.split_once('=').ok_or(line)?;
            if name == "note" {
                let mut words = value.splitn(3, ' ');
                let epoch = words.next().and_then(|w| w.parse().ok());
                let note = epoch.zip(words.next());
                let (epoch, what) = note.ok_or(line)?;
                record.add_event(epoch, what, words.next().unwrap_or_default());
                continue;
            }
            let e = record.outcome.get_or_insert_default();
            let read = match name {
                "reason" => set(&mut e.reason, value),
                "epochs" => set(&mut e.epochs, value),
                "best_epoch" => set(&mut e.best_epoch, value),
                "train_rmse" => set(&mut e.train_rmse, value),
                "test_rmse" => set(&mut e.test_rmse, value),
                "valid_rmse" => set(&mut e.valid_rmse, value),
                "clipped" => set(&mut e.clipped, value),
                "threads" => set(&mut e.threads, value),
                "kernel" => set(&mut e.kernel, value),
                "update_seconds" => set(&mut e.update_seconds, value),
                "eval_seconds" => set(&mut e.eval_seconds, value),
                "seconds" => set(&mut e.seconds, value),
                _ => Some(()),
            };
            read.ok_or(line)?;
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut record = FitRecord::default();
        assert_eq!(FitRecord::from_text(&record.to_text()).unwrap(), record);
        record.add_event(3, "rolled-back", "the loss exploded:\nback to 2 = x");
        record.add_event(0, "warning", "");
        record.outcome = Some(FitOutcome {
            reason: "patience".into(),
            epochs: 12,
            train_rmse: 0.1 + 0.2,
            test_rmse: 1e-300,
            kernel: "avx2".into(),
            clipped: true,
            ..FitOutcome::default()
        });
        let text = record.to_text() + "later=1\n";
        assert_eq!(FitRecord::from_text(&text).unwrap(), record);
        assert_eq!(record.events[0].message, "the loss exploded: back to 2 = x");
        for wrong in ["note=x rolled-back y", "note=3", "epochs=-1", "nothing"] {
            assert_eq!(FitRecord::from_text(wrong).unwrap_err(), wrong);
        }
    }
}
