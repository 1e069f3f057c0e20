//! The penalty options in the form of the kernels.

use crate::kernel::Regularizer;
use crate::options::{Options, Penalty};

/// Returns the kernels' form of the penalty options.
pub(super) fn regularizer(options: &Options) -> Regularizer {
    Regularizer {
        l1: options.penalty == Penalty::L1,
        nonneg: options.nonneg,
    }
}
