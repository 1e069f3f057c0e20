//! The course of a fit: metrics of every epoch, events and the outcome.

use std::fmt::Write;
use std::str::FromStr;

/// Metrics of one epoch. Those that were not measured are NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochMetrics {
    /// Number of the epoch, counted from 1.
    pub epoch: u64,
    /// Learning rate of the epoch; NaN if the algorithm has none.
    pub eta: f64,
    /// Training loss: f of the paper plus half the penalized squares of the biases.
    pub loss: f64,
    /// RMSE on the training entries.
    pub train_rmse: f64,
    /// RMSE on the test entries.
    pub test_rmse: f64,
    /// RMSE on the validation entries.
    pub valid_rmse: f64,
    /// Seconds spent on updates.
    pub update_seconds: f64,
    /// Seconds spent on measuring errors.
    pub eval_seconds: f64,
    /// Tensor and matrix entries per second of updates.
    pub entries_per_second: f64,
}

impl EpochMetrics {
    /// Returns the metrics of an epoch of which nothing is measured.
    pub(crate) fn not_measured(epoch: u64) -> EpochMetrics {
        EpochMetrics {
            epoch,
            eta: f64::NAN,
            loss: f64::NAN,
            train_rmse: f64::NAN,
            test_rmse: f64::NAN,
            valid_rmse: f64::NAN,
            update_seconds: 0.0,
            eval_seconds: 0.0,
            entries_per_second: 0.0,
        }
    }
}

/// An event of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitEvent {
    /// Epoch after which it happened.
    pub epoch: u64,
    /// Kind of event: `rolled-back`, `rank-lowered` or `warning`.
    pub kind: String,
    /// Description for people, on one line.
    pub message: String,
}

/// The outcome of a fit. Errors are those of the returned model, NaN if they were not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitOutcome {
    /// Reason for stopping, as the solver names it: `epochs`, `tolerance`, `converged`, `patience`, `time-limit` or
    /// `cancelled`.
    pub reason: String,
    /// Number of epochs run.
    pub epochs: u64,
    /// Epoch of the returned model.
    pub best_epoch: u64,
    /// RMSE on the training entries.
    pub train_rmse: f64,
    /// RMSE on the test entries.
    pub test_rmse: f64,
    /// RMSE on the validation entries.
    pub valid_rmse: f64,
    /// Whether predictions were clipped to the range of the training values.
    pub clipped: bool,
    /// Number of threads.
    pub threads: u64,
    /// Instruction set of the kernels.
    pub kernel: String,
    /// Seconds spent on updates.
    pub update_seconds: f64,
    /// Seconds spent on measuring errors.
    pub eval_seconds: f64,
    /// Seconds of the whole fit, without those of reading its input.
    pub seconds: f64,
    /// Seconds that the caller spent on reading the input; 0 if unknown.
    pub read_seconds: f64,
    /// Seconds from the start of the fit to its first epoch: initialization and the copy of the entries; 0 if unknown.
    pub init_seconds: f64,
    /// What threads did during the epochs, as fractions of their time: names of [`SpanKind`](crate::trace::SpanKind). Empty
    /// unless the fit was traced.
    pub thread_shares: Vec<(String, f64)>,
}

/// Events and outcome of a fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitRecord {
    /// Events in the order they happened.
    pub events: Vec<FitEvent>,
    /// Outcome of the fit; `None` in a checkpoint.
    pub outcome: Option<FitOutcome>,
}

impl FitRecord {
    /// Appends an event. Line ends in `message` become blanks.
    pub(crate) fn add_event(&mut self, epoch: u64, kind: &str, message: &str) {
        self.events.push(FitEvent {
            epoch,
            kind: kind.into(),
            message: message.replace(['\n', '\r'], " "),
        });
    }

    /// Returns whether nothing was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.outcome.is_none()
    }

    /// Returns lines `name=value`: `note=EPOCH KIND MESSAGE` for each event, then the fields of the outcome by name.
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
                 threads={}\nkernel={}\nupdate_seconds={:e}\neval_seconds={:e}\nseconds={:e}\n\
                 read_seconds={:e}\ninit_seconds={:e}\n",
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
                e.seconds,
                e.read_seconds,
                e.init_seconds
            );
            for (name, share) in &e.thread_shares {
                let _ = writeln!(text, "thread_share={name} {share:e}");
            }
        }
        text
    }

    /// Parses lines that [`to_text`](Self::to_text) wrote. Names of a later version are ignored. The error is the line that
    /// cannot be parsed.
    pub(super) fn from_text(text: &str) -> Result<FitRecord, String> {
        fn assign<T: FromStr>(slot: &mut T, value: &str) -> Option<()> {
            *slot = value.parse().ok()?;
            Some(())
        }
        let mut record = FitRecord::default();
        for line in text.lines() {
            let (name, value) = line.split_once('=').ok_or(line)?;
            if name == "note" {
                let mut words = value.splitn(3, ' ');
                let epoch = words.next().and_then(|w| w.parse().ok());
                let (epoch, kind) = epoch.zip(words.next()).ok_or(line)?;
                record.add_event(epoch, kind, words.next().unwrap_or_default());
                continue;
            }
            let e = record.outcome.get_or_insert_default();
            let parsed = match name {
                "reason" => assign(&mut e.reason, value),
                "epochs" => assign(&mut e.epochs, value),
                "best_epoch" => assign(&mut e.best_epoch, value),
                "train_rmse" => assign(&mut e.train_rmse, value),
                "test_rmse" => assign(&mut e.test_rmse, value),
                "valid_rmse" => assign(&mut e.valid_rmse, value),
                "clipped" => assign(&mut e.clipped, value),
                "threads" => assign(&mut e.threads, value),
                "kernel" => assign(&mut e.kernel, value),
                "update_seconds" => assign(&mut e.update_seconds, value),
                "eval_seconds" => assign(&mut e.eval_seconds, value),
                "seconds" => assign(&mut e.seconds, value),
                "read_seconds" => assign(&mut e.read_seconds, value),
                "init_seconds" => assign(&mut e.init_seconds, value),
                "thread_share" => value.split_once(' ').and_then(|(name, share)| {
                    e.thread_shares.push((name.into(), share.parse().ok()?));
                    Some(())
                }),
                _ => Some(()),
            };
            parsed.ok_or(line)?;
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_inverts_printing() {
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
            init_seconds: 0.25,
            thread_shares: vec![("block".into(), 0.75), ("wait".into(), 0.25)],
            ..FitOutcome::default()
        });
        let text = record.to_text() + "later=1\n";
        assert_eq!(FitRecord::from_text(&text).unwrap(), record);
        assert_eq!(record.events[0].message, "the loss exploded: back to 2 = x");
        for wrong in [
            "note=x rolled-back y",
            "note=3",
            "epochs=-1",
            "thread_share=block",
            "thread_share=block x",
            "nothing",
        ] {
            assert_eq!(FitRecord::from_text(wrong).unwrap_err(), wrong);
        }
    }
}
