//! Generated planted data: counts, reproducibility, and distributions.

use std::fs;
use std::path::Path;

use crate::common::Scratch;
use s3cmtf::format::{CooFile, OpenMode, check, summarize};
use s3cmtf::generate::{
    GenerateOptions, MatrixEntries, MatrixSpec, PRESETS, ZipfMandelbrot, generate, preset,
};
use s3cmtf::options::ModelKind;

fn open(path: &Path) -> CooFile {
    CooFile::open(path, OpenMode::Mapped).unwrap()
}

/// Returns names and contents of all files of a folder, sorted.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .flat_map(|p| {
            if p.is_dir() {
                contents(&p)
            } else {
                vec![(
                    p.file_name().unwrap().to_str().unwrap().into(),
                    fs::read(&p).unwrap(),
                )]
            }
        })
        .collect();
    all.sort();
    all
}

/// Returns options with noise, skew and two matrices.
fn example_options() -> GenerateOptions {
    let mut o = GenerateOptions::new(&[3000, 400, 30], 300_000);
    o.noise = 0.3;
    o.test_fraction = 0.2;
    o.skew = vec![ZipfMandelbrot {
        exponent: 1.0,
        shift: 20.0,
    }];
    o.matrices = vec![
        MatrixSpec {
            mode: 1,
            columns: 12,
            entries: MatrixEntries::All,
            ones_fraction: Some(0.1),
            group_fraction: None,
        },
        MatrixSpec {
            mode: 0,
            columns: 3000,
            entries: MatrixEntries::Sampled(100_000),
            ones_fraction: None,
            group_fraction: None,
        },
    ];
    o
}

#[test]
fn generated_files_depend_on_the_seed_and_not_on_threads() {
    let mut folders = Vec::new();
    for threads in [1, 2, 3, 7] {
        let dir = Scratch::new(&format!("threads{threads}"));
        let mut o = example_options();
        o.threads = threads;
        generate(dir.path(), &o, &()).unwrap();
        folders.push(contents(dir.path()));
    }
    assert_eq!(folders[0].len(), 4 + 3 + 1 + 2 + 1);
    for other in &folders[1..] {
        assert!(
            folders[0] == *other,
            "the number of threads changed the data"
        );
    }
    let dir = Scratch::new("seed1");
    let mut o = example_options();
    o.seed = 1;
    generate(dir.path(), &o, &()).unwrap();
    assert!(contents(dir.path()) != folders[0]);
}

#[test]
fn generated_counts_are_exact_and_files_pass_the_check() {
    let dir = Scratch::new("clean");
    let generated = generate(dir.path(), &example_options(), &()).unwrap();
    assert_eq!(
        (
            generated.train.1.count,
            generated.test.as_ref().unwrap().1.count
        ),
        (240_000, 60_000)
    );
    assert_eq!(
        (generated.matrices[0].1.count, generated.matrices[1].1.count),
        (4800, 100_000)
    );
    let test = generated.test.unwrap();
    for (path, _) in [&generated.train, &test]
        .into_iter()
        .chain(&generated.matrices)
    {
        assert!(
            check(&open(path), &()).unwrap().is_clean(),
            "{}",
            path.display()
        );
    }
    // The test RMSE of the planted model equals the noise.
    assert!(
        (generated.floor_rmse - 0.3).abs() < 0.01,
        "{}",
        generated.floor_rmse
    );
    // A tenth of the attributes are ones.
    let genres = open(&generated.matrices[0].0);
    let ones = (0..4800)
        .filter(|&i| genres.view().values().get(i) == 1.0)
        .count();
    assert!((300..700).contains(&ones), "{ones}");
    // Training and test entries have no position in common.
    let positions = |p: &Path| {
        let f = open(p);
        let v = f.view();
        (0..v.len())
            .map(|i| (v.column(0)[i], v.column(1)[i], v.column(2)[i]))
            .collect::<std::collections::HashSet<_>>()
    };
    assert!(positions(&generated.train.0).is_disjoint(&positions(&test.0)));
}

#[test]
fn nonnegative_data_has_nonnegative_factors_and_values() {
    let dir = Scratch::new("nonneg");
    for model in [ModelKind::Tucker, ModelKind::Cp] {
        let mut o = GenerateOptions::new(&[200, 100, 10], 20_000);
        o.nonneg = true;
        o.model = model;
        o.matrices = vec![MatrixSpec {
            mode: 2,
            columns: 5,
            entries: MatrixEntries::All,
            ones_fraction: None,
            group_fraction: None,
        }];
        let generated = generate(dir.path(), &o, &()).unwrap();
        for (path, _) in [&generated.train].into_iter().chain(&generated.matrices) {
            let values = summarize(&open(path).view(), &()).unwrap().values.unwrap();
            assert!(values.min >= 0.0 && values.max > values.min);
        }
        for (name, bytes) in contents(&generated.truth.unwrap()) {
            if name.ends_with(".npy") {
                let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
                assert_eq!(start % 64, 0);
                let floats = bytes[start..]
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                assert!(floats.into_iter().all(|x| x >= 0.0), "{name}");
            }
        }
    }
}

