//! The solver's own copy of a problem: validated compact rows, shuffled once or sorted into cells.

use std::ops::Range;
use std::sync::Arc;

pub(super) use super::entries::{Entries, Shuffled};
use super::entry_layout::{colour, sort};
use super::full_matrices::{Full, FullRow};
use super::sgd::blocked::Plan;
use super::standardization::Centre;
use crate::error::{Error, Result};
use crate::format::{CooView, RowMap};

use crate::kernel::BlockingSpec;
use crate::model::Model;
use crate::try_alloc::{try_collect, try_zeroed};

use crate::kernel::CoreShape;

use crate::options::PenaltyScaling;
use crate::parallel::ThreadPool;
use crate::problem::{EntryChunk, EntrySource, MatrixKind, Problem, ProblemMode};
use crate::progress::{Monitor, report_progress};
use crate::random::{Permutation, hash_words};
use crate::simd::padded_len;

/// Names the random streams of a fit, so that none is used twice.
pub(super) mod stream {
    pub const SHUFFLE: u64 = 101;
    pub const START: u64 = 102;
    pub const ORDER: u64 = 103;
    pub const WALK: u64 = 104;
    pub const CUT: u64 = 106;
    pub const BLOCK: u64 = 107;
    pub const SAMPLE: u64 = 108;
    pub const HOLD: u64 = 109;
    pub const TUNE: u64 = 110;
}

/// A coupled matrix or graph.
pub(super) struct MatrixData {
    pub mode: usize,
    pub weight: f32,
    pub kind: MatrixKind,
    pub entries: Entries,
    /// The rank of its mode.
    pub rank: usize,
    /// The penalty on its columns, its own or that of everything, times the weight.
    pub penalties: Penalties,
    /// For each of its columns, that penalty over the column's entries.
    pub column_penalty: Vec<f32>,
    /// What the entries of each column weigh together.
    pub column_weights: Vec<f64>,
    /// The mean weight of its entries.
    pub mean_weight: f64,
    /// The row that penalties on columns pull to: zeros.
    pub prior: Vec<f32>,
    /// The largest absolute value, for the start.
    pub largest: f32,
    /// If all its cells count; its entries are then what listed ones are above the others.
    pub full: Option<Arc<Full>>,
}

/// Everything an epoch reads.
pub(super) struct Data {
    pub tensor: Entries,
    pub matrices: Vec<MatrixData>,
    /// For each mode and row, its penalty over its tensor entries; 0 for rows without any.
    pub row_penalty: Vec<Vec<f32>>,
    /// For each mode and row without tensor entries, its penalty over its matrix entries; 0 otherwise.
    pub matrix_row_penalty: Vec<Vec<f32>>,
    /// For each mode with full matrices what its rows have besides; nothing for others.
    pub full_rows: Vec<Vec<FullRow>>,
    /// What penalties grow with.
    pub penalties: Penalties,
    /// For each mode, the row that penalties pull to, padded with zeros.
    pub priors: Vec<Vec<f32>>,
    /// The penalty of the core over the number of tensor entries.
    pub core_penalty: f32,
    /// The step of the core, as a share of that of rows.
    pub core_step: f64,
    /// The step of the rows of each mode, as a share of that of the epoch.
    pub mode_steps: Vec<f32>,
    /// The deviation of the values inside.
    pub deviation: f64,
}

/// A penalty and how it grows with the entries of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Penalties {
    pub lambda: f64,
    pub per: PenaltyScaling,
}

impl Penalties {
    /// The penalty of a row whose entries weigh so much together.
    pub(super) fn row(self, weight: f64) -> f64 {
        self.lambda
            * match self.per {
                PenaltyScaling::Constant => 1.0,
                PenaltyScaling::SqrtCount => weight.sqrt(),
                PenaltyScaling::Count => weight,
            }
    }

    /// The penalty of each row per entry; 0 for rows without entries.
    fn per_use(self, uses: &Uses<'_>) -> Result<Vec<f32>> {
        let penalty = |i: usize| match uses.counts[i] {
            0 => 0.0,
            n => (self.row(uses.weight(i)) / n as f64) as f32,
        };
        let rows = uses.counts.len();
        try_collect(rows, (0..rows).map(penalty), "rows")
    }
}

/// How many entries rows have, and what those weigh together if they have weights.
struct Uses<'a> {
    counts: &'a [u64],
    weights: &'a [f64],
}

impl<'a> Uses<'a> {
    fn of(mode: &'a ProblemMode) -> Self {
        Uses {
            counts: mode.counts(),
            weights: mode.weights(),
        }
    }

    fn weight(&self, i: usize) -> f64 {
        let counted = || self.counts[i] as f64;
        self.weights.get(i).copied().unwrap_or_else(counted)
    }
}

