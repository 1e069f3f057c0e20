//! Batches of concurrent jobs.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::common::Scratch;
use s3cmtf::format::{CooFile, CooWriter, Dims, OpenMode, ValueKind, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::options::Options;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, fit};
use s3cmtf::{Monitor, Result};
use s3cmtf_cli::batch::{
    BatchObserver, BatchOptions, BatchSummary, JobReader, JobResult, JobStatus, run,
};

/// Writes a structured tensor of 40 x 30 x 5, and a matrix on its second mode.
pub(crate) fn write_data(dir: &Scratch) {
    let mut columns = [vec![], vec![], vec![]];
    let mut values = Vec::new();
    for i in 0..3000u32 {
        let cell = [i * 7 % 40, i * 11 % 30, i * 13 % 5];
        columns.iter_mut().zip(cell).for_each(|(c, x)| c.push(x));
        values.push(
            (1 + cell[0] % 4) as f32 * (1 + cell[1] % 3) as f32 / 3.0 + cell[2] as f32 / 10.0,
        );
    }
    write_coo(&dir.join("t.coo"), &columns, &values, vec![40, 30, 5]);
    let films: Vec<u32> = (0..30).collect();
    let genres: Vec<u32> = films.iter().map(|f| f % 3).collect();
    write_coo(
        &dir.join("g.coo"),
        &[films, genres],
        &[1.0; 30],
        vec![30, 3],
    );
}

fn write_coo(path: &Path, columns: &[Vec<u32>], values: &[f32], dims: Vec<u64>) {
    let count = Some(values.len() as u64);
    let mut writer = CooWriter::create(path, columns.len(), ValueKind::F32, None, count).unwrap();
    let columns: Vec<&[u32]> = columns.iter().map(|c| &c[..]).collect();
    writer.push(&columns, Values::F32(values), None).unwrap();
    writer.finish(Dims::Stated(dims)).unwrap();
}

/// Returns the jobs of these lines, with `@` replaced by the folder.
pub(crate) fn jobs(dir: &Scratch, lines: &[&str]) -> JobReader {
    let folder = format!("{}/", dir.path().display());
    let text = lines.join("\n").replace('@', &folder);
    JobReader::new("jobs", std::io::Cursor::new(text.into_bytes()))
}

pub(crate) fn fit_line(id: &str, options: &str) -> String {
    format!(
        r#"{{"id":"{id}","job":"fit","preset":"paper","tensor":"@t.coo","matrices":[{{"mode":2,"file":"@g.coo"}}],"test":"@t.coo","output":"@{id}.s3m","options":{{"rank":3,"epochs":4{options}}}}}"#
    )
}

/// Records starts (`true`) and ends (`false`) of jobs in order.
#[derive(Default)]
pub(crate) struct EventRecorder {
    pub events: Vec<(bool, JobResult)>,
    /// Stops the batch after this number of jobs has ended,
    pub stop_after: Option<usize>,
    /// but not before this file exists.
    pub not_before: Option<std::path::PathBuf>,
}

impl BatchObserver for EventRecorder {
    fn started(&mut self, job: &JobResult) {
        self.events.push((true, job.clone()));
    }

    fn ended(&mut self, job: &JobResult) -> Control {
        self.events.push((false, job.clone()));
        let ended = self.events.iter().filter(|(started, _)| !started).count();
        match self.stop_after {
            Some(limit) if ended >= limit => {
                while self.not_before.as_ref().is_some_and(|file| !file.exists()) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Control::Stop
            }
            _ => Control::Continue,
        }
    }
}

pub(crate) fn options(dir: &Scratch, threads: usize) -> BatchOptions {
    BatchOptions {
        threads,
        memory: 1 << 30,
        ..BatchOptions::new(dir.join("out"))
    }
}

#[track_caller]
pub(crate) fn run_lines(dir: &Scratch, threads: usize, lines: &[&str]) -> BatchSummary {
    run(jobs(dir, lines), &options(dir, threads), &mut (), &()).unwrap()
}

pub(crate) fn statuses(summary: &BatchSummary) -> Vec<(&str, &str)> {
    let of = |j| -> (&str, &str) {
        let job: &JobResult = j;
        (&job.id, job.status.name())
    };
    summary.jobs.iter().map(of).collect()
}

pub(crate) fn parameter_bits_of_file(path: &Path) -> Vec<Vec<u32>> {
    parameter_bits(&model::load(path, OpenMode::Private).unwrap())
}

fn parameter_bits(model: &Model) -> Vec<Vec<u32>> {
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect();
    let mut all = vec![bits(model.core())];
    all.extend(model.modes().iter().map(|m| bits(m.factor.as_slice())));
    all.extend(model.matrices().iter().map(|m| bits(m.factor.as_slice())));
    all
}

