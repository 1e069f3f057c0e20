//! `s3cmtf report`

use s3cmtf::format::OpenMode;
use s3cmtf::model;

use crate::common::{ProgramRun, Scratch};
use crate::runner::{program, run};
use crate::sample_reports::check_html;

#[test]
fn command_in_the_report_reproduces_the_model() {
    let dir = Scratch::new("report-cli");
    run([
        "generate",
        "-o",
        dir.path().to_str().unwrap(),
        "--dims",
        "60,40,6",
        "--entries",
        "3000",
        "--rank",
        "3",
        "--noise",
        "0.3",
        "--test",
        "0.2",
        "--matrix",
        "2:8:full:ones=0.3",
        "--seed",
        "5",
    ])
    .ok();
    let name = |f: &str| dir.join(f).display().to_string();
    let (model, page) = (name("first.s3m"), name("it's <a> page.html"));
    let coupled = format!("2:{}:0.7", name("matrix1.coo"));
    run([
        "fit",
        "--tensor",
        &name("tensor.train.coo"),
        "--matrix",
        &coupled,
        "--epochs",
        "5",
        "--threads",
        "2",
        "--seed",
        "9",
        "-o",
        &model,
    ])
    .ok();
    let ran = run([
        "report",
        &model,
        "--data",
        &name("tensor.train.coo"),
        "--test",
        &name("tensor.test.coo"),
        "--matrix",
        &coupled,
        "--modes",
        "user,film,month",
        "--max-k",
        "3",
        "--json",
        "-o",
        &page,
    ])
    .ok();
    assert_eq!(ran.json()[0]["output"], page);
    let text = std::fs::read_to_string(&page).unwrap();
    assert_eq!(ran.json()[0]["bytes"], text.len());
    let all = check_html("cli", &text);
    let command = text
        .split("<pre>")
        .nth(1)
        .unwrap()
        .split("</pre>")
        .next()
        .unwrap();
    let command = check_html("command", &format!("<!DOCTYPE html>{command}<p></p>")).replacen(
        "s3cmtf",
        env!("CARGO_BIN_EXE_s3cmtf"),
        1,
    );
    let command = command.replace("-o model.s3m", &format!("-o {}", name("again.s3m")));
    let shell = std::process::Command::new("sh")
        .arg("-c")
        .arg(&command)
        .output()
        .unwrap();
    ProgramRun::from(shell).ok();
    let read = |f: &str| model::load(f, OpenMode::Private).unwrap();
    let (first, again) = (read(&model), read(&name("again.s3m")));
    assert_eq!(first.core(), again.core(), "{command}");
    for (a, b) in first.modes().iter().zip(again.modes()) {
        assert_eq!(a.factor.as_slice(), b.factor.as_slice(), "{command}");
    }
    assert!(all.contains("user") && all.contains("matrix 1"));
    // The report never overwrites its inputs.
    run(["report", &model, "-o", &model]).failed(2, &["would be overwritten"]);
    let names = dir.file("names.tsv", "1\tone\n");
    let names = names.to_str().unwrap();
    for (option, spec) in [("--names", "2:"), ("--matrix-names", "1:")] {
        let spec = format!("{spec}{names}");
        run(["report", &model, option, &spec, "-o", names]).failed(2, &["would be overwritten"]);
    }
    run(["report", &model, "-o", &name("no/such.html")]).failed(2, &["folder does not exist"]);
    // An existing folder in which no files can be created, even by root.
    #[cfg(target_os = "linux")]
    {
        let words = ["cannot write /proc/x", "no file can be made in /proc"];
        let ran = run(["report", &model, "-o", "/proc/x"]).failed(1, &words);
        assert!(!ran.stderr.contains("does not exist"), "{}", ran.stderr);
    }
    run(["report", &name("tensor.train.coo"), "-o", &page]).failed(2, &["model"]);
    run(["report", &model, "--matrix-names", "4:x", "-o", &page]).failed(2, &["there is 1 matrix"]);
    run(["report", &model, "--modes", "user,film", "-o", &page])
        .failed(2, &["--modes user,film: 2 names", "the model has 3 modes"]);
    // Entries that are not the training entries give a warning.
    let others = name("tensor.test.coo");
    let base = ["report", &model, "--max-k", "0", "-o", &page, "--data"];
    let ran = run(base.iter().chain(&[others.as_str()])).ok();
    for word in ["tensor.test.coo has 600 entries", "fitted to 2,400"] {
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    let ran = run(base.iter().chain(&[name("matrix1.coo").as_str()]));
    assert!(!ran.failed(2, &["has 2 modes"]).stderr.contains("entries"));
    let ran = run(base.iter().chain(&[name("tensor.train.coo").as_str()])).ok();
    assert_eq!(ran.stderr, "");
    assert_eq!(
        program().arg("report").output().unwrap().status.code(),
        Some(2)
    );
}
