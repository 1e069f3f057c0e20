//! The exact solvers: every row is found from all its entries at once, given everything else. `als`
//! takes the best row, `gibbs` draws one from its distribution.
//!
//! Rows of a mode do not depend on each other, so they are found side by side (`work`), and the result
//! is the same for any number of threads; rows that a graph links are found colour by colour
//! (`graph`). `start` is where draws begin, with what entries `agree` on; `sweep` goes through modes, columns and core in turn; `prior` is what rows are thought to
//! be like; `held` measures errors, also of the mean of many models; `solver` is what a fit sees.

mod algorithm;
mod cold_start;
mod core_update;
mod graph;
mod holdout;
mod hyperpriors;
mod initialization;
mod new_rows;
mod normal_wishart;
mod solver;
mod spectral_init;
mod sweep;
mod work;

pub(super) use cold_start::{fill_cold, uses};
pub(super) use new_rows::{Fold, Found, Known, Side};
pub(super) use solver::{Solver, unround};
