//! Files are not lost, overwritten, mixed up or misread.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{program, run, run_with_input};
use s3cmtf::format::{CooFile, OpenMode};

/// Replaces `@` at the start of arguments by the folder.
fn args<'a>(list: &[&'a str], dir: &'a Scratch) -> Vec<String> {
    list.iter()
        .map(|a| match a.strip_prefix('@') {
            Some(name) => dir.join(name).to_str().unwrap().to_string(),
            None => a.to_string(),
        })
        .collect()
}

#[test]
fn damaged_file_is_not_rewritten_with_valid_checksums() {
    let dir = Scratch::new("launder");
    dir.file("a.tns", "1 1 1\n2 2 2\n3 1 5\n");
    run(args(&["convert", "@a.tns", "@a.coo"], &dir)).ok();
    let mut bytes = fs::read(dir.join("a.coo")).unwrap();
    // A changed value, which only the checksum detects.
    let at = bytes.len() - 2;
    bytes[at] ^= 0x10;
    dir.file("bad.coo", bytes);
    for list in [
        ["convert", "@bad.coo", "@o.coo", "--values=f64"],
        ["convert", "@bad.coo", "@o.tns", "--json"],
        ["split", "@bad.coo", "-o", "@o"],
        ["check", "@bad.coo", "--fix", "@o.coo"],
    ] {
        run(args(&list, &dir)).failed(2, &["bad.coo", "values do not match their checksum"]);
    }
    assert_eq!(dir.names(), ["a.coo", "a.tns", "bad.coo"]);
    // The report is printed even if the file cannot be fixed.
    let found = run(args(&["check", "@bad.coo", "--fix", "@o.coo"], &dir));
    assert!(found.stdout.contains("BAD checksums"), "{}", found.stdout);
}

#[test]
fn input_is_never_overwritten_by_its_output() {
    let dir = Scratch::new("same");
    let text = "a,b,value\nx,1,1\ny,2,2\n";
    dir.file("t.csv", text);
    dir.file("t.mode1.tsv", text.replace(',', "\t"));
    dir.file("t.tns", "1 1 1\n1 1 2\n");
    dir.file("t.dat", "1 1 1\n");
    fs::hard_link(dir.join("t.dat"), dir.join("link")).unwrap();
    run(args(&["convert", "@t.csv", "@t.csv"], &dir)).failed(2, &["t.csv", "is read by"]);
    run(args(&["convert", "@t.dat", "@t.dat"], &dir)).failed(2, &["t.dat", "is read by"]);
    run(args(&["convert", "@t.tns", "@t.tns"], &dir)).failed(2, &["t.tns", "is read by"]);
    run(args(&["convert", "@t.mode1.tsv", "@t.coo"], &dir))
        .failed(2, &["t.mode1.tsv", "is read by"]);
    run(args(&["check", "@t.tns", "--fix", "@t.tns"], &dir)).failed(2, &["t.tns", "is read by"]);
    for output in ["@o.tns.gz", "@o.csv", "@o.tsv", "@o.mtx"] {
        run(args(&["convert", "@t.tns", output], &dir)).failed(2, &["the output is binary"]);
    }
    assert_eq!(fs::read_to_string(dir.join("t.csv")).unwrap(), text);
    assert_eq!(
        fs::read_to_string(dir.join("t.tns")).unwrap(),
        "1 1 1\n1 1 2\n"
    );
    // A split must not overwrite its input.
    let many: String = (1..=20).map(|i| format!("{i} 1 1\n")).collect();
    dir.file("many.tns", many);
    run(args(&["convert", "@many.tns", "@s.train.coo"], &dir)).ok();
    run(args(&["split", "@s.train.coo", "-o", "@s"], &dir))
        .failed(2, &["s.train.coo", "is read by"]);
    run(args(&["info", "@s.train.coo"], &dir)).ok();
    assert!(!dir.join("s.test.coo").exists());
    // A binary file may be fixed in place, since it is replaced atomically.
    run(args(&["convert", "@t.tns", "@b.coo"], &dir)).ok();
    run(args(&["check", "@b.coo", "--fix", "@b.coo"], &dir)).ok();
    run(args(&["check", "@b.coo"], &dir)).ok();
}

