//! Rows of several files are matched by their names, in every command.

use std::fs;

use serde_json::Value;

use crate::common::{ProgramRun, Scratch, next_unit};
use crate::runner::{expand_paths, run};

const USERS: usize = 24;
const FILMS: usize = 16;
const FIT: &[&str] = &[
    "--rank",
    "3",
    "--epochs",
    "6",
    "--threads",
    "1",
    "--algorithm",
    "blocked",
    "--json",
];

/// Writes a training set with names, and the other files of a fit in three folders: `same` has them with the row numbers of the
/// training set, `mixed` with others, `text` as CSV.
fn data(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    for folder in ["same", "mixed", "text"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    let mut seed = 7;
    let mut texts = [(); 3].map(|()| String::from("user,film,month,stars\n"));
    let mut weights = String::from("user,film,month,value\n");
    for u in 0..USERS {
        for f in 0..FILMS {
            let month = (u + 3 * f) % 4;
            let stars = 3.0 + ((u * 7 + f * 5) % 5) as f64 / 2.0;
            // Multiples of 1/64 are the same in 32 bits.
            let stars = stars + (12.0 * next_unit(&mut seed)).floor() / 64.0;
            let part = match (next_unit(&mut seed) * 10.0) as usize {
                0..=6 => 0,
                7 | 8 => 1,
                _ => 2,
            };
            texts[part] += &format!("u{u},f{f},m{month},{stars}\n");
            if part == 0 {
                weights += &format!("u{u},f{f},m{month},{}\n", 1 + (u + f) % 3);
            }
        }
    }
    let [train, test, valid] = texts;
    let genres: String = (0..FILMS).map(|f| format!("f{f},g{},1\n", f % 5)).collect();
    let friends: String = (0..USERS)
        .map(|u| format!("u{u},u{},1\n", (u * 5 + 1) % USERS))
        .collect();
    // A film that only the matrix has, and a new user.
    let more: String = (0..FILMS + 1)
        .map(|f| format!("f{f},g{},1\n", f % 5))
        .collect();
    let extra = format!("film,genre,value\nf{FILMS},g1,1\n");
    let new: String = (0..FILMS)
        .map(|f| format!("new,f{f},m1,{}\n", 1 + f % 5))
        .collect();
    let names = |start: &str, end: usize| {
        let lines = (0..end).rev().enumerate();
        let lines = lines.map(|(i, k)| format!("{}\t{start}{k}\n", i + 1));
        format!("index\tname\n{}", lines.collect::<String>())
    };
    dir.file("train.csv", train);
    convert(&dir, &["@train.csv", "@train.coo"]);
    dir.file("mixed/users.tsv", names("u", USERS));
    dir.file("mixed/films.tsv", names("f", FILMS));
    dir.file("mixed/months.tsv", names("m", 4));
    let entries = ["user", "film", "month"];
    for (file, text, columns) in [
        ("test", test, &entries[..]),
        ("valid", valid, &entries),
        ("weights", weights, &entries),
        ("new", format!("user,film,month,stars\n{new}"), &entries),
        ("genres", format!("film,genre,value\n{genres}"), &["film"]),
        ("more", format!("film,genre,value\n{more}"), &["film"]),
        ("extra", extra, &["film"]),
        (
            "friends",
            format!("user,friend,value\n{friends}"),
            &["user", "user"],
        ),
    ] {
        let csv = format!("@text/{file}.csv");
        dir.file(&csv[1..], text);
        for folder in ["same", "mixed"] {
            let coo = format!("@{folder}/{file}.coo");
            let list = |(n, mode): (usize, &&str)| {
                let known = entries.iter().position(|m| m == mode).unwrap() + 1;
                let of = match folder {
                    "same" => format!("@train.mode{known}.tsv"),
                    _ => format!("@mixed/{mode}s.tsv"),
                };
                ["--names".into(), format!("{}:{of}", n + 1)]
            };
            let names: Vec<String> = columns.iter().enumerate().flat_map(list).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            convert(&dir, &[&[&*csv, &*coo], &names[..]].concat());
        }
    }
    dir
}

fn convert(dir: &Scratch, arguments: &[&str]) {
    run(expand_paths(dir, &[&["convert"], arguments].concat())).ok();
}

fn command(dir: &Scratch, arguments: &[&str]) -> ProgramRun {
    run(expand_paths(dir, arguments))
}

/// Returns the arguments with `~` as the folder and `.?` as the extension of its files.
fn in_folder(arguments: &[&str], folder: &str) -> Vec<String> {
    let extension = if folder == "text" { ".csv" } else { ".coo" };
    let path = |a: &&str| {
        a.replace('~', &format!("@{folder}"))
            .replace(".?", extension)
    };
    arguments.iter().map(path).collect()
}

/// Returns the lines of output without times, memory and names of files.
fn results(ran: ProgramRun) -> Vec<Value> {
    fn strip(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|name, _| {
                let is_cost = name.contains("second") || name.contains("memory");
                !is_cost && !["output", "file", "index", "eta", "threads"].contains(&name.as_str())
            });
            fields.values_mut().for_each(strip);
        } else if let Value::Array(items) = value {
            items.iter_mut().for_each(strip);
        }
    }
    let mut lines = ran.ok().json();
    // Warnings name files.
    lines.retain(|line| line["event"] != "warning");
    lines.iter_mut().for_each(strip);
    lines
}

