//! `cmtf-opt`: CMTF-OPT, all parameters of a coupled CP model optimized at once by a quasi-Newton method.
//!
//! E. Acar, T. G. Kolda and D. M. Dunlavy, "All-at-once optimization for coupled matrix and tensor factorizations", 2011. The
//! objective f is that of the other algorithms (`loss`), for a core of ones. The option `unobserved` has its two forms:
//!
//! ```text
//! unknown:  1/2 sum over the observed entries of w (x - x^)^2                       the weighted form
//! zeros:    1/2 sum over all cells of (x - x^)^2, x = 0 for unobserved cells   the zero-filled form
//!           = 1/2 (|X|^2 - 2 <X, X^> + 1^T (U1^T U1 * ... * UN^T UN) 1)
//! ```
//!
//! All cells are those of the rows with entries: rows of zeros would change nothing. In the zero-filled form observed matrices are
//! full, and there are neither mean nor biases. f also has the squared errors of the matrices and the penalties. The gradient by
//! row i of mode n is, without the matrices,
//!
//! ```text
//! unknown:  - sum over the entries of the row of w (x - x^) d + lambda_i (u - t)
//! zeros:    - sum over the entries of the row of x d + (Hadamard product of Um^T Um, m != n) u + lambda_i (u - t)
//! ```
//!
//! where d is the elementwise product of the other modes' rows, lambda_i the penalty of the row and t its prior mean: a sparse
//! MTTKRP over entries grouped by row, one thread per row. One epoch is one iteration of L-BFGS: a direction from the gradient
//! and the last changes, and a line search that satisfies the strong Wolfe conditions, with one evaluation of f and its
//! gradient per trial. If no step lowers f, the epoch leaves the model as it is, and the fit has converged. Inner products, sums
//! and the line search are in `f64`; they are independent of the thread count. Checkpoints have the history, so that a resumed
//! fit takes the same course.
//!
//! Open `solver` first: it runs an epoch. `definition` is what the driver knows before the solver is created, `setup` prepares
//! the solver and refuses what the method does not have, `starting_values` scales its parameters, `objective` computes f and its
//! gradient with one `row_pass` per mode and matrix, `parameter_vector` holds vectors of the parameters' shape, `lbfgs` the
//! history and the direction, `line_search` is the search along it.

mod definition;
mod grouped_entries;
mod lbfgs;
mod line_search;
mod objective;
mod parameter_vector;
mod row_pass;
mod setup;
mod solver;
mod starting_values;
#[cfg(test)]
mod tests;

pub(super) use definition::CmtfOpt;
