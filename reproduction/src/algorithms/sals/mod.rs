//! `sals`: SALS-single, subset alternating least squares for CP models of the observed entries.
//!
//! K. Shin, L. Sael and U. Kang, "Fully scalable methods for distributed tensor factorization", TKDE 2017. The columns of the
//! factors are divided evenly into blocks of at most C. One epoch is one pass over the blocks:
//!
//! ```text
//! for each block B of C columns
//!     r = x - mean - biases - (the other columns' part of the model's value)    for every entry
//!     T times, for each mode n, for each row i of the mode in parallel
//!         u = row i of mode n, restricted to B
//!         u = (lambda_i I + sum w d d^T)^-1 (lambda_i t + sum w d r)            over the entries of the row
//! ```
//!
//! where d is the elementwise product of the other modes' rows, restricted to B, w the weight of the entry, lambda_i the
//! penalty of the row and t its prior mean. With C = 1 this is CDTF (coordinate descent). With C equal to the rank and
//! T = 1 it is `als`, up to rounding.
//!
//! Each mode has its own copy of the entries, grouped by row, and of r. From one block to the next, r changes by the values
//! of two blocks. Each epoch computes it from the model first, so a resumed fit takes the course of an uninterrupted one.
//! Sums of entries are in `f32` over short chunks and in `f64` beyond, normal equations are solved in `f64`.
//!
//! Open `solver` first: it runs an epoch. `definition` is what the driver knows before the solver is created, `setup`
//! prepares the solver and refuses what the method does not have, `mode_entries` are the entries by row, `packed_factors`
//! are the factors during an epoch, one block of columns after the other, `residuals` keeps r up to date, `row_update` solves for
//! the rows of a mode: blocks of at most 8 columns in `kernel::SubsetRows`, wider ones in `wide_rows`.

mod definition;
mod mode_entries;
mod packed_factors;
mod residuals;
mod row_update;
mod setup;
mod solver;
mod wide_rows;

pub(super) use definition::Sals;
