//! Outputs of all commands: a path that cannot be written is an error before the work, a full disk under one output does not cost
//! another, and a standard output that is closed is an error where the result goes there.
//!
//! The tests take commands and outputs from the table of the program (`file_arguments`), so that a new one has to be added here.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch};
#[cfg(target_os = "linux")]
use crate::runner::Mounted;
use crate::runner::{expand_paths, fit_command, generated_data, program, run, run_command};
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf_cli::file_arguments::{COMMANDS, FileUse, ResultPlace};

/// The arguments of a command: options or, without dashes, positional arguments. `@` stands for a folder. Inputs do not exist, so
/// that an error about an output shows that it was found before the work.
fn arguments_of(command: &str) -> Vec<(&'static str, &'static str)> {
    match command {
        "demo" => vec![("--output", "@demo"), ("--data", "@no-data")],
        "convert" => vec![("input", "@no.csv"), ("output", "@o.coo")],
        "check" => vec![("file", "@no.coo"), ("--fix", "@o.coo")],
        "split" => vec![("file", "@no.coo"), ("--output", "@part")],
        "generate" => vec![
            ("--output", "@made"),
            ("--dims", "9,9"),
            ("--entries", "20"),
        ],
        "fit" => vec![
            ("--tensor", "@no.coo"),
            ("--output", "@m.s3m"),
            ("--checkpoint", "@c.s3m"),
            ("--trace", "@t.json"),
        ],
        "tune" => vec![
            ("--tensor", "@no.coo"),
            ("--output", "@best.conf"),
            ("--checkpoint", "@state"),
        ],
        "predict" => vec![
            ("model", "@no.s3m"),
            ("file", "@no.coo"),
            ("--output", "@p.coo"),
        ],
        "export" => vec![("model", "@no.s3m"), ("--output", "@factors")],
        "fold-in" => vec![
            ("model", "@no.s3m"),
            ("--mode", "1"),
            ("--tensor", "@no.coo"),
            ("--output", "@m.s3m"),
        ],
        "report" => vec![("model", "@no.s3m"), ("--output", "@r.html")],
        "batch" => vec![("jobs", "@no.jsonl"), ("--output", "@results")],
        "bench" => vec![("--tensor", "@no.coo"), ("--trace", "@t.json")],
        "man" => vec![("--output", "@pages")],
        other => panic!("{other} has outputs; add its arguments to the test"),
    }
}

/// Returns the command line with another value of an argument.
fn command_line(dir: &Scratch, command: &str, changed: &str, value: &str) -> Vec<String> {
    let mut line = vec![command.to_string()];
    let mut arguments = arguments_of(command);
    // A checkpoint to resume from is another way to name the file.
    if changed == "--resume" {
        arguments.retain(|(name, _)| *name != "--checkpoint");
        arguments.push(("--resume", "@no-state"));
    }
    let mut was_found = false;
    for (name, given) in arguments {
        if name.starts_with("--") {
            line.push(name.into());
        }
        was_found |= name == changed;
        let given = if name == changed { value } else { given };
        line.extend(expand_paths(dir, &[given]));
    }
    assert!(
        was_found || changed.is_empty(),
        "{command} has no {changed} in the test"
    );
    line
}

/// Calls `test` with the command, the name of the argument, and the use of every output of every command.
fn for_each_output(mut test: impl FnMut(&str, &str, FileUse)) {
    let mut count = 0;
    for files in COMMANDS {
        for (id, kind) in files.arguments {
            if matches!(kind, FileUse::Input | FileUse::Names) {
                continue;
            }
            let is_positional = arguments_of(files.command)
                .iter()
                .any(|(name, _)| name == id);
            let name = match is_positional {
                true => id.to_string(),
                false => format!("--{id}"),
            };
            test(files.command, &name, *kind);
            count += 1;
        }
    }
    assert!(count >= 19, "only {count} outputs");
}

