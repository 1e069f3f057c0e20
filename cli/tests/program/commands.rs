//! `convert`, `info`, `check`, and behaviour that all commands share: help, pipes, signals, permissions, full disks.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch, gzip};
#[cfg(target_os = "linux")]
use crate::runner::Mounted;
use crate::runner::{program, run, run_with_input};

#[test]
fn text_ids_are_numbered_and_their_names_kept() {
    let dir = Scratch::new("words");
    let train = dir.file(
        "ratings.csv",
        "user,film,month,stars\nann,\"Heat, 1995\",2024-01,4\nbob,Alien,2024-02,5\nann,Alien,2024-02,3\nann,Amélie,2024-01,1\n",
    );
    let coo = dir.join("ratings.coo");
    let made = run([
        "convert".as_ref(),
        train.as_os_str(),
        coo.as_os_str(),
        "--json".as_ref(),
    ])
    .ok();
    let made = &made.json()[0];
    assert_eq!(made["dims"], serde_json::json!([2, 3, 2]));
    assert_eq!(made["names"][1]["count"], 3);
    assert_eq!(
        fs::read_to_string(dir.join("ratings.mode2.tsv")).unwrap(),
        "index\tname\n1\tHeat, 1995\n2\tAlien\n3\tAmélie\n"
    );
    // `info` finds and prints the names.
    let info = run([Path::new("info"), &coo]).ok().stdout;
    assert!(info.contains("longest: row 1 (ann) with 3"), "{info}");
    assert!(info.contains("longest: row 2 (Alien) with 2"), "{info}");
    let parts = run([
        "split".as_ref(),
        coo.as_os_str(),
        "--test".as_ref(),
        "0.25".as_ref(),
    ])
    .ok();
    assert!(
        parts.stdout.contains("ratings.train.coo: 3 entries"),
        "{}",
        parts.stdout
    );
    let info = run([
        "info".as_ref(),
        dir.join("ratings.train.coo").as_os_str(),
        "--json".as_ref(),
    ])
    .ok();
    assert!(info.json()[0]["modes"][1]["longest"]["name"].is_string());

    // A second file with the same ids in another order, and a new id.
    let genres = dir.file(
        "genres.csv",
        "film,genre\nAlien,horror\nHeat,crime\n\"Heat, 1995\",crime\n",
    );
    let names = format!("1:{}", dir.join("ratings.mode2.tsv").display());
    let genres_coo = dir.join("genres.coo");
    run([
        "convert".as_ref(),
        genres.as_os_str(),
        genres_coo.as_os_str(),
        "--no-value".as_ref(),
        "--names".as_ref(),
        names.as_ref(),
    ])
    .ok();
    let back = dir.join("genres.tns");
    run([Path::new("convert"), &genres_coo, &back]).ok();
    assert_eq!(fs::read_to_string(back).unwrap(), "2 1 1\n4 2 1\n1 2 1\n");
    run([Path::new("info"), &genres, Path::new("--no-value")]).ok();
}

#[test]
fn numeric_ids_can_be_read_as_text() {
    let dir = Scratch::new("numbers");
    let file = dir.file(
        "t.csv",
        "user,item,value\n900719925474099301,7,1\n900719925474099302,7,2\n",
    );
    let coo = dir.join("t.coo");
    run([
        "convert".as_ref(),
        file.as_os_str(),
        coo.as_os_str(),
        "--strings".as_ref(),
        "user".as_ref(),
    ])
    .ok();
    assert_eq!(dir.names(), ["t.coo", "t.csv", "t.mode1.tsv"]);
    run([
        "convert".as_ref(),
        file.as_os_str(),
        coo.as_os_str(),
        "--strings".as_ref(),
        "all".as_ref(),
    ])
    .ok();
    assert_eq!(
        dir.names(),
        ["t.coo", "t.csv", "t.mode1.tsv", "t.mode2.tsv"]
    );
}

