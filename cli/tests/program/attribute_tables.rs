//! `convert --rows-of`: matrices from attribute tables.

use crate::common::{ProgramRun, Scratch};
use crate::derived_ids::{entries, names};
use crate::runner::{expand_paths, run};
use s3cmtf::format::{CooFile, OpenMode};

fn convert(dir: &Scratch, arguments: &[&str]) -> ProgramRun {
    run(expand_paths(dir, &[&["convert"], arguments].concat()))
}

const MOVIES: &str = "movieId,title,genres,year,length\n\
    10,\"Lock, Stock\",Crime|Comedy,1998,107\n\
    30,Elsewhere,Drama,2001,90\n\
    20,Heat,Crime|Drama,1995,170\n";

/// Writes a table and converts ratings of films 10, 20 and 25, the ids being numbers or strings.
fn data(name: &str, strings: &[&str]) -> Scratch {
    let dir = Scratch::new(name);
    dir.file("movies.csv", MOVIES);
    dir.file("r.csv", "u,m,rating\n1,25,1\n2,10,2\n1,20,3\n");
    convert(&dir, &[&["@r.csv", "@r.coo"][..], strings].concat()).ok();
    dir
}

#[test]
fn categories_are_one_hot_and_rows_are_those_of_the_tensor() {
    for strings in [&[][..], &["--strings", "m"]] {
        let dir = data("attributes-genres", strings);
        let ran = convert(
            &dir,
            &[
                "@movies.csv",
                "@g.coo",
                "--rows-of",
                "2:@r.coo",
                "--columns",
                "movieId,genres",
                "--split",
                "genres:|",
            ],
        )
        .ok();
        let unknown = "1 line with a key that the tensor does not have";
        assert!(ran.stdout.contains(unknown), "{}", ran.stdout);
        let (film_10, film_20, rows) = if strings.is_empty() {
            (10, 20, 25)
        } else {
            (2, 3, 3)
        };
        assert_eq!(
            entries(&dir, "g.coo"),
            [
                (vec![film_10, 1], 1.0),
                (vec![film_10, 2], 1.0),
                (vec![film_20, 1], 1.0),
                (vec![film_20, 3], 1.0)
            ]
        );
        assert_eq!(names(&dir, "g.mode2.tsv"), ["Crime", "Comedy", "Drama"]);
        let file = CooFile::open(dir.join("g.coo"), OpenMode::Mapped).unwrap();
        assert_eq!(file.header().dims, [rows, 3]);
        assert!(!file.header().dims_inferred);
        assert_eq!(dir.join("g.mode1.tsv").exists(), !strings.is_empty());
    }
}

#[test]
fn numbers_and_bins_are_columns_too() {
    let dir = data("attributes-numbers", &[]);
    let table = ["@movies.csv", "@g.coo", "--rows-of", "2:@r.coo"];
    let more = [
        "--columns",
        "movieId,genres,year",
        "--split",
        "genres:|",
        "--bin",
        "year:width=2",
        "--numeric",
        "length",
    ];
    convert(&dir, &[table, more[..4].try_into().unwrap()].concat()).ok();
    convert(&dir, &[&table[..], &more].concat()).ok();
    assert_eq!(
        names(&dir, "g.mode2.tsv"),
        [
            "genres=Crime",
            "genres=Comedy",
            "genres=Drama",
            "year=[1994, 1996)",
            "year=[1996, 1998)",
            "year=[1998, 2000)",
            "length"
        ]
    );
    assert_eq!(
        entries(&dir, "g.coo"),
        [
            (vec![10, 1], 1.0),
            (vec![10, 2], 1.0),
            (vec![10, 6], 1.0),
            (vec![10, 7], 107.0),
            (vec![20, 1], 1.0),
            (vec![20, 3], 1.0),
            (vec![20, 4], 1.0),
            (vec![20, 7], 170.0)
        ]
    );
    // One column of numbers alone keeps its name.
    let alone = ["--columns", "movieId", "--numeric", "length"];
    convert(&dir, &[&table[..], &alone].concat()).ok();
    assert_eq!(names(&dir, "g.mode2.tsv"), ["length"]);
}

#[test]
fn faulty_tables() {
    let dir = data("attributes-faults", &[]);
    let table = [
        "@t.csv",
        "@g.coo",
        "--rows-of",
        "2:@r.coo",
        "--columns",
        "movieId,genres",
    ];
    let go = |text: &str, more: &[&str]| {
        dir.file("t.csv", format!("movieId,genres\n{text}"));
        let list = ["--split", "genres:|"];
        convert(&dir, &[&table[..], &list, more].concat())
    };
    go("10,A\n20,B\n10,C\n", &[]).failed(2, &["t.csv", "line 4", "'10'", "line 2"]);
    let ran = go("10,A\n20,B\n10,A\n", &[]).ok();
    assert!(
        ran.stdout.contains("1 line repeated exactly"),
        "{}",
        ran.stdout
    );
    go("10,A\n20,\n", &[]).failed(2, &["line 3", "'genres'", "the list is empty"]);
    let ran = go("10,A\n20,\n10,B\n,A\n", &["--skip-bad-lines"]).ok();
    assert!(
        ran.stdout.contains("3 lines skipped as invalid"),
        "{}",
        ran.stdout
    );
    let ran = go("10,A\n20,(none)\n", &["--missing", "(none)"]).ok();
    assert!(
        ran.stdout.contains("1 line with a missing field"),
        "{}",
        ran.stdout
    );
    assert_eq!(entries(&dir, "g.coo").len(), 1);
    std::fs::remove_file(dir.join("g.coo")).unwrap();
    go("30,A\n40,B\n", &[]).failed(2, &["line 2", "'30'", "mode 2 of", "r.coo"]);
    go("", &[]).failed(2, &["t.csv", "has no lines besides the header"]);
    go("x,A\n", &[]).failed(2, &["line 2", "'x'", "not an index"]);
    go("10,A\n", &["--value", "genres"]).failed(2, &["rows-of", "numeric"]);
    go("10,A\n", &["--dims", "3,3"]).failed(2, &["rows-of", "dims"]);
    go("10,A\n", &["--numeric", "genres"]).failed(2, &["used twice"]);
    let of = |file: &str, columns: &[&str]| {
        convert(
            &dir,
            &[&["@t.csv", "@g.coo", "--rows-of", file][..], columns].concat(),
        )
    };
    let columns = ["--columns", "movieId,genres"];
    of("3:@r.coo", &columns).failed(2, &["r.coo", "no mode 3"]);
    of("0:@r.coo", &columns).failed(2, &["mode 0"]);
    of("@r.coo", &columns).failed(2, &["MODE:FILE"]);
    of("2:@none.coo", &columns).failed(2, &["none.coo", "no such file"]);
    of("2:@r.coo", &[]).failed(2, &["--columns"]);
    of("2:@r.coo", &columns[..1]).failed(2, &["--columns"]);
    of("2:@r.coo", &["--columns", "movieId"]).failed(2, &["at least one attribute"]);
    assert!(!dir.join("g.coo").exists());
    let ran = convert(
        &dir,
        &[
            "@t.csv",
            "@r.coo",
            "--rows-of",
            "2:@r.coo",
            "--columns",
            "movieId,genres",
        ],
    );
    ran.failed(2, &["r.coo", "is the input itself"]);
}
