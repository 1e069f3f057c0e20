//! Help pages, suggestions, completions, man pages, and the examples of all help pages.

use std::fs;
use std::process::Command;

use crate::common::{ProgramRun, Scratch};
use crate::runner::run;

#[test]
fn fit_help_fits_on_two_screens() {
    let help = run(["fit", "--help"]).ok().stdout;
    assert!(help.lines().count() <= 100, "{help}");
    assert!(help.lines().all(|l| l.chars().count() <= 100), "{help}");
    let position = |word: &str| {
        help.find(word)
            .unwrap_or_else(|| panic!("{word} in {help}"))
    };
    assert!(
        position("--rank") < position("Advanced:") && position("Advanced:") < position("--eta")
    );
    assert!(help.contains("--no-mean") && help.contains("Do not subtract the mean"));
    assert_eq!(help, run(["fit", "-h"]).ok().stdout);
}

#[test]
fn flags_have_opposites_that_override_a_file_of_options() {
    let dir = Scratch::new("flag-opposites");
    let tensor = dir
        .file("t.tns", "1 1 1\n2 2 2\n1 2 3\n")
        .display()
        .to_string();
    let config = dir
        .file("c.conf", "mean=false\nnonneg=true\n")
        .display()
        .to_string();
    let model = dir.join("m.s3m").display().to_string();
    let fit = [
        "fit", "--tensor", &tensor, "--config", &config, "--epochs", "1", "-o", &model,
    ];
    for (flags, mean, nonneg) in [
        (&[][..], "false", "true"),
        (&["--mean", "--no-nonneg"], "true", "false"),
        (&["--mean", "--no-mean"], "false", "true"),
    ] {
        run(fit.iter().chain(flags)).ok();
        let options = &run(["info", &model, "--json"]).ok().json()[0]["options"];
        assert_eq!(
            (&options["mean"], &options["nonneg"]),
            (&mean.into(), &nonneg.into())
        );
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let dir = Scratch::new("suggestions");
    let tensor = dir.file("t.tns", "1 1 1\n2 2 2\n").display().to_string();
    let config = dir.file("c.conf", "lambda_rge=1\n").display().to_string();
    let output = dir.join("m.s3m").display().to_string();
    let fit = ["fit", "--tensor", &tensor, "-o", &output];
    let fails = |more: &[&str], word: &str| {
        run(fit.iter().chain(more)).failed(2, &[word]);
    };
    run(["fitt"]).failed(2, &["'fit'"]);
    fails(&["--algoritm", "als"], "--algorithm");
    fails(&["--algorithm", "gibs"], "gibbs");
    fails(&["--preset", "papr"], "paper");
    fails(&["--config", &config], "did you mean 'lambda_reg'?");
    let ratings = dir
        .file("r.csv", "user,movie,stars\n1,1,3\n")
        .display()
        .to_string();
    run([
        "convert",
        &ratings,
        &output,
        "--columns",
        "usr,movie",
        "--value",
        "stars",
    ])
    .failed(2, &["did you mean 'user'?"]);
}

#[test]
fn completions_and_man_pages_cover_all_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).ok().stdout;
        for word in ["recommend", "lambda-reg", "fold-in", "blocked"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    run(["completions", "bsh"]).failed(2, &["bash"]);
    let dir = Scratch::new("man");
    let folder = dir.join("man1");
    let files = run(["man".as_ref(), "-o".as_ref(), folder.as_os_str()])
        .ok()
        .stdout;
    assert!(files.lines().count() > 15, "{files}");
    let page = fs::read_to_string(folder.join("s3cmtf-fit.1")).unwrap();
    for word in [".TH s3cmtf-fit 1", "lambda\\-reg", "Examples:"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    assert!(folder.join("s3cmtf.1").exists());
    assert!(!folder.join("s3cmtf-help.1").exists());
}

/// Returns the examples at the end of the help page of a command.
fn examples(command: &str) -> Vec<String> {
    let help = run([command, "--help"]).ok().stdout;
    let section = help.split("Examples:\n").nth(1).unwrap().to_string();
    let section = section.split("\n\n").next().unwrap().trim_end().to_string();
    section.lines().map(|l| l.trim().to_string()).collect()
}

/// Runs all examples but those that take long or write to the home folder, in a folder with the files that they name.
#[cfg(unix)]
#[test]
fn examples_of_help_pages_run() {
    let dir = Scratch::new("examples");
    let mut ratings = String::from("user,movie,month,stars\n");
    let mut genres = String::new();
    let mut movies = String::new();
    for movie in 0..30 {
        genres += &format!("{} {} 1\n", movie + 1, movie % 3 + 1);
        let title = if movie == 0 {
            "Toy Story (1995)".into()
        } else {
            format!("Movie {movie}")
        };
        movies += &format!("{}\t{title}\n", movie + 1);
        for user in 0..25 {
            if (user * 7 + movie * 3) % 4 != 0 {
                let stars = 1 + (user % 3 * 2 + movie % 3) % 5;
                ratings += &format!(
                    "{},{},{},{stars}\n",
                    user + 1,
                    movie + 1,
                    (user + movie) % 6 + 1
                );
            }
        }
    }
    dir.file("ratings.csv", &ratings);
    dir.file("genres.tns", &genres);
    dir.file("movies.tsv", &movies);
    dir.file("cells.tns", "1 1 1\n2 3 4\n");
    dir.file("new-films.txt", "3\n4\n5\n");
    dir.file("new-users.tns", "26 1 1 4\n26 2 3 5\n");
    dir.file("new-films.tns", "1 31 1 4\n2 31 3 5\n");
    dir.file("new-genres.tns", "31 2 1\n");
    dir.file(
        "jobs.jsonl",
        "{\"id\":\"a\",\"job\":\"fit\",\"tensor\":\"train.coo\",\"output\":\"a.s3m\",\"options\":{\"rank\":2,\"epochs\":2}}\n",
    );
    let path = std::env::var("PATH").unwrap_or_default();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_s3cmtf"));
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let shell = |line: &str| {
        let out = Command::new("sh")
            .args(["-c", line])
            .current_dir(dir.path())
            .env("PATH", &path)
            .output();
        let ran = ProgramRun::from(out.unwrap());
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
    };
    for line in [
        "s3cmtf convert ratings.csv ratings.coo --columns user,movie,month --value stars",
        "s3cmtf split ratings.coo --test 0.2",
        "mv ratings.train.coo train.coo",
        "mv ratings.test.coo test.coo",
        "s3cmtf convert genres.tns genres.coo",
        "s3cmtf fit --tensor train.coo --epochs 2 -o uncoupled.s3m",
        "s3cmtf fit --tensor train.coo --algorithm gibbs --rank 2 --samples 4 -o gibbs.s3m",
        "s3cmtf fit --tensor train.coo --matrix 2:genres.coo --rank 3 --epochs 3 -o model.s3m",
    ] {
        shell(line);
    }
    let mut count = 0;
    for command in [
        "check",
        "info",
        "split",
        "predict",
        "eval",
        "recommend",
        "similar",
        "concepts",
        "clusters",
        "report",
        "fold-in",
        "export",
        "batch",
        "generate",
        "tune",
        "fit",
    ] {
        for example in examples(command) {
            shell(&example);
            count += 1;
        }
    }
    assert!(count > 40, "{count} examples");
}
