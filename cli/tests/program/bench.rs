//! `s3cmtf bench`. The measured speeds themselves are not tested.

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, run};
use s3cmtf::simd::Level;
use serde_json::Value;

/// Generates a tiny tensor in a temporary folder.
fn tiny_data(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let made = [
        "generate",
        "-o",
        "@",
        "--dims",
        "60,50,8",
        "--entries",
        "5000",
        "--test",
        "0.2",
        "--no-truth",
    ];
    run(expand_paths(&dir, &made)).ok();
    dir
}

/// Runs `bench` on that tensor, with further arguments.
fn bench(dir: &Scratch, extra: &[&str]) -> ProgramRun {
    let mut all = vec!["bench", "--tensor", "@tensor.train.coo"];
    if !extra.contains(&"--rank") {
        all.extend(["--rank", "4"]);
    }
    all.extend(extra);
    run(expand_paths(dir, &all))
}

fn threads(line: &Value) -> u64 {
    line["threads"].as_u64().unwrap()
}

#[test]
fn json_has_all_figures_of_every_variant() {
    let dir = tiny_data("json");
    for model in ["tucker", "cp"] {
        let arguments = [
            "--model",
            model,
            "--test",
            "@tensor.test.coo",
            "--threads",
            "2,1,3",
            "--kernel",
            "scalar,wide",
            "--json",
        ];
        let lines = bench(&dir, &arguments).ok().json();
        // Two instruction sets of two algorithms and one of `naive`, each with three thread counts.
        assert_eq!(lines.len(), 3 * (2 * 2 + 1));
        for line in &lines {
            for key in [
                "rank",
                "threads",
                "entries",
                "epochs",
                "repeats",
                "entries_per_second",
                "entries_per_second_per_thread",
                "ns_per_entry",
                "efficiency",
                "gflops",
                "peak_gflops",
                "peak_share",
                "test_rmse",
            ] {
                let x = line[key]
                    .as_f64()
                    .unwrap_or_else(|| panic!("{key}: {line}"));
                assert!(x.is_finite() && x > 0.0, "{key}: {line}");
            }
            assert_eq!(line["model"], model);
            assert_eq!(line["entries"], 4000);
            let naive = line["algorithm"] == "naive";
            assert_eq!(line["epochs"], if naive { 1 } else { 3 });
            assert!(!naive || line["kernel"] == "scalar", "{line}");
            if threads(line) == 1 {
                // Efficiency is relative to the smallest thread count.
                assert_eq!(line["efficiency"], 1.0);
            }
            // Ratios compare variants of the same instruction set and threads.
            for (key, algorithm) in [("ratio_to_opt", "opt"), ("ratio_to_naive", "naive")] {
                let same = |l: &&Value| {
                    l["algorithm"] == algorithm
                        && (&l["kernel"], &l["threads"]) == (&line["kernel"], &line["threads"])
                };
                let speed = |l: &Value| l["entries_per_second"].as_f64().unwrap();
                let ratio = lines.iter().find(same).map(|l| speed(line) / speed(l));
                assert_eq!(line[key].as_f64(), ratio, "{key}: {line}");
            }
        }
        for (n, expected) in [2, 1, 3].into_iter().cycle().take(lines.len()).enumerate() {
            assert_eq!(threads(&lines[n]), expected);
        }
        // The result of `blocked` is independent of the thread count.
        let blocked = |t: u64| {
            let same = |l: &&Value| {
                l["algorithm"] == "blocked" && l["kernel"] == "wide" && threads(l) == t
            };
            lines.iter().find(same).unwrap()["test_rmse"].clone()
        };
        assert_eq!(blocked(1), blocked(3));
    }
}

#[test]
fn table_has_every_variant_once() {
    let dir = tiny_data("table");
    let text = bench(
        &dir,
        &["--threads", "1,2,2", "--epochs", "1", "--repeats", "1"],
    )
    .ok()
    .stdout;
    let best = Level::best().name();
    for (algorithm, kernel) in [("blocked", best), ("opt", best), ("naive", "scalar")] {
        for threads in ["1", "2"] {
            let found = text.lines().filter(|l| {
                let mut fields = l.split_whitespace();
                [algorithm, kernel, threads]
                    .iter()
                    .all(|f| fields.next() == Some(f))
            });
            assert_eq!(found.count(), 1, "{algorithm} {threads}: {text}");
        }
    }
    assert!(text.contains("4,000 entries, 60 x 50 x 8"), "{text}");
    assert!(
        text.contains("naive ran one epoch of scalar code on all entries"),
        "{text}"
    );
    assert_eq!(text.contains("x naive"), best == "scalar", "{text}");
    // Only requested variants are measured, and ranks are lowered to the number of rows.
    let alone = [
        "--rank",
        "9",
        "--algorithm",
        "opt",
        "--threads",
        "2",
        "--repeats",
        "1",
    ];
    let text = bench(&dir, &alone).ok().stdout;
    assert!(!text.contains("naive") && !text.contains("x opt"), "{text}");
    assert!(text.contains("mode 3"), "{text}");
    let mut json = alone.to_vec();
    json.push("--json");
    let lines = bench(&dir, &json).ok().json();
    assert_eq!((lines.len(), threads(&lines[0])), (1, 2));
    assert_eq!(lines[0]["ratio_to_opt"], 1.0);
    assert!(lines[0]["ratio_to_naive"].is_null());
    assert!(lines[0]["test_rmse"].is_null());
    assert_eq!(lines[0]["ranks"], serde_json::json!([9, 9, 8]));
}

