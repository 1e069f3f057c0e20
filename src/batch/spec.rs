//! A job as a line of JSON describes it.

use std::path::{Path, PathBuf};

use super::fields::{Fields, Parsed};
use crate::error::{Error, Result};
use crate::format::{OpenMode, TextOptions};
use crate::json::{self, Json};
use crate::model;
use crate::options::Options;
use crate::problem::MatrixKind;

/// The longest name of a job.
const LONGEST_ID: usize = 100;

/// One job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Its line, counted from 1, and the text of it.
    pub line: u64,
    pub text: String,
    pub id: String,
    pub work: Work,
    pub output: PathBuf,
    /// Options by name, as they were given.
    pub options: Vec<(String, String)>,
    /// What it takes, if the line says so.
    pub memory: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    Fit(Box<FitJob>),
    Predict(PredictJob),
}

#[derive(Debug, Clone)]
pub(super) struct FitJob {
    pub tensor: PathBuf,
    pub weights: Option<PathBuf>,
    pub matrices: Vec<Matrix>,
    pub test: Option<PathBuf>,
    pub valid: Option<PathBuf>,
    pub init: Option<PathBuf>,
    pub checkpoint: Option<PathBuf>,
    pub resume: Option<PathBuf>,
    pub preset: String,
    pub config: Option<PathBuf>,
    /// How text of entries is read, and of matrices and graphs.
    pub text: TextOptions,
    pub matrix_text: TextOptions,
}

/// A coupled matrix or graph; modes count from 0 here.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    pub mode: usize,
    pub file: PathBuf,
    pub weight: Option<f64>,
    pub penalty: Option<f64>,
    pub kind: MatrixKind,
}

#[derive(Debug, Clone)]
pub(super) struct PredictJob {
    pub model: PathBuf,
    pub file: PathBuf,
    pub text: TextOptions,
}

/// A line that is no job: what is known of it all the same, and what is wrong.
pub(super) struct NoJob {
    pub id: String,
    pub output: Option<PathBuf>,
    pub error: Error,
}

impl NoJob {
    pub(super) fn new(line: u64, what: String) -> NoJob {
        NoJob {
            id: name_of_line(line),
            output: None,
            error: Error::argument(format!("line {line}: {what}")),
        }
    }
}

/// The name of a job whose line has none, or none that can be read.
pub(super) fn name_of_line(line: u64) -> String {
    format!("job-{line}")
}

/// Takes what a kind of job has besides its options.
type Reader = fn(&mut Fields, &[(String, String)]) -> Parsed<Work>;

impl Job {
    /// Reads a line.
    pub(super) fn parse(line: u64, text: &str) -> std::result::Result<Job, NoJob> {
        let mut bad = NoJob::new(line, String::new());
        let parsed = json::parse(text).and_then(|json| {
            bad.output = json.get("output").and_then(Json::text).map(PathBuf::from);
            let Json::Object(fields) = json else {
                return Err(format!("a job is an object, not {}", json.kind()));
            };
            let mut fields = Fields(fields);
            if let Some(own) = fields.text("id")? {
                check_id(&own)?;
                bad.id = own;
            }
            let job = Job::of(line, text, &bad.id, fields)?;
            job.check_files().inspect_err(|_| bad.output = None)?;
            Ok(job)
        });
        parsed.map_err(|what| NoJob {
            error: Error::argument(format!("line {line}: {what}")),
            ..bad
        })
    }

    fn of(line: u64, text: &str, id: &str, mut f: Fields) -> Parsed<Job> {
        let kind = f.required("job")?;
        // What else it needs depends on it.
        let work: Reader = match kind.as_str() {
            "fit" => fit_work,
            "predict" => predict_work,
            other => {
                return Err(format!(
                    "\"job\" is {other:?}; it must be \"fit\" or \"predict\""
                ));
            }
        };
        let output = f.required("output")?.into();
        let memory = f.take("memory").map(|m| bytes(&m)).transpose()?;
        let options = f.options("options")?;
        let work = work(&mut f, &options)?;
        f.nothing_else(&kind)?;
        Ok(Job {
            line,
            text: text.into(),
            id: id.into(),
            work,
            output,
            options,
            memory,
        })
    }

