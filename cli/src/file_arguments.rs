//! The arguments of all commands that name files, and the check of outputs before a command begins.
//!
//! An output that cannot be written must not cost the work that leads to it. Every command therefore begins with
//! [`CommandFiles::check`]: every output can be written, and is neither an input nor another output. The check creates and
//! changes nothing. A test compares [`COMMANDS`] with the definitions of the commands, so that none is left out.

use std::path::{Path, PathBuf};

use s3cmtf::format::{self, Names, OutputFolder, check_derived_target, check_target};
use s3cmtf::{Error, Result};

/// The files of a command.
pub struct CommandFiles {
    /// Its name.
    pub command: &'static str,
    /// Where its result goes.
    pub result: ResultPlace,
    /// The arguments that name files, by their identifier, without those of text input ([`TEXT_INPUT`]).
    pub arguments: &'static [(&'static str, FileUse)],
}

/// Where the result of a command goes.
pub enum ResultPlace {
    /// Into files. What it prints describes them.
    Files,
    /// To standard output.
    StandardOutput,
    /// To standard output unless this argument names a file.
    StandardOutputUnless(&'static str),
}

/// How a command uses the files that an argument names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Reads them. The argument is a path, or a path behind a prefix such as `MODE:`.
    Input,
    /// Reads names of rows, which may be those beside an output.
    Names,
    /// Reads a checkpoint and, unless `--checkpoint` is given, writes it again.
    Checkpoint,
    /// Writes one file.
    Output,
    /// Writes a binary tensor and the names of its rows beside it.
    Data,
    /// Like `Data`; the file may be the binary input.
    DataInPlace,
    /// Writes a model and the names of its rows and columns beside it.
    Model,
    /// Writes the parts of a split, whose names begin like this.
    Parts,
    /// Writes these files, among others, into a folder.
    Folder(&'static [&'static str]),
}

use FileUse::{Checkpoint, Data, DataInPlace, Folder, Input, Model, Output, Parts};
use ResultPlace::{Files, StandardOutput, StandardOutputUnless};

/// The arguments for names of rows, which most commands have.
pub const TEXT_INPUT: [(&str, FileUse); 3] = [
    ("names", FileUse::Names),
    ("matrix-text", FileUse::Names),
    ("matrix_names", FileUse::Names),
];

/// All commands.
pub const COMMANDS: &[CommandFiles] = &[
    CommandFiles {
        command: "demo",
        result: Files,
        arguments: &[
            (
                "output",
                Folder(&[
                    "report.html",
                    "model.s3m",
                    "model.log.jsonl",
                    "uncoupled.s3m",
                    "uncoupled.log.jsonl",
                    "coupled.s3m",
                    "coupled.log.jsonl",
                ]),
            ),
            ("data", Input),
        ],
    },
    CommandFiles {
        command: "convert",
        result: Files,
        arguments: &[
            ("input", Input),
            ("output", DataInPlace),
            ("rows_of", Input),
        ],
    },
    CommandFiles {
        command: "check",
        result: StandardOutput,
        arguments: &[("file", Input), ("fix", DataInPlace)],
    },
    CommandFiles {
        command: "info",
        result: StandardOutput,
        arguments: &[("file", Input)],
    },
    CommandFiles {
        command: "split",
        result: Files,
        arguments: &[("file", Input), ("output", Parts)],
    },
    CommandFiles {
        command: "generate",
        result: Files,
        arguments: &[("output", Folder(&["tensor.train.coo"]))],
    },
    CommandFiles {
        command: "fit",
        result: Files,
        arguments: &[
            ("tensor", Input),
            ("weights", Input),
            ("matrix", Input),
            ("graph", Input),
            ("test", Input),
            ("valid", Input),
            ("config", Input),
            ("init", Input),
            ("plan", Input),
            ("resume", Checkpoint),
            ("output", Model),
            ("checkpoint", Output),
            ("trace", Output),
        ],
    },
    CommandFiles {
        command: "tune",
        result: Files,
        arguments: &[
            ("tensor", Input),
            ("weights", Input),
            ("matrix", Input),
            ("graph", Input),
            ("valid", Input),
            ("config", Input),
            ("resume", Checkpoint),
            ("output", Output),
            ("checkpoint", Output),
        ],
    },
    CommandFiles {
        command: "eval",
        result: StandardOutput,
        arguments: &[("model", Input), ("file", Input), ("exclude", Input)],
    },
    CommandFiles {
        command: "predict",
        result: StandardOutputUnless("output"),
        arguments: &[("model", Input), ("file", Input), ("output", Output)],
    },
    CommandFiles {
        command: "export",
        result: Files,
        arguments: &[("model", Input), ("output", Folder(&["CORETENSOR"]))],
    },
    CommandFiles {
        command: "fold-in",
        result: Files,
        arguments: &[
            ("model", Input),
            ("tensor", Input),
            ("matrix", Input),
            ("output", Model),
        ],
    },
    CommandFiles {
        command: "recommend",
        result: StandardOutput,
        arguments: &[
            ("model", Input),
            ("rows", Input),
            ("exclude", Input),
            ("only", Input),
            ("not", Input),
        ],
    },
    CommandFiles {
        command: "similar",
        result: StandardOutput,
        arguments: &[("model", Input), ("row", Input)],
    },
    CommandFiles {
        command: "concepts",
        result: StandardOutput,
        arguments: &[("model", Input), ("rows", Input)],
    },
    CommandFiles {
        command: "clusters",
        result: StandardOutput,
        arguments: &[("model", Input), ("matrix", Input), ("against", Input)],
    },
    CommandFiles {
        command: "report",
        result: Files,
        arguments: &[
            ("model", Input),
            ("data", Input),
            ("test", Input),
            ("matrix", Input),
            ("against", Input),
            ("output", Output),
        ],
    },
    CommandFiles {
        command: "batch",
        result: Files,
        arguments: &[
            ("jobs", Input),
            ("output", Folder(&["results.jsonl", "started.jsonl"])),
        ],
    },
    CommandFiles {
        command: "bench",
        result: StandardOutput,
        arguments: &[("tensor", Input), ("test", Input), ("trace", Output)],
    },
    CommandFiles {
        command: "completions",
        result: StandardOutput,
        arguments: &[],
    },
    CommandFiles {
        command: "man",
        result: Files,
        arguments: &[("output", Folder(&["s3cmtf.1"]))],
    },
];

