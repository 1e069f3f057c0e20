//! Invalid text: exit code, message, and no output files.

use std::fs;
use std::path::Path;

use crate::common::{Scratch, gzip};
use crate::runner::run;

/// Converts `text` in a file `name`. Asserts exit code 2, a message with all of `words`, and no output files.
#[track_caller]
fn assert_rejected(name: &str, text: impl AsRef<[u8]>, arguments: &[&str], words: &[&str]) {
    let dir = Scratch::new(&format!(
        "refused-{}",
        std::panic::Location::caller().line()
    ));
    let input = dir.file(name, text);
    let output = dir.join("out.coo");
    let mut all = vec!["convert", input.to_str().unwrap(), output.to_str().unwrap()];
    all.extend(arguments);
    run(&all).failed(2, words).failed(2, &[name]);
    assert_eq!(dir.names(), [name], "something was left behind");
}

/// Converts `text` and returns the entries as `.tns` text.
#[track_caller]
fn converted_text(name: &str, text: impl AsRef<[u8]>, arguments: &[&str]) -> String {
    let dir = Scratch::new(&format!(
        "accepted-{}",
        std::panic::Location::caller().line()
    ));
    let input = dir.file(name, text);
    let (coo, tns) = (dir.join("out.coo"), dir.join("back.tns"));
    let mut all = vec!["convert", input.to_str().unwrap(), coo.to_str().unwrap()];
    all.extend(arguments);
    run(&all).ok();
    run([Path::new("check"), &coo]);
    run([Path::new("convert"), &coo, &tns]).ok();
    fs::read_to_string(tns).unwrap()
}

#[test]
fn malformed_lines_are_rejected_with_line_numbers() {
    let good = "1 1 1 1\n2 2 2 2\n";
    for (line, words) in [
        ("0 1 1 1", &["index 0 of mode 1", "option zero-based"][..]),
        ("1 0 1 1", &["index 0 of mode 2"]),
        ("1 -2 1 1", &["'-2' of mode 2 is negative", "start at 1"]),
        (
            "1 1 4294967296 1",
            &["'4294967296' of mode 3 is too large", "4294967295"],
        ),
        ("1 1 18446744073709551617 1", &["too large"]),
        ("1 x 1 1", &["'x' of mode 2 is not a whole number"]),
        ("1e5 1 1 1", &["'1e5' of mode 1", "write 100000"]),
        ("1 1.5 1 1", &["'1.5' of mode 2 is not a whole number"]),
        ("1 1 1 NaN", &["value 'NaN' is not a finite number"]),
        ("1 1 1 -inf", &["'-inf' is not a finite number"]),
        (
            "1 1 1 1e39",
            &["too large for a 32-bit number", "option values: f64"],
        ),
        ("1 1 1 1e400", &["too large for a 64-bit number"]),
        ("1 1 1 abc", &["value 'abc' is not a number"]),
        ("1 1 1", &["3 columns, expected 4: 3 indices and a value"]),
        ("1 1 1 1 1", &["5 columns, expected 4"]),
        ("1,1,1,1", &["1 columns, expected 4"]),
        ("1 1 1 \u{e9}", &["is not a number"]),
    ] {
        let text = format!("{good}{line}\n{good}");
        assert_rejected("t.tns", &text, &[], &["line 3"]);
        assert_rejected("t.tns", &text, &[], words);
        assert_rejected("t.tns.gz", gzip(text.as_bytes()), &[], words);
    }
    assert_rejected(
        "t.tns",
        "1 1 1 1\n5 2 1 1\n",
        &["--dims", "4,4,4"],
        &["line 2", "index 5 of mode 1 is beyond its size 4"],
    );
    assert_rejected(
        "t.tns",
        "0 0 1\n4 0 1\n",
        &["--dims", "4,4", "--zero-based"],
        &["line 2", "the largest allowed is 3"],
    );
    assert_rejected(
        "t.tns",
        "0 0 1\n4294967295 0 1\n",
        &["--zero-based"],
        &["line 2", "largest allowed is 4294967294"],
    );
    assert_rejected(
        "t.tns",
        "1 5\n",
        &[],
        &["line 1", "2 columns; a line needs 2 to 8 indices"],
    );
    assert_rejected("t.tns", "1 1 1 1 1 1 1 1 1 5\n", &[], &["10 columns"]);
    assert_rejected(
        "t.tns",
        "1 1 1 5\n",
        &["--dims", "4,4"],
        &["line 1", "2 sizes were stated"],
    );
    assert_rejected(
        "t.tns",
        "1 1 1 x\n",
        &["--weighted"],
        &["line 1", "weight 'x' is not a number"],
    );
    assert_rejected("t.tns", [0u8, 1, 2, 3], &[], &["is not text"]);
    assert_rejected(
        "t.tns",
        vec![b'1'; 3 << 20],
        &[],
        &["line 1", "longer than 1048576 bytes"],
    );
}

