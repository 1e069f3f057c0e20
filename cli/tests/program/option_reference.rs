//! `docs/reference/options.md` matches the option table. To generate it again:
//!
//! ```sh
//! S3CMTF_BLESS=1 cargo test -p s3cmtf-cli --test program option_reference
//! ```

use std::fs;

use s3cmtf::options::{
    Algorithm, ModelKind, OPTION_TABLE, OptionInfo, OptionKind, Options, PRESETS,
};

use crate::common::{Scratch, workspace_root};
use crate::runner::run;

const PAGE: &str = "docs/reference/options.md";

const INTRODUCTION: &str = "\
# Options of a fit

<!-- Generated from src/options/table.rs: S3CMTF_BLESS=1 cargo test -p s3cmtf-cli --test program option_reference -->

`s3cmtf fit` and `s3cmtf tune` take these options on the command line. Everywhere else they have the name of the first column:

| where | form |
| --- | --- |
| command line | `s3cmtf fit --lambda-reg 0.1 --no-biases ...` |
| file for `--config` | lines `lambda_reg=0.1` and `biases=false` |
| job of `batch` | `\"options\": {\"lambda_reg\": 0.1, \"biases\": false}` |
| C | `s3cmtf_options_set(options, \"lambda_reg\", \"0.1\", error)`, or in one string `\"lambda_reg=0.1 biases=false\"` |
| Rust | `options.lambda_reg = Some(0.1)`, or `options.set(\"lambda_reg\", \"0.1\")` |

- A value of `auto` is resolved from the data before the first epoch. `s3cmtf info MODEL` prints the values of a fitted model.
- An option that is true by default has a flag that turns it off, such as `--no-mean`. The opposite flag (`--mean`) overrides a
  file of options.
- The column \"algorithms\" lists those that use an option. The others refuse it or ignore it; a fit warns of options that were
  given and ignored. \"SGD\" stands for `blocked`, `opt` and `naive`.
- `naive` always updates with scalar code; there `kernel` applies to the Gibbs chain that initializes the factors.
- With `tune` an option may be a list or a range to search: `--rank 8,16,32`, `--eta 0.005..0.1`. A range of an option that the
  algorithm does not use is refused.

[Model and algorithms](model.md) explains the terms.

| name | command line | values | default | algorithms | meaning |
| --- | --- | --- | --- | --- | --- |
";

const PRESET_INTRODUCTION: &str = "
## Presets

A preset changes these defaults: `--preset NAME` on the command line, `s3cmtf_options_new(\"NAME\", ...)` or a first pair
`preset=NAME` in C, `Options::preset(\"NAME\")` in Rust. Options that are given override it.

| preset | values |
| --- | --- |
";

/// Returns the page.
fn page() -> String {
    let options: String = OPTION_TABLE.iter().map(table_row).collect();
    let presets = PRESETS.iter().map(|name| {
        let preset = Options::preset(name).unwrap();
        let value = |o: &OptionInfo| preset.get(o.name).unwrap();
        let changed = OPTION_TABLE.iter().filter(|o| value(o) != o.default);
        let changed: Vec<String> = changed
            .map(|o| format!("`{}={}`", o.name, value(o)))
            .collect();
        match &changed[..] {
            [] => format!("| `{name}` | as in the table above |\n"),
            _ => format!("| `{name}` | {} |\n", changed.join(", ")),
        }
    });
    let presets: String = presets.collect();
    format!("{INTRODUCTION}{options}{PRESET_INTRODUCTION}{presets}")
}

fn table_row(option: &OptionInfo) -> String {
    format!(
        "| `{}` | `{}` | {} | `{}` | {} | {} |\n",
        option.name,
        command_line(option),
        values(option),
        option.default,
        algorithms(option),
        option.help
    )
}

/// Returns the argument of `fit`, as its help shows it.
fn command_line(option: &OptionInfo) -> String {
    let name = option.name.replace('_', "-");
    match option.kind {
        OptionKind::Flag if option.default == "true" => format!("--no-{name}"),
        OptionKind::Flag => format!("--{name}"),
        OptionKind::Choice(_) => format!("--{name} NAME"),
        OptionKind::Integer(..) => format!("--{name} N"),
        OptionKind::Real(..) => format!("--{name} X"),
        OptionKind::IntegerList(..) => format!("--{name} J,..."),
        OptionKind::RealList(..) => format!("--{name} X,..."),
    }
}