#[test]
fn all_formats_and_standard_input_give_the_same_file() {
    let dir = Scratch::new("stdin");
    let text = "1 2 3 0.25\n4 1 2 -7\n";
    let tns = dir.file("a.tns", text);
    let expected = {
        let out = dir.join("a.coo");
        run([Path::new("convert"), &tns, &out]).ok();
        fs::read(out).unwrap()
    };
    let out = dir.join("o.coo");
    let csv = "a,b,c,value\n1,2,3,0.25\n4,1,2,-7\n";
    for (input, arguments) in [
        (text.as_bytes().to_vec(), vec![]),
        (gzip(text.as_bytes()), vec![]),
        (csv.as_bytes().to_vec(), vec![]),
        (gzip(csv.as_bytes()), vec!["--from", "csv"]),
        (csv.replace(',', "\t").into_bytes(), vec!["--from", "tsv"]),
    ] {
        let mut all = vec!["convert", "-", out.to_str().unwrap()];
        all.extend(arguments);
        run_with_input(&all, &input).ok();
        assert_eq!(fs::read(&out).unwrap(), expected);
        fs::remove_file(&out).unwrap();
    }
    // A round trip through 64-bit values.
    let (wide, narrow) = (dir.join("w.coo"), dir.join("n.coo"));
    run([
        "convert".as_ref(),
        tns.as_os_str(),
        wide.as_os_str(),
        "--values".as_ref(),
        "f64".as_ref(),
    ])
    .ok();
    assert_ne!(fs::read(&wide).unwrap(), expected);
    // A binary file keeps its value kind unless another is requested.
    run([Path::new("convert"), &wide, &narrow]).ok();
    assert_eq!(fs::read(&narrow).unwrap(), fs::read(&wide).unwrap());
    run([
        "convert".as_ref(),
        wide.as_os_str(),
        narrow.as_os_str(),
        "--values".as_ref(),
        "f32".as_ref(),
    ])
    .ok();
    assert_eq!(fs::read(&narrow).unwrap(), expected);
}

#[test]
fn info_describes_a_file() {
    let dir = Scratch::new("info");
    let file = dir.file("t.tns", "1 1 2\n1 2 4\n1 3 6\n4 1 8\n");
    let text = run([Path::new("info"), &file]).ok().stdout;
    for part in [
        "order 2, 4 x 3 (the largest indices)",
        "4 entries, density 0.333333 (1 cell in 3)",
        "values 2 to 8, mean 5, standard deviation 2.23607\n",
        "mode 1: 2 of 4 rows used, 2 entries each on average",
        "longest: row 1 with 3",
        "2 to 3 | ######",
    ] {
        assert!(text.contains(part), "{text} lacks {part:?}");
    }
    let json = &run([Path::new("info"), &file, Path::new("--json")])
        .ok()
        .json()[0];
    assert_eq!(json["modes"][0]["histogram"][1]["rows"], 1);
    assert_eq!(json["values"]["mean"], 5.0);
    let empty = dir.file("e.tns", "# none\n");
    let text = run([
        "info".as_ref(),
        empty.as_os_str(),
        "--dims".as_ref(),
        "3,3".as_ref(),
    ])
    .ok()
    .stdout;
    assert!(text.contains("0 entries"), "{text}");
}

#[test]
fn check_reports_and_fixes_invalid_entries() {
    let dir = Scratch::new("check");
    let file = dir.file("t.tns", "1 1 1\n2 2 2\n1 1 4\n3 2 1\n1 1 7\n");
    let found = run([Path::new("check"), &file]);
    assert_eq!(found.code, Some(2));
    for part in [
        "ok  structure",
        "BAD duplicates: 1 cell listed more than once, 2 surplus entries; --fix OUT merges them",
        "(1, 1): entry 1 = 1, entry 3 = 4, entry 5 = 7",
        "mode 1: 0 of 3 rows are empty",
    ] {
        assert!(
            found.stdout.contains(part),
            "{} lacks {part:?}",
            found.stdout
        );
    }
    let json = run([Path::new("check"), &file, Path::new("--json")]);
    assert_eq!(json.code, Some(2));
    assert_eq!(json.json()[0]["duplicates"]["surplus"], 2);
    for (keep, value) in [("mean", "4"), ("first", "1"), ("last", "7")] {
        let (out, back) = (dir.join("f.coo"), dir.join("f.tns"));
        run([
            "check".as_ref(),
            file.as_os_str(),
            "--fix".as_ref(),
            out.as_os_str(),
            "--keep".as_ref(),
            keep.as_ref(),
        ])
        .ok();
        run([Path::new("check"), &out]).ok();
        run([Path::new("convert"), &out, &back]).ok();
        let text = fs::read_to_string(&back).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.lines().any(|l| l == format!("1 1 {value}")),
            "{keep}: {text}"
        );
    }
}

