//! The algorithms: one row of a table for each, with its name and its properties.
//!
//! The properties decide which options an algorithm uses (`table`), and how the solver treats it before and around its epochs.

use super::choices::{ModelKind, choices, unknown_word};
use super::value::{OptionKind, OptionValue};

/// What an algorithm is and has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlgorithmProperties {
    /// The only kind of model that it fits; `None` if it fits all.
    pub only_model: Option<ModelKind>,
    /// It is SGD, with a learning rate.
    pub has_learning_rate: bool,
    /// It subtracts biases of rows.
    pub has_biases: bool,
    /// It minimizes squared errors and penalties.
    pub has_penalties: bool,
    /// It can keep factors non-negative, and make them orthonormal after the fit.
    pub has_constraints: bool,
    /// It fits coupled matrices.
    pub has_matrices: bool,
    /// It repeats epochs until the last one and returns a single model, instead of posterior samples.
    pub has_single_model: bool,
    /// Factors are orthonormal at all times, which leaves nothing to penalize. Fits start from random orthonormal factors.
    pub has_orthonormal_factors: bool,
    /// Whether cells without an entry are 0.
    pub zero_filling: ZeroFilling,
    /// Default of the option `epochs`.
    pub default_epochs: u64,
}

/// Whether cells of the tensor and of observed matrices without an entry are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZeroFilling {
    /// They are unknown.
    Never,
    /// The option `unobserved` decides.
    Optional,
    /// They are 0.
    Always,
}

impl AlgorithmProperties {
    /// Returns whether cells without an entry are 0 whatever the options say.
    pub(crate) fn is_always_zero_filled(&self) -> bool {
        self.zero_filling == ZeroFilling::Always
    }
}

/// An algorithm of a single model of any kind, without anything further.
const PLAIN: AlgorithmProperties = AlgorithmProperties {
    only_model: None,
    has_learning_rate: false,
    has_biases: false,
    has_penalties: false,
    has_constraints: false,
    has_matrices: false,
    has_single_model: true,
    has_orthonormal_factors: false,
    zero_filling: ZeroFilling::Never,
    default_epochs: 30,
};

const SGD: AlgorithmProperties = AlgorithmProperties {
    has_learning_rate: true,
    has_biases: true,
    has_penalties: true,
    has_constraints: true,
    has_matrices: true,
    ..PLAIN
};

/// Defines [`Algorithm`] from rows `variant = "name": properties;`.
macro_rules! algorithms {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal: $properties:expr;)+) => {
        /// The algorithm of a fit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Algorithm {
            $($(#[$doc])+ $variant,)+
        }

        impl Algorithm {
            /// All algorithms, in the order of the help.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$variant),+];

            pub(crate) fn properties(self) -> AlgorithmProperties {
                match self {
                    $(Algorithm::$variant => $properties,)+
                }
            }
        }

        choices!(Algorithm, ALGORITHMS: $($variant = $name),+);
    };
}

algorithms! {
    /// SGD on fiber batches in conflict-free blocks: reproducible for any number of threads, and much faster.
    Blocked = "blocked": SGD;
    /// S3CMTF-opt of the paper: lock-free SGD, intermediate results shared between modes.
    Opt = "opt": SGD;
    /// S3CMTF-naive of the paper: lock-free SGD, gradients recomputed for every mode.
    Naive = "naive": SGD;
    /// Alternating least squares, row by row.
    Als = "als": AlgorithmProperties {
        has_biases: true,
        has_penalties: true,
        has_constraints: true,
        has_matrices: true,
        ..PLAIN
    };
    /// Gibbs sampling, row by row; predictions are averaged over posterior samples.
    Gibbs = "gibbs": AlgorithmProperties {
        has_biases: true,
        has_matrices: true,
        has_single_model: false,
        ..PLAIN
    };
    /// SALS-single (Shin, Sael and Kang, TKDE 2017): least squares for a block of columns of one row at a time, CP without
    /// matrices.
    Sals = "sals": AlgorithmProperties {
        only_model: Some(ModelKind::Cp),
        has_biases: true,
        has_penalties: true,
        ..PLAIN
    };
    /// CMTF-OPT (Acar, Kolda and Dunlavy, 2011): all parameters at once by L-BFGS, CP.
    CmtfOpt = "cmtf-opt": AlgorithmProperties {
        only_model: Some(ModelKind::Cp),
        has_biases: true,
        has_penalties: true,
        has_matrices: true,
        zero_filling: ZeroFilling::Optional,
        // An epoch is a single step.
        default_epochs: 500,
        ..PLAIN
    };
    /// CMTF-Tucker-ALS (Ozcaglar, 2012): higher-order orthogonal iteration on the zero-filled tensor and matrices.
    TuckerAls = "tucker-als": AlgorithmProperties {
        only_model: Some(ModelKind::Tucker),
        has_matrices: true,
        has_orthonormal_factors: true,
        zero_filling: ZeroFilling::Always,
        ..PLAIN
    };
}

impl Algorithm {
    /// Returns whether rows are updated from all their entries at once, instead of by SGD.
    pub fn is_rowwise(self) -> bool {
        !self.properties().has_learning_rate
    }

    /// Returns the only kind of model that the algorithm fits; `None` if it fits all.
    pub fn only_model(self) -> Option<ModelKind> {
        self.properties().only_model
    }
}