#[test]
fn names_are_copied_with_their_data_only() {
    let dir = Scratch::new("names");
    dir.file("w.csv", "user,item,v\nann,x,1\nbob,y,2\nann,y,3\n");
    dir.file("n.tns", "1 1 1\n2 2 2\n");
    run(args(&["convert", "@w.csv", "@w.coo"], &dir)).ok();
    let named = |file: &str| {
        run(args(&["info", file], &dir))
            .ok()
            .stdout
            .contains("(ann)")
    };
    assert!(named("@w.coo"));
    run(args(
        &["convert", "@w.coo", "@copy.coo", "--values", "f64"],
        &dir,
    ))
    .ok();
    run(args(&["check", "@w.coo", "--fix", "@fixed.coo"], &dir)).ok();
    run(args(
        &["split", "@w.coo", "--test", "0.34", "-o", "@part"],
        &dir,
    ))
    .ok();
    for file in ["@copy.coo", "@fixed.coo", "@part.train.coo"] {
        assert!(named(file), "{file}");
    }
    // New data without names under the same path: the old names are renamed.
    run(args(&["convert", "@n.tns", "@w.coo"], &dir)).ok();
    assert!(!named("@w.coo"));
    assert!(!dir.join("w.mode1.tsv").exists());
    // A file in another format stays.
    dir.file("w.mode1.tsv", "index\ttitle\textra\n1\tToy\tx\n");
    run(args(&["convert", "@n.tns", "@w.coo"], &dir)).ok();
    assert!(dir.join("w.mode1.tsv").exists());
}

#[test]
fn outputs_of_earlier_runs_are_removed() {
    let dir = Scratch::new("leftovers");
    let text: String = (1..=100)
        .map(|i| format!("{i} {} 1\n", i % 7 + 1))
        .collect();
    dir.file("t.tns", text);
    run(args(
        &["split", "@t.tns", "--test", "0.2", "--valid", "0.2"],
        &dir,
    ))
    .ok();
    run(args(&["split", "@t.tns", "--test", "0.2"], &dir))
        .failed(2, &["t.valid.coo", "earlier split"]);
    let generate = |extra: &[&str]| {
        let base = ["generate", "-o", "@g", "--dims", "9,9,9", "--entries", "50"];
        run(args(&[&base[..], extra].concat(), &dir))
    };
    generate(&["--test", "0.2", "--matrix", "1:4"]).ok();
    generate(&["--test", "0.2", "--matrix", "1:4", "--seed", "2"]).ok();
    generate(&["--test", "0.2"]).failed(2, &["matrix1.coo", "earlier data"]);
    generate(&["--matrix", "1:4"]).failed(2, &["tensor.test.coo", "earlier data"]);
    generate(&["--test", "0.2", "--matrix", "1:4", "--no-truth"]).failed(2, &["factor1.npy"]);
}

#[test]
fn inferred_sizes_stay_inferred() {
    let dir = Scratch::new("inferred");
    let text: String = (1..=50).map(|i| format!("{i} {} 1\n", i % 7 + 1)).collect();
    dir.file("t.tns", text);
    run(args(&["convert", "@t.tns", "@t.coo"], &dir)).ok();
    run(args(&["split", "@t.coo", "--test", "0.2"], &dir)).ok();
    run(args(&["check", "@t.coo", "--fix", "@f.coo"], &dir)).ok();
    run(args(&["convert", "@t.coo", "@c.coo"], &dir)).ok();
    for name in ["t.coo", "t.train.coo", "t.test.coo", "f.coo", "c.coo"] {
        let file = CooFile::open(dir.join(name), OpenMode::Mapped).unwrap();
        assert!(file.header().dims_inferred, "{name}");
        assert_eq!(file.header().dims, [50, 7], "{name}");
    }
    run(args(
        &["convert", "@t.coo", "@s.coo", "--dims", "60,7"],
        &dir,
    ))
    .ok();
    assert!(
        !CooFile::open(dir.join("s.coo"), OpenMode::Mapped)
            .unwrap()
            .header()
            .dims_inferred
    );
}

#[test]
fn text_options_are_rejected_for_binary_files() {
    let dir = Scratch::new("binary-options");
    dir.file("t.tns", "1 1 1\n");
    run(args(&["convert", "@t.tns", "@t.coo"], &dir)).ok();
    for option in [
        &["--zero-based"][..],
        &["--no-value"],
        &["--weighted"],
        &["--from", "tns"],
        &["--columns", "a"],
    ] {
        run(args(&[&["info", "@t.coo"], option].concat(), &dir)).failed(2, &["t.coo", "is binary"]);
        run(args(
            &[&["convert", "@t.coo", "@o.coo"], option].concat(),
            &dir,
        ))
        .failed(2, &["is binary"]);
    }
    run(args(&["info", "@t.coo", "--dims", "5,5"], &dir)).failed(2, &["has sizes [1, 1]"]);
}

