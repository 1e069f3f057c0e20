//! Tests of the Rust API, one module per subject.

#[path = "../common/mod.rs"]
mod common;

mod biases;
mod blocked;
mod clusters;
mod concepts;
mod conformance;
mod coupling_selection;
mod defaults;
mod fit_edge_cases;
mod fit_lifecycle;
mod fit_planted;
mod fit_real_data;
mod fold_in;
mod fold_in_real_data;
mod full_matrices;
mod generate;
mod gibbs_init;
mod gibbs_noise;
mod interval_coverage;
mod invalid_entries;
mod kernels;
mod large_files;
mod layers;
mod number_ranges;
mod numpy;
mod plans;
mod probit;
mod properties;
mod ranking_metrics;
mod real_data;
mod recommend;
mod recommend_shapes;
mod resume;
mod rowwise;
mod rowwise_results;
mod structure;
mod tune;
mod units;
mod valid_fraction;
mod weights;
