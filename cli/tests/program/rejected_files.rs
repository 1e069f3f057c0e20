//! Invalid files and arguments: exit code, message, and no output files.

use std::fs;
use std::path::Path;

use crate::common::{Scratch, gzip};
use crate::runner::{run, run_with_input};

#[test]
fn missing_files_and_folders_are_rejected() {
    let dir = Scratch::new("missing");
    let out = dir.join("o.coo");
    for command in ["check", "info", "split"] {
        for name in ["no.coo", "no.tns"] {
            run([Path::new(command), &dir.join(name)]).failed(2, &[name, "no such file"]);
        }
        run([Path::new(command), dir.path()]).failed(2, &["is a folder"]);
    }
    run([Path::new("convert"), &dir.join("no.tns"), &out]).failed(2, &["no.tns", "no such file"]);
    run([Path::new("convert"), dir.path(), &out]).failed(2, &["is a folder"]);
    for name in ["empty.coo", "empty.tns", "empty.csv", "empty.mtx"] {
        let file = dir.file(name, "");
        run([Path::new("convert"), &file, &out]).failed(2, &[name, "is empty"]);
        run([Path::new("info"), &file]).failed(2, &[name, "is empty"]);
    }
    let file = dir.file("empty.tns.gz", gzip(b""));
    run([Path::new("convert"), &file, &out]).failed(2, &["empty.tns.gz", "is empty"]);
    let file = dir.file("comments.tns", "# nothing\n\n# here\n");
    run([Path::new("convert"), &file, &out])
        .failed(2, &["comments.tns", "no entries", "option dims"]);
    assert!(!out.exists());
}

#[test]
fn damaged_binary_files_are_rejected() {
    let dir = Scratch::new("damaged");
    let text = dir.file("a.tns", "1 1 1 2.5\n2 3 4 1\n1 2 2 3\n");
    let good = dir.join("good.coo");
    run([Path::new("convert"), &text, &good]).ok();
    let bytes = fs::read(&good).unwrap();
    let with = |at: usize, x: u8| {
        let mut b = bytes.clone();
        b[at] ^= x;
        b
    };
    for (what, contents, words) in [
        (
            "text",
            b"1 2 3 4\n".to_vec(),
            &["byte 0", "not a binary COO file"][..],
        ),
        ("magic", with(3, 1), &["byte 0", "not a binary COO file"]),
        (
            "version",
            with(8, 2),
            &["byte 8", "format version 3", "newer s3cmtf"],
        ),
        ("header", with(60, 1), &["byte 504", "header is damaged"]),
        ("checksum", with(505, 1), &["byte 504", "header is damaged"]),
        (
            "head only",
            bytes[..300].to_vec(),
            &["byte 300", "ends inside its header"],
        ),
        (
            "cut",
            bytes[..bytes.len() - 1].to_vec(),
            &["byte 40", "cut short"],
        ),
        (
            "only header",
            bytes[..512].to_vec(),
            &["byte 40", "cut short"],
        ),
        ("longer", [&bytes[..], b"x"].concat(), &["byte 40", "added"]),
    ] {
        let file = dir.file("bad.coo", contents);
        for command in ["check", "info", "split"] {
            run([Path::new(command), &file])
                .failed(2, &["bad.coo"])
                .failed(2, words);
        }
        run([Path::new("convert"), &file, &dir.join("o.coo")]).failed(2, words);
        assert!(!dir.join("o.coo").exists(), "{what}");
    }
    // A flipped data byte: the structure is valid, the checksum is not.
    let file = dir.file("bad.coo", with(512 + 3, 0x40));
    let found = run([Path::new("check"), &file]);
    assert_eq!(found.code, Some(2));
    assert!(
        found
            .stdout
            .contains("BAD checksums: the bytes of indices of mode 1"),
        "{}",
        found.stdout
    );
    assert!(
        found.stdout.contains("BAD indices in range: 1 entry"),
        "{}",
        found.stdout
    );
    run([Path::new("info"), &file]).failed(2, &["indices of mode 1 do not match their checksum"]);
    run([Path::new("info"), &file, Path::new("--no-verify")])
        .failed(2, &["entry 1", "beyond its size"]);
    run([
        "check".as_ref(),
        file.as_os_str(),
        "--fix".as_ref(),
        dir.join("f.coo").as_os_str(),
    ])
    .failed(2, &["do not match their checksum"]);
    assert!(!dir.join("f.coo").exists());
}

