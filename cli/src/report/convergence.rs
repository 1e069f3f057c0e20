//! The sections on the course of a fit: errors, loss, learning rate, events and speed by epoch.

use std::fmt::Write;

use s3cmtf::model::{EpochMetrics, FitOutcome, Model};

use super::context::PageContext;
use super::html::{
    count_noun, escape, format_integer, format_seconds, format_value, key_value_table,
};
use super::line_chart::{Curve, LineChart, Mark};
use super::time_shares::time_shares;

/// The largest number of listed events.
const MAX_EVENTS: usize = 40;

/// The horizontal axis of a chart.
#[derive(Clone, Copy, PartialEq)]
enum TimeAxis {
    Epochs,
    /// Seconds of updates and evaluations since the start of the fit.
    Seconds,
}

impl TimeAxis {
    fn label(self) -> &'static str {
        match self {
            TimeAxis::Epochs => "epoch",
            TimeAxis::Seconds => "seconds",
        }
    }
}

/// Returns the points of a metric over time. Epochs without a finite value are left out.
fn metric_points(
    model: &Model,
    axis: TimeAxis,
    metric: fn(&EpochMetrics) -> f64,
) -> Vec<(f64, f64)> {
    let mut seconds = 0.0;
    let points = model.history().iter().map(|e| {
        seconds += e.update_seconds + e.eval_seconds;
        let x = match axis {
            TimeAxis::Epochs => e.epoch as f64,
            TimeAxis::Seconds => seconds,
        };
        (x, metric(e))
    });
    points.filter(|p| p.1.is_finite()).collect()
}

fn curve<'a>(name: &'a str, class: &'static str, points: Vec<(f64, f64)>) -> Curve<'a> {
    Curve {
        name,
        class,
        points,
        errors: Vec::new(),
    }
}

/// Returns a chart as a figure; empty if it has no points.
fn figure(chart: &LineChart<'_>) -> String {
    let drawn = chart.draw();
    if drawn.is_empty() {
        drawn
    } else {
        format!("<figure>{drawn}</figure>\n")
    }
}

