//! Writes a planted matrix: the factor of its mode times a column factor, plus noise.

use std::path::Path;

use super::options::{GenerateOptions, MatrixEntries, MatrixSpec};
use super::planted_factor::{PlantedFactor, RowGroups, stream};
use super::planted_model::{PlantedModel, index_of_rank};
use super::popularity::ZipfMandelbrot;
use super::position_sampling::{PositionSampler, SampledMode};
use super::tensor_writer::check_finite;
use crate::error::Result;
use crate::format::{CooWriter, Dims, StagedCoo, Values};
use crate::parallel::run_ordered;
use crate::progress::{Monitor, report_progress};
use crate::random::{Permutation, RandomStream};
use crate::sort::stable_sort_by;

/// Entries per piece of work of a fully observed matrix.
const PIECE_ENTRIES: u64 = 1 << 16;

/// Number of positions that scale and threshold are estimated from.
const PILOT_POSITIONS: usize = 20_000;

/// The distribution of the values of a matrix.
struct MatrixValues<'a> {
    rows: &'a PlantedFactor,
    columns: PlantedFactor,
    noise_sd: f64,
    /// If set, values at or above it become 1 and others 0.
    threshold: Option<f64>,
    /// If set, the matrix is the indicator of these groups instead.
    groups: Option<RowGroups>,
}

/// Computes values on one thread, and keeps the factor row of the last position.
struct RowValues<'a> {
    values: &'a MatrixValues<'a>,
    /// The index of the kept row.
    index: Option<u32>,
    row: Vec<f32>,
    /// A buffer for the factor row of a column.
    column: Vec<f32>,
}

impl<'a> RowValues<'a> {
    fn new(values: &'a MatrixValues<'a>) -> RowValues<'a> {
        RowValues {
            values,
            index: None,
            row: vec![0.0; values.rows.rank],
            column: vec![0.0; values.rows.rank],
        }
    }

    /// Returns the value at a position, with noise from `s`.
    fn value(&mut self, index: u32, column: u32, s: &mut RandomStream) -> f64 {
        let values = self.values;
        if self.index != Some(index) {
            values.rows.row(index, &mut self.row);
            self.index = Some(index);
        }
        if let Some(groups) = &values.groups {
            let is_member = groups.group(u64::from(index)) == u64::from(column);
            return f64::from(u8::from(is_member));
        }
        values.columns.row(column, &mut self.column);
        let dot: f64 = self
            .row
            .iter()
            .zip(&self.column)
            .map(|(&u, &v)| f64::from(u) * f64::from(v))
            .sum();
        let noise = if values.noise_sd > 0.0 {
            values.noise_sd * s.standard_normal()
        } else {
            0.0
        };
        match values.threshold {
            None => dot + noise,
            Some(t) => f64::from(u8::from(dot + noise >= t)),
        }
    }
}

impl MatrixValues<'_> {
    /// Returns values at random positions.
    fn pilot_values(&self, stream_key: &[u64]) -> Vec<f64> {
        let mut s = RandomStream::new(&[stream_key, &[stream::PILOT]].concat());
        let mut row = RowValues::new(self);
        (0..PILOT_POSITIONS)
            .map(|_| {
                let i = s.below(self.rows.rows) as u32;
                let column = s.below(self.columns.rows) as u32;
                row.value(i, column, &mut s)
            })
            .collect()
    }
}

