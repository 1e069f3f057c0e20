//! Seconds per iteration on planted data: against the size of the modes, and against the number of entries.

use std::time::Instant;

use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec, generate};
use s3cmtf::{Error, Result};
use serde_json::json;

use super::budget::{Budget, round_down};
use super::figure::Figure;
use super::iteration_time::fixed_options;
use super::methods::{BLOCKED, CMTF_OPT, CMTF_OPT_ZEROS, Method, NAIVE, OPT, TUCKER_ALS, methods};
use super::session::Session;
use super::store::{Key, LEFT_OUT, Measurement, OK};
use crate::output::format_integer;

/// The rank of every mode, as in the paper's analysis of scalability.
const RANK: &str = "10";
/// Iterations per fit; their median counts.
const EPOCHS: u64 = 2;
/// Modes of the tensors.
const ORDER: usize = 3;
/// Entries of a matrix per entry of the tensor.
const MATRIX_PART: u64 = 10;

const NAMES: [&str; 6] = [NAIVE, OPT, BLOCKED, CMTF_OPT, CMTF_OPT_ZEROS, TUCKER_ALS];

/// Measures 1M entries on modes of 1K to 100M rows.
pub(super) fn dimensionality(session: &mut Session<'_>, budget: Budget) -> Result<()> {
    const FULL: u64 = 1_000_000;
    let sizes = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let known = session.store.head.get("dimensionality_entries");
    let entries = match known.and_then(|n| n.as_u64()) {
        Some(entries) => entries,
        None => affordable_entries(session, FULL, sizes.len(), budget)?,
    };
    session
        .store
        .head
        .insert("dimensionality_entries".into(), json!(entries));
    if entries < FULL {
        session.store.note(format!(
            "dimensionality: {} entries instead of {}, to stay within the budget",
            format_integer(entries),
            format_integer(FULL)
        ));
    }
    let grid = sizes.map(|size| Cell {
        size,
        entries,
        x: size,
    });
    measure(session, Figure::Dimensionality, &grid, budget)
}

/// Measures 10K to 100M entries on modes of 10K rows.
pub(super) fn entries(session: &mut Session<'_>, budget: Budget) -> Result<()> {
    let counts = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let grid = counts.map(|entries| Cell {
        size: 10_000,
        entries,
        x: entries,
    });
    measure(session, Figure::Entries, &grid, budget)
}

/// A point of the horizontal axis.
#[derive(Clone, Copy)]
struct Cell {
    /// Rows of every mode.
    size: u64,
    /// Entries of the tensor.
    entries: u64,
    x: u64,
}

/// Returns the number of entries, at most `full`, for which all methods and sizes are measured within the budget.
fn affordable_entries(
    session: &Session<'_>,
    full: u64,
    sizes: usize,
    budget: Budget,
) -> Result<u64> {
    const SAMPLE: u64 = 20_000;
    let sample = Cell {
        size: 1_000,
        entries: SAMPLE,
        x: 0,
    };
    let data = plant(session, sample)?;
    let mut seconds = 0.0;
    let methods = methods(&NAMES);
    for (done, method) in methods.iter().enumerate() {
        let limit = budget.part(0.1).seconds_for_one_of(methods.len() - done);
        let mut arguments = data.clone();
        arguments.extend(fixed_options(method, RANK, 1));
        let measurement = session.fit(arguments, limit)?;
        seconds += measurement.number("seconds").unwrap_or(limit);
    }
    // Twice the iterations, and a factor of two in reserve for larger modes.
    let per_entry = seconds * EPOCHS as f64 * 2.0 * sizes as f64 / SAMPLE as f64;
    Ok(round_down(budget.left() / per_entry).clamp(SAMPLE / 2, full))
}