    /// "fit" or "predict".
    pub(super) fn kind(&self) -> &'static str {
        match self.work {
            Work::Fit(_) => "fit",
            Work::Predict(_) => "predict",
        }
    }

    /// Where checkpoints go.
    pub(super) fn checkpoint(&self) -> Option<&Path> {
        match &self.work {
            Work::Fit(fit) => fit.checkpoint.as_deref().or(fit.resume.as_deref()),
            Work::Predict(_) => None,
        }
    }

    /// All files it reads.
    pub(super) fn reads(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = Vec::new();
        match &self.work {
            Work::Fit(f) => {
                all.push(&f.tensor);
                all.extend(f.matrices.iter().map(|m| m.file.as_path()));
                let others = [&f.weights, &f.test, &f.valid, &f.init, &f.resume, &f.config];
                all.extend(others.into_iter().filter_map(|p| p.as_deref()));
                for text in [&f.text, &f.matrix_text] {
                    all.extend(text.delimited.names.iter().map(|(_, p)| p.as_path()));
                }
            }
            Work::Predict(p) => {
                all.extend([p.model.as_path(), p.file.as_path()]);
                all.extend(p.text.delimited.names.iter().map(|(_, p)| p.as_path()));
            }
        }
        all
    }

    /// All files it writes but its log.
    pub(super) fn writes(&self) -> Vec<&Path> {
        [Some(self.output.as_path()), self.checkpoint()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Outputs must not overwrite what is read, nor each other.
    fn check_files(&self) -> Parsed<()> {
        let resumed = match &self.work {
            Work::Fit(f) => f.resume.as_deref(),
            Work::Predict(_) => None,
        };
        let same = |a: &Path, b: &Path| resolved(a) == resolved(b);
        if self.checkpoint().is_some_and(|c| same(c, &self.output)) {
            return Err(format!(
                "{} cannot be both the checkpoint and the model; use two files",
                self.output.display()
            ));
        }
        // A checkpoint that a fit goes on from is replaced by its own.
        let mut reads = self.reads();
        reads.retain(|file| !resumed.is_some_and(|r| std::ptr::eq(*file, r)));
        for output in self.writes() {
            if reads.iter().any(|file| same(file, output)) {
                return Err(format!(
                    "{} is read by this job and would be overwritten; write to another file",
                    output.display()
                ));
            }
        }
        Ok(())
    }

    /// The options: what the line says counts most, then its file of options; below them what the checkpoint has that
    /// it goes on from, or the preset with the ranks of the model it starts from. Without a number of threads there,
    /// `threads` is it; 0 is `all`.
    pub(super) fn options(
        &self,
        resume: Option<&Path>,
        threads: usize,
        all: usize,
    ) -> Result<Options> {
        let mut options = match &self.work {
            Work::Fit(fit) => fit.base(resume)?,
            Work::Predict(_) => Options::default(),
        };
        options.threads = threads as u64;
        if let Work::Fit(fit) = &self.work
            && let Some(file) = &fit.config
        {
            let text = std::fs::read_to_string(file).map_err(|e| Error::cannot_open(file, e))?;
            options
                .apply_text(&text)
                .map_err(|e| Error::argument(format!("{}: {e}", file.display())))?;
        }
        for (name, value) in &self.options {
            options.set(name, value)?;
        }
        if options.threads == 0 {
            options.threads = all as u64;
        }
        Ok(options)
    }
}

impl FitJob {
    /// The options below those that were given.
    fn base(&self, resume: Option<&Path>) -> Result<Options> {
        if let Some(path) = resume {
            return Ok(model::load(path, OpenMode::Mapped)?.options().clone());
        }
        let mut options = Options::preset(&self.preset)?;
        if let Some(init) = &self.init {
            let init = model::load(init, OpenMode::Mapped)?;
            options.rank = init.shape().ranks.clone();
            options.model = init.options().model;
        }
        Ok(options)
    }
}

fn fit_work(f: &mut Fields, options: &[(String, String)]) -> Parsed<Work> {
    // So that a mistake is known at once; what the values are on top of is known later.
    let mut trial = Options::default();
    for (name, value) in options {
        trial.set(name, value).map_err(|e| e.to_string())?;
    }
    let text = f.text_options("text")?;
    let mut matrices = Vec::new();
    for (name, graph) in [("matrices", false), ("graphs", true)] {
        for (at, item) in f.list(name)?.into_iter().enumerate() {
            let one = matrix(item, graph);
            matrices.push(one.map_err(|e| format!("{name}, number {}: {e}", at + 1))?);
        }
    }
    let mut matrix_text = f.text_options("matrix_text")?;
    matrix_text.zero_based |= text.zero_based;
    Ok(Work::Fit(Box::new(FitJob {
        tensor: f.required("tensor")?.into(),
        weights: f.path("weights")?,
        matrices,
        test: f.path("test")?,
        valid: f.path("valid").map_err(|e| {
            format!("{e}; a part of the entries is held out with the option valid_fraction")
        })?,
        init: f.path("init")?,
        checkpoint: f.path("checkpoint")?,
        resume: f.path("resume")?,
        preset: f.text("preset")?.unwrap_or_else(|| "default".into()),
        config: f.path("config")?,
        text,
        matrix_text,
    })))
}

fn predict_work(f: &mut Fields, options: &[(String, String)]) -> Parsed<Work> {
    let known = ["threads", "clip"];
    if let Some((name, _)) = options.iter().find(|(n, _)| !known.contains(&n.as_str())) {
        return Err(format!(
            "a prediction has the options {}, not {name:?}",
            known.join(" and ")
        ));
    }
    let mut trial = Options::default();
    for (name, value) in options {
        trial.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(Work::Predict(PredictJob {
        model: f.required("model")?.into(),
        file: f.required("file")?.into(),
        text: f.text_options("text")?,
    }))
}

/// The file a name means, also where there is none yet.
pub(super) fn resolved(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (whole.parent().map(Path::canonicalize), whole.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => whole,
    }
}

fn check_id(id: &str) -> Parsed<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if id.is_empty() || id.len() > LONGEST_ID || id.starts_with('.') || !id.chars().all(good) {
        return Err(format!(
            "\"id\" is {id:?}; it names the log, and has 1 to {LONGEST_ID} letters, digits, dots, dashes and underscores, no dot first"
        ));
    }
    Ok(())
}

/// A number of bytes: digits, and perhaps K, M, G or T behind them for powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let number = &text[..text.len() - usize::from(shift > 0)];
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let bytes = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (shift > 0 && bytes < u64::MAX as f64).then_some(bytes as u64)
}

