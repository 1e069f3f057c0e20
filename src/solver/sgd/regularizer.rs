//! The penalty options in the form of the kernels.

use crate::kernel::Rule;
use crate::options::{Options, Penalty};

/// Returns the kernels' form of the penalty options.
pub(super) fn regularizer(options: &Options) -> Rule {
    Rule {
        l1: options.penalty == Penalty::L1,
        nonneg: options.nonneg,
    }
}
