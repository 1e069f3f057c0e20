//! Model files: load, describe, predict, export, save again.

use std::fs;
use std::path::Path;

use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::predict::export;
use s3cmtf::solver::FitInput;
use s3cmtf_cli::report::{ReportOptions, report};

use super::Seeds;
use super::sample::{check_saved, fit_sample, sample_options, use_model};

/// Largest size of exported text tables, in bytes.
const MAX_TEXT: u64 = 1 << 14;

pub fn run(input: &[u8], folder: &Path) -> bool {
    let path = folder.join("input.s3m");
    fs::write(&path, input).unwrap();
    let Ok(model) = model::load(&path, OpenMode::Mapped) else {
        return false;
    };
    use_model(&model);
    let exported = folder.join("exported");
    if export(&model, &exported, MAX_TEXT, &()).is_ok() {
        let files = fs::read_dir(&exported).unwrap();
        assert!(files.count() > 2 * model.order());
        fs::remove_dir_all(&exported).unwrap();
    }
    let options = ReportOptions {
        max_k: 2,
        threads: 1,
        ..ReportOptions::default()
    };
    let _ = report(&model, &options, &());
    check_saved(&model, folder);
    true
}

pub fn seeds(folder: &Path) -> Seeds {
    let seed = |&(name, options): &(&'static str, &str)| {
        let model = fit_sample(options, &FitInput::default()).unwrap();
        let path = folder.join("seed.s3m");
        model::save(&model, &path).unwrap();
        (name, fs::read(path).unwrap())
    };
    sample_options().map(seed).collect()
}
