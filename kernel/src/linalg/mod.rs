//! Small dense linear algebra in `f64`: vectors, and row-major matrices as flat slices.
//!
//! Used for hyperpriors, spectral initialization, orthogonalization, and wherever `f32` is not precise enough.
//! Matrices have the size of a rank, so the algorithms are the plain textbook ones and single-threaded.
//! Every function sums in a fixed order, so results are reproducible.
//!
//! - `vector`: inner products and updates of vectors.
//! - `cholesky`: factorization, triangular solves and inverse of symmetric positive definite matrices.
//! - `symmetric_eigen`: eigenvalues and eigenvectors of symmetric matrices (Jacobi).
//! - `gram_schmidt`: orthonormal columns, and QR.
//! - `conjugate_gradient`: systems known through matrix-vector products only.
//! - `coordinate_descent`: quadratic problems with bounds or an l1 penalty.

mod cholesky;
mod conjugate_gradient;
mod coordinate_descent;
mod gram_schmidt;
mod symmetric_eigen;
mod vector;

pub use cholesky::{
    cholesky, cholesky_into, inverse, regularized_cholesky, solve_lower, solve_lower_transposed,
};
pub use conjugate_gradient::{ConjugateGradient, Operator};
pub use coordinate_descent::{CoordinateDescent, WARM_START_PASSES};
pub use gram_schmidt::{extend_orthonormal, orthonormalize, qr};
pub use symmetric_eigen::{Eigen, JacobiTolerance, jacobi, symmetric_eigen};
pub use vector::{add_scaled, dot, scale_to_norm};
