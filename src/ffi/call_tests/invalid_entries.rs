//! Entries that a tensor or matrix cannot have: every function that reads entries returns S3CMTF_BAD_ENTRY.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use super::objects::*;
use crate::ffi::c::*;

/// Columns in memory, all cells of a 4 x 3 x 2 tensor or of a 4 x 4 matrix.
struct Columns {
    dims: Box<[u64]>,
    columns: Vec<Box<[u32]>>,
    values: Box<[f64]>,
    weights: Option<Box<[f64]>>,
}

const TENSOR: &[u64] = &[4, 3, 2];
const MATRIX: &[u64] = &[4, 4];

/// The changed entry, counted from 0.
const CHANGED: usize = 5;

/// What is changed.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// An index is the size of its mode, or more by this number.
    Index(u32),
    Value(f64),
    Weight(f64),
}

const FAULTS: [Fault; 6] = [
    Fault::Index(0),
    Fault::Index(7),
    Fault::Value(f64::NAN),
    Fault::Value(f64::INFINITY),
    Fault::Weight(f64::NAN),
    Fault::Weight(-1.0),
];

impl Columns {
    fn new(dims: &[u64], fault: Fault) -> Columns {
        let count = dims.iter().product::<u64>() as usize;
        let mut stride = 1;
        let mut columns: Vec<Box<[u32]>> = Vec::new();
        for &dim in dims {
            let index = |i: usize| (i as u64 / stride % dim) as u32;
            columns.push((0..count).map(index).collect());
            stride *= dim;
        }
        let mut all = Columns {
            dims: dims.into(),
            columns,
            values: (0..count).map(|i| (i * 7 % 5) as f64).collect(),
            weights: None,
        };
        match fault {
            Fault::None => {}
            Fault::Index(beyond) => all.columns[1][CHANGED] = dims[1] as u32 + beyond,
            Fault::Value(value) => all.values[CHANGED] = value,
            Fault::Weight(weight) => {
                let mut weights = vec![1.0; count];
                weights[CHANGED] = weight;
                all.weights = Some(weights.into());
            }
        }
        all
    }

    /// Calls `act` with an object that uses the columns.
    fn with<T>(&self, act: impl FnOnce(*mut CooHandle) -> T) -> T {
        let modes: Vec<*const c_void> = self.columns.iter().map(|c| c.as_ptr().cast()).collect();
        let weights = self.weights.as_ref();
        let entries = Entries {
            order: self.dims.len() as u64,
            dims: self.dims.as_ptr(),
            indices: IndexArrays {
                modes: modes.as_ptr(),
                count: self.values.len() as u64,
                stride: 1,
                r#type: S3CMTF_U32,
                base: 0,
            },
            values: self.values.as_ptr().cast(),
            value_type: S3CMTF_F64,
            weights: weights.map_or(ptr::null(), |w| w.as_ptr().cast()),
            weight_type: S3CMTF_F64,
            ..sized()
        };
        // SAFETY: the arrays outlive the object.
        let coo = created(|out| unsafe { s3cmtf_coo_new_view(&entries, out, None) });
        let result = act(coo);
        s3cmtf_coo_free(owned(coo));
        result
    }
}

/// A call with entries, which returns its status.
type Call<'a> = &'a dyn Fn(*mut CooHandle) -> i32;

/// Asserts the status of a call for valid entries and for every fault that it can see.
fn check_call(name: &str, dims: &[u64], reads_numbers: bool, call: Call<'_>) {
    assert_eq!(
        Columns::new(dims, Fault::None).with(call),
        S3CMTF_OK,
        "{name}"
    );
    for fault in FAULTS {
        if reads_numbers || matches!(fault, Fault::Index(_)) {
            let status = Columns::new(dims, fault).with(call);
            assert_eq!(status, S3CMTF_BAD_ENTRY, "{name}, {fault:?}");
        }
    }
}

/// Returns the status of a call and frees what it has created, if anything.
fn status<T>(
    call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> i32,
    free: extern "C" fn(Option<Box<T>>),
) -> i32 {
    let mut out = MaybeUninit::new(ptr::null_mut());
    let status = call(Some(&mut out));
    // SAFETY: NULL before, and an object of the library after a success.
    free(owned(unsafe { out.assume_init() }));
    status
}

