//! Writes the training and the test tensor of the planted model.

use std::path::{Path, PathBuf};

use super::options::{GenerateOptions, Rounding};
use super::planted_factor::stream;
use super::planted_model::{PlantedModel, index_of_rank};
use super::position_sampling::{PositionSampler, SampledMode};
use crate::error::{Error, Result};
use crate::format::{CooWriter, Dims, StagedCoo, Values};
use crate::parallel::{StopFlag, run_ordered};
use crate::progress::{Monitor, report_progress};
use crate::random::Permutation;

/// Complete files, still under their temporary names.
pub(super) struct WrittenTensors {
    pub train: (PathBuf, StagedCoo),
    pub test: Option<(PathBuf, StagedCoo)>,
    /// The RMSE of the planted model on the test entries, or on all entries without a test tensor.
    pub floor_rmse: f64,
}

/// Entries of the training or the test tensor.
struct Entries {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

/// The result of a piece of work. Arrays hold training entries first, test entries second.
struct Piece {
    tensors: [Entries; 2],
    /// The sums of squared errors of the planted model.
    squared_errors: [f64; 2],
    entries: u64,
}

/// Writes both tensors into `folder`.
pub(super) fn write(
    folder: &Path,
    options: &GenerateOptions,
    planted: &PlantedModel,
    monitor: &dyn Monitor,
) -> Result<WrittenTensors> {
    let mode = |n: usize| SampledMode {
        dim: options.dims[n],
        popularity: options.popularity(n),
        index_of_rank: index_of_rank(options, n),
    };
    let others = planted.mode_order[1..].iter().map(|&n| mode(n)).collect();
    let row_key = [options.seed, stream::ROW];
    let sampler = PositionSampler::new(options.entries, mode(planted.leading), others, &row_key);
    sampler.check()?;
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
    let mut squared_errors = [0.0; 2];
    let mut done = 0;
    run_ordered(
        sampler.pieces(),
        options.threads,
        monitor,
        |number, stop| {
            compute_piece(&sampler, number, options, planted, stop, |e| {
                test_order.apply(e) < test_count
            })
        },
        |_, piece| {
            report_progress(monitor, "generating the tensor", done, options.entries)?;
            done += piece.entries;
            for (tensor, writer) in writers.iter_mut().enumerate() {
                let Entries { columns, values } = &piece.tensors[tensor];
                check_finite(values)?;
                let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
                writer.push(&columns, Values::F64(values), None)?;
            }
            (0..2).for_each(|t| squared_errors[t] += piece.squared_errors[t]);
            Ok(())
        },
    )?;
    let mut files = Vec::new();
    for (writer, path) in writers.into_iter().zip(paths) {
        files.push((path, writer.stage(Dims::Stated(options.dims.clone()))?));
    }
    let evaluated = usize::from(test_count > 0);
    let floor_rmse = (squared_errors[evaluated] / counts[evaluated] as f64).sqrt();
    let test = (files.len() > 1).then(|| files.remove(1));
    Ok(WrittenTensors {
        train: files.remove(0),
        test,
        floor_rmse,
    })
}

/// Computes the entries of a piece.
fn compute_piece(
    sampler: &PositionSampler,
    number: u64,
    options: &GenerateOptions,
    planted: &PlantedModel,
    stop: &StopFlag,
    is_test: impl Fn(u64) -> bool,
) -> Piece {
    let order = options.order();
    let range = sampler.piece(number);
    let mut piece = Piece {
        tensors: std::array::from_fn(|_| Entries {
            columns: vec![Vec::new(); order],
            values: Vec::new(),
        }),
        squared_errors: [0.0; 2],
        entries: range.end - range.start,
    };
    let mut eval = planted.evaluator();
    let mut others = vec![0; order - 1];
    sampler.for_each_row(range, stop, |first, row, s, columns| {
        eval.start_row(row);
        for k in 0..columns[0].len() {
            others
                .iter_mut()
                .zip(columns)
                .for_each(|(index, column)| *index = column[k]);
            let signal = eval.value(&others);
            let noise = if planted.noise_sd > 0.0 {
                planted.noise_sd * s.standard_normal()
            } else {
                0.0
            };
            let value = round(signal + noise, options.rounding);
            let tensor = usize::from(is_test(first + k as u64));
            let entries = &mut piece.tensors[tensor];
            entries.columns[planted.leading].push(row);
            for (&n, &i) in planted.mode_order[1..].iter().zip(&others) {
                entries.columns[n].push(i);
            }
            entries.values.push(value);
            piece.squared_errors[tensor] += (value - signal) * (value - signal);
        }
    });
    piece
}

/// Returns an error if a value overflowed, which extreme deviations, noise or factor means cause.
pub(super) fn check_finite(values: &[f64]) -> Result<()> {
    if values.iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    Err(Error::argument(
        "the planted values are not finite; lower the deviation, the noise or the factor mean",
    ))
}

/// Clips and rounds a value.
fn round(value: f64, rounding: Option<Rounding>) -> f64 {
    match rounding {
        None => value,
        Some(r) => {
            let steps = ((value.clamp(r.low, r.high) - r.low) / r.step).round();
            (r.low + steps * r.step).min(r.high)
        }
    }
}
