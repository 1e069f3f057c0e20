//! The solver's own copy of a problem: standardized entries with compact rows, in the layout of the algorithm,
//! with the penalty of each row.

use std::ops::Range;
use std::sync::Arc;

use super::entries::Entries;
use super::entry_layout::{
    EntryLayout, colour_into_classes, list_in_order, shuffle, sort_into_blocks,
};
use super::full_matrix::{FullMatrix, FullMatrixRow};
use super::holdout_split::HoldoutSplit;
use super::row_penalty::{RowEntries, RowPenalty};
use super::standardization::Standardization;
use super::stream_ids;
use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::kernel::CoreShape;
use crate::parallel::ThreadPool;
use crate::problem::{CoupledMatrix, EntryChunk, MatrixKind, Problem};
use crate::progress::{Monitor, check_cancelled};
use crate::simd::padded_len;
use crate::try_alloc::{try_collect, try_zeroed};

/// A coupled matrix or graph.
pub struct MatrixData {
    /// Number of the mode, counted from 0.
    pub mode: usize,
    /// Weight lambda_m of its squared errors, divided by the variance of its standardized values.
    pub weight: f32,
    /// What cells without an entry are.
    pub kind: MatrixKind,
    /// The entries.
    pub entries: Entries,
    /// Rank of its mode.
    pub rank: usize,
    /// Penalty of its columns, its own or that of the fit, times the weight.
    pub penalty: RowPenalty,
    /// Penalty of each column divided by the number of its entries.
    pub column_penalty: Vec<f32>,
    /// Total weight of the entries of each column.
    pub column_weights: Vec<f64>,
    /// Mean weight of its entries.
    pub mean_weight: f64,
    /// Row that the penalty shrinks columns towards: zeros.
    pub prior_mean: Vec<f32>,
    /// Largest absolute value, which scales the starting values of its columns.
    pub max_abs_value: f32,
    /// Index of a full matrix; `entries` then holds differences to the unobserved values.
    pub full: Option<Arc<FullMatrix>>,
}

/// Everything that an epoch reads.
pub struct Data {
    /// The entries of the tensor.
    pub tensor: Entries,
    /// Total weight of the tensor entries: their number if they are not weighted.
    pub tensor_weight: f64,
    /// Number of tensor and matrix entries.
    pub entry_count: usize,
    /// The coupled matrices.
    pub matrices: Vec<MatrixData>,
    /// For each mode, the penalty of each row divided by the number of its tensor entries; 0 for rows without any.
    pub row_penalty: Vec<Vec<f32>>,
    /// For each mode with matrices, the penalty of each row without tensor entries divided by the number of its matrix
    /// entries; 0 for other rows. Empty for other modes.
    pub matrix_row_penalty: Vec<Vec<f32>>,
    /// For each mode with full matrices, one per row; empty for other modes.
    pub full_matrix_rows: Vec<Vec<FullMatrixRow>>,
    /// Penalty of the rows of all modes.
    pub penalty: RowPenalty,
    /// For each mode, the row that the penalty shrinks rows towards, padded with zeros.
    pub prior_means: Vec<Vec<f32>>,
    /// Penalty of the core divided by the number of tensor entries.
    pub core_penalty: f64,
    /// Learning rate of the core as a multiple of that of the epoch.
    pub core_eta_scale: f64,
    /// Standard deviation of the standardized values; 0 if all are equal.
    pub deviation: f64,
}

/// Settings that turn a problem into [`Data`].
#[derive(Clone, Copy)]
pub struct DataConfig<'a> {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Penalty of rows.
    pub penalty: RowPenalty,
    /// Weight of each matrix.
    pub matrix_weights: &'a [f64],
    /// Learning rate of the core as a multiple of that of the epoch.
    pub core_eta_scale: f64,
    /// How values were standardized.
    pub standardization: &'a Standardization,
    /// Split whose training part is copied; all entries if there is none.
    pub holdout: Option<HoldoutSplit>,
}

