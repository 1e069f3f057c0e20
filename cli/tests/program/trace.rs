//! `--trace` of `fit` and `bench`, and the shares of time in the report.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::trace::SpanKind;
use serde_json::Value;

use crate::common::Scratch;
use crate::runner::{expand_paths, fit_command, generated_data, run, run_command};

/// A span in microseconds.
struct Span {
    name: String,
    start: f64,
    end: f64,
}

/// The spans of each thread of each process, by start; outer spans before inner ones.
type Tracks = BTreeMap<(u64, u64), Vec<Span>>;

/// Reads a trace. Checks that names are those of the documentation and that the spans of a thread nest.
#[track_caller]
fn read_trace(path: &Path) -> (Value, Tracks) {
    let text = fs::read_to_string(path).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let mut tracks = Tracks::new();
    let mut named = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let number = |key: &str| event[key].as_u64().unwrap();
        let track = (number("pid"), number("tid"));
        let name = event["name"].as_str().unwrap();
        if event["ph"] == "M" {
            if name == "thread_name" {
                named.push(track);
            }
            continue;
        }
        assert_eq!(event["ph"], "X", "{event}");
        assert!(SpanKind::ALL.iter().any(|k| k.name() == name), "{name}");
        let (start, duration) = (&event["ts"], &event["dur"]);
        let (start, duration) = (start.as_f64().unwrap(), duration.as_f64().unwrap());
        assert!(start >= 0.0 && duration >= 0.0, "{event}");
        tracks.entry(track).or_default().push(Span {
            name: name.into(),
            start,
            end: start + duration,
        });
    }
    for (track, spans) in &mut tracks {
        assert!(named.contains(track), "{track:?}");
        spans.sort_by(|a, b| a.start.total_cmp(&b.start).then(b.end.total_cmp(&a.end)));
        let mut open: Vec<&Span> = Vec::new();
        for span in spans.iter() {
            // Times are exact to a nanosecond; their sum is rounded.
            open.retain(|outer| outer.end > span.start + 1e-4);
            let fits = open.iter().all(|outer| span.end <= outer.end + 1e-4);
            assert!(fits, "{} at {} of {track:?}", span.name, span.start);
            open.push(span);
        }
    }
    (trace, tracks)
}

/// Returns the length of all spans of a name.
fn total(spans: &[Span], name: &str) -> f64 {
    let named = spans.iter().filter(|s| s.name == name);
    named.map(|s| s.end - s.start).sum()
}

fn parameters(m: &Model) -> Vec<u32> {
    let factors = m.modes().iter().flat_map(|mode| mode.factor.as_slice());
    let columns = m.matrices().iter().flat_map(|m| m.factor.as_slice());
    let all = factors.chain(columns).chain(m.core());
    all.map(|x| x.to_bits()).collect()
}

fn load(dir: &Scratch, name: &str) -> Model {
    model::load(dir.join(name), OpenMode::Private).unwrap()
}

