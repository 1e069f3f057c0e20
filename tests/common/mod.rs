//! What several test files need.
#![allow(dead_code)]

pub mod later;
#[cfg(target_os = "linux")]
pub mod native;
pub mod pages;
pub mod planted;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use s3cmtf::format::{CooFile, OpenMode, TextOptions, open};

/// The next of a row of numbers in [0, 1) that look random.
pub fn unit(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as f64 / (1u64 << 31) as f64
}

/// A folder of its own for a test, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
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

    /// The names of all files, hidden ones too.
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

/// The outcome of running the program.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Failed with `code`, and standard error says all of `words`.
    #[track_caller]
    pub fn failed(self, code: i32, words: &[&str]) -> Ran {
        assert_eq!(
            self.code,
            Some(code),
            "stdout {:?} stderr {:?}",
            self.out,
            self.err
        );
        for word in words {
            assert!(self.err.contains(word), "{:?} lacks {word:?}", self.err);
        }
        self
    }

    /// The JSON objects on standard output, which must hold nothing else.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.out
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

/// A folder of real data beside the repository, or `None` with a printed line.
pub fn real_data(name: &str) -> Option<PathBuf> {
    let path = workspace_root().join("../shared/data").join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: the data set {name} is not in ../shared/data");
    None
}

/// A text file of such a folder, gzipped or not.
pub fn read_real(folder: &Path, name: &str) -> CooFile {
    let plain = folder.join(name);
    let path = match plain.exists() {
        true => plain,
        false => folder.join(format!("{name}.gz")),
    };
    let text = TextOptions::default();
    open(path.as_path().into(), OpenMode::Mapped, &text, &()).unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