impl Data {
    /// Copies the entries of `problem` in the given layout and computes the penalties of rows and columns.
    pub fn new(
        problem: &Problem<'_>,
        shape: &CoreShape,
        config: DataConfig<'_>,
        layout: &EntryLayout,
        pool: &ThreadPool<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Data> {
        let source = Source {
            problem,
            maps: problem.row_maps(),
            config,
            layout,
            pool,
            monitor,
        };
        let tensor = source.tensor()?;
        let mut usage = MatrixUsage::new(&source)?;
        let mut matrices = Vec::new();
        for m in 0..problem.matrices().len() {
            matrices.push(source.matrix(m, shape, &mut usage)?);
        }
        let row_penalty: Vec<Vec<f32>> = problem
            .modes()
            .iter()
            .map(|m| config.penalty.per_entry(&RowEntries::of_mode(m)))
            .collect::<Result<_>>()?;
        Ok(Data {
            full_matrix_rows: usage.full_matrix_rows(problem, config.penalty)?,
            core_penalty: config.penalty.lambda / (tensor.len().max(1) as f64),
            core_eta_scale: config.core_eta_scale,
            deviation: if config.standardization.is_constant {
                0.0
            } else {
                config.standardization.deviation
            },
            penalty: config.penalty,
            prior_means: shape
                .ranks()
                .iter()
                .map(|&j| vec![0.0; padded_len(j)])
                .collect(),
            tensor_weight: tensor.total_weight(),
            entry_count: tensor.len() + matrices.iter().map(|m| m.entries.len()).sum::<usize>(),
            tensor,
            matrices,
            row_penalty,
            matrix_row_penalty: usage.row_penalty(problem, config.penalty)?,
        })
    }

    /// Returns a checksum of entries, weights and penalties. A resumed fit compares it with that of its checkpoint.
    pub(super) fn fingerprint(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        self.tensor.update_checksum(&mut crc);
        for m in &self.matrices {
            m.entries.update_checksum(&mut crc);
            crc.update(&m.weight.to_le_bytes());
            crc.update(&m.penalty.lambda.to_le_bytes());
            if let Some(full) = &m.full {
                crc.update(b"full");
                crc.update(bytemuck::cast_slice(&full.unobserved_values));
            }
        }
        crc.finalize()
    }

    /// Frees the entries, once the algorithm has copies of its own. Weights and counts remain.
    pub(super) fn release_entries(&mut self) {
        self.tensor.release();
        self.matrices.iter_mut().for_each(|m| m.entries.release());
    }

    /// Returns whether there is a full matrix.
    pub(super) fn has_full_matrices(&self) -> bool {
        self.matrices.iter().any(|m| m.full.is_some())
    }
}

/// A problem and the settings under which its entries are copied.
struct Source<'a> {
    problem: &'a Problem<'a>,
    maps: Vec<&'a RowMap>,
    config: DataConfig<'a>,
    layout: &'a EntryLayout,
    pool: &'a ThreadPool<'a>,
    monitor: &'a dyn Monitor,
}

