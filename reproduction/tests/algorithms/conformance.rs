//! Every baseline keeps the promises of the algorithms of the library.

use crate::common::conformance::Conformance;
use s3cmtf::options::Algorithm;
use s3cmtf_reproduction::ALGORITHMS;

#[test]
fn every_baseline_keeps_the_promises_of_all() {
    for algorithm in ALGORITHMS {
        let own = match algorithm.name {
            "sals" => "rank=3 epochs=5 subset_size=2 inner_epochs=2",
            "cmtf-opt" => "rank=3 epochs=5 unobserved=zeros",
            _ => "rank=3 epochs=5",
        };
        let conformance = Conformance {
            algorithm: Algorithm::External(algorithm),
            known: ALGORITHMS,
            options: own,
            is_reproducible: true,
        };
        conformance.check();
    }
}
