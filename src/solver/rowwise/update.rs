//! The two ways in which `als` and `gibbs` update a block of parameters given all others.

/// How parameters are updated from their normal equations.
#[derive(Debug, Clone, Copy)]
pub(super) enum Update {
    /// `als`: the minimizer of the penalized squared error.
    LeastSquares {
        /// Penalty on the squares of the core.
        core_ridge: f64,
        /// Whether parameters must be non-negative.
        nonneg: bool,
    },
    /// `gibbs`: a sample of the conditional distribution given all other parameters.
    Sample { seed: u64 },
}
