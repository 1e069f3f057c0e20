//! Binary COO files: open, verify, read everything, copy, fit.

use std::fs;
use std::path::Path;

use s3cmtf::format::{
    self, CooFile, CooView, CooWriter, Dims, DuplicatePolicy, OpenMode, ValueKind, Values, check,
    repair, summarize, write_tns,
};
use s3cmtf::options::Options;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

use super::Seeds;
use super::sample::{OneEpoch, check_saved, limit, use_model};

/// Options of fits; the checksum of the input chooses.
const FITS: [&str; 5] = [
    "rank=2\nstart=identity",
    "model=cp\nrank=2\nstart=normal\nalgorithm=opt",
    "algorithm=als\nrank=2\nstart=identity",
    "algorithm=gibbs\nrank=2\nburn_in=0\nsamples=1",
    "",
];

pub fn run(input: &[u8], folder: &Path) -> bool {
    let path = folder.join("input.coo");
    fs::write(&path, input).unwrap();
    let Ok(file) = CooFile::open(&path, OpenMode::Mapped) else {
        return false;
    };
    // Entries are read without verification, too.
    let report = check(&file, &()).unwrap();
    if file.verify(&()).is_err() {
        assert!(!report.is_clean());
        return false;
    }
    let view = file.view();
    let valid = report.out_of_range.count == 0 && report.not_finite.count == 0;
    // Statistics do not depend on weights, so a bad weight is no error there.
    match summarize(&view, &()) {
        Ok(_) => assert!(valid || view.weights().is_some()),
        Err(e) => assert!(!valid, "{e}"),
    }
    let copy = folder.join("copy.coo");
    let written = format::write(&view, &copy, None, &());
    if valid {
        written.unwrap();
        let copy = CooFile::open(&copy, OpenMode::Private).unwrap();
        copy.verify(&()).unwrap();
        assert!(same_entries(&view, &copy.view()));
        write_tns(&file, &folder.join("copy.tns"), &()).unwrap();
    }
    if let Ok(repaired) = repair(
        &file,
        &folder.join("repaired.coo"),
        DuplicatePolicy::Mean,
        &(),
    ) {
        let repaired = (
            repaired,
            CooFile::open(folder.join("repaired.coo"), OpenMode::Mapped),
        );
        assert!(check(&repaired.1.unwrap(), &()).unwrap().is_clean());
    }
    let Ok(problem) = Problem::builder(view).build(&()) else {
        return false;
    };
    let mut options =
        Options::from_text(FITS[crc32fast::hash(input) as usize % FITS.len()]).unwrap();
    options.threads = 1;
    limit(&mut options, problem.order());
    let fitted = fit(&problem, &options, &FitInput::default(), &mut OneEpoch, &());
    let Ok((model, _)) = fitted else {
        return false;
    };
    check_saved(&model, folder);
    use_model(&model);
    true
}

/// Returns whether two views have the same entries, bit for bit.
pub fn same_entries(a: &CooView<'_>, b: &CooView<'_>) -> bool {
    let bits = |values: Values<'_>| -> Vec<u64> {
        (0..values.len()).map(|i| values.get(i).to_bits()).collect()
    };
    a.dims() == b.dims()
        && (0..a.order()).all(|n| a.column(n) == b.column(n))
        && bits(a.values()) == bits(b.values())
        && a.weights().map(bits) == b.weights().map(bits)
}

/// Writes a file of entries and returns its bytes.
pub fn coo_bytes(
    folder: &Path,
    columns: &[&[u32]],
    values: Values<'_>,
    weights: Option<Values<'_>>,
    dims: Dims,
) -> Vec<u8> {
    let path = folder.join("seed.coo");
    let kind = |values: Values<'_>| match values {
        Values::F32(_) => ValueKind::F32,
        Values::F64(_) => ValueKind::F64,
    };
    let (order, kinds) = (columns.len(), (kind(values), weights.map(kind)));
    let mut writer = CooWriter::create(&path, order, kinds.0, kinds.1, None).unwrap();
    writer.push(columns, values, weights).unwrap();
    writer.finish(dims).unwrap();
    fs::read(path).unwrap()
}

pub fn seeds(folder: &Path) -> Seeds {
    let columns: [&[u32]; 8] = [
        &[0, 1, 2, 0, 1],
        &[0, 1, 0, 1, 2],
        &[0, 0, 1, 1, 1],
        &[1, 0, 1, 0, 1],
        &[0, 0, 0, 0, 0],
        &[0, 1, 2, 3, 4],
        &[3, 2, 1, 0, 0],
        &[0, 0, 1, 1, 0],
    ];
    let (f32s, f64s) = (
        [1.0f32, 2.0, 3.5, -1.0, 0.0],
        [0.5f64, 1e10, -3.0, 2.0, 1.0],
    );
    let weights = [1.0f32, 0.0, 2.0, 0.5, 1.0];
    let none: [&[u32]; 3] = [&[]; 3];
    vec![
        (
            "matrix",
            coo_bytes(
                folder,
                &columns[..2],
                Values::F32(&f32s),
                None,
                Dims::Inferred,
            ),
        ),
        (
            "tensor-f64",
            coo_bytes(
                folder,
                &columns[..3],
                Values::F64(&f64s),
                None,
                Dims::Stated(vec![7, 5, 2]),
            ),
        ),
        (
            "weighted",
            coo_bytes(
                folder,
                &columns[..3],
                Values::F64(&f64s),
                Some(Values::F32(&weights)),
                Dims::Inferred,
            ),
        ),
        (
            "order4",
            coo_bytes(
                folder,
                &columns[..4],
                Values::F32(&f32s),
                None,
                Dims::Inferred,
            ),
        ),
        (
            "order8",
            coo_bytes(folder, &columns, Values::F32(&f32s), None, Dims::Inferred),
        ),
        (
            "sparse",
            coo_bytes(
                folder,
                &[&[0, 3_000_000], &[1, 0]],
                Values::F32(&[1.0, 2.0]),
                None,
                Dims::Inferred,
            ),
        ),
        (
            "empty",
            coo_bytes(
                folder,
                &none,
                Values::F32(&[]),
                None,
                Dims::Stated(vec![2, 2, 2]),
            ),
        ),
        (
            "duplicates",
            coo_bytes(
                folder,
                &[&[0, 0, 1], &[1, 1, 0]],
                Values::F32(&[1.0, 2.0, 3.0]),
                None,
                Dims::Inferred,
            ),
        ),
    ]
}
