//! Export of a model as NumPy arrays, and as text files in the layout of the paper authors' program.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::npy::NpyWriter;
use crate::format::{AtomicFile, OutputFolder, RowMap, atomic};
use crate::kernel::CoreKind;
use crate::model::{FactorMatrix, Model};
use crate::problem::MatrixKind;
use crate::progress::{Monitor, check_cancelled, report_progress};

/// Writes a model into `folder`, which is created if it does not exist, and returns the paths of the files:
///
/// - `factor1.npy`, ... with one row per row of the model, and `factor1.rows.npy`, ... with their indices from 0;
/// - `matrix1.npy`, ... and `matrix1.rows.npy`, ... with the factors of the columns of coupled matrices;
/// - `core.npy`;
/// - `mean.npy` (one f64), an additive term of every prediction;
/// - `bias1.npy`, ... with one value per row of `factor1.npy`, if the model has biases;
/// - `offset1.npy`, ... with one value per row of `matrix1.npy`, if the matrix has offsets;
/// - `FACTOR1`, ..., `CFACTOR1`, ..., `CORETENSOR`: the layout of the authors' program. A factor has one line per row up
///   to the size of the mode, with values separated by tabs. FactorMatrix that the model does not have are written as the mean
///   row (as zeros for matrices). The core has one line per entry: its indices from 1, then the value.
///
/// Of a CP core only the diagonal is written. All files appear under their names together, at the end.
///
/// A text table has a line for every row up to the size of its mode, however few of them the model has. Nothing is written
/// if the text tables together would exceed about `max_text_bytes`.
pub fn export(
    model: &Model,
    folder: &Path,
    max_text_bytes: u64,
    monitor: &dyn Monitor,
) -> Result<Vec<PathBuf>> {
    check_text_size(model, max_text_bytes)?;
    let folder = OutputFolder::create(folder)?;
    let (mut files, mut staged) = (Vec::new(), Vec::new());
    let mut add = |name: String| {
        let path = folder.file(name)?;
        files.push(path.clone());
        Ok::<_, Error>(path)
    };
    for (n, mode) in model.modes().iter().enumerate() {
        let n = n + 1;
        let count = mode.rows.len();
        let path = add(format!("factor{n}.npy"))?;
        staged.push(stage_npy(&path, &mode.factor, count, monitor)?);
        if !mode.biases.is_empty() {
            let path = add(format!("bias{n}.npy"))?;
            staged.push(stage_list(&path, "<f4", &mode.biases[..count])?);
        }
        staged.push(stage_indices(
            &add(format!("factor{n}.rows.npy"))?,
            &mode.rows,
        )?);
        staged.push(stage_table(
            &add(format!("FACTOR{n}"))?,
            &mode.factor,
            &mode.rows,
            mode.factor.row(count),
            monitor,
        )?);
    }
    for (m, matrix) in model.matrices().iter().enumerate() {
        if matrix.kind == MatrixKind::Graph {
            continue;
        }
        let m = m + 1;
        let path = add(format!("matrix{m}.npy"))?;
        staged.push(stage_npy(
            &path,
            &matrix.factor,
            matrix.factor.len(),
            monitor,
        )?);
        staged.push(stage_indices(
            &add(format!("matrix{m}.rows.npy"))?,
            &matrix.columns,
        )?);
        if !matrix.offsets.is_empty() {
            let path = add(format!("offset{m}.npy"))?;
            staged.push(stage_list(&path, "<f4", &matrix.offsets)?);
        }
        let zeros = vec![0.0; matrix.factor.rank()];
        staged.push(stage_table(
            &add(format!("CFACTOR{m}"))?,
            &matrix.factor,
            &matrix.columns,
            &zeros,
            monitor,
        )?);
    }
    staged.push(stage_list(
        &add("mean.npy".into())?,
        "<f8",
        &[model.mean()],
    )?);
    let shape = model.shape();
    let order = shape.order();
    let (values, sizes): (Vec<f32>, Vec<u64>) = match shape.kind() {
        CoreKind::Full => {
            let sizes = shape.ranks().iter().map(|&j| j as u64).collect();
            (shape.dense_core(model.core())?, sizes)
        }
        CoreKind::Diagonal => (
            model.core()[..shape.ranks()[0]].to_vec(),
            vec![shape.ranks()[0] as u64],
        ),
    };
    check_cancelled(monitor)?;
    let mut core = NpyWriter::create(&add("core.npy".into())?, "<f4", &sizes)?;
    core.push(&values)?;
    staged.push(core.stage()?);
    let mut cancelled = None;
    let written = atomic::stage(&add("CORETENSOR".into())?, |out| {
        let mut index = vec![1; order];
        for (k, g) in values.iter().enumerate() {
            if k % (1 << 16) == 0
                && let Err(e) = report_progress(monitor, "exporting", k as u64, values.len() as u64)
            {
                cancelled = Some(e);
                return Err(std::io::Error::other("cancelled"));
            }
            if shape.kind() == CoreKind::Diagonal {
                index.fill(k + 1);
            }
            for j in &index {
                write!(out, "{j}\t")?;
            }
            writeln!(out, "{g}")?;
            for n in (0..order).rev() {
                index[n] += 1;
                if index[n] <= shape.ranks()[n] {
                    break;
                }
                index[n] = 1;
            }
        }
        Ok(())
    });
    staged.push(cancelled.map_or(written, Err)?);
    staged.into_iter().try_for_each(AtomicFile::commit)?;
    Ok(files)
}

