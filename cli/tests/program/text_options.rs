//! Options for reading text in all commands that read it.

use std::fs;

use crate::common::Scratch;
use crate::runner::{expand_paths, run};
use s3cmtf::format::OpenMode;
use s3cmtf::model;

/// Writes the same ratings and genres in the default layout and in one that needs options: indices from 0, additional
/// columns, another order, genres without values.
fn write_data(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let mut plain = [String::new(), String::new()];
    let mut odd = [0; 2].map(|_| String::from("stars;note;film;user;month\n"));
    for i in 0..2400u32 {
        let (user, film, month) = (i * 7 % 40, i * 11 % 30, i % 6);
        let stars = f64::from((1 + user % 5) * (1 + film % 3)) / 3.0;
        let part = usize::from(i % 5 == 0);
        plain[part] += &format!("{} {} {} {stars}\n", user + 1, film + 1, month + 1);
        odd[part] += &format!("{stars};x;{film};{user};{month}\n");
    }
    let mut genres = String::new();
    let mut odd_genres = String::from("genre,film\n");
    for film in 0..30 {
        genres += &format!("{} {} 1\n", film + 1, film % 3 + 1);
        odd_genres += &format!("{},{film}\n", film % 3);
    }
    dir.file("train.tns", &plain[0]);
    dir.file("test.tns", &plain[1]);
    dir.file("genres.tns", genres);
    dir.file("train.csv", &odd[0]);
    dir.file("test.csv", &odd[1]);
    dir.file("genres.csv", odd_genres);
    dir
}

const FIT: [&str; 7] = ["fit", "--rank", "2", "--epochs", "3", "--threads", "1"];
const ODD: [&str; 9] = [
    "--from",
    "csv",
    "--delimiter",
    ";",
    "--columns",
    "user,film,month",
    "--value",
    "stars",
    "--zero-based",
];
const ODD_GENRES: [&str; 4] = [
    "--matrix-text",
    "columns=film,genre",
    "--matrix-text",
    "no-value=true",
];

#[test]
fn fit_reads_text_like_convert() {
    let dir = write_data("text-fit");
    let go = |parts: &[&[&str]]| run(expand_paths(&dir, &parts.concat()));
    go(&[
        &FIT,
        &["--tensor", "@train.tns", "--test", "@test.tns"],
        &["--matrix", "2:@genres.tns", "-o", "@plain.s3m"],
    ])
    .ok();
    go(&[
        &FIT,
        &["--tensor", "@train.csv", "--test", "@test.csv"],
        &["--matrix", "2:@genres.csv", "-o", "@odd.s3m"],
        &ODD,
        &ODD_GENRES,
    ])
    .ok();
    // Binary files may be mixed with text; the options apply to text only.
    run(expand_paths(&dir, &["convert", "@test.tns", "@test.coo"])).ok();
    run(expand_paths(
        &dir,
        &["convert", "@genres.tns", "@genres.coo"],
    ))
    .ok();
    go(&[
        &FIT,
        &["--tensor", "@train.csv", "--test", "@test.coo"],
        &["--matrix", "2:@genres.coo", "-o", "@mixed.s3m"],
        &ODD,
    ])
    .ok();
    let load = |name: &str| model::load(dir.join(name), OpenMode::Private).unwrap();
    let plain = load("plain.s3m");
    for other in ["odd.s3m", "mixed.s3m"].map(load) {
        assert_eq!(plain.dims(), other.dims());
        for (a, b) in plain.history().iter().zip(other.history()) {
            assert_eq!((a.loss, a.train_rmse), (b.loss, b.train_rmse));
        }
    }

    let eval = |parts: &[&[&str]]| {
        let ran = run(expand_paths(&dir, &parts.concat())).ok();
        ran.json()[0]["rmse"].as_f64().unwrap()
    };
    assert_eq!(
        eval(&[&["eval", "@plain.s3m", "@test.tns", "--json"]]),
        eval(&[&["eval", "@plain.s3m", "@test.csv", "--json"], &ODD]),
    );
    let predict = |parts: &[&[&str]]| run(expand_paths(&dir, &parts.concat())).ok().stdout;
    assert_eq!(
        predict(&[&["predict", "@plain.s3m", "@test.tns"]]),
        predict(&[&["predict", "@plain.s3m", "@test.csv"], &ODD]),
    );
    for command in ["check", "info"] {
        let ran = run(expand_paths(
            &dir,
            &[&[command, "@test.csv"], &ODD[..]].concat(),
        ));
        assert!(ran.stdout.contains("480 entries"), "{}", ran.stdout);
    }
}

