//! The fits of a demo, and how good they are.

use s3cmtf::format::{CooView, Names, Values};
use s3cmtf::model::{self, BiasModel, EpochMetrics, Model};
use s3cmtf::options::Options;
use s3cmtf::predict::evaluate;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{
    BiasOptions, Control, Event, FitInput, FitSummary, Observer, fit, fit_biases,
};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Value, json};

use super::super::fit::epoch_json;
use super::super::output::{Output, counted, grouped, rmse};
use super::super::progress::Progress;
use super::story::Teller;

/// Rows with at most so many entries are few to learn from.
const FEW: u64 = 20;

/// What was fitted and how good it is.
pub(super) struct Errors {
    pub mean: f64,
    pub biases: f64,
    /// Without matrices.
    pub uncoupled: Fitted,
    /// With them, if there are any.
    pub coupled: Option<Fitted>,
    /// Entries per second of updating.
    pub speed: f64,
}

/// A model, how it was fitted, and what it is called.
pub(super) struct Fitted {
    pub model: Model,
    pub summary: FitSummary,
    pub what: &'static str,
}

impl Errors {
    /// The model that is told about.
    pub(super) fn told(&self) -> &Fitted {
        self.coupled.as_ref().unwrap_or(&self.uncoupled)
    }

    /// The model to compare it with.
    pub(super) fn other(&self) -> Option<&Fitted> {
        self.coupled.as_ref().map(|_| &self.uncoupled)
    }

    /// All that was fitted.
    pub(super) fn fits(&self) -> impl Iterator<Item = &Fitted> {
        [&self.uncoupled].into_iter().chain(&self.coupled)
    }
}

impl Fitted {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "fit": self.what,
            "model": self.model.options().get("model").unwrap_or_default(),
            "ranks": self.model.shape().ranks,
            "epochs": self.summary.epochs,
            "seconds": self.summary.seconds,
        })
    }
}

