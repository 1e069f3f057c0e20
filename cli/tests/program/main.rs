//! Tests that run the program as a user does, one module per command or subject.

#[path = "../../../tests/common/mod.rs"]
mod common;
mod runner;

mod als_gibbs;
mod batch;
mod bench;
mod clusters;
mod commands;
mod demo;
mod file_safety;
mod fit;
mod fit_interrupted;
mod fold_in;
mod matrix_kinds;
mod recommend;
mod rejected_files;
mod rejected_text;
mod report;
mod text_options;
mod tune;
mod weights;