/// Some of the entries, chosen by chance, and some of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    seed: u64,
    /// Keys below are held.
    held: u64,
    /// Keys from there up to here are fitted to.
    fitted: u64,
}

impl Held {
    /// A `share` of all entries is held, another is fitted to.
    pub(super) fn new(share: f64, fitted: f64, seed: u64) -> Held {
        let key_of = |share: f64| (share * u64::MAX as f64) as u64;
        Held {
            seed: hash_words(&[seed, stream::HOLD]),
            held: key_of(share),
            fitted: key_of(share + fitted),
        }
    }

    /// Whether entry number `entry` of all is one of those that are held, or of those that are fitted
    /// to.
    fn has(self, entry: usize, held: bool) -> bool {
        let key = hash_words(&[self.seed, entry as u64]);
        match held {
            true => key < self.held,
            false => (self.held..=self.fitted).contains(&key),
        }
    }
}

/// How a problem becomes data.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub seed: u64,
    pub penalties: Penalties,
    /// Of the matrices.
    pub weights: &'a [f64],
    /// Of each mode, as shares of that of the epoch.
    pub mode_steps: &'a [f32],
    pub centre: &'a Centre,
    /// Entries that are left out.
    pub held: Option<Held>,
}

impl Data {
    pub(super) fn new(
        problem: &Problem<'_>,
        shape: &CoreShape,
        how: How<'_>,
        plan: Option<&Plan>,
        pool: &ThreadPool,
        monitor: &dyn Monitor,
    ) -> Result<Data> {
        let maps = problem.row_maps();
        let copy = |part: &EntrySource<'_>, maps: &[&RowMap], number: usize, kind: MatrixKind| {
            let read = |range: Range<usize>, chunk: &mut EntryChunk| match number {
                0 => read_tensor(
                    part,
                    maps,
                    how.centre,
                    how.held.map(|h| (h, false)),
                    range,
                    chunk,
                ),
                m => {
                    part.read_chunk(maps, range, chunk)?;
                    how.centre.matrix_inside(m - 1, kind, chunk);
                    if kind.is_graph() {
                        // What an edge weighs is part of its similarity.
                        let weights = std::mem::take(&mut chunk.weights);
                        chunk
                            .values
                            .iter_mut()
                            .zip(weights)
                            .for_each(|(y, w)| *y *= w);
                    }
                    Ok(())
                }
            };
            // Full matrices have lists of their own.
            match plan.filter(|_| kind != MatrixKind::Full) {
                None => {
                    let shuffle = [how.seed, stream::SHUFFLE, number as u64];
                    copy(part.len(), maps.len(), &shuffle, monitor, read).map(Entries::Shuffled)
                }
                Some(plan) => {
                    let spec = match number {
                        0 => &plan.spec,
                        m => &plan.matrices[m - 1].spec,
                    };
                    match plan.longest.filter(|_| number == 0) {
                        Some(longest) => colour(spec, (part.len(), longest), pool, monitor, read)
                            .map(Entries::Classes),
                        None => sort(spec, part.len(), pool, monitor, read).map(Entries::Cells),
                    }
                }
            }
        };
        let Penalties { lambda, per } = how.penalties;
        let tensor = copy(problem.tensor(), &maps, 0, MatrixKind::Observed)?;
        let mut uses: Vec<Vec<u64>> = maps
            .iter()
            .map(|m| try_zeroed(m.len(), "rows"))
            .collect::<Result<_>>()?;
        // Only of modes with matrices whose entries have weights.
        let mut weights: Vec<Vec<f64>> = vec![Vec::new(); maps.len()];
        for matrix in problem
            .matrices()
            .iter()
            .filter(|m| m.entries.is_weighted())
        {
            weights[matrix.mode] = try_zeroed(maps[matrix.mode].len(), "rows")?;
        }
        let mut full_uses = vec![0u64; maps.len()];
        let mut matrices = Vec::new();
        for (m, matrix) in problem.matrices().iter().enumerate() {
            let rows = maps[matrix.mode];
            let columns = match matrix.kind {
                MatrixKind::Graph => rows,
                _ => &**matrix.columns.rows(),
            };
            let entries = copy(&matrix.entries, &[rows, columns], m + 1, matrix.kind)?;
            let full = match matrix.kind {
                MatrixKind::Full => {
                    let base = how.centre.matrix_base(m, columns.len())?;
                    Some(Full::new(rows.len(), entries.shuffled(), base)?)
                }
                _ => None,
            };
            let uses = &mut uses[matrix.mode];
            let weights = &mut weights[matrix.mode];
            if full.is_some() {
                uses.iter_mut().for_each(|n| *n += columns.len() as u64);
                weights.iter_mut().for_each(|w| *w += columns.len() as f64);
                full_uses[matrix.mode] += columns.len() as u64;
            }
            let ends = match matrix.kind {
                MatrixKind::Graph => 2,
                MatrixKind::Full => 0,
                _ => 1,
            };
            let (mut largest, mut smallest) = (0.0f32, 0.0f32);
            entries.each(|rows, value, weight| {
                for &row in &rows[..ends] {
                    uses[row as usize] += 1;
                    if let Some(sum) = weights.get_mut(row as usize) {
                        *sum += f64::from(weight);
                    }
                }
                largest = largest.max(value.abs());
                smallest = smallest.min(value);
            });
            if matrix.kind == MatrixKind::Graph && smallest < 0.0 {
                return Err(Error::argument(format!(
                    "{}: a similarity of {smallest}; the entries of a graph must be 0 or more",
                    matrix.entries.name(),
                )));
            }
            let (own_penalty, weight) = (matrix.penalty.unwrap_or(lambda), how.weights[m]);
            let centre = &how.centre.matrices[m];
            let columns = Penalties {
                lambda: own_penalty * weight,
                per,
            };
            let of_columns = Uses::of(&matrix.columns);
            matrices.push(MatrixData {
                mode: matrix.mode,
                mean_weight: entries.total() / (entries.len().max(1) as f64),
                weight: (weight / centre.variance) as f32,
                kind: matrix.kind,
                largest: full.as_ref().map_or(largest, Full::largest),
                full: full.map(Arc::new),
                entries,
                rank: shape.ranks[matrix.mode],
                prior: vec![0.0; padded_len(shape.ranks[matrix.mode])],
                column_penalty: columns.per_use(&of_columns)?,
                column_weights: try_collect(
                    of_columns.counts.len(),
                    (0..of_columns.counts.len()).map(|k| of_columns.weight(k)),
                    "columns",
                )?,
                penalties: columns,
            });
        }
        let row_penalty: Vec<Vec<f32>> = problem
            .modes()
            .iter()
            .map(|m| how.penalties.per_use(&Uses::of(m)))
            .collect::<Result<_>>()?;
        let matrix_row_penalty = uses
            .iter()
            .zip(&weights)
            .zip(problem.modes())
            .map(|((counts, weights), mode)| {
                let mut penalties = how.penalties.per_use(&Uses { counts, weights })?;
                for (penalty, _) in penalties.iter_mut().zip(mode.counts()).filter(|p| *p.1 > 0) {
                    *penalty = 0.0;
                }
                Ok(penalties)
            })
            .collect::<Result<_>>()?;
        let full_rows = uses
            .iter()
            .zip(problem.modes())
            .zip(full_uses)
            .map(|((uses, mode), full)| {
                let row = |(&uses, &entries): (&u64, &u64)| FullRow {
                    penalty: match entries {
                        // Such a row counts as one of one entry.
                        0 => (how.penalties.row(1.0) * full as f64 / uses as f64) as f32,
                        _ => 0.0,
                    },
                    alone: entries == 0 && uses == full,
                };
                let rows = if full > 0 { uses.len() } else { 0 };
                try_collect(rows, uses.iter().zip(mode.counts()).map(row), "rows")
            })
            .collect::<Result<_>>()?;
        Ok(Data {
            full_rows,
            core_penalty: (lambda / (tensor.len().max(1) as f64)) as f32,
            core_step: 1.0,
            mode_steps: how.mode_steps.to_vec(),
            deviation: match how.centre.constant {
                true => 0.0,
                false => how.centre.deviation,
            },
            penalties: how.penalties,
            priors: shape
                .ranks
                .iter()
                .map(|&j| vec![0.0; padded_len(j)])
                .collect(),
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
            crc.update(&m.penalties.lambda.to_le_bytes());
            if let Some(full) = &m.full {
                crc.update(b"full");
                crc.update(bytemuck::cast_slice(&full.base));
            }
        }
        crc.finalize()
    }

