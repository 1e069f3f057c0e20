//! The meaning of the columns of a factor (latent concepts), and their strength for given rows: the personal profile of
//! the paper.
//!
//! Let R = G x_1 u be the core contracted with the rows that are given. Concept j of a mode then adds v_j (R w)_j to the
//! prediction of a position, where v is the row of that mode and w the row of the remaining mode. A fit determines
//! neither the scale nor the sign of a column, so the entries of R and of a column have no meaning by themselves.
//! The strength of a concept is therefore the root mean square of its contribution over all rows v and w, weighted by
//! their tensor entries. For orthonormal columns it equals the norm of a row of R, the strength defined in the paper,
//! up to a common factor.

use std::cmp::Ordering;

use super::core_contraction::{contract_given, contract_means};
use super::model_rows::{check_mode, compact_row};
use super::parameter_view::ParameterView;
use super::prediction_metric::{prediction_metric, second_moment};
use super::top_k::RankedRow;
use crate::error::{Error, Result};
use crate::model::{Model, ModelMatrix};
use crate::progress::{Monitor, check_cancelled};
use crate::sort::stable_sort_by;

/// Options of [`describe_concepts`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConceptOptions {
    /// The mode whose concepts are described, counted from 0.
    pub mode: usize,
    /// Modes and their given rows, counted from 0. The other modes are averaged over.
    pub given: Vec<(usize, u32)>,
    /// The largest number of rows, and of columns per matrix, at each end of a concept.
    pub top: usize,
    /// The smallest number of tensor entries of a listed row.
    pub min_entries: u64,
}

impl ConceptOptions {
    /// Returns options with lists of ten and no given rows.
    pub fn new(mode: usize) -> ConceptOptions {
        ConceptOptions {
            mode,
            given: Vec::new(),
            top: 10,
            min_entries: 1,
        }
    }
}

/// The association of a column of a coupled matrix with a concept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Association {
    /// The matrix of the model, counted from 0.
    pub matrix: usize,
    /// The column, counted from 0.
    pub column: u32,
    /// The contribution of the concept to the prediction of this column for a row of loading 1, divided by the root mean
    /// square of the predictions of the column.
    pub contribution: f64,
}

/// A latent concept: a column of a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Concept {
    /// The column of the factor, counted from 0.
    pub column: usize,
    /// The root mean square of its contribution to predictions.
    pub strength: f64,
    /// Its contribution for a row of loading 1 when modes without a given row are at their mean rows. The sign of the
    /// column is chosen so that this is not negative.
    pub effect: f64,
    /// Whether the sign of the column was flipped.
    pub sign_flipped: bool,
    /// The rows with the largest loadings, in descending order. Ties go to the row with more entries.
    ///
    /// A loading is a value of the column divided by the root mean square of the column, weighted by tensor entries.
    pub largest: Vec<RankedRow>,
    /// The rows with the smallest loadings, in ascending order. Ties go to the row with more entries.
    pub smallest: Vec<RankedRow>,
    /// The columns of each matrix of the mode with the largest contributions, in descending order per matrix.
    pub positive: Vec<Association>,
    /// The columns with the smallest contributions, in ascending order per matrix.
    pub negative: Vec<Association>,
}

/// The matrix R, scaled to factor columns of root mean square 1. It exists if exactly one mode besides the described one
/// has no given row.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The mode of its columns, counted from 0.
    pub mode: usize,
    /// The number of its columns.
    pub columns: usize,
    /// Its values, row-major, with one row per concept in the order of the factor columns.
    pub values: Vec<f64>,
}

/// The concepts of a mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Concepts {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The concepts, the strongest first.
    pub concepts: Vec<Concept>,
    /// The profile, if R is a matrix.
    pub profile: Option<Profile>,
}

