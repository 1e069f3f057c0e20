//! Factorizes a sparse tensor together with coupled sparse matrices, from observed entries only.
//!
//! Each layer imports only layers before it:
//!
//! - [`error`], [`progress`]: the error type, progress reports and cancellation
//! - [`trace`]: where the time of a fit goes, for Perfetto
//! - [`parallel`]: thread pool, pinning, reductions that do not depend on the thread count
//! - [`simd`], [`kernel`]: vector types and the arithmetic of updates, on slices and pointers alone
//! - [`mod@format`]: binary COO files, text import, checks, splits
//! - [`options`]: the one table of fit options
//! - [`problem`]: a validated tensor with its coupled matrices
//! - [`fit_plan`]: what a fit does, decided before it trains
//! - [`model`]: fitted models in memory and on disk
//! - [`solver`]: the algorithms that fit a model to a problem
//! - [`generate`]: synthetic data with a known model
//! - [`predict`]: predictions, intervals, errors, export
//! - [`discover`]: recommendations, similar rows, concepts, clusters
//! - [`ffi`]: the C interface
//!
//! `docs/architecture.md` shows how they work together. From text to a validated problem:
//!
//! ```
//! use s3cmtf::format::{self, CooFile, Input, OpenMode, TextOptions};
//! use s3cmtf::problem::Problem;
//! # fn main() -> s3cmtf::Result<()> {
//! let text = b"# user item month rating\n1 1 1 4.5\n1 3 2 2\n2 1 1 5\n";
//! let dir = std::env::temp_dir().join(format!("s3cmtf-lib-{}", std::process::id()));
//! std::fs::create_dir_all(&dir).unwrap();
//! let coo = dir.join("ratings.coo");
//!
//! let input = Input::Reader { name: "ratings".into(), reader: Box::new(&text[..]) };
//! format::convert(input, &coo, &TextOptions::default(), &())?;
//! let file = CooFile::open(&coo, OpenMode::Mapped)?;
//! let problem = Problem::builder(file.view()).build(&())?;
//! assert_eq!(problem.count(), 3);
//! assert_eq!(problem.modes()[1].indices(), [0, 2]);
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod discover;
pub mod ffi;
pub mod fit_plan;
pub mod format;
pub mod generate;
pub mod memory;
pub mod model;
pub(crate) mod nearest_name;
pub(crate) mod normal_distribution;
pub mod options;
pub mod predict;
pub mod problem;
pub mod solver;
pub mod trace;

pub(crate) use s3cmtf_kernel::{cache_line, linalg, random, sort, try_alloc, value_range};
pub use s3cmtf_kernel::{error, printable};

/// Cores, the kernels for single entries, and the probe of the machine's peak. Fits use further kernels of the crate
/// `s3cmtf_kernel`.
pub mod kernel {
    pub(crate) use s3cmtf_kernel::kernel::*;
    pub use s3cmtf_kernel::kernel::{
        CoreKind, CoreShape, EntryChunk, MAX_ORDER, Method, TensorKernel, hogwild_rows, peak_flops,
        reference,
    };
}

/// Threads, and parallel work whose result does not depend on the thread count.
pub mod parallel {
    pub(crate) use s3cmtf_kernel::parallel::*;
    pub use s3cmtf_kernel::parallel::{
        MAX_THREADS, StopFlag, available_threads, cpus_for_concurrent_jobs, restrict_to_cpus,
        run_ordered, spawn, spawn_scoped, thread_count,
    };
}

/// Progress reports and cancellation of long operations.
pub mod progress {
    pub(crate) use s3cmtf_kernel::progress::*;
    pub use s3cmtf_kernel::progress::{Monitor, StopFlag};
}

/// Instruction sets that kernels are compiled for, and the length of rows.
pub mod simd {
    pub(crate) use s3cmtf_kernel::simd::*;
    pub use s3cmtf_kernel::simd::{LANES, LEVEL_VARIABLE, Level, padded_len};
}

/// What an algorithm of another crate is made of. Nothing here is part of the interface of the library.
#[doc(hidden)]
pub mod internals {
    pub use crate::model::{FactorMatrix, Model, ModelMode, RowPrior};
    pub use crate::solver::internals::*;
}

pub use error::{Error, ErrorKind, Result};
pub use progress::Monitor;
pub use value_range::ValueRange;

/// Version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
