//! `s3cmtf concepts` and `clusters`.

use crate::common::{ProgramRun, Scratch};
use crate::runner::run;

/// Writes ratings of films of three kinds, a matrix of kinds, and names, and fits two models, with and without the matrix.
fn fitted(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let (mut tensor, mut matrix) = (String::new(), String::new());
    let mut films = String::new();
    for film in 0..30u32 {
        for user in (0..25u32).filter(|user| (user * 7 + film * 3) % 4 > 0) {
            let stars = 1 + (user * (1 + film % 3) + user / 5) % 5;
            let month = 1 + (user + film / 3) % 2;
            tensor += &format!("{} {} {month} {stars}\n", user + 1, film + 1);
        }
        films += &format!("{}\tFilm, The {film}\n", film + 1);
        (0..3).for_each(|k| {
            matrix += &format!("{} {} {}\n", film + 1, k + 1, u8::from(film % 3 == k))
        });
    }
    scratch.file("ratings.tns", tensor);
    scratch.file("kinds.tns", matrix);
    scratch.file("films.tsv", films);
    scratch.file("kinds.tsv", "1\tcomedy\n2\tdrama\n3\thorror\n");
    let path = |name: &str| scratch.join(name).display().to_string();
    let (tensor, matrix) = (path("ratings.tns"), format!("2:{}", path("kinds.tns")));
    let fit = [
        "fit",
        "--tensor",
        &tensor,
        "--rank",
        "3",
        "--epochs",
        "20",
        "--threads",
        "2",
    ];
    let (coupled, plain) = (path("coupled.s3m"), path("plain.s3m"));
    let more = ["--algorithm", "als", "--model", "cp"];
    run(fit
        .iter()
        .chain(&more)
        .chain(&["--matrix", &matrix, "-o", &coupled]))
    .ok();
    run(fit.iter().chain(&more).chain(&["-o", &plain])).ok();
    scratch
}

fn all(arguments: &[&str], more: &[&str]) -> ProgramRun {
    run(arguments.iter().chain(more))
}

