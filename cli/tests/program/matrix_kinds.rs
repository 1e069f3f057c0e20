//! `fit --matrix MODE:FILE:KIND`: observed, full and sampled matrices.

use crate::common::Scratch;
use crate::runner::run;

#[test]
fn matrix_kind_is_parsed_and_stored() {
    let dir = Scratch::new("full-cli");
    let mut text = String::new();
    for i in 1..=200 {
        text += &format!("{} {} {}\n", i % 20 + 1, i % 9 + 1, (i % 7) as f64 * 0.5);
    }
    let tensor = dir.file("x.tns", text);
    let genres = dir.file("g.tns", "1 1 1\n2 3 1\n5 2 1\n9 3 1\n");
    let model = dir.join("m.s3m");
    let fit = |ending: &str, json: bool| {
        let matrix = format!("2:{}{ending}", genres.display());
        let mut words = vec!["fit", "--preset", "paper", "--rank", "2", "--epochs", "2"];
        words.extend(["--tensor", tensor.to_str().unwrap(), "--matrix", &matrix]);
        words.extend(["-o", model.to_str().unwrap()]);
        words.extend(json.then_some("--json"));
        run(words)
    };
    let info = || run(["info", model.to_str().unwrap()]).ok().stdout;
    for (ending, kind) in [
        ("", "observed matrix with 3 columns"),
        (":observed", "observed matrix with 3 columns"),
        (":full", "full matrix with 3 columns"),
        (":1:full", "full matrix with 3 columns"),
        (":1:0.5:full", "full matrix with 3 columns"),
        (":0.5:sampled=2", "sampled=2 matrix with 3 columns"),
        (":sampled:1", "sampled=1 matrix with 3 columns"),
    ] {
        let ran = fit(ending, false).ok();
        let warned =
            ran.stderr.contains("warning: ") && ran.stderr.contains("carries no information");
        assert_eq!(
            warned,
            kind.starts_with("observed"),
            "{ending} {}",
            ran.stderr
        );
        assert!(info().contains(kind), "{ending}: {}", info());
    }
    let events = fit("", true).ok().json();
    let warning = |e: &&serde_json::Value| e["event"] == "warning";
    let warning = events.iter().find(warning).expect("a warning");
    assert!(
        warning["text"]
            .as_str()
            .unwrap()
            .contains("carries no information")
    );
    fit(":sampled", false).failed(2, &["sampled=5"]);
    fit(":sampled=0", false).failed(2, &["0 zeros", "1 or more"]);
    let twice = dir.file("g.tns", "1 1 1\n2 3 1\n1 1 1\n");
    assert_eq!(twice, genres);
    fit(":full", false).failed(2, &["entry 3", "same row and column as entry 1"]);
}