#[test]
fn outputs_that_cannot_be_written_are_errors_before_the_work() {
    let dir = Scratch::new("bad-outputs");
    dir.file("file", "kept");
    fs::create_dir(dir.join("folder")).unwrap();
    let long = format!("@{}", "n".repeat(300));
    let mut bad = vec![
        ("-", "write ./-"),
        ("@file/x", "is a file"),
        (&long, "too long"),
    ];
    let mut bad_files = vec![
        ("@folder", "is a folder"),
        ("@folder/", "names a folder"),
        ("@new/", "names a folder"),
        ("@new/.", "names a folder"),
        ("@folder/..", "names a folder"),
        ("@new/x", "its folder does not exist"),
    ];
    let mut bad_folders = vec![("@file", "is no folder")];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("nowhere", dir.join("dangling")).unwrap();
        symlink("loop", dir.join("loop")).unwrap();
        bad_files.push(("@dangling", "without a target"));
        bad_files.push(("@loop", "without a target"));
        bad_folders.push(("@dangling", "without a target"));
        let made = Command::new("mkfifo").arg(dir.join("pipe")).status();
        if made.is_ok_and(|status| status.success()) {
            bad_files.push(("@pipe", "is a device or a pipe"));
        }
        for device in ["/dev/full", "/dev/null"] {
            bad_files.push((device, "is a device or a pipe"));
        }
    }
    bad.push(("@no/such/prefix", "does not exist"));
    let before = dir.names();
    for_each_output(|command, name, kind| {
        let cases: Vec<_> = match kind {
            FileUse::Folder(_) => {
                let general = bad[..3].iter().map(|&(path, words)| match words {
                    "is a file" => (path, "is no folder"),
                    _ => (path, words),
                });
                general.chain(bad_folders.iter().copied()).collect()
            }
            FileUse::Parts => {
                let slashes = ["@folder/", "@new/"].map(|path| (path, "names a folder"));
                bad.iter().copied().chain(slashes).collect()
            }
            _ => bad[..3].iter().chain(&bad_files).copied().collect(),
        };
        for (path, words) in cases {
            let line = command_line(&dir, command, name, path);
            run(&line).failed(2, &[words]);
            assert_eq!(dir.names(), before, "{line:?}");
        }
    });
    assert_eq!(fs::read(dir.join("file")).unwrap(), b"kept");
    assert_eq!(fs::read_dir(dir.join("folder")).unwrap().count(), 0);
}

