//! The reproduction of the measurements of the S3CMTF paper, and the algorithms that it compares with.
//!
//! - [`algorithms`]: SALS-single, CMTF-OPT and CMTF-Tucker-ALS, as algorithms that `s3cmtf::solver::fit` runs once options know them
//!   ([`options`]).
//! - [`program`]: the program; `reproduce` describes how it measures.
#![deny(unsafe_code)]

pub mod algorithms;
pub mod program;

mod accuracy;
mod arguments;
mod budget;
mod chart;
mod child;
mod claims;
mod cores;
mod data_sets;
mod figure;
mod figures;
mod gap;
mod iteration_time;
// One index runs over several arrays in most loops. Kernels without vectors of their own are compiled per instruction set, too.
#[allow(clippy::needless_range_loop, clippy::extra_unused_type_parameters)]
mod kernels;
mod machine;
mod methods;
mod report;
mod reproduce;
mod scaling;
mod session;
mod store;

pub use algorithms::{ALGORITHMS, options};
