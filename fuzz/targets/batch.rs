//! Lines of batches. Names of files are relative to the folder of the target, which is the current one.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use s3cmtf::Monitor;
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::solver::FitInput;
use s3cmtf_cli::batch::{BatchOptions, JobReader, JobStatus, parse_bytes, run as run_batch};
use serde_json::Value;

use super::Seeds;
use super::sample::{PLAIN_OPTIONS, fit_sample};

/// Cancels batches whose lines ask for a million epochs.
struct Deadline(Instant);

impl Monitor for Deadline {
    fn cancelled(&self) -> bool {
        self.0.elapsed() > Duration::from_secs(1)
    }
}

pub fn run(input: &[u8], folder: &Path) -> bool {
    let _ = parse_bytes(&String::from_utf8_lossy(input));
    // A line could name any file of the machine as its output.
    if input.split(|&b| b == b'\n').any(names_other_folder) {
        return false;
    }
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    std::env::set_current_dir(folder).unwrap();
    fs::write("t.tns", "1 1 1 4.5\n1 3 2 2\n2 1 1 5\n2 2 2 3\n").unwrap();
    fs::write("g.tns", "1 1 1\n2 2 1\n3 1 1\n").unwrap();
    fs::write("c.txt", "epochs=1\n").unwrap();
    let path = folder.join("m.s3m");
    model::save(sample_model(), &path).unwrap();
    let options = BatchOptions {
        threads: 2,
        memory: 1 << 28,
        ..BatchOptions::new(folder.join("results"))
    };
    let jobs = JobReader::new("lines", Cursor::new(input.to_vec()));
    let Ok(summary) = run_batch(jobs, &options, &mut (), &Deadline(Instant::now())) else {
        return false;
    };
    for job in &summary.jobs {
        assert_ne!(job.reason, "panic", "{}", job.message);
        if job.status == JobStatus::Done && job.kind == "fit" {
            // A later job may have replaced it.
            let later = summary
                .jobs
                .iter()
                .any(|j| j.line > job.line && j.output == job.output);
            assert!(later || model::load(&job.output, OpenMode::Mapped).is_ok());
        }
    }
    // The same batch again skips what succeeded.
    let jobs = JobReader::new("lines", Cursor::new(input.to_vec()));
    let _ = run_batch(jobs, &options, &mut (), &Deadline(Instant::now()));
    summary.count(JobStatus::Done) > 0
}

fn sample_model() -> &'static model::Model {
    use std::sync::OnceLock;
    static MODEL: OnceLock<model::Model> = OnceLock::new();
    MODEL.get_or_init(|| fit_sample(PLAIN_OPTIONS[0].1, &FitInput::default()).unwrap())
}

/// Returns whether a line that can be parsed has a string that is the name of a file in another folder.
fn names_other_folder(line: &[u8]) -> bool {
    fn has_folder(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('/') || text.contains(".."),
            Value::Array(all) => all.iter().any(has_folder),
            Value::Object(all) => all
                .iter()
                .any(|(key, value)| key.contains('/') || has_folder(value)),
            _ => false,
        }
    }
    serde_json::from_slice::<Value>(line).is_ok_and(|value| has_folder(&value))
}

pub fn seeds(_: &Path) -> Seeds {
    let texts = [
        (
            "fit",
            r#"{"job":"fit","preset":"paper","tensor":"t.tns","output":"o.s3m","options":{"rank":2,"epochs":1}}"#,
        ),
        (
            "predict",
            r#"{"job":"predict","model":"m.s3m","file":"t.tns","output":"p.coo","options":{"clip":true}}"#,
        ),
        (
            "chain",
            "{\"id\":\"a\",\"job\":\"fit\",\"tensor\":\"t.tns\",\"output\":\"o.s3m\",\"config\":\"c.txt\",\"options\":{\"rank\":1}}\n\
             {\"id\":\"b\",\"job\":\"predict\",\"model\":\"o.s3m\",\"file\":\"t.tns\",\"output\":\"p.coo\"}\n",
        ),
        (
            "matrices",
            r#"{"id":"x","job":"fit","tensor":"t.tns","matrices":[{"mode":2,"file":"g.tns","weight":0.5,"penalty":1,"kind":"sampled=2"}],"output":"o.s3m","memory":"64M","options":{"rank":[2,1,2],"epochs":1,"lambda_reg":"auto"}}"#,
        ),
        (
            "graph",
            r#"{"job":"fit","tensor":"t.tns","graphs":[{"mode":1,"file":"g.tns"}],"test":"t.tns","valid":"t.tns","output":"o.s3m","options":{"epochs":1,"rank":2}}"#,
        ),
        (
            "checkpoint",
            r#"{"job":"fit","tensor":"t.tns","init":"m.s3m","checkpoint":"k.s3m","output":"o.s3m","text":{"from":"tns"},"options":{"epochs":1}}"#,
        ),
        (
            "resume",
            r#"{"job":"fit","tensor":"t.tns","resume":"m.s3m","output":"o.s3m","text":{"zero_based":true},"options":{"epochs":1}}"#,
        ),
        ("empty-lines", "\n# comment\n{}\n[]\n{\"job\":\"fit\"}\n"),
    ];
    texts.map(|(name, text)| (name, text.into())).to_vec()
}
