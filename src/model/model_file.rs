//! Model files: every parameter of a [`Model`] as a named section.
//!
//! Section `meta` has lines `key=value` with sizes, ranks and matrices.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use super::factor_matrix::FactorMatrix;
use super::factor_model::Model;
use super::factors::{ModelMatrix, ModelMode, RowPrior};
use super::fit_record::{EpochMetrics, FitRecord};
use super::samples_file::{add_samples, read_samples};
use super::section_file::{SectionFile, SectionWriter, has_magic, values_by_key};
use crate::error::Result;
use crate::fit_plan::FitPlan;
use crate::format::{MAX_DIM, MIN_ORDER, OpenMode, RowMap, RowMapBuilder};
use crate::kernel::{CoreKind, CoreShape, MAX_ORDER};
use crate::options::{ExternalAlgorithm, Options};
use crate::problem::MatrixKind;
use crate::simd::AlignedVec;
use crate::try_alloc::{CORE_ENTRIES, try_to_vec};
use crate::value_range::ValueRange;

/// Number of values of an epoch in section `history`.
const EPOCH_VALUES: usize = 9;

/// Largest rank that is read.
const MAX_RANK: usize = 1024;

/// Largest sum of the sizes of modes and matrices. The maps of their rows then take half a gigabyte at most.
const MAX_ROWS: u64 = 1 << 36;

/// Writes a model. The file is replaced atomically.
pub fn save(model: &Model, path: impl AsRef<Path>) -> Result<()> {
    model_sections(model).write(path.as_ref())
}

/// Returns whether `path` is a regular file that begins as model files do.
pub fn is_model(path: impl AsRef<Path>) -> bool {
    has_magic(path.as_ref())
}

/// Opens a model file, or the model of a checkpoint. With [`OpenMode::Mapped`] factors stay in the mapped file.
pub fn load(path: impl AsRef<Path>, mode: OpenMode) -> Result<Model> {
    load_with(path, mode, &[])
}

/// Does the same with a model that one of these algorithms of other crates may have fitted.
#[doc(hidden)]
pub fn load_with(
    path: impl AsRef<Path>,
    mode: OpenMode,
    algorithms: &'static [&'static ExternalAlgorithm],
) -> Result<Model> {
    let mut model = read_model(&SectionFile::open(path.as_ref(), mode)?, algorithms)?;
    // Checkpoints keep the biases of posterior samples only.
    model.apply_sample_biases();
    Ok(model)
}

/// Returns the sections of a model.
pub(super) fn model_sections(model: &Model) -> SectionWriter<'_> {
    let mut writer = SectionWriter::default();
    writer.add("meta", meta_text(model).into_bytes());
    writer.add("options", model.options.to_text().into_bytes());
    writer.add_values("core", &model.core);
    writer.add_if_any("core.pull", &model.core_prior_mean);
    let indices = |map: &RowMap| map.indices().collect::<Vec<u32>>();
    for (n, mode) in model.modes.iter().enumerate() {
        writer.add_copied(format!("mode{n}.indices"), &indices(&mode.rows));
        writer.add_values(format!("mode{n}.counts"), &mode.counts);
        writer.add_if_any(format!("mode{n}.weights"), &mode.weights);
        writer.add_values(format!("mode{n}.rows"), mode.factor.as_slice());
        writer.add_if_any(format!("mode{n}.biases"), &mode.biases);
        writer.add_if_any(format!("mode{n}.metric"), &mode.prior.metric);
        writer.add_if_any(format!("mode{n}.pull"), &mode.prior.linear);
        writer.add_if_any(format!("mode{n}.cold"), &mode.prior.cold_bias);
    }
    for (m, matrix) in model.matrices.iter().enumerate() {
        writer.add_copied(format!("matrix{m}.indices"), &indices(&matrix.columns));
        writer.add_values(format!("matrix{m}.rows"), matrix.factor.as_slice());
        writer.add_if_any(format!("matrix{m}.offsets"), &matrix.offsets);
    }
    let history: Vec<f64> = model.history.iter().flat_map(epoch_values).collect();
    writer.add_copied("history", &history);
    if !model.record.is_empty() {
        writer.add("record", model.record.to_text().into_bytes());
    }
    if let Some(plan) = &model.plan {
        writer.add("plan", plan.to_json().into_bytes());
    }
    if let Some(samples) = &model.samples {
        add_samples(&mut writer, samples);
    }
    writer
}

