//! The kernels of single entries, safe to call.
#![allow(unsafe_code)]

use super::{entry_gradient, naive};
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES};

use crate::kernel::{CoreKind, CoreShape};

/// A way to compute the value and the gradients of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every mode from scratch, one number at a time.
    Naive,
    /// Partial results shared between modes, with the vectors of a level.
    Shared(Level),
}

/// Computes values and gradients for one core shape, with the buffers that needs. One per thread.
pub struct TensorKernel {
    shape: CoreShape,
    method: Method,
    level: Level,
    work: AlignedVec,
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
            work: AlignedVec::zeroed(entry_gradient::work_len(shape)),
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

    /// The value at one entry and its gradients. `rows` holds one row per mode one after the other, as
    /// [`CoreShape::row`] places them, padded with zeros; `gradients` is filled the same way.
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn slopes(&mut self, core: &[f32], rows: &[f32], gradients: &mut [f32]) -> f32 {
        self.check(core, rows);
        assert_eq!(gradients.len(), rows.len());
        let shape = &self.shape;
        match (shape.kind, self.method) {
            (CoreKind::Diagonal, Method::Naive) => {
                naive::gradients_diagonal(shape, core, rows, gradients)
            }
            (CoreKind::Full, Method::Naive) => naive::gradients_full(shape, core, rows, gradients),
            // SAFETY: the lengths were checked here, the level when this was made.
            (_, Method::Shared(level)) => unsafe {
                entry_gradient::gradients(
                    level,
                    shape,
                    core.as_ptr(),
                    rows.as_ptr(),
                    gradients.as_mut_ptr(),
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
        // SAFETY: as in `gradients`.
        unsafe { entry_gradient::value(self.level, &self.shape, core, rows, work) }
    }

    /// `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, on the diagonal only for CP.
    ///
    /// # Panics
    /// If a length is not that of the shape.
    pub fn step_core(&mut self, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
        self.check(core, rows);
        let (core, rows) = (core.as_mut_ptr(), rows.as_ptr());
        // SAFETY: as in `gradients`.
        unsafe { entry_gradient::update_core(self.level, &self.shape, core, rows, keep, scale) }
    }
}

/// `out = sum_i u_i from_i`: `from` has a slice as long as `out` for each number of `u`. Every place of `out` is summed
/// in the same order, wherever it is.
///
/// # Panics
/// If this machine does not have the level, or the lengths are not whole vectors and those of each other.
pub(crate) fn weighted_sum(level: Level, from: &[f32], u: &[f32], out: &mut [f32]) {
    assert!(level.is_available() && out.len().is_multiple_of(LANES));
    assert_eq!(u.len().checked_mul(out.len()), Some(from.len()));
    let (rank, vectors) = (u.len(), out.len() / LANES);
    // SAFETY: the lengths were checked here, and so was the level.
    unsafe {
        entry_gradient::weighted_sum(
            level,
            from.as_ptr(),
            u.as_ptr(),
            rank,
            vectors,
            out.as_mut_ptr(),
        )
    }
}

/// `to_i += u_i from`: `to` has a slice as long as `from` for each number of `u`.
///
/// # Panics
/// As [`weighted_sum`].
pub(crate) fn add_outer(level: Level, from: &[f32], u: &[f32], to: &mut [f32]) {
    assert!(level.is_available() && from.len().is_multiple_of(LANES));
    assert_eq!(u.len().checked_mul(from.len()), Some(to.len()));
    let (rank, vectors) = (u.len(), from.len() / LANES);
    // SAFETY: the lengths were checked here, and so was the level.
    unsafe {
        entry_gradient::add_outer(
            level,
            from.as_ptr(),
            u.as_ptr(),
            rank,
            vectors,
            to.as_mut_ptr(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn slices_are_added_to_at_every_level() {
        let mut s = RandomStream::new(&[6]);
        for (vectors, rank) in [(0, 3), (1, 1), (1, 17), (9, 5)] {
            let len = vectors * LANES;
            let mut numbers = |count: usize| -> Vec<f32> {
                let one = |_| s.below(2001) as f32 / 1000.0 - 1.0;
                (0..count).map(one).collect()
            };
            let (from, u, before) = (numbers(len), numbers(rank), numbers(rank * len));
            for level in Level::available() {
                let mut to = before.clone();
                add_outer(level, &from, &u, &mut to);
                for (k, &found) in to.iter().enumerate() {
                    let expected = before[k] + u[k / len] * from[k % len];
                    assert!((found - expected).abs() < 1e-6, "{}", level.name());
                }
            }
        }
    }

    #[test]
    fn slices_are_combined_at_every_level() {
        let mut s = RandomStream::new(&[5]);
        let mut numbers = |count: usize| -> Vec<f32> {
            (0..count)
                .map(|_| s.below(2001) as f32 / 1000.0 - 1.0)
                .collect()
        };
        // RowProducts what is kept in registers at a time.
        for vectors in [0, 1, 7, 8, 9, 17] {
            for rank in [1, 3, 16, 17] {
                let len = vectors * LANES;
                let (from, u) = (numbers(rank * len), numbers(rank));
                for level in Level::available() {
                    let mut out = vec![f32::NAN; len];
                    weighted_sum(level, &from, &u, &mut out);
                    for (k, &found) in out.iter().enumerate() {
                        let term = |i: usize| f64::from(u[i]) * f64::from(from[i * len + k]);
                        let expected: f64 = (0..rank).map(term).sum();
                        assert!(
                            (f64::from(found) - expected).abs() < 1e-5,
                            "{}",
                            level.name()
                        );
                    }
                }
            }
        }
    }
}
