//! The example of README.md runs.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch, workspace_root};
use crate::runner::program;

#[test]
fn the_example_runs() {
    let page = fs::read_to_string(workspace_root().join("reproduction/README.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    // The program is built already.
    let (_, commands) = block.split_once('\n').unwrap();
    let dir = Scratch::new("readme");
    let folder = program().get_program().to_owned();
    let folder = std::path::PathBuf::from(folder);
    let folder = folder.parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("sh")
        .args(["-e", "-c", commands])
        .env("PATH", format!("{folder}:{path}"))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output();
    let ran = ProgramRun::from(ran.unwrap()).ok();
    for part in [
        "accuracy movies: SALS-single: ",
        "iteration-time movies: S3CMTF-opt: ",
    ] {
        assert!(
            ran.stdout.contains(part),
            "{part:?} is not in {}",
            ran.stdout
        );
    }
    // The files of its table.
    for file in [
        "reproduction.md",
        "results.json",
        "results.csv",
        "epochs.csv",
    ] {
        assert!(page.contains(&format!("`{file}`")) && dir.join("measured").join(file).exists());
    }
}