/// Returns section `meta`.
fn meta_text(model: &Model) -> String {
    let list = |items: Vec<String>| items.join(",");
    let mut meta = format!(
        "library={}\nkind={}\ndims={}\nranks={}\nmean={:e}\nlow={:e}\nhigh={:e}\nclips={}\northogonal={}\nmatrices={}\n",
        env!("CARGO_PKG_VERSION"),
        match model.shape.kind() {
            CoreKind::Full => "tucker",
            CoreKind::Diagonal => "cp",
        },
        list(model.dims().iter().map(u64::to_string).collect()),
        list(model.shape.ranks().iter().map(usize::to_string).collect()),
        model.mean,
        model.range.min,
        model.range.max,
        model.clips,
        model.orthogonal,
        model.matrices.len(),
    );
    if let Some(precision) = model.precision {
        meta += &format!("precision={precision:e}\n");
    }
    if model.weight_unit != 1.0 {
        meta += &format!("weight_unit={:e}\n", model.weight_unit);
    }
    for (m, matrix) in model.matrices.iter().enumerate() {
        if matrix.weight_unit != 1.0 {
            meta += &format!("matrix{m}.weight_unit={:e}\n", matrix.weight_unit);
        }
        if let Some(precision) = matrix.precision {
            meta += &format!("matrix{m}.precision={precision:e}\n");
        }
        meta += &format!(
            "matrix{m}={},{},{:e},{},{}\n",
            matrix.mode,
            matrix.columns.dim(),
            matrix.weight,
            matrix.kind,
            matrix.penalty.map_or("-".into(), |p| format!("{p:e}"))
        );
    }
    meta
}

/// Returns the values of an epoch in the order of section `history`.
fn epoch_values(e: &EpochMetrics) -> [f64; EPOCH_VALUES] {
    [
        e.epoch as f64,
        e.eta,
        e.loss,
        e.train_rmse,
        e.test_rmse,
        e.valid_rmse,
        e.update_seconds,
        e.eval_seconds,
        e.entries_per_second,
    ]
}

/// Returns the epoch of such values; `None` if the first is not a number of an epoch.
fn epoch_from_values(values: &[f64; EPOCH_VALUES]) -> Option<EpochMetrics> {
    let epoch = values[0] as u64;
    (epoch as f64 == values[0]).then_some(EpochMetrics {
        epoch,
        eta: values[1],
        loss: values[2],
        train_rmse: values[3],
        test_rmse: values[4],
        valid_rmse: values[5],
        update_seconds: values[6],
        eval_seconds: values[7],
        entries_per_second: values[8],
    })
}

/// Reads the model of an opened file and checks that all its sections fit together.
pub(super) fn read_model(
    file: &SectionFile,
    algorithms: &'static [&'static ExternalAlgorithm],
) -> Result<Model> {
    let meta = Meta {
        file,
        values: values_by_key(file.text("meta")?),
    };
    let shape = read_shape(&meta)?;
    let dims: Vec<u64> = meta.parse_list("dims")?;
    let core = file.values::<f32>("core")?;
    if core.len() != shape.core_len() {
        return Err(file.invalid("section core does not fit the ranks"));
    }
    check_sizes(&meta, &dims)?;
    let mut modes = Vec::new();
    for (n, (&dim, &rank)) in dims.iter().zip(shape.ranks()).enumerate() {
        modes.push(read_mode(file, n, dim, rank)?);
    }
    let mut matrices = Vec::new();
    for m in 0..meta.parse::<usize>("matrices")? {
        matrices.push(read_matrix(&meta, m, shape.ranks())?);
    }
    let (history, []) = file.values::<f64>("history")?.as_chunks() else {
        return Err(file.invalid("section history has the wrong length"));
    };
    let history: Option<Vec<EpochMetrics>> = history.iter().map(epoch_from_values).collect();
    let mut model = Model {
        core_prior_mean: optional_floats(file, "core.pull", core.len())?,
        shape,
        core: AlignedVec::try_from_slice(core, CORE_ENTRIES)?,
        modes,
        matrices,
        mean: meta.parse("mean")?,
        precision: meta.optional("precision")?,
        weight_unit: meta.optional("weight_unit")?.unwrap_or(1.0),
        range: ValueRange {
            min: meta.parse("low")?,
            max: meta.parse("high")?,
        },
        clips: meta.parse("clips")?,
        options: Options::from_saved_text(file.text("options")?, algorithms)
            .map_err(|e| file.invalid(&e.to_string()))?,
        history: history.ok_or_else(|| file.invalid("section history has no epoch number"))?,
        // A model that was not fitted has no record.
        record: match file.range("record") {
            Some(_) => FitRecord::from_text(file.text("record")?)
                .map_err(|line| file.invalid(&format!("the record of the fit has {line:?}")))?,
            None => FitRecord::default(),
        },
        plan: match file.range("plan") {
            Some(_) => {
                let plan = FitPlan::from_json_with(file.text("plan")?, algorithms);
                Some(plan.map_err(|e| file.invalid(&e.to_string()))?)
            }
            None => None,
        },
        orthogonal: meta.parse("orthogonal")?,
        samples: None,
    };
    model.samples = read_samples(file, &model)?;
    match model.invalid_number() {
        Some(reason) => Err(file.invalid(&reason)),
        None => Ok(model),
    }
}