/// Largest size in bytes of all text tables of an [`export`] that is not explicitly asked to write more.
pub const MAX_EXPORTED_TEXT: u64 = 16 << 30;

/// Bytes of a number in a text table, with its separator: the mean of nine digits, sign, point and exponent.
const TEXT_NUMBER_LEN: u64 = 12;

/// Returns an error if the text tables of a model would be larger than `limit` bytes.
fn check_text_size(model: &Model, limit: u64) -> Result<()> {
    let size = |dim: u64, rank: usize| dim.saturating_mul(rank as u64 * TEXT_NUMBER_LEN);
    let modes = model.modes().iter().enumerate().map(|(n, mode)| {
        let rank = mode.factor.rank();
        (format!("mode {}", n + 1), &mode.rows, rank)
    });
    let matrices = model.matrices().iter().enumerate();
    let matrices = matrices.filter(|(_, matrix)| matrix.kind != MatrixKind::Graph);
    let matrices = matrices.map(|(m, matrix)| {
        let rank = matrix.factor.rank();
        (format!("matrix {}", m + 1), &matrix.columns, rank)
    });
    let tables: Vec<_> = modes.chain(matrices).collect();
    let sizes = tables.iter().map(|(_, map, rank)| size(map.dim(), *rank));
    let total = sizes.fold(0, u64::saturating_add);
    let largest = tables
        .iter()
        .max_by_key(|(_, map, rank)| size(map.dim(), *rank));
    match largest {
        Some((what, map, _)) if total > limit => Err(Error::argument(format!(
            "the text tables would take about {} GB, more than the limit of {} GB: {what} has {} rows, of which {} are \
             in the model (`s3cmtf export --large` writes them)",
            total / 1_000_000_000,
            limit / 1_000_000_000,
            map.dim(),
            map.len()
        ))),
        _ => Ok(()),
    }
}

fn stage_npy(
    path: &Path,
    rows: &FactorMatrix,
    count: usize,
    monitor: &dyn Monitor,
) -> Result<AtomicFile> {
    let mut file = NpyWriter::create(path, "<f4", &[count as u64, rows.rank() as u64])?;
    for i in 0..count {
        if i % (1 << 14) == 0 {
            check_cancelled(monitor)?;
        }
        file.push(rows.row(i))?;
    }
    file.stage()
}

fn stage_indices(path: &Path, map: &RowMap) -> Result<AtomicFile> {
    let indices: Vec<u32> = map.indices().collect();
    stage_list(path, "<u4", &indices)
}

fn stage_list<T: bytemuck::NoUninit>(path: &Path, dtype: &str, values: &[T]) -> Result<AtomicFile> {
    let mut file = NpyWriter::create(path, dtype, &[values.len() as u64])?;
    file.push(values)?;
    file.stage()
}

/// Writes a factor as text, one line per index of the mode. FactorMatrix that the model does not have are written as `missing`.
fn stage_table(
    path: &Path,
    rows: &FactorMatrix,
    map: &RowMap,
    missing: &[f32],
    monitor: &dyn Monitor,
) -> Result<AtomicFile> {
    // `stage` returns I/O errors only, so a cancellation is kept beside it.
    let mut cancelled = None;
    let written = atomic::stage(path, |out| {
        for index in 0..map.dim() {
            if index % (1 << 14) == 0
                && let Err(e) = report_progress(monitor, "exporting", index, map.dim())
            {
                cancelled = Some(e);
                return Err(std::io::Error::other("cancelled"));
            }
            let row = map
                .compact(index as u32)
                .map_or(missing, |i| rows.row(i as usize));
            for x in row {
                write!(out, "{x}\t")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    });
    cancelled.map_or(written, Err)
}
