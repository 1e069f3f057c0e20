//! The short form of fuzzing: every target on its corpus and on seeded mutations of it. `fuzz/run` is the long form.
//!
//! Targets change the current folder of the process, so this is a program of its own with a single test.
//!
//! ```text
//! S3CMTF_BLESS=1 cargo test --release -p s3cmtf-cli --test fuzz   # writes the seeds of all targets into fuzz/corpus
//! ```

#[path = "../../fuzz/targets/mod.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use targets::fields::FieldChange;
use targets::forged_model::ForgedModel;
use targets::mutation::{Layout, Random, mutate, mutate_bytes};
use targets::sample::KIND_OPTIONS;
use targets::{Seeds, TARGETS, Target};

/// Mutations of each file of a corpus.
const MUTATIONS: u64 = 40;
/// Most memory that the process may have used.
const MAX_PEAK_KIB: u64 = 1 << 19;
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

fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn corpus_folder(target: &Target) -> PathBuf {
    workspace_root().join("fuzz/corpus").join(target.name)
}

/// Writes the seeds of a target into its corpus. Other files of the corpus, such as inputs that failed once, stay.
fn write_seeds(target: &Target, seeds: &Seeds) {
    let folder = corpus_folder(target);
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in seeds {
        let len = bytes.len();
        assert!(len <= MAX_LEN, "{} {name}: {len} bytes", target.name);
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// Runs a target and returns whether the input was accepted. If it panics, the input is printed.
fn run(target: &Target, what: &str, input: &[u8], folder: &Path) -> bool {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input, folder)));
    result.unwrap_or_else(|panic| {
        eprintln!("target {}: {what}: {}", target.name, input.escape_ascii());
        resume_unwind(panic)
    })
}

/// Returns a temporary folder, in memory if possible: targets write thousands of small files.
fn scratch_folder() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

/// Calls `work` for every target, with a folder of its own, on threads of their own.
fn for_each_target(work: impl Fn(&Target, &Path) + Sync) {
    let scratch = scratch_folder();
    std::thread::scope(|scope| {
        for target in &TARGETS {
            let (folder, work) = (scratch.path().join(target.name), &work);
            fs::create_dir_all(&folder).unwrap();
            scope.spawn(move || work(target, &folder));
        }
    });
    // The folder of a target is the current one, and is removed now.
    std::env::set_current_dir(workspace_root()).unwrap();
}

/// Runs a target on all files that differ from a seed in a single number.
fn run_field_changes(target: &Target, name: &str, seed: &[u8], folder: &Path) {
    let file = ForgedModel::from_bytes(seed).expect("a file with sections");
    let changes = FieldChange::all(&file);
    let accepted = changes.iter().filter(|change| {
        let what = format!("{name} with {}", change.describe(&file));
        run(target, &what, &change.apply(&file), folder)
    });
    let (accepted, count) = (accepted.count(), changes.len());
    // Such as other options, and other parameters of the same size.
    assert!(
        0 < accepted && accepted < count,
        "{} {name}: {accepted} of {count}",
        target.name
    );
}

#[test]
fn targets_run_on_their_seeds_corpora_and_mutations() {
    for_each_target(|target, folder| {
        let seeds = (target.seeds)(folder);
        let accepted = seeds
            .iter()
            .filter(|(name, input)| run(target, name, input, folder));
        let (accepted, count) = (accepted.count(), seeds.len());
        // Most seeds must reach the end of the target, or it tests nothing but errors.
        assert!(
            2 * accepted > count,
            "{}: {accepted} of {count} seeds",
            target.name
        );

        if target.layout == Layout::Sections {
            let is_kind = |name: &str| KIND_OPTIONS.iter().any(|(kind, _)| *kind == name);
            for (name, seed) in seeds.iter().filter(|(name, _)| is_kind(name)) {
                run_field_changes(target, name, seed, folder);
            }
        }
        if std::env::var_os("S3CMTF_BLESS").is_some() {
            write_seeds(target, &seeds);
        }
        let corpus = corpus(target);
        assert!(corpus.len() >= count, "the corpus of {}", target.name);
        for (name, original) in &corpus {
            run(target, name, original, folder);
            for seed in 0..MUTATIONS {
                let mut input = original.clone();
                let mut random = Random(seed ^ u64::from(crc32fast::hash(name.as_bytes())));
                let mut bytes = Random(random.next());
                let mut raw = |b: &mut Vec<u8>, max: usize| mutate_bytes(b, max, &mut bytes);
                mutate(target.layout, &mut input, MAX_LEN, &mut random, &mut raw);
                let what = format!("mutation {seed} of {name}");
                run(target, &what, &input, folder);
            }
        }
    });
    assert_peak_memory();
}

/// Asserts that no input made the process use much memory.
fn assert_peak_memory() {
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kib < MAX_PEAK_KIB, "{line}");
    }
}
