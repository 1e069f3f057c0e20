//! Writing a planted matrix: the factor of its mode times columns of its own, plus noise.

use std::path::Path;

use super::cells::{Axis, CellPlan};
use super::planted::{Factor, Groups, Planted, row_order, stream};
use super::tensor::check_finite;
use super::{CellChoice, GenerateOptions, MatrixSpec, Skew};
use crate::error::Result;
use crate::format::{CooWriter, Dims, StagedCoo, Values};
use crate::parallel::run_ordered;
use crate::progress::{Monitor, report_progress};
use crate::random::{Permutation, RandomStream};

/// Entries per piece of a full matrix, roughly.
const PIECE: u64 = 1 << 16;

struct Maker<'a> {
    rows: &'a Factor,
    columns: Factor,
    noise_sd: f64,
    /// At or above it the value is 1, below it 0.
    threshold: Option<f64>,
    /// Instead of all that: the groups that it tells.
    groups: Option<Groups>,
}

impl Maker<'_> {
    fn value(
        &self,
        (i, row): (u32, &[f32]),
        column: u32,
        buffer: &mut [f32],
        s: &mut RandomStream,
    ) -> f64 {
        if let Some(groups) = &self.groups {
            let own = groups.group(u64::from(i)) == u64::from(column);
            return f64::from(u8::from(own));
        }
        self.columns.row(column, buffer);
        let dot: f64 = row
            .iter()
            .zip(&*buffer)
            .map(|(&u, &v)| f64::from(u) * f64::from(v))
            .sum();
        let noise = if self.noise_sd > 0.0 {
            self.noise_sd * s.standard_normal()
        } else {
            0.0
        };
        match self.threshold {
            None => dot + noise,
            Some(t) => f64::from(u8::from(dot + noise >= t)),
        }
    }

    /// Values at random cells.
    fn pilot(&self, seed: &[u64]) -> Vec<f64> {
        let mut s = RandomStream::new(&[seed, &[stream::PILOT]].concat());
        let (mut row, mut buffer) = (vec![0.0; self.rows.rank], vec![0.0; self.rows.rank]);
        (0..20_000)
            .map(|_| {
                let i = s.below(self.rows.rows) as u32;
                self.rows.row(i, &mut row);
                let column = s.below(self.columns.rows) as u32;
                self.value((i, &row), column, &mut buffer, &mut s)
            })
            .collect()
    }
}

#[derive(Default)]
struct Piece {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// Writes matrix number `m`; returns the complete file, still under its temporary name, and the factor
/// of its columns.
pub(super) fn write(
    path: &Path,
    options: &GenerateOptions,
    m: usize,
    spec: &MatrixSpec,
    planted: &Planted,
    monitor: &dyn Monitor,
) -> Result<(StagedCoo, Factor)> {
    let name = stream::MATRIX * (m as u64 + 1);
    let seed = [options.seed, name];
    let rows = &planted.factors[spec.mode];
    let mut maker = Maker {
        rows,
        columns: Factor::new(options, name, spec.columns, rows.rank),
        noise_sd: 0.0,
        threshold: None,
        groups: Groups::of(options, m, rows.rank),
    };
    let told = maker.groups.is_some();
    let signal = maker.pilot(&seed);
    let mean = signal.iter().sum::<f64>() / signal.len() as f64;
    let sd = (signal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / signal.len() as f64).sqrt();
    if sd > 0.0 && !told {
        maker.columns.rescale((1.0 / sd) as f32);
    }
    maker.noise_sd = options.noise;
    if spec.ones == Some(1.0) {
        maker.threshold = Some(f64::NEG_INFINITY);
    } else if let Some(share) = spec.ones {
        let mut values = maker.pilot(&seed);
        values.sort_unstable_by(f64::total_cmp);
        let at = ((1.0 - share) * values.len() as f64) as usize;
        maker.threshold = Some(values[at.min(values.len() - 1)]);
    }
    let dims = [options.dims[spec.mode], spec.columns];
    let phase = format!("generating matrix {}", m + 1);
    let create = |count| CooWriter::create(path, 2, options.value_kind, None, Some(count));
    let mut done = 0;
    let writer = match spec.cells {
        CellChoice::Full => {
            let total = dims[0] * dims[1];
            let mut writer = create(total)?;
            run_ordered(
                total.div_ceil(PIECE),
                options.threads,
                monitor,
                |p, _| full_piece(&maker, &seed, p, p * PIECE..((p + 1) * PIECE).min(total)),
                |_, piece| push(&mut writer, &piece, &phase, &mut done, total, monitor),
            )?;
            writer
        }
        CellChoice::Entries(total) => {
            let mut writer = create(total)?;
            let lead = Axis {
                dim: dims[0],
                skew: options.skew(spec.mode),
                order: row_order(options, spec.mode),
            };
            let others = vec![Axis {
                dim: dims[1],
                skew: Skew::UNIFORM,
                order: Permutation::new(dims[1], &[options.seed, name, stream::ROW_ORDER]),
            }];
            let plan = CellPlan::new(total, lead, others, &[options.seed, name, stream::ROW]);
            plan.check()?;
            run_ordered(
                plan.pieces(),
                options.threads,
                monitor,
                |p, stop| {
                    let mut piece = Piece::default();
                    let (mut row, mut buffer) = (vec![0.0; rows.rank], vec![0.0; rows.rank]);
                    plan.for_each_row(plan.piece(p), stop, |_, i, s, cells| {
                        rows.row(i, &mut row);
                        for &column in &cells[0] {
                            piece.rows.push(i);
                            piece.columns.push(column);
                            piece
                                .values
                                .push(maker.value((i, &row), column, &mut buffer, s));
                        }
                    });
                    piece
                },
                |_, piece| push(&mut writer, &piece, &phase, &mut done, total, monitor),
            )?;
            writer
        }
    };
    Ok((writer.stage(Dims::Stated(dims.to_vec()))?, maker.columns))
}

/// Part of a full matrix, row by row: the cells of `range`. Noise is drawn from a stream of the
/// piece's own.
fn full_piece(maker: &Maker<'_>, seed: &[u64], number: u64, range: std::ops::Range<u64>) -> Piece {
    let mut piece = Piece::default();
    let (mut row, mut buffer) = (vec![0.0; maker.rows.rank], vec![0.0; maker.rows.rank]);
    let mut s = RandomStream::new(&[seed, &[stream::ROW, number]].concat());
    let width = maker.columns.rows;
    let mut present = None;
    for cell in range {
        let (i, column) = ((cell / width) as u32, (cell % width) as u32);
        if present != Some(i) {
            maker.rows.row(i, &mut row);
            present = Some(i);
        }
        piece.rows.push(i);
        piece.columns.push(column);
        piece
            .values
            .push(maker.value((i, &row), column, &mut buffer, &mut s));
    }
    piece
}

fn push(
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
