//! Planted data: people rate places to eat.

use std::path::{Path, PathBuf};

use s3cmtf::format::{CooFile, Names, OpenMode};
use s3cmtf::generate::{
    GenerateOptions, MatrixEntries, MatrixSpec, Rounding, ZipfMandelbrot, generate,
};
use s3cmtf::options::{ModelKind, Options};
use s3cmtf::parallel::available_threads;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};

use super::data_set::{AttributeMatrix, DataSet};
use super::planted_names::{CATEGORIES, CITIES, month_name, person_name, place_name};
use crate::output::{Output, format_integer, warn_renamed};
use crate::progress::Progress;

const PEOPLE: u64 = 3_000;
const PLACES: u64 = 2_400;
const MONTHS: u64 = 24;
const ENTRIES: u64 = 300_000;

/// Generates the data in a folder, with names for all rows and columns.
pub(super) fn generate_data(
    folder: &Path,
    seed: u64,
    progress: &Progress,
    out: &mut Output,
) -> Result<DataSet> {
    out.line(format!(
        "{} people rate {} places to eat over {MONTHS} months. Each place has a category and a city,\n\
         and ratings depend on both. The data is sampled from a planted model plus noise.\n",
        format_integer(PEOPLE),
        format_integer(PLACES)
    ));
    let generated = generate(folder, &generate_options(seed), progress)?;
    let open = |path: &PathBuf| CooFile::open(path, OpenMode::Mapped);
    let test = generated.test.as_ref().map(|(path, _)| open(path));
    let test = test
        .transpose()?
        .ok_or_else(|| Error::Argument("the planted data has no test entries".into()))?;
    let files: Vec<CooFile> = generated
        .matrices
        .iter()
        .map(|(path, _)| open(path))
        .collect::<Result<_>>()?;
    let category = positive_column(&files[0]);
    let city = positive_column(&files[1]);
    let mut counts = vec![0usize; CATEGORIES.len() * CITIES.len()];
    let places = category.iter().zip(&city).map(|(&category, &city)| {
        let count = &mut counts[category * CITIES.len() + city];
        *count += 1;
        place_name(category, city, *count - 1)
    });
    let names = [
        Names::from_names((0..PEOPLE as usize).map(person_name)),
        Names::from_names(places),
        Names::from_names((0..MONTHS as usize).map(month_name)),
    ];
    // Beside the tensor, where every command looks for names.
    for (n, names) in names.iter().enumerate() {
        warn_renamed(&names.save_beside(&folder.join("tensor"), n)?);
    }
    let columns = [
        ("category", Names::from_names(CATEGORIES.map(|c| c.0))),
        ("city", Names::from_names(CITIES)),
    ];
    let mut matrices = Vec::new();
    for (m, (file, (attribute, columns))) in files.into_iter().zip(columns).enumerate() {
        warn_renamed(&columns.save_beside(&folder.join(format!("matrix{}", m + 1)), 1)?);
        matrices.push(AttributeMatrix {
            file,
            attribute: attribute.into(),
            mode: 1,
            kind: MatrixKind::Observed,
            column_names: Some(columns),
        });
    }
    Ok(DataSet {
        train: open(&generated.train.0)?,
        test,
        matrices,
        mode_names: ["person", "place", "month"].map(String::from).into(),
        names: names.map(Some).into(),
        fit_options: fit_options(),
        planted_rmse: Some(generated.floor_rmse),
    })
}

/// Returns the options of the fits: the Tucker model of the paper, of a rank above the planted ones.
fn fit_options() -> Options {
    let mut options = Options::default();
    options.model = ModelKind::Tucker;
    options.rank = vec![8];
    options.epochs = 15;
    options
}

/// Returns for each row the column of its positive entry.
fn positive_column(file: &CooFile) -> Vec<usize> {
    let view = file.view();
    let mut columns = vec![0; view.dims()[0] as usize];
    for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        if view.values().get(i) > 0.0 {
            columns[row as usize] = column as usize;
        }
    }
    columns
}

/// Returns the options of the planted data.
fn generate_options(seed: u64) -> GenerateOptions {
    let zipf = |exponent, shift| ZipfMandelbrot { exponent, shift };
    let groups = |columns, variance_fraction| MatrixSpec {
        mode: 1,
        columns,
        entries: MatrixEntries::All,
        ones_fraction: None,
        group_fraction: Some(variance_fraction),
    };
    let mut o = GenerateOptions::new(&[PEOPLE, PLACES, MONTHS], ENTRIES);
    o.ranks = vec![6, 6, 3];
    o.mean = Some(3.6);
    o.deviation = 0.9;
    o.noise = 0.6;
    o.factor_mean = 0.7;
    o.skew = vec![zipf(1.0, 60.0), zipf(1.0, 6.0), zipf(0.5, 2.0)];
    o.rounding = Some(Rounding {
        low: 0.5,
        high: 5.0,
        step: 0.5,
    });
    o.matrices = vec![
        groups(CATEGORIES.len() as u64, 0.55),
        groups(CITIES.len() as u64, 0.4),
    ];
    o.test_fraction = 0.2;
    o.seed = seed;
    o.threads = available_threads();
    o
}
