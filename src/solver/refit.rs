//! Biases given everything else: damped least squares, one mode after the other, after an epoch.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::data::Entries;
use crate::error::Result;
use crate::format::{collected, zeros};
use crate::kernel::{Cell, Form, Level, Method, Scratch, TensorKernel, cell_errors};
use crate::model::{Model, ModelMode};
use crate::schedule::Crew;

/// Sums of rows that many cells have in common are made in so many groups of cells, if that takes no
/// more numbers than this in all.
const GROUPS: usize = 16;
const NUMBERS: usize = 1 << 22;

/// Moves the biases inside to where the errors of the model on `entries` want them; `damping` acts like
/// so many more entries of bias 0 in every row.
pub(super) fn refit(
    model: &Model,
    entries: &Entries,
    biases: &mut [Vec<f32>],
    damping: f64,
    level: Level,
    crew: &Crew,
) -> Result<()> {
    match entries {
        Entries::Cells(_) | Entries::Classes(_) => {
            refit_cells(model, entries.cells(), biases, damping, level, crew)
        }
        Entries::Shuffled(entries) => {
            let shape = &model.shape;
            let mut kernel = TensorKernel::new(shape, Method::Shared(level));
            let mut rows = vec![0.0; shape.rows_len()];
            let mut errors: Vec<f32> = zeros(entries.len(), "errors")?;
            for (i, error) in errors.iter_mut().enumerate() {
                for (n, &row) in entries.row(i).iter().enumerate() {
                    let row = model.modes[n].factor.padded_row(row as usize);
                    rows[shape.row(n)].copy_from_slice(row);
                }
                *error = entries.values[i] - kernel.value(&model.core, &rows);
            }
            for (n, biases) in biases.iter_mut().enumerate() {
                let mut sums: Vec<f64> = zeros(biases.len(), "rows")?;
                for (i, &error) in errors.iter().enumerate() {
                    let weight = f64::from(entries.weight(i));
                    sums[entries.row(i)[n] as usize] += weight * f64::from(error);
                }
                let moves = moved(biases, &model.modes[n], |i| sums[i], damping);
                for (i, error) in errors.iter_mut().enumerate() {
                    *error -= moves[entries.row(i)[n] as usize];
                }
            }
            Ok(())
        }
    }
}

/// Biases after their step, and how far they went. Rows never seen, which are the mean row of their mode, have its
/// mean bias, too.
fn moved(
    biases: &mut [f32],
    mode: &ModelMode,
    sum: impl Fn(usize) -> f64,
    damping: f64,
) -> Vec<f32> {
    let mut moves = vec![0.0; biases.len()];
    let rows = biases.iter_mut().zip(&mode.counts).zip(&mut moves);
    for (i, ((bias, _), to)) in rows.enumerate().filter(|(_, ((_, count), _))| **count > 0) {
        let (old, weight) = (f64::from(*bias), mode.weight(i));
        *bias = ((sum(i) + weight * old) / (weight + damping)) as f32;
        *to = (f64::from(*bias) - old) as f32;
    }
    if let Some((never_seen, seen)) = biases.split_last_mut() {
        *never_seen = mode.mean_bias(seen);
    }
    moves
}

fn refit_cells(
    model: &Model,
    cells: &[Cell],
    biases: &mut [Vec<f32>],
    damping: f64,
    level: Level,
    crew: &Crew,
) -> Result<()> {
    let Some(first) = cells.first() else {
        return Ok(());
    };
    let spec = first.spec();
    let form = Form::tensor(&model.shape, spec.fiber);
    let core = form.fiber_first(&model.core);
    let rows: Vec<&[f32]> = model.modes.iter().map(|m| m.factor.as_slice()).collect();
    let never = &mut || false;
    let errors = crew.map(cells.len(), never, Scratch::default, |scratch, c| {
        let found = cell_errors(&cells[c], &form, &core, &rows, level, scratch);
        Mutex::new(found)
    })?;
    let errors = errors.unwrap_or_default();
    let locked = |c: usize| errors[c].lock().unwrap_or_else(|e| e.into_inner());
    for (n, biases) in biases.iter_mut().enumerate() {
        let mode = &model.modes[n];
        let moves = match &spec.cuts[n] {
            // Every part has its own rows, which only the cells of that part have.
            Some((coordinate, _)) => {
                let none = (0..biases.len()).map(|_| AtomicU64::new(0));
                let sums: Vec<AtomicU64> = collected(biases.len(), none, "rows")?;
                crew.map(
                    spec.pieces,
                    &mut || false,
                    || (),
                    |(), part| {
                        let own = |c: &usize| cells[*c].place()[*coordinate] == part;
                        for c in (0..cells.len()).filter(own) {
                            let errors = locked(c);
                            for (i, (row, error)) in cells[c].rows_in(n).zip(&*errors).enumerate() {
                                let sum = &sums[row as usize];
                                let old = f64::from_bits(sum.load(Ordering::Relaxed));
                                let new = old + f64::from(cells[c].weight(i)) * f64::from(*error);
                                sum.store(new.to_bits(), Ordering::Relaxed);
                            }
                        }
                    },
                )?;
                let sum = |i: usize| f64::from_bits(sums[i].load(Ordering::Relaxed));
                moved(biases, mode, sum, damping)
            }
            None => {
                let count = (NUMBERS / biases.len()).clamp(1, GROUPS);
                let groups = crew.map(
                    count,
                    &mut || false,
                    || (),
                    |(), group| {
                        let mut sums = vec![0.0f64; biases.len()];
                        for c in (group..cells.len()).step_by(count) {
                            let errors = locked(c);
                            for (i, (row, error)) in cells[c].rows_in(n).zip(&*errors).enumerate() {
                                sums[row as usize] +=
                                    f64::from(cells[c].weight(i)) * f64::from(*error);
                            }
                        }
                        sums
                    },
                )?;
                let groups = groups.unwrap_or_default();
                let sum = |i: usize| groups.iter().map(|g| g[i]).sum();
                moved(biases, mode, sum, damping)
            }
        };
        crew.map(
            cells.len(),
            &mut || false,
            || (),
            |(), c| {
                let mut errors = locked(c);
                for (row, error) in cells[c].rows_in(n).zip(errors.iter_mut()) {
                    *error -= moves[row as usize];
                }
            },
        )?;
    }
    Ok(())
}
