//! `s3cmtf fit`, `eval`, `predict` and `export`

use std::fs;
use std::path::Path;

use crate::common::Scratch;
use crate::runner::{expand_paths, fit_command, generated_data, run, run_command};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

#[test]
fn fit_eval_predict_export_and_info_agree() {
    let dir = generated_data("whole");
    let ran = run_command(fit_command(
        &dir,
        &[
            "--test",
            "@tensor.test.coo",
            "--matrix",
            "2:@matrix1.coo:0.5:0.2",
            "--start",
            "normal",
            "--eta",
            "0.02",
            "--lambda-reg",
            "0.01",
            "--epochs",
            "120",
            "-o",
            "@m.s3m",
            "--json",
        ],
    ))
    .ok();
    let lines = ran.json();
    assert_eq!(
        lines
            .iter()
            .filter(|l| l["epoch"].is_u64() && l["eta"].is_f64() && l["loss"].is_f64())
            .count(),
        120
    );
    assert_eq!(
        (&lines[0]["event"], &lines[0]["what"]),
        (&"selected".into(), &"model".into())
    );
    let first = lines.iter().find(|l| l["epoch"] == 1).unwrap();
    for key in [
        "train_rmse",
        "test_rmse",
        "update_seconds",
        "eval_seconds",
        "entries_per_second",
    ] {
        assert!(first[key].is_f64(), "{key}");
    }
    assert!(first["valid_rmse"].is_null());
    let summary = &lines.last().unwrap()["summary"];
    for key in [
        "train_rmse",
        "test_rmse",
        "best_epoch",
        "clipped",
        "threads",
        "kernel",
        "algorithm",
        "seed",
        "epochs",
        "seconds",
        "peak_memory_bytes",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }
    let rmse = summary["test_rmse"].as_f64().unwrap();
    assert!(rmse < 0.2, "{rmse}");

    let m = model::load(dir.join("m.s3m"), OpenMode::Mapped).unwrap();
    let info = run(expand_paths(&dir, &["info", "@m.s3m"])).ok().stdout;
    for part in [
        "a tucker model of 60 x 50 x 8, ranks 3 x 3 x 3",
        "weight 0.5",
        "epochs=120",
        "after 120 epochs",
        ", biases, offsets",
    ] {
        assert!(info.contains(part), "{info} lacks {part:?}");
    }
    let json = &run(expand_paths(&dir, &["info", "@m.s3m", "--json"]))
        .ok()
        .json()[0];
    assert_eq!(json["mean"].as_f64(), Some(m.mean()));
    assert!(json["biases"] == true && json["offsets"] == true);
    let eval = run(expand_paths(
        &dir,
        &[
            "eval",
            "@m.s3m",
            "@tensor.test.coo",
            "--json",
            "--threads",
            "2",
        ],
    ))
    .ok();
    assert!((eval.json()[0]["rmse"].as_f64().unwrap() - rmse).abs() < 1e-6);
    let text = run(expand_paths(
        &dir,
        &["predict", "@m.s3m", "@tensor.test.coo"],
    ))
    .ok()
    .stdout;
    assert_eq!(text.lines().count(), 1200);
    let cells = dir.file("cells.tns", "1 2 3\n60 50 8\n9999 1 1\n");
    let some = run([
        "predict".as_ref(),
        dir.join("m.s3m").as_os_str(),
        cells.as_os_str(),
        "--no-value".as_ref(),
    ])
    .ok();
    assert_eq!(some.stdout.lines().count(), 3);
    assert!(some.stdout.starts_with("1 2 3 "), "{}", some.stdout);
    run(expand_paths(
        &dir,
        &[
            "predict",
            "@m.s3m",
            "@tensor.test.coo",
            "-o",
            "@p.coo",
            "--threads",
            "3",
        ],
    ))
    .ok();
    let back = run(expand_paths(&dir, &["convert", "@p.coo", "@p.tns"])).ok();
    assert!(back.stdout.contains("1,200 entries"));
    assert_eq!(
        fs::read_to_string(dir.join("p.tns")).unwrap(),
        text,
        "printed and stored predictions agree"
    );

    let files = run(expand_paths(&dir, &["export", "@m.s3m", "-o", "@ex"]))
        .ok()
        .stdout;
    for name in [
        "factor1.npy",
        "factor3.rows.npy",
        "core.npy",
        "matrix1.npy",
        "FACTOR1",
        "CFACTOR1",
        "CORETENSOR",
        "mean.npy",
        "bias3.npy",
        "offset1.npy",
    ] {
        assert!(files.contains(name), "{files}");
    }
    let read = |name: &str| fs::read_to_string(dir.join("ex").join(name)).unwrap();
    assert_eq!(
        (
            read("FACTOR1").lines().count(),
            read("FACTOR2").lines().count(),
            read("CFACTOR1").lines().count()
        ),
        (60, 50, 6)
    );
    let core: Vec<Vec<String>> = read("CORETENSOR")
        .lines()
        .map(|l| l.split('\t').map(String::from).collect())
        .collect();
    assert_eq!((core.len(), core[0].len()), (27, 4));
    assert_eq!(&core[26][..3], ["3", "3", "3"]);
    // The exported factors give the predictions of the model.
    let table = |name: &str| -> Vec<Vec<f64>> {
        read(name)
            .lines()
            .map(|l| {
                l.split_terminator('\t')
                    .map(|x| x.parse().unwrap())
                    .collect()
            })
            .collect()
    };
    let factors = [table("FACTOR1"), table("FACTOR2"), table("FACTOR3")];
    let first: Vec<f64> = text
        .lines()
        .next()
        .unwrap()
        .split(' ')
        .map(|x| x.parse().unwrap())
        .collect();
    let numbers = |name: &str, width: usize| -> Vec<f64> {
        let bytes = fs::read(dir.join("ex").join(name)).unwrap();
        let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let number = |b: &[u8]| match width {
            4 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
            _ => f64::from_le_bytes(b.try_into().unwrap()),
        };
        bytes[head..].chunks_exact(width).map(number).collect()
    };
    let mean = numbers("mean.npy", 8);
    assert!(mean.len() == 1 && mean[0] == m.mean() && mean[0] != 0.0);
    let mut x = mean[0];
    for (n, mode) in m.modes().iter().enumerate() {
        let biases = numbers(&format!("bias{}.npy", n + 1), 4);
        assert_eq!(biases.len(), mode.rows.len());
        let row = mode.rows.compact(first[n] as u32 - 1);
        x += row.map_or(0.0, |row| biases[row as usize]);
    }
    assert_eq!(
        numbers("offset1.npy", 4).len(),
        m.matrices()[0].columns.len()
    );
    for line in &core {
        let at: Vec<usize> = line[..3].iter().map(|j| j.parse().unwrap()).collect();
        let rows = (0..3)
            .map(|n| factors[n][first[n] as usize - 1][at[n] - 1])
            .product::<f64>();
        x += rows * line[3].parse::<f64>().unwrap();
    }
    assert!((x - first[3]).abs() < 1e-3, "{x} {}", first[3]);
}

