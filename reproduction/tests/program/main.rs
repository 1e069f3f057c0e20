//! The program as a user runs it.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "../../../cli/tests/program/runner.rs"]
#[allow(dead_code)]
mod runner;

mod options;
mod readme;
mod recorded;
mod reproduce;