/// Entries of a piece of work.
#[derive(Default)]
struct Piece {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Piece {
    fn push(&mut self, row: u32, column: u32, value: f64) {
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }
}

/// Writes matrix `m`, counted from 0. Returns the complete file, still under its temporary name, and the column factor.
pub(super) fn write(
    path: &Path,
    options: &GenerateOptions,
    m: usize,
    spec: &MatrixSpec,
    planted: &PlantedModel,
    monitor: &dyn Monitor,
) -> Result<(StagedCoo, PlantedFactor)> {
    let matrix_stream = stream::MATRIX * (m as u64 + 1);
    let stream_key = [options.seed, matrix_stream];
    let rows = &planted.factors[spec.mode];
    let mut values = MatrixValues {
        rows,
        columns: PlantedFactor::new(options, matrix_stream, spec.columns, rows.rank),
        noise_sd: 0.0,
        threshold: None,
        groups: RowGroups::of_matrix(options, m, rows.rank),
    };
    // Scale the column factor so that the values without noise have standard deviation 1.
    let signal = values.pilot_values(&stream_key);
    let mean = signal.iter().sum::<f64>() / signal.len() as f64;
    let sd = (signal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / signal.len() as f64).sqrt();
    if sd > 0.0 && values.groups.is_none() {
        values.columns.rescale((1.0 / sd) as f32);
    }
    values.noise_sd = options.noise;
    if spec.ones_fraction == Some(1.0) {
        values.threshold = Some(f64::NEG_INFINITY);
    } else if let Some(fraction) = spec.ones_fraction {
        let mut pilot = values.pilot_values(&stream_key);
        stable_sort_by(&mut pilot, &f64::total_cmp);
        let at = ((1.0 - fraction) * pilot.len() as f64) as usize;
        values.threshold = Some(pilot[at.min(pilot.len() - 1)]);
    }
    let dims = [options.dims[spec.mode], spec.columns];
    let phase = format!("generating matrix {}", m + 1);
    let create = |count| CooWriter::create(path, 2, options.value_kind, None, Some(count));
    let mut done = 0;
    let writer = match spec.entries {
        MatrixEntries::All => {
            let total = dims[0] * dims[1];
            let mut writer = create(total)?;
            run_ordered(
                total.div_ceil(PIECE_ENTRIES),
                options.threads,
                monitor,
                |p, _| {
                    let range = p * PIECE_ENTRIES..((p + 1) * PIECE_ENTRIES).min(total);
                    full_piece(&values, &stream_key, p, range)
                },
                |_, piece| write_piece(&mut writer, &piece, &phase, &mut done, total, monitor),
            )?;
            writer
        }
        MatrixEntries::Sampled(total) => {
            let mut writer = create(total)?;
            let leading = SampledMode {
                dim: dims[0],
                popularity: options.popularity(spec.mode),
                index_of_rank: index_of_rank(options, spec.mode),
            };
            let order_key = [options.seed, matrix_stream, stream::ROW_ORDER];
            let others = vec![SampledMode {
                dim: dims[1],
                popularity: ZipfMandelbrot::UNIFORM,
                index_of_rank: Permutation::new(dims[1], &order_key),
            }];
            let row_key = [options.seed, matrix_stream, stream::ROW];
            let sampler = PositionSampler::new(total, leading, others, &row_key);
            sampler.check()?;
            run_ordered(
                sampler.pieces(),
                options.threads,
                monitor,
                |p, stop| {
                    let mut piece = Piece::default();
                    let mut row = RowValues::new(&values);
                    sampler.for_each_row(sampler.piece(p), stop, |_, i, s, columns| {
                        for &column in &columns[0] {
                            piece.push(i, column, row.value(i, column, s));
                        }
                    });
                    piece
                },
                |_, piece| write_piece(&mut writer, &piece, &phase, &mut done, total, monitor),
            )?;
            writer
        }
    };
    let finished = writer.stage(Dims::Stated(dims.to_vec()))?;
    Ok((finished, values.columns))
}

/// Computes a range of the entries of a fully observed matrix, row-major. Each piece has a noise stream of its own.
fn full_piece(
    values: &MatrixValues<'_>,
    stream_key: &[u64],
    number: u64,
    range: std::ops::Range<u64>,
) -> Piece {
    let mut piece = Piece::default();
    let mut row = RowValues::new(values);
    let mut s = RandomStream::new(&[stream_key, &[stream::ROW, number]].concat());
    let width = values.columns.rows;
    for position in range {
        let (i, column) = ((position / width) as u32, (position % width) as u32);
        piece.push(i, column, row.value(i, column, &mut s));
    }
    piece
}

fn write_piece(
    writer: &mut CooWriter,
    piece: &Piece,
    phase: &str,
    done: &mut u64,
    total: u64,
    monitor: &dyn Monitor,
) -> Result<()> {
    report_progress(monitor, phase, *done, total)?;
    check_finite(&piece.values)?;
    *done += piece.values.len() as u64;
    writer.push(
        &[&piece.rows, &piece.columns],
        Values::F64(&piece.values),
        None,
    )
}
