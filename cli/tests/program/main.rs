//! Tests that run the program as a user does, one module per command or subject. Those of the job runner
//! and of the HTML page also call them directly.

#[path = "../../../tests/common/mod.rs"]
mod common;
mod runner;
mod sample_reports;

mod als_gibbs;
mod attribute_tables;
mod batch;
mod batch_resume;
mod batch_runner;
mod bench;
#[cfg(target_os = "linux")]
mod cancel_latency;
mod clusters;
mod commands;
mod convergence;
mod deceptive_names;
mod demo;
mod derived_ids;
#[cfg(target_os = "linux")]
mod endless_inputs;
#[cfg(target_os = "linux")]
mod faults;
mod file_safety;
mod fit;
mod fit_interrupted;
mod fold_in;
mod forged_entries;
mod forged_models;
mod guide;
mod guide_discovery;
mod help;
#[cfg(target_os = "linux")]
mod hostile_numbers;
mod matrix_kinds;
#[cfg(target_os = "linux")]
mod memory_limit;
mod option_reference;
mod outputs;
#[cfg(target_os = "linux")]
mod parser_complexity;
mod pictures;
mod plan;
mod recommend;
mod rejected_files;
mod rejected_text;
mod report;
mod report_in_browser;
mod report_page;
mod row_matching;
mod terminal;
mod text_columns;
mod text_options;
mod trace;
mod tune;
mod unused_options;
mod weights;
#[cfg(target_os = "linux")]
mod wide_modes;
