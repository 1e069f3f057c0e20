//! Runs the program, and `fit` on generated data.

use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch};

/// The program of the package whose tests these are.
const PROGRAM: &str = match option_env!("CARGO_BIN_EXE_s3cmtf") {
    Some(program) => program,
    None => match option_env!("CARGO_BIN_EXE_s3cmtf-reproduction") {
        Some(program) => program,
        None => panic!("tests of no program"),
    },
};

/// Returns a command for the program, without standard input.
pub fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::null());
    command
}

/// Runs the program with arguments.
pub fn run<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> ProgramRun {
    ProgramRun::from(program().args(arguments).output().unwrap())
}

/// Runs the program with `input` on standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> ProgramRun {
    use std::io::Write;
    let mut child = program()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that rejects the start of its input need not read the rest.
    let _ = child.stdin.take().unwrap().write_all(input);
    ProgramRun::from(child.wait_with_output().unwrap())
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

/// Generates a tensor with test entries and a matrix in a temporary folder.
pub fn generated_data(name: &str) -> Scratch {
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

/// Returns a command that fits that data, with further arguments. `@` stands for the folder.
pub fn fit_command(dir: &Scratch, extra: &[&str]) -> Command {
    let mut command = program();
    command.args(expand_paths(
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
    command.args(expand_paths(dir, extra));
    command
}

/// Replaces `@` in arguments by the folder.
pub fn expand_paths(dir: &Scratch, list: &[&str]) -> Vec<String> {
    list.iter()
        .map(|a| a.replace('@', &format!("{}/", dir.path().display())))
        .collect()
}

/// Runs a command to its end.
pub fn run_command(mut command: Command) -> ProgramRun {
    ProgramRun::from(command.output().unwrap())
}

/// A file system that is mounted for a test.
#[cfg(target_os = "linux")]
pub struct Mounted(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Mounted {
    /// Mounts on a new folder; `None` without the privilege.
    pub fn new(dir: &Scratch, name: &str, arguments: &[&str]) -> Option<Mounted> {
        let path = dir.join(name);
        std::fs::create_dir(&path).unwrap();
        Mounted::on(path, arguments)
    }

    /// Mounts on an existing file or folder.
    pub fn on(path: std::path::PathBuf, arguments: &[&str]) -> Option<Mounted> {
        let mut command = Command::new("mount");
        command.args(arguments).arg(&path).stderr(Stdio::null());
        if command.status().is_ok_and(|s| s.success()) {
            return Some(Mounted(path));
        }
        println!("skipped: nothing can be mounted here (it needs root)");
        None
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