#[test]
fn help_and_version_are_printed() {
    let help = run(["--help"]).ok().stdout;
    for command in [
        "demo", "convert", "check", "info", "split", "generate", "report", "bench",
    ] {
        assert!(help.contains(command), "{help}");
        assert!(run([command, "--help"]).ok().stdout.contains("Usage"));
    }
    assert_eq!(
        run(["--version"]).ok().stdout,
        format!("s3cmtf {}\n", s3cmtf::VERSION)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_standard_output_exits_with_1() {
    let dir = Scratch::new("full-stdout");
    let file = dir.file("t.tns", "1 1 1\n");
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let out = program()
        .arg("info")
        .arg(&file)
        .stdout(full)
        .output()
        .unwrap();
    ProgramRun::from(out).failed(1, &["standard output"]);
    // A device as the output is rejected, not replaced.
    run(["convert".as_ref(), file.as_os_str(), "/dev/full".as_ref()])
        .failed(2, &["/dev/full", "device"]);
    run(["convert".as_ref(), file.as_os_str(), dir.path().as_os_str()]).failed(2, &["is a folder"]);
    run([Path::new("convert"), &file, &dir.join("no/such/o.coo")])
        .failed(2, &["folder does not exist"]);
}

/// Returns more text than all buffers of the pipe hold, so that the program must have started reading.
fn long_text() -> Vec<u8> {
    (0..1_200_000u32)
        .flat_map(|i| format!("{} {} 1.5\n", i + 1, i % 1000 + 1).into_bytes())
        .collect()
}

#[cfg(unix)]
fn interrupted(signal: &str) -> (Option<i32>, Vec<String>) {
    let dir = Scratch::new(&format!("signal{signal}"));
    fs::write(dir.join("o.coo"), "what was there before").unwrap();
    let mut child = program()
        .args(["convert", "-", dir.join("o.coo").to_str().unwrap()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&long_text()).unwrap();
    // The pipe stays open, so the program waits for more input when the signal arrives.
    crate::runner::signal(&child, signal);
    let status = child.wait().unwrap();
    drop(stdin);
    assert_eq!(
        fs::read_to_string(dir.join("o.coo")).unwrap(),
        "what was there before"
    );
    (status.code(), dir.names())
}

#[cfg(unix)]
#[test]
fn ctrl_c_during_conversion_leaves_no_files() {
    for signal in ["-INT", "-TERM"] {
        let (code, names) = interrupted(signal);
        assert_eq!(
            (code, names),
            (Some(130), vec!["o.coo".to_string()]),
            "{signal}"
        );
    }
}

#[cfg(unix)]
#[test]
fn killed_conversion_leaves_no_output_file() {
    let (code, names) = interrupted("-KILL");
    assert_eq!(code, None);
    // A killed program cannot clean up; only hidden temporary files may remain.
    assert!(
        names
            .iter()
            .all(|n| n == "o.coo" || (n.starts_with('.') && n.ends_with(".tmp"))),
        "{names:?}"
    );
}

#[cfg(unix)]
#[test]
fn folder_without_write_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let dir = Scratch::new("permission");
    let file = dir.file("t.tns", "1 1 1\n");
    let closed = dir.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write anywhere, so a copy of the program runs as user nobody.
    let root = fs::write(closed.join("probe"), "").is_ok();
    let copy = dir.join("program");
    fs::copy(env!("CARGO_BIN_EXE_s3cmtf"), &copy).unwrap();
    let mut command = Command::new(&copy);
    if root {
        command.uid(65534).gid(65534);
    }
    command.arg("convert").arg(&file).arg(closed.join("o.coo"));
    // Child processes that other tests fork meanwhile may hold the copy open for writing until they call exec.
    let out = loop {
        match command.output() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            out => break out.unwrap(),
        }
    };
    ProgramRun::from(out).failed(1, &["o.coo", "no file can be made in", "ermission denied"]);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_and_leaves_no_files() {
    let dir = Scratch::new("disk-full");
    let small = dir.join("small");
    let tmpfs = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"];
    let Some(_mounted) = Mounted::new(&dir, "small", &tmpfs) else {
        return;
    };
    let text: String = (1..60_000)
        .map(|i| format!("{i} {} 1.5\n", i % 1000 + 1))
        .collect();
    let file = dir.file("t.tns", text);
    let coo = dir.join("t.coo");
    run([Path::new("convert"), &file, &coo]).ok();
    let left = |what: &str| {
        let names: Vec<_> = fs::read_dir(&small)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert!(names.is_empty(), "{what}: {names:?}");
    };
    for (what, arguments) in [
        ("convert text", vec!["convert", file.to_str().unwrap()]),
        ("convert binary", vec!["convert", coo.to_str().unwrap()]),
        ("fix", vec!["check", coo.to_str().unwrap(), "--fix"]),
    ] {
        let out = small.join("o.coo");
        let mut all = arguments;
        all.push(out.to_str().unwrap());
        run(&all).failed(1, &["cannot write", "o.coo", "No space left"]);
        left(what);
    }
    run([
        "split".as_ref(),
        coo.as_os_str(),
        "-o".as_ref(),
        small.join("p").as_os_str(),
    ])
    .failed(1, &["cannot write", "No space left"]);
    left("split");
    run([
        "generate",
        "-o",
        small.to_str().unwrap(),
        "--dims",
        "1000,1000",
        "--entries",
        "50000",
    ])
    .failed(1, &["cannot write", "No space left"]);
    left("generate");
}
