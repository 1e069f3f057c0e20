//! Entries that a tensor or matrix cannot have: every function that reads entries returns [`Error::Entry`].

use s3cmtf::discover::{
    ClusterOptions, ObservedPairs, RankBy, RankingOptions, cluster_rows, evaluate_ranking,
};
use s3cmtf::format::{
    CooFile, CooView, OpenMode, SplitOptions, SplitRule, Values, check_view, convert, repair,
    split, summarize, write, write_tns,
};
use s3cmtf::format::{DuplicatePolicy, TextOptions};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::predict::{
    PredictOptions, evaluate, evaluate_distributions, predict_entries, predict_intervals,
};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::solver::tune::{Space, TuneOptions, tune};
use s3cmtf::solver::{FitInput, FoldIn, FoldMatrix, fit, fold_in};
use s3cmtf::{Error, Result};

use crate::common::Scratch;
use crate::common::forged_entries::{CHANGED_ENTRY, Fault, ForgedEntries, faults};
use crate::common::in_memory::options;

/// Sizes of the tensor and of a matrix on its mode 1.
const TENSOR: &[u64] = &[6, 5, 2];
const MATRIX: &[u64] = &[5, 5];

const PREDICT: PredictOptions = PredictOptions {
    clip: true,
    threads: 1,
};

/// What a function reads of the entries that it is given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reads {
    Everything,
    /// Not the weights; entries with weights may be refused whatever they are.
    IndicesAndValues,
    Indices,
}

impl Reads {
    fn includes(self, fault: Fault) -> bool {
        match fault {
            Fault::Index(..) => true,
            Fault::Value(_) => self != Reads::Indices,
            Fault::Weight(_) => self == Reads::Everything,
        }
    }
}