/// An output of a command as given.
struct GivenOutput {
    /// How messages call it.
    label: String,
    path: PathBuf,
    kind: FileUse,
}

impl GivenOutput {
    /// Returns the files that are certainly written; all of them if the output is not a folder.
    fn files(&self) -> Vec<PathBuf> {
        match self.kind {
            Parts => ["train", "valid", "test"]
                .map(|part| part_of(&self.path, part))
                .into(),
            Folder(names) => names.iter().map(|name| self.path.join(name)).collect(),
            _ => vec![self.path.clone()],
        }
    }

    /// Returns the path that the names beside the output begin with, if there may be any.
    fn names_stem(&self) -> Option<PathBuf> {
        match self.kind {
            Data | DataInPlace => Some(self.path.with_extension("")),
            Model | Parts => Some(self.path.clone()),
            _ => None,
        }
    }

    /// Checks that the output can be written.
    fn check_target(&self) -> Result<()> {
        if self.path == Path::new("-") {
            return Err(Error::argument(format!(
                "{} is -: it must be a file or a folder; for one of that name write ./-",
                self.label
            )));
        }
        match self.kind {
            Folder(_) => {
                OutputFolder::check(&self.path)?;
                let exists = self.path.is_dir();
                let files = self.files();
                let mut files = files.iter().filter(|_| exists);
                files.try_for_each(|file| check_derived_target(file))
            }
            Parts if self.path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
                let path = self.path.display();
                Err(Error::argument(format!(
                    "{path} names a folder; add the beginning of file names, such as {path}data"
                )))
            }
            Parts => self
                .files()
                .iter()
                .try_for_each(|file| check_derived_target(file)),
            _ => check_target(&self.path),
        }
    }
}

impl CommandFiles {
    /// Returns the files of a command.
    pub fn of(command: &str) -> Option<&'static CommandFiles> {
        COMMANDS.iter().find(|c| c.command == command)
    }

    /// Returns whether the result goes to standard output. `values` returns the values of an argument, by its identifier.
    pub fn prints_result(&self, values: &dyn Fn(&str) -> Vec<PathBuf>) -> bool {
        match self.result {
            Files => false,
            StandardOutput => true,
            StandardOutputUnless(argument) => values(argument).is_empty(),
        }
    }

    /// Returns whether the command writes a file.
    pub fn writes_files(&self, values: &dyn Fn(&str) -> Vec<PathBuf>) -> bool {
        !self.outputs(values).is_empty()
    }

    /// Checks that all outputs can be written and are neither inputs nor other outputs.
    pub fn check(&self, values: &dyn Fn(&str) -> Vec<PathBuf>) -> Result<()> {
        let outputs = self.outputs(values);
        outputs.iter().try_for_each(GivenOutput::check_target)?;
        for (id, kind) in self.arguments.iter().chain(&TEXT_INPUT) {
            let is_input = matches!(kind, Input | FileUse::Names);
            for value in values(id).iter().filter(|_| is_input) {
                for input in candidates(value) {
                    let mut each = outputs.iter();
                    each.try_for_each(|output| output.refuse_input(&input, *kind))?;
                }
            }
        }
        for (k, output) in outputs.iter().enumerate() {
            outputs[..k]
                .iter()
                .try_for_each(|other| output.refuse_other(other))?;
        }
        Ok(())
    }

    fn outputs(&self, values: &dyn Fn(&str) -> Vec<PathBuf>) -> Vec<GivenOutput> {
        let mut outputs = Vec::new();
        for &(id, kind) in self.arguments {
            let mut paths = values(id);
            let input = |id: &str| values(id).into_iter().next();
            match kind {
                Input | FileUse::Names => continue,
                Checkpoint if !values("checkpoint").is_empty() => continue,
                Parts if paths.is_empty() => paths.extend(input("file").map(|f| split_prefix(&f))),
                Folder(_) if paths.is_empty() => {
                    paths.extend(input("jobs").and_then(|jobs| batch_folder(&jobs)));
                }
                _ => {}
            }
            outputs.extend(paths.into_iter().map(|path| GivenOutput {
                label: format!("--{}", id.replace('_', "-")),
                path,
                kind,
            }));
        }
        outputs
    }
}