#[test]
fn headers_inconsistent_with_the_file_are_rejected() {
    use s3cmtf::format::{Header, ValueKind};
    let dir = Scratch::new("claims");
    let mut h = Header::plan(&[5, 5], 10, ValueKind::F32, None).unwrap();
    let honest = h.clone();
    // More entries than the file holds, in an otherwise consistent header.
    for count in [11, 1 << 32, 1 << 60, u64::MAX / 4, u64::MAX] {
        h = honest.clone();
        h.count = count;
        for s in h.indices.iter_mut().chain([&mut h.values]) {
            s.len = count.wrapping_mul(4);
        }
        let mut bytes = h.encode().to_vec();
        bytes.resize(honest.file_size as usize, 0);
        let file = dir.file("claims.coo", bytes);
        run([Path::new("check"), &file]).failed(2, &["claims.coo", "byte"]);
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let dir = Scratch::new("arguments");
    let file = dir.file("t.tns", "1 1 1\n2 2 2\n3 3 3\n4 4 4\n5 5 5\n");
    let f = file.to_str().unwrap();
    let o = dir.join("o");
    let o = o.to_str().unwrap();
    let out = dir.join("o.coo");
    let out = out.to_str().unwrap();
    for (arguments, words) in [
        (vec!["nonsense"], "nonsense"),
        (vec!["convert", f], "OUTPUT"),
        (vec!["convert", f, out, "--from", "xml"], "xml"),
        (vec!["convert", f, out, "--values", "f16"], "f16"),
        (vec!["convert", f, out, "--names", "users.tsv"], "MODE:FILE"),
        (vec!["convert", f, out, "--names", "0:users.tsv"], "mode 0"),
        (vec!["convert", f, out, "--strings", "all"], "CSV and TSV"),
        (vec!["split", f, "-o", o, "--test", "1.5"], "less than 1"),
        (
            vec!["split", f, "-o", o, "--test", "0.5", "--valid", "0.5"],
            "less than 1",
        ),
        (
            vec!["split", f, "-o", o, "--test", "0.01"],
            "would be empty",
        ),
        (
            vec!["split", f, "-o", o, "--last-per", "3"],
            "mode 3 does not exist",
        ),
        (vec!["split", f, "-o", o, "--last-per", "0"], "mode 0"),
        (
            vec!["split", f, "-o", o, "--last-per", "2", "--by", "2"],
            "name another",
        ),
        (vec!["split", f, "-o", o, "--by", "2"], "--last-per"),
        (vec!["check", f, "--keep", "first"], "--fix"),
        (vec!["generate", "-o", o], "--like"),
        (vec!["generate", "-o", o, "--like", "imdb"], "imdb"),
        (
            vec!["generate", "-o", o, "--like", "yelp", "--scale", "0"],
            "scale 0",
        ),
        (vec!["generate", "-o", o, "--dims", "5,5"], "--entries"),
        (
            vec!["generate", "-o", o, "--dims", "5,5", "--entries", "26"],
            "only 25 positions",
        ),
        (
            vec!["generate", "-o", o, "--dims", "5", "--entries", "2"],
            "1 modes",
        ),
        (
            vec!["generate", "-o", o, "--dims", "5,5", "--entries", "0"],
            "0 entries",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--rank",
                "0",
            ],
            "rank is 0",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--rank",
                "1,2,3",
            ],
            "3 ranks for 2 modes",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--rank",
                "2,3",
                "--model",
                "cp",
            ],
            "same rank",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--rank",
                "100000",
            ],
            "lower the ranks",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--noise=-1",
            ],
            "noise -1",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--test",
                "1",
            ],
            "no test entries",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--matrix",
                "3:4",
            ],
            "mode 3",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--matrix",
                "1:4:21",
            ],
            "20 positions",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--matrix",
                "1",
            ],
            "MODE:COLUMNS",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--matrix",
                "1:4:full:ones=2",
            ],
            "fraction of ones",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--skew",
                "x",
            ],
            "EXPONENT",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "20",
                "--skew",
                "5",
            ],
            "less skew",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "5,5",
                "--entries",
                "5",
                "--threads",
                "x",
            ],
            "--threads",
        ),
        (
            vec![
                "generate",
                "-o",
                o,
                "--dims",
                "4294967295,4294967295",
                "--entries",
                "18446744073709551615",
            ],
            "do not fit",
        ),
    ] {
        run(&arguments).failed(2, &[words]);
    }
    run_with_input(&["convert", "-", out], b"").failed(2, &["standard input", "is empty"]);
    run_with_input(&["convert", "-", out], b"1 1 x\n").failed(2, &["standard input: line 1"]);
    let left: Vec<String> = dir
        .names()
        .into_iter()
        .filter(|n| n != "t.tns" && n != "o")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn padding_between_sections_must_be_zero() {
    let dir = Scratch::new("padding");
    let text = dir.file("a.tns", "1 1 1 2.5\n2 3 4 1\n1 2 2 3\n");
    let good = dir.join("good.coo");
    run([Path::new("convert"), &text, &good]).ok();
    let mut bytes = fs::read(&good).unwrap();
    // The first section has three indices at byte 512; the next one starts at 576.
    bytes[512 + 13] = 1;
    let file = dir.file("bad.coo", &bytes);
    run([Path::new("info"), &file]).failed(2, &["bad.coo", "byte 525", "padding"]);
}

