//! `s3cmtf recommend`, `similar` and `eval --mode`.

use crate::common::{ProgramRun, Scratch};
use crate::runner::run;

/// Converts ratings with names of people and films and fits a model. Returns the folder and the path of the model.
fn fitted(name: &str, algorithm: &str) -> (Scratch, String) {
    let scratch = Scratch::new(name);
    let mut csv = String::from("who,film,month,stars\n");
    let mut late = String::from("who,film,month,stars\n");
    for who in 0..12u32 {
        for film in 0..9u32 {
            let stars = f64::from(1 + (who % 3 + film % 4) % 5) + f64::from(film) / 10.0;
            let line = format!(
                "person {who},\"Film, The {film}\",{},{stars}\n",
                1 + (who + film) % 3
            );
            *(if (who * 5 + film * 3) % 4 > 0 {
                &mut csv
            } else {
                &mut late
            }) += &line;
        }
    }
    scratch.file("ratings.csv", csv);
    scratch.file("late.csv", late);
    let path = |name: &str| scratch.join(name).display().to_string();
    let convert = [
        "convert",
        &path("ratings.csv"),
        &path("ratings.coo"),
        "--strings",
        "who,film",
    ];
    run(convert).ok();
    let names = [1, 2].map(|n| format!("{n}:{}", path(&format!("ratings.mode{n}.tsv"))));
    let convert = [
        "convert",
        &path("late.csv"),
        &path("late.coo"),
        "--strings",
        "who,film",
    ];
    run(convert
        .iter()
        .chain(&["--names", &names[0], "--names", &names[1]]))
    .ok();
    let model = path("fitted.s3m");
    let tensor = path("ratings.coo");
    let fit = [
        "fit",
        "--tensor",
        &tensor,
        "--rank",
        "2",
        "--epochs",
        "6",
        "--samples",
        "5",
        "--burn-in",
        "2",
    ];
    run(fit
        .iter()
        .chain(&["--threads", "2", "--algorithm", algorithm, "-o", &model]))
    .ok();
    (scratch, model)
}

fn all(arguments: &[&str], more: &[&str]) -> ProgramRun {
    run(arguments.iter().chain(more))
}

#[test]
fn lists_are_printed_with_names() {
    let (scratch, model) = fitted("discover-cli", "blocked");
    let path = |name: &str| scratch.join(name).display().to_string();
    let train = path("ratings.coo");
    // The names were stored beside the model.
    assert!(
        scratch
            .names()
            .contains(&"fitted.s3m.mode2.tsv".to_string())
    );
    let base = ["recommend", &model, "--mode", "2", "--exclude", &train];
    let one = all(&base, &["--for", "1:person 3", "--json"]).ok().json();
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["for"][0]["name"], "person 3");
    assert_eq!(
        (&one[0]["for"][0]["mode"], &one[0]["mode"]),
        (&1.into(), &2.into())
    );
    let rows = one[0]["rows"].as_array().unwrap();
    // Rated films are excluded, so that fewer than ten remain.
    assert!(!rows.is_empty() && rows.len() < 5);
    let cells: String = rows
        .iter()
        .map(|r| format!("{} {} {}\n", one[0]["for"][0]["index"], r["index"], 2))
        .collect();
    let cells = scratch.file("cells.tns", cells).display().to_string();
    let month = all(&base, &["--for", "1:person 3", "--for", "3:2", "--json"])
        .ok()
        .json();
    let predicted = run([
        "predict",
        &model,
        &cells,
        "--no-value",
        "--no-clip",
        "--json",
    ])
    .ok()
    .json();
    for r in month[0]["rows"].as_array().unwrap() {
        let same = |p: &&serde_json::Value| p["index"][1] == r["index"];
        let p = predicted.iter().find(same).unwrap();
        assert_eq!(p["prediction"], r["score"]);
    }
    let text = all(&base, &["--for", "1:person 3", "--top", "2"])
        .ok()
        .stdout;
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(
        text.starts_with("row ") && text.contains("person 3:"),
        "{text}"
    );
    assert!(text.contains(rows[0]["name"].as_str().unwrap()), "{text}");
    // Several rows at once; the lists are independent of the thread count.
    let lists = |threads: &str, what: &str| {
        all(&base, &["--for", "1:all", "--threads", threads, what])
            .ok()
            .stdout
    };
    for what in ["--csv", "--json"] {
        let one = lists("1", what);
        for threads in ["2", "3", "7"] {
            assert_eq!(lists(threads, what), one);
        }
    }
    let csv = lists("1", "--csv");
    assert!(
        csv.starts_with("mode1,mode1_name,place,row,row_name,score\n"),
        "{csv}"
    );
    assert!(csv.contains("\"Film, The "), "{csv}");
    assert_eq!(lists("1", "--json").lines().count(), 12);
    // Files of names restrict the candidates.
    let some = scratch
        .file("some.txt", "Film, The 1\n#3\n")
        .display()
        .to_string();
    let free = [
        "recommend",
        &model,
        "--mode",
        "2",
        "--for",
        "1:2-3",
        "--for",
        "1:person 11",
        "--json",
    ];
    let found = all(&free, &["--only", &some]).ok().json();
    assert!(
        found.len() == 3
            && found
                .iter()
                .all(|l| l["rows"].as_array().unwrap().len() == 2)
    );
    let found = all(&free, &["--only", &some, "--not", &some]).ok().json();
    assert!(
        found
            .iter()
            .all(|l| l["rows"].as_array().unwrap().is_empty())
    );
    let text = all(&free[..6], &["--only", &some, "--not", &some])
        .ok()
        .stdout;
    assert!(text.contains("no rows remain"), "{text}");
    // Without --for: averaged over all users, with all films listed.
    let text = run(["recommend", &model, "--mode", "2", "--top", "500"])
        .ok()
        .stdout;
    assert!(
        text.starts_with("over all modes:") && text.lines().count() == 10,
        "{text}"
    );
    let alike = run([
        "similar",
        &model,
        "--for",
        "2:Film, The 4",
        "-n",
        "3",
        "--json",
    ])
    .ok()
    .json();
    assert_eq!(alike[0]["for"][0]["name"], "Film, The 4");
    assert_eq!(alike[0]["rows"].as_array().unwrap().len(), 3);
    assert!(alike[0]["rows"][0]["cosine"].as_f64().unwrap() <= 1.0);
    let text = run(["similar", &model, "--for", "3:all"]).ok().stdout;
    assert!(text.starts_with("row 1 of mode 3:\n    1  "), "{text}");
}

