//! Synthetic data from a known (planted) model: a sparse tensor and coupled matrices of any size.
//!
//! [`GenerateOptions`] enter, directly, by name ([`GenerateOptions::set`]) or from a [`preset`]. [`generate`] writes
//! binary COO files and the planted model itself. Start with `options.rs`, then `tensor_writer.rs`.
//!
//! All data are a function of the options and the seed: a factor row of (seed, mode, row), the entries of a row of
//! (seed, row). Threads can therefore compute any part, the result is independent of their number, and memory holds only
//! the pieces in progress.
//!
//! Sampling of a tensor with E entries: entry `e` belongs to the row at quantile `(e + 1/2)/E` of the popularity
//! distribution of the longest mode. Rows therefore come one after the other, with exactly E entries in total. Each row
//! then samples distinct positions in the other modes. A random permutation per mode makes the popularity independent
//! of the index. A permutation of all entries selects the exact number of test entries.

mod matrix_writer;
mod option_parsing;
mod options;
mod planted_factor;
mod planted_model;
mod popularity;
mod position_sampling;
mod preset;
mod tensor_writer;

pub use options::{GenerateOptions, MatrixEntries, MatrixSpec, Rounding};
pub use popularity::ZipfMandelbrot;
pub use preset::{PRESETS, preset};

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::npy::NpyWriter;
use crate::format::{AtomicFile, Header, OutputFolder, StagedCoo, atomic};
use crate::options::ModelKind;
use crate::progress::{Monitor, report_progress};
use planted_factor::PlantedFactor;
use planted_model::PlantedModel;

/// The files of [`generate`].
#[derive(Debug)]
pub struct Generated {
    /// The training tensor.
    pub train: (PathBuf, Header),
    /// The test tensor, if there are test entries.
    pub test: Option<(PathBuf, Header)>,
    /// The matrices, in the order of the options.
    pub matrices: Vec<(PathBuf, Header)>,
    /// The folder with the planted model, if it was written.
    pub truth: Option<PathBuf>,
    /// The RMSE of the planted model on the test entries (on all entries without a test tensor). No fit can be expected
    /// to be much better.
    pub floor_rmse: f64,
}

/// Writes `tensor.train.coo`, `tensor.test.coo`, `matrix1.coo`, ... and the folder `truth` into `folder`, which is created
/// if it does not exist. All files appear under their names together, at the end.
///
/// Files of an earlier call that this call would not replace are an error, since they would look like part of the new
/// data.
pub fn generate(
    folder: &Path,
    options: &GenerateOptions,
    monitor: &dyn Monitor,
) -> Result<Generated> {
    options.validate()?;
    check_no_stale_files(folder, options)?;
    let truth_folder = folder.join("truth");
    let outputs = OutputFolder::create(folder)?;
    let truth_outputs = options.write_truth.then(|| outputs.subfolder("truth"));
    let truth_outputs = truth_outputs.transpose()?;
    check_files(&outputs, truth_outputs.as_ref(), options)?;
    let planted = PlantedModel::new(options);
    let tensor = tensor_writer::write(folder, options, &planted, monitor)?;
    let mut matrices = Vec::new();
    let mut column_factors = Vec::new();
    for (m, spec) in options.matrices.iter().enumerate() {
        let path = folder.join(format!("matrix{}.coo", m + 1));
        let (finished, factor) = matrix_writer::write(&path, options, m, spec, &planted, monitor)?;
        matrices.push((path, finished));
        column_factors.push(factor);
    }
    let mut truth = Vec::new();
    if let Some(outputs) = &truth_outputs {
        truth = stage_truth(
            outputs.path(),
            options,
            &planted,
            &column_factors,
            tensor.floor_rmse,
            monitor,
        )?;
    }
    for file in truth {
        file.commit()?;
    }
    let commit = |(path, finished): (PathBuf, StagedCoo)| Ok((path, finished.commit()?));
    Ok(Generated {
        matrices: matrices.into_iter().map(commit).collect::<Result<_>>()?,
        test: tensor.test.map(commit).transpose()?,
        train: commit(tensor.train)?,
        truth: options.write_truth.then_some(truth_folder),
        floor_rmse: tensor.floor_rmse,
    })
}

/// Checks before the work that all files can be written.
fn check_files(
    outputs: &OutputFolder,
    truth: Option<&OutputFolder>,
    options: &GenerateOptions,
) -> Result<()> {
    let matrices = 1..=options.matrices.len();
    outputs.file("tensor.train.coo")?;
    if options.test_count() > 0 {
        outputs.file("tensor.test.coo")?;
    }
    for m in matrices.clone() {
        outputs.file(format!("matrix{m}.coo"))?;
    }
    let Some(truth) = truth else { return Ok(()) };
    for m in matrices {
        truth.file(format!("matrix{m}.npy"))?;
    }
    for n in 1..=options.order() {
        truth.file(format!("factor{n}.npy"))?;
    }
    truth.file("core.npy")?;
    truth.file("truth.json").map(drop)
}

/// Returns an error if the folder has a file with one of our names that this call would leave in place.
fn check_no_stale_files(folder: &Path, options: &GenerateOptions) -> Result<()> {
    let mut stale: Vec<PathBuf> = (options.matrices.len() + 1..100)
        .map(|m| folder.join(format!("matrix{m}.coo")))
        .collect();
    if options.test_count() == 0 {
        stale.push(folder.join("tensor.test.coo"));
    }
    let replaced = if options.write_truth {
        options.order()
    } else {
        0
    };
    stale.extend((replaced + 1..=8).map(|n| folder.join(format!("truth/factor{n}.npy"))));
    match stale.iter().find(|p| p.exists()) {
        None => Ok(()),
        Some(path) => Err(Error::file(
            path.display().to_string(),
            "is left from earlier data and would not fit the new; remove it or choose another folder",
        )),
    }
}

/// Writes `factor1.npy`, ..., `core.npy`, `matrix1.npy`, ... and `truth.json` under temporary names.
fn stage_truth(
    folder: &Path,
    options: &GenerateOptions,
    planted: &PlantedModel,
    column_factors: &[PlantedFactor],
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
    for (m, factor) in column_factors.iter().enumerate() {
        staged.push(stage_factor(
            &folder.join(format!("matrix{}.npy", m + 1)),
            factor,
            monitor,
        )?);
    }
    // The core of a CP model is stored as its diagonal.
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

fn stage_factor(path: &Path, factor: &PlantedFactor, monitor: &dyn Monitor) -> Result<AtomicFile> {
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
