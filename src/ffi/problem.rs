//! A tensor with what is coupled to it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::arg::{choice, given, hand_over, place};
use super::coo_handle::{CooHandle, Source};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::status::{Failure, Outcome};
use crate::error::Result;
use crate::problem::{MatrixKind, Problem, ProblemBuilder};

/// A coupled matrix is factorized over its entries.
pub const S3CMTF_MATRIX_OBSERVED: i32 = 0;
/// A coupled matrix holds similarities between the rows of its mode, and draws similar rows together.
pub const S3CMTF_MATRIX_GRAPH: i32 = 1;
/// A coupled matrix is factorized over all its cells; those that are not listed are 0.
pub const S3CMTF_MATRIX_FULL: i32 = 2;
/// A coupled matrix is factorized over its entries and zeros that were drawn for them: see
/// s3cmtf_problem_add_sampled_matrix().
pub const S3CMTF_MATRIX_SAMPLED: i32 = 3;

/// As a weight this stands for the options "matrix_weights" and "lambda_m" of the fit, as a penalty for "lambda_reg".
pub const S3CMTF_FROM_OPTIONS: f64 = -1.0;

/// A tensor and the matrices and graphs coupled to its modes. Fits copy what they need when they begin, so
/// any number of fits may share one, one after the other or side by side.
pub struct ProblemHandle {
    pub(super) parts: Parts,
}

/// What a problem is made of; shared with fits.
#[derive(Clone)]
pub(super) struct Parts {
    tensor: Arc<Source>,
    matrices: Vec<Coupled>,
}

#[derive(Clone)]
struct Coupled {
    mode: usize,
    source: Arc<Source>,
    /// `None` takes the one of the options.
    weight: Option<f64>,
    penalty: Option<f64>,
    kind: MatrixKind,
}

impl Parts {
    /// The problem of these parts, entries not read yet.
    pub fn builder(&self, seed: u64) -> ProblemBuilder<'_> {
        let mut builder = Problem::builder(self.tensor.view()).seed(seed);
        for m in &self.matrices {
            builder = builder.matrix(m.mode, m.source.view(), m.weight, m.kind);
            if let Some(penalty) = m.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder
    }

    /// The size of each mode, if all parts fit together.
    fn check(&self) -> Result<Vec<u64>> {
        self.builder(0).check()
    }
}

/// Makes a problem of a tensor, to be freed with s3cmtf_problem_free(). The tensor is shared and may be
/// freed before.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_new(
    tensor: Option<&CooHandle>,
    problem: Option<&mut MaybeUninit<*mut ProblemHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (tensor, out) = (given(tensor, "tensor")?, given(problem, "problem")?);
        hand_over(
            out,
            ProblemHandle {
                parts: Parts {
                    tensor: tensor.source.clone(),
                    matrices: Vec::new(),
                },
            },
        );
        Ok(())
    })
}

/// Couples a matrix to a mode of the tensor (counted from 0): its rows are the rows of that mode. `kind` is
/// S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_GRAPH or S3CMTF_MATRIX_FULL; the last has no cell twice and makes every
/// row of the mode one that occurs. `weight` is lambda_m of the paper and `penalty` the one on
/// the columns of the matrix; S3CMTF_FROM_OPTIONS leaves either to the options of the fit. Any number of
/// matrices may be coupled, several to one mode. If the sizes do not agree the problem stays as it was.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_add_matrix(
    problem: Option<&mut ProblemHandle>,
    mode: u64,
    matrix: Option<&CooHandle>,
    kind: i32,
    weight: f64,
    penalty: f64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        if kind == S3CMTF_MATRIX_SAMPLED {
            return Err(Failure::argument(
                "kind is S3CMTF_MATRIX_SAMPLED; s3cmtf_problem_add_sampled_matrix() takes such a matrix, and how \
                 many zeros to draw",
            ));
        }
        let kind = choice(
            kind,
            &[
                (S3CMTF_MATRIX_OBSERVED, MatrixKind::Observed),
                (S3CMTF_MATRIX_GRAPH, MatrixKind::Graph),
                (S3CMTF_MATRIX_FULL, MatrixKind::Full),
            ],
            "kind",
        )?;
        add(problem, mode, matrix, kind, (weight, penalty))
    })
}

/// As s3cmtf_problem_add_matrix(), for a matrix that lists what is not 0: for each such entry `zeros` cells of
/// its row that are not listed are drawn and count as entries of value 0, or all there are if they are fewer.
/// They are drawn when a fit begins, by its option "seed". `zeros` must be 1 or more.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_add_sampled_matrix(
    problem: Option<&mut ProblemHandle>,
    mode: u64,
    matrix: Option<&CooHandle>,
    zeros: u32,
    weight: f64,
    penalty: f64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let kind = MatrixKind::Sampled(zeros);
        add(problem, mode, matrix, kind, (weight, penalty))
    })
}

fn add(
    problem: Option<&mut ProblemHandle>,
    mode: u64,
    matrix: Option<&CooHandle>,
    kind: MatrixKind,
    (weight, penalty): (f64, f64),
) -> Outcome {
    let (problem, matrix) = (given(problem, "problem")?, given(matrix, "matrix")?);
    let coupled = Coupled {
        mode: place(mode, problem.parts.tensor.view().order(), "mode")?,
        source: matrix.source.clone(),
        weight: own(weight, "weight")?,
        penalty: own(penalty, "penalty")?,
        kind,
    };
    let mut parts = problem.parts.clone();
    parts.matrices.push(coupled);
    parts.check()?;
    problem.parts = parts;
    Ok(())
}

/// A number, or `None` for the one that stands for the options.
pub(super) fn own(number: f64, what: &str) -> Outcome<Option<f64>> {
    if number == S3CMTF_FROM_OPTIONS {
        return Ok(None);
    }
    if !(number.is_finite() && number >= 0.0) {
        return Err(Failure::argument(format!(
            "{what} is {number}; it must be a finite number, 0 or more, or S3CMTF_FROM_OPTIONS"
        )));
    }
    Ok(Some(number))
}

/// Frees a problem. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_free(problem: Option<Box<ProblemHandle>>) {
    release(|| drop(problem));
}