#[test]
fn clusters_are_printed_with_labels_and_gap_curves() {
    let scratch = fitted("clusters-cli");
    let path = |name: &str| scratch.join(name).display().to_string();
    let (model, other, matrix) = (path("coupled.s3m"), path("plain.s3m"), path("kinds.tns"));
    let names = format!("2:{}", path("films.tsv"));
    let kinds = format!("1:{}", path("kinds.tsv"));
    let base = [
        "clusters",
        &model,
        "--mode",
        "2",
        "--restarts",
        "3",
        "--references",
        "4",
    ];
    let labels = [
        "--matrix",
        &matrix,
        "--matrix-names",
        &kinds,
        "--names",
        &names,
    ];
    let asked = [&base[..], &labels, &["-k", "3"]].concat();
    let found = all(&asked, &["--json"]).ok().json().remove(0);
    assert_eq!(
        (&found["k"], &found["rows"], &found["mode"]),
        (&3.into(), &30.into(), &2.into())
    );
    assert!(found["gap"].is_null());
    let clusters = found["clusters"].as_array().unwrap();
    let mut seen = Vec::new();
    for c in clusters {
        assert_eq!(c["size"], 10);
        let label = &c["labels"][0];
        assert_eq!(
            (&label["count"], &label["total_count"]),
            (&10.into(), &10.into())
        );
        // All 10 films of a kind, out of 30, are in one cluster: the hypergeometric p-value is a product.
        let each = (0..10).map(|i| f64::from(10 - i) / f64::from(30 - i));
        let expected: f64 = each.product();
        assert!((label["p_value"].as_f64().unwrap() / expected - 1.0).abs() < 1e-9);
        assert_eq!(c["members"].as_array().unwrap().len(), 5);
        assert!(
            c["members"][0]["name"]
                .as_str()
                .unwrap()
                .starts_with("Film, The")
        );
        seen.push(label["name"].as_str().unwrap().to_string());
    }
    seen.sort();
    assert_eq!(seen, ["comedy", "drama", "horror"]);
    assert!((found["uncertainty_coefficients"][0].as_f64().unwrap() - 1.0).abs() < 1e-9);
    // The output is independent of the thread count; text and CSV have the same clusters.
    for threads in ["1", "3"] {
        let again = all(&asked, &["--json", "--threads", threads]).ok().json();
        assert_eq!(again[0], found);
    }
    let text = all(&asked, &[]).ok().stdout;
    for word in [
        "30 rows of mode 2 in 3 clusters",
        "comedy",
        "10 of its rows, 10 of all",
    ] {
        assert!(text.contains(word), "{text}");
    }
    let csv = all(&asked, &["--csv"]).ok().stdout;
    assert_eq!(csv.lines().count(), 31);
    assert!(csv.starts_with("row,row_name,cluster,distance\n") && csv.contains("\"Film, The 0\""));
    // Gap curves of both models.
    let compared = ["--max-k", "5", "--against", &other];
    let both = all(&base, &[&compared[..], &["--json"]].concat())
        .ok()
        .json()
        .remove(0);
    for found in [&both, &both["against"]] {
        let curve = &found["gap"];
        assert_eq!(curve["points"].as_array().unwrap().len(), 5);
        assert_eq!(curve["recommended_k"], found["k"]);
    }
    let text = all(&base, &compared).ok().stdout;
    assert!(
        text.contains("coupled.s3m:") && text.contains("plain.s3m:"),
        "{text}"
    );
    // Without curves, both models and all matrices are reported, and only significant labels are printed.
    scratch.file(
        "odd.tns",
        (1..=30)
            .map(|i| format!("{i} {} 1\n", 1 + i / 4 % 2))
            .collect::<String>(),
    );
    let odd = path("odd.tns");
    let more = ["--matrix", &odd, "--against", &other, "--labels", "9"];
    let text = all(&asked, &more).ok().stdout;
    let said = |model: &str| {
        let line = text
            .lines()
            .find(|l| l.starts_with(&format!("{model}: 3 clusters, ")));
        line.unwrap_or_else(|| panic!("{text}")).to_string()
    };
    for model in [&model, &other] {
        let line = said(model);
        assert!(
            line.contains("% of ") && line.contains(&matrix) && line.contains(&odd),
            "{line}"
        );
    }
    assert_eq!(text.matches("of its rows").count(), 3, "{text}");
    // More clusters than rows.
    let many = all(&["clusters", &model, "--mode", "3", "-k", "9"], &["--json"])
        .ok()
        .json();
    assert_eq!(many[0]["k"], 2);
    all(&base, &["-k", "0"]).failed(2, &["k = 0"]);
    all(&["clusters", &model, "--mode", "4"], &[]).failed(2, &["the model has 3 modes"]);
    all(&base, &["--min-entries", "1000"]).failed(2, &["no row of mode 2"]);
    all(&base, &["--matrix-names", &kinds]).failed(2, &["--matrix-names", "0 matrices"]);
    let wrong = path("ratings.tns");
    all(&base, &["-k", "2", "--matrix", &wrong]).failed(2, &["has 3 modes", "matrix"]);
}

