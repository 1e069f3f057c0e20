//! The data that methods are compared on: folders of the user, or planted data of the paper's shapes.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use s3cmtf::format::{SizeLimit, read_whole_text};
use s3cmtf::generate::{PRESETS, preset};
use s3cmtf::{Error, Result};
use serde_json::{Value, json};

use super::budget::Budget;
use super::chart::short_number;
use super::child;
use super::machine;
use super::session::Session;
use s3cmtf_cli::output::format_integer;

/// Training entries per second of the budget. The slowest method then has time for some iterations.
const ENTRIES_PER_SECOND: f64 = 300.0;
/// The smallest scale of planted data has this many entries.
const MIN_ENTRIES: f64 = 20_000.0;

/// A tensor with its test entries and matrices, as binary files.
pub(super) struct DataSet {
    pub name: String,
    pub train: PathBuf,
    pub test: PathBuf,
    /// Modes, counted from 1, and files.
    pub matrices: Vec<(usize, PathBuf)>,
    pub order: usize,
    /// A file of options with the rank that searches begin with, if it is not that of the paper's settings.
    pub start: Option<PathBuf>,
}

/// The name of the file of [`DataSet::start`].
const START: &str = "start.conf";

impl DataSet {
    /// Returns the arguments of `fit` and `tune` for the training data.
    pub fn arguments(&self, has_matrices: bool) -> Vec<String> {
        let mut list = vec!["--tensor".into(), self.train.display().to_string()];
        if has_matrices {
            for (mode, file) in &self.matrices {
                list.push("--matrix".into());
                list.push(format!("{mode}:{}", file.display()));
            }
        }
        list
    }

    pub fn test_arguments(&self) -> Vec<String> {
        vec!["--test".into(), self.test.display().to_string()]
    }

    /// Returns the paper's settings for data like this.
    pub fn paper_preset(&self) -> &'static str {
        let name = self.name.to_lowercase();
        if name.contains("yelp") {
            "paper-yelp"
        } else if name.contains("netflix") {
            "paper-netflix"
        } else {
            "paper-movielens"
        }
    }

    /// Returns the rank of the paper for data like this. A core of higher order would be much larger.
    pub fn paper_rank(&self) -> &'static str {
        match (self.order, self.paper_preset()) {
            (4.., _) => "5",
            (_, "paper-yelp") => "10",
            (_, "paper-netflix") => "11",
            _ => "12",
        }
    }
}

/// Returns the folders of the data sets that the arguments name; `None` for planted data. Missing data is found before anything
/// is written.
pub(super) fn folders(data: Option<&Path>) -> Result<Option<Vec<PathBuf>>> {
    data.map(find).transpose()
}

/// Opens all data sets.
pub(super) fn open(
    session: &mut Session<'_>,
    folders: Option<&[PathBuf]>,
    budget: Budget,
) -> Result<Vec<DataSet>> {
    match folders {
        Some(folders) => folders
            .iter()
            .map(|folder| {
                let (set, identity, commands) = convert(session, folder)?;
                check(session, &set, folder)?;
                session.store.identify(&set.name, identity)?;
                session.store.keep_data_commands(&set.name, &commands);
                Ok(set)
            })
            .collect(),
        None => PRESETS
            .iter()
            .map(|like| plant(session, like, budget))
            .collect(),
    }
}

