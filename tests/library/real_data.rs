//! Real data, if present: counts, sizes and values as stated in its `meta.json`, and the error of the bias model compared
//! with a reference.

use std::path::{Path, PathBuf};

use crate::common::real_data_folder;
use s3cmtf::format::{CooFile, OpenMode, TextOptions, check, open, summarize};
use s3cmtf::predict::evaluate;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{BiasOptions, fit_biases};
use serde_json::Value;

/// Opens the text `name`, plain or gzipped, with the sizes `dims`.
fn read(folder: &Path, name: &str, dims: Option<&Value>) -> CooFile {
    let plain = folder.join(name);
    let path = if plain.exists() {
        plain
    } else {
        PathBuf::from(format!("{}.gz", plain.display()))
    };
    let dims = dims.map(|d| {
        d.as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_u64().unwrap())
            .collect()
    });
    let options = TextOptions {
        dims,
        ..TextOptions::default()
    };
    open(path.as_path().into(), OpenMode::Mapped, &options, &()).unwrap()
}

/// Checks a data set, its matrices, and the test RMSE of the bias model.
fn check_data_set(name: &str, matrices: &[(&str, usize)], biases: &BiasOptions) {
    let Some(folder) = real_data_folder(name) else {
        return;
    };
    let meta: Value =
        serde_json::from_slice(&std::fs::read(folder.join("meta.json")).unwrap()).unwrap();
    let tensor = &meta["tensor"];
    let train = read(&folder, "tensor.train.tns", Some(&tensor["dims"]));
    let test = read(&folder, "tensor.test.tns", Some(&tensor["dims"]));
    assert_eq!(train.header().count, tensor["train"].as_u64().unwrap());
    assert_eq!(test.header().count, tensor["test"].as_u64().unwrap());
    let report = check(&train, &()).unwrap();
    assert!(report.is_clean());
    let s = summarize(&train.view(), &()).unwrap();
    let values = s.values.unwrap();
    assert!((values.mean - tensor["value_mean"].as_f64().unwrap()).abs() < 0.01);
    for (mode, empty) in s.modes.iter().zip(&report.empty_rows) {
        assert_eq!(mode.rows_used + empty, mode.dim);
    }
    let coupled: Vec<(usize, CooFile)> = matrices
        .iter()
        .map(|(m, mode)| {
            (
                *mode,
                read(&folder, &format!("{m}.tns"), Some(&meta[m]["dims"])),
            )
        })
        .collect();
    let mut builder = Problem::builder(train.view());
    for (mode, file) in &coupled {
        builder = builder.matrix(*mode, file.view(), 1.0, MatrixKind::Observed);
    }
    let problem = builder.build(&()).unwrap();
    for (part, (m, _)) in problem.matrices().iter().zip(matrices) {
        assert_eq!(
            part.entries.len() as u64,
            meta[m]["entries"].as_u64().unwrap(),
            "{m}"
        );
    }
    let (model, _) = fit_biases(&problem, biases, &()).unwrap();
    let found = evaluate(&model, &test.view(), problem.range(), 0, &())
        .unwrap()
        .clipped
        .rmse;
    let expected = meta["baseline"]["test_rmse_damped_biases"]
        .as_f64()
        .unwrap();
    println!("{name}: biases {found:.4}, expected {expected:.4}");
    // The reference was fitted in one pass, so the error may be lower but not higher.
    assert!(
        found < 1.005 * expected && found > 0.93 * expected,
        "{name}: {found} against {expected}"
    );
}

#[test]
fn ml100k_matches_its_description() {
    check_data_set(
        "ml100k",
        &[("movie_genre", 1), ("user_attr", 0)],
        &BiasOptions::default(),
    );
}

#[test]
fn ml1m_half_matches_its_description() {
    check_data_set(
        "ml1m_half",
        &[("movie_genre", 1), ("user_attr", 0)],
        &BiasOptions::default(),
    );
}

#[test]
fn ml10m_1000users_matches_its_description() {
    check_data_set(
        "ml10m_1000users",
        &[("movie_genre", 1)],
        &BiasOptions::default(),
    );
}

#[test]
fn nyctaxi3_matches_its_description() {
    // Each row has thousands of entries, so that two sweeps come close to the result of the default number.
    let biases = BiasOptions {
        sweeps: 2,
        ..BiasOptions::default()
    };
    check_data_set(
        "nyctaxi3",
        &[("zone_attr", 0), ("zone_attr", 1), ("day_attr", 2)],
        &biases,
    );
}

#[test]
fn nyctaxi4_2022_matches_its_description() {
    check_data_set(
        "nyctaxi4_2022",
        &[("zone_attr", 0), ("zone_attr", 1)],
        &BiasOptions::default(),
    );
}

#[test]
fn yelp_toy_matches_its_description() {
    check_data_set(
        "yelp_toy",
        &[
            ("user_user", 0),
            ("business_city", 1),
            ("business_category", 1),
        ],
        &BiasOptions::default(),
    );
}

#[test]
fn inferred_sizes_of_tensor_and_matrices_are_compatible() {
    // Inferred sizes are largest indices, which differ between tensor and matrices.
    let Some(folder) = real_data_folder("yelp_toy") else {
        return;
    };
    let train = read(&folder, "tensor.train.tns", None);
    let city = read(&folder, "business_city.tns", None);
    let friends = read(&folder, "user_user.tns", None);
    let problem = Problem::builder(train.view())
        .matrix(1, city.view(), 1.0, MatrixKind::Observed)
        .matrix(0, friends.view(), 1.0, MatrixKind::Graph)
        .build(&())
        .unwrap();
    assert_eq!(problem.modes()[1].dim(), 10_000);
}
