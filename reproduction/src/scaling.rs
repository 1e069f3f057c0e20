//! Seconds per iteration on planted data: against the size of the modes, and against the number of entries.

use std::time::Instant;

use s3cmtf::{Error, Result};
use serde_json::json;

use super::budget::{Budget, round_down};
use super::figure::Figure;
use super::iteration_time::fixed_options;
use super::methods::{BLOCKED, CMTF_OPT, CMTF_OPT_ZEROS, Method, NAIVE, OPT, TUCKER_ALS, methods};
use super::session::Session;
use super::store::{FAILED, Key, Measurement, OK, OUT_OF_MEMORY, OUT_OF_TIME, SKIPPED};
use s3cmtf_cli::output::format_integer;

/// The rank of every mode, as in the paper's analysis of scalability.
const RANK: &str = "10";
/// Iterations per fit; their mean counts.
const EPOCHS: u64 = 2;
/// The time in which a method refuses data for which there is not enough memory.
const REFUSAL_SECONDS: f64 = 0.5;
/// Modes of the tensors.
const ORDER: usize = 3;
/// Entries of a matrix per entry of the tensor.
const MATRIX_PART: u64 = 10;

/// The folder of the data, in the work folder.
const FOLDER: &str = "scaling";

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
    const SAMPLES: [u64; 2] = [20_000, 100_000];
    let mut seconds = [0.0; 2];
    for (k, entries) in SAMPLES.into_iter().enumerate() {
        let sample = Cell {
            size: 10_000,
            entries,
            x: 0,
        };
        let data = plant(session, sample)?;
        let part = budget.part(0.1);
        let methods = methods(&NAMES);
        for (done, method) in methods.iter().enumerate() {
            let limit = part.seconds_for_one_of(methods.len() - done);
            let measurement = fit(session, &data, method, limit)?;
            seconds[k] += measurement.number("seconds").unwrap_or(limit);
        }
    }
    // A fit takes a fixed time and a time per entry; fits to larger modes may take twice as long.
    let per_entry = (seconds[1] - seconds[0]) / (SAMPLES[1] - SAMPLES[0]) as f64;
    let fixed = (seconds[0] - per_entry * SAMPLES[0] as f64).max(0.0);
    let per_size = budget.left() / (2.0 * sizes as f64);
    let entries = (per_size - fixed) / per_entry.max(f64::MIN_POSITIVE);
    Ok(round_down(entries).clamp(SAMPLES[0] / 2, full))
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
        let share = budget.seconds_for_one_of(open(session, &grid[k..]));
        let no_data = too_long_to_generate(session, figure, cell, budget);
        let why_left_out = |session: &Session<'_>, method: &Method| {
            let too_long =
                || too_long_to_fit(session, figure, method, cell, grid[..k].last()?, share);
            no_data.clone().or_else(too_long)
        };
        let mut reasons: Vec<Option<String>> =
            methods.iter().map(|m| why_left_out(session, m)).collect();
        let mut status = SKIPPED;
        let mut data = None;
        if reasons.iter().any(Option::is_none) {
            let started = Instant::now();
            match plant(session, *cell) {
                Ok(planted) => {
                    keep_generation_time(session, figure, cell, started.elapsed().as_secs_f64());
                    data = Some(planted);
                }
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                // Such as a full disk.
                Err(e) => {
                    status = FAILED;
                    reasons.fill(Some(e.to_string()));
                }
            }
        }
        for (method, reason) in methods.iter().zip(reasons) {
            let key = key(cell, method);
            if !session.needs(&key) {
                continue;
            }
            let remaining = open(session, &grid[k..]);
            session.show(&key, total - remaining, total);
            let measurement = match (reason, &data) {
                (None, Some(data)) => {
                    fit(session, data, method, budget.seconds_for_one_of(remaining))?
                }
                (reason, data) => {
                    let message = reason.unwrap_or_default();
                    refused(session, method, data.as_ref())?
                        .unwrap_or(Measurement::new(status, json!({"message": message})))
                }
            };
            session.keep(key, measurement)?;
        }
        // Only one of them is on the disk at a time.
        let _ = std::fs::remove_dir_all(session.work.path().join(FOLDER));
    }
    Ok(())
}

/// Returns the refusal of a method that would take too long, if it refuses the data for want of memory, which it does
/// immediately.
fn refused(
    session: &Session<'_>,
    method: &Method,
    data: Option<&Planted>,
) -> Result<Option<Measurement>> {
    let Some(data) = data else {
        return Ok(None);
    };
    let tried = fit(session, data, method, REFUSAL_SECONDS)?;
    Ok(Some(tried).filter(|m| m.status == OUT_OF_MEMORY))
}

/// Returns the key under which results.json keeps the entries and seconds of the data that was generated.
fn generation_slot(figure: Figure) -> String {
    format!("{}_generation_seconds", figure.name())
}