#[test]
fn batch_fit_equals_single_fit_bit_for_bit() {
    let dir = Scratch::new("batch-bits");
    write_data(&dir);
    let lines: Vec<String> = [
        ("blocked", ""),
        ("als", r#","algorithm":"als","threads":2"#),
        (
            "gibbs",
            r#","algorithm":"gibbs","samples":3,"burn_in":1,"seed":7"#,
        ),
        ("nonneg", r#","nonneg":true,"threads":3"#),
    ]
    .iter()
    .map(|(id, o)| fit_line(id, o))
    .collect();
    let summary = run_lines(&dir, 3, &lines.iter().map(|l| &l[..]).collect::<Vec<_>>());
    assert_eq!(summary.count(JobStatus::Done), 4, "{:?}", summary.jobs);
    let (tensor, genres) = ["t.coo", "g.coo"]
        .map(|name| CooFile::open(dir.join(name), OpenMode::Mapped).unwrap())
        .into();
    for job in &summary.jobs {
        let mut o = Options::preset("paper").unwrap();
        let more: &[(&str, &str)] = match &job.id[..] {
            "als" => &[("algorithm", "als")],
            "gibbs" => &[
                ("algorithm", "gibbs"),
                ("samples", "3"),
                ("burn_in", "1"),
                ("seed", "7"),
            ],
            "nonneg" => &[("nonneg", "true")],
            _ => &[],
        };
        let common = [("rank", "3"), ("epochs", "4"), ("threads", "1")];
        for (name, value) in common.iter().chain(more) {
            o.set(name, value).unwrap();
        }
        let problem = Problem::builder(tensor.view())
            .matrix(1, genres.view(), None, MatrixKind::Observed)
            .seed(o.seed)
            .build(&())
            .unwrap();
        let input = FitInput {
            test: Some(tensor.view()),
            ..FitInput::default()
        };
        let (alone, single_fit) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        let path = dir.join(&format!("{}.s3m", job.id));
        assert!(
            parameter_bits_of_file(&path) == parameter_bits(&alone),
            "{}",
            job.id
        );
        assert_eq!(job.test_rmse.to_bits(), single_fit.test_rmse.to_bits());
    }
}

/// Records the CPUs of the threads of this process while jobs run.
struct ThreadMonitor<'a>(&'a std::sync::Mutex<Vec<(String, usize)>>);

impl Monitor for ThreadMonitor<'_> {
    fn progress(&self, _: &str, _: u64, _: u64) {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else {
            return;
        };
        let mut seen: std::collections::BTreeMap<String, usize> = Default::default();
        for task in tasks.flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let field = |name: &str| {
                let line = status.lines().find_map(|l| l.strip_prefix(name));
                line.unwrap_or_default().trim().to_string()
            };
            if field("Name:") == "s3cmtf" {
                *seen.entry(field("Cpus_allowed_list:")).or_default() += 1;
            }
        }
        self.0.lock().unwrap().extend(seen);
    }
}

