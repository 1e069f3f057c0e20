//! The command-line program, as a library that its `main`, its tests and the program in reproduction/ call. Arguments come in; text or
//! JSON lines and an exit code go out. All computation is in the library `s3cmtf`, of which only the public Rust API is used.
//!
//! - [`program`]: the whole program; `commands/` has one file per command. Start with `commands/mod.rs`, then `commands/fit.rs`.
//! - `bench/`, `demo/`: the largest commands.
//! - [`batch`]: the job runner. [`report`]: the HTML page about a model.
//! - [`file_arguments`]: the files of all commands, and the check of outputs before a command begins.
//! - `input`, `output`, `progress`, `style`: files, standard output, the progress bar and Ctrl-C, colours.
//! - `epoch_table`: the table that `fit` prints.
//! - `help`: the form of help pages.
//! - `option_arguments`, `coupling_spec`, `fit_data`, `fit_observer`: shared by `fit`, `tune`, `batch` and `fold-in`.
//! - `trace_file`: the option `--trace` of `fit` and `bench`.
//! - `process_start`: what has to happen before the Rust runtime starts.
//! - `row_names`, `row_lists`: names of rows and ranked lists of them.
//! - [`number_format`], [`time_shares`]: text of numbers and of shares of time, for the page and for the terminal.
//!
//! Modes and indices are numbered from 1 on the command line and from 0 in the library. This crate is internal to the programs: its
//! API may change in any release.
#![deny(unsafe_code)]

pub mod batch;
mod bench;
mod commands;
mod coupling_spec;
mod demo;
mod epoch_table;
pub mod file_arguments;
mod fit_data;
mod fit_observer;
#[doc(hidden)]
pub mod help;
mod input;
mod interruptible_reader;
pub mod number_format;
mod option_arguments;
#[doc(hidden)]
pub mod outcome;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod peak_memory;
mod process_start;
pub mod program;
#[doc(hidden)]
pub mod progress;
pub mod report;
mod row_lists;
mod row_names;
mod style;
pub mod time_shares;
mod trace_file;
