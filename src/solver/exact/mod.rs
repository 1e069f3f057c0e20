//! The exact solvers: every row is found from all its entries at once, given everything else. `als`
//! takes the best row, `gibbs` draws one from its distribution.
//!
//! Rows of a mode do not depend on each other, so they are found side by side (`work`), and the result
//! is the same for any number of threads; rows that a graph links are found colour by colour
//! (`graph`). `start` is where draws begin, with what entries `agree` on; `sweep` goes through modes, columns and core in turn; `prior` is what rows are thought to
//! be like; `held` measures errors, also of the mean of many models; `solver` is what a fit sees.

mod agree;
mod cold;
mod core;
mod fold;
mod graph;
mod held;
mod hyper;
mod prior;
mod solver;
mod start;
mod sweep;
mod work;

pub(super) use cold::{fill_cold, uses};
pub(super) use fold::{Fold, Found, Known, Side};
pub(super) use solver::{Begin, Measured, Solver, unround};