/// Parses the values of a .npy file of 32-bit floats.
fn floats(bytes: &[u8]) -> Vec<f64> {
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let floats = bytes[start..].chunks_exact(4);
    floats
        .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
        .collect()
}

#[test]
fn rows_of_a_group_share_the_requested_variance() {
    const ROWS: usize = 4000;
    const RANK: usize = 5;
    let group_matrix = |columns, fraction| MatrixSpec {
        mode: 1,
        columns,
        entries: MatrixEntries::All,
        ones_fraction: None,
        group_fraction: Some(fraction),
    };
    let mut o = GenerateOptions::new(&[300, ROWS as u64, 4], 20_000);
    o.factor_mean = 2.0;
    o.noise = 0.5;
    o.matrices = vec![group_matrix(60, 0.5), group_matrix(40, 0.3)];
    let dir = Scratch::new("groups");
    let generated = generate(dir.path(), &o, &()).unwrap();
    let factor = floats(&std::fs::read(dir.join("truth/factor2.npy")).unwrap());
    let mut residual = factor.clone();
    residual.iter_mut().for_each(|x| *x -= 2.0);
    for (m, (path, _)) in generated.matrices.iter().enumerate() {
        let file = open(path);
        let view = file.view();
        let mut group = vec![None; ROWS];
        for i in 0..view.len() {
            match view.values().get(i) {
                1.0 => assert!(
                    group[view.column(0)[i] as usize]
                        .replace(view.column(1)[i])
                        .is_none()
                ),
                x => assert_eq!(x, 0.0),
            }
        }
        let group: Vec<usize> = group.iter().map(|g| g.unwrap() as usize).collect();
        let mut sizes = vec![0; o.matrices[m].columns as usize];
        group.iter().for_each(|&g| sizes[g] += 1);
        let (largest, smallest) = (sizes.iter().max().unwrap(), sizes.iter().min().unwrap());
        assert!(*smallest > 0 && largest > &(2 * smallest), "{sizes:?}");
        // Subtracting the centres of its groups leaves the individual part of a row.
        let centres =
            floats(&std::fs::read(dir.join(&format!("truth/matrix{}.npy", m + 1))).unwrap());
        let weight = o.matrices[m].group_fraction.unwrap().sqrt();
        for (row, &g) in group.iter().enumerate() {
            for j in 0..RANK {
                residual[row * RANK + j] -= weight * (centres[g * RANK + j] - 2.0);
            }
        }
    }
    let variance = residual.iter().map(|x| x * x).sum::<f64>() / residual.len() as f64;
    assert!((variance - 0.2).abs() < 0.01, "{variance}");
    let mut threads = o.clone();
    threads.threads = 3;
    let again = Scratch::new("groups3");
    generate(again.path(), &threads, &()).unwrap();
    assert!(contents(dir.path()) == contents(again.path()));
    for (matrices, words) in [
        (
            vec![group_matrix(3, 0.7), group_matrix(3, 0.7)],
            "their sum at most 1",
        ),
        (vec![group_matrix(3, 0.0)], "above 0"),
        (
            vec![MatrixSpec {
                ones_fraction: Some(0.5),
                ..group_matrix(3, 0.5)
            }],
            "a one in each row",
        ),
    ] {
        o.matrices = matrices;
        let error = generate(again.path(), &o, &()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn presets_have_the_shapes_of_the_data_sets_in_the_paper() {
    let shapes = [
        (
            "movielens",
            vec![71_000, 11_000, 157],
            10_000_000,
            vec![(1, 20)],
        ),
        (
            "netflix",
            vec![480_000, 18_000, 74],
            100_000_000,
            vec![(1, 110)],
        ),
        (
            "yelp",
            vec![1_000_000, 144_000, 149],
            4_000_000,
            vec![(0, 1_000_000), (1, 1192), (1, 877)],
        ),
    ];
    for (name, dims, entries, matrices) in shapes {
        let o = preset(name, 1.0).unwrap();
        assert_eq!((o.dims, o.entries, o.test_fraction), (dims, entries, 0.2));
        assert_eq!(
            o.matrices
                .iter()
                .map(|m| (m.mode, m.columns))
                .collect::<Vec<_>>(),
            matrices
        );
    }
    let dir = Scratch::new("presets");
    for name in PRESETS {
        let o = preset(name, 0.01).unwrap();
        let generated = generate(&dir.join(name), &o, &()).unwrap();
        let total = o.entries;
        assert_eq!(generated.train.1.count, total / 5 * 4);
        assert_eq!(generated.test.unwrap().1.count, total / 5);
        let s = summarize(&open(&generated.train.0).view(), &()).unwrap();
        let values = s.values.unwrap();
        assert!(
            (3.3..3.9).contains(&values.mean) && (0.9..1.3).contains(&values.deviation),
            "{name}: {values:?}"
        );
        assert!(values.min >= 0.5 && values.max <= 5.0);
        // Rows have skewed numbers of entries.
        for mode in &s.modes[..2] {
            let longest = mode.longest_row.unwrap().1 as f64;
            assert!(longest > 4.0 * mode.mean_length, "{name}: {mode:?}");
        }
    }
}
