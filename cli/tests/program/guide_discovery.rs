//! Runs the commands of the guide pages on discovery, batch jobs, the report and the demo.

use std::fs;

use serde_json::Value;

use crate::guide::{assert_in_order, run_page};

#[test]
fn discovery_page() {
    let (dir, ran) = run_page("discovery.md");
    assert_in_order(
        &ran.stdout,
        &[
            "row 8 of mode 1; row 23 of mode 3, 1998-01:\n    1  ",
            "Film ",
            "row 1 of mode 2, Film 0, The (1950):\n    1  0.9",
            "ratings.test.coo: ",
            "model         hit rate ",
            "popularity    hit rate ",
            "choices.s3m: stopped",
            "model         hit rate ",
            "concepts of mode 2 for row 17 of mode 1:",
            "... 4 omitted ...",
            "55 rows of mode 2 in 6 clusters",
            "lift ",
        ],
    );
    let lists = fs::read_to_string(dir.join("lists.csv")).unwrap();
    assert!(
        lists.starts_with("mode1,place,row,row_name,score\n1,1,"),
        "{lists}"
    );
    assert_eq!(lists.lines().count(), 1 + 40 * 10);
    let objects = fs::read_to_string(dir.join("lists.jsonl")).unwrap();
    assert_eq!(objects.lines().count(), 3);
    let clusters = fs::read_to_string(dir.join("clusters.csv")).unwrap();
    assert_eq!(clusters.lines().count(), 1 + 55);
}

#[test]
fn batch_page() {
    let (dir, ran) = run_page("batch.md");
    assert_in_order(
        &ran.stdout,
        &[
            "jobs.batch: 3 jobs: 3 done; 2 threads",
            "\"status\":\"done\"",
            "predict: skipped",
            "jobs.batch: 4 jobs: 1 done, 3 skipped",
            "{\"started\":",
            "{\"summary\":",
        ],
    );
    for output in ["plain.s3m", "genres.s3m", "predictions.coo", "rank-4.s3m"] {
        assert!(dir.join(output).is_file(), "{output}");
    }
    let results = fs::read_to_string(dir.join("ranks/results.jsonl")).unwrap();
    for line in results.lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        assert_eq!(result["status"], "done", "{line}");
    }
    assert_eq!(results.lines().count(), 2);
}

#[test]
fn report_page() {
    let (dir, _) = run_page("report.md");
    let read = |page: &str| fs::read_to_string(dir.join(page)).unwrap();
    // The sections of the table on the guide page.
    let sections = [
        "The data",
        "Convergence",
        "The core",
        "The factor columns",
        "Concepts",
        "Clusters",
        "Speed",
        "Settings",
    ];
    let films = read("films.html");
    assert_in_order(&films, &sections.map(|section| format!("<h2>{section}")));
    assert!(films.contains("Sci-Fi") && films.contains("Film 0, The (1950)"));
    for page in ["report.html", "quick.html"] {
        assert!(read(page).contains("<h2>Clusters"), "{page}");
    }
}

#[test]
fn demo_page() {
    let (dir, ran) = run_page("demo.md");
    assert_in_order(
        &ran.stdout,
        &[
            "mean and biases  ",
            "uncoupled  ",
            "coupled  ",
            "user ",
            "Recommended, without training entries",
            "Film ",
            "The 55 rows of mode 2 (film) in 5 clusters",
            "Comedy",
            "coupled.s3m\n",
            "report.html\n",
        ],
    );
    assert!(!ran.stderr.contains("ignored"), "{}", ran.stderr);
    assert!(dir.join("films-demo/coupled.s3m.mode2.tsv").is_file());
}