/// Checks that the sizes of all modes and matrices together are possible.
fn check_sizes(meta: &Meta<'_>, dims: &[u64]) -> Result<()> {
    let mut rows: u64 = dims.iter().sum();
    for m in 0..meta.parse::<usize>("matrices")? {
        let key = format!("matrix{m}");
        let columns = meta.find(&key)?.split(',').nth(1).unwrap_or_default();
        rows = rows.saturating_add(meta.parse_text(&key, columns)?);
    }
    if rows > MAX_ROWS {
        return Err(meta.file.invalid(&format!(
            "the sizes of modes and matrices add up to {rows}; {MAX_ROWS} are possible"
        )));
    }
    Ok(())
}

/// Reads sizes, ranks and the kind of the core, and checks that they are possible.
fn read_shape(meta: &Meta<'_>) -> Result<CoreShape> {
    let dims: Vec<u64> = meta.parse_list("dims")?;
    let ranks: Vec<usize> = meta.parse_list("ranks")?;
    let possible = (MIN_ORDER..=MAX_ORDER).contains(&dims.len())
        && ranks.len() == dims.len()
        && dims.iter().all(|&d| (1..=MAX_DIM).contains(&d))
        && ranks.iter().all(|&j| (1..=MAX_RANK).contains(&j));
    if !possible {
        return Err(meta.file.invalid(&format!(
            "sizes {dims:?} with ranks {ranks:?} are not possible"
        )));
    }
    let name = meta.find("kind")?;
    let kind = match name {
        "tucker" => Some(CoreKind::Full),
        "cp" => Some(CoreKind::Diagonal),
        _ => None,
    };
    let shape = kind.and_then(|kind| CoreShape::try_new(kind, &ranks));
    shape.ok_or_else(|| {
        meta.file
            .invalid(&format!("kind {name:?} with ranks {ranks:?}"))
    })
}

/// Reads the sections of mode `n`.
fn read_mode(file: &SectionFile, n: usize, dim: u64, rank: usize) -> Result<ModelMode> {
    let rows = read_row_map(file, &format!("mode{n}.indices"), dim)?;
    let counts = try_to_vec(file.values::<u64>(&format!("mode{n}.counts"))?, "rows")?;
    let factor = read_factor(file, &format!("mode{n}.rows"), rank, rows.len() + 1)?;
    if counts.len() != rows.len() {
        return Err(file.invalid(&format!("mode{n}.counts has the wrong length")));
    }
    let key = format!("mode{n}.weights");
    let weights: Vec<f64> = match file.range(&key) {
        Some(_) => try_to_vec(file.values(&key)?, "rows")?,
        None => Vec::new(),
    };
    if !(weights.is_empty() || weights.len() == rows.len()) {
        return Err(file.invalid(&format!("{key} has the wrong length")));
    }
    Ok(ModelMode {
        prior: RowPrior {
            metric: optional_floats(file, &format!("mode{n}.metric"), rank * rank)?,
            linear: optional_floats(file, &format!("mode{n}.pull"), rank)?,
            cold_bias: optional_floats(file, &format!("mode{n}.cold"), rank + 1)?,
        },
        biases: optional_floats(file, &format!("mode{n}.biases"), rows.len() + 1)?,
        rows,
        counts: Arc::new(counts),
        weights,
        factor,
    })
}

