//! The arithmetic of the model, on slices and lengths alone.
//!
//! One entry of the tensor needs the model's value there and, for every mode n, the slope
//! d_n = G x_{-n} {u}: the derivative of the value by the mode's row. The paper gets the slopes by
//! collapsing S (the products g u v w) and dividing by the row; the kernels here collapse the partial
//! products of S without the mode's own factor, which is the same vector without the division.
//!
//! - [`mod@reference`]: plain loops, generic over the float type: the oracle for everything else.
//! - `naive`: Algorithm 2 of the paper, every mode from scratch, O(N^2 J^N).
//! - `general`: any order, partial contractions shared between modes, O(N J^N).
//! - `order3`: the same for order 3 with SIMD.
//! - `cp`: hyper-diagonal core, O(N J).
//! - [`racing`]: rows that several threads update without synchronization.
// One index runs over several arrays at once in most loops here.
#![allow(clippy::needless_range_loop)]

mod cp;
mod general;
mod naive;
mod order3;
pub mod racing;
pub mod reference;

use crate::model::{CoreKind, CoreShape};

/// A way to compute the value and the slopes of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every mode from scratch.
    Naive,
    /// Partial results shared between modes; SIMD for order 3.
    Shared,
}

/// Computes values and slopes for one core shape, with the buffers that needs. One per thread.
pub struct TensorKernel {
    shape: CoreShape,
    method: Method,
    work: Vec<Vec<f32>>,
}

impl TensorKernel {
    /// Buffers for `shape`.
    pub fn new(shape: &CoreShape, method: Method) -> Self {
        let work = match (shape.kind, method) {
            (CoreKind::Diagonal, _) => Vec::new(),
            (CoreKind::Full, Method::Shared) if shape.order() == 3 => order3::buffers(shape),
            // Values alone are computed the same way for both methods.
            (CoreKind::Full, _) => general::buffers(shape),
        };
        TensorKernel {
            shape: shape.clone(),
            method,
            work,
        }
    }

    /// The value at one entry and its slopes. `rows` holds one row per mode one after the other, as
    /// [`CoreShape::row`] places them, padded with zeros; `slopes` is filled the same way.
    pub fn slopes(&mut self, core: &[f32], rows: &[f32], slopes: &mut [f32]) -> f32 {
        let shape = &self.shape;
        debug_assert_eq!(
            (core.len(), rows.len()),
            (shape.core_len(), shape.rows_len())
        );
        match (shape.kind, self.method) {
            (CoreKind::Diagonal, Method::Naive) => naive::cp_slopes(shape, core, rows, slopes),
            (CoreKind::Diagonal, Method::Shared) => cp::slopes(shape, core, rows, slopes),
            (CoreKind::Full, Method::Naive) => naive::tucker_slopes(shape, core, rows, slopes),
            (CoreKind::Full, Method::Shared) if shape.order() == 3 => {
                order3::slopes(shape, core, rows, slopes, &mut self.work)
            }
            (CoreKind::Full, Method::Shared) => {
                general::slopes(shape, core, rows, slopes, &mut self.work)
            }
        }
    }

    /// The value alone.
    pub fn value(&mut self, core: &[f32], rows: &[f32]) -> f32 {
        match self.shape.kind {
            CoreKind::Diagonal => cp::value(&self.shape, core, rows),
            CoreKind::Full => general::value(&self.shape, core, rows, &mut self.work),
        }
    }

    /// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, on the diagonal only for CP.
    pub fn step_core(&mut self, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
        match self.shape.kind {
            CoreKind::Diagonal => cp::step_core(&self.shape, core, rows, keep, scale),
            CoreKind::Full => general::step_core(&self.shape, core, rows, keep, scale),
        }
    }
}
