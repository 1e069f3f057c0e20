//! Model files and checkpoints.

use std::path::Path;
use std::sync::Arc;

use super::container::{Container, Opened};
use super::factors::{EpochMetrics, Model, ModelMatrix, ModelMode, ParameterSnapshot, RowPrior};
use super::record::FitRecord;
use super::rows::FactorMatrix;
use super::samples::PosteriorSamples;
use crate::error::Result;
use crate::format::{AtomicFile, MAX_DIM, MIN_ORDER, OpenMode, RowMap, RowMapBuilder};
use crate::kernel::{CoreKind, CoreShape};
use crate::simd::AlignedVec;
use crate::simd::padded_len;

use crate::kernel::MAX_ORDER;

use crate::options::Options;
use crate::problem::MatrixKind;
use crate::try_alloc::try_to_vec;

/// Numbers per epoch of the history.
const EPOCH: usize = 9;

/// Writes a model; the file appears complete or not at all.
pub fn save(model: &Model, path: impl AsRef<Path>) -> Result<()> {
    save_with(model, path.as_ref(), None)
}

/// Whether a file begins as model files do.
pub fn is_model(path: impl AsRef<Path>) -> bool {
    super::container::has_magic(path.as_ref())
}

/// Whether a model could be written to `path` now: its folder exists and takes new files. Asked before
/// a long fit, so that its result is not lost to a typing error.
pub fn check_target(path: impl AsRef<Path>) -> Result<()> {
    AtomicFile::create(path.as_ref()).map(drop)
}

/// What a checkpoint holds besides the model.
pub(crate) struct Checkpoint {
    /// Lines `name=value` of the fit's state, and of its options.
    pub state: String,
    pub options: String,
    /// The version of the library that wrote it, if it says so.
    pub library: Option<String>,
    /// The best parameters so far, if they are not the present ones.
    pub best: Option<ParameterSnapshot>,
}

/// Writes a model and, for a checkpoint, the state of the fit.
pub(crate) fn save_with(
    model: &Model,
    path: &Path,
    extra: Option<(&str, Option<&ParameterSnapshot>)>,
) -> Result<()> {
    let mut c = Container::default();
    let list = |items: Vec<String>| items.join(",");
    let mut meta = format!(
        "library={}\nkind={}\ndims={}\nranks={}\nmean={:e}\nlow={:e}\nhigh={:e}\northogonal={}\nmatrices={}\n",
        env!("CARGO_PKG_VERSION"),
        match model.shape.kind {
            CoreKind::Full => "tucker",
            CoreKind::Diagonal => "cp",
        },
        list(model.dims().iter().map(u64::to_string).collect()),
        list(model.shape.ranks.iter().map(usize::to_string).collect()),
        model.mean,
        model.range.0,
        model.range.1,
        model.orthogonal,
        model.matrices.len(),
    );
    if let Some(precision) = model.precision {
        meta += &format!("precision={precision:e}\n");
    }
    for (m, matrix) in model.matrices.iter().enumerate() {
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
    c.add("meta", meta.into_bytes());
    c.add("options", model.options.to_text().into_bytes());
    c.add("core", bytemuck::cast_slice::<f32, u8>(&model.core));
    add_numbers(&mut c, "core.pull".into(), &model.core_prior_mean);
    let ids =
        |map: &RowMap| bytemuck::cast_slice::<u32, u8>(&map.indices().collect::<Vec<_>>()).to_vec();
    for (n, mode) in model.modes.iter().enumerate() {
        c.add(format!("mode{n}.indices"), ids(&mode.rows));
        c.add(
            format!("mode{n}.counts"),
            bytemuck::cast_slice::<u64, u8>(&mode.counts),
        );
        if !mode.weights.is_empty() {
            c.add(
                format!("mode{n}.weights"),
                bytemuck::cast_slice::<f64, u8>(&mode.weights),
            );
        }
        c.add(
            format!("mode{n}.rows"),
            bytemuck::cast_slice::<f32, u8>(mode.factor.as_slice()),
        );
        add_numbers(&mut c, format!("mode{n}.biases"), &mode.biases);
        add_numbers(&mut c, format!("mode{n}.metric"), &mode.prior.metric);
        add_numbers(&mut c, format!("mode{n}.pull"), &mode.prior.linear);
        add_numbers(&mut c, format!("mode{n}.cold"), &mode.prior.cold_bias);
    }
    for (m, matrix) in model.matrices.iter().enumerate() {
        c.add(format!("matrix{m}.indices"), ids(&matrix.columns));
        c.add(
            format!("matrix{m}.rows"),
            bytemuck::cast_slice::<f32, u8>(matrix.factor.as_slice()),
        );
        add_numbers(&mut c, format!("matrix{m}.offsets"), &matrix.offsets);
    }
    let history: Vec<f64> = model.history.iter().flat_map(epoch_numbers).collect();
    c.add(
        "history",
        bytemuck::cast_slice::<f64, u8>(&history).to_vec(),
    );
    if !model.record.is_empty() {
        c.add("record", model.record.to_text().into_bytes());
    }
    if let Some(samples) = &model.samples {
        samples.write(&mut c);
    }
    if let Some((state, best)) = extra {
        c.add("state", state.as_bytes());
        if let Some(best) = best {
            c.add("best.core", bytemuck::cast_slice::<f32, u8>(&best.core));
            for (n, rows) in best.factors.iter().enumerate() {
                c.add(
                    format!("best.mode{n}"),
                    bytemuck::cast_slice::<f32, u8>(rows.as_slice()),
                );
            }
            for (n, biases) in best.biases.iter().enumerate() {
                add_numbers(&mut c, format!("best.biases{n}"), biases);
            }
            for (m, rows) in best.columns.iter().enumerate() {
                c.add(
                    format!("best.matrix{m}"),
                    bytemuck::cast_slice::<f32, u8>(rows.as_slice()),
                );
            }
        }
    }
    c.write(path)
}

/// Adds a section, unless it would be empty.
fn add_numbers<'a>(c: &mut Container<'a>, name: String, numbers: &'a [f32]) {
    if !numbers.is_empty() {
        c.add(name, bytemuck::cast_slice::<f32, u8>(numbers));
    }
}