/// Reads coupled matrix `m`.
fn read_matrix(meta: &Meta<'_>, m: usize, ranks: &[usize]) -> Result<ModelMatrix> {
    let file = meta.file;
    let key = format!("matrix{m}");
    let fields: Vec<&str> = meta.find(&key)?.split(',').collect();
    let [mode, dim, weight, kind, penalty] = fields[..] else {
        return Err(file.invalid(&format!("'{key}' has {} fields instead of 5", fields.len())));
    };
    let mode: usize = meta.parse_text(&key, mode)?;
    if mode >= ranks.len() {
        return Err(file.invalid(&format!("'{key}' has mode {mode}")));
    }
    let dim = meta.parse_text::<u64>(&key, dim)?.min(MAX_DIM);
    let columns = read_row_map(file, &format!("{key}.indices"), dim)?;
    Ok(ModelMatrix {
        mode,
        weight: meta.parse_text(&key, weight)?,
        penalty: match penalty {
            "-" => None,
            number => Some(meta.parse_text(&key, number)?),
        },
        kind: MatrixKind::from_name(kind)
            .ok_or_else(|| file.invalid(&format!("'{key}' is a matrix of kind '{kind}'")))?,
        factor: read_factor(file, &format!("{key}.rows"), ranks[mode], columns.len())?,
        offsets: optional_floats(file, &format!("{key}.offsets"), columns.len())?,
        precision: meta.optional(&format!("{key}.precision"))?,
        weight_unit: meta.optional(&format!("{key}.weight_unit"))?.unwrap_or(1.0),
        columns,
    })
}

/// The lines `key=value` of section `meta`.
struct Meta<'a> {
    file: &'a SectionFile,
    values: HashMap<&'a str, &'a str>,
}

impl<'a> Meta<'a> {
    fn find(&self, key: &str) -> Result<&'a str> {
        let value = self.values.get(key).copied();
        value.ok_or_else(|| self.file.invalid(&format!("'{key}' is missing")))
    }

    fn parse<T: FromStr>(&self, key: &str) -> Result<T> {
        self.parse_text(key, self.find(key)?)
    }

    fn parse_text<T: FromStr>(&self, key: &str, text: &str) -> Result<T> {
        text.parse()
            .map_err(|_| self.file.invalid(&format!("'{key}' is {text:?}")))
    }

    fn parse_list<T: FromStr>(&self, key: &str) -> Result<Vec<T>> {
        let items = self.find(key)?.split(',');
        items.map(|item| self.parse_text(key, item)).collect()
    }

    /// Reads a number that not all files have: a model that was not fitted has no precisions, and weights have a unit only if
    /// it is not 1.
    fn optional(&self, key: &str) -> Result<Option<f64>> {
        match self.find(key) {
            Ok(text) => self.parse_text(key, text).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Reads a section of `count` floats, or no floats if the file does not have it.
fn optional_floats(file: &SectionFile, name: &str, count: usize) -> Result<Vec<f32>> {
    try_to_vec(file.optional_values(name, count)?, "values")
}

/// Reads a section of ascending row indices.
fn read_row_map(file: &SectionFile, name: &str, dim: u64) -> Result<Arc<RowMap>> {
    let indices = file.values::<u32>(name)?;
    let mut builder = RowMapBuilder::new(dim)?;
    let ascending = indices.windows(2).all(|w| w[0] < w[1]);
    if !ascending || !indices.iter().all(|&i| builder.mark(i)) {
        return Err(file.invalid(&format!("section {name} is not a list of rows")));
    }
    Ok(Arc::new(builder.finish()?))
}

/// Returns a section of `rows` padded rows. They stay in the bytes of the file.
fn read_factor(file: &SectionFile, name: &str, rank: usize, rows: usize) -> Result<FactorMatrix> {
    let range = file
        .range(name)
        .ok_or_else(|| file.invalid(&format!("section {name} is missing")))?;
    FactorMatrix::mapped(file.bytes.clone(), range, rank)
        .filter(|r| r.len() == rows)
        .ok_or_else(|| file.invalid(&format!("section {name} has the wrong length")))
}
