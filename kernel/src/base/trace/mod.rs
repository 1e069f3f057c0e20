//! Traces of where the time of a fit goes: spans of named work on every thread, written in the Trace Event Format, which
//! Perfetto and `chrome://tracing` open.
//!
//! [`Trace::record`] runs a closure and records the spans of the calling thread and of the threads that work for it.
//! Library code marks its work with [`span`]; outside of a recording that costs one check of a thread-local variable.
//! Spans mark blocks of entries, rows or phases, never single entries.
//!
//! - `span_kind`: the names of spans.
//! - `process`: the spans of one recording, by thread.
//! - `recorder`: the thread-local state, and the guards that record spans. Open this first.
//! - `chrome`: the file format.

mod chrome;
mod process;
mod recorder;
mod span_kind;

pub use process::PhaseTime;
pub(crate) use recorder::ParallelRegion;
pub use recorder::{Span, Trace, numbered_span, span, thread_seconds};
pub use span_kind::SpanKind;