#[test]
fn invalid_sizes_are_rejected() {
    let dir = Scratch::new("sizes");
    let file = dir.file("t.tns", "1 1 1\n");
    for dims in [
        "0,5",
        "4294967296,5",
        "5",
        "1,1,1,1,1,1,1,1,1",
        "x,5",
        "-1,5",
    ] {
        let out = run([
            "convert".as_ref(),
            file.as_os_str(),
            dir.join("o.coo").as_os_str(),
            "--dims".as_ref(),
            dims.as_ref(),
        ]);
        assert_eq!(out.code, Some(2), "{dims}: {}", out.stderr);
    }
    assert_eq!(dir.names(), ["t.tns"]);
}

#[test]
fn unusual_but_valid_text_is_accepted() {
    let expected = "1 2 3 4\n5 6 7 0.5\n";
    for text in [
        "1 2 3 4\n5 6 7 0.5\n",
        "1 2 3 4\n5 6 7 0.5",
        "1 2 3 4\r\n5 6 7 0.5\r\n",
        "\u{feff}1 2 3 4\n5 6 7 0.5\n",
        "# comment\n  # another\n1 2 3 4\n#\n5 6 7 0.5\n",
        "1\t2\t3\t4\n5  6 \t 7   0.5\n",
        "  1 2 3 4  \n\t5 6 7 0.5\t\n",
        "\n\n1 2 3 4\n   \n5 6 7 0.5\n\n\r\n",
        "1 2 3 4.0e0\n05 006 7 5e-1\n",
    ] {
        assert_eq!(converted_text("t.tns", text, &[]), expected, "{text:?}");
        assert_eq!(
            converted_text("t.tns.gz", gzip(text.as_bytes()), &[]),
            expected,
            "{text:?} gzipped"
        );
    }
    // A gzip file with two members, as `cat a.gz b.gz` produces.
    let two = [gzip(b"1 2 3 4\n"), gzip(b"5 6 7 0.5\n")].concat();
    assert_eq!(converted_text("t.tns.gz", two, &[]), expected);
    // A gzip file without the extension .gz.
    assert_eq!(
        converted_text("t.tns", gzip(expected.as_bytes()), &[]),
        expected
    );
    assert_eq!(
        converted_text("t.tns", "0 1 2 4\n4 5 6 0.5\n", &["--zero-based"]),
        expected
    );
    assert_eq!(
        converted_text("t.tns", "1 2\n3 4\n", &["--no-value"]),
        "1 2 1\n3 4 1\n"
    );
    assert_eq!(
        converted_text("t.tns", "1 2 5 0.25\n", &["--weighted"]),
        "1 2 5 0.25\n"
    );
    assert_eq!(converted_text("t.tns", "# none\n", &["--dims", "3,3"]), "");
}

