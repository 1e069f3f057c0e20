//! Every option that takes a whole number, with numbers that no machine can do: a message, never an abort, a signal or hours of work.
//! The options come from the help pages, so a new one is tested, or fails the test until it is classified.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use s3cmtf::options::{OPTION_TABLE, OptionKind};

use crate::common::{ProgramRun, Scratch};
use crate::runner::{expand_paths, run};

/// Below 0, and the powers of 2 that exceed signed and unsigned integers and all memory.
const NUMBERS: [&str; 5] = [
    "-1",
    "2147483648",
    "1099511627776",
    "9223372036854775808",
    "18446744073709551615",
];

/// Each command with the arguments that make it work. `@` is the folder of the data.
const COMMANDS: [&[&str]; 16] = [
    // The folder of data is missing: the arguments are checked, and nothing is computed.
    &["demo", "-o@demo", "--data=@missing"],
    &["convert", "@t.csv", "@c.coo", "--columns=user,film,age"],
    &["check", "@t.tns"],
    &["info", "@t.tns"],
    &["split", "@t.tns", "-o@s", "--last-per=1"],
    &[
        "generate",
        "-o@g",
        "--dims=9,9",
        "--entries=20",
        "--no-truth",
    ],
    &[
        "fit",
        "--tensor=@t.tns",
        "-o@f.s3m",
        "--epochs=1",
        "--threads=1",
    ],
    &[
        "tune",
        "--tensor=@t.tns",
        "-o@c.conf",
        "--epochs=1",
        "--trials=2",
        "--threads=1",
    ],
    &["eval", "@m.s3m", "@t.tns", "--mode=2", "--exclude=@o.tns"],
    &["predict", "@m.s3m", "@t.tns"],
    &[
        "fold-in",
        "@m.s3m",
        "--mode=1",
        "--tensor=@t.tns",
        "--replace",
        "-o@new.s3m",
    ],
    &[
        "recommend",
        "@m.s3m",
        "--mode=2",
        "--for=1:1",
        "--exclude=@t.coo",
    ],
    &["similar", "@m.s3m", "--for=1:1"],
    &["concepts", "@m.s3m", "--mode=2"],
    &["clusters", "@m.s3m", "--mode=2", "-k2", "--matrix=@m.coo"],
    &[
        "report",
        "@m.s3m",
        "-o@r.html",
        "--data=@t.coo",
        "--max-k=2",
    ],
];

/// Commands that are tested apart, or have no such options.
const OTHER_COMMANDS: [&str; 6] = ["batch", "bench", "export", "completions", "man", "help"];

/// Returns the values to try for a number if an option with this placeholder takes whole numbers.
fn values(placeholder: &str, number: &str) -> Vec<String> {
    let forms: &[&str] = match placeholder {
        "N" | "K" | "J" | "MODE" | "BYTES" | "RANGE" | "J,..." | "N,..." => &["#"],
        "SIZE,..." => &["#,#,#", "9,#,9", "#,9"],
        "MODE:K" => &["2:#", "#:2"],
        "MODE:ROW" => &["1:#", "#:1"],
        "MODE:FILE" | "N:FILE" | "MODE:FILE[:WEIGHT]" => &["#:@m.coo"],
        "MODE:COLUMNS" => &["1:#", "#:3", "1:3:#"],
        "COLUMN:RULE" => &["age:quantiles=#", "age:width=#", "age:log=#"],
        "FILE" | "FOLDER" | "MODEL" | "CONFIG" | "PREFIX" | "FILE|FRACTION" | "TEXT" | "CHAR"
        | "NAME" | "NAME,..." | "TYPE" | "FORMAT" | "OPTION" | "COLUMN" | "COLUMN,..."
        | "COLUMN:UNIT" | "COLUMN:TEXT" | "X" | "X,..." | "X[:X],..." | "Q" | "Q,..." | "RATIO"
        | "FACTOR" | "FRACTION" | "VALUE" | "MINUTES" => &[],
        other => panic!("does <{other}> take whole numbers?"),
    };
    forms.iter().map(|form| form.replace('#', number)).collect()
}

/// Returns the options of a command on its help page, with their placeholders.
fn options(command: &str) -> Vec<(String, String)> {
    let help = run([command, "--help"]).ok().stdout;
    let mut found = Vec::new();
    for line in help
        .lines()
        .map(str::trim_start)
        .filter(|l| l.starts_with('-'))
    {
        let Some((names, rest)) = line.split_once(" <") else {
            continue;
        };
        let name = names.split(", ").last().unwrap();
        found.push((
            name.to_string(),
            rest.split('>').next().unwrap().to_string(),
        ));
    }
    found
}

/// Runs the program with limits of memory and of the size of files, which a large number must not turn into a signal.
fn run_limited(arguments: &[String]) -> ProgramRun {
    let script = "ulimit -v 1000000 && ulimit -f 100000 && trap '' XFSZ && exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_s3cmtf")])
        .args(arguments)
        .stdin(std::process::Stdio::null())
        // Otherwise every thread reserves 64 MiB.
        .env("MALLOC_ARENA_MAX", "1");
    ProgramRun::from(command.output().unwrap())
}

/// Checks that a run ended by itself, with a message if it failed.
fn check(arguments: &[String], run: &ProgramRun) {
    let context = format!("{arguments:?}: {:?}: {}", run.code, run.stderr);
    let causes = [
        "out of memory",
        "Cannot allocate memory",
        "File too large",
        "cannot start thread",
    ];
    match run.code {
        Some(0) => {}
        Some(1) => assert!(causes.iter().any(|c| run.stderr.contains(c)), "{context}"),
        Some(2) => assert!(run.stderr.contains("error: "), "{context}"),
        _ => panic!("{context}"),
    }
}