#[test]
fn eval_prints_ranking_metrics() {
    let (scratch, model) = fitted("discover-cli-eval", "gibbs");
    let path = |name: &str| scratch.join(name).display().to_string();
    let (train, late) = (path("ratings.coo"), path("late.coo"));
    let base = [
        "eval",
        &model,
        &late,
        "--mode",
        "2",
        "--exclude",
        &train,
        "--top",
        "2",
    ];
    let text = all(&base, &["--relevant", "3"]).ok().stdout;
    assert!(
        text.contains("top 2:") && text.contains("popularity"),
        "{text}"
    );
    let report = all(&base, &["--json", "--quantile", "0.1"]).ok().json();
    let ranking = &report[0]["ranking"];
    assert_eq!(
        (&ranking["user_mode"], &ranking["users"], &ranking["top"]),
        (&1.into(), &12.into(), &2.into())
    );
    for of in ["model", "popularity"] {
        for what in ["hit_rate", "recall", "ndcg"] {
            let x = ranking[of][what].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&x), "{ranking}");
        }
    }
    let scores = &report[0]["distribution"];
    assert!(scores["log_score"].is_number() && scores["crps"].as_f64().unwrap() > 0.0);
    let groups = scores["by_row_length"].as_array().unwrap();
    let counts = groups.iter().map(|group| group["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), report[0]["count"].as_u64().unwrap());
    assert!(text.contains("CRPS") && text.contains("values inside intervals"));
    all(&base, &["--relevant", "99"]).failed(2, &["no row of mode 1 has a relevant entry"]);
    run(["eval", &model, &late, "--mode", "2"]).failed(2, &["--exclude"]);
    all(&base, &["--for", "2"]).failed(2, &["another mode"]);
    let sure = ["recommend", &model, "--mode", "2", "--for", "1:1", "--json"];
    let low = all(&sure, &["--quantile", "0.05"]).ok().json();
    let mean = all(&sure, &[]).ok().json();
    let score = |lists: &[serde_json::Value]| lists[0]["rows"][0]["score"].as_f64().unwrap();
    assert!(score(&low) < score(&mean));
    all(&sure, &["--quantile", "1.5"]).failed(2, &["quantile of 1.5"]);
    run(["similar", &model, "--for", "1:person 2"]).ok();
}

#[test]
fn invalid_recommend_and_similar_arguments_are_rejected() {
    let (scratch, model) = fitted("discover-cli-wrong", "blocked");
    let path = |name: &str| scratch.join(name).display().to_string();
    let train = path("ratings.coo");
    let fails = |more: &[&str], words: &[&str]| {
        all(&["recommend", &model, "--mode", "2"], more).failed(2, words);
    };
    fails(
        &["--for", "1:persom 3"],
        &["no row of mode 1 is called", "\"person 3\""],
    );
    fails(
        &["--for", "1:99"],
        &[
            "row 99 of mode 1 is not in the model",
            "nearest that it has is 12",
        ],
    );
    fails(&["--for", "1:3, person"], &["did you mean", "\"person 3\""]);
    fails(&["--for", "1:zzz"], &["the nearest are \"person"]);
    fails(&["--for", "3:May"], &["its rows have no names"]);
    fails(&["--for", "2:1"], &["rows of this mode are ranked"]);
    fails(&["--for", "4:1"], &["3 modes"]);
    fails(&["--for", "person 3"], &["expected MODE:ROW"]);
    fails(
        &["--for", "1:all", "--for", "3:all"],
        &["only one mode may have several"],
    );
    fails(&["--exclude", &train], &["--for"]);
    fails(
        &["--for", "1:1", "--exclude", &train, "--exclude-by", "3"],
        &["--exclude-by 3"],
    );
    fails(&["--for", "1:1", "--top", "0"], &["at least 1"]);
    fails(
        &["--for", "1:1", "--quantile", "0.5"],
        &["no posterior samples"],
    );
    fails(
        &["--for", "1:1", "--names", "4:x.tsv"],
        &["--names 4:x.tsv", "3 modes"],
    );
    let names = format!("1:{}", path("ratings.mode1.tsv"));
    fails(
        &["--for", "1:1", "--names", &names, "--names", &names],
        &["--names 1:", "mode 1 has names already"],
    );
    fails(&["--for", "1:0"], &["row 0 of mode 1", "from 1, up to 12"]);
    fails(&["--for", "1:0-3"], &["rows 0-3 of mode 1", "from 1"]);
    fails(&["--for", "1:5-2"], &["as in 2-5"]);
    let empty = scratch.file("empty.txt", "").display().to_string();
    fails(
        &["--for", &format!("1:@{empty}")],
        &["empty.txt", "lists no row"],
    );
    // Indices beyond the mode are rejected; known indices without entries cannot be ranked.
    let far = scratch.file("far.txt", "#3\n#10\n").display().to_string();
    for option in ["--only", "--not"] {
        fails(
            &["--for", "1:1", option, &far],
            &[
                "far.txt",
                "line 2",
                "row 10 of mode 2",
                "nearest that it has is 9",
            ],
        );
    }
    let bad = scratch
        .file("bad.txt", "Film, The 1\nFlim, The 2\n")
        .display()
        .to_string();
    fails(
        &["--for", "1:1", "--only", &bad],
        &["line 2", "Film, The 2"],
    );
    all(&["concepts", &model, "--mode", "2"], &["--for", "1:all"])
        .failed(2, &["all means many rows of mode 1", "give one"]);
    all(
        &["eval", &model, &path("late.csv"), "--strings", "who,film"],
        &["--names", &names, "--names", &names],
    )
    .failed(2, &["mode 1 has names already"]);
    run(["recommend", &model, "--mode", "7"]).failed(2, &["--mode 7"]);
    run(["similar", &model, "--for", "2:Film"]).failed(2, &["did you mean one of", "Film, The"]);
}

#[test]
fn rows_unknown_to_the_model_are_reported() {
    let scratch = Scratch::new("discover-cli-gaps");
    let text: String = (0..40)
        .map(|i| format!("{} {} {}\n", 1 + i % 8, 1 + 2 * (i % 5), 1 + i % 4))
        .collect();
    let path = |name: &str| scratch.join(name).display().to_string();
    let tensor = scratch.file("t.tns", text).display().to_string();
    let model = path("m.s3m");
    let fit = ["fit", "--tensor", &tensor, "--rank", "2", "--epochs", "2"];
    all(&fit, &["--preset", "paper", "-o", &model]).ok();
    let listed = scratch
        .file("some.txt", "1\n2\n3\n4\n")
        .display()
        .to_string();
    let base = ["recommend", &model, "--mode", "2", "--for", "1:1", "--json"];
    let found = all(&base, &["--only", &listed]).ok();
    assert_eq!(found.json()[0]["rows"].as_array().unwrap().len(), 2);
    assert!(
        found.stderr.contains("does not have 2 of the 4 rows") && found.stderr.contains("row 2"),
        "{}",
        found.stderr
    );
    // Excluding rows that are not ranked gives no warning.
    assert_eq!(all(&base, &["--not", &listed]).ok().stderr, "");
}

#[test]
fn control_characters_in_names_are_replaced() {
    let (scratch, model) = fitted("discover-cli-control", "blocked");
    let path = |name: &str| scratch.join(name).display().to_string();
    let rows: String = (1..=9)
        .map(|i| format!("{i}\t\u{1b}[31mfilm {i}\n"))
        .collect();
    let names = format!("2:{}", scratch.file("red.tsv", rows).display());
    let person = "--for=1:person 3";
    for (command, more) in [
        ("recommend", &["--mode=2", person][..]),
        ("similar", &["--for", "2:1"]),
        ("concepts", &["--mode", "2", "--min-entries", "1"]),
    ] {
        let given = ["--names", &names];
        let text = all(&[command, &model], more).ok().stdout;
        assert!(text.contains("Film, The"), "{text}");
        let ran = run([command, &model].iter().chain(more).chain(&given));
        let text = ran.ok().stdout;
        assert!(
            text.contains("\u{fffd}[31mfilm") && !text.contains('\u{1b}'),
            "{text:?}"
        );
        let ran = run([command, &model]
            .iter()
            .chain(more)
            .chain(&given)
            .chain(&["--json"]));
        assert!(ran.ok().stdout.contains("\\u001b[31mfilm"));
    }
    // Names beyond the size of the mode, and excluded entries beyond the model, give a warning.
    let ran = all(
        &["similar", &model, "--for", "3:1"],
        &["--names", &names.replacen('2', "3", 1)],
    )
    .ok();
    assert!(
        ran.stderr
            .contains("names up to number 9, but mode 3 has 3 rows"),
        "{}",
        ran.stderr
    );
    let ran = all(&["similar", &model, "--for", "2:1"], &["--names", &names]).ok();
    assert_eq!(ran.stderr, "");
    let other = scratch.file("other.tns", "13 1 1 2\n1 2 2 1\n");
    let other = other.display().to_string();
    let base = ["recommend", &model, "--mode", "2", person, "--exclude"];
    let ran = all(&base, &[&other]).ok();
    assert!(
        ran.stderr
            .contains("13 x 2 x 2, but the model is 12 x 9 x 3"),
        "{}",
        ran.stderr
    );
    assert_eq!(all(&base, &[&path("ratings.coo")]).ok().stderr, "");
}

#[test]
fn column_names_are_stored_beside_the_model() {
    let scratch = Scratch::new("discover-cli-columns");
    let path = |name: &str| scratch.join(name).display().to_string();
    let tensor: String = (0..120)
        .map(|i| {
            format!(
                "{} {} {}\n",
                1 + i % 12,
                1 + i / 12,
                1 + (i % 3 + i / 12) % 5
            )
        })
        .collect();
    let kinds: String = (0..10)
        .map(|i| format!("{} {} 1\n", 1 + i, 1 + i % 2))
        .collect();
    let tensor = scratch.file("t.tns", tensor).display().to_string();
    let matrix = format!("2:{}", scratch.file("kinds.tns", kinds).display());
    let columns = scratch.file("kinds.mode2.tsv", "1\tdrama\n2\tcomedy\n");
    let model = path("m.s3m");
    let fit = [
        "fit", "--tensor", &tensor, "--matrix", &matrix, "--rank", "2",
    ];
    let fit = || all(&fit, &["--epochs", "2", "--preset", "paper", "-o", &model]).ok();
    fit();
    let meant = |more: &[&str]| all(&["concepts", &model, "--mode", "2"], more).ok();
    assert!(meant(&[]).stdout.contains("comedy +") || meant(&[]).stdout.contains("comedy -"));
    let page = path("page.html");
    run(["report", &model, "-o", &page]).ok();
    assert!(std::fs::read_to_string(&page).unwrap().contains("comedy"));
    // Names given as arguments take precedence, and names beyond the last column give a warning.
    let given = scratch.file("given.tsv", "1\tsad\n2\tgay\n7\tblue\n");
    let given = meant(&["--matrix-names", &format!("1:{}", given.display())]);
    assert!(
        given.stdout.contains("sad ") && !given.stdout.contains("drama"),
        "{}",
        given.stdout
    );
    assert!(
        given
            .stderr
            .contains("names up to number 7, but matrix 1 has 2 columns"),
        "{}",
        given.stderr
    );
    // Batch jobs and fold-in keep the column names.
    let job = serde_json::json!({
        "id": "b", "job": "fit", "tensor": tensor, "output": path("b.s3m"), "preset": "paper",
        "matrices": [{"mode": 2, "file": path("kinds.tns")}], "options": {"rank": 2, "epochs": 2},
    });
    let jobs = scratch.file("jobs.jsonl", job.to_string());
    run(["batch", jobs.to_str().unwrap(), "--threads", "2"]).ok();
    let late = scratch.file("late.tns", "13 1 2\n13 4 3\n");
    let late = late.to_str().unwrap();
    let folded = path("folded.s3m");
    run([
        "fold-in",
        &path("b.s3m"),
        "--mode",
        "1",
        "--tensor",
        late,
        "-o",
        &folded,
    ])
    .ok();
    assert!(
        run(["concepts", &folded, "--mode", "2"])
            .ok()
            .stdout
            .contains("comedy ")
    );
    // A new fit to data without names removes the old names.
    std::fs::remove_file(columns).unwrap();
    fit();
    assert!(!meant(&[]).stdout.contains("comedy"));
}
