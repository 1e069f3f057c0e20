//! Kernels of the baselines only: coordinate descent, alternating least squares of Tucker models, and CMTF-OPT.
//!
//! - `packed_columns`: a block of columns of a CP model. `residual_update`, `subset_rows`, `subset_sums`:
//!   updates of such a block.
//! - `unfolded_row`, `dense_products`: products with unfolded tensors.
//! - `vector_sums`: sums of long vectors of parameters.

mod dense_products;
mod packed_columns;
mod residual_update;
mod subset_rows;
mod subset_sums;
mod unfolded_row;
mod vector_sums;

pub(crate) use dense_products::{
    DENSE_LANES, Part, add_cross_products, add_row_products, row_inner_products,
};
pub(crate) use packed_columns::{PackedColumns, packed_width};
pub(crate) use residual_update::{BlockValue, exchange_values, subtract_values};
pub(crate) use subset_rows::SubsetRows;
pub(crate) use unfolded_row::{UnfoldedRowScratch, add_unfolded_row};
pub(crate) use vector_sums::{add_scaled, add_symmetric_product, inner_products};
