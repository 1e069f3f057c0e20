//! Runs this program in another process, so that peak memory is that of one method, and memory or time that run out end only
//! that method.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use s3cmtf::{Error, Monitor, Result};
use serde_json::Value;

use super::store::{FAILED, NOT_SUPPORTED, OK, OUT_OF_MEMORY, OUT_OF_TIME};
use s3cmtf_cli::peak_memory::peak_memory_bytes;

/// Time between two looks at the process.
const POLL: Duration = Duration::from_millis(10);

/// What a process printed.
pub(super) struct Run {
    /// The JSON objects on standard output.
    pub objects: Vec<Value>,
    /// The text on standard error.
    pub errors: String,
    pub ending: Ending,
    /// The peak memory, as far as it was seen while the process ran.
    pub peak_memory_bytes: Option<u64>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    /// It refused its arguments or its data.
    Refused,
    /// The system reported an error, or a signal ended it.
    Failure,
    /// The system ended it because memory ran out.
    OutOfMemory,
    /// It was ended because it took too long.
    TimedOut,
}

/// Runs this program with `arguments` and `--json`, for at most `seconds`.
pub(super) fn run(arguments: &[String], seconds: f64, monitor: &dyn Monitor) -> Result<Run> {
    let start = |e| Error::io("cannot start this program again", e);
    let program = std::env::current_exe().map_err(start)?;
    let kills = out_of_memory_kills();
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    let output = read_in_background(child.stdout.take());
    let errors = read_in_background(child.stderr.take());
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let mut peak = None;
    let status = wait(&mut child, limit, monitor, &mut peak);
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (output, errors) = (text(output), text(errors));
    Ok(Run {
        objects: output
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
        errors,
        ending: match status? {
            Some(status) => ending(status, kills)?,
            None => Ending::TimedOut,
        },
        peak_memory_bytes: peak,
    })
}

/// Waits until a process ends. Ends it after `limit`, and then returns `None`.
fn wait(
    child: &mut Child,
    limit: Duration,
    monitor: &dyn Monitor,
    peak: &mut Option<u64>,
) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    let process = child.id().to_string();
    loop {
        let state = child.try_wait();
        if let Some(status) = state.map_err(|e| Error::io("cannot wait for a process", e))? {
            return Ok(Some(status));
        }
        *peak = peak_memory_bytes(&process).max(*peak);
        let is_late = started.elapsed() >= limit;
        if is_late || monitor.cancelled() {
            // It may have ended meanwhile, which is no failure.
            let _ = child.kill();
            let _ = child.wait();
            return if is_late {
                Ok(None)
            } else {
                Err(Error::Cancelled)
            };
        }
        thread::sleep(POLL);
    }
}

/// Returns how a process ended that this one did not end. `kills` is the number of processes that the system had ended for want
/// of memory before. Ctrl-C on a terminal reaches this process as well, so an interruption is that of both.
fn ending(status: ExitStatus, kills: Option<u64>) -> Result<Ending> {
    const REFUSED: i32 = 2;
    const INTERRUPTED: i32 = 130;
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    const SIGINT: i32 = 2;
    const SIGKILL: i32 = 9;
    const SIGTERM: i32 = 15;
    match (status.code(), signal) {
        (Some(0), _) => Ok(Ending::Success),
        (Some(REFUSED), _) => Ok(Ending::Refused),
        (Some(INTERRUPTED), _) | (None, Some(SIGINT | SIGTERM)) => Err(Error::Cancelled),
        (None, Some(SIGKILL)) if kills.is_none() || out_of_memory_kills() > kills => {
            Ok(Ending::OutOfMemory)
        }
        _ => Ok(Ending::Failure),
    }
}

/// Returns the number of processes that the system has ended for want of memory, on Linux.
fn out_of_memory_kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    let count = counters.lines().find_map(|l| l.strip_prefix("oom_kill "))?;
    count.trim().parse().ok()
}

fn read_in_background(source: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            // What was read before a failure is kept.
            let _ = source.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Run {
    /// Returns the object with this key, such as the summary.
    pub fn object(&self, key: &str) -> Option<&Value> {
        self.objects.iter().find_map(|o| o.get(key))
    }

    /// Returns the status of a measurement that ended like this.
    pub fn status(&self) -> &'static str {
        match self.ending {
            Ending::Success => OK,
            Ending::TimedOut => OUT_OF_TIME,
            Ending::OutOfMemory => OUT_OF_MEMORY,
            Ending::Failure if self.message().contains("memory") => OUT_OF_MEMORY,
            // The time was up before the first epoch.
            Ending::Refused if self.message().starts_with("time_limit") => OUT_OF_TIME,
            Ending::Refused if self.message().contains("diverge") => FAILED,
            Ending::Refused => NOT_SUPPORTED,
            Ending::Failure => FAILED,
        }
    }

    /// Returns why it did not succeed: its error message, without the word that introduces it, or how it was ended.
    pub fn message(&self) -> String {
        match self.ending {
            Ending::TimedOut => return "it took longer than its time limit".into(),
            Ending::OutOfMemory => return "the system ended it because memory ran out".into(),
            _ => {}
        }
        let line = self.errors.lines().rfind(|l| l.contains("error:"));
        let line = line.or(self.errors.lines().last()).unwrap_or_default();
        let text = line.split_once("error:").map_or(line, |(_, text)| text);
        match text.trim() {
            "" => "a signal ended it".into(),
            text => text.into(),
        }
    }
}