#[test]
fn options_come_from_preset_config_and_arguments() {
    let dir = generated_data("options");
    dir.file("c.txt", "# mine\nepochs=2\neta = 0.0001\nrank=2\n");
    run_command(fit_command(
        &dir,
        &[
            "--config",
            "@c.txt",
            "--preset",
            "paper-yelp",
            "--eta",
            "0.003",
            "-o",
            "@m.s3m",
        ],
    ))
    .ok();
    let m = model::load(dir.join("m.s3m"), OpenMode::Mapped).unwrap();
    // Arguments override the config file, which overrides the preset.
    assert_eq!(
        (
            m.options().eta,
            m.options().epochs,
            &m.options().lambda_m[..]
        ),
        (Some(0.003), 2, &[10.0][..])
    );
    assert_eq!(m.shape().ranks(), [3, 3, 3]);
    assert!(m.is_orthogonal());
    run_command(fit_command(
        &dir,
        &[
            "--no-orthogonal",
            "--no-pin",
            "--no-clip",
            "--nonneg",
            "--model",
            "cp",
            "--epochs",
            "1",
            "-o",
            "@n.s3m",
        ],
    ))
    .ok();
    let n = model::load(dir.join("n.s3m"), OpenMode::Mapped).unwrap();
    assert!(!n.options().orthogonal && !n.options().pin && n.options().nonneg);
    let help = run(["fit", "--help"]).ok().stdout;
    for option in s3cmtf::options::OPTION_TABLE {
        assert!(
            help.contains(&option.name.replace('_', "-")),
            "{} is missing in the help",
            option.name
        );
    }
}

