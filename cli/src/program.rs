//! The whole program: parses the arguments, runs the command, and prints its output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::{ErrorKind, Result};

use crate::commands::{self, Command};
use crate::file_arguments::CommandFiles;
use crate::help;
use crate::option_arguments::add_algorithms;
use crate::outcome::Outcome;
use crate::output::{self, Output};
use crate::progress::Progress;

/// Factorizes sparse tensors together with coupled matrices.
#[derive(Parser)]
#[command(name = "s3cmtf", version)]
#[command(after_help = "\
Examples:
  s3cmtf demo
  s3cmtf convert ratings.csv ratings.coo --columns user,movie,month --value stars
  s3cmtf fit --tensor ratings.coo -o model.s3m
  s3cmtf recommend model.s3m --mode 2 --for 1:all --exclude ratings.coo

Exit codes: 0 done, 1 the system failed, 2 bad usage or bad input, 130 interrupted.
`s3cmtf COMMAND --help` describes a command and its options.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Print one JSON object per line on standard output
    #[arg(long, global = true)]
    json: bool,
}

/// Runs the program with the arguments of the process, with algorithms of other crates besides those of the library.
pub fn main(algorithms: &'static [&'static ExternalAlgorithm]) -> ExitCode {
    let command = || add_algorithms(Arguments::command(), algorithms);
    let parsed = help::compact(command()).try_get_matches();
    let matches = parsed.unwrap_or_else(|e| output::exit_with_usage(&e));
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let (files, given) = files_of_command(&matches);
    run_command(arguments.json, files, given, |progress, output| {
        commands::run(&arguments.command, command, algorithms, progress, output)
    })
}

/// Runs a command once its files are checked, and prints its output. `given` are its arguments.
#[doc(hidden)]
pub fn run_command(
    json: bool,
    files: &CommandFiles,
    given: &ArgMatches,
    run: impl FnOnce(&Progress, &mut Output) -> Result<Outcome>,
) -> ExitCode {
    let progress = Progress::new(json);
    let values = |id: &str| paths(given, id);
    let mut output = Output::new(
        json,
        files.prints_result(&values),
        files.writes_files(&values),
        progress.bar(),
    );
    let checked = files.check(&values).and_then(|()| output.require_open());
    let outcome = checked.and_then(|()| run(&progress, &mut output));
    progress.clear();
    match outcome.and_then(|outcome| output.finish().map(|()| outcome)) {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::InvalidInput) => ExitCode::from(2),
        Err(error) => {
            output::print_error(&error.to_string());
            match error.kind() {
                ErrorKind::BadInput => ExitCode::from(2),
                ErrorKind::System => ExitCode::from(1),
                ErrorKind::Cancelled => ExitCode::from(130),
            }
        }
    }
}

/// Returns the files of the command that was given, and its arguments.
fn files_of_command(matches: &ArgMatches) -> (&'static CommandFiles, &ArgMatches) {
    let (name, given) = matches.subcommand().expect("clap requires a command");
    let files = CommandFiles::of(name).expect("a test compares the commands");
    (files, given)
}

