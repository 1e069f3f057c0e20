//! Many jobs side by side, from the Rust API.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::Scratch;
use s3cmtf::batch::{BatchObserver, BatchOptions, BatchSummary, JobResult, JobStatus, Jobs, run};
use s3cmtf::format::{CooFile, CooWriter, Dims, OpenMode, ValueKind, Values};
use s3cmtf::model::{self, Model};
use s3cmtf::options::Options;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{Control, FitInput, fit};
use s3cmtf::{Monitor, Result};

/// A tensor of 40 x 30 x 5 with some structure, and a matrix on its second mode.
fn data(dir: &Scratch) {
    let mut columns = [vec![], vec![], vec![]];
    let mut values = Vec::new();
    for i in 0..3000u32 {
        let cell = [i * 7 % 40, i * 11 % 30, i * 13 % 5];
        columns.iter_mut().zip(cell).for_each(|(c, x)| c.push(x));
        values.push(
            (1 + cell[0] % 4) as f32 * (1 + cell[1] % 3) as f32 / 3.0 + cell[2] as f32 / 10.0,
        );
    }
    write(&dir.join("t.coo"), &columns, &values, vec![40, 30, 5]);
    let films: Vec<u32> = (0..30).collect();
    let genres: Vec<u32> = films.iter().map(|f| f % 3).collect();
    write(
        &dir.join("g.coo"),
        &[films, genres],
        &[1.0; 30],
        vec![30, 3],
    );
}

fn write(path: &Path, columns: &[Vec<u32>], values: &[f32], dims: Vec<u64>) {
    let count = Some(values.len() as u64);
    let mut writer = CooWriter::create(path, columns.len(), ValueKind::F32, None, count).unwrap();
    let columns: Vec<&[u32]> = columns.iter().map(|c| &c[..]).collect();
    writer.push(&columns, Values::F32(values), None).unwrap();
    writer.finish(Dims::Stated(dims)).unwrap();
}

/// Lines with @ for the folder.
fn jobs(dir: &Scratch, lines: &[&str]) -> Jobs {
    let folder = format!("{}/", dir.path().display());
    let text = lines.join("\n").replace('@', &folder);
    Jobs::read("jobs", std::io::Cursor::new(text.into_bytes()))
}

fn fit_line(id: &str, options: &str) -> String {
    format!(
        r#"{{"id":"{id}","job":"fit","preset":"paper","tensor":"@t.coo","matrices":[{{"mode":2,"file":"@g.coo"}}],"test":"@t.coo","output":"@{id}.s3m","options":{{"rank":3,"epochs":4{options}}}}}"#
    )
}

/// What began and ended, in order.
#[derive(Default)]
struct Seen {
    events: Vec<(bool, JobResult)>,
    stop_after: Option<usize>,
    /// Nothing stops before this file is there.
    not_before: Option<std::path::PathBuf>,
}

impl BatchObserver for Seen {
    fn started(&mut self, job: &JobResult) {
        self.events.push((true, job.clone()));
    }

    fn ended(&mut self, job: &JobResult) -> Control {
        self.events.push((false, job.clone()));
        let ended = self.events.iter().filter(|(began, _)| !began).count();
        match self.stop_after {
            Some(most) if ended >= most => {
                while self.not_before.as_ref().is_some_and(|file| !file.exists()) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Control::Stop
            }
            _ => Control::Continue,
        }
    }
}

fn options(dir: &Scratch, threads: usize) -> BatchOptions {
    BatchOptions {
        threads,
        memory: 1 << 30,
        ..BatchOptions::new(dir.join("out"))
    }
}

#[track_caller]
fn ran(dir: &Scratch, threads: usize, lines: &[&str]) -> BatchSummary {
    run(jobs(dir, lines), &options(dir, threads), &mut (), &()).unwrap()
}

