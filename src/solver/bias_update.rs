//! Biases given everything else: damped least squares, one mode after the other, after an epoch.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::data::Entries;
use super::entries::Shuffled;
use super::loss::{PIECE, Sums, summed};
use super::standardization::Centre;
use crate::error::Result;
use crate::kernel::{BlockModel, EntryBlock, Form, Method, Scratch, TensorKernel, cell_errors};
use crate::try_alloc::{try_collect, try_zeroed};

use crate::model::{Model, ModelMode};
use crate::parallel::ThreadPool;
use crate::simd::Level;

/// Sums of rows that many units have in common are made in so many groups of units, if that takes no
/// more numbers than this in all.
const GROUPS: usize = 16;
const NUMBERS: usize = 1 << 22;

/// How many groups that are for so many rows: threads take groups, and the result does not depend on how many threads
/// there are.
pub(super) fn groups(rows: usize) -> usize {
    (NUMBERS / rows.max(1)).clamp(1, GROUPS)
}

/// Moves the biases of `centre` to where the errors of the model on `entries` want them. Returns what the squared errors then add up to.
pub(super) fn refit(
    model: &Model,
    entries: &Entries,
    centre: &mut Centre,
    level: Level,
    pool: &ThreadPool,
) -> Result<Sums> {
    let units = Units::new(entries);
    let errors = units.errors(model, level, pool)?;
    let locked = |u: usize| errors[u].lock().unwrap_or_else(|e| e.into_inner());
    // What biases of the mode before moved by, which errors do not have in them yet.
    let mut moved = None;
    let caught_up = |errors: &mut [f32], u: usize, moved: &Option<(usize, Vec<f32>)>| {
        if let Some((n, moves)) = moved {
            units.each(u, *n, |i, row| errors[i] -= moves[row as usize]);
        }
    };
    for (n, biases) in centre.biases.iter_mut().enumerate() {
        let (mode, damping) = (&model.modes[n], centre.damping[n]);
        let moves = match units.parts(n) {
            // Every part has its own rows, which only the units of that part have.
            Some((parts, part_of)) => {
                let none = (0..biases.len()).map(|_| AtomicU64::new(0));
                let sums: Vec<AtomicU64> = try_collect(biases.len(), none, "rows")?;
                let one = |(): &mut (), part: usize| {
                    for u in (0..units.count()).filter(|u| part_of(*u) == part) {
                        let mut errors = locked(u);
                        caught_up(&mut errors, u, &moved);
                        units.each(u, n, |i, row| {
                            let sum = &sums[row as usize];
                            let old = f64::from_bits(sum.load(Ordering::Relaxed));
                            let new = old + units.weight(u, i) * f64::from(errors[i]);
                            sum.store(new.to_bits(), Ordering::Relaxed);
                        });
                    }
                };
                pool.map(parts, &mut || false, || (), one)?;
                let sum = |i: usize| f64::from_bits(sums[i].load(Ordering::Relaxed));
                moves(biases, mode, sum, damping)
            }
            None => {
                let count = groups(biases.len());
                let one = |(): &mut (), group: usize| -> Result<Vec<f64>> {
                    let mut sums: Vec<f64> = try_zeroed(biases.len(), "rows")?;
                    for u in (group..units.count()).step_by(count) {
                        let mut errors = locked(u);
                        caught_up(&mut errors, u, &moved);
                        units.each(u, n, |i, row| {
                            sums[row as usize] += units.weight(u, i) * f64::from(errors[i]);
                        });
                    }
                    Ok(sums)
                };
                let groups = pool.map(count, &mut || false, || (), one)?;
                let groups: Result<Vec<Vec<f64>>> =
                    groups.unwrap_or_default().into_iter().collect();
                let groups = groups?;
                let sum = |i: usize| groups.iter().map(|g| g[i]).sum();
                moves(biases, mode, sum, damping)
            }
        };
        moved = Some((n, moves));
    }
    let clip = centre.clip(model.range);
    let one = |(): &mut (), u: usize| {
        let mut errors = locked(u);
        caught_up(&mut errors, u, &moved);
        let mut sums = [0.0; 2];
        for (i, &error) in errors.iter().enumerate() {
            let (error, value) = (f64::from(error), f64::from(units.base(u, i)));
            let clipped = value - (value - error).max(clip.0).min(clip.1);
            let weight = units.weight(u, i);
            sums[0] += weight * (error * error);
            sums[1] += weight * (clipped * clipped);
        }
        sums
    };
    let [plain, clipped] = summed(units.count(), pool, || (), one)?;
    Ok(Sums { plain, clipped })
}

