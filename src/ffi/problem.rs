//! A tensor and the matrices coupled to it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::arg::{SizedStruct, choice, flag, given, hand_over, optional_struct_in, place};
use super::coo_handle::{CooHandle, MatchedSource, Source};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::status::{Failure, Outcome};
use crate::error::Result;
use crate::format::{ModelNames, RowMatch, RowMatcher};
use crate::options::Options;
use crate::problem::{MatrixKind, Problem, ProblemBuilder};

/// The listed entries are factorized; all other cells are unknown.
pub const S3CMTF_MATRIX_OBSERVED: i32 = 0;
/// The entries are similarities between rows of the mode: a graph Laplacian penalty on the differences of similar rows.
pub const S3CMTF_MATRIX_GRAPH: i32 = 1;
/// All cells are factorized; those that are not listed are 0. No cell is listed twice.
pub const S3CMTF_MATRIX_FULL: i32 = 2;
/// The listed entries and randomly sampled zeros are factorized.
pub const S3CMTF_MATRIX_SAMPLED: i32 = 3;
/// As S3CMTF_MATRIX_OBSERVED, or as S3CMTF_MATRIX_FULL if all entries have the same value and a fit predicts held-out entries
/// better with zeros in the other cells.
pub const S3CMTF_MATRIX_AUTO: i32 = 4;

/// How a matrix is coupled to a mode.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Coupling {
    /// sizeof(s3cmtf_coupling).
    pub size: u64,
    /// S3CMTF_MATRIX_...
    pub kind: i32,
    /// S3CMTF_MATRIX_SAMPLED: how many cells that are not listed are sampled as zeros, in the row of each listed entry; at
    /// least 1. They depend on the option "seed". Otherwise 0.
    pub zeros: u32,
    /// The weight of the matrix in the loss (lambda_m of the paper); 0 means the option "lambda_m".
    pub weight: f64,
    /// The penalty on the factor of the columns if `has_penalty` is 1; otherwise the option "lambda_reg" applies.
    pub penalty: f64,
    /// See `penalty`.
    pub has_penalty: i32,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Coupling, kind) == 8);
    assert!(offset_of!(Coupling, zeros) == 12);
    assert!(offset_of!(Coupling, weight) == 16);
    assert!(offset_of!(Coupling, penalty) == 24);
    assert!(offset_of!(Coupling, has_penalty) == 32);
    assert!(size_of::<Coupling>() == 40);
};

// SAFETY: `repr(C)`, the size first, numbers only.
unsafe impl SizedStruct for Coupling {}

/// A tensor and the matrices coupled to its modes.
pub struct ProblemHandle {
    pub(super) parts: Parts,
}

/// The tensor and the matrices of a problem; shared with fits.
#[derive(Clone)]
pub(super) struct Parts {
    tensor: Arc<Source>,
    matrices: Vec<Coupled>,
}

#[derive(Clone)]
struct Coupled {
    mode: usize,
    source: Arc<Source>,
    /// `None`: that of the options.
    weight: Option<f64>,
    penalty: Option<f64>,
    kind: MatrixKind,
}

impl Parts {
    pub fn new(tensor: &CooHandle) -> Parts {
        Parts {
            tensor: tensor.source.clone(),
            matrices: Vec::new(),
        }
    }

    /// Matches the rows of the matrices with those of the tensor.
    pub fn matched(&self) -> Result<MatchedParts<'_>> {
        let tensor = self.tensor.view();
        let names = self.tensor.names()?;
        let mut matcher = RowMatcher::of_tensor(&tensor, names);
        let mut matrices = Vec::new();
        for m in &self.matrices {
            let columns = m.kind.is_graph().then_some(m.mode);
            matrices.push(MatchedSource::coupled(
                &m.source,
                &mut matcher,
                m.mode,
                columns,
            )?);
        }
        for matrix in &mut matrices {
            matrix.rows.update_sizes(&matcher);
        }
        Ok(MatchedParts {
            parts: self,
            matrices,
            matcher,
        })
    }

    /// Returns an error if the parts do not fit together.
    fn check(&self) -> Result<()> {
        self.matched()?.builder(&Options::default()).check()?;
        Ok(())
    }
}

/// The parts of a problem with common numbers of rows.
pub(super) struct MatchedParts<'a> {
    parts: &'a Parts,
    matrices: Vec<MatchedSource<'a>>,
    /// The rows of the tensor and the matrices.
    pub matcher: RowMatcher,
}

