//! Small dense linear algebra in `f64`.

mod coordinate_descent;
mod dense;

pub(crate) use coordinate_descent::*;
pub(crate) use dense::*;
