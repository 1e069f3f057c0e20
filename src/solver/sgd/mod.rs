//! Stochastic gradient descent: the conflict-free default (`blocked`) and the paper's lock-free schedule
//! (`hogwild`). `epoch` holds the work that both do around the entries.

pub(super) mod blocked;
mod epoch;
pub(super) mod hogwild;
mod hogwild_algorithm;

pub(super) use hogwild_algorithm::HogwildSgd;