/// Runs the command with the files of each of the folders and compares its results.
fn assert_equal_results(dir: &Scratch, arguments: &[&str], folders: &[&str]) {
    let all: Vec<Vec<Value>> = folders
        .iter()
        .map(|folder| {
            let arguments = in_folder(arguments, folder);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            results(command(dir, &arguments))
        })
        .collect();
    assert!(!all[0].is_empty());
    for (other, folder) in all.iter().zip(folders).skip(1) {
        assert_eq!(*other, all[0], "{arguments:?}, {folder}");
    }
}

#[test]
fn fits_and_searches_match_rows_by_name() {
    let dir = data("match-fit");
    let fit = |more: &[&str]| {
        let start = ["fit", "--tensor", "@train.coo", "-o", "@m.s3m"];
        assert_equal_results(
            &dir,
            &[&start[..], FIT, more].concat(),
            &["same", "mixed", "text"],
        );
    };
    fit(&["--test", "~/test.?"]);
    fit(&["--valid", "~/valid.?"]);
    fit(&["--weights", "~/weights.?"]);
    fit(&["--matrix", "2:~/genres.?:1:full", "--test", "~/test.?"]);
    fit(&[
        "--matrix",
        "2:~/genres.?:1:observed",
        "--graph",
        "1:~/friends.?:1",
    ]);
    fit(&["--matrix", "2:~/more.?:1:full", "--test", "~/test.?"]);
    // The tensor as text gives the same fit as its binary file.
    let tensor = |tensor: &str| {
        let start = [
            "fit",
            "--tensor",
            tensor,
            "-o",
            "@m.s3m",
            "--test",
            "@mixed/test.coo",
        ];
        results(command(&dir, &[&start[..], FIT].concat()))
    };
    assert_eq!(tensor("@train.csv"), tensor("@train.coo"));
    let tune = [
        "tune",
        "--tensor",
        "@train.coo",
        "-o",
        "@c.conf",
        "--trials",
        "3",
        "--rungs",
        "1",
    ];
    let more = [
        "--valid",
        "~/valid.?",
        "--matrix",
        "2:~/genres.?:1:full",
        "--rank",
        "2..3",
    ];
    let more = [&more[..], &["--epochs", "4", "--threads", "1", "--json"]].concat();
    assert_equal_results(
        &dir,
        &[&tune[..], &more].concat(),
        &["same", "mixed", "text"],
    );
}