/// Runs a fit of a tensor with a matrix, test and validation entries, which may be NULL.
fn run_fit(tensor: *mut CooHandle, [matrix, test, valid]: [*mut CooHandle; 3]) -> i32 {
    let problem = created(|out| s3cmtf_problem_new(shared(tensor), out, None));
    if !matrix.is_null() {
        let coupling: Coupling = sized();
        // SAFETY: the struct is alive during the call.
        let added = unsafe {
            s3cmtf_problem_add_matrix(exclusive(problem), 0, shared(matrix), &coupling, None)
        };
        assert_eq!(added, S3CMTF_OK);
    }
    let options = options("threads=1");
    let fit = created(|out| s3cmtf_fit_new(shared(problem), shared(options), out, None));
    let set = [
        s3cmtf_fit_set_test(exclusive(fit), shared(test), None),
        s3cmtf_fit_set_valid(exclusive(fit), shared(valid), None),
    ];
    assert_eq!(set, [S3CMTF_OK; 2]);
    let found = status(
        // SAFETY: the fit is alive during the call.
        |out| unsafe { s3cmtf_fit_run(fit, out, ptr::null_mut()) },
        s3cmtf_model_free,
    );
    s3cmtf_fit_free(owned(fit));
    s3cmtf_options_free(owned(options));
    s3cmtf_problem_free(owned(problem));
    found
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of calls that other tests make")]
fn fits_refuse_them() {
    let none = ptr::null_mut();
    check_call("tensor", TENSOR, true, &|coo| run_fit(coo, [none; 3]));
    let good = Columns::new(TENSOR, Fault::None);
    good.with(|good| {
        check_call("matrix", MATRIX, true, &|coo| {
            run_fit(good, [coo, none, none])
        });
        check_call("test", TENSOR, true, &|coo| {
            run_fit(good, [none, coo, none])
        });
        check_call("valid", TENSOR, true, &|coo| {
            run_fit(good, [none, none, coo])
        });
        check_call("tune", TENSOR, true, &|coo| {
            let problem = created(|out| s3cmtf_problem_new(shared(good), out, None));
            let options = options("threads=1");
            let request = TuneRequest {
                trials: 1,
                rungs: 1,
                valid: coo,
                ..sized()
            };
            // SAFETY: the struct and its object are alive during the call.
            let tune = created(|out| unsafe {
                s3cmtf_tune_new(shared(problem), shared(options), &request, out, None)
            });
            // SAFETY: the search is alive during the call.
            let found = unsafe { s3cmtf_tune_run(tune, ptr::null_mut()) };
            s3cmtf_tune_free(owned(tune));
            s3cmtf_options_free(owned(options));
            s3cmtf_problem_free(owned(problem));
            found
        });
        // Other entries, or a column that is not that of the tensor: both are faults of an entry.
        check_call("weights", TENSOR, false, &|coo| {
            status(
                |out| s3cmtf_coo_new_weighted_by(shared(good), shared(coo), out, None),
                s3cmtf_coo_free,
            )
        });
    });
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of calls that other tests make")]
fn uses_of_a_model_refuse_them() {
    let arrays = Arrays::new();
    let gibbs = fitted(&arrays, "algorithm=gibbs burn_in=1 samples=2 threads=1");
    let model = fitted(&arrays, "algorithm=als model=cp threads=1");
    check_call("summarize", TENSOR, true, &|coo| {
        // SAFETY: NULL leaves the outputs out.
        unsafe {
            let (summary, rows) = (ptr::null_mut(), ptr::null_mut());
            s3cmtf_coo_summarize(shared(coo), None, summary, rows, 0, None)
        }
    });
    check_call("predict", TENSOR, false, &|coo| {
        let mut predictions = [0.0f64; 24];
        // SAFETY: a buffer of the length that is passed to the call.
        unsafe {
            let to = predictions.as_mut_ptr().cast();
            let request = ptr::null();
            s3cmtf_model_predict_coo(
                shared(model),
                shared(coo),
                to,
                24,
                S3CMTF_F64,
                request,
                None,
            )
        }
    });
    check_call("predict quantiles", TENSOR, false, &|coo| {
        let mut deviations = [0.0f64; 24];
        let request = PredictRequest {
            threads: 1,
            deviations: deviations.as_mut_ptr().cast(),
            ..sized()
        };
        // SAFETY: a buffer of the length that is passed to the call.
        unsafe {
            let to = ptr::null_mut();
            s3cmtf_model_predict_coo(
                shared(gibbs),
                shared(coo),
                to,
                24,
                S3CMTF_F64,
                &request,
                None,
            )
        }
    });
    check_call("evaluate", TENSOR, true, &|coo| {
        let mut found: Evaluation = sized();
        // SAFETY: a struct that is alive during the call.
        unsafe { s3cmtf_model_evaluate(shared(model), shared(coo), 1, None, &mut found, None) }
    });
    check_call("evaluate_distributions", TENSOR, true, &|coo| {
        let (mut found, model): (DistributionScores, _) = (sized(), shared(gibbs));
        // SAFETY: a struct that is alive during the call.
        unsafe {
            s3cmtf_model_evaluate_distributions(model, shared(coo), 1, None, &mut found, None)
        }
    });
    let good = Columns::new(TENSOR, Fault::None);
    good.with(|good| {
        let rank = |test: *mut CooHandle, train: *mut CooHandle| {
            let request = RankingRequest {
                mode: 1,
                length: 2,
                threads: 1,
                ..sized()
            };
            let mut found: RankingInfo = sized();
            // SAFETY: structs that are alive during the call.
            unsafe {
                let (model, found) = (shared(model), &mut found);
                s3cmtf_model_evaluate_ranking(
                    model,
                    shared(test),
                    shared(train),
                    &request,
                    found,
                    None,
                )
            }
        };
        check_call("test entries of a ranking", TENSOR, true, &|coo| {
            rank(coo, good)
        });
        check_call("training entries of a ranking", TENSOR, true, &|coo| {
            rank(good, coo)
        });
    });
    check_call("recommend", TENSOR, true, &|coo| {
        let query = [1u64];
        let modes: [*const c_void; 3] = [query.as_ptr().cast(), ptr::null(), ptr::null()];
        let request = RecommendRequest {
            mode: 1,
            top: 1,
            queries: IndexArrays {
                modes: modes.as_ptr(),
                count: 1,
                stride: 1,
                r#type: S3CMTF_U64,
                base: 0,
            },
            exclude: coo,
            threads: 1,
            ..sized()
        };
        let mut count = [0u64; 1];
        // SAFETY: arrays of the lengths that are passed to the call.
        unsafe {
            let (rows, scores) = (ptr::null_mut(), ptr::null_mut());
            let counts = count.as_mut_ptr();
            s3cmtf_model_recommend(shared(model), &request, rows, scores, 1, counts, None)
        }
    });
    check_call("clusters", MATRIX, true, &|coo| {
        let matrices: [*const CooHandle; 1] = [coo];
        let request = ClustersRequest {
            k: 2,
            restarts: 1,
            matrices: matrices.as_ptr(),
            matrix_count: 1,
            threads: 1,
            ..sized()
        };
        status(
            // SAFETY: a struct and an array that are alive during the call.
            |out| unsafe { s3cmtf_clusters_new(shared(model), 0, &request, out, None) },
            s3cmtf_clusters_free,
        )
    });
    let fold_in = |tensor: *mut CooHandle, matrices: &[*const CooHandle]| {
        let request = FoldInRequest {
            tensor,
            matrices: matrices.as_ptr(),
            matrix_numbers: [0u64].as_ptr(),
            matrix_count: matrices.len() as u64,
            replace: 1,
            threads: 1,
            ..sized()
        };
        status(
            // SAFETY: a struct and arrays that are alive during the call.
            |out| unsafe {
                s3cmtf_model_fold_in(shared(model), 0, &request, out, None, None, None)
            },
            s3cmtf_model_free,
        )
    };
    check_call("fold in", TENSOR, true, &|coo| fold_in(coo, &[]));
    check_call("fold in a matrix", MATRIX, true, &|coo| {
        fold_in(ptr::null_mut(), &[coo])
    });
    for model in [gibbs, model] {
        s3cmtf_model_free(owned(model));
    }
}