fn statuses(summary: &BatchSummary) -> Vec<(&str, &str)> {
    let of = |j| -> (&str, &str) {
        let job: &JobResult = j;
        (&job.id, job.status.name())
    };
    summary.jobs.iter().map(of).collect()
}

fn numbers(path: &Path) -> Vec<Vec<u32>> {
    numbers_of(&model::load(path, OpenMode::Private).unwrap())
}

fn numbers_of(model: &Model) -> Vec<Vec<u32>> {
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect();
    let mut all = vec![bits(model.core())];
    all.extend(model.modes().iter().map(|m| bits(m.factor.as_slice())));
    all.extend(model.matrices().iter().map(|m| bits(m.factor.as_slice())));
    all
}

#[test]
fn batch_fit_equals_single_fit_bit_for_bit() {
    let dir = Scratch::new("batch-bits");
    data(&dir);
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
    let summary = ran(&dir, 3, &lines.iter().map(|l| &l[..]).collect::<Vec<_>>());
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
        let (alone, figures) = fit(&problem, &o, &input, &mut (), &()).unwrap();
        let path = dir.join(&format!("{}.s3m", job.id));
        assert!(numbers(&path) == numbers_of(&alone), "{}", job.id);
        assert_eq!(job.test_rmse.to_bits(), figures.test_rmse.to_bits());
    }
}

/// Watches the threads of this process while jobs run.
struct Threads<'a>(&'a std::sync::Mutex<Vec<(String, usize)>>);

impl Monitor for Threads<'_> {
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
    data(&dir);
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
        let how = BatchOptions {
            memory,
            ..options(&dir, budget)
        };
        let mut seen = Seen::default();
        let summary = run(jobs(&dir, &lines), &how, &mut seen, &Threads(&threads)).unwrap();
        assert_eq!(summary.count(JobStatus::Done), 12, "{:?}", summary.jobs);
        // What is told is told in order, from one thread: at any time these are the jobs that run.
        let mut running: Vec<JobResult> = Vec::new();
        let mut most = 0;
        for (began, job) in seen.events {
            if !began {
                running.retain(|r| r.id != job.id);
                continue;
            }
            running.push(job);
            let all: usize = running.iter().map(|r| r.threads).sum();
            assert!(all <= budget, "{all} threads");
            assert!(running.iter().map(|r| r.memory).sum::<u64>() <= memory);
            most = most.max(running.len());
            let cores: Vec<usize> = running.iter().flat_map(|r| r.cores.clone()).collect();
            let different: HashSet<&usize> = cores.iter().collect();
            assert_eq!(different.len(), cores.len(), "{cores:?}");
            if cfg!(target_os = "linux") {
                let expected = if budget <= cpus { all } else { 0 };
                assert_eq!(cores.len(), expected);
            }
        }
        match memory {
            // Two jobs of ten megabytes.
            m if m < 30 << 20 => assert!(most <= 2),
            _ => assert!(most >= 2 || cpus == 1, "nothing ran side by side"),
        }
        if budget <= cpus {
            // Jobs of one thread: all their threads, and the one that waits for them, are on one CPU.
            let seen = std::mem::take(&mut *threads.lock().unwrap());
            let single = seen.iter().any(|(cpus, _)| cpus.parse::<usize>().is_ok());
            assert!(single || !cfg!(target_os = "linux"), "{seen:?}");
        }
    }
}

