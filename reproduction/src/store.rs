//! results.json: all measurements. It is written after each measurement, so that an interrupted run can be continued.

use std::fmt::Write;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use s3cmtf::format::{SizeLimit, check_derived_target, read_whole_text, write_atomically};
use s3cmtf::{Error, Result, VERSION};
use serde_json::{Map, Value, json};

use super::figure::Figure;
use super::machine;

const FILE: &str = "results.json";
/// The file that is locked while a process writes results. The results themselves are replaced at every write.
const LOCK: &str = "results.lock";

/// What a measurement is of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub figure: Figure,
    pub data: String,
    pub method: String,
    /// The position on the horizontal axis, where the figure has one.
    pub x: Option<u64>,
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measurement {
    /// `ok`, or why there are no figures: [`OUT_OF_MEMORY`], [`OUT_OF_TIME`], [`NOT_SUPPORTED`], [`SKIPPED`] or [`FAILED`].
    pub status: String,
    pub fields: Map<String, Value>,
}

pub(super) const OK: &str = "ok";
pub(super) const OUT_OF_MEMORY: &str = "O.O.M.";
pub(super) const OUT_OF_TIME: &str = "O.O.T.";
/// The method does not have what the data needs.
pub(super) const NOT_SUPPORTED: &str = "not supported";
/// The rest of the budget is too small for it.
pub(super) const SKIPPED: &str = "skipped";
pub(super) const FAILED: &str = "failed";

impl Measurement {
    pub fn new(status: &str, fields: Value) -> Measurement {
        let fields = match fields {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Measurement {
            status: status.into(),
            fields,
        }
    }

    pub fn is_ok(&self) -> bool {
        self.status == OK
    }

    /// Returns whether it ran out of time, in at least the time of another attempt without result.
    fn outweighs(&self, other: &Measurement) -> bool {
        let limit = |m: &Measurement| m.number("limit_seconds").unwrap_or(0.0);
        self.status == OUT_OF_TIME
            && [OUT_OF_TIME, SKIPPED].contains(&other.status.as_str())
            && limit(self) >= limit(other)
    }

    /// Returns a number; `None` if there is none or it is not finite.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.fields.get(name)?.as_f64().filter(|x| x.is_finite())
    }

    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// Returns a list of points, each a list of three numbers.
    pub fn points(&self, name: &str) -> Vec<Vec<f64>> {
        let numbers = |p: &Value| -> Option<Vec<f64>> {
            let elements = p.as_array().filter(|p| p.len() == 3)?.iter();
            Some(elements.map(|x| x.as_f64().unwrap_or(f64::NAN)).collect())
        };
        let points = self.fields.get(name).and_then(Value::as_array);
        points.map_or_else(Vec::new, |all| all.iter().filter_map(numbers).collect())
    }
}

/// All measurements of a folder.
pub(super) struct Store {
    folder: PathBuf,
    /// What is not a measurement: program, machine, date, and notes on the scale of data.
    pub head: Map<String, Value>,
    measurements: Vec<(Key, Measurement)>,
    /// Held until the end of the process.
    _lock: File,
}

/// Refuses a folder that another process writes to. Each would overwrite what the other has measured.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    check_derived_target(&path)?;
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(&path);
    let file = file.map_err(|e| Error::io(format!("cannot write {}", path.display()), e))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::file(
            folder.display().to_string(),
            "another process writes its results there; wait for it, or name another folder with -o",
        )),
        // Some file systems have no locks.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(file),
    }
}

