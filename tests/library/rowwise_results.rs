//! Results of `als` and `gibbs`: predictive intervals, checkpoints, model files, export.

use std::path::Path;

use crate::common::Scratch;
use crate::common::planted::{StopAfter, fit_planted, model_bits, predictions, small_data};
use crate::rowwise::{BOTH, MODELS, options, planted_tucker, set_sweeps};
use s3cmtf::format::{CooView, OpenMode};
use s3cmtf::model::{self, Model};
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::predict::{PredictOptions, export, predict_intervals};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, fit};

#[test]
fn predictive_intervals_have_nominal_coverage() {
    let data = planted_tucker("rowwise-intervals", &[3], 0.5);
    let mut o = options(Algorithm::Gibbs, ModelKind::Tucker, 4);
    set_sweeps(&mut o, 90);
    let (model, _) = fit_planted(&data, &o, false);
    let view = data.test.view();
    let mut means = Vec::new();
    let (mut inside, mut count) = (0, 0);
    predict_intervals(
        &model,
        &view,
        &[0.05, 0.95],
        &PredictOptions {
            clip: false,
            threads: 2,
        },
        &(),
        |range, intervals| {
            for (i, s) in range.zip(intervals) {
                let x = view.values().get(i);
                assert!(
                    s.standard_deviation > 0.0
                        && s.quantiles[0] < s.mean
                        && s.mean < s.quantiles[1]
                );
                inside += usize::from(s.quantiles[0] <= x && x <= s.quantiles[1]);
                count += 1;
                means.push(s.mean);
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(count, view.len());
    let coverage = inside as f64 / count as f64;
    assert!((0.86..0.94).contains(&coverage), "{coverage}");
    assert_eq!(means, predictions(&model, &view));
    // A model without posterior samples has no predictive intervals.
    let (als, _) = fit_planted(&data, &options(Algorithm::Als, ModelKind::Cp, 2), false);
    let rejected = predict_intervals(
        &als,
        &view,
        &[],
        &PredictOptions {
            clip: true,
            threads: 1,
        },
        &(),
        |_, _| Ok(()),
    );
    assert!(rejected.unwrap_err().to_string().contains("gibbs"));
}

#[test]
fn resumed_als_and_gibbs_equal_uninterrupted_fits() {
    let data = small_data();
    let dir = Scratch::new("rowwise-resume");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let view = data.test.view();
    for (algorithm, kind) in BOTH.into_iter().flat_map(|a| MODELS.map(|m| (a, m))) {
        let mut o = options(algorithm, kind, 4);
        o.burn_in = 3;
        set_sweeps(&mut o, 11);
        let input = |resume, checkpoint| FitInput {
            test: Some(data.test.view()),
            resume,
            checkpoint,
            ..FitInput::default()
        };
        let (expected, whole) = fit(&problem, &o, &input(None, None), &mut (), &()).unwrap();
        for stop in [1, 6] {
            let path = dir.join("c.s3m");
            let mut first = StopAfter(stop);
            let written = input(None, Some(path.clone()));
            fit(&problem, &o, &written, &mut first, &()).unwrap();
            o.threads = 2;
            let (model, summary) =
                fit(&problem, &o, &input(Some(path), None), &mut (), &()).unwrap();
            assert!(
                model_bits(&model, &view) == model_bits(&expected, &view),
                "{algorithm:?} {stop}"
            );
            assert_eq!(summary.test_rmse, whole.test_rmse);
        }
    }
}

#[test]
fn gibbs_model_file_round_trips() {
    let data = small_data();
    let dir = Scratch::new("rowwise-file");
    for kind in MODELS {
        let mut o = options(Algorithm::Gibbs, kind, 4);
        (o.burn_in, o.samples) = (20, 4);
        let (model, summary) = fit_planted(&data, &o, true);
        // The fit ends with the last sample.
        assert_eq!((summary.epochs, model.samples().unwrap().len()), (24, 4));
        let path = dir.join("m.s3m");
        model::save(&model, &path).unwrap();
        let loaded = model::load(&path, OpenMode::Mapped).unwrap();
        let view = data.test.view();
        assert!(model_bits(&loaded, &view) == model_bits(&model, &view));
        let noise = |m: &Model| {
            m.samples()
                .unwrap()
                .iter()
                .map(|s| s.noise_deviation)
                .collect::<Vec<_>>()
        };
        assert_eq!(noise(&loaded), noise(&model));
    }
}

/// Computes the RMSE of an exported model on entries from its files, in `f64`.
fn exported_rmse(folder: &Path, view: &CooView<'_>) -> f64 {
    fn read<const K: usize>(path: &Path, number: fn([u8; K]) -> f64) -> Vec<f64> {
        let Ok(bytes) = std::fs::read(path) else {
            return Vec::new();
        };
        let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let each = bytes[head..].chunks_exact(K);
        each.map(|b| number(b.try_into().unwrap())).collect()
    }
    let floats = |name: String| read(&folder.join(name), |b| f64::from(f32::from_le_bytes(b)));
    let mean = read(&folder.join("mean.npy"), f64::from_le_bytes)[0];
    let core = std::fs::read_to_string(folder.join("CORETENSOR")).unwrap();
    let core: Vec<(Vec<usize>, f64)> = core
        .lines()
        .map(|l| {
            let (at, g) = l.rsplit_once('\t').unwrap();
            let at = at.split('\t').map(|j| j.parse::<usize>().unwrap() - 1);
            (at.collect(), g.parse().unwrap())
        })
        .collect();
    struct Mode {
        names: Vec<u32>,
        rows: Vec<f64>,
        biases: Vec<f64>,
    }
    let modes: Vec<Mode> = (1..=view.order())
        .map(|n| {
            let names = read(&folder.join(format!("factor{n}.rows.npy")), |b| {
                f64::from(u32::from_le_bytes(b))
            });
            Mode {
                names: names.iter().map(|&i| i as u32).collect(),
                rows: floats(format!("factor{n}.npy")),
                biases: floats(format!("bias{n}.npy")),
            }
        })
        .collect();
    let squares: f64 = (0..view.len())
        .map(|i| {
            let mut x = mean;
            let mut rows: Vec<&[f64]> = Vec::new();
            for (n, mode) in modes.iter().enumerate() {
                let row = mode.names.binary_search(&view.column(n)[i]).unwrap();
                x += mode.biases.get(row).copied().unwrap_or(0.0);
                let rank = mode.rows.len() / mode.names.len();
                rows.push(&mode.rows[row * rank..][..rank]);
            }
            for (at, g) in &core {
                x += g * rows.iter().zip(at).map(|(row, &j)| row[j]).product::<f64>();
            }
            (x - view.values().get(i)).powi(2)
        })
        .sum();
    (squares / view.len() as f64).sqrt()
}

#[test]
fn export_writes_the_last_posterior_sample_with_its_biases() {
    let data = small_data();
    let dir = Scratch::new("rowwise-export");
    let problem = Problem::builder(data.train.view())
        .matrix(0, data.matrices[0].view(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let error = |model: &Model, name: &str| {
        let folder = dir.join(name);
        let files = export(model, &folder, u64::MAX, &()).unwrap();
        let biases = files.iter().any(|f| f.ends_with("bias2.npy"));
        assert_eq!(biases, model.options().biases, "{name}");
        exported_rmse(&folder, &data.train.view())
    };
    for (k, (kind, biases)) in [
        (ModelKind::Cp, true),
        (ModelKind::Tucker, true),
        (ModelKind::Cp, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut o = options(Algorithm::Gibbs, kind, 3);
        (o.burn_in, o.samples, o.biases) = (6, 3, biases);
        let (path, checkpoint) = (dir.join("m.s3m"), dir.join("c.s3m"));
        let input = FitInput {
            checkpoint: Some(checkpoint.clone()),
            ..FitInput::default()
        };
        let (model, summary) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        let near = |error: f64, expected: f64| {
            assert!(
                (error / expected - 1.0).abs() < 1e-4,
                "{error} {expected} {kind:?} {biases}"
            );
        };
        near(error(&model, &format!("fitted{k}")), summary.train_rmse);
        model::save(&model, &path).unwrap();
        for (name, path) in [("saved", &path), ("checkpoint", &checkpoint)] {
            let loaded = model::load(path, OpenMode::Mapped).unwrap();
            near(error(&loaded, &format!("{name}{k}")), summary.train_rmse);
            assert_eq!(loaded.mean(), model.mean());
            for (a, b) in loaded.modes().iter().zip(model.modes()) {
                assert_eq!(a.biases, b.biases);
            }
        }
        // A checkpoint in the middle of the chain.
        let mut early = StopAfter(8);
        fit(&problem, &o, &input, &mut early, &()).unwrap();
        let state = model::load(&checkpoint, OpenMode::Mapped).unwrap();
        let expected = state.history().last().unwrap().train_rmse;
        near(error(&state, &format!("state{k}")), expected);
    }
}
