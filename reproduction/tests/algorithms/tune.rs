//! Searches for the options of baselines.

use crate::common::planted::{PlantedData, small_data};
use crate::support::{CMTF_OPT, SALS, set};
use s3cmtf::Result;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::tune::{Space, TuneOptions, TuneResult, tune};
use s3cmtf_reproduction::ALGORITHMS;

/// Returns options whose hyperparameters are fixed, so that no fit searches for them.
fn base_options(algorithm: Algorithm) -> Options {
    let mut o = s3cmtf_reproduction::options();
    o.algorithm = algorithm;
    (o.model, o.rank) = (ModelKind::Cp, vec![4]);
    o.lambda_reg = Some(0.5);
    (o.epochs, o.threads) = (10, 2);
    o
}

fn search(data: &PlantedData, base: &Options, settings: &TuneOptions<'_>) -> Result<TuneResult> {
    let mut builder = Problem::builder(data.train.view());
    for matrix in data.matrices.iter().filter(|_| base.algorithm == CMTF_OPT) {
        builder = builder.matrix(0, matrix.view(), None::<f64>, MatrixKind::Observed);
    }
    let problem = builder.build(&()).unwrap();
    tune(&problem, base, settings, &mut (), &())
}

#[test]
fn fits_that_overfit_are_stopped_earlier() {
    let data = small_data();
    let settings = TuneOptions {
        trials: 1,
        ..TuneOptions::default()
    };
    // Without penalties, more columns than planted fit the noise.
    let mut base = base_options(CMTF_OPT);
    (base.rank, base.lambda_reg) = (vec![16], Some(0.0));
    base.epochs = 500;
    let result = search(&data, &base, &settings).unwrap();
    let best = result.best();
    assert_eq!(best.rungs, 3);
    assert!([100, 200].contains(&best.epochs), "{}", best.epochs);
    assert_eq!(best.options.epochs, best.epochs);
    // The same error as of a search that goes no further.
    base.epochs = best.epochs;
    let short = search(&data, &base, &settings).unwrap();
    assert!(short.best().valid_rmse <= best.valid_rmse);
}

#[test]
fn options_of_a_baseline_have_ranges() {
    let data = small_data();
    let mut space = Space::with_algorithms(ALGORITHMS);
    space.set("subset-size", "1,2,4").unwrap();
    space.set("rank", "4").unwrap();
    assert!(space.set("subset_size", "0..3").is_err());
    assert!(space.set("unobserved", "zeros").is_err());
    let settings = TuneOptions {
        trials: 4,
        rungs: 1,
        space,
        ..TuneOptions::default()
    };
    let mut base = base_options(SALS);
    set(&mut base, "inner_epochs", 2);
    let result = search(&data, &base, &settings).unwrap();
    for trial in &result.trials {
        let value = |name| trial.options.own_value(name).unwrap();
        assert!(["1", "2", "4"].contains(&value("subset_size")));
        assert_eq!(value("inner_epochs"), "2");
        let text = trial.to_text();
        assert!(text.contains("inner_epochs=2\n"), "{text}");
    }
}
