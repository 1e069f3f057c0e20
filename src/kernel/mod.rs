//! The arithmetic of the model, on pointers and lengths alone.
//!
//! One entry of the tensor needs the model's value there and, for every mode n, the slope
//! d_n = G x_{-n} {u}: the derivative of the value by the mode's row. The paper gets the slopes by
//! collapsing S (the products g u v w) and dividing by the row; the kernels here collapse the partial
//! products of S without the mode's own factor, which is the same vector without the division.
//!
//! - [`mod@reference`]: plain loops, generic over the float type: the oracle for everything else.
//! - `naive`: Algorithm 2 of the paper, every mode from scratch, O(N^2 J^N).
//! - `entry`: one entry, partial contractions shared between modes, O(N J^N); O(N J) for CP.
//! - `lines`: what those are written in; [`Level`]: the instruction sets they are stamped for.
//! - `grid`, `cell`: entries sorted into cells and grouped by a shared row; `batch`, `walk`, `after`,
//!   `vector`, `small3`, `large3`, `order4`, `general`: what runs them, O(J^2) per entry for order
//!   3; `single`: entries one by one; `eval`: errors on them; `graph`: edges.
//! - `colour`, `classes`: entries that have no rows in common, in cells of classes.
//! - `lease`: rows that threads take turns at, which those work on.
//! - `flat`, `lockfree`: runs of single entries of a lock-free fit, the core read once per entry; `hand`: the rows
//!   a thread of it works on.
//! - [`racing`]: rows that several threads update without synchronization.
//! - `lists`, `normal`, `cholesky`: entries by row, the normal equations of a row, and their solution,
//!   for the exact solvers; `along`: runs of entries, for the core of those.
//! - `peak`: what the machine could do at most.
// One index runs over several arrays at once in most loops here.
#![allow(clippy::needless_range_loop)]

mod after;
mod along;
mod batch;
mod cell;
#[cfg(test)]
mod cell_tests;
mod cholesky;
mod classes;
mod colour;
mod entry;
mod eval;
mod flat;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod flat_x86;
mod general;
mod graph;
mod grid;
#[cfg(test)]
mod grid_tests;
mod hand;
mod large3;
mod lease;
mod level;
mod lines;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod lines_x86;
mod lists;
mod lockfree;
mod naive;
mod nearest;
mod normal;
#[cfg(test)]
mod normal_tests;
mod order4;
mod peak;
pub mod racing;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod racing_x86;
pub mod reference;
mod single;
mod small3;
mod tensor;
mod turn;
mod vector;
mod walk;

pub(crate) use along::{Share, along};
pub(crate) use batch::{LONGEST, Rule};
pub(crate) use cell::{Form, Hold, Scratch, Settings, cell_errors, cell_squares, run, run_graph};
pub(crate) use cholesky::{Noise, solve};
pub(crate) use classes::{Class, Classes, OpenClass, Seen};
pub(crate) use colour::Palette;
pub(crate) use grid::{Cell, Sorted, Spec};
pub(crate) use hand::Hand;
pub(crate) use lease::{Lease, LeasedRows, Parts};
pub use level::{Level, VARIABLE};
pub(crate) use lists::Lists;
pub(crate) use lockfree::{Runner, Steps, Walk, run_edges, run_matrix};
pub(crate) use nearest::{Lanes, nearest};
pub(crate) use normal::{Normal, Other, Room, Slopes};
pub use peak::peak_flops;
pub use tensor::{Method, TensorKernel};
pub(crate) use tensor::{combine, spread};
pub(crate) use turn::Turn;