/// Generates data like a set of the paper, at a scale that suits the budget.
fn plant(session: &mut Session<'_>, like: &str, budget: Budget) -> Result<DataSet> {
    let full = preset(like, 1.0)?;
    let wanted = (budget.left() * ENTRIES_PER_SECOND).max(MIN_ENTRIES);
    // A continued run has the scale of the first one.
    let slot = format!("scale_{like}");
    let known = session.store.head.get(&slot).and_then(Value::as_f64);
    // The command has as many digits.
    let scale = known.unwrap_or((wanted / full.entries as f64).min(1.0));
    let scale: f64 = format!("{scale:.6}").parse().unwrap_or(scale);
    let name = format!("{like}-like");
    let work = session.work.path().join("sets").join(&name);
    let scale_word = scale.to_string();
    let arguments = ["--like", like, "--scale", &scale_word];
    let command = session.generate(&format!("sets/{name}"), &arguments)?;
    session.store.head.insert(slot, scale.into());
    session.store.identify(like, json!({"scale": scale}))?;
    session.store.keep_data_commands(&name, &[command]);
    let options = preset(like, scale)?;
    session.store.note(format!(
        "{like}: planted data of its shape at {} times its scale, {} of {} entries",
        short_number(scale),
        format_integer(options.entries),
        format_integer(full.entries)
    ));
    let matrices = options.matrices.iter().enumerate();
    Ok(DataSet {
        name,
        order: options.dims.len(),
        train: work.join("tensor.train.coo"),
        test: work.join("tensor.test.coo"),
        matrices: matrices
            .map(|(k, spec)| (spec.mode + 1, work.join(format!("matrix{}.coo", k + 1))))
            .collect(),
        start: None,
    })
}

/// Returns the folders of data sets: `folder`, or those in it.
fn find(folder: &Path) -> Result<Vec<PathBuf>> {
    if tensor_file(folder, "train")?.is_some() {
        return Ok(vec![folder.into()]);
    }
    let mut sets = Vec::new();
    for path in files(folder)? {
        if !path.is_dir() {
            continue;
        }
        if tensor_file(&path, "train")?.is_some() {
            sets.push(path);
        } else if let Some(file) = files(&path)?.iter().find(|f| is_tensor(f)) {
            return Err(Error::file(
                path.display().to_string(),
                format!(
                    "has no tensor.train.FORMAT, such as tensor.train.tns, but {}",
                    file.file_name().unwrap_or_default().display()
                ),
            ));
        }
    }
    if sets.is_empty() {
        return Err(Error::file(
            folder.display().to_string(),
            "has no data set; a data set is a folder with tensor.train.FORMAT and tensor.test.FORMAT, such as tensor.train.tns",
        ));
    }
    Ok(sets)
}