#[test]
fn concurrent_jobs_stay_within_thread_and_memory_budgets_and_share_no_cores() {
    let dir = Scratch::new("batch-budget");
    write_data(&dir);
    let cpus = s3cmtf::parallel::available_threads();
    let lines: Vec<String> = (0..12)
        .map(|i| {
            fit_line(
                &format!("j{i}"),
                &format!(
                    r#","epochs":30,"threads":{}"#,
                    if i % 3 == 2 { cpus.min(2) } else { 1 }
                ),
            )
        })
        .map(|line| line.replace(r#""epochs":4,"#, ""))
        .collect();
    let lines: Vec<&str> = lines.iter().map(|l| &l[..]).collect();
    let threads = std::sync::Mutex::new(Vec::new());
    for (budget, memory) in [(cpus, 1 << 30), (cpus, 25 << 20), (2 * cpus + 1, 1 << 30)] {
        let _ = fs::remove_dir_all(dir.join("out"));
        let batch_options = BatchOptions {
            memory,
            ..options(&dir, budget)
        };
        let mut seen = EventRecorder::default();
        let summary = run(
            jobs(&dir, &lines),
            &batch_options,
            &mut seen,
            &ThreadMonitor(&threads),
        )
        .unwrap();
        assert_eq!(summary.count(JobStatus::Done), 12, "{:?}", summary.jobs);
        // The observer is called in order from one thread, so these are the running jobs at any time.
        let mut running: Vec<JobResult> = Vec::new();
        let mut max_running = 0;
        for (started, job) in seen.events {
            if !started {
                running.retain(|r| r.id != job.id);
                continue;
            }
            running.push(job);
            let all: usize = running.iter().map(|r| r.threads).sum();
            assert!(all <= budget, "{all} threads");
            assert!(running.iter().map(|r| r.memory).sum::<u64>() <= memory);
            max_running = max_running.max(running.len());
            let cores: Vec<usize> = running.iter().flat_map(|r| r.cores.clone()).collect();
            let different: HashSet<&usize> = cores.iter().collect();
            assert_eq!(different.len(), cores.len(), "{cores:?}");
            if cfg!(target_os = "linux") {
                let expected = if budget <= cpus { all } else { 0 };
                assert_eq!(cores.len(), expected);
            }
        }
        match memory {
            // A job needs about ten megabytes.
            m if m < 30 << 20 => assert!(max_running <= 2),
            _ => assert!(max_running >= 2 || cpus == 1, "no jobs ran concurrently"),
        }
        if budget <= cpus {
            // The threads of a job with one thread, and the thread that waits for it, are pinned to one CPU.
            let seen = std::mem::take(&mut *threads.lock().unwrap());
            let single = seen.iter().any(|(cpus, _)| cpus.parse::<usize>().is_ok());
            assert!(single || !cfg!(target_os = "linux"), "{seen:?}");
        }
    }
}

#[test]
fn job_waits_for_the_jobs_that_write_its_inputs() {
    let dir = Scratch::new("batch-needs");
    write_data(&dir);
    let lines = [
        &fit_line("a", "")[..],
        r#"{"id":"p","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@p.coo"}"#,
        // Reads the output of a prediction and starts from the model of another job.
        r#"{"id":"q","job":"fit","preset":"paper","tensor":"@./p.coo","init":"@a.s3m","output":"@q.s3m","options":{"epochs":2}}"#,
        // Writes a file that the next job reads.
        r#"{"id":"late","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@t2.coo","options":{"clip":false,"threads":2}}"#,
        r#"{"id":"other","job":"predict","model":"@a.s3m","file":"@t2.coo","output":"@o.coo"}"#,
        r#"{"id":"none","job":"predict","model":"@none.s3m","file":"@t.coo","output":"@n.coo"}"#,
        r#"{"id":"needs","job":"predict","model":"@a.s3m","file":"@n.coo","output":"@m.coo"}"#,
        r#"{"id":"typo","job":"fit","tensor":"@t.coo","output":"@typo.coo","options":{"rnak":3}}"#,
        r#"{"id":"of-typo","job":"predict","model":"@a.s3m","file":"@typo.coo","output":"@x.coo"}"#,
    ];
    // An existing file does not replace the output of a failed job.
    fs::copy(dir.join("t.coo"), dir.join("typo.coo")).unwrap();
    let mut seen = EventRecorder::default();
    let summary = run(jobs(&dir, &lines), &options(&dir, 2), &mut seen, &()).unwrap();
    let expected = [
        "done", "done", "done", "done", "done", "failed", "failed", "failed", "failed",
    ];
    let got: Vec<&str> = statuses(&summary).iter().map(|(_, s)| *s).collect();
    assert_eq!(got, expected, "{:?}", summary.jobs);
    let reasons: Vec<&str> = summary.jobs.iter().map(|j| &j.reason[..]).collect();
    assert_eq!(reasons[5..], ["bad-input", "needs", "bad-input", "needs"]);
    let position = |started: bool, id: &str| {
        seen.events
            .iter()
            .position(|(s, j)| *s == started && j.id == id)
            .unwrap()
    };
    assert!(
        position(false, "a") < position(true, "p") && position(false, "p") < position(true, "q")
    );
    assert!(position(false, "late") < position(true, "other"));
    assert_eq!(summary.jobs[1].predictions, 3000);
    // The predictions of the batch equal those of the model.
    let model = model::load(dir.join("a.s3m"), OpenMode::Mapped).unwrap();
    let (positions, predicted) = ["t.coo", "p.coo"]
        .map(|name| CooFile::open(dir.join(name), OpenMode::Mapped).unwrap())
        .into();
    s3cmtf::predict::predict_entries(
        &model,
        &positions.view(),
        &s3cmtf::predict::PredictOptions {
            clip: true,
            threads: 1,
        },
        &(),
        |range, values| {
            for (i, x) in range.zip(values) {
                assert_eq!(predicted.view().values().get(i) as f32, *x as f32);
            }
            Ok(())
        },
    )
    .unwrap();
    // A second run retries the failed jobs and skips the others.
    let again = run_lines(&dir, 2, &lines);
    assert_eq!(
        (
            again.count(JobStatus::Skipped),
            again.count(JobStatus::Failed)
        ),
        (5, 4)
    );
    assert_eq!(again.jobs[0].test_rmse, summary.jobs[0].test_rmse);
    // A changed job, the jobs that depend on it, and a job whose output was deleted run again.
    let other = fit_line("a", r#","seed":3"#);
    fs::remove_file(dir.join("o.coo")).unwrap();
    let mut changed = lines;
    changed[0] = &other;
    let summary = run_lines(&dir, 2, &changed);
    assert_eq!(summary.count(JobStatus::Done), 5, "{:?}", summary.jobs);
}

#[test]
fn inputs_are_opened_once_and_output_folder_is_locked() {
    let dir = Scratch::new("batch-text");
    write_data(&dir);
    // Text, read with two sets of options.
    let mut text = String::from("film,user,month,stars\n");
    for i in 0..500 {
        text += &format!("{},{},{},{}\n", i * 3 % 20, i * 7 % 25, i % 4, 1 + i % 5);
    }
    dir.file("r.csv", text);
    let csv = |id: &str, text_options: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","preset":"paper","tensor":"@r.csv","output":"@{id}.s3m","text":{{"zero-based":true{text_options}}},"options":{{"rank":[2,2,2],"epochs":2}}}}"#
        )
    };
    let (a, b, c) = (
        csv("a", ""),
        csv("b", ""),
        csv("c", r#","columns":["user","film"]"#),
    );
    let no_text =
        r#"{"id":"d","job":"fit","tensor":"@t.coo","text":{"zero_based":true},"output":"@d.s3m"}"#;
    let summary = run_lines(&dir, 2, &[&a, &b, &c, no_text]);
    let got: Vec<&str> = statuses(&summary).iter().map(|(_, s)| *s).collect();
    assert_eq!(
        got,
        ["done", "done", "failed", "failed"],
        "{:?}",
        summary.jobs
    );
    assert!(
        summary.jobs[2].message.contains("rank"),
        "{:?}",
        summary.jobs[2]
    );
    assert!(
        summary.jobs[3]
            .message
            .contains("none of its files is text")
    );
    assert_eq!(
        parameter_bits_of_file(&dir.join("a.s3m")),
        parameter_bits_of_file(&dir.join("b.s3m"))
    );
    assert_eq!(
        model::load(dir.join("a.s3m"), OpenMode::Mapped)
            .unwrap()
            .dims(),
        [20, 25, 4]
    );
    // A job must not overwrite the files of the batch itself.
    let own =
        r#"{"id":"own","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@out/x.log"}"#;
    assert!(
        run_lines(&dir, 1, &[own]).jobs[0]
            .message
            .contains("of the batch itself")
    );
}

#[test]
fn text_whose_columns_are_not_certain_fails_its_job() {
    let dir = Scratch::new("batch-columns");
    let mut lines = String::new();
    for i in 0..60 {
        lines += &format!("{},{},{}\n", i * 7 % 5 + 1, i * 3 % 4 + 1, 1 + i % 5);
    }
    dir.file("data.csv", &lines);
    dir.file("named.csv", format!("user,film,x\n{lines}"));
    let job = |id: &str, file: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","preset":"paper","tensor":"@{file}","output":"@{id}.s3m","text":{text},"options":{{"rank":[2,2],"epochs":2}}}}"#
        )
    };
    let lines = [
        job("a", "data.csv", "{}"),
        job("b", "data.csv", r#"{"no_header":true}"#),
        job("c", "named.csv", "{}"),
        job("d", "named.csv", r#"{"value":"x"}"#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let summary = run_lines(&dir, 2, &lines);
    let got: Vec<&str> = statuses(&summary).iter().map(|(_, s)| *s).collect();
    assert_eq!(got, ["failed", "done", "failed", "done"]);
    let message = |n: usize| &summary.jobs[n].message;
    assert!(message(0).contains("option no_header"), "{}", message(0));
    assert!(
        message(2).contains("--value x (options columns and value)"),
        "{}",
        message(2)
    );
    let bits = |name: &str| parameter_bits_of_file(&dir.join(name));
    assert_eq!(bits("b.s3m"), bits("d.s3m"));
}

#[test]
fn unreadable_jobs_or_unwritable_folder_abort_the_batch() -> Result<()> {
    let dir = Scratch::new("batch-errors");
    let batch_options = |folder: &str| BatchOptions::new(dir.join(folder));
    dir.file("file", "");
    assert!(run(jobs(&dir, &[]), &batch_options("file"), &mut (), &()).is_err());
    assert!(JobReader::open(dir.join("none")).is_err() && JobReader::open(dir.path()).is_err());
    let empty = run(
        jobs(&dir, &["", "# nothing"]),
        &batch_options("empty"),
        &mut (),
        &(),
    )?;
    assert!(empty.jobs.is_empty() && !empty.interrupted && empty.threads > 0);
    // A stream that fails after its first line.
    struct BrokenStream(bool);
    impl std::io::Read for BrokenStream {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other("gone"));
            }
            to[..3].copy_from_slice(b"{}\n");
            Ok(3)
        }
    }
    let mut seen = EventRecorder::default();
    let broken = JobReader::new("the pipe", BrokenStream(false));
    let error = run(broken, &batch_options("broken"), &mut seen, &())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the pipe") && error.contains("gone"),
        "{error}"
    );
    assert_eq!(seen.events.len(), 1, "jobs read before the failure run");
    Ok(())
}

