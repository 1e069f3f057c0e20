//! `convert` with times, bins of numbers, lists and skipped lines.

use std::fs;

use crate::common::Scratch;
use crate::runner::{expand_paths, run, run_with_input};
use s3cmtf::format::{CooFile, OpenMode};

/// Returns the entries of a file: indices from 1 and the value.
pub fn entries(dir: &Scratch, name: &str) -> Vec<(Vec<u32>, f64)> {
    let file = CooFile::open(dir.join(name), OpenMode::Mapped).unwrap();
    let view = file.view();
    let entry = |i: usize| {
        let indices = (0..view.order()).map(|n| view.column(n)[i] + 1).collect();
        (indices, view.values().get(i))
    };
    (0..view.len()).map(entry).collect()
}

/// Returns the names of a names file, in the order of the rows.
pub fn names(dir: &Scratch, name: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(name)).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|l| l.split_once('\t').unwrap().1.to_string())
        .collect()
}

fn convert(dir: &Scratch, arguments: &[&str]) -> crate::common::ProgramRun {
    run(expand_paths(dir, &[&["convert"], arguments].concat()))
}

const RATINGS: &str = "userId,movieId,rating,timestamp\n\
    1,10,4,847117005\n\
    2,20,3.5,841000000\n\
    1,20,5,852076800\n";

const COLUMNS: [&str; 4] = ["--columns", "userId,movieId,timestamp", "--value", "rating"];

#[test]
fn times_become_a_mode_with_names() {
    let dir = Scratch::new("derived-time");
    dir.file("ratings.csv", RATINGS);
    let go = |unit: &str| {
        let time = ["@ratings.csv", "@r.coo", "--time", unit];
        convert(&dir, &[&time[..], &COLUMNS].concat())
    };
    let ran = go("timestamp:month").ok();
    assert!(ran.stdout.contains("20 x 6"), "{}", ran.stdout);
    assert_eq!(
        entries(&dir, "r.coo"),
        [
            (vec![1, 10, 4], 4.0),
            (vec![2, 20, 1], 3.5),
            (vec![1, 20, 6], 5.0)
        ]
    );
    let months = [
        "1996-08", "1996-09", "1996-10", "1996-11", "1996-12", "1997-01",
    ];
    assert_eq!(names(&dir, "r.mode3.tsv"), months);
    run(expand_paths(&dir, &["check", "@r.coo"])).ok();
    // Standard input works too, since the text is read once.
    let arguments = [
        "convert",
        "-",
        "@p.coo",
        "--time",
        "timestamp:month",
        "--from",
        "csv",
    ];
    let arguments = expand_paths(&dir, &[&arguments[..], &COLUMNS].concat());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run_with_input(&arguments, RATINGS.as_bytes()).ok();
    assert_eq!(
        fs::read(dir.join("p.coo")).unwrap(),
        fs::read(dir.join("r.coo")).unwrap()
    );

    for (unit, count, first) in [
        ("year", 2, "1996"),
        ("quarter", 3, "1996-Q3"),
        ("week", 20, "1996-W34"),
        ("day", 130, "1996-08-25"),
        ("hour", 3078, "1996-08-25 19:00"),
        ("weekday", 7, "Mon"),
        ("hour-of-week", 168, "Mon 00:00"),
    ] {
        go(&format!("timestamp:{unit}")).ok();
        let names = names(&dir, "r.mode3.tsv");
        assert_eq!((names.len(), names[0].as_str()), (count, first), "{unit}");
        let file = CooFile::open(dir.join("r.coo"), OpenMode::Mapped).unwrap();
        assert_eq!(file.header().dims, [2, 20, count as u64], "{unit}");
    }
}

#[test]
fn later_files_get_the_bins_of_earlier_ones() {
    let dir = Scratch::new("derived-given");
    dir.file("a.csv", "u,t,value\n1,1996-01-05,1\n1,1996-03-05,2\n");
    dir.file("b.csv", "u,t,value\n1,1996-02-29T23:59:59-01:00,3\n");
    dir.file("c.csv", "u,t,value\n1,1996-04-01,3\n");
    convert(&dir, &["@a.csv", "@a.coo", "--time", "t:month"]).ok();
    let more = ["--time", "t:month", "--names", "2:@a.mode2.tsv"];
    convert(&dir, &[&["@b.csv", "@b.coo"][..], &more].concat()).ok();
    assert_eq!(entries(&dir, "b.coo"), [(vec![1, 3], 3.0)]);
    convert(&dir, &[&["@c.csv", "@c.coo"][..], &more].concat())
        .failed(2, &["c.csv", "line 2", "1996-04", "a.mode2.tsv"]);
    assert!(!dir.join("c.coo").exists());
}