#[test]
fn commands_with_a_model_match_rows_by_name() {
    let dir = data("match-model");
    let more = ["--matrix", "2:@same/genres.coo:1:full"];
    command(
        &dir,
        &[
            &["fit", "--tensor", "@train.coo", "-o", "@m.s3m"],
            FIT,
            &more,
        ]
        .concat(),
    )
    .ok();
    // Names beside the training set would be found beside the model as well.
    for n in 1..=3 {
        assert!(dir.join(&format!("m.s3m.mode{n}.tsv")).exists());
    }
    let all = ["same", "mixed", "text"];
    let rank = ["--mode", "2", "--for", "1", "--exclude", "~/valid.?"];
    let eval = ["eval", "@m.s3m", "~/test.?", "--json"];
    assert_equal_results(&dir, &[&eval[..], &rank].concat(), &all);
    assert_equal_results(&dir, &["predict", "@m.s3m", "~/test.?", "--json"], &all);
    assert_equal_results(&dir, &["predict", "@m.s3m", "~/new.?", "--json"], &all[..2]);
    let fold = [
        "fold-in", "@m.s3m", "--mode", "1", "--tensor", "~/new.?", "-o", "@f.s3m", "--json",
    ];
    assert_equal_results(&dir, &fold, &all);
    let named = fs::read_to_string(dir.join("f.s3m.mode1.tsv")).unwrap();
    assert!(named.contains("\tnew\n"), "{named}");
    let fold = [
        "fold-in",
        "@m.s3m",
        "--mode",
        "2",
        "--matrix",
        "2:~/extra.?",
        "-o",
        "@g.s3m",
        "--json",
    ];
    assert_equal_results(&dir, &fold, &all);
    let named = fs::read_to_string(dir.join("g.s3m.mode2.tsv")).unwrap();
    assert!(named.contains(&format!("\tf{FILMS}\n")), "{named}");
    let recommend = [
        "recommend",
        "@m.s3m",
        "--mode",
        "2",
        "--for",
        "1:u3",
        "--json",
    ];
    assert_equal_results(
        &dir,
        &[&recommend[..], &["--exclude", "~/test.?"]].concat(),
        &all,
    );
    let clusters = [
        "clusters",
        "@m.s3m",
        "--mode",
        "2",
        "-k",
        "3",
        "--matrix",
        "~/genres.?",
        "--json",
    ];
    assert_equal_results(&dir, &clusters, &["same", "mixed"]);
    let report = |folder: &str| {
        let page = format!("@{folder}.html");
        let start = [
            "report",
            "@m.s3m",
            "-o",
            &page,
            "--data",
            "@train.coo",
            "--test",
            "~/test.coo",
        ];
        let more = ["--matrix", "2:~/genres.coo", "--max-k", "0"];
        let arguments = in_folder(&[&start[..], &more].concat(), folder);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command(&dir, &arguments).ok();
        let page = fs::read_to_string(dir.join(&page[1..])).unwrap();
        page.replace(folder, "")
    };
    assert_eq!(report("same"), report("mixed"));
}

#[test]
fn jobs_of_a_batch_match_rows_by_name() {
    let dir = data("match-batch");
    for folder in ["same", "mixed", "text"] {
        let start = r#"{"id":"fit","job":"fit","tensor":"@train.coo","test":"~/test.?","valid":"~/valid.?","output":"@%/m.s3m","#;
        let matrices = r#""matrices":[{"mode":2,"file":"~/more.?","kind":"full","weight":1}],"#;
        let options = r#""options":{"rank":3,"epochs":5}}"#;
        let fit = format!("{start}{matrices}{options}");
        let predict = r#"{"id":"predict","job":"predict","model":"@%/m.s3m","file":"~/test.?","output":"@%/p.coo"}"#;
        let out = format!("out-{folder}");
        fs::create_dir(dir.join(&out)).unwrap();
        let jobs = in_folder(&[&fit, predict], folder)
            .join("\n")
            .replace('%', &out);
        dir.file("jobs.jsonl", expand_paths(&dir, &[&jobs])[0].clone());
        command(
            &dir,
            &[
                "batch",
                "@jobs.jsonl",
                "-o",
                &format!("@{out}"),
                "--threads",
                "1",
            ],
        )
        .ok();
    }
    let results = |folder: &str| {
        let lines = fs::read_to_string(dir.join(&format!("out-{folder}/results.jsonl"))).unwrap();
        let mut all: Vec<Value> = lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        all.sort_by_key(|line| line["id"].to_string());
        let metrics = |line: &Value| (line["test_rmse"].clone(), line["valid_rmse"].clone());
        let path = dir.join(&format!("out-{folder}/p.coo"));
        let file = s3cmtf::format::CooFile::open(path, s3cmtf::format::OpenMode::Mapped).unwrap();
        let values: Vec<f64> = (0..file.view().len())
            .map(|i| file.view().values().get(i))
            .collect();
        (all.iter().map(metrics).collect::<Vec<_>>(), values)
    };
    let same = results("same");
    assert!(same.0[0].0.is_f64() && !same.1.is_empty());
    assert_eq!(results("mixed"), same);
    assert_eq!(results("text"), same);
}