/// Returns the type and the range of the values.
fn values(option: &OptionInfo) -> String {
    let real_range = |low: f64, high: f64| match high {
        f64::MAX => format!("{low} or more"),
        _ => format!("{low} to {high}"),
    };
    let kind = match option.kind {
        OptionKind::Flag => "`true` or `false`".into(),
        OptionKind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
            return words.join(", ");
        }
        OptionKind::Integer(low, u64::MAX) => format!("integer, {low} or more"),
        OptionKind::Integer(low, high) => format!("integer, {low} to {high}"),
        OptionKind::Real(low, high) => format!("number, {}", real_range(low, high)),
        OptionKind::IntegerList(low, high) => {
            format!("integer, {low} to {high}, or one per mode")
        }
        OptionKind::RealList(low, high) => {
            format!("number, {}, or one per mode", real_range(low, high))
        }
    };
    match option.default {
        "auto" => format!("{kind}; or `auto`"),
        _ => kind,
    }
}

const SGD: [Algorithm; 3] = [Algorithm::Blocked, Algorithm::Opt, Algorithm::Naive];

/// Returns the algorithms that use an option, in words.
fn algorithms(option: &OptionInfo) -> String {
    let users: Vec<Algorithm> = option.algorithms().collect();
    let has_all_sgd = SGD.iter().all(|a| users.contains(a));
    let mut words: Vec<String> = Vec::new();
    if has_all_sgd {
        words.push("SGD".into());
    }
    for &algorithm in &users {
        if !(has_all_sgd && SGD.contains(&algorithm)) {
            words.push(format!("`{}`", algorithm.name()));
        }
    }
    match users.len() == Algorithm::ALL.len() {
        true => "all".into(),
        false => words.join(", "),
    }
}

#[test]
fn option_reference_matches_the_table() {
    let (path, generated) = (workspace_root().join(PAGE), page());
    if std::env::var_os("S3CMTF_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == generated,
        "{PAGE} does not match the option table; S3CMTF_BLESS=1 cargo test -p s3cmtf-cli --test program option_reference generates it again"
    );
}

#[test]
fn option_reference_has_the_arguments_of_fit() {
    let help = run(["fit", "--help"]).ok().stdout;
    for option in OPTION_TABLE {
        let argument = command_line(option);
        // The help encloses names of values in angle brackets.
        let argument = match argument.split_once(' ') {
            Some((name, value)) => format!(" {name} <{value}> "),
            None => format!(" {argument} "),
        };
        assert!(help.contains(&argument), "{argument} in {help}");
    }
}

#[test]
fn algorithms_ignore_or_refuse_options_they_do_not_use() {
    let dir = Scratch::new("unused-options");
    let entry = |k: u32| {
        let (i, j, l) = (k % 20, k / 20 % 15, k % 3);
        let value = f64::from((i + 1) * (j + 2) % 7) + 0.1 * f64::from(l);
        format!("{} {} {} {value}\n", i + 1, j + 1, l + 1)
    };
    let tensor = dir.file("t.tns", (0..300).map(entry).collect::<String>());
    let tensor = tensor.display().to_string();
    let model = dir.join("m.s3m").display().to_string();
    let fit = |settings: &str| {
        let config = dir.file("c.conf", settings).display().to_string();
        run([
            "fit", "--tensor", &tensor, "--config", &config, "-o", &model, "--json",
        ])
    };
    let error = |line: &serde_json::Value| line["summary"]["train_rmse"].clone();
    for &algorithm in Algorithm::ALL {
        let model = algorithm.only_model().unwrap_or(ModelKind::Tucker).name();
        let name = algorithm.name();
        let base = format!(
            "algorithm={name}\nthreads=1\nmodel={model}\nrank=2\nepochs=3\nsamples=3\nburn_in=1\n"
        );
        let expected = error(fit(&base).ok().json().last().unwrap());
        for option in OPTION_TABLE {
            if option.algorithms().any(|a| a == algorithm) {
                continue;
            }
            let (option, value) = (option.name, option.example);
            let ran = fit(&format!("{base}{option}={value}\n"));
            if ran.code == Some(0) {
                let found = error(ran.json().last().unwrap());
                assert_eq!(found, expected, "{name} with {option}={value}");
            } else {
                assert!(ran.stderr.contains(name), "{}", ran.stderr);
            }
        }
    }
}
