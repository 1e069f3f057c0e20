//! Batches that are cancelled and continued.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch_runner::{
    EventRecorder, fit_line, jobs, options, parameter_bits_of_file, run_lines, statuses, write_data,
};
use crate::common::Scratch;
use s3cmtf::Monitor;
use s3cmtf_cli::batch::{BatchObserver, JobResult, JobStatus, run};

/// A monitor that has been cancelled from the start.
struct AlreadyCancelled;

impl Monitor for AlreadyCancelled {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn cancelled_batch_continues_with_unfinished_jobs() {
    let dir = Scratch::new("batch-cancel");
    write_data(&dir);
    let slow = fit_line("slow", r#","epochs":1000000,"checkpoint_every":1"#)
        .replace(r#""epochs":4,"#, "")
        .replace(r#""test""#, r#""checkpoint":"@c.s3m","test""#);
    let quick = fit_line("quick", "");
    let lines = [
        &slow[..],
        &quick,
        r#"{"job":"predict","model":"@slow.s3m","file":"@t.coo","output":"@p.coo"}"#,
    ];
    // The batch is cancelled after the quick job has ended.
    let mut seen = EventRecorder {
        stop_after: Some(1),
        not_before: Some(dir.join("c.s3m")),
        ..EventRecorder::default()
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
    // The same line continues from the checkpoint. The batch is cancelled as soon as a job starts.
    let stopped = AtomicBool::new(false);
    struct CancelFlag<'a>(&'a AtomicBool);
    impl Monitor for CancelFlag<'_> {
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
        &CancelFlag(&stopped),
    );
    let again = again.unwrap();
    assert_eq!(again.jobs[0].status, JobStatus::Interrupted);
    // A batch that is cancelled before it starts runs no jobs.
    let none = run(
        jobs(&dir, &lines),
        &options(&dir, 2),
        &mut (),
        &AlreadyCancelled,
    )
    .unwrap();
    assert!(none.interrupted && none.count(JobStatus::Done) == 0);
    // With another number of epochs it is another job, which ignores the checkpoint.
    let short = slow.replace("1000000", "6");
    let done = run_lines(&dir, 2, &[&short, &quick]);
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
    write_data(&dir);
    let line = |id: &str| {
        fit_line(id, r#","algorithm":"als","epochs":200"#)
            .replace(r#""epochs":4,"#, "")
            .replace(r#""test""#, &format!(r#""checkpoint":"@{id}.ckpt","test""#))
    };
    let (whole, interrupted) = (line("whole"), line("cut"));
    let other = fit_line("other", "");
    // The batch is cancelled when the other job ends.
    let mut seen = EventRecorder {
        stop_after: Some(1),
        ..EventRecorder::default()
    };
    let first = run(
        jobs(&dir, &[&interrupted, &other]),
        &options(&dir, 2),
        &mut seen,
        &(),
    )
    .unwrap();
    let summary = run_lines(&dir, 2, &[&interrupted, &other, &whole]);
    assert_eq!(summary.count(JobStatus::Failed), 0, "{:?}", summary.jobs);
    if first.jobs[0].status == JobStatus::Interrupted && dir.join("cut.ckpt").exists() {
        assert!(
            first.jobs[0].epochs == 0 || summary.jobs[0].resumed_from > 0,
            "{:?}",
            summary.jobs[0]
        );
    }
    assert_eq!(
        parameter_bits_of_file(&dir.join("cut.s3m")),
        parameter_bits_of_file(&dir.join("whole.s3m"))
    );
}
