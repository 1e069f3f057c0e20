//! The Trace Event Format: an object whose list `traceEvents` has an event for every span, and the names of processes and
//! threads.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::Arc;

use super::process::Process;
use crate::printable::is_deceptive;

/// Writes the spans of all processes.
pub(super) fn write_json(
    processes: &[Arc<Process>],
    dropped_spans: u64,
    file: &mut dyn Write,
) -> io::Result<()> {
    write!(
        file,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"library\":\"s3cmtf {}\",\"dropped_spans\":{dropped_spans}}},\n\
         \"traceEvents\":[",
        env!("CARGO_PKG_VERSION")
    )?;
    let mut separator = "\n";
    for (number, process) in processes.iter().enumerate() {
        let pid = number + 1;
        let name = JsonString(&process.name);
        write!(
            file,
            "{separator}{{\"ph\":\"M\",\"pid\":{pid},\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{name}}}}}"
        )?;
        separator = ",\n";
        for track in process.tracks() {
            let tid = track.number;
            let thread = match tid {
                0 => "calling thread".into(),
                worker => format!("thread {worker}"),
            };
            write!(
                file,
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"{thread}\"}}}}\
                 ,\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{tid}}}}}"
            )?;
            for span in &track.spans().spans {
                let name = span.kind.name();
                let (start, duration) = (
                    Microseconds(span.start),
                    Microseconds(span.end - span.start),
                );
                write!(
                    file,
                    ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{name}\",\"ts\":{start},\"dur\":{duration}"
                )?;
                if let Some(number) = span.number {
                    write!(file, ",\"args\":{{\"number\":{number}}}")?;
                }
                write!(file, "}}")?;
            }
        }
    }
    writeln!(file, "\n]}}")
}

/// Nanoseconds, displayed exactly as microseconds.
struct Microseconds(u64);

impl Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text, displayed as a JSON string.
struct JsonString<'a>(&'a str);

impl Display for JsonString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if is_deceptive(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_times_are_valid_json() {
        assert_eq!(
            JsonString("a \"b\"\\\n\u{7f}é").to_string(),
            "\"a \\\"b\\\"\\\\\\u000a\\u007fé\""
        );
        assert_eq!(Microseconds(1_002_003).to_string(), "1002.003");
    }
}
