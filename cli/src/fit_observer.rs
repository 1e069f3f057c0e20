//! Prints epochs and events while a fit, a search (`tune`) or a batch runs.

use crate::batch::choice_json;
use s3cmtf::Monitor;
use s3cmtf::model::EpochMetrics;
use s3cmtf::solver::{Control, Event, Observer};
use serde_json::{Value, json};

use crate::epoch_table::{Columns, EpochTable, LineLimit};
use crate::output::{Output, format_number, print_warning};
use crate::progress::Progress;

/// Prints epochs and events as they occur. Stops the run when the user cancels.
pub(crate) struct ConsoleObserver<'a> {
    pub progress: &'a Progress,
    pub out: &'a mut Output,
    pub table: EpochTable,
    /// Number of epochs of the fit, if known.
    pub epochs: u64,
    /// Limits the lines about trials of a search.
    pub trial_lines: LineLimit,
}

impl<'a> ConsoleObserver<'a> {
    pub(crate) fn new(progress: &'a Progress, out: &'a mut Output) -> Self {
        let is_terminal = out.is_terminal;
        ConsoleObserver {
            progress,
            out,
            table: EpochTable::new(Columns::default(), is_terminal),
            epochs: 0,
            trial_lines: LineLimit::new(is_terminal),
        }
    }

    /// Prints the newest epoch if its row was held back.
    pub(crate) fn finish_table(&mut self) {
        if let Some(row) = self.table.last_row() {
            self.out.line(row);
        }
    }
}

impl Observer for ConsoleObserver<'_> {
    fn epoch(&mut self, e: &EpochMetrics) -> Control {
        if let Some(heading) = self.table.heading() {
            self.out.heading(&heading);
        }
        if let Some(row) = self.table.row(e) {
            self.out.line(row);
        }
        // Elsewhere the rows of the table show the progress.
        if self.progress.is_terminal() {
            self.progress
                .progress("fitting", e.epoch, self.epochs.max(e.epoch));
        }
        self.out.object(&epoch_json(e));
        self.flush()
    }

    fn event(&mut self, event: &Event) {
        let (name, text, fields) = match event {
            Event::RankLowered(text) => ("rank-lowered", text.clone(), json!({"text": text})),
            Event::RolledBack { epoch, eta } => (
                "rolled-back",
                match eta.is_nan() {
                    true => format!("the fit diverged: restored epoch {epoch}"),
                    false => format!(
                        "the fit diverged: restored epoch {epoch}, eta {}",
                        format_number(*eta)
                    ),
                },
                json!({"epoch": epoch, "eta": json_number(*eta)}),
            ),
            Event::Checkpoint { epoch } => ("checkpoint", String::new(), json!({"epoch": epoch})),
            Event::Selected(choice) => (
                "selected",
                format!("{}: {}", choice.question, choice.answer),
                choice_json(choice),
            ),
            Event::Warning(text) => {
                self.warn(text);
                return;
            }
            Event::Stopped(reason) => ("stopped", String::new(), json!({"reason": reason.name()})),
            _ => return,
        };
        if !text.is_empty() {
            self.finish_table();
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
    /// Prints a warning.
    pub(crate) fn warn(&mut self, text: &str) {
        if !self.out.json {
            self.progress.suspend(|| print_warning(text));
        }
        self.out.object(&json!({"event": "warning", "text": text}));
        self.flush();
    }

    /// Writes the output so far. Returns `Stop` if the user cancelled.
    pub(crate) fn flush(&mut self) -> Control {
        // The commands that use this write files, and report a failure of standard output at their end.
        let _ = self.out.flush();
        if self.progress.cancelled() {
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
        "eta": json_number(e.eta),
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