impl Source<'_> {
    /// Copies the training entries of the tensor.
    fn tensor(&self) -> Result<Entries> {
        let (tensor, maps) = (self.problem.tensor(), &self.maps);
        let DataConfig {
            standardization,
            holdout,
            ..
        } = self.config;
        let is_training = holdout.map(|split| move |entry: usize| split.is_training(entry));
        let read = |range: Range<usize>, chunk: &mut EntryChunk| {
            let is_chosen = is_training.as_ref().map(|c| c as &dyn Fn(usize) -> bool);
            standardization.read_tensor(tensor, maps, is_chosen, range, chunk)
        };
        let (count, pool, monitor) = (tensor.len(), self.pool, self.monitor);
        match self.layout {
            EntryLayout::Shuffled => {
                let stream = [self.config.seed, stream_ids::SHUFFLE, 0];
                shuffle(count, maps.len(), &stream, monitor, &read).map(Entries::List)
            }
            EntryLayout::InOrder => {
                list_in_order(count, maps.len(), pool, monitor, &read).map(Entries::List)
            }
            EntryLayout::Blocked(partition) => match partition.longest_row {
                Some(longest) => {
                    let spec = &partition.tensor;
                    colour_into_classes(spec, count, longest, pool, monitor, &read)
                        .map(Entries::Classes)
                }
                None => sort_into_blocks(&partition.tensor, count, pool, monitor, &read)
                    .map(Entries::Blocks),
            },
        }
    }

    /// Copies matrix `m` and adds its entries to those of the rows of its mode.
    fn matrix(&self, m: usize, shape: &CoreShape, usage: &mut MatrixUsage) -> Result<MatrixData> {
        let matrix = &self.problem.matrices()[m];
        let standardization = self.config.standardization;
        let rows = self.maps[matrix.mode];
        let columns = match matrix.kind {
            MatrixKind::Graph => rows,
            _ => &**matrix.columns.rows(),
        };
        let entries = self.matrix_entries(m, &[rows, columns])?;
        let full = match matrix.kind {
            MatrixKind::Full => {
                let unobserved = standardization.unobserved_values(m, columns.len())?;
                let entries = entries.list();
                let monitor = self.monitor;
                Some(FullMatrix::new(rows.len(), entries, unobserved, monitor)?)
            }
            _ => None,
        };
        // A full matrix may have far more columns than entries.
        check_cancelled(self.monitor)?;
        usage.add(matrix, &entries, columns.len());
        let (mut largest, mut smallest) = (0.0f32, 0.0f32);
        entries.for_each(|_, value, _| {
            largest = largest.max(value.abs());
            smallest = smallest.min(value);
        });
        if matrix.kind == MatrixKind::Graph && smallest < 0.0 {
            return Err(Error::argument(format!(
                "{}: a similarity of {smallest}; the entries of a graph must be 0 or more",
                matrix.entries.name(),
            )));
        }
        let (weight, penalty) = (self.config.matrix_weights[m], self.config.penalty);
        let penalty = RowPenalty {
            lambda: matrix.penalty.unwrap_or(penalty.lambda) * weight,
            per: penalty.per,
        };
        let column_entries = RowEntries::of_mode(&matrix.columns);
        let column_count = column_entries.counts.len();
        let column_penalty = penalty.per_entry(&column_entries)?;
        check_cancelled(self.monitor)?;
        Ok(MatrixData {
            mode: matrix.mode,
            mean_weight: entries.total_weight() / (entries.len().max(1) as f64),
            weight: (weight / standardization.matrices[m].variance) as f32,
            kind: matrix.kind,
            max_abs_value: full.as_ref().map_or(largest, FullMatrix::max_abs_value),
            full: full.map(Arc::new),
            entries,
            rank: shape.ranks()[matrix.mode],
            prior_mean: vec![0.0; padded_len(shape.ranks()[matrix.mode])],
            column_penalty,
            column_weights: try_collect(
                column_count,
                (0..column_count).map(|k| column_entries.weight(k)),
                "columns",
            )?,
            penalty,
        })
    }

    fn matrix_entries(&self, m: usize, maps: &[&RowMap]) -> Result<Entries> {
        let matrix = &self.problem.matrices()[m];
        let (kind, entries) = (matrix.kind, &matrix.entries);
        let standardization = self.config.standardization;
        let read = |range: Range<usize>, chunk: &mut EntryChunk| {
            entries.read_chunk(maps, range, chunk)?;
            standardization.standardize_matrix(m, kind, chunk);
            if kind.is_graph() {
                // The similarity of an edge is its value times its weight.
                let weights = std::mem::take(&mut chunk.weights);
                chunk
                    .values
                    .iter_mut()
                    .zip(weights)
                    .for_each(|(y, w)| *y *= w);
            }
            Ok(())
        };
        let (count, pool, monitor) = (entries.len(), self.pool, self.monitor);
        match self.layout {
            EntryLayout::Blocked(partition) if kind != MatrixKind::Full => {
                sort_into_blocks(&partition.matrices[m], count, pool, monitor, &read)
                    .map(Entries::Blocks)
            }
            EntryLayout::InOrder => {
                list_in_order(count, maps.len(), pool, monitor, &read).map(Entries::List)
            }
            _ => {
                let stream = [self.config.seed, stream_ids::SHUFFLE, m as u64 + 1];
                shuffle(count, maps.len(), &stream, monitor, &read).map(Entries::List)
            }
        }
    }
}

