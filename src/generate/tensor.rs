//! Writing the planted tensor.

use std::path::{Path, PathBuf};

use super::cells::{Axis, CellPlan};
use super::planted::{Planted, row_order, stream};
use super::{GenerateOptions, Rounding};
use crate::error::{Error, Result};
use crate::format::{CooWriter, Dims, StagedCoo, Values};
use crate::parallel::{StopFlag, run_ordered};
use crate::progress::{Monitor, report_progress};
use crate::random::Permutation;

/// Complete files that still have their temporary names.
pub(super) struct Made {
    pub train: (PathBuf, StagedCoo),
    pub test: Option<(PathBuf, StagedCoo)>,
    pub floor_rmse: f64,
}

/// Entries for the training or the test file.
struct Entries {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

/// What one piece of work gives.
struct Piece {
    parts: [Entries; 2],
    /// Squared noise of the entries of each part, to tell the error of the planted model.
    squares: [f64; 2],
    entries: u64,
}

pub(super) fn write(
    folder: &Path,
    options: &GenerateOptions,
    planted: &Planted,
    monitor: &dyn Monitor,
) -> Result<Made> {
    let axis = |n: usize| Axis {
        dim: options.dims[n],
        skew: options.skew(n),
        order: row_order(options, n),
    };
    let others = planted.mode_order[1..].iter().map(|&n| axis(n)).collect();
    let seed = [options.seed, stream::ROW];
    let plan = CellPlan::new(options.entries, axis(planted.lead), others, &seed);
    plan.check()?;
    let test_count = options.test_count();
    let test_order = Permutation::new(options.entries, &[options.seed, stream::TEST]);
    let paths = [
        folder.join("tensor.train.coo"),
        folder.join("tensor.test.coo"),
    ];
    let counts = [options.entries - test_count, test_count];
    let mut writers = Vec::new();
    for (path, &count) in paths.iter().zip(&counts) {
        if count > 0 {
            writers.push(CooWriter::create(
                path,
                options.order(),
                options.value_kind,
                None,
                Some(count),
            )?);
        }
    }
    let mut squares = [0.0; 2];
    let mut done = 0;
    run_ordered(
        plan.pieces(),
        options.threads,
        monitor,
        |number, stop| {
            make(&plan, number, options, planted, stop, |e| {
                test_order.apply(e) < test_count
            })
        },
        |_, piece| {
            report_progress(monitor, "generating the tensor", done, options.entries)?;
            done += piece.entries;
            for (part, writer) in writers.iter_mut().enumerate() {
                let Entries { columns, values } = &piece.parts[part];
                check_finite(values)?;
                let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
                writer.push(&columns, Values::F64(values), None)?;
            }
            (0..2).for_each(|part| squares[part] += piece.squares[part]);
            Ok(())
        },
    )?;
    let mut made = Vec::new();
    for (writer, path) in writers.into_iter().zip(paths) {
        made.push((path, writer.stage(Dims::Stated(options.dims.clone()))?));
    }
    let measured = usize::from(test_count > 0);
    let floor_rmse = (squares[measured] / counts[measured] as f64).sqrt();
    let test = (made.len() > 1).then(|| made.remove(1));
    Ok(Made {
        train: made.remove(0),
        test,
        floor_rmse,
    })
}

fn make(
    plan: &CellPlan,
    number: u64,
    options: &GenerateOptions,
    planted: &Planted,
    stop: &StopFlag,
    is_test: impl Fn(u64) -> bool,
) -> Piece {
    let order = options.order();
    let range = plan.piece(number);
    let mut piece = Piece {
        parts: std::array::from_fn(|_| Entries {
            columns: vec![Vec::new(); order],
            values: Vec::new(),
        }),
        squares: [0.0; 2],
        entries: range.end - range.start,
    };
    let mut eval = planted.evaluator();
    let mut cell = vec![0; order - 1];
    plan.for_each_row(range, stop, |first, row, s, cells| {
        eval.start_row(row);
        for k in 0..cells[0].len() {
            cell.iter_mut()
                .zip(cells)
                .for_each(|(c, column)| *c = column[k]);
            let signal = eval.value(&cell);
            let noise = if planted.noise_sd > 0.0 {
                planted.noise_sd * s.standard_normal()
            } else {
                0.0
            };
            let value = round(signal + noise, options.rounding);
            let part = usize::from(is_test(first + k as u64));
            let entries = &mut piece.parts[part];
            entries.columns[planted.lead].push(row);
            for (&n, &i) in planted.mode_order[1..].iter().zip(&cell) {
                entries.columns[n].push(i);
            }
            entries.values.push(value);
            piece.squares[part] += (value - signal) * (value - signal);
        }
    });
    piece
}

/// Deviations that overflow are found here, whatever combination of options made them.
pub(super) fn check_finite(values: &[f64]) -> Result<()> {
    if values.iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    Err(Error::argument(
        "the planted values are not finite; lower the deviation, the noise or the factor mean",
    ))
}

fn round(value: f64, rounding: Option<Rounding>) -> f64 {
    match rounding {
        None => value,
        Some(r) => {
            let steps = ((value.clamp(r.low, r.high) - r.low) / r.step).round();
            (r.low + steps * r.step).min(r.high)
        }
    }
}