/// What [`add_numbers`] added; empty or as many as `count`.
fn numbers(file: &Opened, name: &str, count: usize) -> Result<Vec<f32>> {
    if file.range(name).is_none() {
        return Ok(Vec::new());
    }
    let numbers = file.numbers::<f32>(name)?;
    if numbers.len() != count {
        return Err(file.wrong(&format!("section {name} has the wrong length")));
    }
    try_to_vec(numbers, "numbers")
}

fn epoch_numbers(e: &EpochMetrics) -> [f64; EPOCH] {
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

/// Opens a model file (or the model in a checkpoint). Factors stay in the mapped file.
pub fn load(path: impl AsRef<Path>, mode: OpenMode) -> Result<Model> {
    let mut model = read_model(&Opened::open(path.as_ref(), mode)?)?;
    // Not in checkpoints, nor in files of earlier versions.
    model.apply_sample_biases();
    Ok(model)
}

/// Opens a checkpoint, as a private copy: it may be replaced while the fit goes on.
pub(crate) fn load_checkpoint(path: &Path) -> Result<(Model, Checkpoint)> {
    let file = Opened::open(path, OpenMode::Private)?;
    let model = read_model(&file)?;
    if file.range("state").is_none() {
        return Err(crate::error::Error::file(
            &file.name,
            "is a model, not a checkpoint; start from it (init) instead",
        ));
    }
    let state = file.text("state")?.to_string();
    let best = match file.range("best.core") {
        None => None,
        Some(_) => {
            let mut best = model.snapshot()?;
            let core = file.numbers::<f32>("best.core")?;
            if core.len() != best.core.len() {
                return Err(file.wrong("the best core has another size"));
            }
            best.core.copy_from_slice(core);
            for (n, rows) in best.factors.iter_mut().enumerate() {
                fill(&file, &format!("best.mode{n}"), rows)?;
            }
            for (n, biases) in best.biases.iter_mut().enumerate() {
                *biases = numbers(&file, &format!("best.biases{n}"), biases.len())?;
            }
            for (m, rows) in best.columns.iter_mut().enumerate() {
                fill(&file, &format!("best.matrix{m}"), rows)?;
            }
            Some(best)
        }
    };
    let mut meta = file.text("meta")?.lines();
    let saved = Checkpoint {
        state,
        options: file.text("options")?.to_string(),
        library: meta.find_map(|l| Some(l.strip_prefix("library=")?.to_string())),
        best,
    };
    Ok((model, saved))
}

fn fill(file: &Opened, name: &str, rows: &mut FactorMatrix) -> Result<()> {
    let numbers = file.numbers::<f32>(name)?;
    let target = rows.as_mut_slice()?;
    if numbers.len() != target.len() {
        return Err(file.wrong(&format!("section {name} has the wrong length")));
    }
    target.copy_from_slice(numbers);
    Ok(())
}

fn read_model(file: &Opened) -> Result<Model> {
    let meta = file.text("meta")?;
    let find = |key: &str| {
        meta.lines()
            .find_map(|l| l.strip_prefix(key)?.strip_prefix('='))
            .ok_or_else(|| file.wrong(&format!("'{key}' is missing")))
    };
    fn parse<T: std::str::FromStr>(file: &Opened, key: &str, text: &str) -> Result<T> {
        text.parse()
            .map_err(|_| file.wrong(&format!("'{key}' is {text:?}")))
    }
    let list = |key: &str| -> Result<Vec<u64>> {
        find(key)?.split(',').map(|x| parse(file, key, x)).collect()
    };
    let (dims, ranks) = (list("dims")?, list("ranks")?);
    let order = dims.len();
    let sane = (MIN_ORDER..=MAX_ORDER).contains(&order)
        && ranks.len() == order
        && dims.iter().all(|&d| (1..=MAX_DIM).contains(&d))
        && ranks.iter().all(|&j| (1..=1024).contains(&j));
    if !sane {
        return Err(file.wrong("sizes and ranks make no sense"));
    }
    let ranks: Vec<usize> = ranks.iter().map(|&j| j as usize).collect();
    let kind = match find("kind")? {
        "tucker" => CoreKind::Full,
        "cp" if ranks.iter().all(|&j| j == ranks[0]) => CoreKind::Diagonal,
        other => return Err(file.wrong(&format!("kind {other:?} with ranks {ranks:?}"))),
    };
    let shape = CoreShape::new(kind, &ranks);
    let core = file.numbers::<f32>("core")?;
    let size = ranks
        .iter()
        .try_fold(1usize, |s, &j| s.checked_mul(padded_len(j)));
    let overflows = kind == CoreKind::Full && size.is_none();
    if overflows || core.len() != shape.core_len() {
        return Err(file.wrong("the core has another size"));
    }
    let mut modes = Vec::new();
    for n in 0..order {
        let rows = read_map(file, &format!("mode{n}.indices"), dims[n])?;
        let counts = try_to_vec(file.numbers::<u64>(&format!("mode{n}.counts"))?, "rows")?;
        let factor = read_rows(file, &format!("mode{n}.rows"), ranks[n], rows.len() + 1)?;
        if counts.len() != rows.len() {
            return Err(file.wrong(&format!("mode{n}.counts has the wrong length")));
        }
        let key = format!("mode{n}.weights");
        let weights: Vec<f64> = match file.range(&key) {
            Some(_) => try_to_vec(file.numbers(&key)?, "rows")?,
            None => Vec::new(),
        };
        let fine = |w: &f64| w.is_finite() && *w >= 0.0;
        if !(weights.is_empty() || weights.len() == rows.len() && weights.iter().all(fine)) {
            return Err(file.wrong(&format!(
                "{key} must be finite numbers, 0 or more, one for each row"
            )));
        }
        modes.push(ModelMode {
            prior: RowPrior {
                metric: numbers(file, &format!("mode{n}.metric"), ranks[n] * ranks[n])?,
                linear: numbers(file, &format!("mode{n}.pull"), ranks[n])?,
                cold_bias: numbers(file, &format!("mode{n}.cold"), ranks[n] + 1)?,
            },
            biases: numbers(file, &format!("mode{n}.biases"), rows.len() + 1)?,
            rows,
            counts,
            weights,
            factor,
        });
    }
    // Models written before rows could be folded in have none.
    let precision = |key: &str| -> Result<Option<f64>> {
        let Ok(text) = find(key) else {
            return Ok(None);
        };
        let number: f64 = parse(file, key, text)?;
        match number.is_finite() && number > 0.0 {
            true => Ok(Some(number)),
            false => Err(file.wrong(&format!("'{key}' is {text:?}"))),
        }
    };
    let mut matrices = Vec::new();
    for m in 0..parse::<usize>(file, "matrices", find("matrices")?)? {
        let key = format!("matrix{m}");
        let fields: Vec<&str> = find(&key)?.split(',').collect();
        let [mode, dim, weight, kind, penalty] = fields[..] else {
            return Err(file.wrong(&format!("'{key}' has {} fields", fields.len())));
        };
        let mode: usize = parse(file, &key, mode)?;
        if mode >= order {
            return Err(file.wrong(&format!("'{key}' has mode {mode}")));
        }
        let columns = read_map(
            file,
            &format!("{key}.indices"),
            parse::<u64>(file, &key, dim)?.min(MAX_DIM),
        )?;
        matrices.push(ModelMatrix {
            mode,
            weight: parse(file, &key, weight)?,
            penalty: match penalty {
                "-" => None,
                number => Some(parse(file, &key, number)?),
            },
            kind: MatrixKind::from_name(kind)
                .ok_or_else(|| file.wrong(&format!("'{key}' is a matrix of kind '{kind}'")))?,
            factor: read_rows(file, &format!("{key}.rows"), ranks[mode], columns.len())?,
            offsets: numbers(file, &format!("{key}.offsets"), columns.len())?,
            precision: precision(&format!("{key}.precision"))?,
            columns,
        });
    }
    let history = file
        .numbers::<f64>("history")?
        .as_chunks::<EPOCH>()
        .0
        .iter()
        .map(|e| EpochMetrics {
            epoch: e[0] as u64,
            eta: e[1],
            loss: e[2],
            train_rmse: e[3],
            test_rmse: e[4],
            valid_rmse: e[5],
            update_seconds: e[6],
            eval_seconds: e[7],
            entries_per_second: e[8],
        });
    let mut model = Model {
        core_prior_mean: numbers(file, "core.pull", core.len())?,
        shape,
        core: AlignedVec::from(core),
        modes,
        matrices,
        // Models written before there were means have none.
        mean: match find("mean") {
            Ok(mean) => parse(file, "mean", mean)?,
            Err(_) => 0.0,
        },
        precision: precision("precision")?,
        range: (
            parse(file, "low", find("low")?)?,
            parse(file, "high", find("high")?)?,
        ),
        options: Options::from_saved_text(file.text("options")?)
            .map_err(|e| file.wrong(&e.to_string()))?,
        history: history.collect(),
        // Earlier versions kept none.
        record: match file.range("record") {
            Some(_) => FitRecord::from_text(file.text("record")?)
                .map_err(|line| file.wrong(&format!("the record of the fit has {line:?}")))?,
            None => FitRecord::default(),
        },
        orthogonal: parse(file, "orthogonal", find("orthogonal")?)?,
        samples: None,
    };
    model.samples = PosteriorSamples::read(file, &model)?;
    if !(model.range.0.is_finite() && model.range.1.is_finite() && model.range.0 <= model.range.1) {
        return Err(file.wrong("the range of the training values makes no sense"));
    }
    if !model.is_finite() {
        return Err(file.wrong("it holds numbers that are not finite"));
    }
    Ok(model)
}

fn read_map(file: &Opened, name: &str, dim: u64) -> Result<Arc<RowMap>> {
    let indices = file.numbers::<u32>(name)?;
    let mut builder = RowMapBuilder::new(dim)?;
    let ascending = indices.windows(2).all(|w| w[0] < w[1]);
    if !ascending || !indices.iter().all(|&i| builder.mark(i)) {
        return Err(file.wrong(&format!("section {name} is not a list of rows")));
    }
    Ok(Arc::new(builder.finish()?))
}

fn read_rows(file: &Opened, name: &str, rank: usize, rows: usize) -> Result<FactorMatrix> {
    let range = file
        .range(name)
        .ok_or_else(|| file.wrong(&format!("section {name} is missing")))?;
    FactorMatrix::mapped(file.bytes.clone(), range, rank)
        .filter(|r| r.len() == rows)
        .ok_or_else(|| file.wrong(&format!("section {name} has the wrong length")))
}