    /// Tensor and matrix entries together.
    pub(super) fn total(&self) -> usize {
        self.tensor.len() + self.matrices.iter().map(|m| m.entries.len()).sum::<usize>()
    }
}

/// Reads entries of the tensor as they are inside, leaving out those that are held or all others.
fn read_tensor(
    part: &EntrySource<'_>,
    maps: &[&RowMap],
    centre: &Centre,
    held: Option<(Held, bool)>,
    range: Range<usize>,
    chunk: &mut EntryChunk,
) -> Result<()> {
    let chosen = held.map(|(held, those)| move |entry: usize| held.has(entry, those));
    let chosen = chosen.as_ref().map(|c| c as &dyn Fn(usize) -> bool);
    part.read_selected(maps, range, centre.mean, chosen, chunk)?;
    centre.inside(chunk);
    Ok(())
}

/// Copies up to `n` entries and then puts each in a random place.
fn copy(
    n: usize,
    order: usize,
    shuffle: &[u64],
    monitor: &dyn Monitor,
    read: impl Fn(Range<usize>, &mut EntryChunk) -> Result<()>,
) -> Result<Shuffled> {
    const CHUNK: usize = 1 << 16;
    // How many there are is known once all are read; only then do they have places.
    let mut count = 0;
    let mut chunk = EntryChunk::default();
    let chunks = |visit: &mut dyn FnMut(&EntryChunk), chunk: &mut EntryChunk| -> Result<()> {
        for start in (0..n).step_by(CHUNK) {
            report_progress(monitor, "copying entries", start as u64, n as u64)?;
            read(start..(start + CHUNK).min(n), chunk)?;
            visit(chunk);
        }
        Ok(())
    };
    let mut weighted = false;
    let look = &mut |c: &EntryChunk| {
        count += c.values.len();
        weighted |= !c.weights.is_empty();
    };
    chunks(look, &mut chunk)?;
    let mut entries = Shuffled {
        order,
        rows: try_zeroed(count * order, "indices")?,
        values: try_zeroed(count, "entries")?,
        weights: try_zeroed(if weighted { count } else { 0 }, "entries")?,
        base: Vec::new(),
    };
    let places = Permutation::new(count as u64, shuffle);
    let mut number = 0;
    let mut place = |c: &EntryChunk| {
        for (k, &value) in c.values.iter().enumerate() {
            let to = places.apply(number) as usize;
            number += 1;
            let slots = entries.rows[to * order..][..order].iter_mut();
            slots
                .zip(&c.rows)
                .for_each(|(slot, column)| *slot = column[k]);
            entries.values[to] = value;
            if weighted {
                entries.weights[to] = c.weights[k];
            }
        }
    };
    chunks(&mut place, &mut chunk)?;
    Ok(entries)
}

