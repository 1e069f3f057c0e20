//! Runs this program in another process, so that peak memory is that of one method, and memory or time that run out end only
//! that method.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use s3cmtf::{Error, Monitor, Result};
use serde_json::Value;

/// Time between two looks at the process.
const POLL: Duration = Duration::from_millis(10);

/// What a process printed.
pub(super) struct Run {
    /// The JSON objects on standard output.
    pub objects: Vec<Value>,
    /// The text on standard error.
    pub errors: String,
    pub ending: Ending,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    /// It reported an error.
    Failure,
    /// The system ended it, as it does when memory runs out.
    Killed,
    /// It was ended because it took too long.
    TimedOut,
}

/// Runs this program with `arguments` and `--json`, for at most `seconds`.
pub(super) fn run(arguments: &[String], seconds: f64, monitor: &dyn Monitor) -> Result<Run> {
    let start = |e| Error::io("cannot start this program again", e);
    let program = std::env::current_exe().map_err(start)?;
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
    let ending = wait(&mut child, Instant::now(), limit, monitor);
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (output, errors) = (text(output), text(errors));
    Ok(Run {
        objects: output
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
        errors,
        ending: ending?,
    })
}

fn wait(
    child: &mut Child,
    started: Instant,
    limit: Duration,
    monitor: &dyn Monitor,
) -> Result<Ending> {
    loop {
        let state = child.try_wait();
        if let Some(status) = state.map_err(|e| Error::io("cannot wait for a process", e))? {
            return ending(status);
        }
        let is_late = started.elapsed() >= limit;
        if is_late || monitor.cancelled() {
            // It may have ended meanwhile, which is no failure.
            let _ = child.kill();
            let _ = child.wait();
            return if is_late {
                Ok(Ending::TimedOut)
            } else {
                Err(Error::Cancelled)
            };
        }
        thread::sleep(POLL);
    }
}

/// Returns how a process ended. Ctrl-C on a terminal reaches it as well as this process, so its own interruption is that of
/// both.
fn ending(status: ExitStatus) -> Result<Ending> {
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
        (Some(INTERRUPTED), _) | (None, Some(SIGINT | SIGTERM)) => Err(Error::Cancelled),
        (None, Some(SIGKILL)) => Ok(Ending::Killed),
        _ => Ok(Ending::Failure),
    }
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

    /// Returns the error message, without the word that introduces it.
    pub fn message(&self) -> String {
        let line = self.errors.lines().rfind(|l| l.contains("error:"));
        let line = line.or(self.errors.lines().last()).unwrap_or_default();
        let text = line.split_once("error:").map_or(line, |(_, text)| text);
        text.trim().to_string()
    }
}
