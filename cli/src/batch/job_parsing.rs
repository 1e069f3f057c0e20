//! Parsing of a job from its line of JSON.

use std::path::{Path, PathBuf};

use s3cmtf::Error;
use s3cmtf::options::Options;
use s3cmtf::problem::MatrixKind;
use serde_json::Value;

use super::byte_size::{BYTE_SIZE_FORMAT, parse_bytes};
use super::job::{CoupledFile, FitTask, Job, PredictTask, Task};
use super::json::{parse, type_name};
use super::json_fields::{JsonFields, Parsed};
use crate::file_arguments::canonical;

/// The longest id of a job, in characters.
const MAX_ID_CHARS: usize = 100;

/// The error for a line that is not a valid job, with the parts of the job that are known.
pub(super) struct JobParseError {
    pub id: String,
    pub output: Option<PathBuf>,
    pub error: Error,
}

impl JobParseError {
    pub(super) fn new(line: u64, message: String) -> JobParseError {
        JobParseError {
            id: default_id(line),
            output: None,
            error: Error::argument(format!("line {line}: {message}")),
        }
    }
}

/// Returns the id of a job whose line has none, or none that can be used.
pub(super) fn default_id(line: u64) -> String {
    format!("job-{line}")
}

/// Parses a line and checks that the job does not overwrite its own inputs.
pub(super) fn parse_job(line: u64, text: &str) -> std::result::Result<Job, JobParseError> {
    let mut known = JobParseError::new(line, String::new());
    let parsed = parse(text).and_then(|json| {
        known.output = json
            .get("output")
            .and_then(Value::as_str)
            .map(PathBuf::from);
        let Value::Object(fields) = json else {
            return Err(format!("a job is an object, not {}", type_name(&json)));
        };
        let mut fields = JsonFields(fields);
        if let Some(id) = fields.text("id")? {
            check_id(&id)?;
            known.id = id;
        }
        let job = parse_fields(line, text, &known.id, fields)?;
        check_files(&job).inspect_err(|_| known.output = None)?;
        Ok(job)
    });
    parsed.map_err(|message| JobParseError {
        error: Error::argument(format!("line {line}: {message}")),
        ..known
    })
}

fn parse_fields(line: u64, text: &str, id: &str, mut fields: JsonFields) -> Parsed<Job> {
    let task_name = fields.required("job")?;
    if !["fit", "predict"].contains(&task_name.as_str()) {
        return Err(format!(
            "\"job\" is {task_name:?}; it must be \"fit\" or \"predict\""
        ));
    }
    let output = fields.required("output")?.into();
    let memory = fields.take("memory").map(|m| memory(&m)).transpose()?;
    let options = fields.options("options")?;
    let task = if task_name == "fit" {
        fit_task(&mut fields, &options)?
    } else {
        predict_task(&mut fields, &options)?
    };
    fields.require_empty(&task_name)?;
    Ok(Job {
        line,
        text: text.into(),
        id: id.into(),
        task,
        output,
        options,
        memory,
    })
}

/// Returns an error if an output is also an input or another output.
fn check_files(job: &Job) -> Parsed<()> {
    let is_same = |a: &Path, b: &Path| canonical(a) == canonical(b);
    if job.checkpoint().is_some_and(|c| is_same(c, &job.output)) {
        return Err(format!(
            "{} cannot be both the checkpoint and the model; use two files",
            job.output.display()
        ));
    }
    // The checkpoint that a fit resumes from may be replaced by its own.
    let resume = job.resume();
    let mut inputs = job.inputs();
    inputs.retain(|file| !resume.is_some_and(|r| std::ptr::eq(*file, r)));
    for output in job.outputs() {
        if inputs.iter().any(|file| is_same(file, output)) {
            return Err(format!(
                "{} is read by this job and would be overwritten; write to another file",
                output.display()
            ));
        }
    }
    Ok(())
}

