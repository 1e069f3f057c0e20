//! The arithmetic of the model, on slices alone.

pub mod reference;
