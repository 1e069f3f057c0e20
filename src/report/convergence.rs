//! How a fit went: errors, step sizes, events, speed.

use std::fmt::Write;

use super::Context;
use super::chart::{Curve, Curves, Mark};
use super::html::{counted, escape, facts, grouped, number, seconds};
use crate::model::{EpochMetrics, Model};

/// A figure of an epoch.
type Figure = fn(&EpochMetrics) -> f64;

/// A curve with its name and class.
type Line<'a> = (&'a str, &'static str, Vec<(f64, f64)>);

/// The numbers of an epoch and the seconds until its end.
fn timed(model: &Model) -> impl Iterator<Item = (&EpochMetrics, f64)> {
    let mut until = 0.0;
    model.history().iter().map(move |e| {
        until += e.update_seconds + e.eval_seconds;
        (e, until)
    })
}

fn along(model: &Model, by_seconds: bool, figure: Figure) -> Vec<(f64, f64)> {
    timed(model)
        .map(|(e, until)| (if by_seconds { until } else { e.epoch as f64 }, figure(e)))
        .filter(|p| p.1.is_finite())
        .collect()
}

fn picture<'a>(
    title: &'a str,
    x: &'a str,
    lines: Vec<Line<'a>>,
    marks: Vec<Mark>,
    from_zero: bool,
) -> String {
    let curves = lines.into_iter().filter(|l| !l.2.is_empty());
    let curves = curves.map(|(name, class, points)| Curve {
        name,
        class,
        points,
        errors: Vec::new(),
    });
    let drawn = Curves {
        title,
        x,
        curves: curves.collect(),
        marks,
        from_zero,
    }
    .draw();
    match drawn.is_empty() {
        true => drawn,
        false => format!("<figure>{drawn}</figure>\n"),
    }
}

impl Context<'_> {
    /// Where something happened.
    fn marks(&self) -> Vec<Mark> {
        let record = self.model.record();
        let mut marks: Vec<Mark> = record
            .events
            .iter()
            .filter(|n| n.kind == "rolled-back")
            .map(|n| Mark {
                at: n.epoch as f64,
                class: "alarm",
                text: n.message.clone(),
            })
            .collect();
        if let Some(ending) = &record.outcome {
            marks.push(Mark {
                at: ending.best_epoch as f64,
                class: "",
                text: format!("the model is that of epoch {}", ending.best_epoch),
            });
        }
        marks
    }

    fn errors_along(&self, by_seconds: bool) -> String {
        let of = |figure: Figure| along(self.model, by_seconds, figure);
        let mut lines: Vec<Line<'_>> = vec![
            ("training", "train", of(|e| e.train_rmse)),
            ("validation", "valid", of(|e| e.valid_rmse)),
            ("test", "test", of(|e| e.test_rmse)),
        ];
        if let Some(other) = self.options.against {
            lines.push((
                "test, other",
                "other",
                along(other, by_seconds, |e| e.test_rmse),
            ));
        }
        // One curve has no legend.
        let mut shown = lines.iter().filter(|l| !l.2.is_empty());
        let what = match (shown.next(), shown.next()) {
            (Some(only), None) => format!("RMSE ({})", only.0),
            _ => "RMSE".into(),
        };
        let (x, marks) = match by_seconds {
            false => ("epoch", self.marks()),
            true => ("seconds", Vec::new()),
        };
        picture(&format!("{what} by {x}"), x, lines, marks, false)
    }

    /// How the fit went.
    pub(super) fn course(&self) -> String {
        let (model, record) = (self.model, self.model.record());
        let mut out = String::new();
        if model.history().is_empty() {
            out += "<p>The model has no history: it was not fitted here, or only its start was kept.</p>\n";
        }
        let exact = model.options().algorithm.is_rowwise();
        let loss = picture(
            "Loss by epoch",
            "epoch",
            vec![("loss", "train", along(model, false, |e| e.loss))],
            self.marks(),
            false,
        );
        let eta = match exact {
            true => String::new(),
            false => picture(
                "Learning rate by epoch",
                "epoch",
                vec![("eta", "train", along(model, false, |e| e.eta))],
                self.marks(),
                true,
            ),
        };
        let pictures = [self.errors_along(false), self.errors_along(true), loss, eta];
        if pictures.iter().any(|p| !p.is_empty()) {
            let _ = writeln!(out, "<div class=\"grid2\">{}</div>", pictures.concat());
        }
        if exact && !model.history().is_empty() {
            out += "<p class=\"note\">This algorithm solves for rows, or draws them; it has no learning rate.</p>\n";
        }
        let mut rows = Vec::new();
        if let Some(e) = &record.outcome {
            rows.push(("Ended", escape(reason(&e.reason))));
            let epochs = counted(e.epochs, "epoch", "epochs");
            rows.push((
                "Ran for",
                format!("{epochs}; the model is that of epoch {}", e.best_epoch),
            ));
            let errors = [
                ("training", e.train_rmse),
                ("validation", e.valid_rmse),
                ("test", e.test_rmse),
            ];
            let errors = errors.iter().filter(|(_, x)| x.is_finite());
            let errors: Vec<String> = errors.map(|(w, x)| format!("{w} {}", number(*x))).collect();
            let clipped = match e.clipped {
                true => "clipped to the range of the training values",
                false => "not clipped",
            };
            rows.push((
                "RMSE of the model",
                format!("{} ({clipped})", errors.join(", ")),
            ));
        }
        if !rows.is_empty() {
            out += &facts(&rows);
        }
        if !record.events.is_empty() {
            out += "<h3>Events</h3>\n<div class=\"scroll\"><table><thead><tr><th>After epoch</th><th>Event</th><th></th></tr></thead><tbody>\n";
            const MOST: usize = 40;
            for n in record.events.iter().take(MOST) {
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                    grouped(n.epoch),
                    escape(&n.kind),
                    escape(&n.message)
                );
            }
            out += "</tbody></table></div>\n";
            if record.events.len() > MOST {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">and {} more.</p>",
                    record.events.len() - MOST
                );
            }
        } else if record.outcome.is_some() {
            out +=
                "<p class=\"note\">Nothing went wrong on the way: no rollback, no warning.</p>\n";
        }
        out
    }

    /// How fast it was, and on what.
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
                format!("{} per second of updating", grouped(rate)),
            ));
        }
        rows.push(("Updating", seconds(update)));
        rows.push(("Measuring errors", seconds(eval)));
        if let Some(e) = &self.model.record().outcome {
            rows.push(("All in all", seconds(e.seconds)));
            rows.push(("Threads", grouped(e.threads)));
            rows.push(("Kernels", escape(&e.kernel)));
        }
        let chart = picture(
            "Million entries per second, by epoch",
            "epoch",
            vec![(
                "speed",
                "train",
                along(self.model, false, |e| e.entries_per_second / 1e6),
            )],
            Vec::new(),
            true,
        );
        format!(
            "<div class=\"grid2\"><div>{}</div>{chart}</div>\n",
            facts(&rows)
        )
    }
}

/// Why a fit ended, in words.
fn reason(name: &str) -> &str {
    match name {
        "epochs" => "all epochs were run",
        "tolerance" => "early: the training loss hardly changed any more",
        "patience" => "early: the validation error got no better",
        "time-limit" => "early: the time was up",
        "cancelled" => "early: it was cancelled",
        other => other,
    }
}
