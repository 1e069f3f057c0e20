//! The pictures of the documentation match the recorded results.

use std::process::Command;

use crate::common::{ProgramRun, workspace_root};

/// `docs/images/make.py` compares the charts with `results.json`, and the figures in it with the notes that it names.
#[test]
fn pictures_match_the_recorded_results() {
    let python = std::env::var("S3CMTF_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_python = Command::new(&python).arg("--version").output();
    if !has_python.is_ok_and(|o| o.status.success()) {
        println!("skipped: {python} is not on this machine");
        return;
    }
    let script = workspace_root().join("docs/images/make.py");
    let checked = Command::new(python).arg(script).arg("--check").output();
    ProgramRun::from(checked.unwrap()).ok();
}
