//! A report on a fitted model: one self-contained HTML page.
//!
//! A [`Model`](s3cmtf::model::Model) enters, with [`ReportOptions`] that add data, names and labels. [`report`] returns
//! the page as a string, and [`write_report`] writes it to a file. `page.rs` assembles the sections and is the file to
//! open first; each section has a file of its own (`data`, `convergence`, `parameters`, `concepts`, `clusters`,
//! `settings`); `time_shares` is part of the section on speed.
//!
//! The page holds its style sheet and its SVG charts and has no script, so that it opens from a disk without a network,
//! and prints. All text from data or files is escaped. Long lists are truncated and large tables are pooled, so that
//! large models give small pages; the page says where it does so.

mod bar_chart;
mod clusters;
mod concepts;
mod context;
mod convergence;
mod data;
mod heat_map;
mod html;
mod line_chart;
mod options;
mod page;
mod parameters;
mod settings;
mod svg_frame;
mod time_shares;

pub use options::ReportOptions;
pub use page::{report, write_report};
