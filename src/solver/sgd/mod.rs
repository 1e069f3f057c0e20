//! Stochastic gradient descent.
//!
//! - [`blocked`]: the default. Threads own disjoint rows; the result is independent of the thread count.
//! - [`hogwild`]: the paper's lock-free schedule (`opt`, `naive`). Threads share all rows.
//! - `outer_updates`: the updates around an epoch that do not go through the entries, and the penalties in the form of the
//!   kernels.
//!
//! An epoch takes a model, the data in the layout of the algorithm, and a learning rate. It changes the model and returns
//! the sum of squared errors, or `None` if it was cancelled. Open `blocked/mod.rs` first.

pub(super) mod blocked;
pub(super) mod hogwild;
mod outer_updates;