#[test]
fn text_options_without_text_are_rejected() {
    let dir = write_data("text-refused");
    for name in ["train", "genres"] {
        let (text, binary) = (format!("@{name}.tns"), format!("@{name}.coo"));
        run(expand_paths(&dir, &["convert", &text, &binary])).ok();
    }
    let fit = |more: &[&str]| {
        let all = [&FIT[..], &["--tensor", "@train.coo", "-o", "@m.s3m"], more].concat();
        run(expand_paths(&dir, &all))
    };
    fit(&["--zero-based"]).failed(2, &["train.coo", "is binary"]);
    fit(&[
        "--matrix",
        "2:@genres.coo",
        "--matrix-text",
        "zero-based=true",
    ])
    .failed(2, &["genres.coo", "is binary"]);
    fit(&["--matrix-text", "zero-based=true"]).failed(2, &["none is given"]);
    fit(&["--matrix", "2:@genres.csv", "--matrix-text", "columns"])
        .failed(2, &["--matrix-text columns", "NAME=VALUE"]);
    fit(&["--matrix", "2:@genres.csv", "--matrix-text", "colums=1"])
        .failed(2, &["no option 'colums'"]);
    assert!(!dir.join("m.s3m").exists());
    fit(&[]).ok();
    run(expand_paths(&dir, &["info", "@m.s3m", "--zero-based"]))
        .failed(2, &["m.s3m", "is a model"]);
    run(expand_paths(&dir, &["info", "@m.s3m"])).ok();
    run(["bench", "--zero-based"]).failed(2, &["--tensor"]);
}

#[test]
fn text_ids_are_accepted_if_all_files_use_names() {
    let dir = Scratch::new("text-names");
    let mut ratings = String::from("user,film,stars\n");
    for i in 0..60 {
        ratings += &format!("u{},f{},{}\n", i % 7, i % 9, i % 5);
    }
    dir.file("ratings.csv", ratings);
    run(expand_paths(
        &dir,
        &["convert", "@ratings.csv", "@ratings.coo"],
    ))
    .ok();
    let fit = [
        "fit",
        "--tensor",
        "@ratings.coo",
        "--rank",
        "2",
        "--epochs",
        "2",
        "-o",
        "@m.s3m",
    ];
    run(expand_paths(&dir, &fit)).ok();
    let cells = dir.file("cells.csv", "user,film\nu6,f8\nu0,f1\n");
    let names = [
        "--names",
        "1:@ratings.mode1.tsv",
        "--names",
        "2:@ratings.mode2.tsv",
    ];
    let predict = |names: &[&str]| {
        let all = [&["predict", "@m.s3m", "@cells.csv", "--no-value"], names].concat();
        run(expand_paths(&dir, &all))
    };
    let ran = predict(&names).ok();
    let found: Vec<&str> = ran
        .stdout
        .lines()
        .map(|l| l.rsplit_once(' ').unwrap().0)
        .collect();
    assert_eq!(found, ["7 9", "1 2"]);
    // Ids are names of the model's rows also without --names; others are unseen rows.
    assert_eq!(predict(&[]).ok().stdout, ran.stdout);
    fs::write(cells, "user,film\nu6,f8\nu0,f9\n").unwrap();
    for names in [&names[..], &[]] {
        let ran = predict(names).ok();
        let note = "1 of its 2 rows of mode 2 are not in";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
    }
    fs::remove_file(dir.join("m.s3m.mode1.tsv")).unwrap();
    predict(&[]).failed(2, &["the ids of mode 1 are strings", "--names 1:FILE"]);
}
