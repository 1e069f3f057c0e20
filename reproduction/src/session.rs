//! What all figures share: arguments, results, progress, and the measurement of a fit.

use std::fs;
use std::path::{Path, PathBuf};

use s3cmtf::parallel::available_threads;
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::chart::short_number;
use super::child::{self, Ending, Run};
use super::store::{FAILED, Key, Measurement, OK, OUT_OF_TIME, SKIPPED, Store};
use s3cmtf_cli::output::Output;
use s3cmtf_cli::progress::Progress;

/// A process is killed after `GRACE_FACTOR` times its time limit plus `GRACE_SECONDS`, which it needs to read data and to evaluate
/// an epoch.
const GRACE_SECONDS: f64 = 10.0;
const GRACE_FACTOR: f64 = 1.5;

/// The name of the work folder in the folder of the results.
const WORK: &str = ".s3cmtf-reproduce";

/// The folder of data and models, removed at the end.
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Creates it beside the results, of which no other process holds the lock. What a killed process left there is removed.
    pub fn new(results: &Path) -> Result<WorkFolder> {
        let path = results.join(WORK);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)
            .map_err(|e| Error::io(format!("cannot make the folder {}", path.display()), e))?;
        Ok(WorkFolder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Session<'a> {
    pub arguments: &'a Arguments,
    pub store: Store,
    pub work: WorkFolder,
    pub progress: &'a Progress,
    pub out: &'a mut Output,
}

impl Session<'_> {
    pub fn threads(&self) -> usize {
        match self.arguments.threads {
            0 => available_threads(),
            n => n,
        }
    }

    /// Returns whether a measurement is still to be made: it is missing, failed, or the time was not enough for it.
    pub fn needs(&self, key: &Key) -> bool {
        let found = self.store.get(key);
        found.is_none_or(|m| [SKIPPED, OUT_OF_TIME, FAILED].contains(&m.status.as_str()))
    }

    /// Keeps a measurement and prints a line about it.
    pub fn keep(&mut self, key: Key, mut measurement: Measurement) -> Result<()> {
        let run = json!(self.store.run_number());
        measurement.fields.insert("run".into(), run);
        let at = key.x.map_or(String::new(), |x| format!(" {x}"));
        let subject = format!("{} {}{at}", key.figure.name(), key.data);
        let result = describe(&measurement);
        self.out
            .line(format!("{subject}: {}: {result}", key.method));
        let mut object = json!({
            "figure": key.figure.name(),
            "data": key.data,
            "method": key.method,
            "x": key.x,
            "status": measurement.status,
        });
        if let Value::Object(map) = &mut object {
            map.extend(measurement.fields.clone());
        }
        self.out.object(&object);
        self.out.flush()?;
        self.store.add(key, measurement)
    }

    /// Shows what is measured.
    pub fn show(&self, key: &Key, done: usize, total: usize) {
        let phase = format!("{} {}", key.figure.name(), key.method);
        self.progress.progress(&phase, done as u64, total as u64);
    }

    /// Runs `fit` for at most `seconds` and returns its results.
    pub fn fit(&self, arguments: Vec<String>, seconds: f64) -> Result<Measurement> {
        let model = self.model_path();
        // A fit that is killed leaves no model, nor that of the fit before.
        let _ = fs::remove_file(&model);
        let common = [
            "--seed".to_string(),
            self.arguments.seed.to_string(),
            "--time-limit".into(),
            format!("{seconds:.3}"),
            "-o".into(),
            model.display().to_string(),
        ];
        let mut list = vec!["fit".to_string()];
        list.extend(arguments);
        if !list.iter().any(|a| a == "--threads") {
            list.extend(["--threads".into(), self.threads().to_string()]);
        }
        list.extend(common);
        let run = child::run(&list, with_grace(seconds), self.progress)?;
        let message = self.without_folders(&run.message());
        Ok(results_of_fit(&run, message, &self.command(&list), seconds))
    }

    /// Generates data in a folder of the work folder. Returns the command.
    pub fn generate(&self, folder: &str, arguments: &[&str]) -> Result<String> {
        let folder = self.work.path().join(folder).display().to_string();
        let (seed, threads) = (self.arguments.seed.to_string(), self.threads().to_string());
        let mut list = vec!["generate", "-o", &folder];
        list.extend(arguments);
        list.extend(["--no-truth", "--seed", &seed, "--threads", &threads]);
        let list: Vec<String> = list.into_iter().map(String::from).collect();
        let run = child::run(&list, f64::INFINITY, self.progress)?;
        match run.ending {
            Ending::Success => Ok(self.command(&list)),
            _ => Err(Error::argument(run.message())),
        }
    }

    /// Returns the path of the model that was fitted last.
    pub fn model_path(&self) -> PathBuf {
        self.work.path().join("model.s3m")
    }

    /// Returns a command of this program as one would type it, without the names of temporary folders.
    pub fn command(&self, arguments: &[String]) -> String {
        let words = arguments.iter().map(String::as_str);
        let words: Vec<&str> = ["s3cmtf-reproduction"].into_iter().chain(words).collect();
        self.shell_command(&words)
    }

    /// Returns a command as one would type it, without the names of temporary folders.
    pub fn shell_command(&self, words: &[&str]) -> String {
        let words = words.iter().map(|w| shell_word(&self.without_folders(w)));
        words.collect::<Vec<String>>().join(" ")
    }

    /// Returns the measurement of a process that did not print its results.
    pub fn without_results(&self, run: &Run, command: String) -> Measurement {
        let status = match run.status() {
            OK => FAILED,
            other => other,
        };
        Measurement::new(
            status,
            json!({
                "command": command,
                "message": self.without_folders(&run.message()),
                "peak_memory_bytes": run.peak_memory_bytes,
            }),
        )
    }

    /// Returns a text without the names of temporary folders.
    pub fn without_folders(&self, text: &str) -> String {
        let work = format!("{}/", self.work.path().display());
        text.replace(&format!("{work}sets/"), "").replace(&work, "")
    }
}