fn measure(session: &mut Session<'_>, figure: Figure, grid: &[Cell], budget: Budget) -> Result<()> {
    let methods = methods(&NAMES);
    let key = |cell: &Cell, method: &Method| Key {
        figure,
        data: "planted".into(),
        method: method.name.into(),
        x: Some(cell.x),
    };
    let open = |session: &Session<'_>, cells: &[Cell]| -> usize {
        let missing = |cell: &Cell| {
            let needed = methods.iter().filter(|m| session.needs(&key(cell, m)));
            needed.count()
        };
        cells.iter().map(missing).sum()
    };
    let total = open(session, grid);
    for (k, cell) in grid.iter().enumerate() {
        if open(session, &grid[k..=k]) == 0 {
            continue;
        }
        let left_out = leave_out(session, figure, cell, &grid[..k], budget);
        let data = match &left_out {
            Some(_) => Vec::new(),
            None => {
                let started = Instant::now();
                let data = plant(session, *cell)?;
                let seconds = started.elapsed().as_secs_f64();
                let slot = generation_slot(figure);
                session.store.head.insert(slot, json!(seconds));
                data
            }
        };
        for method in &methods {
            let key = key(cell, method);
            if !session.needs(&key) {
                continue;
            }
            let remaining = open(session, &grid[k..]);
            session.show(&key, total - remaining, total);
            let seconds = budget.seconds_for_one_of(remaining);
            let expected = expected_seconds(session, figure, method, cell, &grid[..k]);
            let measurement = if let Some(why) = &left_out {
                Measurement::new(LEFT_OUT, json!({"message": why}))
            } else if expected.is_some_and(|e| e > seconds) {
                let message = format!(
                    "about {:.0} s by the size before, and the budget has {seconds:.0} s",
                    expected.unwrap_or(0.0)
                );
                Measurement::new(LEFT_OUT, json!({"message": message}))
            } else {
                let mut arguments = data.clone();
                arguments.extend(fixed_options(method, RANK, EPOCHS));
                session.fit(arguments, seconds)?
            };
            session.keep(key, measurement)?;
        }
        if left_out.is_none() {
            let _ = std::fs::remove_dir_all(session.work.path().join("scaling"));
        }
    }
    Ok(())
}

/// Returns the name of the seconds that the last data of a figure took to generate.
fn generation_slot(figure: Figure) -> String {
    format!("{}_generation_seconds", figure.name())
}

/// Returns why a size is left out for all methods: its data alone would take too long to generate.
fn leave_out(
    session: &Session<'_>,
    figure: Figure,
    cell: &Cell,
    before: &[Cell],
    budget: Budget,
) -> Option<String> {
    let last = before.last()?;
    let seconds = session.store.head.get(&generation_slot(figure))?.as_f64()?;
    let factor = (cell.entries as f64 / last.entries as f64).max(1.0);
    let (expected, left) = (seconds * factor, budget.left());
    (expected > 0.5 * left).then(|| {
        format!("to generate its data takes about {expected:.0} s, and the budget has {left:.0} s")
    })
}

/// Returns the expected seconds of a fit, from that to the cell before.
fn expected_seconds(
    session: &Session<'_>,
    figure: Figure,
    method: &Method,
    cell: &Cell,
    before: &[Cell],
) -> Option<f64> {
    let last = before.last()?;
    let key = Key {
        figure,
        data: "planted".into(),
        method: method.name.into(),
        x: Some(last.x),
    };
    let measurement = session.store.get(&key)?;
    let factor = (cell.entries as f64 / last.entries as f64).max(1.0);
    match measurement.status.as_str() {
        OK => Some(measurement.number("seconds")? * factor),
        LEFT_OUT => Some(f64::INFINITY),
        _ => None,
    }
}

/// Generates data and returns the arguments of `fit`.
fn plant(session: &Session<'_>, cell: Cell) -> Result<Vec<String>> {
    let mut options = GenerateOptions::new(&[cell.size; ORDER], cell.entries);
    options.ranks = vec![5];
    options.noise = 0.5;
    options.write_truth = false;
    options.seed = session.arguments.seed;
    options.threads = session.threads();
    options.matrices = vec![MatrixSpec {
        mode: 0,
        columns: cell.size,
        entries: MatrixEntries::Sampled(cell.entries / MATRIX_PART),
        ones_fraction: None,
        group_fraction: None,
    }];
    let generated = generate(
        &session.work.path().join("scaling"),
        &options,
        session.progress,
    )?;
    let matrix = generated.matrices.first();
    let (matrix, _) = matrix.ok_or_else(|| Error::argument("planted data without a matrix"))?;
    Ok(vec![
        "--tensor".into(),
        generated.train.0.display().to_string(),
        "--matrix".into(),
        format!("1:{}", matrix.display()),
    ])
}
