//! Fitting models to problems.

mod biases;

pub use biases::{BiasOptions, fit_biases};