/// Returns the seconds after which a process is ended that should take `seconds`.
pub(super) fn with_grace(seconds: f64) -> f64 {
    GRACE_FACTOR * seconds + GRACE_SECONDS
}

/// Returns an argument as a word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Returns one line about a measurement.
fn describe(m: &Measurement) -> String {
    if !m.is_ok() {
        return format!("{} {}", m.status, m.text("message"));
    }
    let mut parts = Vec::new();
    for (name, unit) in [
        ("test_rmse", "test RMSE"),
        ("seconds_per_epoch", "s per iteration"),
        ("speed_up", "times the speed of one thread"),
        ("largest_gap", "largest gap"),
    ] {
        if let Some(x) = m.number(name) {
            let text = match name {
                "test_rmse" => format!("{x:.4}"),
                _ => short_number(x),
            };
            parts.push(format!("{text} {unit}"));
        }
    }
    parts.join(", ")
}

/// Returns the results that `fit --json` printed. Epochs that were finished before a fit was ended count.
fn results_of_fit(run: &Run, message: String, command: &str, limit: f64) -> Measurement {
    let number = |object: &Value, name: &str| object.get(name).and_then(Value::as_f64);
    let summary = run.object("summary").cloned().unwrap_or_default();
    let mut seconds = number(&summary, "init_seconds").unwrap_or(0.0);
    let (mut points, mut updates, mut evaluations) = (Vec::new(), Vec::new(), Vec::new());
    let epochs = || run.objects.iter().filter(|o| o.get("epoch").is_some());
    for epoch in epochs() {
        let update = number(epoch, "update_seconds").unwrap_or(0.0);
        seconds += update;
        updates.push(update);
        evaluations.extend(number(epoch, "eval_seconds"));
        points.push(json!([seconds, epoch["train_rmse"], epoch["test_rmse"]]));
    }
    // The errors of the epochs are known although the model could not be written.
    let is_unsaved = run.ending == Ending::Failure && message.starts_with("cannot write");
    let status = match run.status() {
        OK if updates.is_empty() => OUT_OF_TIME,
        OUT_OF_TIME if !updates.is_empty() => OK,
        FAILED if is_unsaved && !updates.is_empty() => OK,
        other => other,
    };
    let mut fields = json!({
        "command": command,
        "limit_seconds": limit,
        "peak_memory_bytes": run.peak_memory_bytes,
    });
    let Value::Object(map) = &mut fields else {
        return Measurement::new(status, fields);
    };
    match status {
        OK => {
            // A fit that was ended has no summary.
            let last = epochs().next_back().cloned().unwrap_or_default();
            let reason = match is_unsaved {
                true => "epochs; the model was not saved",
                false => "ended after its time limit",
            };
            map.insert("reason".into(), json!(reason));
            for name in [
                "test_rmse",
                "train_rmse",
                "threads",
                "kernel",
                "ranks",
                "reason",
                "seconds",
                "init_seconds",
                "peak_memory_bytes",
            ] {
                let found = summary.get(name).or(last.get(name));
                if let Some(value) = found.filter(|v| !v.is_null()) {
                    map.insert(name.into(), value.clone());
                }
            }
            map.insert("seconds_per_epoch".into(), json!(median(updates)));
            map.insert("evaluation_seconds".into(), json!(median(evaluations)));
            map.insert("epochs".into(), Value::Array(points));
        }
        OUT_OF_TIME => {
            let text = format!("no iteration completed within {limit:.1} s");
            map.insert("message".into(), json!(text));
        }
        _ => {
            map.insert("message".into(), json!(message));
        }
    }
    Measurement::new(status, fields)
}