impl Store {
    /// Returns whether a folder has results.
    pub fn exists(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Opens the results in a folder, or begins new ones.
    pub fn open(folder: &Path) -> Result<Store> {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot make the folder {}", folder.display()), e))?;
        let path = folder.join(FILE);
        let mut store = Store {
            folder: folder.into(),
            head: Map::new(),
            measurements: Vec::new(),
            _lock: lock(folder)?,
        };
        if !path.exists() {
            store.head = new_head();
            // An unwritable folder is found before any measurement.
            store.save()?;
            return Ok(store);
        }
        let text = read_whole_text(&path, SizeLimit::Table)?;
        store.parse(&text).ok_or_else(|| {
            Error::file(
                path.display().to_string(),
                "is not a file of results; remove it, or name another folder with -o",
            )
        })?;
        let version = store.head.get("version").and_then(Value::as_str);
        if version != Some(VERSION) {
            return Err(Error::file(
                path.display().to_string(),
                format!(
                    "has results of version {}, this is {VERSION}; name another folder with -o",
                    version.unwrap_or("unknown")
                ),
            ));
        }
        Ok(store)
    }

    fn parse(&mut self, text: &str) -> Option<()> {
        let Value::Object(mut head) = serde_json::from_str(text).ok()? else {
            return None;
        };
        for item in head.shift_remove("measurements")?.as_array()? {
            let Value::Object(mut fields) = item.clone() else {
                return None;
            };
            // The order of the other fields stays.
            let mut take = |name: &str| fields.shift_remove(name);
            let figure = take("figure")?;
            let word = figure.as_str()?;
            let key = Key {
                figure: Figure::ALL.into_iter().find(|f| f.name() == word)?,
                data: take("data")?.as_str()?.into(),
                method: take("method")?.as_str()?.into(),
                x: take("x").and_then(|x| x.as_u64()),
            };
            let status = take("status")?.as_str()?.into();
            self.measurements
                .push((key, Measurement { status, fields }));
        }
        self.head = head;
        Some(())
    }

    pub fn save(&self) -> Result<()> {
        let items = self.measurements.iter().map(|(key, m)| {
            let mut item = Map::new();
            item.insert("figure".into(), json!(key.figure.name()));
            item.insert("data".into(), json!(key.data));
            item.insert("method".into(), json!(key.method));
            if let Some(x) = key.x {
                item.insert("x".into(), json!(x));
            }
            item.insert("status".into(), json!(m.status));
            item.extend(m.fields.clone());
            Value::Object(item)
        });
        // One line per measurement: indented, the points of the epochs would take most of the file.
        let mut text = String::from("{\n");
        for (name, value) in &self.head {
            let _ = writeln!(text, "  {}: {value},", json!(name));
        }
        let items: Vec<String> = items.map(|item| format!("    {item}")).collect();
        let _ = writeln!(
            text,
            "  \"measurements\": [\n{}\n  ]\n}}",
            items.join(",\n")
        );
        self.write(FILE, &text)
    }

    /// Writes a file of the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        check_derived_target(&path)?;
        write_atomically(&path, |w| w.write_all(text.as_bytes()))
    }

    pub fn get(&self, key: &Key) -> Option<&Measurement> {
        let found = self.measurements.iter().find(|(k, _)| k == key);
        found.map(|(_, m)| m)
    }

    /// Adds a measurement, or replaces an earlier one of the same, and writes the file. A method that ran out of time stays so if it
    /// had less time now.
    pub fn add(&mut self, key: Key, measurement: Measurement) -> Result<()> {
        match self.measurements.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) if old.outweighs(&measurement) => return Ok(()),
            Some((_, old)) => *old = measurement,
            None => self.measurements.push((key, measurement)),
        }
        self.save()
    }

    /// Keeps how all measurements of the folder are made. Refuses others, which would be mixed with them.
    pub fn keep_conditions(&mut self, seed: u64, threads: usize) -> Result<()> {
        let conditions = json!({"seed": seed, "threads": threads, "machine": machine::describe()});
        let known = self.head.get("conditions").cloned();
        let deciding = |c: &Value| {
            let machine = &c["machine"];
            [
                &c["seed"],
                &c["threads"],
                &machine["processor"],
                &machine["threads"],
            ]
            .map(Value::clone)
        };
        match known {
            Some(known) if deciding(&known) != deciding(&conditions) => Err(Error::file(
                self.folder.join(FILE).display().to_string(),
                format!(
                    "has results of another seed, number of threads or machine: {known}, not {conditions}; name another folder with -o"
                ),
            )),
            _ => {
                self.head.insert("conditions".into(), conditions);
                Ok(())
            }
        }
    }

    /// Keeps what identifies some data. Refuses other data under the same name, whose measurements would be mixed.
    pub fn identify(&mut self, name: &str, identity: Value) -> Result<()> {
        let known = self.head.entry("data").or_insert_with(|| json!({}));
        let Value::Object(sets) = known else {
            return Ok(());
        };
        match sets.get(name) {
            Some(old) if *old != identity => Err(Error::file(
                self.folder.join(FILE).display().to_string(),
                format!(
                    "has results of other data under the name {name}: {old}, not {identity}; name another folder with -o"
                ),
            )),
            Some(_) => Ok(()),
            None => {
                sets.insert(name.into(), identity);
                Ok(())
            }
        }
    }

    pub fn of_figure(&self, figure: Figure) -> impl Iterator<Item = (&Key, &Measurement)> {
        let all = self.measurements.iter();
        all.filter(move |(k, _)| k.figure == figure)
            .map(|(k, m)| (k, m))
    }

    pub fn all(&self) -> impl Iterator<Item = (&Key, &Measurement)> {
        self.measurements.iter().map(|(k, m)| (k, m))
    }

    /// Returns the data sets of a figure, in the order of measurement.
    pub fn data_sets(&self, figure: Figure) -> Vec<String> {
        unique(self.of_figure(figure).map(|(k, _)| k.data.clone()))
    }

    /// Returns the methods of a figure, in the order of measurement.
    pub fn methods(&self, figure: Figure) -> Vec<String> {
        unique(self.of_figure(figure).map(|(k, _)| k.method.clone()))
    }

    /// Returns a number of a method at each position of the horizontal axis where it was measured.
    pub fn curve(&self, figure: Figure, method: &str, field: &str) -> Vec<(f64, f64)> {
        let of_method = self.of_figure(figure).filter(|(k, _)| k.method == method);
        let point = |(k, m): (&Key, &Measurement)| Some((k.x? as f64, m.number(field)?));
        of_method.filter_map(point).collect()
    }

    /// Returns the number of this run of the program, from 1.
    pub fn run_number(&self) -> u64 {
        1 + self.runs().len() as u64
    }

    /// Adds a record of this run, at its end.
    pub fn add_run(&mut self, run: Value) {
        let runs = self.head.entry("runs").or_insert_with(|| json!([]));
        if let Value::Array(list) = runs {
            list.push(run);
        }
    }

    /// Returns the records of all runs that have ended.
    pub fn runs(&self) -> &[Value] {
        let runs = self.head.get("runs").and_then(Value::as_array);
        runs.map_or(&[], Vec::as_slice)
    }

    /// Keeps the commands that make some data.
    pub fn keep_data_commands(&mut self, name: &str, commands: &[String]) {
        let all = self
            .head
            .entry("data_commands")
            .or_insert_with(|| json!({}));
        if let Value::Object(sets) = all {
            sets.insert(name.into(), json!(commands));
        }
    }

    /// Adds a remark on what was measured on a smaller scale. The same remark is kept once.
    pub fn note(&mut self, text: String) {
        let notes = self.head.entry("notes").or_insert_with(|| json!([]));
        if let Value::Array(list) = notes
            && !list.iter().any(|n| n.as_str() == Some(&text))
        {
            list.push(json!(text));
        }
    }

    pub fn notes(&self) -> Vec<String> {
        let notes = self.head.get("notes").and_then(Value::as_array);
        let texts = notes.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_string).collect()
    }
}

