//! The kernels of single entries, safe to call.
#![allow(unsafe_code)]

use super::{Level, entry, naive};
use crate::model::{CoreKind, CoreShape};

/// A way to compute the value and the slopes of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every mode from scratch, one number at a time.
    Naive,
    /// Partial results shared between modes, with the vectors of a level.
    Shared(Level),
}

/// Computes values and slopes for one core shape, with the buffers that needs. One per thread.
pub struct TensorKernel {
    shape: CoreShape,
    method: Method,
    level: Level,
    work: Vec<f32>,
}

impl TensorKernel {
    /// Buffers for `shape`.
    ///
    /// # Panics
    /// If this machine does not have the level.
    pub fn new(shape: &CoreShape, method: Method) -> Self {
        // Values alone are computed the same way for both methods.
        let level = match method {
            Method::Naive => Level::Scalar,
            Method::Shared(level) => level,
        };
        assert!(
            level.is_available(),
            "this machine does not have {}",
            level.name()
        );
        TensorKernel {
            work: vec![0.0; entry::work_len(shape)],
            shape: shape.clone(),
            method,
            level,
        }
    }

    fn check(&self, core: &[f32], rows: &[f32]) {
        assert_eq!(
            (core.len(), rows.len()),
            (self.shape.core_len(), self.shape.rows_len())
        );
    }

    /// The value at one entry and its slopes. `rows` holds one row per mode one after the other, as
    /// [`CoreShape::row`] places them, padded with zeros; `slopes` is filled the same way.
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn slopes(&mut self, core: &[f32], rows: &[f32], slopes: &mut [f32]) -> f32 {
        self.check(core, rows);
        assert_eq!(slopes.len(), rows.len());
        let shape = &self.shape;
        match (shape.kind, self.method) {
            (CoreKind::Diagonal, Method::Naive) => naive::cp_slopes(shape, core, rows, slopes),
            (CoreKind::Full, Method::Naive) => naive::tucker_slopes(shape, core, rows, slopes),
            // SAFETY: the lengths were checked here, the level when this was made.
            (_, Method::Shared(level)) => unsafe {
                entry::slopes(
                    level,
                    shape,
                    core.as_ptr(),
                    rows.as_ptr(),
                    slopes.as_mut_ptr(),
                    self.work.as_mut_ptr(),
                )
            },
        }
    }

    /// The value alone.
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn value(&mut self, core: &[f32], rows: &[f32]) -> f32 {
        self.check(core, rows);
        let (core, rows, work) = (core.as_ptr(), rows.as_ptr(), self.work.as_mut_ptr());
        // SAFETY: as in `slopes`.
        unsafe { entry::value(self.level, &self.shape, core, rows, work) }
    }

    /// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, on the diagonal only for CP.
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn step_core(&mut self, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
        self.check(core, rows);
        let (core, rows) = (core.as_mut_ptr(), rows.as_ptr());
        // SAFETY: as in `slopes`.
        unsafe { entry::step_core(self.level, &self.shape, core, rows, keep, scale) }
    }
}