impl GivenOutput {
    /// Returns an error if this output would replace an input or the names beside it.
    fn refuse_input(&self, input: &Path, kind: FileUse) -> Result<()> {
        let Ok(input_file) = input.canonicalize() else {
            return Ok(());
        };
        let refuse = |path: &Path, why: String| {
            let path = path.display();
            Err(Error::argument(format!(
                "{path} {why}; write to another file"
            )))
        };
        // A binary file is replaced only when the new one is complete.
        let may_replace = self.kind == DataInPlace && format::is_coo_file(input).unwrap_or(false);
        for file in self.files() {
            let target = canonical(&file);
            if target == input_file && !may_replace {
                let why = "is read by this command and would be overwritten";
                return refuse(&file, why.into());
            }
            if kind == FileUse::Names {
                continue;
            }
            if stems(&input_file).any(|stem| Names::belongs_to(&target, &stem)) {
                let input = input.display();
                return refuse(
                    &file,
                    format!("is the name of a file with names of {input}"),
                );
            }
        }
        match self.names_stem() {
            _ if kind == FileUse::Names => Ok(()),
            Some(stem) if Names::belongs_to(&input_file, &canonical(&stem)) => {
                let output = self.path.display();
                let why =
                    format!("is read by this command, and would be a file with names of {output}");
                refuse(input, why)
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if this output and another are the same file, or one is a file of names of the other.
    fn refuse_other(&self, other: &GivenOutput) -> Result<()> {
        let is_names_of = |a: &GivenOutput, b: &GivenOutput| {
            let stem = b.names_stem().map(|stem| canonical(&stem));
            stem.is_some_and(|stem| Names::belongs_to(&canonical(&a.path), &stem))
        };
        let is_same = canonical(&self.path) == canonical(&other.path);
        if is_same || is_names_of(self, other) || is_names_of(other, self) {
            let why = match is_same {
                true => "",
                false => ", or the names beside it",
            };
            return Err(Error::argument(format!(
                "{} cannot be both {} and {}{why}; use two files",
                self.path.display(),
                other.label,
                self.label
            )));
        }
        Ok(())
    }
}

/// Returns the prefix of the parts of a split without `--output`: the input without its extension.
pub fn split_prefix(input: &Path) -> PathBuf {
    let uncompressed = match input.extension() {
        Some(e) if e.eq_ignore_ascii_case("gz") => input.with_extension(""),
        _ => input.to_path_buf(),
    };
    uncompressed.with_extension("")
}

/// Returns the folder of a batch without `--output`; `None` for jobs from standard input.
pub fn batch_folder(jobs: &Path) -> Option<PathBuf> {
    (jobs != Path::new("-")).then(|| jobs.with_extension("batch"))
}

/// Returns the canonical path of a file, even if the file does not exist yet.
pub fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = absolute.parent().map(Path::canonicalize);
    match (folder, absolute.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

fn part_of(prefix: &Path, part: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{part}.coo"));
    name.into()
}

/// Returns the paths that a value may name: the value, and each part behind its first colon, as in `2:genres.coo:10:full`. A row
/// may be `1:@FILE`.
fn candidates(value: &Path) -> Vec<PathBuf> {
    let mut paths = vec![value.to_path_buf()];
    let Some((_, mut rest)) = value.to_str().and_then(|text| text.split_once(':')) else {
        return paths;
    };
    rest = rest.strip_prefix('@').unwrap_or(rest);
    paths.push(rest.into());
    while let Some((shorter, _)) = rest.rsplit_once(':') {
        rest = shorter;
        paths.push(rest.into());
    }
    paths
}

/// Returns a path without some of its extensions, from none to all: names of rows belong to each.
fn stems(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::successors(Some(path.to_path_buf()), |stem| {
        stem.extension()?;
        Some(stem.with_extension(""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_the_file_behind_a_prefix() {
        let names = |value: &str| -> Vec<String> {
            let found = candidates(Path::new(value));
            found.iter().map(|p| p.display().to_string()).collect()
        };
        assert_eq!(names("a.coo"), ["a.coo"]);
        assert_eq!(names("1:@ids"), ["1:@ids", "ids"]);
        assert_eq!(
            names("2:a:b.coo:10:full"),
            [
                "2:a:b.coo:10:full",
                "a:b.coo:10:full",
                "a:b.coo:10",
                "a:b.coo",
                "a"
            ]
        );
    }

    /// Checks the arguments of a command in a folder, where `@` stands for the folder.
    fn check(folder: &Path, command: &str, arguments: &[(&str, &str)]) -> Result<()> {
        let values = |id: &str| {
            let given = arguments.iter().filter(|(name, _)| *name == id);
            let at = format!("{}/", folder.display());
            given
                .map(|(_, value)| value.replace('@', &at).into())
                .collect()
        };
        CommandFiles::of(command).unwrap().check(&values)
    }

    #[test]
    fn outputs_are_neither_inputs_nor_other_outputs() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["t.coo", "t.tns", "w.coo", "g.coo", "t.mode1.tsv", "c.s3m"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let fit = [
            ("tensor", "@t.coo"),
            ("matrix", "2:@g.coo:10"),
            ("weights", "@w.coo"),
        ];
        let with = |command: &str, more: &[(&str, &str)]| {
            check(dir.path(), command, &[&fit[..], more].concat())
        };
        for (command, arguments, words) in [
            ("fit", &[("output", "@t.coo")][..], "t.coo is read by"),
            ("fit", &[("output", "@d/../w.coo")], "is read by"),
            (
                "fit",
                &[("output", "@m"), ("trace", "@g.coo")],
                "is read by",
            ),
            ("fit", &[("output", "@t.mode1.tsv")], "names of"),
            ("fit", &[("output", "@t.coo.mode2.tsv")], "names of"),
            (
                "fit",
                &[("output", "@m"), ("checkpoint", "@d/../m")],
                "both --output and --checkpoint",
            ),
            (
                "fit",
                &[("output", "@m"), ("resume", "@m")],
                "use two files",
            ),
            (
                "fit",
                &[("output", "@m"), ("trace", "@m.mode3.tsv")],
                "the names beside it",
            ),
            (
                "fit",
                &[("output", "@m"), ("trace", "@m.matrix1.tsv")],
                "the names beside it",
            ),
            (
                "tune",
                &[("output", "@o"), ("resume", "@o")],
                "use two files",
            ),
            (
                "convert",
                &[("input", "@t.tns"), ("output", "@t.tns")],
                "is read by",
            ),
            (
                "convert",
                &[("input", "@t.mode1.tsv"), ("output", "@t.coo")],
                "is read by",
            ),
            (
                "check",
                &[("file", "@t.tns"), ("fix", "@t.tns")],
                "is read by",
            ),
            (
                "report",
                &[("output", "@t.tns"), ("names", "2:@t.tns")],
                "is read by",
            ),
            ("batch", &[("jobs", "@d"), ("output", "-")], "write ./-"),
        ] {
            let error = with(command, arguments).unwrap_err().to_string();
            assert!(error.contains(words), "{command} {arguments:?}: {error}");
        }
        for (command, arguments) in [
            (
                "fit",
                &[
                    ("output", "@m"),
                    ("checkpoint", "@c.s3m"),
                    ("resume", "@c.s3m"),
                ][..],
            ),
            ("convert", &[("input", "@t.coo"), ("output", "@t.coo")]),
            (
                "convert",
                &[
                    ("input", "@t.tns"),
                    ("output", "@t.coo"),
                    ("names", "1:@t.mode1.tsv"),
                ],
            ),
            ("check", &[("file", "@t.coo"), ("fix", "@t.coo")]),
            ("split", &[("file", "@t.coo")]),
        ] {
            with(command, arguments).unwrap();
        }
        // A batch does not append its results to its jobs.
        std::fs::write(dir.path().join("d/results.jsonl"), "").unwrap();
        let jobs = [("jobs", "@d/results.jsonl"), ("output", "@d")];
        let error = check(dir.path(), "batch", &jobs).unwrap_err().to_string();
        assert!(error.contains("is read by"), "{error}");
    }
}
