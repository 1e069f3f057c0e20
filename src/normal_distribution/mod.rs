//! The standard normal distribution: density, distribution function and quantiles.

mod cdf;
mod quantile;
mod tabulated_cdf;

pub(crate) use cdf::{normal_crps, normal_density, normal_probability};
pub(crate) use quantile::normal_quantile;
pub(crate) use tabulated_cdf::tabulated_normal_cdf;