#[test]
fn memory_estimate_includes_posterior_samples() {
    let dir = Scratch::new("batch-samples");
    write_data(&dir);
    let line = |id: &str, samples: u64| {
        fit_line(id, &format!(r#","algorithm":"gibbs","samples":{samples}"#))
    };
    let lines = [line("few", 6), line("many", 206)];
    let summary = run_lines(&dir, 2, &lines.each_ref().map(String::as_str));
    assert!(summary.jobs.iter().all(|j| j.status == JobStatus::Done));
    let memory = |k: usize| summary.jobs[k].memory as f64;
    // A stored sample has 16 bits per value, 32 per row, and its core. Saving needs a copy of all samples.
    let model = model::load(dir.join("many.s3m"), OpenMode::Mapped).unwrap();
    let sample = model.samples().unwrap().iter().next().unwrap();
    let rows = sample.modes.iter().chain([&sample.conditional_means]);
    let rows: usize = rows.map(|rows| rows.len()).sum();
    let sample_bytes = (rows * (2 * 3 + 4) + 4 * sample.core.len()) as f64;
    assert!(rows > 115 && sample.core.len() == 3 * 3 * 16);
    let estimate = (memory(1) - memory(0)) / 200.0;
    assert!(
        estimate > 2.0 * sample_bytes && estimate < 3.5 * sample_bytes,
        "{estimate} {sample_bytes}"
    );
}

#[cfg(unix)]
#[test]
fn named_pipe_as_input_fails_only_its_job() {
    let dir = Scratch::new("batch-pipe");
    write_data(&dir);
    // Nothing ever writes to these pipes, so that a batch that opens one does not end.
    for name in ["p.coo", "p.tns", "p.s3m", "c.s3m"] {
        let made = std::process::Command::new("mkfifo")
            .arg(dir.join(name))
            .status();
        if !made.is_ok_and(|s| s.success()) {
            println!("skipped: no mkfifo");
            return;
        }
    }
    let good = fit_line("good", "");
    let replaced = |id: &str, from: &str, to: &str| {
        let line = fit_line(id, "");
        assert!(line.contains(from));
        line.replace(from, to)
    };
    let lines = [
        replaced("binary", r#""tensor":"@t.coo""#, r#""tensor":"@p.coo""#),
        replaced("text", r#""tensor":"@t.coo""#, r#""tensor":"@p.tns""#),
        replaced("matrix", "@g.coo", "@p.tns"),
        replaced("test", r#""test":"@t.coo""#, r#""test":"@p.coo""#),
        replaced("init", r#""preset""#, r#""init":"@p.s3m","preset""#),
        replaced("resume", r#""preset""#, r#""resume":"@c.s3m","preset""#),
        replaced("config", r#""preset""#, r#""config":"@p.tns","preset""#),
        replaced(
            "names",
            r#""preset""#,
            r#""text":{"names":["1:@p.tns"]},"preset""#,
        ),
        r#"{"id":"model","job":"predict","model":"@p.s3m","file":"@t.coo","output":"@x.coo"}"#
            .into(),
        r#"{"id":"cells","job":"predict","model":"@good.s3m","file":"@p.coo","output":"@y.coo"}"#
            .into(),
    ];
    let bad: Vec<&str> = lines.iter().map(|l| &l[..]).collect();
    let summary = run_lines(&dir, 2, &[&bad[..], &[&good]].concat());
    for job in &summary.jobs {
        if job.id == "good" {
            assert_eq!(job.status, JobStatus::Done, "{job:?}");
            continue;
        }
        assert_eq!(
            (job.status, &job.reason[..]),
            (JobStatus::Failed, "bad-input"),
            "{job:?}"
        );
        assert!(job.message.contains("pipe"), "{job:?}");
    }
}