#[test]
fn truncated_or_damaged_gzip_is_rejected() {
    let text: String = (1..20_000)
        .map(|i| format!("{i} {} 1.5\n", i % 7 + 1))
        .collect();
    let whole = gzip(text.as_bytes());
    for keep in [whole.len() / 2, whole.len() - 4, 15] {
        assert_rejected(
            "t.tns.gz",
            &whole[..keep],
            &[],
            &["line", "gzip data ends early"],
        );
    }
    assert_rejected("t.tns.gz", &whole[..2], &[], &["gzip"]);
    let mut broken = whole.clone();
    broken[whole.len() / 2] ^= 0xFF;
    broken[whole.len() / 2 + 1] ^= 0xFF;
    assert_rejected("t.tns.gz", &broken, &[], &[]);
    let mut wrong_sum = whole.clone();
    let at = whole.len() - 6;
    wrong_sum[at] ^= 1;
    assert_rejected("t.tns.gz", &wrong_sum, &[], &["gzip data", "damaged"]);
    assert_rejected(
        "t.csv.gz",
        &gzip(b"a,b,value\n1,1,1\n")[..20],
        &[],
        &["gzip"],
    );
}

#[test]
fn malformed_matrix_market_files_are_rejected() {
    let head = "%%MatrixMarket matrix coordinate";
    let real = format!("{head} real general\n% comment\n\n3 4 2\n1 2 0.5\n3 4 -1e2\n");
    assert_eq!(converted_text("m.mtx", &real, &[]), "1 2 0.5\n3 4 -100\n");
    assert_eq!(
        converted_text("m.mtx", real.replace('\n', "\r\n"), &[]),
        "1 2 0.5\n3 4 -100\n"
    );
    assert_eq!(
        converted_text(
            "m.mtx",
            format!("{head} pattern general\n2 2 1\n2 1\n"),
            &[]
        ),
        "2 1 1\n"
    );
    assert_eq!(
        converted_text(
            "m.mtx",
            format!("{head} integer symmetric\n3 3 2\n2 1 7\n3 3 4\n"),
            &[]
        ),
        "2 1 7\n1 2 7\n3 3 4\n"
    );
    assert_eq!(
        converted_text(
            "m.mtx",
            format!("{head} pattern symmetric\n2 2 1\n2 1\n"),
            &[]
        ),
        "2 1 1\n1 2 1\n"
    );
    assert_eq!(
        converted_text(
            "m.mtx",
            format!("{head} real skew-symmetric\n2 2 1\n2 1 3\n"),
            &[]
        ),
        "2 1 3\n1 2 -3\n"
    );
    assert_eq!(
        converted_text(
            "m.mtx",
            "%%matrixmarket MATRIX Coordinate Real General\n1 1 0\n",
            &[]
        ),
        ""
    );
    for (text, words) in [
        ("1 1 1\n".to_string(), &["line 1", "%%MatrixMarket"][..]),
        (
            "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n".into(),
            &["line 1", "coordinate"],
        ),
        (
            format!("{head} complex general\n1 1 1\n1 1 1 1\n"),
            &["'complex' values are not supported"],
        ),
        (
            format!("{head} real hermitian\n1 1 1\n1 1 1\n"),
            &["'hermitian'"],
        ),
        (format!("{head} real\n1 1 1\n"), &["four words"]),
        (
            format!("{head} real general\n"),
            &["ends before the line of sizes"],
        ),
        (
            format!("{head} real general\n2 2\n"),
            &["line 2", "three numbers"],
        ),
        (
            format!("{head} real general\n0 2 1\n"),
            &["line 2", "sizes 0 x 2"],
        ),
        (
            format!("{head} real general\n5000000000 2 1\n"),
            &["sizes 5000000000 x 2"],
        ),
        (
            format!("{head} real general\n2 2 2\n1 1 1\n"),
            &["ends after 1 of the 2 entries"],
        ),
        (
            format!("{head} real general\n2 2 1\n1 1 1\n2 2 2\n"),
            &["line 4", "more entries than the 1"],
        ),
        (
            format!("{head} real general\n2 2 1\n3 1 1\n"),
            &["line 3", "index 3 of mode 1 is beyond its size 2"],
        ),
        (
            format!("{head} real general\n2 2 1\n0 1 1\n"),
            &["line 3", "index 0"],
        ),
        (
            format!("{head} pattern general\n2 2 1\n1 1 1\n"),
            &["line 3", "3 columns, expected 2"],
        ),
        (
            format!("{head} real symmetric\n2 3 1\n1 1 1\n"),
            &["must be square"],
        ),
    ] {
        assert_rejected("m.mtx", text, &[], words);
    }
    assert_rejected(
        "m.mtx",
        &real,
        &["--dims", "9,9"],
        &["line 4", "the option dims says [9, 9]"],
    );
    let dir = Scratch::new("mtx");
    let file = dir.file("m.mtx", &real);
    let out = dir.join("o.coo");
    run([
        "convert".as_ref(),
        file.as_os_str(),
        out.as_os_str(),
        "--zero-based".as_ref(),
    ])
    .failed(2, &["count from 1"]);
    run([
        "convert".as_ref(),
        file.as_os_str(),
        out.as_os_str(),
        "--columns".as_ref(),
        "a".as_ref(),
    ])
    .failed(2, &["CSV and TSV"]);
    assert!(!out.exists());
}