fn new_head() -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("program".into(), json!("s3cmtf-reproduction"));
    head.insert("version".into(), json!(VERSION));
    head.insert("date".into(), json!(machine::today()));
    head
}

fn unique(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_does_not_replace_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let key = Key {
            figure: Figure::Entries,
            data: "planted".into(),
            method: "blocked".into(),
            x: Some(1000),
        };
        let out_of_time =
            |limit: f64| Measurement::new(OUT_OF_TIME, json!({"limit_seconds": limit}));
        store.add(key.clone(), out_of_time(5.0)).unwrap();
        for weaker in [out_of_time(0.5), Measurement::new(SKIPPED, json!({}))] {
            store.add(key.clone(), weaker).unwrap();
            assert_eq!(store.get(&key), Some(&out_of_time(5.0)));
        }
        store.add(key.clone(), out_of_time(9.0)).unwrap();
        assert_eq!(store.get(&key), Some(&out_of_time(9.0)));
        let found = Measurement::new(OK, json!({"seconds": 1.5}));
        store.add(key.clone(), found.clone()).unwrap();
        assert_eq!(store.get(&key), Some(&found));
    }

    #[test]
    fn two_processes_do_not_write_to_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(folder.path()).unwrap();
        let error = Store::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another process"), "{error}");
        drop(first);
        assert!(Store::open(folder.path()).is_ok());
    }

    #[test]
    fn results_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key {
            figure: Figure::Entries,
            data: "planted".into(),
            method: "blocked".into(),
            x: Some(1000),
        };
        let mut store = Store::open(folder.path()).unwrap();
        store.note("small".into());
        store.note("small".into());
        let measurement =
            Measurement::new(OK, json!({"seconds": 1.5, "epochs": [[1, null, 2], []]}));
        store.add(key.clone(), measurement.clone()).unwrap();
        store.add_run(json!({"seconds": 2}));
        store.save().unwrap();
        drop(store);
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.get(&key), Some(&measurement));
        assert_eq!(store.notes(), ["small"]);
        assert_eq!(store.run_number(), 2);
        let points = store.get(&key).unwrap().points("epochs");
        assert!(points.len() == 1 && points[0][1].is_nan());
        drop(store);
        fs::write(folder.path().join(FILE), "{}").unwrap();
        let error = Store::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("not a file of results"), "{error}");
    }

    #[test]
    fn results_of_another_version_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{\"version\": \"0.0.1\", \"measurements\": []}";
        fs::write(folder.path().join(FILE), text).unwrap();
        let error = Store::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("version 0.0.1"), "{error}");
    }
}
