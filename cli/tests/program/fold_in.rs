//! `s3cmtf fold-in`.

use crate::common::Scratch;
use crate::runner::run;

/// Writes ratings of eight films by ten users in two months, and a matrix of two genres.
fn write_data(scratch: &Scratch) -> Vec<String> {
    let (mut old, mut new, mut genres, mut late) =
        (String::new(), String::new(), String::new(), String::new());
    for user in 1..=10 {
        for film in (1..=8).filter(|f| (user * 5 + f * 3) % 4 > 0) {
            let value = 3.0 + f64::from(user % 3) - f64::from(film % 4) * 0.5;
            let line = format!("{user} {film} {} {value}\n", 1 + (user + film) % 2);
            *(if user == 10 { &mut new } else { &mut old }) += &line;
        }
    }
    for film in 1..=8 {
        for genre in 1..=2 {
            genres += &format!("{film} {genre} {}\n", (film + genre) % 2);
        }
    }
    late += "12 1 1\n12 2 0\n";
    [
        ("old.tns", old),
        ("new.tns", new),
        ("genres.tns", genres),
        ("late.tns", late),
    ]
    .map(|(name, text)| scratch.file(name, text).display().to_string())
    .to_vec()
}

#[test]
fn rows_are_folded_in_and_the_model_is_usable() {
    let scratch = Scratch::new("fold-in-cli");
    let files = write_data(&scratch);
    let [old, new, genres, late] = &files[..] else {
        unreachable!()
    };
    let path = |name: &str| scratch.join(name).display().to_string();
    let matrix = format!("2:{genres}");
    for algorithm in ["blocked", "gibbs"] {
        let own = |name: &str| path(&format!("{algorithm}.{name}.s3m"));
        let (model, more, most) = (own("m"), own("more"), own("most"));
        let fit = [
            "fit", "--tensor", old, "--matrix", &matrix, "--rank", "2", "--model", "cp",
            "--epochs", "5",
        ];
        let fit = fit.into_iter().chain([
            "--samples",
            "5",
            "--threads",
            "2",
            "--algorithm",
            algorithm,
            "-o",
            &model,
        ]);
        run(fit).ok();
        let fold = [
            "fold-in", &model, "--mode", "1", "--tensor", new, "-o", &more,
        ];
        let ran = run(fold.iter().chain(&["--json"])).ok();
        let summary = &ran.json()[0]["summary"];
        assert_eq!(
            (&summary["added"], &summary["replaced"]),
            (&1.into(), &0.into())
        );
        assert!(summary["clipped_rmse"].as_f64().unwrap() < 2.0 && summary["mode"] == 1);
        assert!(run(fold).ok().stdout.contains("1 row of mode 1 added"));
        run(["eval", &more, new]).ok();
        run(["export", &more, "-o", &path("exported")]).ok();
        assert!(run(["info", &more]).ok().stdout.contains("10 x 8 x 2"));
        // Folding in the same row again requires --replace.
        let again = [
            "fold-in", &more, "--mode", "1", "--tensor", new, "-o", &most,
        ];
        run(again).failed(2, &["row 10 of mode 1 is in the model already", "replace"]);
        assert!(!std::path::Path::new(&most).exists());
        let ran = run(again.iter().chain(&["--replace"])).ok();
        assert!(
            ran.stdout
                .contains("0 rows of mode 1 added, 1 row replaced"),
            "{}",
            ran.stdout
        );
        // A film that has only genres.
        for spec in [format!("2:{late}"), format!("2.1:{late}:0.5")] {
            let ran = run([
                "fold-in", &more, "--mode", "2", "--matrix", &spec, "-o", &most,
            ])
            .ok();
            assert!(
                ran.stdout.contains("1 row determined by matrices alone"),
                "{}",
                ran.stdout
            );
            assert!(run(["info", &most]).ok().stdout.contains("10 x 12 x 2"));
        }
    }
}

#[test]
fn invalid_fold_in_arguments_are_rejected() {
    let scratch = Scratch::new("fold-in-cli-wrong");
    let files = write_data(&scratch);
    let [old, new, genres, late] = &files[..] else {
        unreachable!()
    };
    let path = |name: &str| scratch.join(name).display().to_string();
    let (model, out) = (path("m.s3m"), path("out.s3m"));
    let matrix = format!("2:{genres}");
    let fit = [
        "fit", "--tensor", old, "--matrix", &matrix, "--preset", "paper", "--rank", "2", "-o",
        &model,
    ];
    run(fit).ok();
    let fold = |rest: &[&str]| {
        let all = ["fold-in", &model, "-o", &out]
            .into_iter()
            .chain(rest.iter().copied());
        run(all)
    };
    fold(&["--mode", "1"]).failed(2, &["--tensor"]);
    fold(&["--mode", "0", "--tensor", new]).failed(2, &["mode 0"]);
    fold(&["--mode", "4", "--tensor", new]).failed(2, &["--mode 4", "3 modes"]);
    fold(&["--mode", "1", "--tensor", late]).failed(2, &["modes"]);
    fold(&["--mode", "1", "--tensor", &path("none.tns")]).failed(2, &["none.tns"]);
    let empty = scratch
        .file("empty.tns", "# nothing\n")
        .display()
        .to_string();
    fold(&["--mode", "1", "--tensor", &empty]).failed(2, &["empty.tns"]);
    fold(&["--mode", "1", "--matrix", &format!("2:{late}")]).failed(2, &["mode 1", "--matrix 2:"]);
    for wrong in ["2.2:", "2.0:", "2.x:"] {
        fold(&["--mode", "2", "--matrix", &format!("{wrong}{late}")]).failed(2, &["--matrix 2."]);
    }
    fold(&["--mode", "2", "--matrix", &format!("2:{late}:1:2")]).failed(2, &["second number"]);
    let nan = scratch
        .file("nan.tns", "11 1 1 nan\n")
        .display()
        .to_string();
    fold(&["--mode", "1", "--tensor", &nan]).failed(2, &["nan.tns", "line 1"]);
    run([
        "fold-in", &model, "--mode", "1", "--tensor", new, "-o", &model,
    ])
    .failed(2, &["overwritten"]);
    assert!(!scratch.names().contains(&"out.s3m".into()));
}