fn data() -> Scratch {
    let dir = Scratch::new("hostile-numbers");
    let mut csv = String::from("user,film,age,stars\n");
    let mut tns = String::new();
    for i in 0..200 {
        let (user, film, age, stars) = (1 + i % 9, 1 + i * 5 % 7, 1 + i % 4, 1 + i * 3 % 5);
        csv += &format!("{user},{film},{age},{stars}\n");
        tns += &format!("{user} {film} {age} {stars}\n");
    }
    dir.file("t.csv", csv);
    dir.file("t.tns", tns);
    dir.file("o.tns", "9 7 4 1\n");
    dir.file("m.tns", "1 1 1\n2 2 1\n3 1 1\n7 2 1\n");
    for arguments in [
        &["convert", "@t.tns", "@t.coo"][..],
        &["convert", "@m.tns", "@m.coo"],
        &[
            "fit",
            "--tensor=@t.coo",
            "--matrix=2:@m.coo",
            "-o@m.s3m",
            "--rank=2",
            "--epochs=1",
        ],
    ] {
        run(expand_paths(&dir, arguments)).ok();
    }
    dir
}

#[test]
fn options_of_all_commands_refuse_numbers_that_no_machine_can_do() {
    let help = run(["--help"]).ok().stdout;
    let listed = help.split("Commands:").nth(1).unwrap();
    let listed = listed.lines().take_while(|l| !l.starts_with("Options:"));
    // Further lines of a description are indented.
    let names = listed.filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    for command in names.filter_map(|l| l.split_whitespace().next()) {
        let is_tested = COMMANDS.iter().any(|c| c[0] == command);
        assert!(is_tested || OTHER_COMMANDS.contains(&command), "{command}");
    }
    let dir = data();
    let mut runs: Vec<Vec<String>> = Vec::new();
    for base in COMMANDS {
        let mut tested = 0;
        for (option, placeholder) in options(base[0]) {
            for value in NUMBERS.iter().flat_map(|n| values(&placeholder, n)) {
                let equals = if option.starts_with("--") { "=" } else { "" };
                let start = format!("{option}{equals}");
                // Instead of the value that makes the command work.
                let others = base.iter().filter(|a| !a.starts_with(&start));
                let others: Vec<&str> = others.copied().collect();
                let mut arguments = expand_paths(&dir, &others);
                arguments.extend(expand_paths(&dir, &[&format!("{start}{value}")]));
                runs.push(arguments);
                tested += 1;
            }
        }
        assert!(
            tested > 0,
            "{} has no numbers; the help pages changed",
            base[0]
        );
    }
    println!("{} command lines", runs.len());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(arguments) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(arguments, &run_limited(arguments));
                }
            });
        }
    });
    // What should work does.
    for base in COMMANDS
        .iter()
        .filter(|base| !base.iter().any(|a| a.contains("missing")))
    {
        run(expand_paths(&dir, base)).ok();
    }
}

#[test]
fn jobs_and_measurements_refuse_numbers_that_no_machine_can_do() {
    let dir = data();
    let mut jobs = String::new();
    let tensor = dir.join("t.coo").display().to_string();
    for option in OPTION_TABLE {
        let is_integer = matches!(
            option.kind,
            OptionKind::Integer(..) | OptionKind::IntegerList(..)
        );
        for (k, number) in NUMBERS.iter().enumerate().filter(|_| is_integer) {
            let (name, model) = (option.name, dir.join(&format!("{}-{k}.s3m", option.name)));
            let model = model.display();
            jobs += &format!(
                "{{\"job\":\"fit\",\"tensor\":\"{tensor}\",\"output\":\"{model}\",\
                 \"options\":{{\"epochs\":1,\"{name}\":{number}}}}}\n"
            );
        }
    }
    let count = jobs.lines().count();
    dir.file("jobs.jsonl", jobs);
    let arguments = expand_paths(&dir, &["batch", "@jobs.jsonl", "-o@batch", "--threads=2"]);
    let done = run_limited(&arguments);
    // Some jobs have failed.
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    let results = std::fs::read_to_string(dir.join("batch/results.jsonl")).unwrap();
    let count_of = |word: &str| results.lines().filter(|l| l.contains(word)).count();
    // The seeds above 0 are valid.
    let seeds = NUMBERS.len() - 1;
    assert_eq!(count_of("\"status\":\"done\""), seeds);
    assert_eq!(count_of("\"reason\":\"bad-input\""), count - seeds);
    assert!(count > 40, "{count}");
    for base in [
        &["batch", "@jobs.jsonl", "-o@other"][..],
        &["bench", "--tensor=@t.coo"],
    ] {
        for (option, placeholder) in options(base[0]) {
            // Seeds may be any numbers; `bench` measures for seconds.
            let is_seed = option == "--seed";
            for value in NUMBERS.iter().flat_map(|n| values(&placeholder, n)) {
                let is_memory = option == "--memory";
                if is_seed || is_memory || option == "--dims" {
                    continue;
                }
                let mut arguments = expand_paths(&dir, base);
                arguments.push(format!("{option}={value}").replace('@', "/"));
                run_limited(&arguments).failed(2, &["error: "]);
            }
        }
    }
}