/// Describes the concepts of a mode, for the given rows or on average.
///
/// The model must have the given rows. In a model with posterior samples, the concepts are those of the last sample.
pub fn describe_concepts(
    model: &Model,
    options: &ConceptOptions,
    monitor: &dyn Monitor,
) -> Result<Concepts> {
    let mode = options.mode;
    check_mode(model, mode)?;
    let mut given: Vec<(usize, usize)> = Vec::new();
    for &(n, index) in &options.given {
        check_mode(model, n)?;
        if n == mode || given.iter().any(|(m, _)| *m == n) {
            return Err(Error::argument(format!(
                "a row of mode {} is given {}",
                n + 1,
                if n == mode {
                    "whose concepts are asked for; give rows of other modes"
                } else {
                    "twice; give one"
                }
            )));
        }
        given.push((n, compact_row(model, n, index)? as usize));
    }
    let parameters = ParameterView::own(model);
    let rank = model.shape().ranks()[mode];
    let moment = second_moment(model, &parameters, mode, monitor)?;
    let column_rms = square_roots(diagonal(&moment, rank));
    let metric = prediction_metric(model, &parameters, mode, &given, monitor)?;
    let contribution_squares = diagonal(&metric, rank);
    let contracted = contract_given(model, &parameters, mode, &given)?;
    let mean_effect = contract_means(model, &parameters, mode, &contracted)?;
    let profile = match contracted.modes[..] {
        [other] => {
            let columns = model.shape().ranks()[other];
            let moment = second_moment(model, &parameters, other, monitor)?;
            let other_rms = square_roots(diagonal(&moment, columns));
            let scaled = contracted.values.iter().enumerate();
            let scaled = scaled.map(|(k, r)| r * column_rms[k / columns] * other_rms[k % columns]);
            Some(Profile {
                mode: other,
                columns,
                values: scaled.collect(),
            })
        }
        _ => None,
    };
    let mut concepts = Vec::new();
    for column in 0..rank {
        check_cancelled(monitor)?;
        let sign_flipped = mean_effect[column] < 0.0;
        let sign = if sign_flipped { -1.0 } else { 1.0 };
        let loadings = loadings(model, options, column, sign, column_rms[column]);
        let (mut positive, mut negative) = (Vec::new(), Vec::new());
        let matrices = model.matrices().iter().enumerate();
        for (m, matrix) in matrices.filter(|(_, matrix)| matrix.mode == mode) {
            let scale = sign * column_rms[column];
            let mut list = associations(m, matrix, column, scale, &moment);
            let top = options.top.min(list.len());
            // Ties go to the smaller column at either end.
            stable_sort_by(&mut list, &|a, b| {
                b.contribution
                    .total_cmp(&a.contribution)
                    .then(a.column.cmp(&b.column))
            });
            positive.extend_from_slice(&list[..top]);
            stable_sort_by(&mut list, &|a, b| {
                a.contribution
                    .total_cmp(&b.contribution)
                    .then(a.column.cmp(&b.column))
            });
            negative.extend_from_slice(&list[..top]);
        }
        concepts.push(Concept {
            column,
            strength: column_rms[column] * contribution_squares[column].sqrt(),
            effect: column_rms[column] * mean_effect[column].abs(),
            sign_flipped,
            largest: extremes(&loadings, options.top, &|a, b| b.total_cmp(&a)),
            smallest: extremes(&loadings, options.top, &|a, b| a.total_cmp(&b)),
            positive,
            negative,
        });
    }
    stable_sort_by(&mut concepts, &|a, b| {
        let by_strength = b.strength.total_cmp(&a.strength);
        by_strength.then(a.column.cmp(&b.column))
    });
    Ok(Concepts {
        mode,
        concepts,
        profile,
    })
}

/// Returns the diagonal of a square matrix, with negative rounding errors set to 0.
fn diagonal(matrix: &[f64], rank: usize) -> Vec<f64> {
    (0..rank).map(|j| matrix[j * rank + j].max(0.0)).collect()
}

fn square_roots(squares: Vec<f64>) -> Vec<f64> {
    squares.iter().map(|s| s.sqrt()).collect()
}

/// The loading of a row, with its number of tensor entries.
struct Loading {
    row: RankedRow,
    entries: u64,
}

/// Returns the loadings of a column for all rows with enough entries.
fn loadings(
    model: &Model,
    options: &ConceptOptions,
    column: usize,
    sign: f64,
    column_rms: f64,
) -> Vec<Loading> {
    let own = &model.modes()[options.mode];
    let mut list = Vec::new();
    for (row, index) in own.rows.indices().enumerate() {
        let entries = own.counts[row];
        if entries >= options.min_entries {
            let x = sign * f64::from(own.factor.row(row)[column]);
            // Adding 0 turns -0 into 0, which `total_cmp` would tell apart.
            let score = if column_rms > 0.0 {
                x / column_rms + 0.0
            } else {
                0.0
            };
            if !score.is_nan() {
                let row = RankedRow { index, score };
                list.push(Loading { row, entries });
            }
        }
    }
    list
}

/// Returns the first `top` rows in the given order of loadings.
///
/// Many loadings are 0 in a non-negative model. Ties go to the row with more entries, whose loading is the most reliable.
fn extremes(
    loadings: &[Loading],
    top: usize,
    by_score: &dyn Fn(f64, f64) -> Ordering,
) -> Vec<RankedRow> {
    let mut list: Vec<&Loading> = loadings.iter().collect();
    list.sort_unstable_by(|a, b| {
        by_score(a.row.score, b.row.score)
            .then(b.entries.cmp(&a.entries))
            .then(a.row.index.cmp(&b.row.index))
    });
    list.iter().take(top).map(|loading| loading.row).collect()
}

/// Computes the associations of all columns of a matrix with a concept.
///
/// `scale` is the value of a row of loading 1 in the column of the factor.
fn associations(
    matrix_number: usize,
    matrix: &ModelMatrix,
    concept: usize,
    scale: f64,
    moment: &[f64],
) -> Vec<Association> {
    let mut list = Vec::new();
    for (c, column) in matrix
        .columns
        .indices()
        .enumerate()
        .take(matrix.factor.len())
    {
        let v = matrix.factor.row(c);
        let lines = moment.chunks_exact(v.len()).zip(v);
        let mean_square: f64 = lines
            .map(|(line, &x)| {
                let products = line.iter().zip(v);
                f64::from(x) * products.map(|(a, &y)| a * f64::from(y)).sum::<f64>()
            })
            .sum();
        let contribution = match mean_square.sqrt() {
            rms if rms > f64::MIN_POSITIVE => scale * f64::from(v[concept]) / rms,
            _ => 0.0,
        };
        list.push(Association {
            matrix: matrix_number,
            column,
            contribution,
        });
    }
    list
}
