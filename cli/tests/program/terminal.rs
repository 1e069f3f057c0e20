//! Output on a terminal and without one.

use std::process::{Command, Stdio};

use crate::common::Scratch;
use crate::runner::{expand_paths, fit_command, generated_data, program, run, run_command};

/// Runs the program under a pseudo-terminal with `script`. Returns what the terminal shows, or `None` with a printed line if
/// `script` is missing.
fn on_terminal(arguments: &[String], environment: &[(&str, &str)]) -> Option<String> {
    let available = Command::new("script")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !available.is_ok_and(|s| s.success()) {
        println!("skipped: the program `script` is missing");
        return None;
    }
    let quoted: Vec<String> = arguments.iter().map(|a| format!("'{a}'")).collect();
    let line = format!(
        "stty cols 100 rows 50; exec {} {}",
        env!("CARGO_BIN_EXE_s3cmtf"),
        quoted.join(" ")
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null());
    command
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    let out = command.envs(environment.iter().copied()).output().unwrap();
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn terminal_shows_a_table_and_colours() {
    let dir = generated_data("terminal");
    let words = [
        "fit",
        "--tensor",
        "@tensor.train.coo",
        "--test",
        "@tensor.test.coo",
        "--epochs",
        "3",
        "-o",
        "@m.s3m",
    ];
    let arguments = expand_paths(&dir, &words);
    let Some(shown) = on_terminal(&arguments, &[]) else {
        return;
    };
    assert!(
        shown.contains("\u{1b}[1mepoch"),
        "a bold heading: {shown:?}"
    );
    assert!(
        shown.contains("test RMSE") && shown.contains("stopped (epochs)"),
        "{shown:?}"
    );
    let plain = on_terminal(&arguments, &[("NO_COLOR", "1")]).unwrap();
    assert!(
        !plain.contains("\u{1b}[1m") && plain.contains("epoch"),
        "{plain:?}"
    );
    let wrong = expand_paths(&dir, &["info", "@nothing.coo"]);
    let shown = on_terminal(&wrong, &[]).unwrap();
    assert!(shown.contains("\u{1b}[1;31merror:\u{1b}[0m"), "{shown:?}");
}

#[test]
fn terminal_shows_a_bar_with_rate_and_remaining_time() {
    let dir = generated_data("bar");
    // Long enough for the bar, which appears after a second. The limit, far beyond the preparations, ends the fit.
    let words = [
        "fit",
        "--tensor",
        "@tensor.train.coo",
        "--epochs",
        "1000000",
        "--time-limit",
        "6",
        "--preset",
        "paper",
        "-o",
        "@m.s3m",
    ];
    let Some(shown) = on_terminal(&expand_paths(&dir, &words), &[]) else {
        return;
    };
    for word in ["fitting", "/s", "elapsed", "left", "stopped (time-limit)"] {
        assert!(shown.contains(word), "{word}: {shown:?}");
    }
}

#[test]
fn epochs_without_a_terminal_are_one_line_per_second() {
    let dir = generated_data("no-terminal");
    let ran = run_command(fit_command(
        &dir,
        &["--epochs", "2000", "--preset", "paper", "-o", "@m.s3m"],
    ))
    .ok();
    let rows = ran
        .stdout
        .lines()
        .filter(|l| l.trim_start().starts_with(char::is_numeric));
    let rows: Vec<&str> = rows.collect();
    // The first epoch, the last, and one for each second between them.
    assert!((2..200).contains(&rows.len()), "{}", ran.stdout);
    assert!(
        rows.last().unwrap().trim_start().starts_with("2000 "),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
}

#[test]
fn colours_can_be_forced() {
    let dir = Scratch::new("forced-colours");
    let missing = dir.join("nothing.coo");
    let colour = "\u{1b}[1;31merror:";
    let forced = run_command({
        let mut command = program();
        command
            .arg("info")
            .arg(&missing)
            .env("CLICOLOR_FORCE", "1")
            .env_remove("NO_COLOR");
        command
    });
    assert!(forced.stderr.contains(colour), "{:?}", forced.stderr);
    let plain = run(["info".as_ref(), missing.as_os_str()]);
    assert!(plain.stderr.starts_with("error: "), "{:?}", plain.stderr);
}
