//! A tensor with what is coupled to it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::arg::{choice, given, hand_over, place};
use super::coo::{CooHandle, Source};
use super::error::ErrorHandle;
use super::guard::{guard, release};
use super::status::{Failure, Outcome};
use crate::error::Result;
use crate::problem::{MatrixKind, Problem, ProblemBuilder};

/// A coupled matrix is factorized over its entries.
pub const S3CMTF_MATRIX_OBSERVED: i32 = 0;
/// A coupled matrix holds similarities between the rows of its mode, and draws similar rows together.
pub const S3CMTF_MATRIX_GRAPH: i32 = 1;

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
    pub fn builder(&self) -> ProblemBuilder<'_> {
        let mut builder = Problem::builder(self.tensor.view());
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
        self.builder().check()
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
/// S3CMTF_MATRIX_OBSERVED or S3CMTF_MATRIX_GRAPH. `weight` is lambda_m of the paper and `penalty` the one on
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
        let (problem, matrix) = (given(problem, "problem")?, given(matrix, "matrix")?);
        let kind = choice(
            kind,
            &[
                (S3CMTF_MATRIX_OBSERVED, MatrixKind::Observed),
                (S3CMTF_MATRIX_GRAPH, MatrixKind::Graph),
            ],
            "kind",
        )?;
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
    })
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
