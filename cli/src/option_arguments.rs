//! Command-line arguments from the option table of the library, which `fit` and `tune` share.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use s3cmtf::options::{OptionInfo, Options, PRESETS};
use s3cmtf::{Error, Result};

/// Adds the arguments that name the data, the preset and a file of options.
pub(crate) fn data_arguments(command: Command) -> Command {
    command
        .arg(path_argument("tensor", "FILE", "The tensor: binary COO, or text").required(true))
        .arg(
            Arg::new("matrix")
                .long("matrix")
                .value_name("MODE:FILE[:WEIGHT[:PENALTY]][:KIND]")
                .action(ArgAction::Append)
                .help("A coupled matrix: its mode, its weight (else that of --lambda-m), the penalty on its columns (else --lambda-reg), and the meaning of positions without an entry: observed (unknown, the default), full (zeros) or sampled=K (K random zeros per entry)"),
        )
        .arg(
            Arg::new("graph")
                .long("graph")
                .value_name("MODE:FILE[:WEIGHT]")
                .action(ArgAction::Append)
                .help("A square matrix of similarities between the rows of a mode; a penalty pulls similar rows together"),
        )
        .arg(
            Arg::new("matrix-text")
                .long("matrix-text")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Options for reading text of matrices and graphs, named like those for reading text: columns=film,genre or no-value=true; --zero-based applies to them too"),
        )
        .arg(path_argument("weights", "FILE", "Weights of the tensor's entries: a file with the same entries in the same order, whose values are the weights"))
        .arg(
            Arg::new("preset")
                .long("preset")
                .value_name("NAME")
                .value_parser(PRESETS.to_vec())
                .default_value("default")
                .help("Default settings, or those of the paper, with or without its rank and step size for a data set"),
        )
        .arg(path_argument("config", "FILE", "File of options, one name=value per line; arguments override it"))
}

/// Returns `text` with static lifetime, which clap requires of names. Arguments are built once per process.
pub(crate) fn leak_str(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Turns `arg` into the flag of an option that is true or false. A flag that is on by default becomes `--no-NAME`.
pub(crate) fn flag_argument(arg: Arg, option: &OptionInfo) -> Arg {
    let long = option.name.replace('_', "-");
    let arg = arg.action(ArgAction::SetTrue);
    if is_on_by_default(option) {
        arg.long(leak_str(format!("no-{long}")))
            .help(format!("Disable: {}", lower_first(option.help)))
    } else {
        arg.long(leak_str(long)).help(option.help)
    }
}

/// Sets an option that is true or false to the opposite of its default if its flag was given.
pub(crate) fn apply_flag(a: &ArgMatches, option: &OptionInfo, options: &mut Options) -> Result<()> {
    if !a.get_flag(option.name) {
        return Ok(());
    }
    let value = if is_on_by_default(option) {
        "false"
    } else {
        "true"
    };
    options.set(option.name, value)
}

fn is_on_by_default(option: &OptionInfo) -> bool {
    option.default == "true"
}

/// Returns `text` with its first letter in lower case.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |c| c.to_lowercase().chain(chars).collect())
}

/// Returns an option that takes a path.
pub(crate) fn path_argument(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

/// Overrides options with those of the file given by `--config`, if any.
pub(crate) fn apply_config(a: &ArgMatches, options: &mut Options) -> Result<()> {
    let Some(file) = a.get_one::<PathBuf>("config") else {
        return Ok(());
    };
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        action: format!("cannot read {}", file.display()),
        source,
    })?;
    options
        .apply_text(&text)
        .map_err(|e| Error::Argument(format!("{}: {e}", file.display())))
}
