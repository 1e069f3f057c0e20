//! The binary format read and written by Python scripts that were written from `docs/reference/formats.md` alone.

use std::process::Command;

use crate::common::{ProgramRun, Scratch};
use s3cmtf::format::{CooFile, CooWriter, Dims, OpenMode, ValueKind, Values, check};
use s3cmtf::generate::{GenerateOptions, MatrixEntries, MatrixSpec, generate};
use s3cmtf::options::ModelKind;
use serde_json::{Value, json};

/// Runs Python and returns its output. Prints a line and returns `None` if NumPy is missing, unless it is required.
fn python(arguments: &[&str]) -> Option<String> {
    let interpreter = std::env::var("S3CMTF_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_numpy = Command::new(&interpreter)
        .args(["-c", "import numpy"])
        .output();
    if !has_numpy.is_ok_and(|o| o.status.success()) {
        assert!(
            std::env::var_os("S3CMTF_REQUIRE_NUMPY").is_none(),
            "NumPy is required here"
        );
        println!("skipped: {interpreter} with NumPy is not on this machine");
        return None;
    }
    Some(
        ProgramRun::from(Command::new(interpreter).args(arguments).output().unwrap())
            .ok()
            .stdout,
    )
}

/// Returns the path of the script for the binary format.
fn format_script() -> String {
    format!("{}/tests/numpy_format.py", env!("CARGO_MANIFEST_DIR"))
}

const KINDS: [(&str, Option<ValueKind>); 3] = [
    ("none", None),
    ("f32", Some(ValueKind::F32)),
    ("f64", Some(ValueKind::F64)),
];

#[test]
fn files_written_by_numpy_are_read() {
    let dir = Scratch::new("numpy-write");
    if python(&[&format_script(), "write", dir.path().to_str().unwrap()]).is_none() {
        return;
    }
    for order in 2..=8usize {
        for (kind_name, kind) in &KINDS[1..] {
            for (weight_name, weight_kind) in KINDS {
                let path = dir.join(&format!("{order}-{kind_name}-{weight_name}.coo"));
                let file = CooFile::open(&path, OpenMode::Mapped).unwrap();
                let report = check(&file, &()).unwrap();
                assert!(report.damaged.is_empty() && report.out_of_range.count == 0);
                let (h, v) = (file.header(), file.view());
                assert_eq!(
                    (Some(h.value_kind), h.weight_kind, h.count),
                    (*kind, weight_kind, 1000)
                );
                for n in 0..order {
                    let dim = 17 + n as u64;
                    assert_eq!(h.dims[n], dim);
                    let expected: Vec<u32> = (0..1000)
                        .map(|i| (i * (n as u64 + 3) % dim) as u32)
                        .collect();
                    assert_eq!(v.column(n), expected);
                }
                for i in 0..1000 {
                    assert_eq!(v.values().get(i), i as f64 / 8.0 - 20.0);
                    if let Some(w) = v.weights() {
                        assert_eq!(w.get(i), (1 + i % 5) as f64);
                    }
                }
            }
        }
    }
}

#[test]
fn files_are_read_by_numpy() {
    let dir = Scratch::new("numpy-read");
    let mut arguments = vec![format_script(), "read".to_string()];
    let mut expected = Vec::new();
    for order in 2..=8usize {
        for (weight_name, weight_kind) in KINDS {
            let path = dir.join(&format!("{order}-{weight_name}.coo"));
            let count = 100 + order;
            let columns: Vec<Vec<u32>> = (0..order)
                .map(|n| (0..count as u32).map(|i| i * (n as u32 + 1)).collect())
                .collect();
            let values: Vec<f64> = (0..count).map(|i| i as f64 / 4.0 - 3.0).collect();
            let mut w = CooWriter::create(&path, order, ValueKind::F64, weight_kind, None).unwrap();
            let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
            let weights = weight_kind.map(|_| Values::F64(&values));
            w.push(&slices, Values::F64(&values), weights).unwrap();
            let header = w.finish(Dims::Inferred).unwrap();
            arguments.push(path.to_str().unwrap().to_string());
            expected.push(json!({
                "dims": header.dims,
                "columns": columns,
                "values": values,
                "weights": weight_kind.map(|_| &values),
                "inferred": true,
            }));
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(text) = python(&arguments) else {
        return;
    };
    let read: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(read, expected);
}

#[test]
fn exported_planted_factors_reproduce_the_planted_values() {
    let dir = Scratch::new("numpy-truth");
    let script = format!("{}/tests/numpy_truth.py", env!("CARGO_MANIFEST_DIR"));
    for (dims, ranks, model) in [
        (vec![60, 50, 40], vec![3, 4, 2], ModelKind::Tucker),
        (vec![40, 9, 70, 8], vec![3], ModelKind::Cp),
        (vec![90, 80], vec![5], ModelKind::Tucker),
    ] {
        let mut options = GenerateOptions::new(&dims, 5000);
        options.ranks = ranks;
        options.model = model;
        options.value_kind = ValueKind::F64;
        options.mean = Some(10.0);
        let matrix = |mode, entries| MatrixSpec {
            mode,
            columns: 70,
            entries,
            ones_fraction: None,
            group_fraction: None,
        };
        options.matrices = vec![
            matrix(1, MatrixEntries::All),
            matrix(0, MatrixEntries::Sampled(900)),
        ];
        let folder = dir.join(&format!("order{}", dims.len()));
        generate(&folder, &options, &()).unwrap();
        python(&[&script, folder.to_str().unwrap()]);
    }
}
