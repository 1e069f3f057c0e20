//! The kernels of single entries as safe functions, which check lengths and levels.
#![allow(unsafe_code)]

use super::gradient;
use super::naive;
use crate::error::Result;
use crate::progress::count_operations;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::Level;
use crate::simd::{AlignedVec, LANES};
use crate::try_alloc::CORE_ENTRIES;

/// Algorithm that computes the value and gradients of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every mode from scratch, one float at a time (Algorithm 2 of the paper).
    Naive,
    /// Partial contractions shared between modes, at an instruction set.
    Shared(Level),
}

/// Computes values and gradients for one core shape. Owns the buffers; use one per thread.
pub struct TensorKernel {
    shape: CoreShape,
    method: Method,
    level: Level,
    work: AlignedVec,
}

impl TensorKernel {
    /// Creates a kernel for `shape`.
    ///
    /// # Errors
    /// If the memory for its buffers, up to twice that of the core, cannot be allocated.
    ///
    /// # Panics
    /// If this machine does not have the level.
    pub fn new(shape: &CoreShape, method: Method) -> Result<Self> {
        // Both methods compute values without gradients in the same way.
        let level = match method {
            Method::Naive => Level::Scalar,
            Method::Shared(level) => level,
        };
        assert!(
            level.is_available(),
            "this machine does not have {}",
            level.name()
        );
        Ok(TensorKernel {
            work: AlignedVec::try_zeroed(gradient::work_len(shape), CORE_ENTRIES)?,
            shape: shape.clone(),
            method,
            level,
        })
    }

    /// Returns the shape of the core.
    pub fn shape(&self) -> &CoreShape {
        &self.shape
    }

    #[inline]
    fn check(&self, core: &[f32], rows: &[f32]) {
        assert_eq!(
            (core.len(), rows.len()),
            (self.shape.core_len(), self.shape.rows_len())
        );
    }

    /// Returns the value at one entry and writes its gradients. `rows` holds one row per mode at the positions of
    /// [`CoreShape::row`], padded with zeros; `gradients` has the same layout.
    ///
    /// # Panics
    /// If a length does not match the shape.
    pub fn gradients(&mut self, core: &[f32], rows: &[f32], gradients: &mut [f32]) -> f32 {
        self.check(core, rows);
        assert_eq!(gradients.len(), rows.len());
        count_operations(3 * core.len());
        let shape = &self.shape;
        match (shape.kind(), self.method) {
            (CoreKind::Diagonal, Method::Naive) => {
                naive::gradients_diagonal(shape, core, rows, gradients)
            }
            (CoreKind::Full, Method::Naive) => naive::gradients_full(shape, core, rows, gradients),
            // SAFETY: the lengths were checked here, the level by `new`.
            (_, Method::Shared(level)) => unsafe {
                gradient::gradients(
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

    /// Returns the value at one entry.
    ///
    /// # Panics
    /// If a length does not match the shape.
    #[inline]
    pub fn value(&mut self, core: &[f32], rows: &[f32]) -> f32 {
        self.check(core, rows);
        count_operations(core.len());
        let (core, rows, work) = (core.as_ptr(), rows.as_ptr(), self.work.as_mut_ptr());
        // SAFETY: the lengths were checked here, the level by `new`.
        unsafe { gradient::value(self.level, &self.shape, core, rows, work) }
    }

    /// Computes `core = keep * core + scale * (u_1 (x) ... (x) u_N)`, for CP on the diagonal only.
    ///
    /// # Panics
    /// If a length does not match the shape.
    pub fn update_core(&mut self, core: &mut [f32], rows: &[f32], keep: f32, scale: f32) {
        self.check(core, rows);
        count_operations(core.len());
        let (core, rows) = (core.as_mut_ptr(), rows.as_ptr());
        // SAFETY: the lengths were checked here, the level by `new`.
        unsafe { gradient::update_core(self.level, &self.shape, core, rows, keep, scale) }
    }
}

/// Computes `out = sum_i u_i from_i`, where `from` has one slice as long as `out` per element of `u`. Every
/// element of `out` is summed in the same order, wherever it is.
///
/// # Panics
/// If this machine does not have the level, `out` is not whole vectors, or the lengths do not match.
pub fn weighted_sum(level: Level, from: &[f32], u: &[f32], out: &mut [f32]) {
    assert!(level.is_available() && out.len().is_multiple_of(LANES));
    assert_eq!(u.len().checked_mul(out.len()), Some(from.len()));
    count_operations(from.len());
    let (rank, vectors) = (u.len(), out.len() / LANES);
    // SAFETY: the lengths and the level were checked here.
    unsafe {
        gradient::weighted_sum(
            level,
            from.as_ptr(),
            u.as_ptr(),
            rank,
            vectors,
            out.as_mut_ptr(),
        )
    }
}

/// Computes `to_i += u_i from`, where `to` has one slice as long as `from` per element of `u`.
///
/// # Panics
/// If this machine does not have the level, `from` is not whole vectors, or the lengths do not match.
pub fn add_outer(level: Level, from: &[f32], u: &[f32], to: &mut [f32]) {
    assert!(level.is_available() && from.len().is_multiple_of(LANES));
    assert_eq!(u.len().checked_mul(from.len()), Some(to.len()));
    count_operations(to.len());
    let (rank, vectors) = (u.len(), from.len() / LANES);
    // SAFETY: the lengths and the level were checked here.
    unsafe {
        gradient::add_outer(
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
    fn add_outer_is_correct_at_every_level() {
        let mut s = RandomStream::new(&[6]);
        for (vectors, rank) in [(0, 3), (1, 1), (1, 17), (9, 5)] {
            let len = vectors * LANES;
            let mut random_values = |count: usize| -> Vec<f32> {
                let one = |_| s.below(2001) as f32 / 1000.0 - 1.0;
                (0..count).map(one).collect()
            };
            let (from, u, before) = (
                random_values(len),
                random_values(rank),
                random_values(rank * len),
            );
            for level in Level::available() {
                let mut to = before.clone();
                add_outer(level, &from, &u, &mut to);
                for (k, &actual) in to.iter().enumerate() {
                    let expected = before[k] + u[k / len] * from[k % len];
                    assert!((actual - expected).abs() < 1e-6, "{}", level.name());
                }
            }
        }
    }

    #[test]
    fn weighted_sum_is_correct_at_every_level() {
        let mut s = RandomStream::new(&[5]);
        let mut random_values = |count: usize| -> Vec<f32> {
            (0..count)
                .map(|_| s.below(2001) as f32 / 1000.0 - 1.0)
                .collect()
        };
        // Lengths around the number of sums in registers, 8 vectors.
        for vectors in [0, 1, 7, 8, 9, 17] {
            for rank in [1, 3, 16, 17] {
                let len = vectors * LANES;
                let (from, u) = (random_values(rank * len), random_values(rank));
                for level in Level::available() {
                    let mut out = vec![f32::NAN; len];
                    weighted_sum(level, &from, &u, &mut out);
                    for (k, &actual) in out.iter().enumerate() {
                        let term = |i: usize| f64::from(u[i]) * f64::from(from[i * len + k]);
                        let expected: f64 = (0..rank).map(term).sum();
                        assert!(
                            (f64::from(actual) - expected).abs() < 1e-5,
                            "{}",
                            level.name()
                        );
                    }
                }
            }
        }
    }
}