/// Returns the files and folders in a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.is_file() {
        let name = folder.display().to_string();
        return Err(Error::file(name, "is a file; --data is a folder"));
    }
    let list = fs::read_dir(folder).map_err(|e| Error::cannot_open(folder, e))?;
    let mut paths: Vec<PathBuf> = list.filter_map(|f| Some(f.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Returns the name of a file without its extension, and the extension, if it is that of a data file.
fn data_name(path: &Path) -> Option<(&str, &str)> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let (name, extension) = plain.rsplit_once('.')?;
    let is_data = ["coo", "tns", "mtx", "csv", "tsv"].contains(&extension);
    is_data.then_some((name, extension))
}

/// Returns whether a file is meant to be a tensor, by its name.
fn is_tensor(path: &Path) -> bool {
    data_name(path).is_some_and(|(name, _)| name.starts_with("tensor"))
}

fn tensor_file(folder: &Path, part: &str) -> Result<Option<PathBuf>> {
    let wanted = format!("tensor.{part}");
    let is_part = |p: &PathBuf| data_name(p).is_some_and(|(name, _)| name == wanted);
    let mut found: Vec<PathBuf> = files(folder)?.into_iter().filter(is_part).collect();
    if found.len() > 1 {
        return Err(Error::file(
            folder.display().to_string(),
            format!(
                "has {} files {wanted}.FORMAT; leave one of them",
                found.len()
            ),
        ));
    }
    Ok(found.pop())
}

/// Returns the name of a data set: that of its folder.
fn set_name(folder: &Path) -> String {
    let own = folder.file_name().map(|n| n.to_os_string());
    // Such as "." and "..".
    let real = || Some(folder.canonicalize().ok()?.file_name()?.to_os_string());
    let name = own.or_else(real);
    name.map_or("data".into(), |n| n.to_string_lossy().into_owned())
}

/// Converts a data set of the user to binary files. Also returns what identifies its content, and the commands.
fn convert(session: &Session<'_>, folder: &Path) -> Result<(DataSet, Value, Vec<String>)> {
    let name = set_name(folder);
    let mut commands = vec![session.shell_command(&["mkdir", "-p", &name])];
    let work = session.work.path().join("sets").join(&name);
    fs::create_dir_all(&work).map_err(|e| Error::io("cannot make a temporary folder", e))?;
    let mut binary = |file: &Path, target: &str| {
        let target = work.join(target);
        let arguments = [
            "convert".to_string(),
            file.display().to_string(),
            target.display().to_string(),
        ];
        let run = child::run(&arguments, f64::INFINITY, session.progress)?;
        // The recorded command names the file alone: it runs in the folder of the data set.
        let source = file.file_name().unwrap_or_default().to_string_lossy();
        let recorded = ["convert".into(), source.into_owned(), arguments[2].clone()];
        commands.push(session.command(&recorded));
        match run.ending {
            child::Ending::Success => {
                let identity = json!({
                    "dims": run.object("dims"),
                    "entries": run.object("count"),
                    "hash": content_hash(&target)?,
                });
                Ok((target, identity))
            }
            _ => Err(Error::argument(run.message())),
        }
    };
    let part = |part: &str| {
        tensor_file(folder, part)?.ok_or_else(|| {
            Error::file(
                folder.display().to_string(),
                format!("has no tensor.{part}.FORMAT, such as tensor.{part}.tns"),
            )
        })
    };
    let (train_file, test_file) = (part("train")?, part("test")?);
    let (train, of_train) = binary(&train_file, "train.coo")?;
    let (test, of_test) = binary(&test_file, "test.coo")?;
    let order_of = |identity: &Value| identity["dims"].as_array().map_or(0, Vec::len);
    let order = order_of(&of_train);
    if order_of(&of_test) != order {
        return Err(Error::file(
            test_file.display().to_string(),
            format!(
                "has {} modes, the training tensor has {order}",
                order_of(&of_test)
            ),
        ));
    }
    if of_test == of_train {
        return Err(Error::file(
            test_file.display().to_string(),
            "has the entries of the training tensor; it should have held-out entries, such as those of `s3cmtf split --test 0.2`",
        ));
    }
    let mut identity = json!({"train": of_train, "test": of_test});
    let modes = mode_names(folder)?;
    let mut matrices = Vec::new();
    for file in files(folder)? {
        let is_matrix = |(name, _): &(&str, &str)| !name.starts_with("tensor.");
        let Some((name, extension)) = data_name(&file).filter(is_matrix) else {
            continue;
        };
        let coupled = coupled_modes(name, &modes, order);
        // Other tables beside the data are usually names of rows.
        let has_number = name.starts_with(|c: char| c.is_ascii_digit());
        if coupled.is_empty() && ["csv", "tsv"].contains(&extension) && !has_number {
            continue;
        }
        if coupled.is_empty() {
            return Err(Error::file(
                file.display().to_string(),
                format!(
                    "its name does not say its mode; call it MODE_NAME.{extension} with a mode from 1 to {order}{}, or move it elsewhere",
                    if modes.is_empty() {
                        String::new()
                    } else {
                        format!(" or one of {}", modes.join(", "))
                    }
                ),
            ));
        }
        let target = format!("{name}.coo");
        if work.join(&target).exists() {
            return Err(Error::file(
                file.display().to_string(),
                "there is a file of this name with another extension; leave one of them",
            ));
        }
        let (binary, of_matrix) = binary(&file, &target)?;
        identity[name] = of_matrix;
        matrices.extend(coupled.into_iter().map(|mode| (mode, binary.clone())));
    }
    let mut set = DataSet {
        name,
        train,
        test,
        matrices,
        order,
        start: None,
    };
    if order > 3 {
        let text = format!("rank={}\n", set.paper_rank());
        let path = work.join(START);
        fs::write(&path, &text).map_err(|e| Error::io("cannot write the work folder", e))?;
        commands.push(format!("echo {} > {}/{START}", text.trim(), set.name));
        set.start = Some(path);
    }
    Ok((set, identity, commands))
}

/// Returns a hash of the content of a file, by which other data under the same name is noticed.
fn content_hash(path: &Path) -> Result<String> {
    let file = fs::File::open(path).map_err(|e| Error::cannot_open(path, e))?;
    let failed = |e| Error::io(format!("cannot read {}", path.display()), e);
    machine::hash(BufReader::new(file)).map_err(failed)
}

/// Refuses data that no method can be fitted to, before anything is measured: one epoch of the smallest model reads all of it.
fn check(session: &Session<'_>, set: &DataSet, folder: &Path) -> Result<()> {
    let mut arguments = vec!["fit".to_string()];
    arguments.extend(set.arguments(true));
    arguments.extend(set.test_arguments());
    let options = ["--algorithm", "als", "--model", "cp", "--rank", "1"];
    arguments.extend(options.map(String::from));
    arguments.extend(["--epochs", "1", "--lambda-m", "1", "-o"].map(String::from));
    arguments.push(session.model_path().display().to_string());
    let run = child::run(&arguments, f64::INFINITY, session.progress)?;
    match run.ending {
        child::Ending::Success => Ok(()),
        _ => Err(Error::file(
            folder.display().to_string(),
            session.without_folders(&run.message()),
        )),
    }
}

/// Returns the names of modes in meta.json, if there is one.
fn mode_names(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join("meta.json");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_whole_text(&path, SizeLimit::Options)?;
    let meta: Value = serde_json::from_str(&text)
        .map_err(|e| Error::file(path.display().to_string(), format!("is not JSON: {e}")))?;
    let of = |key: &str| meta.get(key)?.get("modes")?.as_array().cloned();
    let names = of("tensor").or_else(|| of("matrix")).unwrap_or_default();
    let names = names.iter().filter_map(Value::as_str);
    Ok(names.map(str::to_string).collect())
}

/// Returns the modes, counted from 1, that a matrix with this file name is coupled to.
fn coupled_modes(name: &str, modes: &[String], order: usize) -> Vec<usize> {
    let Some((mode, _)) = name.split_once('_') else {
        return Vec::new();
    };
    if let Ok(number) = mode.parse::<usize>() {
        return (1..=order).filter(|&n| n == number).collect();
    }
    let ending = format!("_{mode}");
    let places = modes.iter().enumerate();
    let coupled = places.filter(|(_, m)| *m == mode || m.ends_with(&ending));
    coupled.map(|(n, _)| n + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_matrices_say_their_modes() {
        let modes: Vec<String> = ["pickup_zone", "dropoff_zone", "day"]
            .map(String::from)
            .into();
        assert_eq!(coupled_modes("zone_attr", &modes, 3), [1, 2]);
        assert_eq!(coupled_modes("day_attr", &modes, 3), [3]);
        assert_eq!(coupled_modes("2_colours", &modes, 3), [2]);
        assert_eq!(coupled_modes("4_colours", &modes, 3), [0usize; 0]);
        assert_eq!(coupled_modes("zones", &modes, 3), [0usize; 0]);
    }

    #[test]
    fn data_files_have_known_extensions() {
        for (path, name) in [
            ("a/tensor.train.tns.gz", Some(("tensor.train", "tns"))),
            ("user_attr.coo", Some(("user_attr", "coo"))),
            ("2_g.v1.coo", Some(("2_g.v1", "coo"))),
            ("meta.json", None),
            ("README", None),
        ] {
            assert_eq!(data_name(Path::new(path)), name);
        }
    }
}
