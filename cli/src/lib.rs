//! Parts of the command-line program that can be called without it, so that tests reach them directly.
//!
//! - [`batch`]: the job runner.
//! - [`report`]: the HTML page about a model.
//!
//! They use only the public Rust API of the library. This crate is no interface for other programs: it may change with
//! every version of the program.
#![deny(unsafe_code)]

pub mod batch;
pub mod report;