/// Returns the values of an argument as paths; none if it was not given or does not exist.
fn paths(matches: &ArgMatches, id: &str) -> Vec<PathBuf> {
    let values = matches.try_get_raw(id).ok().flatten();
    values.into_iter().flatten().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_arguments::{COMMANDS, TEXT_INPUT};

    /// Returns all commands with their help pages.
    fn pages() -> Vec<(String, clap::Command, String)> {
        let mut command = help::compact(Arguments::command());
        command.build();
        let own = (
            String::new(),
            command.clone(),
            command.clone().render_help(),
        );
        let all = command.get_subcommands().filter(|c| c.get_name() != "help");
        let pages = all.map(|c| (c.get_name().to_string(), c.clone(), c.clone().render_help()));
        let pages = [own].into_iter().chain(pages);
        pages
            .map(|(name, c, page)| (name, c, page.to_string()))
            .collect()
    }

    /// Returns the example commands at the end of a page; lines that end in a backslash continue.
    fn examples(page: &str) -> Vec<String> {
        let section = page.split("Examples:\n").nth(1).unwrap_or_default();
        let section = section.split("\n\n").next().unwrap_or_default();
        let joined = section.replace("\\\n", " ");
        joined.lines().map(|l| l.trim().to_string()).collect()
    }

    #[test]
    fn examples_of_all_commands_parse() {
        for (name, _, page) in pages() {
            let examples = examples(&page);
            assert!((1..=4).contains(&examples.len()), "{name}: {page}");
            for example in examples {
                // After a pipe, before a redirection.
                let own = example
                    .split("| ")
                    .last()
                    .unwrap()
                    .split(" > ")
                    .next()
                    .unwrap();
                let words = own.split('"').enumerate().flat_map(|(i, part)| {
                    let quoted = i % 2 == 1;
                    let words = part.split(|c: char| !quoted && c == ' ');
                    words.filter(|w| !w.is_empty()).collect::<Vec<_>>()
                });
                let parsed = Arguments::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    /// Returns whether the value of an argument is, or contains, a path.
    fn names_a_file(arg: &clap::Arg) -> bool {
        let is_path =
            arg.get_value_parser().type_id() == clap::builder::ValueParser::path_buf().type_id();
        let words = [
            "FILE", "FOLDER", "MODEL", "CONFIG", "PREFIX", "JOBS", "MODE:ROW",
        ];
        let names = arg.get_value_names().unwrap_or_default();
        // Matrices and rows of --matrix are planted by `generate`, which reads no file.
        let has_word = |name: &str| words.iter().any(|word| name.contains(word));
        is_path || names.iter().any(|name| has_word(name))
    }

    #[test]
    fn all_arguments_that_name_files_are_listed() {
        let mut all = Vec::new();
        for (name, command, _) in pages() {
            let Some(files) = CommandFiles::of(&name) else {
                assert_eq!(name, "", "{name} is not in COMMANDS");
                continue;
            };
            let listed = || files.arguments.iter().chain(&TEXT_INPUT);
            for arg in command.get_arguments().filter(|arg| names_a_file(arg)) {
                let id = arg.get_id().as_str();
                let is_listed = listed().any(|(known, _)| *known == id);
                assert!(is_listed, "{name} {id} is not in COMMANDS");
            }
            for (id, _) in files.arguments {
                let mut arguments = command.get_arguments();
                assert!(
                    arguments.any(|arg| arg.get_id() == id),
                    "{name} has no {id}"
                );
            }
            all.push(name);
        }
        assert_eq!(all.len(), COMMANDS.len());
    }

    #[test]
    fn options_of_one_name_mean_the_same_everywhere() {
        for (name, command, page) in pages() {
            for arg in command.get_arguments() {
                let context = format!("{name}: {arg}");
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let short = match arg.get_long().unwrap_or_default() {
                    "output" => Some('o'),
                    "top" => Some('n'),
                    "help" => Some('h'),
                    "version" => Some('V'),
                    _ if arg.get_id() == "k" => Some('k'),
                    _ => None,
                };
                assert_eq!(arg.get_short(), short, "{context}");
                match arg.get_long() {
                    Some("threads") if name != "bench" && name != "batch" => {
                        assert!(
                            help.starts_with("Number of threads; 0: all available cores"),
                            "{context}"
                        );
                    }
                    Some("seed") => assert!(help.starts_with("Random seed"), "{context}: {help}"),
                    Some("mode") => {
                        let value = arg.get_value_names().map(|v| v[0].to_string());
                        assert_eq!(value.as_deref(), Some("MODE"), "{context}");
                    }
                    _ => {}
                }
                // One idea per line: no full sentence, and a capital letter first.
                if !arg.is_hide_set() {
                    assert!(help.starts_with(char::is_uppercase), "{context}: {help}");
                    assert!(!help.ends_with('.'), "{context}: {help}");
                }
            }
            for word in ["Not this", "Disable:", "by default"] {
                assert!(!page.contains(word), "{name}: {word:?} in {page}");
            }
        }
    }

    #[test]
    fn help_pages_fit_on_two_screens() {
        for (name, _, page) in pages() {
            let lines = page.lines().count();
            assert!(lines <= 100, "{name}: {lines} lines\n{page}");
            let widest = page.lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(118), "{name}: {widest:?}\n{page}");
        }
    }
}