impl PageContext<'_> {
    /// Returns marks for the rollbacks and for the epoch of the returned model.
    fn marks(&self) -> Vec<Mark> {
        let record = self.model.record();
        let mut marks: Vec<Mark> = record
            .events
            .iter()
            .filter(|n| n.kind == "rolled-back")
            .map(|n| Mark {
                x: n.epoch as f64,
                class: "alarm",
                text: n.message.clone(),
            })
            .collect();
        if let Some(outcome) = &record.outcome {
            marks.push(Mark {
                x: outcome.best_epoch as f64,
                class: "",
                text: format!("the model is that of epoch {}", outcome.best_epoch),
            });
        }
        marks
    }

    /// Returns the chart of the training, validation and test RMSE.
    fn error_chart(&self, axis: TimeAxis) -> String {
        let points = |metric| metric_points(self.model, axis, metric);
        let mut curves = vec![
            curve("training", "train", points(|e| e.train_rmse)),
            curve("validation", "valid", points(|e| e.valid_rmse)),
            curve("test", "test", points(|e| e.test_rmse)),
        ];
        if let Some(other) = self.options.against {
            let points = metric_points(other, axis, |e| e.test_rmse);
            curves.push(curve("test, other", "other", points));
        }
        curves.retain(|c| !c.points.is_empty());
        // A chart with one curve has no legend, so its title names the curve.
        let metric = match &curves[..] {
            [only] => format!("RMSE ({})", only.name),
            _ => "RMSE".into(),
        };
        figure(&LineChart {
            title: &format!("{metric} by {}", axis.label()),
            x_label: axis.label(),
            curves,
            marks: match axis {
                TimeAxis::Epochs => self.marks(),
                TimeAxis::Seconds => Vec::new(),
            },
            from_zero: false,
        })
    }

    /// Returns the section on convergence.
    pub(super) fn convergence(&self) -> String {
        let (model, record) = (self.model, self.model.record());
        let mut out = String::new();
        if model.history().is_empty() {
            out += "<p>The model has no history: it was not fitted by this program, or only its initialization was kept.</p>\n";
        }
        let points = |metric| metric_points(model, TimeAxis::Epochs, metric);
        let loss = figure(&LineChart {
            title: "Loss by epoch",
            x_label: "epoch",
            curves: vec![curve("loss", "train", points(|e| e.loss))],
            marks: self.marks(),
            from_zero: false,
        });
        let is_rowwise = model.options().algorithm.is_rowwise();
        let learning_rate = if is_rowwise {
            String::new()
        } else {
            figure(&LineChart {
                title: "Learning rate by epoch",
                x_label: "epoch",
                curves: vec![curve("eta", "train", points(|e| e.eta))],
                marks: self.marks(),
                from_zero: true,
            })
        };
        let charts = [
            self.error_chart(TimeAxis::Epochs),
            self.error_chart(TimeAxis::Seconds),
            loss,
            learning_rate,
        ];
        if charts.iter().any(|chart| !chart.is_empty()) {
            let _ = writeln!(out, "<div class=\"grid2\">{}</div>", charts.concat());
        }
        if is_rowwise && !model.history().is_empty() {
            out += "<p class=\"note\">This algorithm has no learning rate.</p>\n";
        }
        if let Some(outcome) = &record.outcome {
            out += &outcome_table(outcome);
        }
        out + &self.events()
    }

    /// Returns the table of the events of the fit.
    fn events(&self) -> String {
        let record = self.model.record();
        if record.events.is_empty() {
            return match record.outcome {
                Some(_) => "<p class=\"note\">The fit had no rollback and no warning.</p>\n".into(),
                None => String::new(),
            };
        }
        let mut out = String::from(
            "<h3>Events</h3>\n<div class=\"scroll\"><table><thead><tr><th>After epoch</th><th>Event</th><th></th></tr></thead><tbody>\n",
        );
        for n in record.events.iter().take(MAX_EVENTS) {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                format_integer(n.epoch),
                escape(&n.kind),
                escape(&n.message)
            );
        }
        out += "</tbody></table></div>\n";
        if record.events.len() > MAX_EVENTS {
            let _ = writeln!(
                out,
                "<p class=\"note\">and {} more.</p>",
                record.events.len() - MAX_EVENTS
            );
        }
        out
    }

    /// Returns the section on the speed of the fit.
    pub(super) fn speed(&self) -> String {
        let history = self.model.history();
        if history.is_empty() {
            return String::new();
        }
        let update: f64 = history.iter().map(|e| e.update_seconds).sum();
        let eval: f64 = history.iter().map(|e| e.eval_seconds).sum();
        let entries: f64 = history
            .iter()
            .map(|e| e.entries_per_second * e.update_seconds)
            .sum();
        let mut rows = Vec::new();
        if update > 0.0 {
            let rate = (entries / update).round() as u64;
            rows.push((
                "Tensor and matrix entries",
                format!("{} per second of update time", format_integer(rate)),
            ));
        }
        rows.push(("Update time", format_seconds(update)));
        rows.push(("Evaluation time", format_seconds(eval)));
        let outcome = self.model.record().outcome.as_ref();
        if let Some(outcome) = outcome {
            rows.push(("Total time", format_seconds(outcome.seconds)));
            rows.push(("Threads", format_integer(outcome.threads)));
            rows.push(("Instruction set", escape(&outcome.kernel)));
        }
        let points = metric_points(self.model, TimeAxis::Epochs, |e| e.entries_per_second / 1e6);
        let chart = figure(&LineChart {
            title: "Million entries per second, by epoch",
            x_label: "epoch",
            curves: vec![curve("speed", "train", points)],
            marks: Vec::new(),
            from_zero: true,
        });
        format!(
            "<div class=\"grid2\"><div>{}</div>{chart}</div>\n{}",
            key_value_table(&rows),
            outcome.map_or(String::new(), time_shares)
        )
    }
}

/// Returns the table of why a fit ended and of the errors of the returned model.
fn outcome_table(outcome: &FitOutcome) -> String {
    let epochs = count_noun(outcome.epochs, "epoch", "epochs");
    let errors = [
        ("training", outcome.train_rmse),
        ("validation", outcome.valid_rmse),
        ("test", outcome.test_rmse),
    ];
    let errors: Vec<String> = errors
        .iter()
        .filter(|(_, x)| x.is_finite())
        .map(|(name, x)| format!("{name} {}", format_value(*x)))
        .collect();
    let clipped = if outcome.clipped {
        "clipped to the range of the training values"
    } else {
        "not clipped"
    };
    key_value_table(&[
        ("Ended", escape(stop_reason(&outcome.reason))),
        (
            "Ran for",
            format!(
                "{epochs}; the model is that of epoch {}",
                outcome.best_epoch
            ),
        ),
        (
            "RMSE of the model",
            format!("{} ({clipped})", errors.join(", ")),
        ),
    ])
}

/// Returns a sentence for the name of the reason why a fit ended.
fn stop_reason(name: &str) -> &str {
    match name {
        "epochs" => "all epochs were run",
        "tolerance" | "converged" => "early: the training loss converged",
        "patience" => "early: the validation error did not improve any more",
        "time-limit" => "early: the time limit was reached",
        "cancelled" => "early: it was cancelled",
        other => other,
    }
}
