//! Checkpoints: a model file with the state of the fit and its best parameters so far.

use std::path::Path;

use super::factor_model::Model;
use super::model_file::{model_sections, read_model};
use super::section_file::{SectionFile, values_by_key};
use super::snapshot::ParameterSnapshot;
use crate::error::{Error, Result};
use crate::format::OpenMode;
use crate::options::ExternalAlgorithm;
use crate::try_alloc::try_to_vec;

/// The contents of a checkpoint besides the model.
pub(crate) struct Checkpoint {
    /// State of the fit, as lines `name=value`.
    pub state: String,
    /// Options of the fit, as lines `name=value`.
    pub options: String,
    /// Version of the library that wrote the file; `None` if the file does not say.
    pub library: Option<String>,
    /// The best parameters so far, if they are not those of the model.
    pub best: Option<ParameterSnapshot>,
    /// Vectors that the algorithm carries from epoch to epoch.
    pub vectors: Vec<Vec<f32>>,
}

/// Writes a model with the state of its fit, the best parameters so far and the vectors of the algorithm, each in parts. The file is replaced atomically.
pub(crate) fn save_checkpoint(
    model: &Model,
    path: &Path,
    state: &str,
    best: Option<&ParameterSnapshot>,
    vectors: &[Vec<&[f32]>],
) -> Result<()> {
    let mut writer = model_sections(model);
    writer.add("state", state.as_bytes());
    if let Some(best) = best {
        writer.add_values("best.core", &best.core);
        for (n, factor) in best.factors.iter().enumerate() {
            writer.add_rows(format!("best.mode{n}"), factor);
        }
        for (n, biases) in best.biases.iter().enumerate() {
            writer.add_if_any(format!("best.biases{n}"), biases);
        }
        for (m, factor) in best.columns.iter().enumerate() {
            writer.add_values(format!("best.matrix{m}"), factor.as_slice());
        }
    }
    for (k, parts) in vectors.iter().enumerate() {
        writer.add_parts(vector_section(k), parts);
    }
    writer.write(path)
}

/// Returns the name of the section of a vector of the algorithm.
fn vector_section(k: usize) -> String {
    format!("vector{k}")
}

/// Opens a checkpoint as a private copy, because the fit may replace the file. It may be of one of these algorithms of other crates.
pub(crate) fn load_checkpoint(
    path: &Path,
    algorithms: &'static [&'static ExternalAlgorithm],
) -> Result<(Model, Checkpoint)> {
    let file = SectionFile::open(path, OpenMode::Private)?;
    let model = read_model(&file, algorithms)?;
    if file.range("state").is_none() {
        return Err(Error::file(
            &file.name,
            "is a model, not a checkpoint; start from it (init) instead",
        ));
    }
    let best = match file.range("best.core") {
        None => None,
        Some(_) => Some(read_best(&file, &model)?),
    };
    let mut vectors = Vec::new();
    while file.range(&vector_section(vectors.len())).is_some() {
        let vector = file.values::<f32>(&vector_section(vectors.len()))?;
        if !vector.iter().all(|x| x.is_finite()) {
            return Err(file.invalid("a vector of the algorithm is not finite"));
        }
        vectors.push(try_to_vec(vector, "parameters")?);
    }
    let checkpoint = Checkpoint {
        state: file.text("state")?.to_string(),
        options: file.text("options")?.to_string(),
        library: values_by_key(file.text("meta")?)
            .get("library")
            .map(|version| version.to_string()),
        best,
        vectors,
    };
    Ok((model, checkpoint))
}

fn read_best(file: &SectionFile, model: &Model) -> Result<ParameterSnapshot> {
    let mut best = model.snapshot()?;
    let core = file.values::<f32>("best.core")?;
    if core.len() != best.core.len() {
        return Err(file.invalid("the best core and the core differ in size"));
    }
    best.core.copy_from_slice(core);
    for (n, factor) in best.factors.iter_mut().enumerate() {
        let name = format!("best.mode{n}");
        factor.copy_from_padded(section_of_len(file, &name, factor.padded_len())?);
    }
    for (n, biases) in best.biases.iter_mut().enumerate() {
        let name = format!("best.biases{n}");
        let values = file.optional_values(&name, biases.len())?;
        if values.len() != biases.len() {
            return Err(file.invalid(&format!("section {name} is missing")));
        }
        *biases = try_to_vec(values, "biases")?;
    }
    for (m, factor) in best.columns.iter_mut().enumerate() {
        let target = factor.as_mut_slice()?;
        let name = format!("best.matrix{m}");
        target.copy_from_slice(section_of_len(file, &name, target.len())?);
    }
    if !best.is_finite() {
        return Err(file.invalid("the best model holds values that are not finite"));
    }
    Ok(best)
}

/// Returns the floats of a section, of which there must be `len`.
fn section_of_len<'f>(file: &'f SectionFile, name: &str, len: usize) -> Result<&'f [f32]> {
    let values = file.values::<f32>(name)?;
    if values.len() != len {
        return Err(file.invalid(&format!("section {name} has the wrong length")));
    }
    Ok(values)
}