#[test]
fn concepts_are_printed_with_and_without_a_given_row() {
    let scratch = fitted("concepts-cli");
    let path = |name: &str| scratch.join(name).display().to_string();
    let model = path("coupled.s3m");
    let names = format!("2:{}", path("films.tsv"));
    let kinds = format!("1:{}", path("kinds.tsv"));
    let base = [
        "concepts",
        &model,
        "--mode",
        "2",
        "--names",
        &names,
        "--matrix-names",
        &kinds,
        "--top",
        "2",
    ];
    let found = all(&base, &["--json"]).ok().json().remove(0);
    let list = found["concepts"].as_array().unwrap();
    assert_eq!(
        (list.len(), &found["profile"]),
        (3, &serde_json::Value::Null)
    );
    let strength = |c: &serde_json::Value| c["strength"].as_f64().unwrap();
    assert!(strength(&list[0]) >= strength(&list[2]));
    assert_eq!(list[0]["largest"].as_array().unwrap().len(), 2);
    assert!(
        ["comedy", "drama", "horror"].contains(&list[0]["positive"][0]["name"].as_str().unwrap())
    );
    let own = all(&base, &["--for", "1:4", "--json"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(own["for"][0]["index"], 4);
    assert_eq!(own["profile"]["rows"].as_array().unwrap().len(), 3);
    assert_ne!(strength(&own["concepts"][0]), strength(&list[0]));
    let text = all(&base, &["--for", "1:4", "--ends", "1"]).ok().stdout;
    for word in [
        "concepts of mode 2 for row 4 of mode 1",
        "1. concept",
        "... 1 omitted ...",
        "3. concept",
    ] {
        assert!(text.contains(word), "{text}");
    }
    all(&base, &["--for", "2:4"]).failed(2, &["mode 2", "give rows of other modes"]);
    all(&base, &["--for", "1:4", "--for", "1:5"]).failed(2, &["twice"]);
    all(&base, &["--for", "1:400"]).failed(2, &["row 400 of mode 1", "nearest"]);
    all(&base, &["--for", "2:Film, The 100"]).failed(2, &["did you mean"]);
    all(&base, &["--ends", "0"]).failed(2, &["--ends 0"]);
    all(&["concepts", &model, "--mode", "0"], &[]).failed(2, &["mode 0"]);
}

#[test]
fn matrices_and_models_with_other_row_names_are_rejected() {
    let scratch = fitted("clusters-other-rows");
    let path = |name: &str| scratch.join(name).display().to_string();
    let (model, plain, kinds) = (path("coupled.s3m"), path("plain.s3m"), path("kinds.tns"));
    // A matrix of 30 films does not fit the mode of 25 users.
    let words = ["kinds.tns", "has 30 rows", "mode 1 of the model has 25"];
    all(
        &[
            "clusters", &model, "--mode", "1", "-k", "2", "--matrix", &kinds,
        ],
        &[],
    )
    .failed(2, &words);
    let page = path("page.html");
    let report = ["report", &model, "-o", &page, "--max-k", "0"];
    let of_users = format!("1:{kinds}");
    all(&report, &["--matrix", &of_users]).failed(2, &words);
    all(&report, &["--clusters", "two"]).failed(2, &["--clusters two", "such as 2:24"]);
    assert!(!scratch.join("page.html").exists());
    // A matrix without the last film is accepted if its size is inferred, and rejected if it is stated.
    scratch.file("short.tns", "1 1 1\n29 2 1\n");
    let (short, stated) = (path("short.tns"), path("stated.coo"));
    let films = ["clusters", &model, "--mode", "2", "-k", "2"];
    all(&films, &["--matrix", &short]).ok();
    run(["convert", &short, &stated, "--dims", "29,3"]).ok();
    all(&films, &["--matrix", &stated]).failed(2, &["stated.coo", "has 29 rows", "has 30;"]);
    // A matrix whose films have another order.
    let names = format!("2:{}", path("films.tsv"));
    scratch.file("turned.tns", "1 1 1\n30 2 1\n");
    scratch.file("turned.mode1.tsv", "1\tFilm, The 0\n30\tFilm, The 1\n");
    let turned = path("turned.tns");
    let of_films = format!("2:{turned}");
    for command in [
        all(&films, &["--matrix", &turned, "--names", &names]),
        all(&report, &["--matrix", &of_films, "--names", &names]),
    ] {
        let ran = command.ok();
        assert!(ran.stderr.contains("matched by number"), "{}", ran.stderr);
    }
    // A model with one more film from a matrix can be compared; a model with fewer films cannot.
    let tensor = std::fs::read_to_string(scratch.join("ratings.tns")).unwrap();
    let fewer = tensor.lines().filter(|l| !l.contains(" 30 "));
    scratch.file(
        "fewer.tns",
        fewer.map(|l| format!("{l}\n")).collect::<String>(),
    );
    let kinds = std::fs::read_to_string(scratch.join("kinds.tns")).unwrap();
    scratch.file("more.tns", kinds + "31 2 1\n");
    let (ratings, fewer) = (path("ratings.tns"), path("fewer.tns"));
    let (more, wide, small) = (path("more.tns"), path("wide.s3m"), path("small.s3m"));
    let how = [
        "--rank",
        "3",
        "--epochs",
        "3",
        "--algorithm",
        "als",
        "--model",
        "cp",
    ];
    let of_more = format!("2:{more}");
    let wider = [
        "fit", "--tensor", &ratings, "--matrix", &of_more, "-o", &wide,
    ];
    run(wider.iter().chain(&how)).ok();
    run(["fit", "--tensor", &fewer, "-o", &small].iter().chain(&how)).ok();
    let wider = [
        "clusters", &wide, "--mode", "2", "-k", "3", "--matrix", &more,
    ];
    let both = all(&wider, &["--against", &plain, "--json"]).ok().json();
    assert_eq!(
        (&both[0]["rows"], &both[0]["against"]["rows"]),
        (&30.into(), &30.into())
    );
    let words = [
        "has 29 rows in the model to compare with and 31 in this one",
        "row 30 has tensor entries in only one of them",
        "same tensor",
    ];
    all(&wider, &["--against", &small]).failed(2, &words);
    all(&["report", &wide, "-o", &page], &["--against", &small]).failed(2, &words);
}
