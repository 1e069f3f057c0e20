//! Prints epochs and events while a fit, a search (`tune`) or a batch runs.

use s3cmtf::model::EpochMetrics;
use s3cmtf::solver::{Control, Event, Observer};
use s3cmtf::{Error, Monitor};
use serde_json::{Value, json};

use crate::output::{Output, format_integer, format_number, format_rmse, print_stderr};
use crate::progress::Progress;

/// Prints epochs and events as they occur. Stops the run when printing fails or the user cancels.
pub(crate) struct ConsoleObserver<'a> {
    pub progress: &'a Progress,
    pub out: &'a mut Output,
    /// The first error of standard output.
    pub output_error: Option<Error>,
}

impl Observer for ConsoleObserver<'_> {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        let optional_rmse = |name: &str, x: f64| {
            if x.is_nan() {
                String::new()
            } else {
                format!("  {name} {}", format_rmse(x))
            }
        };
        self.out.line(format!(
            "epoch {:>4}  eta {}{}{}{}  {:.2} s  {} entries/s",
            e.epoch,
            format_number(e.eta),
            optional_rmse("train", e.train_rmse),
            optional_rmse("valid", e.valid_rmse),
            optional_rmse("test", e.test_rmse),
            e.update_seconds,
            format_integer(e.entries_per_second as u64)
        ));
        self.out.object(&epoch_json(e));
        self.flush()
    }

    fn event(&mut self, event: &Event) {
        let (name, text, fields) = match event {
            Event::RankLowered(text) => ("rank-lowered", text.clone(), json!({"text": text})),
            Event::RolledBack { epoch, eta } => (
                "rolled-back",
                format!(
                    "the fit diverged: restored epoch {epoch}, eta {}",
                    format_number(*eta)
                ),
                json!({"epoch": epoch, "eta": eta}),
            ),
            Event::Checkpoint { epoch } => ("checkpoint", String::new(), json!({"epoch": epoch})),
            Event::Warning(text) => {
                if !self.out.json {
                    print_stderr(&format!("warning: {text}"));
                }
                ("warning", String::new(), json!({"text": text}))
            }
            Event::Stopped(reason) => ("stopped", String::new(), json!({"reason": reason.name()})),
            _ => return,
        };
        if !text.is_empty() {
            self.out.line(text);
        }
        let mut object = json!({"event": name});
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        self.out.object(&object);
        self.flush();
    }
}

impl ConsoleObserver<'_> {
    /// Writes the output so far. Returns `Stop` if that fails or the user cancelled.
    pub(crate) fn flush(&mut self) -> Control {
        if let Err(e) = self.out.flush() {
            self.output_error.get_or_insert(e);
        }
        if self.output_error.is_some() || self.progress.cancelled() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// Returns the metrics of an epoch as a JSON object.
pub(crate) fn epoch_json(e: &EpochMetrics) -> Value {
    json!({
        "epoch": e.epoch,
        "eta": e.eta,
        "loss": json_number(e.loss),
        "train_rmse": json_number(e.train_rmse),
        "test_rmse": json_number(e.test_rmse),
        "valid_rmse": json_number(e.valid_rmse),
        "update_seconds": e.update_seconds,
        "eval_seconds": e.eval_seconds,
        "entries_per_second": e.entries_per_second,
    })
}

/// Returns a JSON number, or null for NaN and infinity, which JSON cannot represent.
pub(crate) fn json_number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}
