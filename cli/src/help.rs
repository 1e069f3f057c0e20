//! The form of help pages: one line per option, the description above the usage, examples at the end.

use clap::Command;

/// The description of a command (`before-help`) follows its one-line summary.
const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Makes `-h` and `--help` of every command print the same compact page.
///
/// With a long description clap would leave empty lines between options and print their texts on lines of their own.
/// The pages are changed when clap builds the command in use, since all of them together take longer than a small command.
pub fn compact(command: Command) -> Command {
    command.mut_subcommands(|c| c.defer(compact_page))
}

fn compact_page(c: Command) -> Command {
    let long = c.get_long_about().map(ToString::to_string);
    let description = long.and_then(|text| Some(text.split_once("\n\n")?.1.to_string()));
    let c = c.long_about(None::<&str>).help_template(TEMPLATE);
    match description {
        Some(text) => c.before_help(text),
        None => c,
    }
}
