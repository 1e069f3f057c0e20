//! The solver's own copy of a problem: validated compact rows, shuffled once.

use crate::error::{Error, Result};
use crate::format::{CooView, RowMap};
use crate::model::Model;
use crate::monitor::{Monitor, step};
use crate::problem::{Chunk, MatrixKind, Problem};
use crate::random::Permutation;

/// Names the random streams of a fit, so that none is used twice.
pub(super) mod stream {
    pub const SHUFFLE: u64 = 101;
    pub const START: u64 = 102;
    pub const ORDER: u64 = 103;
    pub const WALK: u64 = 104;
    pub const PLACE: u64 = 105;
}

/// Entries with their rows one after the other.
pub(super) struct Entries {
    /// Rows per entry.
    pub order: usize,
    pub rows: Vec<u32>,
    pub values: Vec<f32>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds everything to a checksum.
    pub(super) fn mark(&self, crc: &mut crc32fast::Hasher) {
        crc.update(bytemuck::cast_slice(&self.rows));
        crc.update(bytemuck::cast_slice(&self.values));
    }

    #[inline]
    pub(super) fn row(&self, i: usize) -> &[u32] {
        &self.rows[i * self.order..(i + 1) * self.order]
    }
}

/// A coupled matrix or graph.
pub(super) struct MatrixData {
    pub mode: usize,
    pub weight: f32,
    pub kind: MatrixKind,
    pub entries: Entries,
    /// The penalty on its columns: its own, or that of everything.
    pub lambda_reg: f64,
    /// For each of its columns, that penalty over the column's entries.
    pub column_penalty: Vec<f32>,
    /// The largest absolute value, for the start.
    pub largest: f32,
}

/// Everything an epoch reads.
pub(super) struct Data {
    pub tensor: Entries,
    pub matrices: Vec<MatrixData>,
    /// For each mode and row, lambda_reg over the row's tensor entries; 0 for rows without any.
    pub row_penalty: Vec<Vec<f32>>,
    /// For each mode and row without tensor entries, lambda_reg over its matrix entries; 0 otherwise.
    pub matrix_row_penalty: Vec<Vec<f32>>,
    /// lambda_reg over the number of tensor entries.
    pub core_penalty: f32,
}

impl Data {
    pub(super) fn new(
        problem: &Problem<'_>,
        lambda_reg: f64,
        seed: u64,
        monitor: &dyn Monitor,
    ) -> Result<Data> {
        let maps = problem.row_maps();
        let tensor = copy(
            problem.tensor(),
            &maps,
            &[seed, stream::SHUFFLE, 0],
            monitor,
        )?;
        let mut uses: Vec<Vec<u64>> = maps.iter().map(|m| vec![0; m.len()]).collect();
        let mut matrices = Vec::new();
        for (m, matrix) in problem.matrices().iter().enumerate() {
            let rows = maps[matrix.mode];
            let columns = match matrix.kind {
                MatrixKind::Observed => &**matrix.columns.rows(),
                MatrixKind::Graph => rows,
            };
            let shuffle = [seed, stream::SHUFFLE, m as u64 + 1];
            let entries = copy(&matrix.entries, &[rows, columns], &shuffle, monitor)?;
            for i in 0..entries.len() {
                let &[row, column] = entries.row(i) else {
                    unreachable!("a matrix has two modes")
                };
                uses[matrix.mode][row as usize] += 1;
                if matrix.kind == MatrixKind::Graph {
                    uses[matrix.mode][column as usize] += 1;
                    if entries.values[i] < 0.0 {
                        return Err(Error::argument(format!(
                            "{}: a similarity of {}; the entries of a graph must be 0 or more",
                            matrix.entries.name(),
                            entries.values[i]
                        )));
                    }
                }
            }
            let own_penalty = matrix.penalty.unwrap_or(lambda_reg);
            matrices.push(MatrixData {
                mode: matrix.mode,
                weight: matrix.weight as f32,
                kind: matrix.kind,
                largest: entries.values.iter().fold(0.0, |most, y| most.max(y.abs())),
                entries,
                column_penalty: per_use(own_penalty, matrix.columns.counts()),
                lambda_reg: own_penalty,
            });
        }
        let row_penalty: Vec<Vec<f32>> = problem
            .modes()
            .iter()
            .map(|m| per_use(lambda_reg, m.counts()))
            .collect();
        let matrix_row_penalty = uses
            .iter()
            .zip(problem.modes())
            .map(|(uses, mode)| {
                let penalties = per_use(lambda_reg, uses);
                penalties
                    .iter()
                    .zip(mode.counts())
                    .map(|(&p, &n)| if n == 0 { p } else { 0.0 })
                    .collect()
            })
            .collect();
        Ok(Data {
            core_penalty: (lambda_reg / (tensor.len().max(1) as f64)) as f32,
            tensor,
            matrices,
            row_penalty,
            matrix_row_penalty,
        })
    }

