//! Golden results of the baselines: hashes of fitted models and of their predictions. `cli/tests/golden.rs` describes them. To record the
//! results again:
//!
//! ```text
//! S3CMTF_RECORD_GOLDEN=1 cargo test --release -p s3cmtf-reproduction --test golden
//! ```

#[path = "../../cli/tests/golden/harness.rs"]
mod harness;

use harness::{Case, Golden, VARIANTS, table};

/// Data sets, which `cli/tests/golden/cases.rs` describes.
const DATA: &str = "
order2     | 150  | --dims 150,120 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order3     | 120  | --dims 120,90,8 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order4     | 60   | --dims 60,50,8,5 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for order in 2..=4 {
        for (variant, extra) in [
            ("plain", "--subset-size 2"),
            ("weights", "--subset-size 2 --weights {data}/weights.tns"),
            ("inner iterations", "--subset-size 1 --inner-epochs 2"),
        ] {
            let name = format!("cp/order {order}/{variant}");
            let options = format!("--model cp --rank 5 {extra}");
            cases.push(Case::new(&name, &format!("order{order}"), "sals", &options));
        }
        for [variant, _, extra] in table(VARIANTS) {
            if matches!(variant, "graph" | "nonneg") {
                continue;
            }
            for unobserved in ["unknown", "zeros"] {
                if unobserved == "zeros" && matches!(variant, "weights" | "sampled") {
                    continue;
                }
                let name = format!("cp/order {order}/{variant}, {unobserved}");
                let options = format!("--model cp --rank 5 --unobserved {unobserved} {extra}");
                let data = format!("order{order}");
                cases.push(Case::new(&name, &data, "cmtf-opt", &options));
            }
        }
    }
    for order in 2..=4 {
        for [variant, data, extra] in table(VARIANTS) {
            if !["plain", "coupled", "full"].contains(&variant) {
                continue;
            }
            let name = format!("tucker/order {order}/{variant}");
            let options = format!("--model tucker --rank 3 {extra}");
            let data = format!("{data}{order}");
            cases.push(Case::new(&name, &data, "tucker-als", &options));
        }
    }
    cases
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "takes minutes without optimization; run it with --release"
)]
fn results_are_the_recorded_ones() {
    harness::check(&Golden {
        program: env!("CARGO_BIN_EXE_s3cmtf-reproduction"),
        folder: concat!(env!("CARGO_MANIFEST_DIR"), "/golden"),
        data: DATA,
        cases: cases(),
    });
}