#[test]
fn numbers_become_bins() {
    let dir = Scratch::new("derived-bins");
    dir.file("a.csv", "age,item,value\n18,1,1\n25,1,2\n25,2,3\n60,1,4\n");
    let go = |rule: &str| {
        convert(&dir, &["@a.csv", "@a.coo", "--bin", rule]).ok();
        let indices = entries(&dir, "a.coo").into_iter().map(|(i, _)| i[0]);
        (indices.collect::<Vec<_>>(), names(&dir, "a.mode1.tsv"))
    };
    let (rows, names) = go("age:quantiles=2");
    assert_eq!(rows, [1, 1, 1, 2]);
    assert_eq!(names, ["[18, 25]", "(25, 60]"]);
    let (rows, names) = go("age:width=10");
    assert_eq!(rows, [1, 2, 2, 6]);
    assert_eq!((names.len(), names[1].as_str()), (6, "[20, 30)"));
    let (rows, names) = go("age:log=2");
    assert_eq!(rows, [1, 1, 1, 2]);
    assert_eq!(names, ["[16, 32)", "[32, 64)"]);
    dir.file("b.csv", "age,item,value\n18,1,1\nNaN,1,2\n");
    convert(&dir, &["@b.csv", "@b.coo", "--bin", "age:width=10"])
        .failed(2, &["b.csv", "line 3", "'age'", "'NaN'", "finite"]);
    convert(&dir, &["@a.csv", "@b.coo", "--bin", "age:width=1e-9"]).failed(2, &["wider"]);
    convert(&dir, &["@a.csv", "@b.coo", "--bin", "age:tens"]).failed(2, &["quantiles=N"]);
}

#[test]
fn lists_give_an_entry_for_each_id() {
    let dir = Scratch::new("derived-split");
    dir.file(
        "a.csv",
        "paper,authors,tags,x\np,Ann; Bob,a|b,1\nq,\"Bob;Cy, Jr.;Bob\",b|,2\n",
    );
    let lists = ["--split", "authors:;", "--split", "tags:|"];
    convert(&dir, &[&["@a.csv", "@a.coo"][..], &lists].concat()).ok();
    let found = entries(&dir, "a.coo");
    let indices: Vec<&[u32]> = found.iter().map(|(i, _)| i.as_slice()).collect();
    assert_eq!(
        indices,
        [
            [1, 1, 1],
            [1, 1, 2],
            [1, 2, 1],
            [1, 2, 2],
            [2, 2, 2],
            [2, 3, 2]
        ]
    );
    assert_eq!(names(&dir, "a.mode2.tsv"), ["Ann", "Bob", "Cy, Jr."]);
    dir.file("b.csv", "paper,authors,tags,x\np,Ann,,1\n");
    convert(&dir, &[&["@b.csv", "@b.coo"][..], &lists].concat())
        .failed(2, &["line 2", "'tags'", "the list is empty"]);
}

