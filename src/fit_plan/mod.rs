//! What a fit does, decided before it trains: a plain value that is printed, saved with the model and repeated.
//!
//! The [planner](crate::solver) makes a [`FitPlan`] from a problem and options; training takes no decision that it does not
//! state. `json` writes it without loss and reads it, `text` describes it to people.

mod choice;
mod data_identity;
mod json;
mod text;

pub use choice::Choice;
pub use data_identity::{DataIdentity, EntriesIdentity};

use crate::options::{OptionInfo, OptionRole, Options};
use crate::problem::MatrixKind;

/// The plan of a fit. It does not depend on the machine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FitPlan {
    /// The data that the plan is for.
    pub data: DataIdentity,
    /// All options, resolved. Those of the machine, such as `threads`, have their defaults.
    pub options: Options,
    /// The rank of each mode: that of the options, or the number of rows if that is smaller.
    pub ranks: Vec<usize>,
    /// The matrices, in the order of the problem.
    pub matrices: Vec<MatrixPlan>,
    /// How values are standardized.
    pub values: ValuesPlan,
    /// The noise of `gibbs`; `None` for other algorithms.
    pub noise: Option<NoisePlan>,
    /// What the first epoch starts from.
    pub start: StartPlan,
    /// What the fit needs.
    pub estimate: Estimate,
    /// What the library chose, and the evidence.
    pub choices: Vec<Choice>,
}

/// How a matrix enters a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixPlan {
    /// Mode it is coupled to, counted from 0.
    pub mode: usize,
    /// Its kind. Never [`MatrixKind::Auto`].
    pub kind: MatrixKind,
    /// Its weight; a matrix of weight 0 is not used.
    pub weight: f64,
    /// Penalty on its columns, if it differs from that of the rows.
    pub penalty: Option<f64>,
}

/// How the values of the tensor are standardized.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuesPlan {
    /// What is subtracted.
    pub mean: f64,
    /// What they are divided by.
    pub scale: f64,
    /// Penalty on the biases of each mode; empty without biases.
    pub bias_damping: Vec<f64>,
    /// Whether that is estimated from the entries, so that training estimates it again.
    pub estimates_damping: bool,
}

/// The noise of `gibbs`.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisePlan {
    /// Whether the likelihood is probit, which has no noise of its own.
    pub is_probit: bool,
    /// Variance of the noise that drives the sampler, as a multiple of that of the residuals.
    pub variance_ratio: f64,
    /// Variance of a value given a posterior sample, for predictive intervals, as a multiple of that of the residuals.
    pub interval_ratio: f64,
    /// Whether factors stay at their prior means, so that biases alone predict.
    pub has_biases_only: bool,
    /// First and last number of the sweeps before the first epoch, in which part of the entries is held out.
    pub sweeps: Vec<(u64, u64)>,
    /// The same of the sweeps with the probit likelihood that follow.
    pub probit_sweeps: Option<(u64, u64)>,
}

/// What the first epoch starts from.
#[derive(Debug, Clone, PartialEq)]
pub enum StartPlan {
    /// What the option `start` says.
    Option,
    /// The model that the caller gives.
    Model {
        /// Checksum of its parameters.
        checksum: u32,
    },
    /// The last sample of a short chain.
    Chain {
        /// Number of its sweeps.
        sweeps: u64,
        /// Number of its components.
        rank: usize,
    },
}

/// What a fit needs, estimated from its sizes. Training does not read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Bytes of memory.
    pub bytes: f64,
    /// Updates of an entry: entries of tensor and matrices times epochs, if no stopping rule ends the fit.
    pub entry_updates: f64,
    /// Floating-point operations of these updates.
    pub operations: f64,
}

impl FitPlan {
    /// Returns these options without those of the machine, which have their defaults.
    pub(crate) fn portable_options(options: &Options) -> Options {
        let mut portable = options.clone();
        let is_of_machine = |o: &&OptionInfo| o.has_role(OptionRole::NotSaved);
        for option in options.all_options().iter().filter(is_of_machine) {
            portable
                .set(option.name, option.default)
                .expect("defaults are valid");
        }
        portable.given.clear();
        portable
    }

    /// Returns the options that a plan states: all but those of the machine.
    fn stated_options(options: &Options) -> Vec<OptionInfo> {
        let mut stated = options.all_options();
        stated.retain(|o| !o.has_role(OptionRole::NotSaved));
        stated
    }
}