#[test]
fn job_waits_for_the_jobs_that_write_its_inputs() {
    let dir = Scratch::new("batch-needs");
    data(&dir);
    let lines = [
        &fit_line("a", "")[..],
        r#"{"id":"p","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@p.coo"}"#,
        // Reads what a prediction writes, and starts from a model.
        r#"{"id":"q","job":"fit","preset":"paper","tensor":"@./p.coo","init":"@a.s3m","output":"@q.s3m","options":{"epochs":2}}"#,
        // Writes what others read: after them.
        r#"{"id":"late","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@t2.coo","options":{"clip":false,"threads":2}}"#,
        r#"{"id":"other","job":"predict","model":"@a.s3m","file":"@t2.coo","output":"@o.coo"}"#,
        r#"{"id":"none","job":"predict","model":"@none.s3m","file":"@t.coo","output":"@n.coo"}"#,
        r#"{"id":"needs","job":"predict","model":"@a.s3m","file":"@n.coo","output":"@m.coo"}"#,
        r#"{"id":"typo","job":"fit","tensor":"@t.coo","output":"@typo.coo","options":{"rnak":3}}"#,
        r#"{"id":"of-typo","job":"predict","model":"@a.s3m","file":"@typo.coo","output":"@x.coo"}"#,
    ];
    // What was there before is not what the job was to write.
    fs::copy(dir.join("t.coo"), dir.join("typo.coo")).unwrap();
    let mut seen = Seen::default();
    let summary = run(jobs(&dir, &lines), &options(&dir, 2), &mut seen, &()).unwrap();
    let expected = [
        "done", "done", "done", "done", "done", "failed", "failed", "failed", "failed",
    ];
    let got: Vec<&str> = statuses(&summary).iter().map(|(_, s)| *s).collect();
    assert_eq!(got, expected, "{:?}", summary.jobs);
    let reasons: Vec<&str> = summary.jobs.iter().map(|j| &j.reason[..]).collect();
    assert_eq!(reasons[5..], ["bad-input", "needs", "bad-input", "needs"]);
    let at = |began: bool, id: &str| {
        seen.events
            .iter()
            .position(|(b, j)| *b == began && j.id == id)
            .unwrap()
    };
    assert!(at(false, "a") < at(true, "p") && at(false, "p") < at(true, "q"));
    assert!(at(false, "late") < at(true, "other"));
    assert_eq!(summary.jobs[1].predictions, 3000);
    // Predictions are those of the model.
    let model = model::load(dir.join("a.s3m"), OpenMode::Mapped).unwrap();
    let (cells, made) = ["t.coo", "p.coo"]
        .map(|name| CooFile::open(dir.join(name), OpenMode::Mapped).unwrap())
        .into();
    s3cmtf::predict::predict_entries(
        &model,
        &cells.view(),
        &s3cmtf::predict::PredictOptions {
            clip: true,
            threads: 1,
        },
        &(),
        |range, values| {
            for (i, x) in range.zip(values) {
                assert_eq!(made.view().values().get(i) as f32, *x as f32);
            }
            Ok(())
        },
    )
    .unwrap();
    // Run again, what failed is tried again and the rest is passed over.
    let again = ran(&dir, 2, &lines);
    assert_eq!(
        (
            again.count(JobStatus::Skipped),
            again.count(JobStatus::Failed)
        ),
        (5, 4)
    );
    assert_eq!(again.jobs[0].test_rmse, summary.jobs[0].test_rmse);
    // With another first line, what was made from its output is made anew; so is what is not there any more.
    let other = fit_line("a", r#","seed":3"#);
    fs::remove_file(dir.join("o.coo")).unwrap();
    let mut changed = lines;
    changed[0] = &other;
    let summary = ran(&dir, 2, &changed);
    assert_eq!(summary.count(JobStatus::Done), 5, "{:?}", summary.jobs);
}

#[test]
fn inputs_are_opened_once_and_output_folder_is_locked() {
    let dir = Scratch::new("batch-text");
    data(&dir);
    // Text, read in two ways.
    let mut text = String::from("film,user,month,stars\n");
    for i in 0..500 {
        text += &format!("{},{},{},{}\n", i * 3 % 20, i * 7 % 25, i % 4, 1 + i % 5);
    }
    dir.file("r.csv", text);
    let csv = |id: &str, how: &str| {
        format!(
            r#"{{"id":"{id}","job":"fit","preset":"paper","tensor":"@r.csv","output":"@{id}.s3m","text":{{"zero-based":true{how}}},"options":{{"rank":[2,2,2],"epochs":2}}}}"#
        )
    };
    let (a, b, c) = (
        csv("a", ""),
        csv("b", ""),
        csv("c", r#","columns":["user","film"]"#),
    );
    let no_text =
        r#"{"id":"d","job":"fit","tensor":"@t.coo","text":{"zero_based":true},"output":"@d.s3m"}"#;
    let summary = ran(&dir, 2, &[&a, &b, &c, no_text]);
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
            .contains("no file that it is about is text")
    );
    assert_eq!(numbers(&dir.join("a.s3m")), numbers(&dir.join("b.s3m")));
    assert_eq!(
        model::load(dir.join("a.s3m"), OpenMode::Mapped)
            .unwrap()
            .dims(),
        [20, 25, 4]
    );
    // Nobody writes into the folder of the batch what the batch has there.
    let own =
        r#"{"id":"own","job":"predict","model":"@a.s3m","file":"@t.coo","output":"@out/x.log"}"#;
    assert!(
        ran(&dir, 1, &[own]).jobs[0]
            .message
            .contains("of the batch itself")
    );
}

struct Never;

impl Monitor for Never {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn cancelled_batch_continues_with_unfinished_jobs() {
    let dir = Scratch::new("batch-cancel");
    data(&dir);
    let slow = fit_line("slow", r#","epochs":1000000,"checkpoint_every":1"#)
        .replace(r#""epochs":4,"#, "")
        .replace(r#""test""#, r#""checkpoint":"@c.s3m","test""#);
    let quick = fit_line("quick", "");
    let lines = [
        &slow[..],
        &quick,
        r#"{"job":"predict","model":"@slow.s3m","file":"@t.coo","output":"@p.coo"}"#,
    ];
    // The quick one ends, then the batch is cancelled.
    let mut seen = Seen {
        stop_after: Some(1),
        not_before: Some(dir.join("c.s3m")),
        ..Seen::default()
    };
    let summary = run(jobs(&dir, &lines), &options(&dir, 2), &mut seen, &()).unwrap();
    assert!(summary.interrupted);
    let expected = [
        ("slow", "interrupted"),
        ("quick", "done"),
        ("job-3", "not-started"),
    ];
    assert_eq!(statuses(&summary), expected);
    assert!(!dir.join("slow.s3m").exists() && dir.join("c.s3m").exists());
    // It goes on from the checkpoint, if it is the same line.
    let stopped = AtomicBool::new(false);
    struct Once<'a>(&'a AtomicBool);
    impl Monitor for Once<'_> {
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }
    struct StopAtStart<'a>(&'a AtomicBool);
    impl BatchObserver for StopAtStart<'_> {
        fn started(&mut self, _: &JobResult) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let again = run(
        jobs(&dir, &lines),
        &options(&dir, 2),
        &mut StopAtStart(&stopped),
        &Once(&stopped),
    );
    let again = again.unwrap();
    assert_eq!(again.jobs[0].status, JobStatus::Interrupted);
    // Nothing begins that was cancelled before.
    let none = run(jobs(&dir, &lines), &options(&dir, 2), &mut (), &Never).unwrap();
    assert!(none.interrupted && none.count(JobStatus::Done) == 0);
    // Without its million epochs it is another job, which begins anew though there is a checkpoint.
    let short = slow.replace("1000000", "6");
    let done = ran(&dir, 2, &[&short, &quick]);
    assert_eq!(
        (done.jobs[0].status, done.jobs[0].resumed_from),
        (JobStatus::Done, 0)
    );
    assert_eq!(done.jobs[1].status, JobStatus::Skipped);
    let log = fs::read_to_string(dir.join("out/slow.log")).unwrap();
    assert!(
        log.contains(r#""error":"cancelled""#) && log.contains(r#""summary":"#),
        "{log}"
    );
}

#[test]
fn interrupted_job_resumes_from_its_checkpoint_bit_for_bit() {
    let dir = Scratch::new("batch-resume");
    data(&dir);
    let line = |id: &str| {
        fit_line(id, r#","algorithm":"als","epochs":200"#)
            .replace(r#""epochs":4,"#, "")
            .replace(r#""test""#, &format!(r#""checkpoint":"@{id}.ckpt","test""#))
    };
    let (whole, cut) = (line("whole"), line("cut"));
    let other = fit_line("other", "");
    // Cancelled when the first of two ends, in the middle of the other.
    let mut seen = Seen {
        stop_after: Some(1),
        ..Seen::default()
    };
    let first = run(
        jobs(&dir, &[&cut, &other]),
        &options(&dir, 2),
        &mut seen,
        &(),
    )
    .unwrap();
    let summary = ran(&dir, 2, &[&cut, &other, &whole]);
    assert_eq!(summary.count(JobStatus::Failed), 0, "{:?}", summary.jobs);
    if first.jobs[0].status == JobStatus::Interrupted && dir.join("cut.ckpt").exists() {
        assert!(
            first.jobs[0].epochs == 0 || summary.jobs[0].resumed_from > 0,
            "{:?}",
            summary.jobs[0]
        );
    }
    assert_eq!(
        numbers(&dir.join("cut.s3m")),
        numbers(&dir.join("whole.s3m"))
    );
}

#[test]
fn unreadable_jobs_or_unwritable_folder_abort_the_batch() -> Result<()> {
    let dir = Scratch::new("batch-errors");
    let how = |folder: &str| BatchOptions::new(dir.join(folder));
    dir.file("file", "");
    assert!(run(jobs(&dir, &[]), &how("file"), &mut (), &()).is_err());
    assert!(Jobs::open(dir.join("none")).is_err() && Jobs::open(dir.path()).is_err());
    let empty = run(jobs(&dir, &["", "# nothing"]), &how("empty"), &mut (), &())?;
    assert!(empty.jobs.is_empty() && !empty.interrupted && empty.threads > 0);
    // Lines that end in the middle of something.
    struct Broken(bool);
    impl std::io::Read for Broken {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other("gone"));
            }
            to[..3].copy_from_slice(b"{}\n");
            Ok(3)
        }
    }
    let mut seen = Seen::default();
    let broken = Jobs::read("the pipe", Broken(false));
    let error = run(broken, &how("broken"), &mut seen, &())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the pipe") && error.contains("gone"),
        "{error}"
    );
    assert_eq!(seen.events.len(), 1, "what was read is run");
    Ok(())
}

#[test]
fn memory_estimate_includes_posterior_samples() {
    let dir = Scratch::new("batch-samples");
    data(&dir);
    let line = |id: &str, samples: u64| {
        fit_line(id, &format!(r#","algorithm":"gibbs","samples":{samples}"#))
    };
    let lines = [line("few", 6), line("many", 206)];
    let summary = ran(&dir, 2, &lines.each_ref().map(String::as_str));
    assert!(summary.jobs.iter().all(|j| j.status == JobStatus::Done));
    let memory = |k: usize| summary.jobs[k].memory as f64;
    // Of the numbers of a sample: 16 bits each and 32 for each row, and its core. Writing takes a copy of all of them.
    let model = model::load(dir.join("many.s3m"), OpenMode::Mapped).unwrap();
    let sample = model.samples().unwrap().iter().next().unwrap();
    let rows = sample.modes.iter().chain([&sample.conditional_means]);
    let rows: usize = rows.map(|rows| rows.len()).sum();
    let one = (rows * (2 * 3 + 4) + 4 * sample.core.len()) as f64;
    assert!(rows > 115 && sample.core.len() == 3 * 3 * 16);
    let thought = (memory(1) - memory(0)) / 200.0;
    assert!(
        thought > 2.0 * one && thought < 3.5 * one,
        "{thought} {one}"
    );
}
