//! Runs the program, and `fit` on planted data.

use std::process::{Command, Stdio};

use crate::common::{Ran, Scratch};

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_s3cmtf"));
    command.stdin(Stdio::null());
    command
}

/// Runs the program with arguments.
pub fn run<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Ran {
    Ran::from(program().args(arguments).output().unwrap())
}

/// Runs the program with `input` on standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Ran {
    use std::io::Write;
    let mut child = program()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses the start of its input need not read the rest.
    let _ = child.stdin.take().unwrap().write_all(input);
    Ran::from(child.wait_with_output().unwrap())
}

/// Sends a signal to a running program.
#[cfg(unix)]
pub fn signal(child: &std::process::Child, name: &str) {
    let sent = Command::new("kill")
        .arg(name)
        .arg(child.id().to_string())
        .status();
    assert!(sent.unwrap().success());
}

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