#[test]
fn rejected_fits_leave_no_files() {
    let dir = generated_data("bad");
    for (extra, word) in [
        (&["--eta", "-1"][..], "eta"),
        (&["--eta", "nan"], "eta"),
        (&["--rank", "0"], "rank"),
        (&["--epochs", "x"], "epochs"),
        (&["--algorithm", "magic"], "algorithm"),
        (&["--matrix", "matrix1.coo"], "MODE:FILE"),
        (&["--matrix", "0:@matrix1.coo"], "mode 0"),
        (&["--matrix", "4:@matrix1.coo"], "mode 4"),
        (&["--matrix", "1:@matrix1.coo"], "mode 1 has size 60"),
        (&["--matrix", "2:@matrix1.coo:-1"], "weight -1"),
        (&["--matrix", "2:@nothing.coo"], "no such file"),
        (&["--graph", "2:@matrix1.coo"], "square"),
        (&["--test", "@matrix1.coo"], "has 2 modes"),
        (&["--init", "@tensor.train.coo"], "not a model file"),
        (&["--resume", "@nothing.s3m"], "no such file"),
        (&["--config", "@nothing.txt"], "nothing.txt"),
        (
            &["--checkpoint", "@no/such/folder/c.s3m"],
            "folder does not exist",
        ),
    ] {
        let mut all = extra.to_vec();
        all.extend(["-o", "@m.s3m"]);
        let ran = run_command(fit_command(&dir, &all));
        assert!(
            ran.code == Some(2) || word == "nothing.txt",
            "{extra:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
        assert!(ran.stderr.contains(word), "{extra:?}: {}", ran.stderr);
    }
    assert!(!dir.join("m.s3m").exists());
    run_command(fit_command(&dir, &["--epochs", "1", "-o", "@m.s3m"])).ok();
    // Inputs are never overwritten.
    for (extra, word) in [
        (&["-o", "@tensor.train.coo"][..], "would be overwritten"),
        (
            &["--checkpoint", "@tensor.train.coo", "-o", "@n.s3m"],
            "would be overwritten",
        ),
        (
            &["--matrix", "2:@matrix1.coo", "-o", "@matrix1.coo"],
            "would be overwritten",
        ),
        (&["--checkpoint", "@n.s3m", "-o", "@n.s3m"], "use two files"),
        (&["--patience", "2", "-o", "@n.s3m"], "validation file"),
        (
            &["--graph", "1:@matrix1.coo:1:5", "-o", "@n.s3m"],
            "no columns of its own",
        ),
    ] {
        let mut all = vec!["--epochs", "1"];
        all.extend(extra);
        run_command(fit_command(&dir, &all)).failed(2, &[word]);
    }
    run(expand_paths(&dir, &["check", "@tensor.train.coo"])).ok();
    // All weights are 0.
    dir.file("w.tns", "1 1 1 1 0\n2 2 2 1 0\n");
    run(expand_paths(
        &dir,
        &["convert", "@w.tns", "@w.coo", "--weighted"],
    ))
    .ok();
    run(expand_paths(
        &dir,
        &["fit", "--tensor", "@w.coo", "-o", "@n.s3m"],
    ))
    .failed(2, &["w.coo", "all weights are 0"]);
    // The error comes before the fit starts.
    let ran = run_command(fit_command(
        &dir,
        &["--epochs", "1", "-o", "@no/such/m.s3m"],
    ))
    .failed(2, &["folder does not exist"]);
    assert!(!ran.stdout.contains("epoch"), "{}", ran.stdout);
    run(expand_paths(
        &dir,
        &[
            "predict",
            "@m.s3m",
            "@tensor.test.coo",
            "-o",
            "@tensor.test.coo",
        ],
    ))
    .failed(2, &["would be overwritten"]);
    run(expand_paths(
        &dir,
        &["predict", "@m.s3m", "@tensor.test.coo", "-o", "@m.s3m"],
    ))
    .failed(2, &["would be overwritten"]);
    // A model is rejected as data.
    run(expand_paths(&dir, &["check", "@m.s3m"])).failed(2, &["is a model, not data"]);
    run(expand_paths(
        &dir,
        &["fit", "--tensor", "@m.s3m", "-o", "@o.s3m"],
    ))
    .failed(2, &["is a model, not data"]);
    // A model without fit state is rejected as a checkpoint.
    run_command(fit_command(&dir, &["--resume", "@m.s3m", "-o", "@o.s3m"]))
        .failed(2, &["not a checkpoint"]);
    run(expand_paths(&dir, &["eval", "@m.s3m", "@matrix1.coo"])).failed(2, &["has 2 modes"]);
    run(expand_paths(&dir, &["predict", "@m.s3m", "@matrix1.coo"])).failed(2, &["has 2 modes"]);
    run(expand_paths(
        &dir,
        &["eval", "@tensor.train.coo", "@tensor.test.coo"],
    ))
    .failed(2, &["not a model file"]);
}

#[test]
fn cp_model_keeps_a_hyper_diagonal_core() {
    let dir = Scratch::new("cp");
    run(expand_paths(
        &dir,
        &[
            "generate",
            "-o",
            "@",
            "--dims",
            "9,9,9,9,9,9,9,9",
            "--entries",
            "300",
            "--rank",
            "2",
            "--no-truth",
        ],
    ))
    .ok();
    for rank in ["20", "256"] {
        let fitted = expand_paths(
            &dir,
            &[
                "fit",
                "--tensor",
                "@tensor.train.coo",
                "--model",
                "cp",
                "--rank",
                rank,
                "--epochs",
                "1",
                "-o",
                "@m.s3m",
            ],
        );
        run(fitted).ok();
        run(expand_paths(&dir, &["export", "@m.s3m", "-o", "@ex"])).ok();
        let core = fs::read_to_string(dir.join("ex/CORETENSOR")).unwrap();
        assert_eq!(core.lines().count(), rank.parse::<usize>().unwrap());
        assert!(core.starts_with("1\t1\t1\t1\t1\t1\t1\t1\t"));
        // The ranks are taken from the initial model.
        let again = expand_paths(
            &dir,
            &[
                "fit",
                "--tensor",
                "@tensor.train.coo",
                "--init",
                "@m.s3m",
                "--epochs",
                "1",
                "-o",
                "@n.s3m",
            ],
        );
        run(again).ok();
    }
}

#[test]
fn kernel_is_chosen_by_option_or_environment() {
    let dir = generated_data("kernels");
    let ran = |algorithm: &str, variable: &str, extra: &[&str]| {
        let mut command = fit_command(&dir, &["--algorithm", algorithm, "--epochs", "2", "--json"]);
        command.args(extra).env("S3CMTF_KERNEL", variable);
        let _ = fs::remove_file(dir.join("k.s3m"));
        command.args(expand_paths(&dir, &["-o", "@k.s3m"]));
        run_command(command)
    };
    for algorithm in ["blocked", "opt"] {
        for (variable, extra, expected) in [
            ("scalar", &[][..], "scalar"),
            ("wide", &[], "wide"),
            ("scalar", &["--kernel", "wide"], "wide"),
            ("sse9", &["--kernel", "scalar"], "scalar"),
        ] {
            let lines = ran(algorithm, variable, extra).ok().json();
            let summary = &lines.last().unwrap()["summary"];
            assert_eq!(
                summary["kernel"], expected,
                "{algorithm} {variable} {extra:?}"
            );
        }
        ran(algorithm, "sse9", &[]).failed(2, &["S3CMTF_KERNEL=sse9", "scalar, wide"]);
    }
    // `naive` has only scalar kernels.
    let lines = ran("naive", "wide", &[]).ok().json();
    println!("naive: {}", lines.last().unwrap()["summary"]["kernel"]);
}

#[test]
fn valid_takes_a_fraction() {
    let dir = generated_data("valid-fraction");
    let words = ["--valid", "0.2", "--patience", "2", "--preset", "paper"];
    let run = |extra: &[&str]| {
        let all = [&words, &["-o", "@m.s3m", "--json"][..], extra].concat();
        run_command(fit_command(&dir, &all))
    };
    let lines = run(&["--epochs", "3"]).ok().json();
    let summary = &lines.last().unwrap()["summary"];
    assert!(summary["valid_rmse"].is_number() && summary["best_epoch"].as_u64().unwrap() <= 3);
    let bad = run_command(fit_command(&dir, &["--valid", "1.5", "-o", "@m.s3m"]));
    bad.failed(2, &["--valid 1.5", "above 0 and below 1"]);
}

/// Predictions are clipped by default only if the values have a bounded scale, and the commands say so.
#[test]
fn values_without_bounds_are_not_clipped() {
    let dir = Scratch::new("clip");
    let x = |k: usize| ((k * 7919) % 1013) as f64 / 337.0 + ((k * 31) % 17) as f64;
    let text = |value: &dyn Fn(usize) -> f64| -> String {
        let line = |k: usize| format!("{} {} {} {}\n", k % 40 + 1, k / 40 + 1, k % 9 + 1, value(k));
        (0..1600).map(line).collect()
    };
    let real = dir.file("real.tns", text(&|k| x(k) + k as f64 * 1e-6));
    let stars = dir.file("stars.tns", text(&|k| (x(k) / 4.0).round()));
    let model = dir.join("m.s3m");
    let out = dir.join("p.coo");
    for (file, flag, clips) in [
        (&real, None, false),
        (&stars, None, true),
        (&real, Some("--clip"), true),
        (&stars, Some("--no-clip"), false),
    ] {
        let arguments = ["--rank", "2", "--epochs", "2", "--json", "-o"].map(Path::new);
        let fit = [Path::new("fit"), Path::new("--tensor"), file].into_iter();
        let fit = fit.chain(flag.map(Path::new));
        let fit = run(fit.chain(arguments).chain([model.as_path()]));
        let summary = fit.json().last().unwrap()["summary"].clone();
        assert_eq!(summary["clipped"], clips, "{flag:?}");
        let eval = run([Path::new("eval"), &model, file, Path::new("--json")]);
        assert_eq!(eval.json()[0]["clipped"], clips);
        assert!(eval.json()[0]["rmse"].is_number() && eval.json()[0]["clipped_rmse"].is_number());
        for (flag, expected) in [("", clips), ("--clip", true), ("--no-clip", false)] {
            let flag = Some(Path::new(flag)).filter(|f| !f.as_os_str().is_empty());
            let predict = [Path::new("predict"), &model, file, Path::new("-o"), &out];
            let predict = predict.into_iter().chain(flag).chain([Path::new("--json")]);
            assert_eq!(run(predict).json()[0]["clipped"], expected);
        }
    }
}
