//! Tests of the baselines, one module per subject.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod cmtf_opt;
mod conformance;
mod fold_in_zero_filled;
mod sals;
mod support;
mod tucker_als;
mod tune;
