//! Runs a fuzz target with libFuzzer. The environment variable S3CMTF_FUZZ_TARGET names it.
#![no_main]

#[path = "../targets/mod.rs"]
mod targets;

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

use targets::mutation::{Random, mutate};
use targets::{TARGETS, Target};

/// Returns the target, and the folder for its files, which becomes the current one.
fn target() -> &'static (&'static Target, PathBuf) {
    static CHOSEN: OnceLock<(&'static Target, PathBuf)> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("S3CMTF_FUZZ_TARGET").unwrap_or_default();
        let names = TARGETS.map(|target| target.name).join(", ");
        let target = TARGETS.iter().find(|target| target.name == name);
        let target = target.unwrap_or_else(|| panic!("S3CMTF_FUZZ_TARGET must be one of {names}"));
        let folder = std::env::temp_dir().join(format!("s3cmtf-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        (target, folder)
    })
}

fuzz_target!(|input: &[u8]| {
    let (target, folder) = target();
    (target.run)(input, folder);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut input = data[..size].to_vec();
    let mut random = Random(u64::from(seed));
    let mut mutate_bytes = |bytes: &mut Vec<u8>, max_len: usize| {
        let (len, max_len) = (bytes.len().min(max_len), max_len.max(1));
        bytes.resize(max_len, 0);
        let len = fuzzer_mutate(bytes, len, max_len);
        bytes.truncate(len);
    };
    let layout = target().0.layout;
    mutate(layout, &mut input, max_size, &mut random, &mut mutate_bytes);
    data[..input.len()].copy_from_slice(&input);
    input.len()
});
