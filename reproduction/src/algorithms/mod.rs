//! The baselines, each in a folder with its definition for the driver of the library.
//!
//! `row_computation` is the framework of sums over the entries of a row, `core_products` has products with cores, `zero_filled` solves
//! for new rows of a model that takes cells without an entry as 0.

mod cmtf_opt;
mod core_products;
mod row_computation;
mod sals;
mod stream_ids;
mod tucker_als;
mod zero_filled;

use s3cmtf::internals::AlgorithmDefinition;
use s3cmtf::options::{
    AlgorithmProperties, ExternalAlgorithm, ModelKind, OptionKind, Options, OwnOption, ZeroFilling,
};

/// SALS-single (Shin, Sael and Kang, TKDE 2017): least squares for a block of columns of one row at a time, CP without matrices.
pub static SALS: ExternalAlgorithm = ExternalAlgorithm {
    name: "sals",
    properties: AlgorithmProperties {
        only_model: Some(ModelKind::Cp),
        has_biases: true,
        has_penalties: true,
        ..AlgorithmProperties::PLAIN
    },
    options: &[
        OwnOption {
            name: "subset_size",
            kind: OptionKind::Integer(1, 1024),
            default: "10",
            example: "1",
            help: "Columns that sals updates together",
            is_searched: true,
        },
        OwnOption {
            name: "inner_epochs",
            kind: OptionKind::Integer(1, 1000),
            default: "1",
            example: "2",
            help: "Updates of each such subset of columns per epoch (sals)",
            is_searched: true,
        },
    ],
    definition: &SALS_DEFINITION,
};

/// CMTF-OPT (Acar, Kolda and Dunlavy, 2011): all parameters at once by L-BFGS, CP.
pub static CMTF_OPT: ExternalAlgorithm = ExternalAlgorithm {
    name: "cmtf-opt",
    properties: AlgorithmProperties {
        only_model: Some(ModelKind::Cp),
        has_biases: true,
        has_penalties: true,
        has_matrices: true,
        zero_filling: ZeroFilling::Optional {
            option: "unobserved",
            zeros: "zeros",
            unknown: "unknown",
        },
        // An epoch is a single step.
        default_epochs: 500,
        ..AlgorithmProperties::PLAIN
    },
    options: &[OwnOption {
        name: "unobserved",
        kind: OptionKind::Choice(&["unknown", "zeros"]),
        default: "unknown",
        example: "zeros",
        help: "Cells without an entry: unknown or zeros (cmtf-opt)",
        is_searched: false,
    }],
    definition: &CMTF_OPT_DEFINITION,
};

/// CMTF-Tucker-ALS (Ozcaglar, 2012): higher-order orthogonal iteration on the zero-filled tensor and matrices.
pub static TUCKER_ALS: ExternalAlgorithm = ExternalAlgorithm {
    name: "tucker-als",
    properties: AlgorithmProperties {
        only_model: Some(ModelKind::Tucker),
        has_matrices: true,
        has_orthonormal_factors: true,
        zero_filling: ZeroFilling::Always,
        ..AlgorithmProperties::PLAIN
    },
    options: &[],
    definition: &TUCKER_ALS_DEFINITION,
};

static SALS_DEFINITION: &dyn AlgorithmDefinition = &sals::Sals;
static CMTF_OPT_DEFINITION: &dyn AlgorithmDefinition = &cmtf_opt::CmtfOpt;
static TUCKER_ALS_DEFINITION: &dyn AlgorithmDefinition = &tucker_als::TuckerAls;

/// All baselines.
pub static ALGORITHMS: &[&ExternalAlgorithm] = &[&SALS, &CMTF_OPT, &TUCKER_ALS];

/// Returns the default options, in which the option `algorithm` can name a baseline.
pub fn options() -> Options {
    Options::default().with_algorithms(ALGORITHMS)
}

/// Returns the value of an option that is a whole number.
fn integer_option(options: &Options, name: &str) -> u64 {
    let value = options.own_value(name).and_then(|text| text.parse().ok());
    value.expect("an option of the algorithm, which was checked when it was set")
}
