//! Inputs that never end: devices and pipes. What a command keeps in memory is read up to a limit, and the message says which.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, generated_data, run, run_command};

/// Memory that a command may use, in KiB. It exceeds the limits of files.
const MEMORY: &str = "1500000";

/// Commands that read a whole file, with what the error says of a device. `%` is the endless input and `@` the folder of the data.
const COMMANDS: [(&[&str], &str); 14] = [
    (
        &["fit", "--tensor=@t.coo", "-o@f.s3m", "--config=%"],
        "longer than 1 MiB",
    ),
    (
        &["fit", "--tensor=@t.coo", "-o@f.s3m", "--plan=%"],
        "longer than 1 MiB",
    ),
    (
        &["tune", "--tensor=@t.coo", "-o@f.conf", "--config=%"],
        "longer than 1 MiB",
    ),
    (
        &[
            "recommend",
            "@m.s3m",
            "--mode=2",
            "--for=1:1",
            "--names=1:%",
        ],
        "longer than 256 MiB",
    ),
    (
        &["recommend", "@m.s3m", "--mode=2", "--for=1:@%"],
        "longer than 256 MiB",
    ),
    (
        &["recommend", "@m.s3m", "--mode=2", "--for=1:1", "--only=%"],
        "longer than 256 MiB",
    ),
    (
        &["recommend", "@m.s3m", "--mode=2", "--for=1:1", "--not=%"],
        "longer than 256 MiB",
    ),
    (
        &["similar", "@m.s3m", "--for=1:1", "--names=1:%"],
        "longer than 256 MiB",
    ),
    (
        &["concepts", "@m.s3m", "--mode=2", "--matrix-names=1:%"],
        "longer than 256 MiB",
    ),
    (
        &[
            "clusters",
            "@m.s3m",
            "--mode=2",
            "--matrix=@matrix1.coo",
            "--matrix-names=1:%",
        ],
        "longer than 256 MiB",
    ),
    (
        &["report", "@m.s3m", "-o@r.html", "--matrix-names=1:%"],
        "longer than 256 MiB",
    ),
    (
        &["convert", "@t.csv", "@c.coo", "--names=1:%"],
        "longer than 256 MiB",
    ),
    (
        &["fit", "--tensor=@t.csv", "-o@f.s3m", "--names=1:%"],
        "longer than 256 MiB",
    ),
    (&["batch", "%", "-o@batch"], "is it a file of jobs?"),
];

fn data() -> Scratch {
    let dir = generated_data("endless");
    let fit = [
        "fit",
        "--tensor=@tensor.train.coo",
        "--matrix=2:@matrix1.coo",
        "-o@m.s3m",
        "--rank=2",
        "--epochs=1",
    ];
    run(expand_paths(&dir, &fit)).ok();
    std::fs::copy(dir.join("tensor.train.coo"), dir.join("t.coo")).unwrap();
    dir.file("t.csv", "user,film,stars\na,b,1\na,c,2\nb,b,3\n");
    dir
}

/// Returns the command that runs the program with an input in place of `%`, and a limit of memory.
fn limited(dir: &Scratch, arguments: &[&str], input: &Path) -> Command {
    let arguments = arguments.iter().map(|a| match a.contains('%') {
        // A list of rows in a file begins with @.
        true => a.replace('%', input.to_str().unwrap()),
        false => expand_paths(dir, &[a]).remove(0),
    });
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {MEMORY} && exec \"$@\"");
    command
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_s3cmtf")])
        .args(arguments)
        .stdin(Stdio::null())
        .env("MALLOC_ARENA_MAX", "1");
    command
}

#[test]
fn devices_that_never_end_are_refused_at_a_limit() {
    let dir = data();
    for (arguments, words) in COMMANDS {
        let output = dir.join("batch");
        let arguments: Vec<String> = arguments
            .iter()
            .map(|a| a.replace("-o@batch", &format!("-o{}", output.display())))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = run_command(limited(&dir, &arguments, Path::new("/dev/zero")));
        done.failed(2, &["/dev/zero", words]);
    }
    // Lines of random bytes, few of which are long.
    let arguments = ["fit", "--tensor=@t.coo", "-o@f.s3m", "--config=%"];
    let done = run_command(limited(&dir, &arguments, Path::new("/dev/urandom")));
    done.failed(2, &["/dev/urandom: is longer than 1 MiB"]);
    let batch = format!("-o{}", dir.join("random").display());
    let done = run_command(limited(
        &dir,
        &["batch", "%", &batch],
        Path::new("/dev/urandom"),
    ));
    done.failed(2, &["1000 lines", "is the input a list of jobs?"]);
}

/// Runs a command whose input is a named pipe that repeats a line for ever.
fn with_endless_pipe(dir: &Scratch, line: &str, arguments: &[&str]) -> ProgramRun {
    let pipe = dir.join("pipe");
    let _ = std::fs::remove_file(&pipe);
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut writer = Command::new("sh")
        .args(["-c", "exec yes \"$1\" > \"$2\"", "sh", line])
        .arg(&pipe)
        .spawn()
        .unwrap();
    let done = run_command(limited(dir, arguments, &pipe));
    // It ends when the pipe has no reader.
    writer.wait().unwrap();
    done
}

#[test]
fn pipes_that_never_end_are_refused_at_a_limit() {
    let dir = data();
    let fit = ["fit", "--tensor=@t.coo", "-o@f.s3m", "--config=%"];
    with_endless_pipe(&dir, "epochs=1", &fit).failed(2, &["longer than 1 MiB"]);
    let names = ["similar", "@m.s3m", "--for=1:1", "--names=1:%"];
    let words = [
        "longer than 256 MiB",
        "of a device or a pipe",
        "write it to a file",
    ];
    with_endless_pipe(&dir, "1\tname", &names).failed(2, &words);
    let batch = format!("-o{}", dir.join("batch").display());
    let batch = ["batch", "%", &batch];
    with_endless_pipe(&dir, "{}", &batch).failed(2, &["line 1001", "1000 lines"]);
    let results = std::fs::read_to_string(dir.join("batch/results.jsonl")).unwrap();
    assert_eq!(results.lines().count(), 1000);
}

#[test]
fn results_of_a_batch_in_a_device_are_refused() {
    let dir = data();
    std::fs::create_dir(dir.join("batch")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join("batch/started.jsonl")).unwrap();
    dir.file("jobs.jsonl", "");
    let arguments = expand_paths(&dir, &["batch", "@jobs.jsonl", "-o", "@batch"]);
    run(arguments).failed(2, &["started.jsonl: is a symbolic link"]);
}