    /// A number that other data, or the same data with other weights, would hardly have.
    pub(super) fn fingerprint(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        self.tensor.mark(&mut crc);
        for m in &self.matrices {
            m.entries.mark(&mut crc);
            crc.update(&m.weight.to_le_bytes());
            crc.update(&m.lambda_reg.to_le_bytes());
        }
        crc.finalize()
    }

    /// Tensor and matrix entries together.
    pub(super) fn total(&self) -> usize {
        self.tensor.len() + self.matrices.iter().map(|m| m.entries.len()).sum::<usize>()
    }
}

fn per_use(lambda_reg: f64, uses: &[u64]) -> Vec<f32> {
    uses.iter()
        .map(|&n| {
            if n == 0 {
                0.0
            } else {
                (lambda_reg / n as f64) as f32
            }
        })
        .collect()
}

/// Copies and validates all entries, each to a random place.
fn copy(
    part: &crate::problem::Part<'_>,
    maps: &[&RowMap],
    shuffle: &[u64],
    monitor: &dyn Monitor,
) -> Result<Entries> {
    const CHUNK: usize = 1 << 16;
    if part.view().weights().is_some() {
        return Err(Error::argument(format!(
            "{}: has weights, which this algorithm does not use; convert the data without them",
            part.name()
        )));
    }
    let (n, order) = (part.len(), maps.len());
    let mut entries = Entries {
        order,
        rows: vec![0; n * order],
        values: vec![0.0; n],
    };
    let places = Permutation::new(n as u64, shuffle);
    let mut chunk = Chunk::default();
    for start in (0..n).step_by(CHUNK) {
        step(monitor, "copying entries", start as u64, n as u64)?;
        part.copy(maps, start..(start + CHUNK).min(n), &mut chunk)?;
        for (k, &value) in chunk.values.iter().enumerate() {
            let to = places.apply((start + k) as u64) as usize;
            for (slot, column) in entries.rows[to * order..][..order]
                .iter_mut()
                .zip(&chunk.rows)
            {
                *slot = column[k];
            }
            entries.values[to] = value;
        }
    }
    Ok(entries)
}

/// Entries to measure errors on: rows never seen, also beyond the sizes, become the mean row of their
/// mode.
pub(super) fn held_out(
    view: &CooView<'_>,
    model: &Model,
    monitor: &dyn Monitor,
) -> Result<Entries> {
    const CHUNK: usize = 1 << 16;
    let order = model.order();
    if view.order() != order {
        return Err(Error::argument(format!(
            "{}: has {} modes, the model has {order}",
            view.name(),
            view.order()
        )));
    }
    let n = view.len();
    let mut entries = Entries {
        order,
        rows: Vec::with_capacity(n * order),
        values: Vec::with_capacity(n),
    };
    for i in 0..n {
        if i % CHUNK == 0 {
            step(monitor, "copying held-out entries", i as u64, n as u64)?;
        }
        for m in 0..order {
            entries.rows.push(model.row_of(m, view.column(m)[i]));
        }
        let value = view.values().get(i);
        if !(value as f32).is_finite() {
            return Err(view.not_finite(i, "value", value));
        }
        entries.values.push(value as f32);
    }
    Ok(entries)
}
