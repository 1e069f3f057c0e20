//! Numbers of options and requests that no machine can do, through the Rust API: an error that names the number, before any work.

use s3cmtf::Result;
use s3cmtf::discover::{
    AVERAGE_ROW, ClusterOptions, RankBy, RankingOptions, RecommendOptions, SimilarOptions,
    cluster_rows, evaluate_ranking, recommend, similar_rows,
};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::model::Model;
use s3cmtf::options::{OPTION_TABLE, OptionKind, Options};
use s3cmtf::predict::{PredictOptions, evaluate, predict_entries};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::tune::{TuneOptions, tune};
use s3cmtf::solver::{FitInput, FoldIn, fit, fold_in};

use crate::common::Scratch;
use crate::common::in_memory::Entries;

/// Numbers that exceed signed and unsigned integers and all memory.
const NUMBERS: [usize; 4] = [1 << 31, 1 << 40, 1 << 63, usize::MAX];

fn entries() -> Entries {
    let mut tensor = Entries::new(&[9, 7, 5]);
    for i in 0..200u32 {
        tensor.push(&[i % 9, i * 5 % 7, i % 5], f64::from(i % 4));
    }
    tensor
}

/// Asserts that a call fails and names its number.
#[track_caller]
fn refused<T>(result: Result<T>, name: &str, number: usize) {
    let error = result.err().unwrap().to_string();
    let expected = format!("{name} = {number}: it must be a whole number from");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn options_of_a_fit_are_within_their_ranges() {
    let tensor = entries();
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let mut tested = 0;
    for option in OPTION_TABLE {
        let limit = match option.kind {
            OptionKind::Integer(_, high) => high as usize,
            OptionKind::IntegerList(_, high) => high,
            _ => continue,
        };
        for number in NUMBERS {
            let set = Options::default().set(option.name, &number.to_string());
            assert_eq!(set.is_ok(), number <= limit, "{} {number}", option.name);
            tested += 1;
        }
    }
    assert!(tested >= 4 * 9, "{tested}");
    // Fields that are set directly are checked by the fit.
    for number in NUMBERS {
        let n = number as u64;
        let changes: [&dyn Fn(&mut Options); 4] = [
            &|o| o.rank = vec![number],
            &|o| o.epochs = n,
            &|o| o.threads = n,
            &|o| o.samples = n,
        ];
        for change in changes {
            let mut options = Options::default();
            change(&mut options);
            let error = fit(&problem, &options, &FitInput::default(), &mut (), &())
                .err()
                .unwrap();
            assert!(error.to_string().contains("it must be"), "{error}");
        }
        let error = Problem::builder(tensor.view())
            .threads(number)
            .build(&())
            .err()
            .unwrap();
        assert!(error.to_string().starts_with("threads = "), "{error}");
    }
}

fn fitted(tensor: &Entries) -> Model {
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let mut options = Options::default();
    (options.rank, options.epochs, options.threads) = (vec![2], 1, 1);
    fit(&problem, &options, &FitInput::default(), &mut (), &())
        .unwrap()
        .0
}

#[test]
fn numbers_of_requests_are_within_their_ranges() {
    let tensor = entries();
    let (model, view) = (fitted(&tensor), tensor.view());
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let dir = Scratch::new("number-ranges");
    for number in NUMBERS {
        let base = || ClusterOptions::new(0);
        for (name, options) in [
            (
                "k",
                ClusterOptions {
                    k: Some(number),
                    ..base()
                },
            ),
            (
                "max_k",
                ClusterOptions {
                    max_k: Some(number),
                    ..base()
                },
            ),
            (
                "restarts",
                ClusterOptions {
                    restarts: number,
                    ..base()
                },
            ),
            (
                "references",
                ClusterOptions {
                    reference_sets: number,
                    ..base()
                },
            ),
            (
                "curve_rows",
                ClusterOptions {
                    curve_rows: number,
                    ..base()
                },
            ),
            (
                "threads",
                ClusterOptions {
                    threads: number,
                    ..base()
                },
            ),
        ] {
            refused(cluster_rows(&model, &options, &[], &()), name, number);
        }
        for (name, search) in [
            (
                "trials",
                TuneOptions {
                    trials: number,
                    ..TuneOptions::default()
                },
            ),
            (
                "rungs",
                TuneOptions {
                    rungs: number,
                    ..TuneOptions::default()
                },
            ),
            (
                "fit_threads",
                TuneOptions {
                    fit_threads: number,
                    ..TuneOptions::default()
                },
            ),
        ] {
            let found = tune(&problem, &Options::default(), &search, &mut (), &());
            refused(found, name, number);
        }
        let predict = PredictOptions {
            clip: true,
            threads: number,
        };
        refused(
            predict_entries(&model, &view, &predict, &(), |_, _| Ok(())),
            "threads",
            number,
        );
        refused(
            evaluate(&model, &view, model.range(), number, &()),
            "threads",
            number,
        );
        let options = RecommendOptions {
            threads: number,
            ..RecommendOptions::new(1, 3)
        };
        let index = |_: usize, index: &mut [u32]| index.fill(AVERAGE_ROW);
        refused(
            recommend(&model, 1, index, &options, &(), |_, _| Ok(())),
            "threads",
            number,
        );
        let options = SimilarOptions {
            mode: 0,
            top: 3,
            threads: number,
        };
        refused(
            similar_rows(&model, &[0], &options, &(), |_, _| Ok(())),
            "threads",
            number,
        );
        let options = RankingOptions {
            mode: 1,
            user_mode: 0,
            list_len: 3,
            rank_by: RankBy::Mean,
            min_relevant_value: None,
            threads: number,
        };
        let train = Entries::new(&[9, 7, 5]);
        let found = evaluate_ranking(&model, &view, &train.view(), &options, &());
        refused(found, "threads", number);
        let input = FoldIn {
            mode: 0,
            tensor: Some(view.clone()),
            matrices: Vec::new(),
            replace: true,
            threads: number,
        };
        refused(fold_in(&model, &input, &()), "threads", number);
        let options = GenerateOptions {
            threads: number,
            ..GenerateOptions::new(&[9, 9], 20)
        };
        refused(generate(dir.path(), &options, &()), "threads", number);
        // Lists are as long as there are rows.
        let options = RecommendOptions {
            threads: 1,
            ..RecommendOptions::new(1, number)
        };
        let take = |_: usize, list: &[_]| {
            assert_eq!(list.len(), 7);
            Ok(())
        };
        recommend(&model, 1, index, &options, &(), take).unwrap();
    }
}

/// A matrix of two equal entries, of any width.
fn wide_matrix(columns: u64) -> Entries {
    let mut matrix = Entries::new(&[9, columns]);
    matrix.push(&[0, 0], 1.0);
    matrix.push(&[1, 1], 1.0);
    matrix
}

#[test]
fn kinds_of_matrices_far_wider_than_their_data_are_not_left_open() {
    let tensor = entries();
    let may_be_full = |columns: u64| {
        let matrix = wide_matrix(columns);
        let builder = Problem::builder(tensor.view());
        let builder = builder.matrix(0, matrix.view(), None, MatrixKind::Auto);
        let problem = builder.build(&()).unwrap();
        let matrix = &problem.matrices()[0];
        (matrix.may_be_full, matrix.refused_full_size)
    };
    assert_eq!(may_be_full(1000), (true, None));
    assert_eq!(may_be_full((1 << 16) - 9), (true, None));
    assert_eq!(may_be_full(1 << 16), (false, Some((1 << 16) + 9)));
    assert_eq!(may_be_full(50_000_000), (false, Some(50_000_009)));
    assert_eq!(
        may_be_full(u64::from(u32::MAX)),
        (false, Some(u64::from(u32::MAX) + 9))
    );
}
