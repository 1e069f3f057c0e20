//! Running `fit` on planted data.
#![cfg(feature = "cli")]

use std::process::Command;

use super::{Ran, Scratch, program, run};

/// A folder with planted data.
pub fn data(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    run([
        "generate",
        "-o",
        dir.path().to_str().unwrap(),
        "--dims",
        "60,50,8",
        "--entries",
        "6000",
        "--rank",
        "3",
        "--noise",
        "0.1",
        "--test",
        "0.2",
        "--matrix",
        "2:6:full",
        "--skew",
        "0.5",
    ])
    .ok();
    dir
}

/// `fit` on that data, with further arguments; words that start with @ are files of the folder.
pub fn fit(dir: &Scratch, extra: &[&str]) -> Command {
    let mut command = program();
    command.args(words(
        dir,
        &[
            "fit",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "3",
            "--threads",
            "1",
        ],
    ));
    command.args(words(dir, extra));
    command
}

pub fn words(dir: &Scratch, list: &[&str]) -> Vec<String> {
    list.iter()
        .map(|a| a.replace('@', &format!("{}/", dir.path().display())))
        .collect()
}

pub fn finished(mut command: Command) -> Ran {
    Ran::from(command.output().unwrap())
}
