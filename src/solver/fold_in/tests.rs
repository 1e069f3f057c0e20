//! Models of earlier versions.

use std::sync::Arc;

use super::*;
use crate::format::CooView;
use crate::format::{OpenMode, Values};
use crate::model::{EpochMetrics, load, save};
use crate::options::Algorithm;
use crate::options::Options;
use crate::problem::MatrixKind;
use crate::problem::Problem;
use crate::solver::{Control, Event, FitInput, Observer, fit};

struct Quiet;

impl Observer for Quiet {
    fn epoch(&mut self, _: &EpochMetrics) -> Control {
        Control::Continue
    }

    fn event(&mut self, _: &Event) {}
}

/// Models of versions that did not store what folding in needs can be read and used; folding in refuses them.
#[test]
#[cfg_attr(miri, ignore = "writes files")]
fn models_of_earlier_versions_can_be_read_but_not_extended() {
    let rows: Vec<u32> = (0..80).map(|i| i % 8).collect();
    let columns: Vec<u32> = (0..80).map(|i| i / 8).collect();
    let values: Vec<f64> = (0..80).map(|i| f64::from(i % 7)).collect();
    let tensor = CooView::new("t", &[8, 10], &[&rows, &columns], Values::F64(&values)).unwrap();
    let matrix = CooView::new("m", &[8, 10], &[&rows, &columns], Values::F64(&values)).unwrap();
    let new_columns: [&[u32]; 2] = [&[8, 8], &[1, 2]];
    let new_entries =
        || CooView::new("n", &[9, 10], &new_columns, Values::F64(&[1.0, 2.0])).unwrap();
    let problem = Problem::builder(tensor)
        .matrix(0, matrix, 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let path = std::env::temp_dir().join(format!("s3cmtf-earlier-{}.s3m", std::process::id()));
    for algorithm in [Algorithm::Blocked, Algorithm::Gibbs] {
        let mut o = Options::default();
        (o.algorithm, o.rank, o.epochs, o.samples, o.threads) = (algorithm, vec![2], 2, 3, 1);
        let (mut model, _) = fit(&problem, &o, &FitInput::default(), &mut Quiet, &()).unwrap();
        let input = |matrices: bool| FoldIn {
            tensor: Some(new_entries()),
            matrices: (0..usize::from(matrices))
                .map(|number| FoldMatrix {
                    number,
                    entries: new_entries(),
                    weight: None,
                })
                .collect(),
            threads: 1,
            ..FoldIn::default()
        };
        assert!(fold_in(&model, &input(true), &()).is_ok());
        model.precision = None;
        model.matrices[0].precision = None;
        model
            .modes
            .iter_mut()
            .for_each(|m| m.prior = Default::default());
        for sample in model.samples.iter_mut().flat_map(|s| &mut s.samples) {
            let sample = Arc::make_mut(sample);
            (sample.columns, sample.weights) = (Vec::new(), Vec::new());
            sample.cold_bias.clear();
        }
        save(&model, &path).unwrap();
        let model = load(&path, OpenMode::Private).unwrap();
        let refused = |matrices: bool| match fold_in(&model, &input(matrices), &()) {
            Ok(_) => false,
            Err(e) => e.to_string().contains("earlier version"),
        };
        assert!(refused(true));
        // Rows with tensor entries alone need nothing but the samples.
        assert_eq!(refused(false), algorithm == Algorithm::Blocked);
    }
    let _ = std::fs::remove_file(path);
}
