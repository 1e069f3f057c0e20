//! Checkpoints: load, resume for one epoch, predict.

use std::fs;
use std::path::Path;

use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::solver::{FitInput, fit};

use super::Seeds;
use super::sample::{
    OneEpoch, check_saved, fit_sample, limit, sample_options, use_model, with_problem,
};

pub fn run(input: &[u8], folder: &Path) -> bool {
    let path = folder.join("input.s3m");
    fs::write(&path, input).unwrap();
    let Ok(saved) = model::load(&path, OpenMode::Mapped) else {
        return false;
    };
    // As the program does, which takes the options that are not given from the checkpoint.
    let mut options = saved.options().clone();
    let is_small = {
        let before = options.rank.clone();
        limit(&mut options, 3);
        before == options.rank
    };
    if !is_small {
        return false;
    }
    options.epochs = saved
        .history()
        .last()
        .map_or(0, |e| e.epoch)
        .saturating_add(1)
        .min(1_000_000);
    let input = FitInput {
        checkpoint: Some(folder.join("next.s3m")),
        resume: Some(path),
        ..FitInput::default()
    };
    let resumed = with_problem(&options, |problem| {
        fit(problem, &options, &input, &mut OneEpoch, &())
    });
    let Ok((model, _)) = resumed else {
        return false;
    };
    check_saved(&model, folder);
    use_model(&model);
    true
}

pub fn seeds(folder: &Path) -> Seeds {
    let seed = |&(name, options): &(&'static str, &str)| {
        let path = folder.join("seed.s3m");
        let input = FitInput {
            checkpoint: Some(path.clone()),
            ..FitInput::default()
        };
        fit_sample(options, &input).unwrap();
        (name, fs::read(path).unwrap())
    };
    sample_options().map(seed).collect()
}
