//! Command-line arguments from the option table of the library, which `fit` and `tune` share.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use s3cmtf::format::{SizeLimit, read_whole_text};
use s3cmtf::options::{
    Algorithm, ExternalAlgorithm, OPTION_TABLE, OptionInfo, OptionKind, Options, PRESETS,
};
use s3cmtf::{Error, Result};

/// Heading of the options that few users need.
pub(crate) const ADVANCED: &str = "Advanced";

/// Options of a fit that the help lists first, in this order. The others are listed under [`ADVANCED`].
const MAIN_OPTIONS: [&str; 8] = [
    "algorithm",
    "model",
    "rank",
    "epochs",
    "patience",
    "nonneg",
    "threads",
    "seed",
];

/// Adds the arguments that name the data.
pub(crate) fn data_arguments(command: Command) -> Command {
    command
        .arg(path_argument("tensor", "FILE", "Tensor to fit: binary COO, or text").required(true))
        .arg(
            Arg::new("matrix")
                .long("matrix")
                .value_name("MODE:FILE")
                .action(ArgAction::Append)
                .help("Coupled matrix of a mode; may be repeated, see below"),
        )
        .arg(
            Arg::new("graph")
                .long("graph")
                .value_name("MODE:FILE")
                .action(ArgAction::Append)
                .help("Similarities between the rows of a mode; may be repeated, see below"),
        )
}

/// Adds the preset and the file of options.
pub(crate) fn settings_arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("preset")
                .long("preset")
                .value_name("NAME")
                .value_parser(PRESETS.to_vec())
                .hide_possible_values(true)
                .default_value("default")
                .hide_default_value(true)
                .help("Initial settings: default, paper or paper-{movielens,netflix,yelp}"),
        )
        .arg(path_argument(
            "config",
            "FILE",
            "File of options, one name=value per line; arguments override it",
        ))
}

/// Adds the advanced arguments about the data.
pub(crate) fn advanced_data_arguments(command: Command) -> Command {
    command
        .arg(
            path_argument(
                "weights",
                "FILE",
                "Weights of the tensor's entries: same cells, weights as values",
            )
            .help_heading(ADVANCED),
        )
        .arg(
            Arg::new("matrix-text")
                .long("matrix-text")
                .value_name("OPTION")
                .action(ArgAction::Append)
                .help("Option for reading matrices from text, such as columns=film,genre")
                .help_heading(ADVANCED),
        )
}

/// Describes the values of `--matrix` and `--graph`, at the end of the help.
pub(crate) const COUPLING_HELP: &str = "\
Coupled matrices: --matrix MODE:FILE[:WEIGHT[:PENALTY]][:KIND]. The rows of the matrix are the rows of the mode. \
WEIGHT replaces --lambda-m and PENALTY replaces --lambda-reg. KIND says what cells without an entry are: \
observed (unknown), full (zeros), sampled=K (K random zeros per entry), or auto, the default (zeros if all entries are \
equal and that predicts better, else unknown). Without weights, matrices that do not help are not used.
Graphs: --graph MODE:FILE[:WEIGHT], a square matrix of similarities; a penalty on the differences of similar rows.";

/// The help of `--resume`.
pub(crate) const RESUME_HELP: &str =
    "Continue from this checkpoint; without --checkpoint also write it again";

