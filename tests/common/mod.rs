//! Helpers that several test binaries share.
#![allow(dead_code)]

pub mod conformance;
pub mod forged_entries;
pub mod forged_model;
pub mod in_memory;
#[cfg(target_os = "linux")]
pub mod native;
pub mod planted;
pub mod random_problem;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use s3cmtf::format::{CooFile, OpenMode, TextOptions, open};
use s3cmtf::options::KernelChoice;
use s3cmtf::simd::Level;

/// Advances a linear congruential generator and returns its next value in [0, 1).
pub fn next_unit(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as f64 / (1u64 << 31) as f64
}

/// Returns the value of the option `kernel` that selects a level.
pub fn kernel_choice(level: Level) -> KernelChoice {
    match level {
        Level::Scalar => KernelChoice::Scalar,
        Level::Wide => KernelChoice::Wide,
        Level::Avx2 => KernelChoice::Avx2,
        Level::Avx512 => KernelChoice::Avx512,
    }
}

/// A temporary folder, removed on drop.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder. Its path is unique; `name` helps to recognize it.
    pub fn new(name: &str) -> Scratch {
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!(
            "s3cmtf-test-{}-{number}-{name}",
            std::process::id()
        ));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    /// Returns the sorted names of all files, including hidden ones.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The exit code and output of a program.
pub struct ProgramRun {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl ProgramRun {
    pub fn from(output: Output) -> ProgramRun {
        ProgramRun {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub fn ok(self) -> ProgramRun {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the program failed with `code` and that standard error contains all of `words`.
    #[track_caller]
    pub fn failed(self, code: i32, words: &[&str]) -> ProgramRun {
        assert_eq!(
            self.code,
            Some(code),
            "stdout {:?} stderr {:?}",
            self.stdout,
            self.stderr
        );
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{:?} lacks {word:?}",
                self.stderr
            );
        }
        self
    }

    /// Parses standard output as one JSON object per line.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect()
    }
}

/// Returns the root folder of the repository. Both packages include this file, so the manifest may be in `cli/`.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("c_tests").is_dir())
        .unwrap()
}

/// Returns a folder of real data beside the repository. Prints a line and returns `None` if it does not exist.
pub fn real_data_folder(name: &str) -> Option<PathBuf> {
    let path = workspace_root().join("../shared/data").join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: the data set {name} is not in ../shared/data");
    None
}

/// Opens a text file of such a folder, gzipped or not.
pub fn open_real_file(folder: &Path, name: &str) -> CooFile {
    let plain = folder.join(name);
    let path = if plain.exists() {
        plain
    } else {
        folder.join(format!("{name}.gz"))
    };
    let text = TextOptions::default();
    open(path.as_path().into(), OpenMode::Mapped, &text, &()).unwrap()
}

/// Compresses bytes with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