/// Returns the median; `None` of nothing.
pub(super) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (
        numbers.get(numbers.len().saturating_sub(1) / 2)?,
        numbers.get(numbers.len() / 2)?,
    );
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Ending;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, word) in [
            ("--matrix=1:a/b.coo", "--matrix=1:a/b.coo"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    fn run(ending: Ending, epochs: usize, errors: &str) -> Run {
        let epoch =
            |k| json!({"epoch": k, "update_seconds": 2.0, "test_rmse": 1.5, "train_rmse": 1.0});
        Run {
            objects: (1..=epochs).map(epoch).collect(),
            errors: errors.into(),
            ending,
            peak_memory_bytes: Some(1 << 20),
        }
    }

    #[test]
    fn endings_of_fits_are_told_apart() {
        for (ending, epochs, errors, status) in [
            (Ending::Success, 1, "", "ok"),
            (Ending::Success, 0, "", "O.O.T."),
            (Ending::TimedOut, 0, "warning: memory", "O.O.T."),
            (Ending::TimedOut, 2, "", "ok"),
            (Ending::OutOfMemory, 2, "", "O.O.M."),
            (Ending::Failure, 0, "error: no memory for 9 rows", "O.O.M."),
            (Ending::Failure, 0, "error: the disk is full", "failed"),
            (
                Ending::Refused,
                0,
                "error: memory.coo has a NaN",
                "not supported",
            ),
            (
                Ending::Refused,
                0,
                "error: time_limit = 1: the time was up",
                "O.O.T.",
            ),
        ] {
            let run = run(ending, epochs, errors);
            let m = results_of_fit(&run, run.message(), "s3cmtf fit", 1.0);
            assert_eq!(m.status, status, "{ending:?} {errors}");
            assert_eq!(m.number("peak_memory_bytes"), Some(1048576.0));
            assert_eq!(m.text("message").is_empty(), m.is_ok(), "{:?}", m.fields);
        }
        let stopped = run(Ending::TimedOut, 2, "");
        let m = results_of_fit(&stopped, String::new(), "s3cmtf fit", 1.0);
        assert_eq!(
            (m.number("test_rmse"), m.number("seconds_per_epoch")),
            (Some(1.5), Some(2.0))
        );
        assert_eq!(m.points("epochs").len(), 2);
    }
}
