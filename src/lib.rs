//! Factorizes a sparse tensor together with coupled sparse matrices.
//!
//! The layers, each importing only those before it: [`error`], [`mod@format`] (files), [`problem`] (a
//! validated tensor with its matrices), [`model`], [`kernel`] (arithmetic), [`schedule`] (threads),
//! [`solver`], [`generate`] (planted data), [`analysis`], [`discover`]
//! (rankings, likeness), [`report`] (a page to look at), [`batch`] (many jobs). `docs/architecture.md` is the map.
//!
//! From text to a validated problem:
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

pub mod batch;
pub mod discover;
pub mod error;
pub mod ffi;
pub mod format;
pub mod generate;
pub(crate) mod json;
pub mod kernel;
pub(crate) mod linalg;
pub mod model;
pub mod options;
pub mod parallel;
pub mod predict;
pub mod problem;
pub mod progress;
pub(crate) mod random;
pub mod report;
pub mod simd;
pub mod solver;
pub(crate) mod sort;
pub(crate) mod try_alloc;

pub use error::{Error, ErrorKind, Result};
pub use progress::Monitor;

/// The version of this library, as in `Cargo.toml`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