impl Teller<'_> {
    fn fit(&self, problem: &Problem<'_>, what: &'static str) -> Result<Fitted> {
        // Nothing is tuned: these are the choices that a fit makes by itself.
        let mut options = Options::default();
        options.seed = self.a.seed;
        options.threads = self.a.threads as u64;
        let input = FitInput {
            test: Some(self.set.test.view()),
            ..FitInput::default()
        };
        let mut watcher = Bar {
            progress: self.progress,
            what,
            epochs: options.epochs,
            log: String::new(),
        };
        let (fitted, summary) = fit(problem, &options, &input, &mut watcher, self.progress)?;
        self.progress.clear();
        if self.progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let model = self.a.output.join(format!("{what}.s3m"));
        model::save(&fitted, &model)?;
        for (n, names) in self.set.names.iter().enumerate() {
            if let Some(names) = names {
                names.save(self.a.output.join(format!("{what}.mode{}.tsv", n + 1)))?;
            }
        }
        for (m, table) in self.set.tables.iter().enumerate() {
            // The model that is fitted without has none of them.
            let columns = table
                .columns
                .as_ref()
                .filter(|_| m < fitted.matrices().len());
            Names::save_columns(columns, &model, m)?;
        }
        let log = self.a.output.join(format!("{what}.log.jsonl"));
        std::fs::write(&log, watcher.log).map_err(|source| Error::Io {
            action: format!("cannot write {}", log.display()),
            source,
        })?;
        Ok(Fitted {
            model: fitted,
            summary,
            what,
        })
    }

    pub(super) fn errors(&self, out: &mut Output) -> Result<Errors> {
        let (set, test) = (self.set, self.set.test.view());
        let alone = Problem::builder(set.train.view()).build(self.progress)?;
        let mut builder = Problem::builder(set.train.view()).seed(self.a.seed);
        for t in &set.tables {
            builder = builder.matrix(t.mode, t.file.view(), None, t.kind);
        }
        let problem = builder.build(self.progress)?;
        let clip = problem.range();
        let mean = BiasModel::new(problem.mean(), Vec::new());
        let (biases, _) = fit_biases(&problem, &BiasOptions::default(), self.progress)?;
        let mean = evaluate(&mean, &test, clip, 0, self.progress)?.clipped.rmse;
        let biases = evaluate(&biases, &test, clip, 0, self.progress)?
            .clipped
            .rmse;
        // Without matrices there is nothing to compare.
        let (uncoupled, coupled) = match set.tables.is_empty() {
            true => (self.fit(&alone, "model")?, None),
            false => {
                let uncoupled = self.fit(&alone, "uncoupled")?;
                (uncoupled, Some(self.fit(&problem, "coupled")?))
            }
        };
        let mut errors = Errors {
            mean,
            biases,
            uncoupled,
            coupled,
            speed: 0.0,
        };
        let told = errors.told();
        let history = told.model.history();
        let seconds: f64 = history.iter().map(|e| e.update_seconds).sum();
        let done = history
            .iter()
            .map(|e| e.entries_per_second * e.update_seconds);
        let speed = done.sum::<f64>() / seconds.max(1e-9);
        let mut rows = vec![("the mean", mean), ("mean and biases", biases)];
        rows.extend(errors.fits().map(|f| (f.what, f.summary.test_rmse)));
        rows.extend(set.floor.map(|floor| ("the planted model", floor)));
        out.line(format!("\nRMSE on the test entries:\n\n{}", table(&rows)));
        for Fitted {
            model,
            summary,
            what,
        } in errors.fits()
        {
            let ranks: Vec<String> = model.shape().ranks.iter().map(usize::to_string).collect();
            out.line(format!(
                "{what}: {} of ranks {}, as the fit chose, after {} in {:.1} s",
                model.options().get("model").unwrap_or_default(),
                ranks.join(" x "),
                counted(summary.epochs, "epoch", "epochs"),
                summary.seconds
            ));
        }
        out.line(format!(
            "{} entries/s on {} with {} kernels",
            grouped(speed as u64),
            counted(told.summary.threads as u64, "thread", "threads"),
            told.summary.kernel.name()
        ));
        if let Some(other) = errors.other() {
            for mode in 0..set.modes.len() {
                if set.tables.iter().any(|t| t.mode == mode) {
                    self.where_it_helps(mode, &other.model, &told.model, out)?;
                }
            }
        }
        out.flush()?;
        errors.speed = speed;
        Ok(errors)
    }

    /// Errors on test entries of rows with few training entries.
    fn where_it_helps(
        &self,
        mode: usize,
        without: &Model,
        with: &Model,
        out: &mut Output,
    ) -> Result<()> {
        let test = self.set.test.view();
        let own = &with.modes()[mode];
        let few = |i: u32| {
            own.rows
                .compact(i)
                .is_none_or(|r| own.counts[r as usize] <= FEW)
        };
        let chosen: Vec<usize> = (0..test.len())
            .filter(|&i| few(test.column(mode)[i]))
            .collect();
        if chosen.is_empty() {
            return Ok(());
        }
        let columns: Vec<Vec<u32>> = (0..test.order())
            .map(|n| chosen.iter().map(|&i| test.column(n)[i]).collect())
            .collect();
        let values: Vec<f64> = chosen.iter().map(|&i| test.values().get(i)).collect();
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let some = CooView::new(
            "some test entries",
            test.dims(),
            &columns,
            Values::F64(&values),
        )?;
        let error = |m: &Model| -> Result<f64> {
            let e = evaluate(m, &some, with.range(), self.a.threads, self.progress)?;
            Ok(e.clipped.rmse)
        };
        let (before, after) = (error(without)?, error(with)?);
        out.line(format!(
            "Where a {} has at most {FEW} training entries ({}): {} uncoupled, {} coupled",
            self.set.modes[mode],
            counted(chosen.len() as u64, "test entry", "test entries"),
            rmse(before),
            rmse(after)
        ));
        out.object(&json!({"few": {
            "mode": mode + 1, "at_most": FEW, "count": chosen.len(),
            "test_rmse_uncoupled": before, "test_rmse_coupled": after,
        }}));
        Ok(())
    }
}

/// Errors with bars.
fn table(rows: &[(&str, f64)]) -> String {
    let most = rows.iter().map(|r| r.1).fold(1e-300, f64::max);
    let lines = rows.iter().map(|(what, error)| {
        let bar = "#".repeat((error / most * 40.0).round() as usize);
        format!("  {what:>18}  {}  {bar}\n", rmse(*error))
    });
    lines.collect()
}

/// Shows a fit as progress and keeps its log.
struct Bar<'a> {
    progress: &'a Progress,
    what: &'static str,
    epochs: u64,
    log: String,
}

impl Observer for Bar<'_> {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        self.log += &format!("{}\n", epoch_json(figures));
        self.progress
            .progress(self.what, figures.epoch, self.epochs);
        match self.progress.cancelled() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::Stopped(reason) = event {
            self.log += &format!("{}\n", json!({"event": "stopped", "reason": reason.name()}));
        }
    }
}
