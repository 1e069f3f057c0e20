//! The recorded pages and charts match the recorded results.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Scratch, workspace_root};
use crate::runner::{expand_paths, run};

/// `s3cmtf-reproduction report` makes the recorded pages and charts from their results.json.
#[test]
fn pages_of_the_reproduction_match_their_results() {
    for folder in ["sixteen-cores", "two-cores"] {
        let recorded = workspace_root().join("reproduction/results").join(folder);
        let dir = Scratch::new("reproduction");
        fs::create_dir(dir.join("out")).unwrap();
        fs::copy(recorded.join("results.json"), dir.join("out/results.json")).unwrap();
        run(expand_paths(&dir, &["report", "-o", "@out"])).ok();
        for file in fs::read_dir(&recorded).unwrap() {
            let name = file.unwrap().file_name();
            let read = |path: std::path::PathBuf| fs::read_to_string(path).unwrap();
            let (old, new) = (
                read(recorded.join(&name)),
                read(dir.join("out").join(&name)),
            );
            assert!(old == new, "{folder}/{} differs", name.display());
        }
        assert_no_absolute_paths(&recorded.join("results.json"));
    }
}

/// Recorded commands have no absolute paths.
#[track_caller]
fn assert_no_absolute_paths(results: &Path) {
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    for m in results["measurements"].as_array().unwrap() {
        for field in ["command", "search"] {
            let command = m[field].as_str().unwrap_or_default();
            let is_absolute = |word: &str| word.starts_with('/') || word.contains(":/");
            assert!(!command.split(' ').any(is_absolute), "{command}");
        }
    }
}
