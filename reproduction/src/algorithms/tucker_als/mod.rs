//! `tucker-als`: CMTF-Tucker-ALS, higher-order orthogonal iteration (HOOI) on zero-filled data with coupled matrices.
//!
//! C. Ozcaglar, "Algorithmic data fusion methods for tuberculosis", 2012, after L. De Lathauwer, B. De Moor and J. Vandewalle,
//! "On the best rank-1 and rank-(R1, ..., RN) approximation of higher-order tensors", 2000. Cells without an entry are 0. With
//! orthonormal factors A(n) it minimizes
//!
//! ```text
//! 1/2 |X - G x_1 A(1) ... x_N A(N)|^2 + sum_m lambda_m / 2 |Y_m - A(n) V_m^T|^2
//! ```
//!
//! over all cells. One epoch is one sweep over the modes, the mode with the fewest rows first:
//!
//! ```text
//! W    = X x_k A(k)^T for all other modes k, unfolded: a row per row of mode n, a column per combination of ranks
//! M    = [W, sqrt(lambda_m) Y_m for the matrices of mode n]
//! A(n) = the leading left singular vectors of M
//! V_m  = Y_m^T A(n)
//! ```
//!
//! and the core is A(n)^T W of the last mode. The optimal A(n) given the others maximizes |A(n)^T M|, so the objective never
//! increases.
//!
//! W is the memory bottleneck of the method. As in Tucker-MET (T. Kolda and J. Sun, "Scalable tensor decompositions for
//! multi-aspect data mining", 2008) it exists as a whole only if it is small; otherwise a few of its rows exist at a time and
//! are computed again for each product. Singular vectors come from an eigenproblem of the smaller of the two sizes of M, whose
//! matrix is formed if it is small. A fit
//! that needs more memory than is available is refused before anything is allocated.
//!
//! Open `solver` first: it runs an epoch. `definition` is what the driver knows before the solver is created, with `memory`;
//! `setup` prepares the solver and refuses what the method does not have, `mode_entries` are the entries by row,
//! `unfolded_rows` computes W, `unfolding` products with M, `factor_update` the singular vectors from `leading_eigenvectors`,
//! `dense` has products and orthonormalization of matrices with few columns, `workers` their threads, `projection` the core,
//! `objective` the loss.

mod definition;
mod dense;
mod factor_update;
mod leading_eigenvectors;
mod memory;
mod mode_entries;
mod objective;
mod projection;
mod setup;
mod solver;
mod unfolded_rows;
mod unfolding;
mod workers;

pub(super) use definition::TuckerAls;