#[test]
fn rows_of_one_side_are_reported_and_disjoint_names_are_errors() {
    let dir = data("match-report");
    let fit = |more: &[&str]| {
        command(
            &dir,
            &[
                &["fit", "--tensor", "@train.coo", "-o", "@m.s3m"],
                FIT,
                more,
            ]
            .concat(),
        )
    };
    let ran = fit(&["--matrix", "2:@mixed/more.coo:1:full"]).ok();
    let added = "1 of its 17 rows of mode 2 are not in";
    assert!(
        ran.stderr.contains(added) && ran.stderr.contains("added"),
        "{}",
        ran.stderr
    );
    let names = fs::read_to_string(dir.join("m.s3m.mode2.tsv")).unwrap();
    assert!(
        names.ends_with(&format!("{}\tf{FILMS}\n", FILMS + 1)),
        "{names}"
    );
    // The films of the file in other words.
    let genres = fs::read_to_string(dir.join("text/genres.csv")).unwrap();
    dir.file("text/other.csv", genres.replace("\nf", "\nfilm "));
    convert(&dir, &["@text/other.csv", "@mixed/other.coo"]);
    for file in ["@text/other.csv", "@mixed/other.coo"] {
        let matrix = format!("2:{file}");
        fit(&["--matrix", &matrix]).failed(2, &["no name of its rows", "film 0", "\"f"]);
    }
    // Row numbers in text without ids, and files without names.
    dir.file("plain.tns", "1 1 1 3\n2 2 2 4\n3 3 1 5\n");
    convert(&dir, &["@plain.tns", "@plain.coo"]);
    for file in ["@plain.tns", "@plain.coo"] {
        let ran = fit(&["--test", file]).ok();
        let warning = "but not in";
        assert!(
            ran.stderr.contains(warning) && ran.stderr.contains("by number"),
            "{}",
            ran.stderr
        );
    }
    command(
        &dir,
        &[
            "fit",
            "--tensor",
            "@plain.coo",
            "-o",
            "@p.s3m",
            "--test",
            "@text/test.csv",
        ],
    )
    .failed(2, &["the ids of mode 1 are strings", "--names 1:FILE"]);
    assert!(fit(&["--test", "@same/test.coo"]).ok().stderr.is_empty());
}

#[test]
fn whole_numbers_are_names_of_named_modes() {
    let dir = Scratch::new("match-numbers");
    // Ids that are numbers, in an order of their own.
    let line = |u: usize, f: usize| format!("{},{},{}\n", 70 - u, 10 + f, (u + f) % 5);
    let cells = || (0..12).flat_map(|u| (0..9).map(move |f| (u, f)));
    let train: String = cells()
        .filter(|(u, f)| (u + f) % 4 > 0)
        .map(|(u, f)| line(u, f))
        .collect();
    let test: String = cells()
        .filter(|(u, f)| (u + f) % 4 == 0)
        .map(|(u, f)| line(u, f))
        .collect();
    dir.file("train.csv", format!("user,film,stars\n{train}"));
    dir.file("test.csv", format!("user,film,stars\n{test}"));
    convert(&dir, &["@train.csv", "@train.coo", "--strings", "all"]);
    let known = [
        "--names",
        "1:@train.mode1.tsv",
        "--names",
        "2:@train.mode2.tsv",
    ];
    convert(&dir, &[&["@test.csv", "@test.coo"], &known[..]].concat());
    let fit = |test: &str| {
        let start = [
            "fit",
            "--tensor",
            "@train.coo",
            "-o",
            "@m.s3m",
            "--test",
            test,
        ];
        results(command(&dir, &[&start[..], FIT].concat()))
    };
    assert_eq!(fit("@test.csv"), fit("@test.coo"));
    // Row numbers follow `#`; `=#` begins a name.
    let predict = |cell: &str| {
        dir.file("cell.csv", format!("user,film\n{cell}\n"));
        command(&dir, &["predict", "@m.s3m", "@cell.csv", "--no-value"])
    };
    let by_name = predict("69,11").ok().stdout;
    assert!(by_name.starts_with("2 "), "{by_name}");
    let row = by_name.split(' ').nth(1).unwrap();
    assert_eq!(predict(&format!("#2,#{row}")).ok().stdout, by_name);
    predict("#13,11").failed(2, &["line 2", "'#13' is no row of mode 1", "#1 to #12"]);
    let unseen = predict("=#2,11\n69,11").ok();
    assert!(
        unseen
            .stderr
            .contains("1 of its 2 rows of mode 1 are not in"),
        "{}",
        unseen.stderr
    );
}

