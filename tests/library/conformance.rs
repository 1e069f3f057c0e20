//! Every algorithm of the library keeps the promises of all: a finite model, the same for any number of threads where it says so, the
//! same after saving and resuming, and a model after a cancellation.

use crate::common::conformance::Conformance;
use s3cmtf::options::Algorithm;

/// Options of fits of a few milliseconds.
const OPTIONS: &str =
    "model=cp rank=3 epochs=5 eta=0.02 lambda_reg=0.5 start=identity burn_in=2 samples=3";

#[test]
fn every_algorithm_keeps_the_promises_of_all() {
    for &algorithm in Algorithm::ALL {
        let conformance = Conformance {
            algorithm,
            known: &[],
            options: OPTIONS,
            is_reproducible: !matches!(algorithm, Algorithm::Opt | Algorithm::Naive),
        };
        conformance.check();
    }
}
