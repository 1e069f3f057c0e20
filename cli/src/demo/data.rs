//! What a demo is about, and planted data for it: people rate places to eat.

use std::path::{Path, PathBuf};

use s3cmtf::format::{CooFile, Names, OpenMode};
use s3cmtf::generate::{CellChoice, GenerateOptions, MatrixSpec, Rounding, Skew, generate};
use s3cmtf::parallel::available_threads;
use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};

use super::super::output::{Output, grouped};
use super::super::progress::Progress;
use super::words::{CATEGORIES, CITIES, month, person, place};

/// A matrix, what it is called, the mode of its rows, and the names of its columns.
pub(super) struct Table {
    pub file: CooFile,
    pub what: String,
    pub mode: usize,
    pub kind: MatrixKind,
    pub columns: Option<Names>,
}

/// All that a demo needs.
pub(super) struct Set {
    pub train: CooFile,
    pub test: CooFile,
    pub tables: Vec<Table>,
    /// What the rows of each mode are.
    pub modes: Vec<String>,
    pub names: Vec<Option<Names>>,
    /// The error of the planted model, if it is known.
    pub floor: Option<f64>,
}

const USERS: u64 = 3_000;
const PLACES: u64 = 2_400;
const MONTHS: u64 = 24;
const ENTRIES: u64 = 300_000;

/// Plants the data in a folder, with names for all rows.
pub(super) fn plant(
    folder: &Path,
    seed: u64,
    progress: &Progress,
    out: &mut Output,
) -> Result<Set> {
    out.line(format!(
        "{} people rate {} places to eat over {MONTHS} months. Places have a category and a city, and what people\n\
         like has to do with both. All of it is drawn from a planted model plus noise.\n",
        grouped(USERS),
        grouped(PLACES)
    ));
    let made = generate(folder, &options(seed), progress)?;
    let open = |path: &PathBuf| CooFile::open(path, OpenMode::Mapped);
    let test = made.test.as_ref().map(|(path, _)| open(path));
    let test = test
        .transpose()?
        .ok_or_else(|| Error::Argument("a demo holds out a test part".into()))?;
    let files: Vec<CooFile> = made
        .matrices
        .iter()
        .map(|(path, _)| open(path))
        .collect::<Result<_>>()?;
    let category = groups(&files[0]);
    let city = groups(&files[1]);
    let mut before = vec![0usize; CATEGORIES.len() * CITIES.len()];
    let places = category.iter().zip(&city).map(|(&category, &city)| {
        let count = &mut before[category * CITIES.len() + city];
        *count += 1;
        place(category, city, *count - 1)
    });
    let names = [
        Names::from_names((0..USERS as usize).map(person)),
        Names::from_names(places),
        Names::from_names((0..MONTHS as usize).map(month)),
    ];
    // Where every command finds them.
    for (n, names) in names.iter().enumerate() {
        names.save(folder.join(format!("tensor.mode{}.tsv", n + 1)))?;
    }
    let columns = [
        ("category", Names::from_names(CATEGORIES.map(|c| c.0))),
        ("city", Names::from_names(CITIES)),
    ];
    let mut tables = Vec::new();
    for (m, (file, (what, columns))) in files.into_iter().zip(columns).enumerate() {
        columns.save(folder.join(format!("matrix{}.mode2.tsv", m + 1)))?;
        tables.push(Table {
            file,
            what: what.into(),
            mode: 1,
            kind: MatrixKind::Observed,
            columns: Some(columns),
        });
    }
    Ok(Set {
        train: open(&made.train.0)?,
        test,
        tables,
        modes: ["person", "place", "month"].map(String::from).into(),
        names: names.map(Some).into(),
        floor: Some(made.floor_rmse),
    })
}

/// The column of each row with a one.
fn groups(file: &CooFile) -> Vec<usize> {
    let view = file.view();
    let mut all = vec![0; view.dims()[0] as usize];
    for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        if view.values().get(i) > 0.0 {
            all[row as usize] = column as usize;
        }
    }
    all
}

fn options(seed: u64) -> GenerateOptions {
    let zipf = |exponent, shift| Skew { exponent, shift };
    let told = |columns, share| MatrixSpec {
        mode: 1,
        columns,
        cells: CellChoice::Full,
        ones: None,
        groups: Some(share),
    };
    let mut o = GenerateOptions::new(&[USERS, PLACES, MONTHS], ENTRIES);
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
        told(CATEGORIES.len() as u64, 0.55),
        told(CITIES.len() as u64, 0.4),
    ];
    o.test = 0.2;
    o.seed = seed;
    o.threads = available_threads();
    o
}
