//! Fuzz targets: functions that take any bytes and must return.
//!
//! A target fails by a panic, a sanitizer's report, too much memory or too much time. It panics if accepted input does not
//! survive a round trip, or if a saved model cannot be loaded, which is the case if it holds a value that is not finite.
//!
//! Two programs use them. `fuzz/src/main.rs` is the fuzzer, with libFuzzer. `cli/tests/fuzz.rs` is a test, with mutations from
//! fixed seeds.
//!
//! A target may refuse an input that is too large to process quickly, but only after parsing, so that the parser still sees
//! every input.

mod batch;
mod checkpoint;
mod coo;
mod ffi;
pub mod fields;
#[path = "../../tests/common/forged_model.rs"]
#[allow(dead_code)]
pub mod forged_model;
mod model;
pub mod mutation;
mod names;
mod options;
pub mod sample;
mod text;

use std::path::Path;

use mutation::Layout;

/// A fuzz target.
pub struct Target {
    /// Its name, which is also that of its folder of the corpus.
    pub name: &'static str,
    /// Runs the target on an input, and returns whether the input was accepted. Files are written only into the folder.
    pub run: fn(&[u8], &Path) -> bool,
    /// The layout that mutations preserve.
    pub layout: Layout,
    /// Inputs to start from, made with the library.
    #[allow(dead_code, reason = "only the tests use it")]
    pub seeds: fn(&Path) -> Seeds,
}

/// Names and bytes of inputs.
pub type Seeds = Vec<(&'static str, Vec<u8>)>;

/// All targets.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "coo",
        run: coo::run,
        layout: Layout::Coo,
        seeds: coo::seeds,
    },
    Target {
        name: "model",
        run: model::run,
        layout: Layout::Sections,
        seeds: model::seeds,
    },
    Target {
        name: "checkpoint",
        run: checkpoint::run,
        layout: Layout::Sections,
        seeds: checkpoint::seeds,
    },
    Target {
        name: "text",
        run: text::run,
        layout: Layout::Bytes,
        seeds: text::seeds,
    },
    Target {
        name: "names",
        run: names::run,
        layout: Layout::Bytes,
        seeds: names::seeds,
    },
    Target {
        name: "batch",
        run: batch::run,
        layout: Layout::Bytes,
        seeds: batch::seeds,
    },
    Target {
        name: "options",
        run: options::run,
        layout: Layout::Bytes,
        seeds: options::seeds,
    },
    Target {
        name: "ffi",
        run: ffi::run,
        layout: Layout::Bytes,
        seeds: ffi::seeds,
    },
];