#[test]
fn names_files_of_users_are_renamed_with_a_warning() {
    let dir = Scratch::new("kept-names");
    let text = dir.file("a.csv", "user,film,stars\nann,1,3\nbob,2,4\n");
    let out = dir.join("a.coo");
    // Mode 1 gets names by the conversion, mode 2 has none.
    for (name, contents) in [
        ("a.mode1.tsv", "1\tmine\n"),
        ("a.mode2.tsv", "index\tname\n1\tmine\n"),
    ] {
        dir.file(name, contents);
    }
    let converted = run([Path::new("convert"), &text, &out]).ok();
    for (name, contents) in [
        ("a.mode1.tsv.old", "1\tmine\n"),
        ("a.mode2.tsv.old", "index\tname\n1\tmine\n"),
    ] {
        assert!(converted.stderr.contains(name), "{}", converted.stderr);
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), contents);
    }
    assert!(!dir.join("a.mode2.tsv").exists());
    let again = run([Path::new("convert"), &text, &out]).ok();
    assert!(!again.stderr.contains("warning"), "{}", again.stderr);
}

#[test]
fn values_too_large_to_subtract_their_mean_are_named() {
    let dir = Scratch::new("huge-values");
    let mut text = String::new();
    for k in 1..=40 {
        let sign = if k % 4 == 0 { "-" } else { "" };
        text += &format!("{} {} {} {sign}3.4e38\n", k % 7 + 1, k % 5 + 1, k);
    }
    let file = dir.file("huge.tns", text);
    let out = dir.join("m.s3m");
    let arguments = ["fit", "--tensor"].map(Path::new);
    let fit = run(arguments.into_iter().chain([&file, Path::new("-o"), &out]));
    fit.failed(
        2,
        &["huge.tns", "3.4e38", "32-bit", "scale the values down"],
    );
    assert!(!out.exists());
}

#[test]
fn a_validation_fraction_that_leaves_too_few_entries_is_named() {
    let dir = Scratch::new("valid-fraction");
    let mut text = String::new();
    for k in 0..1600 {
        text += &format!("{} {} {} {}\n", k % 40 + 1, k / 40 + 1, k % 9 + 1, k % 5);
    }
    let file = dir.file("x.tns", text);
    let out = dir.join("m.s3m");
    for (fraction, words) in [
        ("0.9999", ["leaves", "to train on, too few"]),
        ("0.0000001", ["holds out none", "larger fraction"]),
    ] {
        let arguments = ["--valid", fraction, "--epochs", "2", "-o"].map(Path::new);
        let fit = [Path::new("fit"), Path::new("--tensor"), &file];
        let fit = fit.into_iter().chain(arguments);
        run(fit.chain([out.as_path()])).failed(2, &words);
        assert!(!out.exists());
    }
}