#[test]
fn malformed_csv_files_are_rejected() {
    let text = "user,item,when,stars\n1,2,3,4\n5,6,7,0.5\n";
    let expected = "1 2 3 4\n5 6 7 0.5\n";
    assert_eq!(converted_text("t.csv", text, &[]), expected);
    assert_eq!(
        converted_text("t.csv.gz", gzip(text.as_bytes()), &[]),
        expected
    );
    assert_eq!(
        converted_text("t.tsv", text.replace(',', "\t"), &[]),
        expected
    );
    assert_eq!(
        converted_text("t.csv", text.replace(',', ";"), &["--delimiter", ";"]),
        expected
    );
    assert_eq!(
        converted_text(
            "t.csv",
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
            &["--columns", "user,item,when"]
        ),
        expected
    );
    assert_eq!(
        converted_text("t.csv", "1,2,3,4\n5,6,7,0.5\n", &["--no-header"]),
        expected
    );
    assert_eq!(
        converted_text(
            "t.csv",
            text,
            &["--columns", "item,user", "--value", "stars"]
        ),
        "2 1 4\n6 5 0.5\n"
    );
    assert_eq!(
        converted_text("t.csv", text, &["--columns", "2,1", "--value", "4"]),
        "2 1 4\n6 5 0.5\n"
    );
    assert_eq!(
        converted_text("t.csv", text, &["--columns", "user,item", "--no-value"]),
        "1 2 1\n5 6 1\n"
    );
    assert_eq!(
        converted_text(
            "t.csv",
            text,
            &[
                "--columns",
                "user,item",
                "--value",
                "when",
                "--weight",
                "stars"
            ]
        ),
        "1 2 3 4\n5 6 7 0.5\n"
    );
    assert_eq!(
        converted_text("t.csv", "a,b,value\n\"1\", 2 ,\"3\"\n\n   \n4,5,6\n", &[]),
        "1 2 3\n4 5 6\n"
    );
    for (text, arguments, words) in [
        (
            "a,b,value\n1,2,3\n1,2\n",
            &[][..],
            &["line 3", "2 columns, but the first line has 3"][..],
        ),
        ("a,b,value\n1,2,3,4\n", &[], &["line 2", "4 columns"]),
        (
            "a,b,value\n1,0,3\n",
            &[],
            &["line 2", "index 0 of mode 2", "option zero-based"],
        ),
        (
            "a,b,value\n1,2,3\n1,x,3\n",
            &[],
            &["line 3", "'x' of mode 2"],
        ),
        ("a,b,value\n1,1e5,3\n", &["--strings", "a"], &[]),
        (
            "a,b,value\n1,2,nan\n",
            &[],
            &["line 2", "'nan' is not a finite number"],
        ),
        (
            "a,b,value\n1,2,\n",
            &[],
            &["line 2", "the value is missing"],
        ),
        (
            "a,b,value\n1,2,3\n,2,3\n",
            &[],
            &["line 3", "index of mode 1 is missing"],
        ),
        (
            "a,b,value\nx,2,3\n,2,3\n",
            &[],
            &["line 3", "id of mode 1 is missing"],
        ),
        (
            "a,b,value\n99999999999,2,3\n",
            &[],
            &["line 2", "too large", "option strings"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--columns", "a,z"],
            &["line 1", "no column 'z'", "'a', 'b', 'value'"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--columns", "a,a"],
            &["column 1 is used twice"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--columns", "a,b", "--value", "b"],
            &["column 2 is used twice"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--columns", "a"],
            &["1 index columns; 2 to 8"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--value", "value", "--no-value"],
            &["option no-value"],
        ),
        (
            "a,b,value\n1,2,3\n",
            &["--value", "value", "--strings", "value"],
            &["'value' cannot have string ids"],
        ),
        ("a;b;v\n1;2;3\n", &[], &["is the delimiter right?"]),
        ("a,b,value\n", &[], &["no entries"]),
        (
            "a,b,value\nx,2,3\ny,2,3\n",
            &["--dims", "1,5"],
            &["line 3", "'y' is number 2 of mode 1, beyond its size 1"],
        ),
        ("a,b,value\n\"open,2,3\n", &[], &["line 2"]),
    ] {
        if words.is_empty() {
            converted_text("t.csv", text, arguments);
        } else {
            assert_rejected("t.csv", text, arguments, words);
        }
    }
    let endless = format!("a,b,value\n1,1,1\n\"{}", "1,2,3\n".repeat(4 << 20));
    assert_rejected("t.csv", endless, &[], &["line 3", "is a quote not closed?"]);
    assert_rejected(
        "t.csv",
        b"a,b,value\n\xFF\xFE,2,3\n",
        &[],
        &["line 2", "not UTF-8"],
    );
}

#[test]
fn a_damaged_short_gzip_file_is_rejected() {
    // Short enough for the peek that detects the format to read all of it.
    let text: String = (1..=40).map(|i| format!("{i} {i} {i} {i}.5\n")).collect();
    let compressed = gzip(text.as_bytes());
    let len = compressed.len();
    // The last eight bytes are the checksum and the length of the text.
    for at in [len - 8, len - 1] {
        let mut damaged = compressed.clone();
        damaged[at] ^= 0x10;
        assert_rejected("a.tns.gz", damaged, &[], &["gzip"]);
    }
    assert_rejected(
        "a.tns.gz",
        &compressed[..len - 4],
        &[],
        &["gzip data ends early"],
    );
}

#[test]
fn line_ends_of_all_systems_give_the_same_entries() {
    let text = "1 1 1 5\n2 2 2 4\n3 1 2 1\n";
    let matrix = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 2\n3 2 1\n";
    let table = "user,film,stars\n1,2,3\n2,1,4\n";
    for (name, text) in [
        ("a.tns", text),
        ("a.mtx", matrix),
        ("a.csv", table),
        ("a", text),
    ] {
        let expected = converted_text(name, text, &[]);
        for end in ["\r", "\r\n"] {
            let converted = converted_text(name, text.replace('\n', end), &[]);
            assert_eq!(converted, expected, "{name} with {end:?}");
        }
    }
}

#[test]
fn a_header_of_very_many_columns_is_rejected_by_their_number() {
    let header: Vec<String> = (0..200_000).map(|i| format!("c{i}")).collect();
    let line = vec!["1"; 200_000].join(",");
    let text = format!("{}\n{line}\n", header.join(","));
    assert_rejected("wide.csv", &text, &[], &["199999 index columns", "2 to 8"]);
    let arguments = ["--columns", "c1,c2x", "--value", "c3"];
    assert_rejected(
        "wide.csv",
        &text,
        &arguments,
        &["no column 'c2x'", "and 199970 more"],
    );
}