fn bytes(value: &Json) -> Parsed<u64> {
    let text = match value {
        Json::Number(digits) => digits,
        Json::Text(text) => text,
        other => {
            return Err(format!(
                "\"memory\" is {}; it must be {BYTES}",
                other.kind()
            ));
        }
    };
    parse_bytes(text).ok_or_else(|| format!("\"memory\" is {text:?}; it must be {BYTES}"))
}

/// What a number of bytes looks like.
pub(super) const BYTES: &str = "a number of bytes, or of K, M, G or T of them, such as \"1.5G\"";

fn matrix(item: Json, graph: bool) -> Parsed<Matrix> {
    let Json::Object(fields) = item else {
        return Err(format!(
            "it is {}; it must be an object such as {{\"mode\":2,\"file\":\"genres.coo\"}}",
            item.kind()
        ));
    };
    let mut f = Fields(fields);
    let mode = f.take("mode").and_then(|m| m.number::<usize>());
    let mode = mode
        .and_then(|m| m.checked_sub(1))
        .ok_or("\"mode\" must be a whole number, counted from 1")?;
    let number = |f: &mut Fields, name: &str| {
        let given = f.take(name);
        given
            .map(|x| {
                x.number::<f64>()
                    .ok_or_else(|| format!("{name:?} is {}; it must be a number", x.kind()))
            })
            .transpose()
    };
    let mut kind = MatrixKind::Graph;
    let (weight, mut penalty) = (number(&mut f, "weight")?, None);
    if !graph {
        penalty = number(&mut f, "penalty")?;
        let name = f.text("kind")?.unwrap_or_else(|| "observed".into());
        kind = MatrixKind::from_name(&name)
            .filter(|k| !k.is_graph())
            .ok_or_else(|| {
                format!("\"kind\" is {name:?}; it must be observed, full or sampled=K")
            })?;
    }
    let made = Matrix {
        mode,
        file: f.required("file")?.into(),
        weight,
        penalty,
        kind,
    };
    f.nothing_else(if graph { "graph" } else { "matrix" })?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(more: &str) -> String {
        let line = format!(r#"{{"job":"fit","tensor":"t","output":"o"{more}}}"#);
        let bad = Job::parse(7, &line).err();
        bad.map_or(format!("{line} is a job"), |bad| bad.error.to_string())
    }

    #[test]
    fn a_line_says_all_that_a_fit_takes() {
        let line = r#"{"id":"a.b","job":"fit","tensor":"t.csv","output":"o","weights":"w","test":"x","valid":"v",
            "init":"i","checkpoint":"c","preset":"paper","config":"f","memory":"1.5K",
            "matrices":[{"mode":2,"file":"g","weight":0.1,"penalty":3,"kind":"sampled=5"},{"mode":1,"file":"h"}],
            "graphs":[{"mode":1,"file":"s","weight":2}],
            "text":{"from":"csv","names":["1:u.tsv","3:m.tsv"],"zero-based":true},"matrix_text":{"columns":["a","b"]},
            "options":{"rank":[3,4],"eta":0.1,"nonneg":true,"lambda-reg":"auto","seed":18446744073709551615}}"#;
        let job = Job::parse(1, line).map_err(|bad| bad.error).unwrap();
        let Work::Fit(fit) = &job.work else {
            panic!("it is a fit");
        };
        assert_eq!((&job.id[..], job.memory), ("a.b", Some(1536)));
        assert_eq!(fit.matrices.len(), 3);
        assert_eq!(
            (fit.matrices[0].mode, fit.matrices[0].kind),
            (1, MatrixKind::Sampled(5))
        );
        assert_eq!(
            (fit.matrices[0].weight, fit.matrices[0].penalty),
            (Some(0.1), Some(3.0))
        );
        assert!(fit.matrices[2].kind.is_graph());
        let names = [(0, "u.tsv".into()), (2, "m.tsv".into())];
        assert_eq!(fit.text.delimited.names, names);
        assert!(fit.text.zero_based && fit.matrix_text.zero_based);
        assert_eq!((job.reads().len(), job.writes().len()), (11, 2));
        let set = |name: &str| {
            job.options
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| &v[..])
        };
        assert_eq!(
            (set("rank"), set("eta"), set("lambda_reg")),
            (Some("3,4"), Some("0.1"), Some("auto"))
        );
        assert_eq!(set("seed"), Some("18446744073709551615"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (more, words) in [
            (r#","options":{"rnak":3}"#, "there is no option 'rnak'"),
            (r#","options":{"rank":0}"#, "must be"),
            (r#","options":{"rank":null}"#, "a text, a number"),
            (
                r#","options":{"lambda_reg":1,"lambda-reg":2}"#,
                "is there twice",
            ),
            (r#","options":[3]"#, "must be an object"),
            (r#","rank":3"#, "belongs into \"options\""),
            (r#","tesnor":"t""#, "a fit has no \"tesnor\""),
            (r#","valid":0.1"#, "valid_fraction"),
            (r#","test":"""#, "is empty"),
            (r#","matrices":{"mode":1}"#, "must be a list"),
            (
                r#","matrices":["2:g.coo"]"#,
                "matrices, number 1: it is a text",
            ),
            (r#","matrices":[{"mode":0,"file":"g"}]"#, "counted from 1"),
            (r#","matrices":[{"mode":1}]"#, "\"file\" is missing"),
            (
                r#","matrices":[{"mode":1,"file":"g","kind":"graph"}]"#,
                "observed, full or sampled=K",
            ),
            (
                r#","graphs":[{"mode":1,"file":"g","penalty":2}]"#,
                "a graph has no \"penalty\"",
            ),
            (r#","memory":"-1""#, "number of bytes"),
            (r#","memory":[1]"#, "number of bytes"),
            (r#","checkpoint":"o""#, "both the checkpoint and the model"),
            (r#","checkpoint":"./t""#, "would be overwritten"),
            (
                r#","resume":"r","checkpoint":"r","test":"r""#,
                "would be overwritten",
            ),
            (r#","text":{"names":"0:u"}"#, "MODE:FILE"),
            (r#","text":{"form":"csv"}"#, "no option 'form'"),
        ] {
            let said = wrong(more);
            assert!(said.contains(words), "{more}: {said}");
        }
        let named = Job::parse(3, r#"{"id":"a","job":"fit","output":"o"}"#)
            .err()
            .unwrap();
        assert_eq!((&named.id[..], named.output), ("a", Some("o".into())));
        assert!(
            named
                .error
                .to_string()
                .starts_with("line 3: \"tensor\" is missing")
        );
    }

    #[test]
    fn bytes_are_counted() {
        for (text, bytes) in [
            ("7", 7),
            ("2k", 2048),
            ("1.5M", 3 << 19),
            ("16G", 16 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes));
        }
        for bad in [
            "",
            "G",
            "-1",
            "1.5",
            "1e3",
            "1 G",
            "99999999999999999999",
            "99999999999G",
            "1..5K",
            "é",
        ] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }
}