/// Biases after their step, and how far they went. Rows never seen, which are the mean row of their mode, have its
/// mean bias, too.
fn moves(
    biases: &mut [f32],
    mode: &ModelMode,
    sum: impl Fn(usize) -> f64,
    damping: f64,
) -> Vec<f32> {
    let mut moves = vec![0.0; biases.len()];
    let rows = biases.iter_mut().zip(&mode.counts).zip(&mut moves);
    for (i, ((bias, _), to)) in rows.enumerate().filter(|(_, ((_, count), _))| **count > 0) {
        let (old, weight) = (f64::from(*bias), mode.row_weight(i));
        *bias = ((sum(i) + weight * old) / (weight + damping)) as f32;
        *to = (f64::from(*bias) - old) as f32;
    }
    if let Some((never_seen, seen)) = biases.split_last_mut() {
        *never_seen = mode.mean_bias(seen);
    }
    moves
}

/// Entries in units that threads take: cells, or pieces of those in random order.
#[derive(Clone, Copy)]
enum Units<'a> {
    Cells(&'a [EntryBlock]),
    Pieces(&'a Shuffled),
}

impl<'a> Units<'a> {
    fn new(entries: &'a Entries) -> Units<'a> {
        match entries {
            Entries::Cells(_) | Entries::Classes(_) => Units::Cells(entries.cells()),
            Entries::Shuffled(entries) => Units::Pieces(entries),
        }
    }

    fn count(self) -> usize {
        match self {
            Units::Cells(cells) => cells.len(),
            Units::Pieces(entries) => entries.len().div_ceil(PIECE),
        }
    }

    /// The entries of a piece.
    fn piece(entries: &Shuffled, u: usize) -> Range<usize> {
        u * PIECE..((u + 1) * PIECE).min(entries.len())
    }

    /// The number of parts that the rows of a mode are in such that each unit has rows of one of them, and of which;
    /// `None` if they are not.
    fn parts(self, n: usize) -> Option<(usize, impl Fn(usize) -> usize)> {
        let Units::Cells(cells) = self else {
            return None;
        };
        let spec = cells.first()?.spec();
        let axis = spec.cuts[n].as_ref()?.axis;
        Some((spec.parts_per_axis, move |u: usize| {
            cells[u].coordinates()[axis]
        }))
    }

    /// The error of every entry of every unit.
    fn errors(
        self,
        model: &Model,
        level: Level,
        pool: &ThreadPool,
    ) -> Result<Vec<Mutex<Vec<f32>>>> {
        let shape = &model.shape;
        let never = &mut || false;
        let found = match self {
            Units::Cells(cells) => {
                let Some(first) = cells.first() else {
                    return Ok(Vec::new());
                };
                let form = Form::tensor(shape, first.spec().fiber_mode);
                let core = form.fiber_first(&model.core);
                let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
                pool.map(cells.len(), never, Scratch::default, |scratch, c| {
                    let found = {
                        let model = BlockModel {
                            form: &form,
                            core: &core,
                            rows: &rows,
                            level,
                        };
                        cell_errors(&cells[c], &model, scratch)
                    };
                    Mutex::new(found)
                })?
            }
            Units::Pieces(entries) => {
                let state = || {
                    let kernel = TensorKernel::new(shape, Method::Shared(level));
                    (kernel, vec![0.0f32; shape.rows_len()])
                };
                pool.map(self.count(), never, state, |(kernel, rows), u| {
                    let each = Self::piece(entries, u).map(|i| {
                        for (n, &row) in entries.row(i).iter().enumerate() {
                            let row = model.modes[n].factor.padded_row(row as usize);
                            rows[shape.row(n)].copy_from_slice(row);
                        }
                        entries.values[i] - kernel.value(&model.core, rows)
                    });
                    Mutex::new(each.collect())
                })?
            }
        };
        Ok(found.unwrap_or_default())
    }

    /// Hands over every entry of a unit with its row of mode `n`.
    #[inline]
    fn each(self, u: usize, n: usize, mut take: impl FnMut(usize, u32)) {
        match self {
            Units::Cells(cells) => cells[u].for_each_row_of_mode(n, take),
            Units::Pieces(entries) => {
                let each = Self::piece(entries, u).enumerate();
                each.for_each(|(i, e)| take(i, entries.row(e)[n]));
            }
        }
    }

    /// The weight of an entry of a unit.
    #[inline]
    fn weight(self, u: usize, i: usize) -> f64 {
        f64::from(match self {
            Units::Cells(cells) => cells[u].weight(i),
            Units::Pieces(entries) => entries.weight(u * PIECE + i),
        })
    }

    /// The value of an entry of a unit, with biases in it.
    #[inline]
    fn base(self, u: usize, i: usize) -> f32 {
        match self {
            Units::Cells(cells) => cells[u].original_value(i),
            Units::Pieces(entries) => entries.base[u * PIECE + i],
        }
    }
}
