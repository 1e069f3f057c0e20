//! Degenerate data and options out of range: a finite model or a clear error, never NaN.

use s3cmtf::format::{CooView, Values};
use s3cmtf::model::Predict;
use s3cmtf::options::{Initialization, ModelKind, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::{FitInput, fit};

/// Returns options for a short fit.
fn quick_options() -> Options {
    let mut o = Options::preset("paper").unwrap();
    o.epochs = 5;
    o.rank = vec![3];
    o.threads = 1;
    o
}

/// Fits a model and checks that errors and predictions are finite. Returns the training RMSE.
fn try_fit(view: CooView<'_>, options: &Options) -> Result<f64, String> {
    let order = view.order();
    let problem = Problem::builder(view)
        .build(&())
        .map_err(|e| e.to_string())?;
    let (model, summary) =
        fit(&problem, options, &FitInput::default(), &mut (), &()).map_err(|e| e.to_string())?;
    let mut predict = model.predictor().unwrap();
    let (known, unknown) = (predict(&vec![0; order]), predict(&vec![u32::MAX; order]));
    assert!(known.is_finite() && unknown.is_finite() && summary.train_rmse.is_finite());
    Ok(summary.train_rmse)
}

/// Returns options of both models with different starts, with and without the non-negativity constraint.
fn option_variants() -> Vec<Options> {
    let mut all = Vec::new();
    for model in [ModelKind::Tucker, ModelKind::Cp] {
        for start in [Initialization::Paper, Initialization::Normal] {
            for nonneg in [false, true] {
                let mut o = quick_options();
                o.model = model;
                o.start = start;
                o.nonneg = nonneg;
                all.push(o);
            }
        }
    }
    all
}

#[test]
fn empty_tensor_is_rejected() {
    let none: &[u32] = &[];
    let view = CooView::new("empty", &[3, 3], &[none, none], Values::F32(&[])).unwrap();
    let error = try_fit(view, &quick_options()).unwrap_err();
    assert!(
        error.contains("empty") && error.contains("nothing to fit"),
        "{error}"
    );
}

#[test]
fn tiny_tensors_and_ranks_above_the_row_count_are_fitted() {
    for o in option_variants() {
        // A single entry.
        let view =
            CooView::new("one", &[5, 5, 5], &[&[1], &[2], &[3]], Values::F32(&[2.0])).unwrap();
        try_fit(view, &o).unwrap();
        // A mode with one used row, and a mode of size 1.
        let columns: [&[u32]; 3] = [&[4, 4, 4], &[0, 1, 2], &[0, 0, 0]];
        let view =
            CooView::new("row", &[5, 5, 1], &columns, Values::F32(&[1.0, 2.0, 3.0])).unwrap();
        try_fit(view, &o).unwrap();
        // The smallest and the largest order.
        let view = CooView::new(
            "two",
            &[2, 2],
            &[&[0, 1], &[1, 0]],
            Values::F32(&[1.0, 2.0]),
        )
        .unwrap();
        try_fit(view, &o).unwrap();
        let columns: Vec<&[u32]> = vec![&[0, 1]; 8];
        let view = CooView::new("eight", &[2; 8], &columns, Values::F32(&[1.0, 2.0])).unwrap();
        try_fit(view, &o).unwrap();
    }
}

#[test]
fn extreme_values_give_finite_models_or_errors() {
    let a: Vec<u32> = (0..60).map(|i| i % 10).collect();
    let b: Vec<u32> = (0..60).map(|i| i / 10).collect();
    for o in option_variants() {
        for value in [0.0f64, 1.0, -3.0, 1e-30, -1e-30, 1e30, -1e30, 3e38] {
            let values = vec![value; 60];
            let view = CooView::new("equal", &[10, 6], &[&a, &b], Values::F64(&values)).unwrap();
            match try_fit(view, &o) {
                Ok(error) => assert!(error.is_finite()),
                Err(text) => assert!(
                    text.contains("diverges") && text.contains("eta"),
                    "{value}: {text}"
                ),
            }
            // Values that differ.
            let values: Vec<f64> = (0..60)
                .map(|i| value * (1.0 + f64::from(i) / 60.0) * 0.5)
                .collect();
            let view = CooView::new("mixed", &[10, 6], &[&a, &b], Values::F64(&values)).unwrap();
            if let Err(text) = try_fit(view, &o) {
                assert!(text.contains("diverges"), "{value}: {text}");
            }
        }
    }
}

#[test]
fn empty_matrices_and_untrained_rows_have_finite_predictions() {
    let none: &[u32] = &[];
    let (a, b) = ([0u32, 1, 2], [0u32, 1, 0]);
    let tensor = || CooView::new("t", &[9, 9], &[&a, &b], Values::F32(&[1.0, 2.0, 3.0])).unwrap();
    let empty = CooView::new("m", &[9, 4], &[none, none], Values::F32(&[])).unwrap();
    let graph = CooView::new("g", &[9, 9], &[none, none], Values::F32(&[])).unwrap();
    let problem = Problem::builder(tensor())
        .matrix(0, empty, 1.0, MatrixKind::Observed)
        .matrix(1, graph, 1.0, MatrixKind::Graph)
        .build(&())
        .unwrap();
    // Test entries with untrained rows, also beyond the sizes of the tensor.
    let far = CooView::new(
        "far",
        &[100, 100],
        &[&[99, 8], &[0, 99]],
        Values::F32(&[1.0, 1.0]),
    )
    .unwrap();
    let input = FitInput {
        test: Some(far),
        ..FitInput::default()
    };
    let (_, summary) = fit(&problem, &quick_options(), &input, &mut (), &()).unwrap();
    assert!(summary.test_rmse.is_finite());
    let none_left = CooView::new("no", &[9, 9], &[none, none], Values::F32(&[])).unwrap();
    let input = FitInput {
        test: Some(none_left),
        ..FitInput::default()
    };
    assert!(
        fit(&problem, &quick_options(), &input, &mut (), &())
            .unwrap()
            .1
            .test_rmse
            .is_nan()
    );
    let other = CooView::new("cube", &[9, 9, 9], &[none, none, none], Values::F32(&[])).unwrap();
    let input = FitInput {
        test: Some(other),
        ..FitInput::default()
    };
    let error = fit(&problem, &quick_options(), &input, &mut (), &())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cube: has 3 modes"), "{error}");
    // Negative similarities are rejected.
    let graph = CooView::new("g", &[9, 9], &[&[0], &[1]], Values::F32(&[-1.0])).unwrap();
    let problem = Problem::builder(tensor())
        .matrix(0, graph, 1.0, MatrixKind::Graph)
        .build(&())
        .unwrap();
    let error = fit(
        &problem,
        &quick_options(),
        &FitInput::default(),
        &mut (),
        &(),
    )
    .err()
    .unwrap()
    .to_string();
    assert!(error.contains("similarity of -1"), "{error}");
}

#[test]
fn options_out_of_range_are_rejected_by_name() {
    let (a, b) = ([0u32, 1, 2], [0u32, 1, 0]);
    let tensor = || CooView::new("t", &[9, 9], &[&a, &b], Values::F32(&[1.0, 2.0, 3.0])).unwrap();
    let assert_rejected = |change: &dyn Fn(&mut Options), word: &str| {
        let mut o = quick_options();
        change(&mut o);
        let error = try_fit(tensor(), &o).unwrap_err();
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    };
    assert_rejected(&|o| o.eta = Some(-1.0), "eta");
    assert_rejected(&|o| o.eta = Some(f64::NAN), "eta");
    assert_rejected(&|o| o.decay = -0.1, "decay");
    assert_rejected(&|o| o.lambda_reg = Some(f64::INFINITY), "lambda_reg");
    assert_rejected(&|o| o.rank = vec![0], "rank");
    assert_rejected(&|o| o.rank = vec![1025], "rank");
    assert_rejected(&|o| o.core_step = Some(-1.0), "core_step");
    assert_rejected(&|o| o.rank = vec![2, 2, 2], "3 ranks for 2 modes");
    assert_rejected(&|o| o.eval_every = 0, "eval_every");
    // Without a rank the fit chooses one.
    let mut o = quick_options();
    o.rank = Vec::new();
    assert!(try_fit(tensor(), &o).is_ok());
    assert_rejected(&|o| o.threads = 1 << 40, "threads");
    assert_rejected(&|o| o.tolerance = 2.0, "tolerance");
    assert_rejected(
        &|o| {
            o.model = ModelKind::Cp;
            o.rank = vec![2, 3];
        },
        "same rank",
    );
    // Without epochs the initial model is returned.
    let mut o = quick_options();
    o.epochs = 0;
    try_fit(tensor(), &o).unwrap();
    // A core of 200^4 elements is too large.
    let columns: Vec<Vec<u32>> = vec![(0..200).collect(); 4];
    let slices: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let values = vec![1.0f32; 200];
    let view = CooView::new("t", &[200; 4], &slices, Values::F32(&values)).unwrap();
    let mut o = quick_options();
    o.rank = vec![200];
    let error = try_fit(view, &o).unwrap_err();
    assert!(
        error.contains("200 x 200 x 200 x 200") && error.contains("lower the ranks"),
        "{error}"
    );
}