impl MatchedParts<'_> {
    /// The problem for a fit with these options; entries are not read yet.
    pub fn builder(&self, options: &Options) -> ProblemBuilder<'_> {
        let mut builder = Problem::builder(self.matcher.tensor(self.parts.tensor.view()))
            .seed(options.seed)
            .threads(options.threads as usize);
        for (m, matched) in self.parts.matrices.iter().zip(&self.matrices) {
            builder = builder.matrix(m.mode, matched.view(), m.weight, m.kind);
            if let Some(penalty) = m.penalty {
                builder = builder.penalty(penalty);
            }
        }
        builder
    }

    /// Matches the rows of test or validation entries.
    pub fn entries<'s>(
        &self,
        source: Option<&'s Arc<Source>>,
    ) -> Result<Option<MatchedSource<'s>>> {
        let matched = |s: &'s Arc<Source>| MatchedSource::entries(s, &mut self.matcher.clone());
        source.map(matched).transpose()
    }

    /// The names of the rows of the modes and of the columns of the matrices.
    pub fn names(&self) -> Result<ModelNames> {
        let columns = self.parts.matrices.iter().map(|m| {
            let mut names = m.source.names()?.into_iter();
            Ok(names.nth(1).flatten().filter(|_| !m.kind.is_graph()))
        });
        Ok(ModelNames {
            modes: self.matcher.names(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    /// Returns a matcher of a model that is fitted to these parts.
    pub fn as_model(&self) -> Result<RowMatcher> {
        let tensor = self.matcher.tensor(self.parts.tensor.view());
        let widths = self
            .parts
            .matrices
            .iter()
            .map(|m| m.source.view().dims()[1]);
        let widths: Vec<u64> = widths.collect();
        let names = self.names()?;
        Ok(RowMatcher::of_model(
            tensor.name(),
            tensor.dims(),
            &widths,
            names,
        ))
    }

    /// Whether the tensor is a file, whose rows may have names.
    pub fn has_file(&self) -> bool {
        self.parts.tensor.file().is_ok()
    }

    /// The row matches of the matrices.
    pub fn matches(&self) -> impl Iterator<Item = &RowMatch> {
        self.matrices.iter().map(|matrix| &matrix.rows)
    }
}

/// Creates a problem from a tensor, which is shared and may be freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_new(
    tensor: Option<&CooHandle>,
    problem: Option<&mut MaybeUninit<*mut ProblemHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (tensor, out) = (given(tensor, "tensor")?, given(problem, "problem")?);
        let parts = Parts::new(tensor);
        hand_over(out, ProblemHandle { parts });
        Ok(())
    })
}

/// Couples a matrix to a mode of the tensor: its rows are the rows of that mode. If both were opened from files with names of these
/// rows, rows are matched by name, and rows that only the matrix has are added to the mode; otherwise by number. `coupling` may be NULL. Any number of
/// matrices may be coupled, several to one mode. The matrix is shared and may be freed. After an error the problem is
/// unchanged.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_problem_add_matrix(
    problem: Option<&mut ProblemHandle>,
    mode: u64,
    matrix: Option<&CooHandle>,
    coupling: *const Coupling,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (problem, matrix) = (given(problem, "problem")?, given(matrix, "matrix")?);
        // SAFETY: a struct of the caller, for this call.
        let coupling = unsafe { optional_struct_in(coupling, "coupling") }?;
        let kind = choice(
            coupling.kind,
            &[
                (S3CMTF_MATRIX_OBSERVED, MatrixKind::Observed),
                (S3CMTF_MATRIX_GRAPH, MatrixKind::Graph),
                (S3CMTF_MATRIX_FULL, MatrixKind::Full),
                (S3CMTF_MATRIX_SAMPLED, MatrixKind::Sampled(coupling.zeros)),
                (S3CMTF_MATRIX_AUTO, MatrixKind::Auto),
            ],
            "coupling->kind",
        )?;
        if coupling.zeros != 0 && !matches!(kind, MatrixKind::Sampled(_)) {
            return Err(Failure::argument(format!(
                "coupling->zeros is {}; it must be 0 unless the kind is S3CMTF_MATRIX_SAMPLED",
                coupling.zeros
            )));
        }
        let penalty = flag(coupling.has_penalty, "coupling->has_penalty")?
            .then(|| non_negative(coupling.penalty, "coupling->penalty"));
        let coupled = Coupled {
            mode: place(mode, problem.parts.tensor.view().order(), "mode")?,
            source: matrix.source.clone(),
            weight: weight(coupling.weight, "coupling->weight")?,
            penalty: penalty.transpose()?,
            kind,
        };
        let mut parts = problem.parts.clone();
        parts.matrices.push(coupled);
        parts.check()?;
        problem.parts = parts;
        Ok(())
    })
}

/// A weight of a matrix; 0 leaves it to the options.
pub(super) fn weight(number: f64, what: &str) -> Outcome<Option<f64>> {
    Ok(Some(non_negative(number, what)?).filter(|&w| w != 0.0))
}

fn non_negative(number: f64, what: &str) -> Outcome<f64> {
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err(Failure::argument(format!(
        "{what} is {number}; it must be a finite number that is not negative"
    )))
}

/// Frees a problem. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_problem_free(problem: Option<Box<ProblemHandle>>) {
    release(|| drop(problem));
}
