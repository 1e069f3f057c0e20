//! Golden results: hashes of fitted models, of their predictions and of what the other commands print, for a matrix
//! of cases at every kernel level. A change of the code that is meant to keep the arithmetic must keep all of them.
//!
//! The cases run the program, so they depend on command-line options and file formats only. Each case fits a model
//! to planted data from `generate` and hashes the exported files and the predictions of the test entries.
//! Algorithms whose result is independent of the thread count also run with two threads, at the first or the last
//! level, and must agree with one; `opt` and `naive` update rows without locks and run with one thread.
//!
//! The expected results are in `cli/tests/golden/<architecture>-<system>.tsv`, because the mathematical functions of the
//! C library and the portable vectors round differently elsewhere. A line has five columns separated by tabs: case,
//! kernel level (`any` for generated data), model hash (for a command: hash of its output), prediction hash, test
//! RMSE. The RMSE shows whether a new summation order changed a result by rounding alone.
//!
//! To record the results again:
//!
//! ```text
//! S3CMTF_RECORD_GOLDEN=1 cargo test --release -p s3cmtf-cli --test golden
//! ```
//!
//! Lines of kernel levels that this machine lacks stay as they are.

#[path = "golden/cases.rs"]
mod cases;
#[path = "golden/harness.rs"]
mod harness;

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "takes minutes without optimization; run it with --release"
)]
fn results_are_the_recorded_ones() {
    harness::check(&harness::Golden {
        program: env!("CARGO_BIN_EXE_s3cmtf"),
        folder: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"),
        data: cases::DATA,
        cases: cases::all(),
    });
}