#[test]
fn every_command_reads_standard_input() {
    let dir = Scratch::new("dash");
    let text = b"1 1 1\n2 2 2\n3 3 3\n4 4 4\n5 5 5\n";
    assert!(
        run_with_input(&["info", "-"], text)
            .ok()
            .stdout
            .contains("5 entries")
    );
    run_with_input(&["check", "-"], text).ok();
    let tns = dir.join("o.tns");
    run_with_input(&["convert", "-", tns.to_str().unwrap()], text).ok();
    assert_eq!(fs::read(tns).unwrap(), text);
    let prefix = dir.join("p");
    run_with_input(&["split", "-", "-o", prefix.to_str().unwrap()], text).ok();
    assert!(dir.join("p.train.coo").exists());
}

#[cfg(unix)]
#[test]
fn named_pipe_is_opened_once() {
    let dir = Scratch::new("fifo");
    let fifo = dir.join("pipe");
    if !Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .is_ok_and(|s| s.success())
    {
        println!("skipped: no mkfifo");
        return;
    }
    for round in 0..5 {
        let child = program()
            .args([
                "convert",
                fifo.to_str().unwrap(),
                dir.join("o.coo").to_str().unwrap(),
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        fs::write(&fifo, format!("1 {} 1\n", round + 1)).unwrap();
        ProgramRun::from(child.wait_with_output().unwrap()).ok();
    }
}

/// Starts the program on a pipe fed with `text`, interrupts it once, and waits for its end.
#[cfg(unix)]
fn interrupt(dir: &Scratch, arguments: &[&str], text: &[u8]) -> Option<i32> {
    let mut child = program()
        .args(args(arguments, dir))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text).unwrap();
    crate::runner::signal(&child, "-INT");
    // Input continues to arrive in whole lines; one signal must be enough.
    let some = &text[..text.len().min(4096)];
    let lines = &some[..some.iter().rposition(|&b| b == b'\n').unwrap() + 1];
    while stdin.write_all(lines).is_ok() {}
    child.wait().unwrap().code()
}

#[cfg(unix)]
#[test]
fn one_ctrl_c_ends_every_command() {
    let dir = Scratch::new("one");
    // More than all buffers hold, so that the program has started when the signal arrives.
    let comments = b"# nothing but comments\n".repeat(400_000);
    assert_eq!(
        interrupt(&dir, &["convert", "-", "@o.coo"], &comments),
        Some(130)
    );
    let lines = b"1 1 1\n".repeat(1_200_000);
    assert_eq!(interrupt(&dir, &["info", "-"], &lines), Some(130));
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn generated_values_are_finite_and_all_positions_can_be_filled() {
    let dir = Scratch::new("limits");
    let generate =
        |name: &str, list: &[&str]| run(args(&[&["generate", "-o", name], list].concat(), &dir));
    // All positions but one, in short rows: sampling must not request more entries than a row has positions.
    generate(
        "@a",
        &[
            "--dims",
            "1000000,2",
            "--entries",
            "1999999",
            "--rank",
            "1",
            "--no-truth",
        ],
    )
    .ok();
    generate(
        "@b",
        &["--dims", "100,3", "--entries", "299", "--rank", "1"],
    )
    .ok();
    generate(
        "@c",
        &["--dims", "100,3", "--entries", "300", "--rank", "1"],
    )
    .ok();
    for name in [
        "@a/tensor.train.coo",
        "@b/tensor.train.coo",
        "@c/tensor.train.coo",
    ] {
        run(args(&["check", name], &dir)).ok();
    }
    let small = ["--dims", "20,20,20", "--entries", "500"];
    for extra in [
        &["--deviation", "1e300"][..],
        &["--factor-mean", "1e300"],
        &["--noise", "1e308", "--deviation", "2", "--values", "f64"],
    ] {
        let out = generate("@d", &[&small[..], extra].concat());
        assert_eq!(out.code, Some(2), "{extra:?}: {}", out.stderr);
        assert!(!dir.join("d/tensor.train.coo").exists());
    }
    generate("@e", &[&small[..], &["--mean", "-3"]].concat()).ok();
    generate(
        "@f",
        &[&small[..], &["--model", "cp", "--rank", "500"]].concat(),
    )
    .ok();
    let out = generate("@g", &[&small[..], &["--threads", "1000000"]].concat());
    out.failed(2, &["threads = 1000000"]);
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_standard_error_is_ignored() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let out = program()
        .args(["info", "no-such-file"])
        .stderr(full)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(!Path::new("no-such-file").exists());
}

/// Writes a copy of a binary file with one bit changed in its last section, which only a checksum detects.
fn damage(from: &Path, to: &Path) {
    let mut bytes = fs::read(from).unwrap();
    let at = bytes.len() - 2;
    bytes[at] ^= 0x10;
    fs::write(to, bytes).unwrap();
}

#[test]
fn damaged_binary_file_is_rejected_by_every_command_that_reads_entries() {
    let dir = crate::runner::generated_data("damaged");
    let fit = [
        "fit",
        "--tensor",
        "@tensor.train.coo",
        "--matrix",
        "2:@matrix1.coo",
        "--rank=2",
        "--epochs=1",
        "-o",
        "@m.s3m",
    ];
    let expand = |list: &[&str]| crate::runner::expand_paths(&dir, list);
    run(expand(&fit)).ok();
    let damaged = |name: &str| damage(&dir.join(name), &dir.join(&format!("bad.{name}")));
    ["tensor.train.coo", "tensor.test.coo", "matrix1.coo"]
        .into_iter()
        .for_each(damaged);
    let train = ["fit", "--rank=2", "--epochs=1", "-o@n.s3m", "--tensor"];
    let cases: [&[&str]; 18] = [
        &[&train[..], &["@bad.tensor.train.coo"]].concat(),
        &[
            &train[..],
            &["@tensor.train.coo", "--matrix", "2:@bad.matrix1.coo"],
        ]
        .concat(),
        &[
            &train[..],
            &["@tensor.train.coo", "--graph", "2:@bad.matrix1.coo"],
        ]
        .concat(),
        &[
            &train[..],
            &["@tensor.train.coo", "--test", "@bad.tensor.test.coo"],
        ]
        .concat(),
        &[
            &train[..],
            &["@tensor.train.coo", "--valid", "@bad.tensor.test.coo"],
        ]
        .concat(),
        &[
            &train[..],
            &["@tensor.train.coo", "--weights", "@bad.tensor.train.coo"],
        ]
        .concat(),
        &[
            "tune",
            "--tensor",
            "@bad.tensor.train.coo",
            "--trials=2",
            "-o@t.conf",
        ],
        &["eval", "@m.s3m", "@bad.tensor.test.coo"],
        &[
            "eval",
            "@m.s3m",
            "@tensor.test.coo",
            "--mode=2",
            "--exclude",
            "@bad.tensor.train.coo",
        ],
        &["predict", "@m.s3m", "@bad.tensor.test.coo"],
        &[
            "fold-in",
            "@m.s3m",
            "--mode=1",
            "--replace",
            "-o@n.s3m",
            "--tensor",
            "@bad.tensor.test.coo",
        ],
        &[
            "fold-in",
            "@m.s3m",
            "--mode=2",
            "--replace",
            "-o@n.s3m",
            "--matrix",
            "2:@bad.matrix1.coo",
        ],
        &[
            "recommend",
            "@m.s3m",
            "--mode=2",
            "--for=1:1",
            "--exclude",
            "@bad.tensor.train.coo",
        ],
        &[
            "clusters",
            "@m.s3m",
            "--mode=2",
            "-k2",
            "--matrix",
            "@bad.matrix1.coo",
        ],
        &[
            "report",
            "@m.s3m",
            "-o@r.html",
            "--max-k=0",
            "--data",
            "@bad.tensor.train.coo",
        ],
        &[
            "report",
            "@m.s3m",
            "-o@r.html",
            "--max-k=0",
            "--test",
            "@bad.tensor.test.coo",
        ],
        &[
            "report",
            "@m.s3m",
            "-o@r.html",
            "--max-k=0",
            "--matrix",
            "2:@bad.matrix1.coo",
        ],
        &["info", "@bad.tensor.train.coo"],
    ];
    for case in cases {
        run(expand(case)).failed(2, &["bad.", "do not match their checksum"]);
        // Without verification the same command reaches the data. Weights must have the indices of the entries, which
        // are intact, and a changed exponent gives other values but no invalid ones.
        let unverified = run(expand(&[case, &["--no-verify"]].concat()));
        assert!(
            !unverified.stderr.contains("checksum"),
            "{case:?}: {}",
            unverified.stderr
        );
    }
    // The jobs of a batch too, and every job that uses the file.
    let job = |id: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","tensor":"@bad.tensor.train.coo","output":"@{id}.s3m","options":{{"rank":2,"epochs":1}}}}"#
        )
    };
    dir.file(
        "jobs.jsonl",
        expand(&[&format!("{}\n{}\n", job("a"), job("b"))]).concat(),
    );
    let batch = run(expand(&["batch", "@jobs.jsonl"]));
    assert_eq!(
        (batch.code, batch.stdout.matches("checksum").count()),
        (Some(2), 2),
        "{}",
        batch.stdout
    );
    run(expand(&["batch", "@jobs.jsonl", "--no-verify"])).ok();
}
