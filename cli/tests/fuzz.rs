//! The short form of fuzzing: every target on its corpus and on seeded mutations of it. `fuzz/run` is the long form.
//!
//! A process of its own, because a target changes the current folder.

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../fuzz/targets/mod.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use common::Scratch;
use targets::mutation::{Random, mutate, mutate_bytes};
use targets::{TARGETS, Target};

/// Mutations of each file of a corpus.
const MUTATIONS: u64 = 40;
/// Longest input.
const MAX_LEN: usize = 16384;

/// Returns the names and the bytes of the files of a corpus, sorted by name.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = corpus_folder(target);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    };
    files.iter().map(read).collect()
}

fn corpus_folder(target: &Target) -> PathBuf {
    common::workspace_root()
        .join("fuzz/corpus")
        .join(target.name)
}

/// Runs a target. If it panics, the input is printed.
fn run(target: &Target, what: &str, input: &[u8], folder: &Path) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input, folder)));
    if let Err(panic) = result {
        eprintln!("target {}: {what}: {}", target.name, input.escape_ascii());
        resume_unwind(panic);
    }
}

#[test]
fn targets_accept_their_corpora_and_mutations_of_them() {
    let scratch = Scratch::new("fuzz");
    std::thread::scope(|scope| {
        for target in &TARGETS {
            let folder = scratch.join(target.name);
            scope.spawn(move || {
                fs::create_dir_all(&folder).unwrap();
                let corpus = corpus(target);
                assert!(corpus.len() >= 4, "the corpus of {}", target.name);
                for (name, original) in &corpus {
                    run(target, name, original, &folder);
                    for seed in 0..MUTATIONS {
                        let mut input = original.clone();
                        let mut random = Random(seed ^ u64::from(crc32fast::hash(name.as_bytes())));
                        let mut bytes = Random(random.next());
                        let mut raw =
                            |b: &mut Vec<u8>, max: usize| mutate_bytes(b, max, &mut bytes);
                        mutate(target.layout, &mut input, MAX_LEN, &mut random, &mut raw);
                        run(
                            target,
                            &format!("mutation {seed} of {name}"),
                            &input,
                            &folder,
                        );
                    }
                }
            });
        }
    });
    // The folder of a target is the current one, and is removed now.
    std::env::set_current_dir(common::workspace_root()).unwrap();
}

/// Writes the inputs to start from. Inputs that failed once stay.
#[test]
#[ignore = "writes into fuzz/corpus"]
fn write_corpora() {
    let scratch = Scratch::new("corpora");
    for target in &TARGETS {
        let folder = corpus_folder(target);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in (target.seeds)(scratch.path()) {
            assert!(
                bytes.len() <= 8192,
                "{} {name}: {}",
                target.name,
                bytes.len()
            );
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
