//! Stochastic gradient descent: the conflict-free default (`blocked`) and the paper's lock-free schedule
//! (`hogwild`).

pub(super) mod blocked;
pub(super) mod hogwild;