/// Returns `text` with static lifetime, which clap requires of names. Arguments are built once per process.
fn leak_str(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Adds the options of the table: first the main ones, then the others under their heading. `valued` finishes the
/// argument of an option that takes a value.
pub(crate) fn table_arguments(
    command: Command,
    advanced: bool,
    valued: impl Fn(Arg, &OptionInfo) -> Arg,
) -> Command {
    let info = |name: &&str| OPTION_TABLE.iter().find(|o| o.name == *name);
    let chosen: Vec<&OptionInfo> = if advanced {
        let is_advanced = |o: &&OptionInfo| !MAIN_OPTIONS.contains(&o.name);
        OPTION_TABLE.iter().filter(is_advanced).collect()
    } else {
        MAIN_OPTIONS.iter().filter_map(info).collect()
    };
    chosen.into_iter().fold(command, |command, option| {
        let mut arg = Arg::new(option.name);
        if advanced {
            arg = arg.help_heading(ADVANCED);
        }
        if option.kind == OptionKind::Flag {
            let [shown, opposite] = flag_arguments(arg, option);
            return command.arg(shown).arg(opposite);
        }
        let long = leak_str(option.name.replace('_', "-"));
        let help = format!("{} [default: {}]", option.help, option.default);
        command.arg(valued(arg.long(long).help(help), option))
    })
}

/// Lets `fit` and `tune` name algorithms of other crates, and adds the options that only these have.
pub(crate) fn add_algorithms(
    mut command: Command,
    algorithms: &'static [&'static ExternalAlgorithm],
) -> Command {
    if algorithms.is_empty() {
        return command;
    }
    let all = Algorithm::ALL.iter().map(|a| a.name());
    let names: Vec<&str> = all.chain(algorithms.iter().map(|a| a.name)).collect();
    let own = Options::options_with(algorithms).split_off(OPTION_TABLE.len());
    for name in ["fit", "tune"] {
        command = command.mut_subcommand(name, |command| {
            let parser = PossibleValuesParser::new(names.clone());
            let command = command.mut_arg("algorithm", |arg| arg.value_parser(parser));
            own.iter().fold(command, |command, option| {
                let long = leak_str(option.name.replace('_', "-"));
                let help = format!("{} [default: {}]", option.help, option.default);
                let arg = Arg::new(option.name).long(long).help(help);
                command.arg(single_value(arg.help_heading(ADVANCED), option))
            })
        });
    }
    command
}

/// Finishes an argument that takes one value of its option.
pub(crate) fn single_value(arg: Arg, option: &OptionInfo) -> Arg {
    let arg = arg.allow_negative_numbers(true);
    match option.kind {
        OptionKind::Choice(words) => arg
            .value_name("NAME")
            .value_parser(PossibleValuesParser::new(words.iter().copied()))
            .hide_possible_values(true),
        OptionKind::IntegerList(..) => arg.value_name("J,..."),
        OptionKind::RealList(..) => arg.value_name("X,..."),
        OptionKind::Integer(..) => arg.value_name("N"),
        OptionKind::Real(..) | OptionKind::Flag => arg.value_name("X"),
    }
}

/// Returns the two flags of an option that is true or false: the one that changes the default, and its opposite, which overrides a
/// file of options and is hidden unless the default is neither.
fn flag_arguments(arg: Arg, option: &OptionInfo) -> [Arg; 2] {
    let name = option.name.replace('_', "-");
    let negative = leak_str(format!("no-{name}"));
    let positive = leak_str(name);
    let opposite = opposite_id(option);
    let (shown, other, help) = if is_on_by_default(option) {
        let help = format!("Do not {}", lower_first(option.help));
        (negative, positive, help)
    } else {
        (positive, negative, option.help.to_string())
    };
    let heading = arg.get_help_heading().map(str::to_string);
    let mut other = Arg::new(opposite)
        .long(other)
        .action(ArgAction::SetTrue)
        .overrides_with(option.name)
        .help(format!("The opposite of --{shown}"))
        .hide(option.default != "auto");
    if let Some(heading) = heading {
        other = other.help_heading(leak_str(heading));
    }
    let shown = arg.long(shown).action(ArgAction::SetTrue);
    [shown.overrides_with(opposite).help(help), other]
}

/// Returns the identifier of the flag that sets an option to its default.
fn opposite_id(option: &OptionInfo) -> &'static str {
    leak_str(format!("default-{}", option.name))
}

/// Sets an option that is true or false if one of its flags was given.
pub(crate) fn apply_flag(a: &ArgMatches, option: &OptionInfo, options: &mut Options) -> Result<()> {
    let default = is_on_by_default(option);
    let value = if a.get_flag(option.name) {
        !default
    } else if a.get_flag(&format!("default-{}", option.name)) {
        default
    } else {
        return Ok(());
    };
    options.set(option.name, &value.to_string())
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
    let text = read_whole_text(file, SizeLimit::Options)?;
    options
        .apply_text(&text)
        .map_err(|e| Error::Argument(format!("{}: {e}", file.display())))
}
