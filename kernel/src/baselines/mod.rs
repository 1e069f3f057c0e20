//! Kernels of the baselines only: coordinate descent, alternating least squares of Tucker models, and CMTF-OPT.
//!
//! - `packed_columns`: a block of columns of a CP model. `residual_update`, `residual_products`, `subset_rows`, `subset_sums`:
//!   updates of such a block.
//! - `unfolded_row`, `dense_products`: products with unfolded tensors.
//! - `vector_sums`: sums of long vectors of parameters.

pub(crate) mod dense_products;
pub(crate) mod packed_columns;
mod residual_products;
pub(crate) mod residual_update;
pub(crate) mod subset_rows;
mod subset_sums;
pub(crate) mod unfolded_row;
pub(crate) mod vector_sums;