/// A function that reads entries.
type Reader<'a> = &'a dyn Fn(&CooView<'_>) -> Result<()>;

/// Asserts that a function returns the error of the changed entry for every fault that it can see, and accepts valid entries.
fn check_reader(name: &str, dims: &[u64], reads: Reads, reader: Reader<'_>) {
    let valid = ForgedEntries::all_cells(dims);
    reader(&valid.view()).unwrap_or_else(|e| panic!("{name}: {e}"));
    for fault in faults(dims.len()) {
        if !reads.includes(fault) {
            continue;
        }
        let forged = ForgedEntries::all_cells(dims).with_fault(fault);
        match reader(&forged.view()) {
            Err(Error::Entry { file, entry, .. }) => {
                let expected = ("forged", CHANGED_ENTRY as u64 + 1);
                assert_eq!((&*file, entry), expected, "{name}, {fault:?}");
            }
            Err(e) => panic!("{name}, {fault:?}: {e}"),
            Ok(()) => panic!("{name} accepts {fault:?}"),
        }
    }
}

fn fitted(algorithm: Algorithm) -> Model {
    let [tensor, matrix] = [TENSOR, MATRIX].map(ForgedEntries::all_cells);
    let problem = Problem::builder(tensor.view())
        .matrix(1, matrix.view(), 0.5, MatrixKind::Observed)
        .build(&())
        .unwrap();
    let mut o = options(algorithm, ModelKind::Cp, 2);
    (o.epochs, o.burn_in, o.samples, o.threads) = (2, 1, 2, 1);
    let input = FitInput::default();
    fit(&problem, &o, &input, &mut (), &()).unwrap().0
}

/// Fits for one epoch.
fn fit_tensor(
    tensor: &CooView<'_>,
    test: Option<CooView<'_>>,
    valid: Option<CooView<'_>>,
) -> Result<()> {
    let problem = Problem::builder(tensor.clone()).build(&())?;
    let mut o = options(Algorithm::Als, ModelKind::Cp, 2);
    (o.epochs, o.threads) = (1, 1);
    let input = FitInput {
        test,
        valid,
        ..FitInput::default()
    };
    fit(&problem, &o, &input, &mut (), &()).map(drop)
}

#[test]
fn problems_and_fits_refuse_them() {
    let good = ForgedEntries::all_cells(TENSOR);
    let good = good.view();
    let everything = Reads::Everything;
    check_reader("a tensor", TENSOR, everything, &|v| {
        Problem::builder(v.clone()).build(&()).map(drop)
    });
    for (kind, reads) in [
        (MatrixKind::Auto, everything),
        (MatrixKind::Observed, everything),
        (MatrixKind::Graph, everything),
        (MatrixKind::Full, Reads::IndicesAndValues),
        (MatrixKind::Sampled(2), Reads::IndicesAndValues),
    ] {
        // The mode has more rows than the matrix, whose own sizes count.
        let larger = ForgedEntries::all_cells(&[6, 9, 2]);
        check_reader(&format!("a matrix, {kind}"), MATRIX, reads, &|v| {
            let builder = Problem::builder(larger.view());
            let matrix = v.clone().with_inferred_dims();
            builder.matrix(1, matrix, None, kind).build(&()).map(drop)
        });
    }
    // The values of another view are the weights, and its own weights are ignored.
    check_reader("weights", TENSOR, Reads::Indices, &|v| {
        let columns: Vec<&[u32]> = (0..v.order()).map(|n| v.column(n)).collect();
        let values = vec![1.0; v.len()];
        let sizes = [1 << 20; 3];
        let tensor = CooView::new("tensor", &sizes, &columns, Values::F64(&values))?;
        tensor.with_weights_of(v).map(drop)
    });
    check_reader("test entries", TENSOR, everything, &|v| {
        fit_tensor(&good, Some(v.clone()), None)
    });
    check_reader("validation entries", TENSOR, everything, &|v| {
        fit_tensor(&good, None, Some(v.clone()))
    });
    check_reader("tune", TENSOR, everything, &|v| {
        let problem = Problem::builder(good.clone()).build(&())?;
        let mut o = options(Algorithm::Als, ModelKind::Cp, 2);
        (o.epochs, o.threads) = (1, 1);
        let search = TuneOptions {
            trials: 1,
            rungs: 1,
            valid: Some(v.clone()),
            space: Space::default(),
            ..TuneOptions::default()
        };
        tune(&problem, &o, &search, &mut (), &()).map(drop)
    });
}

#[test]
fn uses_of_a_model_refuse_them() {
    let good = ForgedEntries::all_cells(TENSOR);
    let good = good.view();
    let everything = Reads::Everything;
    for algorithm in [Algorithm::Als, Algorithm::Gibbs] {
        let model = &fitted(algorithm);
        let name = |what: &str| format!("{what} of {}", algorithm.name());
        check_reader(&name("evaluate"), TENSOR, everything, &|v| {
            evaluate(model, v, model.range(), 1, &()).map(drop)
        });
        check_reader(&name("predict_entries"), TENSOR, Reads::Indices, &|v| {
            predict_entries(model, v, &PREDICT, &(), |_, _| Ok(()))
        });
        check_reader(&name("fold_in"), TENSOR, everything, &|v| {
            let input = FoldIn {
                tensor: Some(v.clone()),
                replace: true,
                threads: 1,
                ..FoldIn::default()
            };
            fold_in(model, &input, &()).map(drop)
        });
        check_reader(&name("fold_in with a matrix"), MATRIX, everything, &|v| {
            let matrix = FoldMatrix {
                number: 0,
                entries: v.clone(),
                weight: None,
            };
            let input = FoldIn {
                mode: 1,
                matrices: vec![matrix],
                replace: true,
                threads: 1,
                ..FoldIn::default()
            };
            fold_in(model, &input, &()).map(drop)
        });
        let ranking = RankingOptions {
            mode: 1,
            user_mode: 0,
            list_len: 2,
            rank_by: RankBy::Mean,
            min_relevant_value: Some(2.0),
            threads: 1,
        };
        check_reader(&name("evaluate_ranking"), TENSOR, everything, &|v| {
            evaluate_ranking(model, v, &good, &ranking, &()).map(drop)
        });
        check_reader(
            &name("training entries of a ranking"),
            TENSOR,
            everything,
            &|v| evaluate_ranking(model, &good, v, &ranking, &()).map(drop),
        );
        check_reader(&name("cluster_rows"), MATRIX, everything, &|v| {
            let options = ClusterOptions {
                k: Some(2),
                restarts: 1,
                threads: 1,
                ..ClusterOptions::new(1)
            };
            cluster_rows(model, &options, std::slice::from_ref(v), &()).map(drop)
        });
    }
    let model = &fitted(Algorithm::Gibbs);
    check_reader("predict_intervals", TENSOR, Reads::Indices, &|v| {
        predict_intervals(model, v, &[0.1], &PREDICT, &(), |_, _| Ok(()))
    });
    check_reader("evaluate_distributions", TENSOR, everything, &|v| {
        evaluate_distributions(model, v, 1, &()).map(drop)
    });
    check_reader("observed pairs", TENSOR, everything, &|v| {
        ObservedPairs::new(std::slice::from_ref(v), 0, 1).map(drop)
    });
}

#[test]
fn statistics_and_copies_refuse_them() {
    let dir = Scratch::new("invalid-entries");
    let everything = Reads::Everything;
    check_reader("summarize", TENSOR, everything, &|v| {
        summarize(v, &()).map(drop)
    });
    check_reader("write", TENSOR, everything, &|v| {
        write(v, &dir.join("written.coo"), None, &()).map(drop)
    });
    // The errors name the file.
    for fault in faults(3) {
        let path = dir.join("forged.coo");
        ForgedEntries::all_cells(TENSOR)
            .with_fault(fault)
            .write(&path);
        let file = CooFile::open(&path, OpenMode::Private).unwrap();
        let report = check_view(&file.view(), &()).unwrap();
        let is_index = matches!(fault, Fault::Index(..));
        let found = [report.out_of_range, report.not_finite].map(|f| f.count);
        assert_eq!(
            found,
            [u64::from(is_index), u64::from(!is_index)],
            "{fault:?}"
        );
        let prefix = dir.join("part");
        let parts = SplitOptions {
            test_fraction: 0.2,
            valid_fraction: 0.0,
            seed: 1,
            rule: SplitRule::Random,
        };
        let (copy, text) = (dir.join("copy.coo"), dir.join("copy.tns"));
        let results = [
            split(&file, &prefix, &parts, &()).map(drop),
            write_tns(&file, &text, &()),
            convert(path.as_path().into(), &copy, &TextOptions::default(), &()).map(drop),
        ];
        for result in results {
            let is_entry = matches!(&result, Err(Error::Entry { entry: 8, .. }));
            assert!(is_entry, "{fault:?}: {:?}", result.err());
        }
        assert_eq!(dir.names(), ["forged.coo", "written.coo"], "{fault:?}");
        let repaired = repair(&file, &copy, DuplicatePolicy::Mean, &()).unwrap();
        assert_eq!(repaired.dropped, 1, "{fault:?}");
        std::fs::remove_file(copy).unwrap();
    }
}
