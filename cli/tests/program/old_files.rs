//! Files that version 0.1 wrote: `info` describes them, and a fit resumes from a checkpoint.

use crate::common::{Scratch, workspace_root};
use crate::runner::run;

fn fixture(name: &str) -> String {
    let path = workspace_root().join("tests/fixtures/0.1").join(name);
    path.to_str().unwrap().to_string()
}

#[test]
fn info_lists_options_that_no_longer_exist() {
    let shown = run(["info", &fixture("model.s3m")]).ok().stdout;
    assert!(shown.contains("no longer exist"), "{shown}");
    assert!(shown.contains("attempts=2") && shown.contains("mode_steps=auto"));
    run(["info", &fixture("tensor.coo")]).ok();
    run(["check", &fixture("matrix.coo")]).ok();
}

/// Their record has no times of phases.
#[test]
fn report_on_a_model_of_0_1_has_no_shares_of_time() {
    let dir = Scratch::new("old-report");
    let page = dir.join("r.html");
    let output = page.to_str().unwrap();
    run(["report", &fixture("model.s3m"), "-o", output]).ok();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Update time") && !page.contains("Where the time went"));
}

/// Three epochs of version 0.1 and two of this one predict what five epochs of version 0.1 did.
#[test]
fn fit_resumes_from_a_checkpoint_of_0_1() {
    let dir = Scratch::new("old-checkpoint");
    let out = dir.join("resumed.s3m");
    let out = out.to_str().unwrap();
    let tensor = fixture("tensor.coo");
    let matrix = format!("1:{}", fixture("matrix.coo"));
    let mut words = vec!["fit", "--tensor", &tensor, "--matrix", &matrix, "-o", out];
    // A resumed fit writes its checkpoints to the same file.
    let saved = std::fs::read(fixture("checkpoint.s3m")).unwrap();
    let checkpoint = dir.file("checkpoint.s3m", saved).display().to_string();
    words.extend(["--resume", &checkpoint, "--preset", "paper", "--rank", "2"]);
    words.extend(["--epochs", "5", "--seed", "7", "--threads", "1"]);
    words.extend(["--kernel", "scalar"]);
    run(words).ok();
    let numbers = |text: &str| -> Vec<f64> {
        let last = |line: &str| line.split(' ').next_back().unwrap().parse().unwrap();
        text.lines().map(last).collect()
    };
    let resumed = numbers(&run(["predict", out, &tensor]).ok().stdout);
    let recorded = std::fs::read_to_string(fixture("model.predictions.txt")).unwrap();
    let recorded = numbers(&recorded);
    assert_eq!(resumed.len(), recorded.len());
    for (resumed, recorded) in resumed.iter().zip(&recorded) {
        assert!((resumed - recorded).abs() < 1e-5, "{resumed} {recorded}");
    }
}