/// Matrix entries of the rows of each mode, which carry the penalty of rows without tensor entries.
struct MatrixUsage {
    /// Number of matrix entries of each row; empty for modes without matrices. A full matrix has an entry in every cell.
    counts: Vec<Vec<u64>>,
    /// Total weight of these entries; empty for modes whose matrices are not weighted.
    weights: Vec<Vec<f64>>,
    /// Number of positions that full matrices give to every row of a mode.
    full_counts: Vec<u64>,
}

impl MatrixUsage {
    fn new(source: &Source<'_>) -> Result<MatrixUsage> {
        let maps = &source.maps;
        let mut counts: Vec<Vec<u64>> = vec![Vec::new(); maps.len()];
        let mut weights: Vec<Vec<f64>> = vec![Vec::new(); maps.len()];
        for matrix in source.problem.matrices() {
            let rows = maps[matrix.mode].len();
            counts[matrix.mode] = try_zeroed(rows, "rows")?;
            if matrix.entries.is_weighted() {
                weights[matrix.mode] = try_zeroed(rows, "rows")?;
            }
        }
        Ok(MatrixUsage {
            counts,
            weights,
            full_counts: vec![0; maps.len()],
        })
    }

    /// Adds the entries of a matrix with `columns` columns.
    fn add(&mut self, matrix: &CoupledMatrix<'_>, entries: &Entries, columns: usize) {
        let counts = &mut self.counts[matrix.mode];
        let weights = &mut self.weights[matrix.mode];
        // An edge of a graph belongs to two rows of the mode.
        let rows_per_entry = match matrix.kind {
            MatrixKind::Graph => 2,
            MatrixKind::Full => {
                counts.iter_mut().for_each(|n| *n += columns as u64);
                weights.iter_mut().for_each(|w| *w += columns as f64);
                self.full_counts[matrix.mode] += columns as u64;
                return;
            }
            _ => 1,
        };
        entries.for_each(|rows, _, weight| {
            for &row in &rows[..rows_per_entry] {
                counts[row as usize] += 1;
                if let Some(sum) = weights.get_mut(row as usize) {
                    *sum += f64::from(weight);
                }
            }
        });
    }

    /// Returns the penalty per matrix entry of the rows of each mode with matrices; 0 for rows with tensor entries.
    fn row_penalty(&self, problem: &Problem<'_>, penalty: RowPenalty) -> Result<Vec<Vec<f32>>> {
        self.counts
            .iter()
            .zip(&self.weights)
            .zip(problem.modes())
            .map(|((counts, weights), mode)| {
                let mut penalties = penalty.per_entry(&RowEntries { counts, weights })?;
                for (penalty, _) in penalties.iter_mut().zip(mode.counts()).filter(|p| *p.1 > 0) {
                    *penalty = 0.0;
                }
                Ok(penalties)
            })
            .collect()
    }

    /// Returns the contribution of full matrices to the rows of each mode.
    fn full_matrix_rows(
        &self,
        problem: &Problem<'_>,
        penalty: RowPenalty,
    ) -> Result<Vec<Vec<FullMatrixRow>>> {
        self.counts
            .iter()
            .zip(problem.modes())
            .zip(&self.full_counts)
            .map(|((counts, mode), &full)| {
                let row = |(&matrix_entries, &entries): (&u64, &u64)| FullMatrixRow {
                    penalty: match entries {
                        // A row without tensor entries is penalized like a row with one entry.
                        0 => (penalty.of_row(1.0) * full as f64 / matrix_entries as f64) as f32,
                        _ => 0.0,
                    },
                    is_exclusive: entries == 0 && matrix_entries == full,
                };
                let rows = if full > 0 { counts.len() } else { 0 };
                try_collect(rows, counts.iter().zip(mode.counts()).map(row), "rows")
            })
            .collect()
    }
}