#[test]
fn an_initial_model_must_have_the_rows_of_the_tensor() {
    let dir = data("match-init");
    command(
        &dir,
        &[&["fit", "--tensor", "@train.coo", "-o", "@m.s3m"], FIT].concat(),
    )
    .ok();
    let again = |tensor: &str| {
        let start = [
            "fit", "--tensor", tensor, "-o", "@n.s3m", "--init", "@m.s3m",
        ];
        command(&dir, &[&start[..], FIT].concat())
    };
    again("@train.coo").ok();
    again("@mixed/test.coo").failed(2, &["numbered differently", "--names"]);
}

#[test]
fn columns_of_a_model_are_matched_by_name() {
    let dir = data("match-columns");
    let matrix = ["--matrix", "2:@text/genres.csv:1:full"];
    command(
        &dir,
        &[
            &["fit", "--tensor", "@train.coo", "-o", "@m.s3m"],
            FIT,
            &matrix,
        ]
        .concat(),
    )
    .ok();
    assert!(dir.join("m.s3m.matrix1.tsv").exists());
    // The same facts in another order of the columns, and a column that the model does not have.
    dir.file("a.csv", "film,genre,value\nx,g0,1\ny,g1,1\n");
    dir.file("b.csv", "film,genre,value\ny,g1,1\nx,steampunk,1\nx,g0,1\n");
    convert(&dir, &["@b.csv", "@b.coo"]);
    dir.file("cells.csv", "user,film,month\nu1,x,m1\nu1,y,m1\n");
    let predicted = |matrix: &str| {
        let matrix = format!("1:@{matrix}").replacen('1', "2", 1);
        let fold = [
            "fold-in", "@m.s3m", "--mode", "2", "--matrix", &matrix, "-o", "@n.s3m",
        ];
        let ran = command(&dir, &fold).ok();
        let is_noted = ran
            .stderr
            .contains("1 of its 3 columns of matrix 1 are not in");
        assert_eq!(is_noted, matrix.contains("@b"), "{}", ran.stderr);
        let names = fs::read_to_string(dir.join("n.s3m.matrix1.tsv")).unwrap();
        assert!(!names.contains("steampunk"), "{names}");
        let lines = command(&dir, &["predict", "@n.s3m", "@cells.csv", "--no-value"])
            .ok()
            .stdout;
        let value = |line: &str| line.rsplit(' ').next().unwrap().to_string();
        lines.lines().map(value).collect::<Vec<_>>()
    };
    let expected = predicted("a.csv");
    assert_ne!(expected[0], expected[1]);
    assert_eq!(predicted("b.csv"), expected);
    assert_eq!(predicted("b.coo"), expected);
    // Starting from a model whose columns have other numbers is refused.
    let other = ["--matrix", "2:@mixed/genres.coo:1:full", "--init", "@m.s3m"];
    let fit = ["fit", "--tensor", "@train.coo", "-o", "@o.s3m"];
    command(&dir, &[&fit[..], FIT, &other].concat()).ok();
    dir.file(
        "turned.csv",
        "film,genre,value\nf0,g4,1\nf1,g3,1\nf2,g2,1\nf3,g1,1\nf4,g0,1\n",
    );
    let turned = ["--matrix", "2:@turned.csv:1:full", "--init", "@m.s3m"];
    command(&dir, &[&fit[..], FIT, &turned].concat()).failed(
        2,
        &[
            "of the columns of matrix 1 is called",
            "numbered differently",
        ],
    );
}

#[test]
fn ids_that_look_like_row_numbers_keep_their_meaning() {
    let dir = Scratch::new("match-hash");
    dir.file(
        "a.csv",
        "apt,item,rating\n#2,x,1\n#3,x,5\n#1,y,3\n#3,y,4\n#2,y,2\n",
    );
    convert(&dir, &["@a.csv", "@a.coo"]);
    let fit = |test: &str| {
        let start = ["fit", "--tensor", "@a.csv", "--test", test, "-o", "@m.s3m"];
        results(command(&dir, &[&start[..], FIT].concat()))
    };
    assert_eq!(fit("@a.csv"), fit("@a.coo"));
    let eval = |file: &str| results(command(&dir, &["eval", "@m.s3m", file, "--json"]));
    assert_eq!(eval("@a.csv"), eval("@a.coo"));
}