#[test]
fn independent_fits_are_compared_with_one_fit() {
    let dir = tiny_data("independent");
    let arguments = [
        "--threads",
        "1,4",
        "--epochs",
        "2",
        "--repeats",
        "1",
        "--independent",
    ];
    let text = bench(&dir, &arguments).ok().stdout;
    for (algorithm, split) in [
        ("blocked", "4 x 1"),
        ("blocked", "2 x 2"),
        ("opt", "4 x 1"),
        ("opt", "2 x 2"),
        ("naive", "4 x 1"),
        ("naive", "2 x 2"),
    ] {
        let found = |l: &&str| l.starts_with(algorithm) && l.contains(split);
        assert_eq!(text.lines().filter(found).count(), 1, "{text}");
    }
    assert!(!text.contains("1 x"), "{text}");
    let json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    for line in bench(&dir, &json).ok().json() {
        let splits = line["independent"].as_array().unwrap();
        let count = |split: &Value, key: &str| split[key].as_u64().unwrap();
        let pairs: Vec<_> = splits
            .iter()
            .map(|s| (count(s, "fits"), count(s, "threads_per_fit")))
            .collect();
        let expected = if threads(&line) == 4 {
            &[(4, 1), (2, 2)][..]
        } else {
            &[]
        };
        assert_eq!(pairs, expected);
        let speed = |object: &Value| object["entries_per_second"].as_f64().unwrap();
        for split in splits {
            let ratio = split["ratio_of_one_fit"].as_f64().unwrap();
            assert!(
                ratio > 0.0 && ratio == speed(&line) / speed(split),
                "{line}"
            );
        }
    }
}

#[test]
fn bench_without_tensor_uses_planted_data() {
    let arguments = [
        "bench",
        "--like",
        "yelp",
        "--scale",
        "0.001",
        "--rank",
        "3",
        "--algorithm",
        "blocked",
        "--threads",
        "1",
        "--epochs",
        "1",
        "--repeats",
        "1",
    ];
    let text = run(arguments).ok().stdout;
    assert!(text.contains("like yelp at scale 0.001"), "{text}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_bench() {
    use std::io::{BufRead, BufReader};
    let dir = tiny_data("ctrl-c");
    for extra in [&[][..], &["--independent", "--threads", "4"]] {
        let mut child = crate::runner::program()
            .args(["bench", "--repeats", "1000", "--tensor"])
            .arg(dir.join("tensor.train.coo"))
            .args(extra)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Progress on standard error shows that the measurement has started.
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let begun = log.find(|l| l.as_ref().unwrap().starts_with("measuring"));
        assert!(begun.is_some());
        crate::runner::signal(&child, "-INT");
        let rest: Vec<String> = log.map(|l| l.unwrap()).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    }
}

#[test]
fn invalid_bench_arguments_are_rejected() {
    let dir = tiny_data("bad-bench");
    for (extra, word) in [
        (&["--algorithm", "blocked,magic"][..], "magic"),
        (&["--algorithm", ""], "algorithm"),
        (&["--kernel", "sse9"], "sse9"),
        (&["--threads", "1,0"], "threads"),
        (&["--threads", "1,x"], "threads"),
        (&["--threads", "99999"], "threads"),
        (&["--rank", "0"], "rank"),
        (&["--epochs", "0"], "epochs"),
        (&["--repeats", "0"], "repeats"),
        (&["--model", "svd"], "model"),
        (&["--like", "movielens"], "cannot be used with"),
        (&["--scale", "2"], "cannot be used with"),
        (&["--test", "@nothing.coo"], "no such file"),
    ] {
        bench(&dir, extra).failed(2, &[word]);
    }
    for level in Level::ALL.into_iter().filter(|l| !l.is_available()) {
        bench(&dir, &["--kernel", level.name()]).failed(2, &["does not have it"]);
    }
    run(["bench", "--tensor", "no/such.coo"]).failed(2, &["no/such.coo"]);
    run(["bench", "--test", "t.coo"]).failed(2, &["--tensor"]);
    run(["bench", "--like", "amazon"]).failed(2, &["movielens"]);
    run(["bench", "--scale=-1"]).failed(2, &["scale"]);
}