fn fit_task(f: &mut JsonFields, options: &[(String, String)]) -> Parsed<Task> {
    check_options(options)?;
    let text = f.text_options("text")?;
    let mut matrices = Vec::new();
    for (name, is_graph) in [("matrices", false), ("graphs", true)] {
        for (at, item) in f.list(name)?.into_iter().enumerate() {
            let file = coupled_file(item, is_graph);
            matrices.push(file.map_err(|e| format!("{name}, number {}: {e}", at + 1))?);
        }
    }
    let mut matrix_text = f.text_options("matrix_text")?;
    matrix_text.zero_based |= text.zero_based;
    Ok(Task::Fit(Box::new(FitTask {
        tensor: f.required("tensor")?.into(),
        weights: f.path("weights")?,
        matrices,
        test: f.path("test")?,
        valid: f.path("valid").map_err(|e| {
            format!("{e}; the option valid_fraction holds out a fraction of the entries")
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

fn predict_task(f: &mut JsonFields, options: &[(String, String)]) -> Parsed<Task> {
    let allowed = ["threads", "clip"];
    let unknown = options.iter().find(|(n, _)| !allowed.contains(&n.as_str()));
    if let Some((name, _)) = unknown {
        return Err(format!(
            "a prediction has the options {}, not {name:?}",
            allowed.join(" and ")
        ));
    }
    check_options(options)?;
    Ok(Task::Predict(Box::new(PredictTask {
        model: f.required("model")?.into(),
        file: f.required("file")?.into(),
        text: f.text_options("text")?,
    })))
}

/// Checks the names and the values of options early; they are applied when the job starts.
fn check_options(options: &[(String, String)]) -> Parsed<()> {
    let mut trial = Options::default();
    for (name, value) in options {
        trial.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn check_id(id: &str) -> Parsed<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if id.is_empty()
        || id.len() > MAX_ID_CHARS
        || id.starts_with('.')
        || !id.chars().all(is_allowed)
    {
        return Err(format!(
            "\"id\" is {id:?}; it names the log file, and has 1 to {MAX_ID_CHARS} letters, digits, dots, dashes and \
             underscores, and no dot at the beginning"
        ));
    }
    Ok(())
}

fn memory(value: &Value) -> Parsed<u64> {
    let text = match value {
        Value::Number(number) => &number.to_string(),
        Value::String(text) => text,
        other => {
            return Err(format!(
                "\"memory\" is {}; it must be {BYTE_SIZE_FORMAT}",
                type_name(other)
            ));
        }
    };
    parse_bytes(text)
        .ok_or_else(|| format!("\"memory\" is {text:?}; it must be {BYTE_SIZE_FORMAT}"))
}

fn coupled_file(item: Value, is_graph: bool) -> Parsed<CoupledFile> {
    let Value::Object(fields) = item else {
        return Err(format!(
            "it is {}; it must be an object such as {{\"mode\":2,\"file\":\"genres.coo\"}}",
            type_name(&item)
        ));
    };
    let mut f = JsonFields(fields);
    let mode = f.take("mode").and_then(|m| m.as_u64());
    let mode = mode
        .and_then(|m| usize::try_from(m.checked_sub(1)?).ok())
        .ok_or("\"mode\" must be a whole number, counted from 1")?;
    let number = |f: &mut JsonFields, name: &str| {
        f.take(name)
            .map(|x| {
                x.as_f64()
                    .ok_or_else(|| format!("{name:?} is {}; it must be a number", type_name(&x)))
            })
            .transpose()
    };
    let mut kind = MatrixKind::Graph;
    let (weight, mut penalty) = (number(&mut f, "weight")?, None);
    if !is_graph {
        penalty = number(&mut f, "penalty")?;
        let name = f.text("kind")?.unwrap_or_else(|| "auto".into());
        kind = MatrixKind::from_name(&name)
            .filter(|k| !k.is_graph())
            .ok_or_else(|| {
                format!("\"kind\" is {name:?}; it must be auto, observed, full or sampled=K")
            })?;
    }
    let file = CoupledFile {
        mode,
        file: f.required("file")?.into(),
        weight,
        penalty,
        kind,
    };
    f.require_empty(if is_graph { "graph" } else { "matrix" })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for a fit with more fields.
    fn error_of(more: &str) -> String {
        let line = format!(r#"{{"job":"fit","tensor":"t","output":"o"{more}}}"#);
        let failed = parse_job(7, &line).err();
        failed.map_or(format!("{line} is a job"), |failed| {
            failed.error.to_string()
        })
    }

    #[test]
    fn all_fields_of_a_fit_are_parsed() {
        let line = r#"{"id":"a.b","job":"fit","tensor":"t.csv","output":"o","weights":"w","test":"x","valid":"v",
            "init":"i","checkpoint":"c","preset":"paper","config":"f","memory":"1.5K",
            "matrices":[{"mode":2,"file":"g","weight":0.1,"penalty":3,"kind":"sampled=5"},{"mode":1,"file":"h"}],
            "graphs":[{"mode":1,"file":"s","weight":2}],
            "text":{"from":"csv","names":["1:u.tsv","3:m.tsv"],"zero-based":true},"matrix_text":{"columns":["a","b"]},
            "options":{"rank":[3,4],"eta":0.1,"nonneg":true,"lambda-reg":"auto","seed":18446744073709551615}}"#;
        let job = parse_job(1, line).map_err(|failed| failed.error).unwrap();
        let Task::Fit(fit) = &job.task else {
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
        assert_eq!((job.inputs().len(), job.outputs().len()), (11, 2));
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
    fn errors_in_a_line_are_reported() {
        for (more, words) in [
            (r#","options":{"rnak":3}"#, "there is no option 'rnak'"),
            (r#","options":{"rank":0}"#, "must be"),
            (r#","options":{"rank":null}"#, "a string, a number"),
            (
                r#","options":{"lambda_reg":1,"lambda-reg":2}"#,
                "is given twice",
            ),
            (r#","options":[3]"#, "must be an object"),
            (r#","rank":3"#, "belongs in \"options\""),
            (r#","tesnor":"t""#, "a fit has no \"tesnor\""),
            (r#","valid":0.1"#, "valid_fraction"),
            (r#","test":"""#, "is empty"),
            (r#","matrices":{"mode":1}"#, "must be an array"),
            (
                r#","matrices":["2:g.coo"]"#,
                "matrices, number 1: it is a string",
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
            let error = error_of(more);
            assert!(error.contains(words), "{more}: {error}");
        }
        let named = parse_job(3, r#"{"id":"a","job":"fit","output":"o"}"#)
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
}