/// Keeps the time to generate the data of the last two sizes.
fn keep_generation_time(session: &mut Session<'_>, figure: Figure, cell: &Cell, seconds: f64) {
    let slot = generation_slot(figure);
    let mut times = generation_times(session, figure);
    times.retain(|t| t[0] != cell.entries as f64);
    times.push([cell.entries as f64, seconds]);
    let last_two = times.len().saturating_sub(2);
    let times = json!(times[last_two..]);
    session.store.head.insert(slot, times);
}

fn generation_times(session: &Session<'_>, figure: Figure) -> Vec<[f64; 2]> {
    let found = session.store.head.get(&generation_slot(figure));
    let times = found.and_then(|t| serde_json::from_value(t.clone()).ok());
    times.unwrap_or_default()
}

/// Estimates the time to generate some entries: a fixed time and a time per entry, by the sizes before.
fn generation_seconds(times: &[[f64; 2]], entries: u64) -> Option<f64> {
    let last = times.last()?;
    let more = entries as f64 - last[0];
    let per_entry = match times {
        [first, second] if second[0] > first[0] => {
            ((second[1] - first[1]) / (second[0] - first[0])).max(0.0)
        }
        _ => last[1] / last[0].max(1.0),
    };
    Some((last[1] + per_entry * more).max(0.0))
}

/// Returns why a size is skipped for all methods: generating its data would take too long.
fn too_long_to_generate(
    session: &Session<'_>,
    figure: Figure,
    cell: &Cell,
    budget: Budget,
) -> Option<String> {
    let times = generation_times(session, figure);
    let (expected, left) = (generation_seconds(&times, cell.entries)?, budget.left());
    (expected > 0.5 * left).then(|| {
        if left > 0.0 {
            format!(
                "generating the data would take about {expected:.1} s, more than half of the {left:.1} s left in the budget"
            )
        } else {
            "the budget is used up".into()
        }
    })
}

/// Returns why a size is skipped for a method, judged by its fit to the previous size.
fn too_long_to_fit(
    session: &Session<'_>,
    figure: Figure,
    method: &Method,
    cell: &Cell,
    before: &Cell,
    seconds: f64,
) -> Option<String> {
    let measurement = session.store.get(&Key {
        figure,
        data: "planted".into(),
        method: method.name.into(),
        x: Some(before.x),
    })?;
    match measurement.status.as_str() {
        OK => {
            let factor = (cell.entries as f64 / before.entries as f64).max(1.0);
            // A fit that was killed took at least its time limit.
            let seconds_before = measurement.number("seconds");
            let seconds_before = seconds_before.or(measurement.number("limit_seconds"))?;
            let expected = seconds_before * factor;
            (expected > seconds).then(|| {
                format!(
                    "extrapolated from the previous size, it would take about {expected:.1} s; the time limit is {seconds:.1} s"
                )
            })
        }
        SKIPPED | OUT_OF_TIME => Some("the previous size did not finish within the budget".into()),
        _ => None,
    }
}

/// Planted data of one size.
struct Planted {
    /// The command that generates it.
    command: String,
    /// The arguments of `fit`.
    arguments: Vec<String>,
}

fn plant(session: &Session<'_>, cell: Cell) -> Result<Planted> {
    let dims = vec![cell.size.to_string(); ORDER].join(",");
    let entries = cell.entries.to_string();
    let matrix = format!("1:{}:{}", cell.size, cell.entries / MATRIX_PART);
    let command = session.generate(
        FOLDER,
        &[
            "--dims",
            &dims,
            "--entries",
            &entries,
            "--rank",
            "5",
            "--noise",
            "0.5",
            "--matrix",
            &matrix,
        ],
    )?;
    let folder = session.work.path().join(FOLDER);
    let file = |name: &str| folder.join(name).display().to_string();
    Ok(Planted {
        command,
        arguments: vec![
            "--tensor".into(),
            file("tensor.train.coo"),
            "--matrix".into(),
            format!("1:{}", file("matrix1.coo")),
        ],
    })
}

/// Fits a method to planted data. The recorded command generates it first.
fn fit(
    session: &Session<'_>,
    data: &Planted,
    method: &Method,
    seconds: f64,
) -> Result<Measurement> {
    let mut arguments = data.arguments.clone();
    arguments.extend(fixed_options(method, RANK, EPOCHS));
    let mut measurement = session.fit(arguments, seconds)?;
    let command = format!("{} && {}", data.command, measurement.text("command"));
    measurement.fields.insert("command".into(), json!(command));
    Ok(measurement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_has_a_fixed_time_and_a_time_per_entry() {
        assert_eq!(generation_seconds(&[], 10), None);
        assert_eq!(generation_seconds(&[[10.0, 2.0]], 40), Some(8.0));
        assert_eq!(
            generation_seconds(&[[100.0, 2.0], [1100.0, 3.0]], 11_100),
            Some(13.0)
        );
        // A smaller size takes less, which a second attempt at it needs to know.
        assert_eq!(
            generation_seconds(&[[100.0, 2.0], [1100.0, 3.0]], 600),
            Some(2.5)
        );
    }
}
