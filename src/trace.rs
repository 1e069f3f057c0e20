//! Traces of where the time of a fit goes: spans of named work on every thread, written in the Trace Event Format, which
//! Perfetto and `chrome://tracing` open.
//!
//! [`Trace::record`] runs a closure and records the spans of the calling thread and of the threads that work for it.
//! Library code marks its work with [`span`]; outside of a recording that costs one check of a thread-local variable.
//! Spans mark blocks of entries, rows or phases, never single entries.
//!
//! ```
//! use s3cmtf::format::{CooView, Values, write_atomically};
//! use s3cmtf::options::Options;
//! use s3cmtf::problem::Problem;
//! use s3cmtf::solver::{FitInput, fit};
//! use s3cmtf::trace::Trace;
//! # fn main() -> s3cmtf::Result<()> {
//! # let (user, film, month) = ([0, 0, 1, 1, 2, 2], [0, 1, 0, 2, 1, 2], [0, 1, 1, 0, 0, 1]);
//! # let stars = Values::F32(&[5.0, 3.0, 4.0, 1.0, 3.0, 2.0]);
//! # let ratings = CooView::new("ratings", &[3, 3, 2], &[&user, &film, &month], stars)?;
//! # let options = Options::preset("paper")?;
//! let trace = Trace::new();
//! let (model, _) = trace.record("fit", || {
//!     let problem = Problem::builder(ratings).build(&())?;
//!     fit(&problem, &options, &FitInput::default(), &mut (), &())
//! })?;
//! # let dir = std::env::temp_dir().join(format!("s3cmtf-trace-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let path = dir.join("trace.json");
//! write_atomically(&path, |file| trace.write_json(file))?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # drop(model);
//! # Ok(())
//! # }
//! ```

pub(crate) use s3cmtf_kernel::trace::*;
pub use s3cmtf_kernel::trace::{PhaseTime, Span, SpanKind, Trace, numbered_span, span};