#[test]
fn failed_commands_leave_nothing_behind() {
    let dir = Scratch::new("nothing-left");
    for files in COMMANDS {
        let has_outputs = files
            .arguments
            .iter()
            .any(|(_, kind)| *kind != FileUse::Input);
        if !has_outputs || ["generate", "man"].contains(&files.command) {
            continue;
        }
        let line = command_line(&dir, files.command, "", "");
        run(&line).failed(2, &["/no"]);
        assert!(dir.names().is_empty(), "{line:?} left {:?}", dir.names());
    }
    // Work that fails on the way.
    let generate = ["generate", "-o", "@a/b", "--dims", "9,9", "--entries", "20"];
    let overflowing = [&generate[..], &["--deviation", "1e300"]].concat();
    run(expand_paths(&dir, &overflowing)).failed(2, &[]);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn inputs_are_not_replaced_by_outputs() {
    let dir = Scratch::new("same-file");
    dir.file("garbage", "neither data nor a model\n");
    fs::hard_link(dir.join("garbage"), dir.join("other-name")).unwrap();
    for_each_output(|command, name, kind| {
        if matches!(kind, FileUse::Folder(_) | FileUse::Parts) {
            return;
        }
        let files = COMMANDS.iter().find(|c| c.command == command).unwrap();
        for (input, _) in files
            .arguments
            .iter()
            .filter(|(_, kind)| *kind == FileUse::Input)
        {
            let is_positional = arguments_of(command).iter().any(|(name, _)| name == input);
            let value = match *input {
                "matrix" if command != "clusters" => "1:@garbage",
                "graph" | "rows_of" => "1:@garbage",
                _ => "@garbage",
            };
            let mut line = command_line(&dir, command, name, "@garbage");
            let value = expand_paths(&dir, &[value]).remove(0);
            let no_input = format!("{}/no", dir.path().display());
            match is_positional {
                // The first of them is the file.
                true => {
                    let at = line.iter().position(|word| word.starts_with(&no_input));
                    line[at.unwrap()] = value;
                }
                false => {
                    let option = format!("--{}", input.replace('_', "-"));
                    match line.iter().position(|word| *word == option) {
                        Some(at) => line[at + 1] = value,
                        None => line.extend([option, value]),
                    }
                }
            }
            if line.iter().any(|word| word == "--rows-of") {
                line.extend(["--columns".into(), "id".into()]);
            }
            run(&line).failed(2, &["is read by this command"]);
        }
    });
    assert_eq!(dir.names(), ["garbage", "other-name"]);
    assert_eq!(
        fs::read(dir.join("garbage")).unwrap(),
        b"neither data nor a model\n"
    );
}

#[test]
fn two_outputs_are_two_files() {
    let dir = Scratch::new("two-outputs");
    for (command, first, second) in [
        ("fit", "--output", "--checkpoint"),
        ("fit", "--output", "--trace"),
        ("fit", "--checkpoint", "--trace"),
        ("fit", "--resume", "--trace"),
        ("tune", "--output", "--checkpoint"),
    ] {
        let mut line = command_line(&dir, command, first, "@same");
        let at = line.iter().position(|word| word == second).unwrap();
        line[at + 1] = format!("{}/./same", dir.path().display());
        run(&line).failed(2, &["use two files"]);
    }
    // Names of rows are written beside the model.
    let line = command_line(&dir, "fit", "--trace", "@m.s3m.mode1.tsv");
    run(&line).failed(2, &["use two files"]);
    assert!(dir.names().is_empty());
}

/// Runs the program as a user without privileges, where tests run as root; `None` otherwise.
#[cfg(target_os = "linux")]
fn run_as_nobody(dir: &Scratch, line: &[String]) -> Option<ProgramRun> {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    // The program itself may be in a folder that other users cannot enter.
    let copy = dir.join("program");
    if !copy.exists() {
        fs::copy(env!("CARGO_BIN_EXE_s3cmtf"), &copy).unwrap();
    }
    let mut command = Command::new(copy);
    command
        .args(line)
        .stdin(Stdio::null())
        .uid(NOBODY)
        .gid(NOBODY);
    command.output().ok().map(ProgramRun::from)
}

#[cfg(target_os = "linux")]
#[test]
fn outputs_without_permission_are_errors_before_the_work() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Scratch::new("permission");
    let set_mode = |name: &str, mode: u32| {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("", 0o777);
    for (folder, mode) in [("locked", 0o555), ("sticky", 0o1777)] {
        fs::create_dir(dir.join(folder)).unwrap();
        set_mode(folder, mode);
    }
    dir.file("sticky/theirs", "theirs");
    let probe = command_line(&dir, "man", "--output", "@locked/pages");
    let Some(probe) = run_as_nobody(&dir, &probe) else {
        println!("skipped: another user needs root privileges");
        return;
    };
    probe.failed(1, &["ermission denied"]);
    for_each_output(|command, name, kind| {
        let line = command_line(&dir, command, name, "@locked/new");
        let denied = run_as_nobody(&dir, &line).unwrap();
        denied.failed(1, &["locked", "ermission denied"]);
        if !matches!(kind, FileUse::Folder(_) | FileUse::Parts) {
            let line = command_line(&dir, command, name, "@sticky/theirs");
            let denied = run_as_nobody(&dir, &line).unwrap();
            denied.failed(2, &["belongs to another user"]);
        }
    });
    assert_eq!(fs::read(dir.join("sticky/theirs")).unwrap(), b"theirs");
}

#[cfg(target_os = "linux")]
#[test]
fn outputs_that_the_file_system_refuses_are_errors_before_the_work() {
    let dir = Scratch::new("refused");
    let read_only = ["-t", "tmpfs", "-o", "ro", "tmpfs"];
    let Some(_mounted) = Mounted::new(&dir, "read-only", &read_only) else {
        return;
    };
    for name in ["source", "mount-point", "fixed"] {
        dir.file(name, "theirs");
    }
    let source = dir.join("source").display().to_string();
    let _bound = Mounted::on(dir.join("mount-point"), &["--bind", &source]).unwrap();
    let set_fixed = |flag: &str| {
        let mut command = Command::new("chattr");
        command
            .arg(flag)
            .arg(dir.join("fixed"))
            .stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    let is_fixed = set_fixed("+i");
    for_each_output(|command, name, kind| {
        let line = command_line(&dir, command, name, "@read-only/new");
        run(&line).failed(1, &["read-only/new", "ead-only file system"]);
        if matches!(kind, FileUse::Folder(_) | FileUse::Parts) {
            return;
        }
        let line = command_line(&dir, command, name, "@mount-point");
        run(&line).failed(2, &["mount point"]);
        if is_fixed {
            let line = command_line(&dir, command, name, "@fixed");
            run(&line).failed(1, &["fixed", "not permitted"]);
        }
    });
    set_fixed("-i");
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_if_they_are_named() {
    use std::os::unix::fs::symlink;
    let dir = generated_data("links");
    fs::create_dir(dir.join("real")).unwrap();
    let precious = |name: &str| dir.file(&format!("real/{name}"), "precious");
    // An output that is a link, and names of rows beside it that are links.
    dir.file("w.csv", "user,item,v\nann,x,1\nbob,y,2\nann,y,3\n");
    for name in ["o.coo", "m.s3m"] {
        symlink(precious(name), dir.join(name)).unwrap();
    }
    let companions = [
        "o.mode1.tsv",
        "o.mode2.tsv",
        "m.s3m.mode1.tsv",
        "m.s3m.matrix1.tsv",
    ];
    for name in companions {
        symlink(precious(name), dir.join(name)).unwrap();
    }
    run(expand_paths(&dir, &["convert", "@w.csv", "@o.coo"])).ok();
    dir.file("g.csv", "item,tag,v\nx,a,1\ny,b,1\n");
    let genres = ["convert", "@g.csv", "@g.coo", "--names", "1:@o.mode2.tsv"];
    run(expand_paths(&dir, &genres)).ok();
    let fit = [
        "fit",
        "--tensor=@o.coo",
        "--matrix=2:@g.coo:1",
        "--rank=1",
        "--epochs=1",
    ];
    run(expand_paths(&dir, &[&fit[..], &["-o@m.s3m"]].concat())).ok();
    for name in ["o.coo", "m.s3m"] {
        assert!(fs::symlink_metadata(dir.join(name)).unwrap().is_symlink());
        assert_ne!(fs::read(dir.join("real").join(name)).unwrap(), b"precious");
    }
    for name in companions {
        let meta = fs::symlink_metadata(dir.join(name)).unwrap();
        assert!(meta.is_file(), "{name}");
        assert_eq!(fs::read(dir.join("real").join(name)).unwrap(), b"precious");
        assert!(
            fs::symlink_metadata(dir.join(&format!("{name}.old")))
                .unwrap()
                .is_symlink()
        );
    }
    // Files in a folder, and parts with a prefix, are not named either. A link in their place is found before the work.
    for (command, folder, link) in [
        (
            &["generate", "--dims", "9,9", "--entries", "20", "-o", "@d"][..],
            "d",
            "tensor.train.coo",
        ),
        (
            &["generate", "--dims", "9,9", "--entries", "20", "-o", "@e"],
            "e",
            "truth",
        ),
        (&["export", "@m.s3m", "-o", "@f"], "f", "CORETENSOR"),
        (&["export", "@m.s3m", "-o", "@g"], "g", "factor2.npy"),
        (&["man", "-o", "@h"], "h", "s3cmtf-fit.1"),
        (&["batch", "@jobs", "-o", "@i"], "i", "results.jsonl"),
        (&["demo", "-o", "@k"], "k", "report.html"),
        (
            &["split", "@tensor.train.coo", "-o", "@l/p"],
            "l",
            "p.test.coo",
        ),
    ] {
        dir.file("jobs", "");
        fs::create_dir(dir.join(folder)).unwrap();
        symlink(precious(link), dir.join(folder).join(link)).unwrap();
        let is_report = command.contains(&"report");
        run(expand_paths(&dir, command)).failed(2, &[link, "is a symbolic link"]);
        assert_eq!(
            fs::read(dir.join("real").join(link)).unwrap(),
            b"precious",
            "{command:?}"
        );
        let left: Vec<_> = fs::read_dir(dir.join(folder))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert!(left.len() == 1 || is_report, "{command:?} left {left:?}");
    }
}

/// A disk that is too small for a model, with a batch of one fit.
#[cfg(target_os = "linux")]
fn with_full_disk(name: &str) -> Option<(Scratch, Mounted)> {
    let dir = generated_data(name);
    let disk = Mounted::new(&dir, "full", &["-t", "tmpfs", "-o", "size=4k", "tmpfs"])?;
    Some((dir, disk))
}

#[cfg(target_os = "linux")]
fn epochs_of(path: &Path) -> u64 {
    let model = model::load(path, OpenMode::Private).unwrap();
    model.history().last().unwrap().epoch
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_one_output_of_a_fit_does_not_cost_another() {
    let Some((dir, _disk)) = with_full_disk("full-fit") else {
        return;
    };
    let fit = |more: &[&str]| run_command(fit_command(&dir, &[&["--epochs", "4"], more].concat()));
    // Checkpoints: one warning, the number in the summary, the exit code at the end.
    let ran = fit(&["--checkpoint", "@full/c.s3m", "-o", "@m.s3m"]);
    let ran = ran.failed(1, &["cannot write", "c.s3m", "No space left"]);
    assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("4 checkpoints not written"),
        "{}",
        ran.stdout
    );
    assert_eq!(epochs_of(&dir.join("m.s3m")), 4);
    let info = run(expand_paths(&dir, &["info", "@m.s3m"])).ok();
    assert!(
        info.stdout.contains("could not be written"),
        "{}",
        info.stdout
    );
    let ran = fit(&["--checkpoint", "@full/c.s3m", "--json", "-o", "@m.s3m"]);
    let summary = ran.json().pop().unwrap();
    assert_eq!(summary["summary"]["failed_checkpoints"], 4);
    // The model: the checkpoint has the fit.
    let ran = fit(&[
        "--checkpoint",
        "@c.s3m",
        "--trace",
        "@t.json",
        "-o",
        "@full/m.s3m",
    ]);
    ran.failed(1, &["full/m.s3m", "No space left", "--resume"]);
    assert_eq!(epochs_of(&dir.join("c.s3m")), 4);
    assert!(dir.join("t.json").exists());
    run_command(fit_command(
        &dir,
        &["--epochs", "4", "--resume", "@c.s3m", "-o", "@r.s3m"],
    ))
    .ok();
    assert_eq!(epochs_of(&dir.join("r.s3m")), 4);
    // The trace.
    fs::remove_file(dir.join("m.s3m")).unwrap();
    let ran = fit(&["--trace", "@full/t.json", "-o", "@m.s3m"]);
    let ran = ran.failed(1, &["full/t.json", "No space left"]);
    assert!(
        ran.stdout.contains("stopped (epochs) after 4 epochs"),
        "{}",
        ran.stdout
    );
    assert_eq!(epochs_of(&dir.join("m.s3m")), 4);
    // Standard output.
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = fit_command(&dir, &["--epochs", "4", "-o", "@s.s3m"]);
    ProgramRun::from(command.stdout(full).output().unwrap()).failed(1, &["standard output"]);
    assert_eq!(epochs_of(&dir.join("s.s3m")), 4);
    assert!(fs::read_dir(dir.join("full")).unwrap().next().is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_state_of_a_search_does_not_cost_its_result() {
    let Some((dir, _disk)) = with_full_disk("full-tune") else {
        return;
    };
    // The state of many trials takes more than the disk has.
    dir.file("full/filler", vec![0; 4096]);
    let tune = [
        "tune",
        "--tensor=@tensor.train.coo",
        "--trials=3",
        "--epochs=2",
        "--rank=2",
    ];
    let outputs = ["--checkpoint=@full/state", "-o@best.conf"];
    let ran = run(expand_paths(&dir, &[&tune[..], &outputs].concat()));
    ran.failed(1, &["warning:", "full/state", "No space left"]);
    assert!(
        fs::read_to_string(dir.join("best.conf"))
            .unwrap()
            .contains("rank=")
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_folder_of_a_batch_does_not_cost_the_outputs() {
    let Some((dir, _disk)) = with_full_disk("full-batch") else {
        return;
    };
    let job = |id: &str, checkpoint: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","tensor":"@tensor.train.coo",{checkpoint}"output":"@{id}.s3m","options":{{"rank":2,"epochs":3}}}}"#
        )
    };
    let lines = [
        job("a", ""),
        job("b", ""),
        job("c", r#""checkpoint":"@full/c.s3m","#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    dir.file("jobs.jsonl", expand_paths(&dir, &lines).join("\n"));
    let ran = run(expand_paths(
        &dir,
        &["batch", "@jobs.jsonl", "-o", "@full/results"],
    ));
    let ran = ran.failed(1, &["No space left", "files beside"]);
    assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
    for id in ["a", "b", "c"] {
        assert_eq!(epochs_of(&dir.join(&format!("{id}.s3m"))), 3);
    }
    // What could not be written completely is not there at all: the next run reads the journal, and does what it does not know.
    fs::remove_file(dir.join("a.s3m")).unwrap();
    let again = run(expand_paths(
        &dir,
        &["batch", "@jobs.jsonl", "-o", "@full/results"],
    ));
    assert_eq!(again.code, Some(1), "{}{}", again.stdout, again.stderr);
    assert!(dir.join("a.s3m").exists());
    // Only a checkpoint.
    let ran = run(expand_paths(
        &dir,
        &["batch", "@jobs.jsonl", "-o", "@other"],
    ));
    let ran = ran.failed(1, &["c.s3m", "3 checkpoints failed"]);
    assert!(ran.stdout.contains("3 done"), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn a_file_size_limit_is_an_error_and_leaves_nothing() {
    let dir = generated_data("size-limit");
    let limited = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "ulimit -f 4; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_s3cmtf"),
        ]);
        ProgramRun::from(
            command
                .args(expand_paths(&dir, arguments))
                .output()
                .unwrap(),
        )
    };
    let before = dir.names();
    limited(&["convert", "@tensor.train.coo", "@o.coo"]).failed(1, &["o.coo", "File too large"]);
    assert_eq!(dir.names(), before);
    let fit = [
        "fit",
        "--tensor=@tensor.train.coo",
        "--rank=3",
        "--epochs=2",
        "-o@m.s3m",
    ];
    limited(&fit).failed(1, &["m.s3m", "File too large"]);
    assert_eq!(dir.names(), before);
}

#[test]
fn commands_with_the_same_output_leave_a_complete_file() {
    let dir = generated_data("same-output");
    dir.file("tensor.mode1.tsv", "index\tname\n1\tfirst\n");
    let before = dir.names();
    let start = |seed: usize| {
        let seed = seed.to_string();
        let mut command = fit_command(&dir, &["--epochs", "2", "--seed", &seed, "-o", "@m.s3m"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..4).map(start).collect();
    for child in running {
        ProgramRun::from(child.wait_with_output().unwrap()).ok();
    }
    model::load(dir.join("m.s3m"), OpenMode::Private).unwrap();
    let made: Vec<_> = dir
        .names()
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    assert_eq!(made, ["m.s3m", "m.s3m.mode1.tsv"]);
}

/// Command lines that succeed, of all commands. `@` stands for the folder, `@made` for a new one.
fn successful(command: &str) -> Vec<&'static [&'static str]> {
    match command {
        "demo" => vec![&["demo", "--data", "@set", "-o", "@made"]],
        "convert" => vec![&["convert", "@tensor.train.coo", "@made.coo"]],
        "check" => vec![
            &["check", "@tensor.train.coo"],
            &["check", "@tensor.train.coo", "--fix", "@made.coo"],
        ],
        "info" => vec![&["info", "@tensor.train.coo"], &["info", "@m.s3m"]],
        "split" => vec![&["split", "@tensor.train.coo", "-o", "@made"]],
        "generate" => vec![&[
            "generate",
            "--dims",
            "9,9",
            "--entries",
            "20",
            "-o",
            "@made",
        ]],
        "fit" => vec![&[
            "fit",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "2",
            "--epochs",
            "3",
            "-o",
            "@made.s3m",
        ]],
        "tune" => vec![&[
            "tune",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "2",
            "--epochs",
            "2",
            "--trials",
            "2",
            "-o",
            "@made.conf",
        ]],
        "eval" => vec![&["eval", "@m.s3m", "@tensor.test.coo"]],
        "predict" => vec![
            &["predict", "@m.s3m", "@tensor.test.coo"],
            &["predict", "@m.s3m", "@tensor.test.coo", "-o", "@made.coo"],
        ],
        "export" => vec![&["export", "@m.s3m", "-o", "@made"]],
        "fold-in" => vec![&[
            "fold-in",
            "@m.s3m",
            "--mode",
            "1",
            "--tensor",
            "@tensor.test.coo",
            "--replace",
            "-o",
            "@made.s3m",
        ]],
        "recommend" => vec![&["recommend", "@m.s3m", "--mode", "2", "--for", "1:1"]],
        "similar" => vec![&["similar", "@m.s3m", "--for", "2:1"]],
        "concepts" => vec![&["concepts", "@m.s3m", "--mode", "2"]],
        "clusters" => vec![&["clusters", "@m.s3m", "--mode", "2", "-k", "2"]],
        "report" => vec![&["report", "@m.s3m", "--max-k", "0", "-o", "@made.html"]],
        "batch" => vec![&["batch", "@jobs.jsonl", "-o", "@made"]],
        "bench" => vec![&[
            "bench",
            "--tensor",
            "@tensor.train.coo",
            "--rank",
            "2",
            "--epochs",
            "1",
            "--repeats",
            "1",
            "--threads",
            "1",
            "--algorithm",
            "blocked",
        ]],
        "completions" => vec![&["completions", "bash"]],
        "man" => vec![&["man", "-o", "@made"]],
        other => panic!("add a command line of {other} to the test"),
    }
}

#[cfg(unix)]
#[test]
fn closed_standard_output_is_an_error_where_the_result_goes_there() {
    let dir = generated_data("closed-output");
    run_command(fit_command(&dir, &["--epochs", "2", "-o", "@m.s3m"])).ok();
    let jobs =
        r#"{"job":"predict","model":"@m.s3m","file":"@tensor.test.coo","output":"@made.job.coo"}"#;
    dir.file("jobs.jsonl", expand_paths(&dir, &[jobs]).concat());
    fs::create_dir(dir.join("set")).unwrap();
    for (from, to) in [("train", "train"), ("test", "test")] {
        fs::copy(
            dir.join(&format!("tensor.{from}.coo")),
            dir.join(&format!("set/tensor.{to}.coo")),
        )
        .unwrap();
    }
    let made = || {
        dir.names()
            .into_iter()
            .filter(|name| name.starts_with("made"))
            .collect::<Vec<_>>()
    };
    let clear = || {
        for name in made() {
            let path = dir.join(&name);
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    };
    let run_closed = |line: &[String], is_pipe: bool| {
        let program_name = env!("CARGO_BIN_EXE_s3cmtf");
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" >&-", "sh", program_name]);
        if is_pipe {
            command = program();
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            command.stdout(writer);
        }
        ProgramRun::from(
            command
                .args(line)
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
                .wait_with_output()
                .unwrap(),
        )
    };
    for files in COMMANDS {
        for arguments in successful(files.command) {
            let line = expand_paths(&dir, arguments);
            let prints = match files.result {
                ResultPlace::Files => false,
                ResultPlace::StandardOutput => true,
                ResultPlace::StandardOutputUnless(option) => {
                    assert_eq!(option, "output");
                    !line.contains(&"-o".to_string())
                }
            };
            run(&line).ok();
            let expected = made();
            assert!(prints || !expected.is_empty(), "{line:?}");
            clear();
            for is_pipe in [false, true] {
                for json in [false, true] {
                    let mut line = line.clone();
                    line.extend(json.then(|| "--json".to_string()));
                    let ran = run_closed(&line, is_pipe);
                    if prints || json {
                        ran.failed(1, &["standard output"]);
                    } else {
                        ran.ok();
                    }
                    // The files are complete in any case.
                    assert_eq!(made(), expected, "{line:?}");
                    clear();
                }
            }
        }
    }
}