#[test]
fn rows_without_names_and_rows_added_by_name_are_different_rows() {
    let dir = data("match-unnamed");
    // Films 17 and 18 by number, and film 17 by name.
    let numbers: String = (1..=FILMS + 2)
        .map(|f| format!("{f} {} 1\n", 1 + f % 3))
        .collect();
    dir.file("numbers.tns", numbers);
    let fit = |matrices: [&str; 2]| {
        let matrices = matrices.map(|file| format!("2:{file}:1:full"));
        let matrices = ["--matrix", &matrices[0], "--matrix", &matrices[1]];
        let start = ["fit", "--tensor", "@train.coo", "-o", "@m.s3m"];
        command(&dir, &[&start[..], FIT, &matrices].concat())
    };
    fit(["@numbers.tns", "@mixed/more.coo"]).ok();
    let size = command(&dir, &["info", "@m.s3m", "--json"]).ok().json()[0]["dims"][1].clone();
    assert_eq!(size, FILMS + 3);
    fit(["@mixed/more.coo", "@numbers.tns"])
        .failed(2, &["numbers.tns", "behind which others were added"]);
    // Entries by number, beyond the films of the tensor and the one that was added.
    dir.file("beyond.tns", format!("1 {} 1 4\n2 2 2 3\n", FILMS + 1));
    let ran = command(
        &dir,
        &[
            &["fit", "--tensor", "@train.coo", "-o", "@m.s3m"],
            FIT,
            &[
                "--matrix",
                "2:@same/more.coo:1:full",
                "--test",
                "@beyond.tns",
            ],
        ]
        .concat(),
    )
    .ok();
    assert!(ran.stderr.contains("beyond the 16"), "{}", ran.stderr);
}

#[test]
fn predictions_have_the_names_of_their_rows() {
    let dir = data("match-predictions");
    command(
        &dir,
        &[&["fit", "--tensor", "@train.coo", "-o", "@m.s3m"], FIT].concat(),
    )
    .ok();
    for file in ["@mixed/test.coo", "@text/test.csv"] {
        command(&dir, &["predict", "@m.s3m", file, "-o", "@predicted.coo"]).ok();
        let found = command(&dir, &["eval", "@m.s3m", "@predicted.coo", "--json"]).ok();
        assert!(found.stderr.is_empty(), "{}", found.stderr);
        assert!(found.json()[0]["rmse"].as_f64().unwrap() < 1e-6);
    }
}

#[test]
fn jobs_that_add_different_rows_do_not_share_texts() {
    let dir = data("match-cache");
    for (file, film) in [("ga", "added"), ("gb", "other")] {
        let rows: String = (0..FILMS).map(|f| format!("f{f},g{},1\n", f % 5)).collect();
        dir.file(
            &format!("{file}.csv"),
            format!("film,genre,value\n{rows}{film},g1,1\n"),
        );
    }
    let test = fs::read_to_string(dir.join("text/test.csv")).unwrap();
    dir.file(
        "tt.csv",
        test + "u1,other,m1,4\nu2,other,m2,5\nu3,added,m1,1\n",
    );
    let job = |id: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","tensor":"@train.coo","test":"@tt.csv","matrices":[{{"mode":2,"file":"@{id}.csv","kind":"full","weight":1}}],"output":"@{id}.s3m","options":{{"rank":3,"epochs":4,"threads":1}}}}"#
        )
    };
    let errors = |out: &str, jobs: &[&str]| {
        fs::create_dir(dir.join(out)).unwrap();
        let jobs = jobs.iter().map(|id| job(id)).collect::<Vec<_>>().join("\n");
        dir.file("jobs.jsonl", expand_paths(&dir, &[&jobs])[0].clone());
        command(
            &dir,
            &[
                "batch",
                "@jobs.jsonl",
                "-o",
                &format!("@{out}"),
                "--threads",
                "1",
            ],
        )
        .ok();
        let lines = fs::read_to_string(dir.join(&format!("{out}/results.jsonl"))).unwrap();
        let mut all: Vec<Value> = lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        all.sort_by_key(|line| line["id"].to_string());
        all.iter()
            .map(|line| line["test_rmse"].clone())
            .collect::<Vec<_>>()
    };
    let (together, a, b) = (
        errors("both", &["ga", "gb"]),
        errors("a", &["ga"]),
        errors("b", &["gb"]),
    );
    assert_eq!(together, [a, b].concat());
}