#[test]
fn every_algorithm_has_spans_of_its_threads() {
    let dir = generated_data("trace");
    for (algorithm, threads, expected) in [
        ("blocked", "2", &["block", "merge", "wait"][..]),
        ("opt", "2", &["block"]),
        ("naive", "2", &["block"]),
        ("als", "2", &["rows", "core"]),
        ("gibbs", "1", &["rows"]),
    ] {
        let arguments = [
            "fit",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "3",
            "--algorithm",
            algorithm,
            "--threads",
            threads,
            "--model",
            "tucker",
            "--matrix",
            "2:@matrix1.coo",
            "--test",
            "@tensor.test.coo",
            "--epochs",
            "5",
            "--burn-in",
            "2",
            "--samples",
            "2",
        ];
        let traced = [&arguments[..], &["--trace", "@t.json", "-o", "@t.s3m"]].concat();
        let text = run(expand_paths(&dir, &traced)).ok().stdout;
        assert!(text.contains("t.json: ") && text.contains("initialization"));
        assert!(text.contains("threads during epochs: "), "{text}");
        let (trace, tracks) = read_trace(&dir.join("t.json"));
        assert_eq!(trace["otherData"]["dropped_spans"], 0);
        let calling = &tracks[&(1, 0)];
        for phase in [
            "reading",
            "initialization",
            "epoch",
            "evaluation",
            "completion",
            "saving",
        ] {
            assert!(total(calling, phase) > 0.0, "{algorithm}: {phase}");
        }
        for kind in expected {
            let has_kind = |(track, spans): (&(u64, u64), &Vec<Span>)| {
                track.1 > 0 && spans.iter().any(|s| s.name == *kind)
            };
            assert!(tracks.iter().any(has_kind), "{algorithm}: {kind}");
        }
        // Everything but the moments between phases is covered.
        let (first, last) = (&calling[0], calling.iter().map(|s| s.end));
        let whole = last.fold(0.0, f64::max) - first.start;
        let mut covered = 0.0;
        let mut end = 0.0;
        for span in calling.iter() {
            covered += (span.end - span.start.max(end)).max(0.0);
            end = span.end.max(end);
        }
        assert!(covered > 0.7 * whole, "{algorithm}: {covered} of {whole}");
        // The model is that of a fit without a trace.
        if ["opt", "naive"].contains(&algorithm) {
            continue;
        }
        let plain = [&arguments[..], &["-o", "@p.s3m"]].concat();
        run(expand_paths(&dir, &plain)).ok();
        let (traced, plain) = (load(&dir, "t.s3m"), load(&dir, "p.s3m"));
        assert_eq!(parameters(&traced), parameters(&plain), "{algorithm}");
        let shares = |m: &Model| m.record().outcome.clone().unwrap().thread_shares;
        assert!(shares(&plain).is_empty());
        let sum: f64 = shares(&traced).iter().map(|s| s.1).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
}

#[test]
fn reports_show_where_the_time_went() {
    let dir = generated_data("trace-report");
    let page = |extra: &[&str]| {
        let arguments = [&["--epochs", "3", "-o", "@m.s3m", "--json"], extra].concat();
        let lines = run_command(fit_command(&dir, &arguments)).ok().json();
        run(expand_paths(&dir, &["report", "@m.s3m", "-o", "@r.html"])).ok();
        (lines, fs::read_to_string(dir.join("r.html")).unwrap())
    };
    let (lines, plain) = page(&[]);
    for word in ["Where the time went", "reading", "initialization"] {
        assert!(plain.contains(word), "{word}");
    }
    assert!(!plain.contains("Threads during updates"));
    let summary = &lines.last().unwrap()["summary"];
    let seconds = |key: &str| summary[key].as_f64().unwrap();
    let measured = ["init_seconds", "update_seconds", "eval_seconds"].map(seconds);
    assert!(seconds("read_seconds") > 0.0 && measured.iter().all(|s| *s > 0.0));
    assert!(measured.iter().sum::<f64>() <= seconds("seconds"));
    let (lines, traced) = page(&["--trace", "@t.json"]);
    for word in ["Threads during updates", "blocks", "waiting"] {
        assert!(traced.contains(word), "{word}");
    }
    // The summary stays the last line.
    let trace = &lines[lines.len() - 2];
    assert_eq!(trace["event"], "trace");
    let phases = trace["phases"].as_array().unwrap();
    let epoch = phases.iter().find(|p| p["phase"] == "epoch").unwrap();
    assert!(epoch["seconds"].as_f64() > Some(0.0), "{trace}");
    assert!(epoch["thread_seconds"]["block"].as_f64() > Some(0.0));
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_before_the_fit() {
    let dir = generated_data("trace-errors");
    dir.file("old.json", "old");
    fs::create_dir(dir.join("folder")).unwrap();
    let before = dir.names();
    let inside = format!("{}/./m.s3m", dir.path().display());
    for (path, word) in [
        ("@no/t.json", "its folder does not exist"),
        ("@folder", "is a folder"),
        ("/dev/full", "is a device"),
        ("@m.s3m", "use two files"),
        (&inside, "use two files"),
        ("@c.s3m", "use two files"),
        ("@tensor.train.coo", "would be overwritten"),
        ("@tensor.test.coo", "would be overwritten"),
    ] {
        let arguments = [
            "--test",
            "@tensor.test.coo",
            "--checkpoint",
            "@c.s3m",
            "-o",
            "@m.s3m",
            "--trace",
            path,
        ];
        run_command(fit_command(&dir, &arguments)).failed(2, &[word]);
        assert_eq!(dir.names(), before, "{path}");
    }
    // A fit that fails leaves the earlier file.
    let failing = ["--trace", "@old.json", "--rank", "9999", "-o", "@m.s3m"];
    let failing = expand_paths(&dir, &failing);
    run(
        expand_paths(&dir, &["fit", "--tensor", "@tensor.train.coo"])
            .into_iter()
            .chain(failing),
    )
    .failed(2, &["rank"]);
    assert_eq!(fs::read_to_string(dir.join("old.json")).unwrap(), "old");
    let bench = ["bench", "--tensor", "@tensor.train.coo", "--trace"];
    let with = |path: &'static str| expand_paths(&dir, &[&bench[..], &[path]].concat());
    run(with("@tensor.train.coo")).failed(2, &["would be overwritten"]);
    run(with("@no/t.json")).failed(2, &["its folder does not exist"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_fit_leaves_a_complete_trace() {
    use std::io::{BufRead, BufReader};
    let dir = generated_data("trace-interrupted");
    let arguments = ["--epochs", "1000000", "--json", "-o", "@m.s3m"];
    let mut child = fit_command(&dir, &[&arguments[..], &["--trace", "@t.json"]].concat())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.by_ref().nth(3).unwrap().unwrap();
    crate::runner::signal(&child, "-INT");
    assert!(lines.last().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (_, tracks) = read_trace(&dir.join("t.json"));
    assert!(total(&tracks[&(1, 0)], "saving") > 0.0);
}

#[test]
fn bench_traces_every_fit_as_a_process() {
    let dir = generated_data("trace-bench");
    let arguments = [
        "bench",
        "--tensor",
        "@tensor.train.coo",
        "--rank",
        "3",
        "--algorithm",
        "blocked,opt",
        "--threads",
        "1,2",
        "--repeats",
        "2",
        "--trace",
        "@t.json",
    ];
    let text = run(expand_paths(&dir, &arguments)).ok().stdout;
    assert!(text.contains("threads during epochs: "), "{text}");
    let (trace, tracks) = read_trace(&dir.join("t.json"));
    let events = trace["traceEvents"].as_array().unwrap();
    let names = events.iter().filter(|e| e["name"] == "process_name");
    let names: Vec<&str> = names.map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert!(names[0].starts_with("blocked, ") && names[0].ends_with(", 1 thread"));
    assert!(names[7].starts_with("opt, ") && names[7].ends_with(", 2 threads"));
    for pid in 1..=8 {
        assert!(total(&tracks[&(pid, 1)], "block") > 0.0, "{pid}");
    }
}
