//! Files that version 0.1 wrote are still read, and their models predict the same values.

use std::path::PathBuf;

use s3cmtf::format::{CooFile, OpenMode};
use s3cmtf::model::load;
use s3cmtf::predict::{PredictOptions, predict_entries};

use crate::common::workspace_root;

fn fixture(name: &str) -> PathBuf {
    workspace_root().join("tests/fixtures/0.1").join(name)
}

#[test]
fn models_and_checkpoints_of_0_1_predict_the_recorded_values() {
    let tensor = CooFile::open(fixture("tensor.coo"), OpenMode::Mapped).unwrap();
    for name in ["model", "gibbs", "checkpoint"] {
        let model = load(fixture(&format!("{name}.s3m")), OpenMode::Mapped).unwrap();
        let mut found = Vec::new();
        let options = PredictOptions {
            clip: true,
            threads: 1,
        };
        predict_entries(&model, &tensor.view(), &options, &(), |_, piece| {
            found.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
        let text = std::fs::read_to_string(fixture(&format!("{name}.predictions.txt"))).unwrap();
        let recorded = text.lines().map(|l| l.split(' ').next_back().unwrap());
        let recorded: Vec<f64> = recorded.map(|x| x.parse().unwrap()).collect();
        assert_eq!(found.len(), recorded.len());
        for (found, recorded) in found.iter().zip(&recorded) {
            assert!(
                (found - recorded).abs() < 1e-5,
                "{name}: {found} {recorded}"
            );
        }
    }
}

#[test]
fn options_that_no_longer_exist_are_listed() {
    let model = load(fixture("model.s3m"), OpenMode::Mapped).unwrap();
    let removed = &model.record().removed_options;
    assert!(removed.contains(&"attempts=2".to_string()), "{removed:?}");
    assert_eq!(model.options().epochs, 5);
}
