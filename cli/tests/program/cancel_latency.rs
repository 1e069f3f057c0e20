//! Measures how soon commands with large inputs stop after an interrupt. An interrupted fit prints a warning when it has
//! stopped, and then saves its model, which takes as long as the disk needs: the time until the warning counts. For other commands
//! the time until their end counts. Only in the long form (`CONTRIBUTING.md` has its command); the short form counts operations
//! between two polls (`tests/cancellation.rs`). Every command has two threads, and half as many commands run at once as there
//! are CPUs.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::Scratch;
use crate::fit_interrupted::has_interrupt_handler;
use crate::runner::{expand_paths, program, run, signal};

/// The longest that a command runs before it is interrupted.
const MAX_DELAY: Duration = Duration::from_secs(12);

/// The longest permitted time from an interrupt until a command has stopped.
const MAX_LATENCY: Duration = Duration::from_secs(1);

/// Number of interrupts of each command, at equal distances.
const POINTS: u32 = 6;

/// A command that runs.
struct Running {
    child: Child,
    /// Returns the times of the warnings and errors that it printed.
    messages: JoinHandle<Vec<Instant>>,
}

impl Running {
    fn start(dir: &Scratch, arguments: &[&str]) -> Running {
        let mut child = program()
            .args(expand_paths(dir, arguments))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let messages = std::thread::spawn(move || {
            let is_message =
                |line: &String| line.starts_with("warning:") || line.starts_with("error:");
            let lines = stderr.lines().map_while(Result::ok);
            lines.filter(is_message).map(|_| Instant::now()).collect()
        });
        while !has_interrupt_handler(&child) {
            std::thread::yield_now();
        }
        Running { child, messages }
    }

    /// Waits until the command ends, but no longer than `limit`. Returns whether it has ended.
    fn ends_within(&mut self, limit: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < limit {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Interrupts the command. Returns its status, and the time until it said that it was stopped, or else ended.
    fn interrupt(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        signal(&self.child, "-INT");
        let status = self.child.wait().unwrap();
        let end = Instant::now();
        let messages = self.messages.join().unwrap();
        let stopped = messages.into_iter().find(|&time| time >= began);
        (status, stopped.unwrap_or(end) - began)
    }
}

/// Interrupts a command at several points of its run and returns the longest time until it stops, if it was still running.
fn longest_latency(dir: &Scratch, arguments: &[&str]) -> Option<Duration> {
    let began = Instant::now();
    let mut command = Running::start(dir, arguments);
    let has_ended = command.ends_within(MAX_DELAY);
    let duration = began.elapsed();
    if has_ended {
        let status = command.child.wait().unwrap();
        assert!(status.success(), "{arguments:?}: {status}");
    } else {
        command.interrupt();
    }
    let mut longest = None;
    for point in 0..POINTS {
        let mut command = Running::start(dir, arguments);
        if command.ends_within(duration * (2 * point + 1) / (2 * POINTS)) {
            continue;
        }
        let (status, latency) = command.interrupt();
        longest = longest.max(Some(latency));
        assert!(
            matches!(status.code(), Some(0 | 130)),
            "{arguments:?}: {status}"
        );
    }
    longest
}

#[test]
fn commands_on_large_shapes_stop_soon_after_an_interrupt() {
    if std::env::var_os("S3CMTF_LONG_TESTS").is_none_or(|v| v != "1") {
        println!("skipped: only with S3CMTF_LONG_TESTS=1");
        return;
    }
    let dir = Scratch::new("cancel-latency");
    let index = |i: u64, mode: u64| 1 + (i * (2 * mode + 7)).wrapping_mul(0x9E37_79B9) / 64 % 12;
    let line = |i: u64| {
        let row: Vec<String> = (0..8).map(|mode| index(i, mode).to_string()).collect();
        format!("{} {}\n", row.join(" "), i % 5)
    };
    dir.file("core.tns", (0..2000).map(line).collect::<String>());
    let mut large = String::new();
    for i in 0..3_000_000_u64 {
        let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let row = [hash % 200_000, (hash >> 24) % 20_000, (hash >> 48) % 50].map(|x| x + 1);
        let [user, item, month] = row;
        writeln!(large, "{user} {item} {month} {}", i % 5).unwrap();
    }
    dir.file("large.tns", large);
    // A model with the largest core from few entries, and one with many rows.
    dir.file("few.tns", (0..40).map(line).collect::<String>());
    for list in [
        "convert @core.tns @core.coo",
        "fit --tensor=@few.tns --model=tucker --rank=8 --start=normal --epochs=1 -o@core.s3m",
        "convert @large.tns @large.coo",
        "fit --tensor=@large.coo --model=cp --rank=128 --start=normal --epochs=1 -o@large.s3m",
    ] {
        let arguments: Vec<&str> = list.split(' ').collect();
        run(expand_paths(&dir, &arguments)).ok();
    }
    let mut commands = Vec::new();
    for algorithm in ["blocked", "opt", "naive", "als", "gibbs"] {
        for start in ["auto", "normal"] {
            let model = format!("--model=tucker --rank=8 --start={start}");
            commands.push(format!(
                "fit --tensor=@core.coo {model} --algorithm={algorithm} --threads=2 -o@m.s3m"
            ));
        }
    }
    let others = [
        "fit --tensor=@large.coo --model=cp --rank=128 --threads=2 -o@m.s3m",
        "tune --tensor=@core.coo --model=tucker --rank=8 --threads=2 -o@c.txt",
        "predict @core.s3m @core.coo --threads=2 -o@p.coo",
        "predict @large.s3m @large.coo --threads=2 -o@p.coo",
        "eval @large.s3m @large.coo --threads=2",
        "export @core.s3m -o@e",
        "export @large.s3m -o@e",
        "concepts @core.s3m --mode=1",
        "concepts @large.s3m --mode=1",
        "clusters @core.s3m --mode=1 --threads=2",
        "clusters @large.s3m --mode=1 --threads=2",
        "report @large.s3m --data=@large.coo --threads=2 -o@r.html",
        "recommend @large.s3m --mode=2 --for=1:all --csv --threads=2",
        "similar @large.s3m --for=1:all --csv --threads=2",
        "fold-in @large.s3m --mode=1 --tensor=@large.coo --replace --threads=2 -o@f.s3m",
        "convert @large.tns @c.coo",
        "split @large.coo -o@s",
        "check @large.coo --fix=@x.coo",
        "info @large.coo",
    ];
    commands.extend(others.map(String::from));

    // Each worker takes the next command until none is left. The number of a command keeps its outputs apart.
    let num_workers = (std::thread::available_parallelism().unwrap().get() / 2).max(1);
    let next = AtomicUsize::new(0);
    let latencies = Mutex::new(vec![None; commands.len()]);
    std::thread::scope(|scope| {
        for _ in 0..num_workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(command) = commands.get(number) else {
                        return;
                    };
                    let command = command.replace("-o@", &format!("-o@{number}-"));
                    let arguments: Vec<&str> = command.split(' ').collect();
                    let latency = longest_latency(&dir, &arguments);
                    latencies.lock().unwrap()[number] = latency;
                }
            });
        }
    });
    let latencies = latencies.into_inner().unwrap();
    for (command, latency) in commands.iter().zip(&latencies) {
        let shown = latency.map_or("ended before".into(), |l| {
            format!("{:.2} s", l.as_secs_f64())
        });
        println!("{shown:>12}  {command}");
    }
    assert!(
        latencies.iter().flatten().all(|&l| l <= MAX_LATENCY),
        "a command ran for more than {MAX_LATENCY:?} after an interrupt"
    );
}