/// The entries of the tensor that are held, to measure errors on.
pub(super) fn held(
    problem: &Problem<'_>,
    model: &Model,
    centre: &Centre,
    held: Held,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
) -> Result<Entries> {
    let (maps, part) = (problem.row_maps(), problem.tensor());
    let spec = error_spec(model, part.len(), part.is_weighted());
    let read = |range: Range<usize>, chunk: &mut EntryChunk| {
        read_tensor(part, &maps, centre, Some((held, true)), range, chunk)
    };
    sort(&spec, part.len(), pool, monitor, read).map(Entries::Cells)
}

/// How entries that errors are measured on are sorted.
fn error_spec(model: &Model, count: usize, weighted: bool) -> Arc<BlockingSpec> {
    /// Entries per cell.
    const CELL: usize = 1 << 15;
    // Any mode will do to group by; that with the fewest rows makes the longest groups.
    let rows: Vec<usize> = model.modes.iter().map(|m| m.factor.len()).collect();
    Arc::new(BlockingSpec {
        fiber_mode: (0..model.order()).min_by_key(|&m| rows[m]),
        cuts: vec![None; rows.len()],
        row_counts: rows,
        parts_per_axis: count.div_ceil(CELL).max(1),
        axes: 1,
        seed: 0,
        weighted,
    })
}

/// Entries to measure errors on: rows never seen, also beyond the sizes, become the mean row of their
/// mode.
pub(super) fn held_out(
    view: &CooView<'_>,
    model: &Model,
    centre: &Centre,
    pool: &ThreadPool,
    monitor: &dyn Monitor,
) -> Result<Entries> {
    let order = model.order();
    model.check_order(view)?;
    let spec = error_spec(model, view.len(), view.weights().is_some());
    let read = |range: Range<usize>, chunk: &mut EntryChunk| {
        chunk.rows.resize(order, Vec::new());
        for (m, column) in chunk.rows.iter_mut().enumerate() {
            column.clear();
            let indices = &view.column(m)[range.clone()];
            column.extend(indices.iter().map(|&i| model.row_of(m, i)));
        }
        chunk.values.clear();
        chunk.weights.clear();
        for i in range {
            let value = view.values().get(i);
            if !(value as f32).is_finite() {
                return Err(view.not_finite(i, "value", value));
            }
            chunk.values.push((value - centre.mean) as f32);
            if let Some(weight) = view.weight(i)? {
                chunk.weights.push(weight as f32);
            }
        }
        chunk.retain_weighted();
        centre.inside(chunk);
        Ok(())
    };
    sort(&spec, view.len(), pool, monitor, read).map(Entries::Cells)
}
