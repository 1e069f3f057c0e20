//! Parts of the command-line program that can be called without it, so that tests reach them directly.
//!
//! - [`batch`]: the job runner.
//! - [`file_arguments`]: the files of all commands, and the check of outputs before a command begins.
//! - [`number_format`]: text of numbers, for the page and for the terminal.
//! - [`report`]: the HTML page about a model.
//! - [`time_shares`]: text of shares of time, for both.
//!
//! Both use only the public Rust API of the library. This crate is internal to the program: its API may change in any
//! release.
#![deny(unsafe_code)]

pub mod batch;
pub mod file_arguments;
pub mod number_format;
pub mod report;
pub mod time_shares;
