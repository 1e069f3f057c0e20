//! Planted data: a tensor and matrices drawn from a known model, of any size, with rows as uneven
//! as real ones.
//!
//! Everything is a function of the options and the seed: a factor row of (seed, mode, row), the
//! entries of a row of (seed, row). So threads can make any part, the result does not depend on
//! their number, and memory holds only the pieces under way.
//!
//! How a tensor is drawn: entry `e` of `E` belongs to the row at quantile `(e + 1/2)/E` of the row
//! distribution of the longest mode, so that rows come one after the other with exactly `E`
//! entries in all; each row then draws its cells in the other modes, without repeating one. A
//! random permutation per mode hides which rows are the popular ones, and another one over all
//! entries chooses exactly the test part.

mod cells;
mod matrix;
mod options;
mod planted;
mod preset;
mod set;
mod skew;
mod tensor;

pub use options::{CellChoice, GenerateOptions, MatrixSpec, Rounding};
pub use preset::{PRESETS, preset};
pub use skew::Skew;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::npy::NpyWriter;
use crate::format::{AtomicFile, Header, StagedCoo, atomic};
use crate::options::ModelKind;
use crate::progress::{Monitor, report_progress};
use planted::{Factor, Planted};

/// What [`generate`] made.
#[derive(Debug)]
pub struct Generated {
    /// The training tensor.
    pub train: (PathBuf, Header),
    /// The test tensor, if a part was held out.
    pub test: Option<(PathBuf, Header)>,
    /// The matrices, in the order of the options.
    pub matrices: Vec<(PathBuf, Header)>,
    /// The folder with the planted model.
    pub truth: Option<PathBuf>,
    /// The root mean squared error of the planted model itself on the test entries (on all entries
    /// without a test part): what no fit can be expected to beat by much.
    pub floor_rmse: f64,
}

/// Writes `tensor.train.coo` (and `tensor.test.coo`), `matrix1.coo`, ... and the folder `truth` into
/// `folder`, which is made if it does not exist. All files appear together at the end.
///
/// Files of an earlier call that this one would not replace are an error: they would look like part
/// of the new data.
pub fn generate(
    folder: &Path,
    options: &GenerateOptions,
    monitor: &dyn Monitor,
) -> Result<Generated> {
    options.validate()?;
    refuse_leftovers(folder, options)?;
    let truth_folder = folder.join("truth");
    let make = |path: &Path| {
        std::fs::create_dir_all(path)
            .map_err(|e| Error::io(format!("cannot make the folder {}", path.display()), e))
    };
    make(folder)?;
    let planted = Planted::new(options);
    let made = tensor::write(folder, options, &planted, monitor)?;
    let mut matrices = Vec::new();
    let mut columns = Vec::new();
    for (m, spec) in options.matrices.iter().enumerate() {
        let path = folder.join(format!("matrix{}.coo", m + 1));
        let (finished, factor) = matrix::write(&path, options, m, spec, &planted, monitor)?;
        matrices.push((path, finished));
        columns.push(factor);
    }
    let mut truth = Vec::new();
    if options.truth {
        make(&truth_folder)?;
        truth = stage_truth(
            &truth_folder,
            options,
            &planted,
            &columns,
            made.floor_rmse,
            monitor,
        )?;
    }
    for file in truth {
        file.commit()?;
    }
    let commit = |(path, finished): (PathBuf, StagedCoo)| Ok((path, finished.commit()?));
    Ok(Generated {
        matrices: matrices.into_iter().map(commit).collect::<Result<_>>()?,
        test: made.test.map(commit).transpose()?,
        train: commit(made.train)?,
        truth: options.truth.then_some(truth_folder),
        floor_rmse: made.floor_rmse,
    })
}

/// Finds files that look like ours and would stay beside the new ones.
fn refuse_leftovers(folder: &Path, options: &GenerateOptions) -> Result<()> {
    let mut stale: Vec<PathBuf> = (options.matrices.len() + 1..100)
        .map(|m| folder.join(format!("matrix{m}.coo")))
        .collect();
    if options.test_count() == 0 {
        stale.push(folder.join("tensor.test.coo"));
    }
    let kept = if options.truth { options.order() } else { 0 };
    stale.extend((kept + 1..=8).map(|n| folder.join(format!("truth/factor{n}.npy"))));
    match stale.iter().find(|p| p.exists()) {
        None => Ok(()),
        Some(path) => Err(Error::file(
            path.display().to_string(),
            "is left from earlier data and would not fit the new; remove it or choose another folder",
        )),
    }
}

/// `factor1.npy`, ..., `core.npy`, `matrix1.npy`, ... and `truth.json`, all under temporary names.
fn stage_truth(
    folder: &Path,
    options: &GenerateOptions,
    planted: &Planted,
    columns: &[Factor],
    floor_rmse: f64,
    monitor: &dyn Monitor,
) -> Result<Vec<AtomicFile>> {
    let mut staged = Vec::new();
    for (n, factor) in planted.factors.iter().enumerate() {
        staged.push(stage_factor(
            &folder.join(format!("factor{}.npy", n + 1)),
            factor,
            monitor,
        )?);
    }
    for (m, factor) in columns.iter().enumerate() {
        staged.push(stage_factor(
            &folder.join(format!("matrix{}.npy", m + 1)),
            factor,
            monitor,
        )?);
    }
    // The diagonal alone for CP.
    let shape: Vec<u64> = match options.model {
        ModelKind::Auto | ModelKind::Tucker => planted.ranks.iter().map(|&j| j as u64).collect(),
        ModelKind::Cp => vec![planted.ranks[0] as u64],
    };
    let mut core = NpyWriter::create(&folder.join("core.npy"), "<f4", &shape)?;
    core.push(&planted.core)?;
    staged.push(core.stage()?);
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let matrices = options
        .matrices
        .iter()
        .map(|m| format!("{{\"mode\": {}, \"columns\": {}}}", m.mode + 1, m.columns));
    let text = format!(
        "{{\n \"model\": \"{}\",\n \"dims\": {},\n \"ranks\": {},\n \"entries\": {},\n \"offset\": {},\n \
         \"signal_sd\": {},\n \"noise_sd\": {},\n \"floor_rmse\": {},\n \"seed\": {},\n \"matrices\": {}\n}}\n",
        match options.model {
            ModelKind::Auto | ModelKind::Tucker => "tucker",
            ModelKind::Cp => "cp",
        },
        list(options.dims.iter().map(u64::to_string).collect()),
        list(planted.ranks.iter().map(usize::to_string).collect()),
        options.entries,
        planted.offset,
        options.deviation,
        planted.noise_sd,
        floor_rmse,
        options.seed,
        list(matrices.collect()),
    );
    staged.push(atomic::stage(&folder.join("truth.json"), |w| {
        w.write_all(text.as_bytes())
    })?);
    Ok(staged)
}

fn stage_factor(path: &Path, factor: &Factor, monitor: &dyn Monitor) -> Result<AtomicFile> {
    let mut file = NpyWriter::create(path, "<f4", &[factor.rows, factor.rank as u64])?;
    let mut row = vec![0.0; factor.rank];
    for i in 0..factor.rows {
        if i % (1 << 14) == 0 {
            report_progress(monitor, "writing the planted factors", i, factor.rows)?;
        }
        factor.row(i as u32, &mut row);
        file.push(&row)?;
    }
    file.stage()
}
