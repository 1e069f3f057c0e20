//! The algorithms: one row of a table for each, with its name and its properties. [`ExternalAlgorithm`] is an algorithm of another
//! crate, which no table names.
//!
//! The properties decide which options an algorithm uses (`table`), and how the solver treats it before and around its epochs.

use std::any::Any;
use std::fmt;

use super::choices::ModelKind;
use super::value::{OptionKind, OptionValue, unknown_word};

/// What an algorithm is and has.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct AlgorithmProperties {
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
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroFilling {
    /// They are unknown.
    Never,
    /// They are 0 if an option of the algorithm has a value.
    Optional {
        /// Name of the option.
        option: &'static str,
        /// Its value where cells are 0.
        zeros: &'static str,
        /// Its value where they are unknown.
        unknown: &'static str,
    },
    /// They are 0.
    Always,
}

impl AlgorithmProperties {
    /// An algorithm of a single model of any kind, without anything further.
    pub const PLAIN: AlgorithmProperties = AlgorithmProperties {
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
}

/// An option of one algorithm of another crate.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct OwnOption {
    /// Name with underscores.
    pub name: &'static str,
    /// Type and range.
    pub kind: OptionKind,
    /// Default value.
    pub default: &'static str,
    /// A valid value other than the default.
    pub example: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Whether a search for options may vary it.
    pub is_searched: bool,
}

/// An algorithm of another crate: a static value that [`Options::with_algorithms`](super::Options::with_algorithms) makes known.
#[doc(hidden)]
pub struct ExternalAlgorithm {
    /// Name, as in the option `algorithm`.
    pub name: &'static str,
    /// What it is and has.
    pub properties: AlgorithmProperties,
    /// The options that only it has.
    pub options: &'static [OwnOption],
    /// A `&'static dyn AlgorithmDefinition` of the solver, which is above this layer.
    pub definition: &'static (dyn Any + Send + Sync),
}

impl fmt::Debug for ExternalAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for ExternalAlgorithm {
    fn eq(&self, other: &ExternalAlgorithm) -> bool {
        self.name == other.name
    }
}

impl Eq for ExternalAlgorithm {}

const SGD: AlgorithmProperties = AlgorithmProperties {
    has_learning_rate: true,
    has_biases: true,
    has_penalties: true,
    has_constraints: true,
    has_matrices: true,
    ..AlgorithmProperties::PLAIN
};

/// Defines [`Algorithm`] from rows `variant = "name": properties;`.
macro_rules! algorithms {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal: $properties:expr;)+) => {
        /// The algorithm of a fit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Algorithm {
            $($(#[$doc])+ $variant,)+
            /// An algorithm of another crate.
            #[doc(hidden)]
            External(&'static ExternalAlgorithm),
        }

        pub(super) const ALGORITHMS: &[&str] = &[$($name),+];

        impl Algorithm {
            /// All algorithms of this library, in the order of the help.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$variant),+];

            pub(crate) fn properties(self) -> AlgorithmProperties {
                match self {
                    $(Algorithm::$variant => $properties,)+
                    Algorithm::External(algorithm) => algorithm.properties,
                }
            }

            /// Returns the word for this choice.
            pub fn name(self) -> &'static str {
                match self {
                    $(Algorithm::$variant => $name,)+
                    Algorithm::External(algorithm) => algorithm.name,
                }
            }
        }
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
        ..AlgorithmProperties::PLAIN
    };
    /// Gibbs sampling, row by row; predictions are averaged over posterior samples.
    Gibbs = "gibbs": AlgorithmProperties {
        has_biases: true,
        has_matrices: true,
        has_single_model: false,
        ..AlgorithmProperties::PLAIN
    };
}

impl OptionValue for Algorithm {
    fn parse(text: &str, _: &OptionKind) -> std::result::Result<Self, String> {
        let found = Algorithm::ALL.iter().find(|a| a.name() == text);
        found.copied().ok_or_else(|| unknown_word(text, ALGORITHMS))
    }

    fn print(&self) -> String {
        self.name().into()
    }
}

impl Algorithm {
    /// Returns the options that only this algorithm has.
    pub(crate) fn own_options(self) -> &'static [OwnOption] {
        match self {
            Algorithm::External(algorithm) => algorithm.options,
            _ => &[],
        }
    }

    /// Returns whether rows are updated from all their entries at once, instead of by SGD.
    pub fn is_rowwise(self) -> bool {
        !self.properties().has_learning_rate
    }

    /// Returns the only kind of model that the algorithm fits; `None` if it fits all.
    pub fn only_model(self) -> Option<ModelKind> {
        self.properties().only_model
    }
}
