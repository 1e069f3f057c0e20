//! Measures the paper's tables and figures again. Arguments come in; a folder with results, charts and a
//! comparison with the paper's claims goes out.
//!
//! Every measurement runs this program in another process (`child`): `tune` and `fit`, `bench` or `clusters`, and reads the
//! JSON objects that it prints. `session` keeps what all figures share, `store` is results.json, `budget` divides the time,
//! `methods` lists the methods that are compared, `data_sets` finds or generates the data. One file per kind of figure makes
//! its measurements: `accuracy` (with `sals`), `iteration_time`, `scaling`, `cores`, `gap`. From the results, `figures` and
//! `chart` make the charts, `claims` compares with the paper, `report` writes the tables.

use std::path::PathBuf;
use std::time::Instant;

use s3cmtf::{Error, Result};
use serde_json::json;

use crate::arguments::Arguments;
use crate::budget::Budget;
use crate::data_sets::{self, DataSet};
use crate::figure::Figure;
use crate::methods::{METHODS, Method, is_of_sals};
use crate::session::{Session, WorkFolder};
use crate::store::Store;
use crate::{accuracy, cores, gap, iteration_time, machine, report, scaling};

use s3cmtf_cli::outcome::Outcome;
use s3cmtf_cli::output::Output;
use s3cmtf_cli::progress::Progress;

/// The largest budget, about two years.
const MAX_MINUTES: f64 = 1e6;
/// The least part of the budget that is spent on further attempts.
const MIN_PART_FOR_MORE: f64 = 0.1;
/// The largest number of threads, as of `fit`.
const MAX_THREADS: usize = 4096;

/// Makes all measurements that the folder does not have yet, and writes the report.
pub(crate) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    if !(a.budget > 0.0 && a.budget <= MAX_MINUTES) {
        return Err(Error::argument(format!(
            "--budget is {}; it must be a number of minutes above 0 and at most {MAX_MINUTES}",
            a.budget
        )));
    }
    if a.threads > MAX_THREADS {
        return Err(Error::argument(format!(
            "--threads is {}; it must be 0 to {MAX_THREADS}",
            a.threads
        )));
    }
    let started = Instant::now();
    let budget = Budget::of_seconds(60.0 * a.budget);
    let figures = Figure::chosen(&a.figures)?;
    let folders = data_sets::folders(a.data.as_deref())?;
    if figures.is_empty() && !Store::exists(&a.output) {
        return Err(Error::file(
            a.output.display().to_string(),
            "has no results to report; `s3cmtf-reproduction` measures them",
        ));
    }
    let mut session = Session {
        arguments: a,
        store: Store::open(&a.output)?,
        work: WorkFolder::new(&a.output)?,
        progress,
        out,
    };
    if !figures.is_empty() {
        let threads = session.threads();
        session.store.keep_conditions(a.seed, threads)?;
    }
    let measured = measure(&mut session, &figures, folders.as_deref(), budget);
    progress.clear();
    // What was measured before an interruption or a failure is kept and reported.
    if !figures.is_empty() {
        let names: Vec<&str> = figures.iter().map(|f| f.name()).collect();
        session.store.add_run(json!({
            "date": machine::today(),
            "figures": names,
            "budget_minutes": a.budget,
            "seconds": started.elapsed().as_secs_f64(),
            "program": machine::program_hash(),
            "complete": measured.is_ok(),
        }));
    }
    session.store.save()?;
    report::write(&session.store)?;
    if matches!(measured, Err(Error::Cancelled)) {
        session
            .out
            .line("What was measured is kept and reported; the same command continues.");
        session.out.flush()?;
    }
    measured?;
    let shown = a.output.join("reproduction.md").display().to_string();
    session.out.line(format!(
        "\n{shown}: claims of the paper, tables and figures"
    ));
    session.out.object(&json!({"summary": {"output": shown}}));
    Ok(Outcome::Success)
}

fn measure(
    session: &mut Session<'_>,
    figures: &[Figure],
    folders: Option<&[PathBuf]>,
    budget: Budget,
) -> Result<()> {
    let total = budget.left();
    let uses_sets = |f: &Figure| {
        matches!(
            f,
            Figure::Accuracy | Figure::Sals | Figure::IterationTime | Figure::Gap
        )
    };
    let with_sets: Vec<Figure> = figures.iter().copied().filter(uses_sets).collect();
    let sets = if with_sets.is_empty() {
        Vec::new()
    } else {
        let part = weight(&with_sets) / weight(figures);
        data_sets::open(session, folders, budget.part(part))?
    };
    measure_figures(session, figures, &sets, budget)?;
    // Fast methods leave time for what had not enough.
    if budget.left() >= MIN_PART_FOR_MORE * total {
        let has_open = |f: &Figure| {
            let mut of_figure = session.store.of_figure(*f);
            of_figure.any(|(key, _)| session.needs(key))
        };
        let open: Vec<Figure> = figures.iter().copied().filter(has_open).collect();
        measure_figures(session, &open, &sets, budget)?;
    }
    Ok(())
}

/// Makes the measurements of some figures that are missing or had not enough time.
fn measure_figures(
    session: &mut Session<'_>,
    figures: &[Figure],
    sets: &[DataSet],
    budget: Budget,
) -> Result<()> {
    for (k, figure) in figures.iter().enumerate() {
        let part = budget.part(figure.weight() / weight(&figures[k..]));
        match figure {
            Figure::Accuracy | Figure::Sals => {
                let is_part = |m: &&Method| *figure == Figure::Accuracy || is_of_sals(m.name);
                let methods: Vec<&Method> = METHODS.iter().filter(is_part).collect();
                accuracy::measure(session, sets, &methods, part)?;
            }
            Figure::IterationTime => iteration_time::measure(session, sets, part)?,
            Figure::Dimensionality => scaling::dimensionality(session, part)?,
            Figure::Entries => scaling::entries(session, part)?,
            Figure::Cores => cores::measure(session, part)?,
            Figure::Gap => gap::measure(session, sets, part)?,
        }
    }
    Ok(())
}

/// Returns the sum of the parts of the time of some figures.
fn weight(figures: &[Figure]) -> f64 {
    figures.iter().map(|f| f.weight()).sum()
}