#[test]
fn bad_rows_are_errors_or_counted() {
    let dir = Scratch::new("derived-bad");
    let text = "userId,movieId,rating,timestamp\n\
        7,,1,847117005\n\
        1,10,4,847117005\n\
        99,10,4,soon\n\
        2,20,x,841000000\n\
        2,20,3\n\
        2,20,NA,841000000\n\
        2,NA,3,1500000000\n\
        2,20,3,1e13\n";
    dir.file("a.csv", text);
    let time = ["@a.csv", "@a.coo", "--time", "timestamp:month"];
    let go = |more: &[&str]| convert(&dir, &[&time[..], &COLUMNS, more].concat());
    go(&[]).failed(2, &["a.csv", "line 2", "'movieId' is empty"]);
    assert!(!dir.join("a.coo").exists() && !dir.join("a.mode3.tsv").exists());
    let ran = go(&["--skip-bad-lines", "--missing", "NA"]).ok();
    for expected in [
        "1 entry",
        "5 lines skipped as invalid",
        "line 2",
        "2 lines with a missing field",
    ] {
        assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    }
    // Skipped lines leave neither names nor bins.
    assert_eq!(entries(&dir, "a.coo"), [(vec![1, 10, 1], 4.0)]);
    assert_eq!(names(&dir, "a.mode3.tsv"), ["1996-11"]);
    let json = go(&["--skip-bad-lines", "--missing", "NA", "--json"]).ok();
    assert_eq!(json.json()[0]["skipped"]["bad"], 5);
    assert_eq!(json.json()[0]["skipped"]["first_bad"]["line"], 2);

    dir.file("a.csv", "userId,movieId,rating,timestamp\n1,1,1,soon\n");
    go(&["--skip-bad-rows"]).failed(2, &["line 2", "no line is left", "soon"]);
    go(&[]).failed(2, &["line 2", "'timestamp'", "'soon'", "1996-04-23"]);
    dir.file("a.csv", "userId,movieId,rating,timestamp\n1,1,1,1996\n");
    go(&[]).failed(2, &["'1996'", "state which", ":ms"]);
    convert(&dir, &["@a.csv", "@a.coo", "--time", "timestamp:moth"]).failed(2, &["hour-of-week"]);
    convert(
        &dir,
        &[
            "@a.csv",
            "@a.coo",
            "--time",
            "rating:month",
            "--value",
            "rating",
        ],
    )
    .failed(2, &["'rating'", "not an index column"]);
    convert(&dir, &["@a.csv", "@a.coo", "--time", "when:month"])
        .failed(2, &["no column 'when'", "'timestamp'"]);
    convert(&dir, &["@a.csv", "@a.tns", "--time", "timestamp:month"])
        .failed(2, &["conversion to a .coo file first"]);
    dir.file("a.tns", "1 1 1\n");
    convert(&dir, &["@a.tns", "@a.coo", "--time", "1:month"]).failed(2, &["CSV and TSV"]);
}

#[test]
fn modes_that_look_like_times_or_identifiers_are_remarked_on() {
    let dir = Scratch::new("derived-sparse");
    dir.file("ratings.csv", RATINGS);
    let plain = ["@ratings.csv", "@r.coo"];
    let ran = convert(&dir, &[&plain[..], &COLUMNS].concat()).ok();
    for expected in [
        "warning: mode 3",
        "timestamp",
        "852076800 rows",
        "3 occur",
        "--time timestamp:month",
    ] {
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let ran = convert(&dir, &[&plain[..], &COLUMNS, &["--json"]].concat()).ok();
    let json = ran.json();
    assert_eq!(json[0]["event"], "warning");
    assert!(json[0]["text"].as_str().unwrap().contains("--time"));
    assert_eq!(json[1]["count"], 3);
    dir.file("ids.csv", "user,item,value\n1,90000001,1\n2,4,1\n");
    let ran = convert(&dir, &["@ids.csv", "@ids.coo"]).ok();
    assert!(ran.stderr.contains("--strings item"), "{}", ran.stderr);
    dir.file("ids.tns", "1 90000001 1\n2 4 1\n");
    let ran = convert(&dir, &["@ids.tns", "@ids.coo"]).ok();
    assert!(ran.stderr.contains("CSV or TSV"), "{}", ran.stderr);
    for quiet in [
        &["@named.coo", "--strings", "all"][..],
        &["@stated.coo", "--dims", "2,100000000"],
    ] {
        let ran = convert(&dir, &[&["@ids.csv"][..], quiet].concat()).ok();
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn lists_that_multiply_without_limit_are_refused() {
    let dir = Scratch::new("derived-product");
    let list = |count: usize| -> String {
        let ids: Vec<String> = (0..count).map(|i| format!("id{i}")).collect();
        ids.join("|")
    };
    let convert = |a: usize, b: usize, extra: &[&str]| {
        let text = format!("a,b,value\nx|y,z,1\n{},{},1\n", list(a), list(b));
        let csv = dir.file("lists.csv", text);
        let coo = dir.join("lists.coo");
        let (csv, coo) = (csv.to_str().unwrap(), coo.to_str().unwrap());
        let split = ["convert", csv, coo, "--split", "a:|", "--split", "b:|"];
        run(split.iter().chain(extra))
    };
    convert(1000, 1000, &[]).ok();
    let words = [
        "line 3",
        "1001 and 1000 ids",
        "more than 1000000 combinations",
    ];
    convert(1001, 1000, &[]).failed(2, &words);
    // As many as a file of 16 MiB can have.
    convert(900_000, 900_000, &[]).failed(2, &["line 3", "900000 and 900000 ids"]);
    let skipped = convert(100_000, 100_000, &["--skip-bad-lines"]).ok();
    assert!(
        skipped.stdout.contains("more than 1000000 combinations"),
        "{}",
        skipped.stdout
    );
    // A single list is not longer than its line.
    convert(1_000_001, 1, &[]).ok();
}
