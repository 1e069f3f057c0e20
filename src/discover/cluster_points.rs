//! The points that k-means clusters: rows transformed so that Euclidean distances have the intended meaning.
//!
//! In [`ClusterSpace::Predictions`] the squared distance of two rows is the mean squared difference of their predictions
//! for the tensor, without biases, divided by the variance of those predictions among the rows. The same term is added
//! for each matrix coupled to the mode. Distances are therefore the same for every parametrization of the model, and
//! a matrix has the same weight as the tensor.
//!
//! Let u M u^T be the mean square of the predictions of a row u in one term, and S the covariance of the rows. The squared
//! distance is (u - v) D (u - v)^T with D = sum over terms of M / tr(M S). With the eigendecomposition D = Q L Q^T, the
//! rows times Q L^(1/2) have these distances.

use super::kmeans::PointSet;
use super::parameter_view::ParameterView;
use super::prediction_metric::prediction_metric;
use crate::error::Result;
use crate::linalg::{Eigen, symmetric_eigen};
use crate::model::{FactorMatrix, Model};
use crate::progress::{Monitor, StepPolls};

/// The distances between rows that are clustered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterSpace {
    /// Distances between predictions, for the tensor and the matrices of the mode.
    #[default]
    Predictions,
    /// Euclidean distances between factor rows, with all columns scaled to the same norm, as in the paper.
    Columns,
}

/// Returns the given compact rows of a mode as points.
pub(super) fn cluster_points(
    model: &Model,
    mode: usize,
    space: ClusterSpace,
    rows: &[u32],
    monitor: &dyn Monitor,
) -> Result<PointSet> {
    let factor = &model.modes()[mode].factor;
    let rank = model.shape().ranks()[mode];
    let transform = match space {
        ClusterSpace::Predictions => prediction_transform(model, mode, rows, monitor)?,
        ClusterSpace::Columns => column_transform(factor, rows, rank),
    };
    PointSet::new(
        rows.len(),
        &transform,
        rank,
        |i, to| to.copy_from_slice(factor.row(rows[i] as usize)),
        monitor,
    )
}

/// Returns the diagonal matrix that scales all columns to norm 1.
fn column_transform(factor: &FactorMatrix, rows: &[u32], rank: usize) -> Vec<f64> {
    let mut squares = vec![0.0f64; rank];
    for &row in rows {
        let add = |(s, &x): (&mut f64, &f32)| *s += f64::from(x) * f64::from(x);
        squares
            .iter_mut()
            .zip(factor.row(row as usize))
            .for_each(add);
    }
    let mut transform = vec![0.0; rank * rank];
    for (j, &s) in squares.iter().enumerate().filter(|(_, s)| **s > 0.0) {
        transform[j * rank + j] = 1.0 / s.sqrt();
    }
    transform
}

/// Returns the matrix Q L^(1/2) that turns distances between predictions into Euclidean distances.
fn prediction_transform(
    model: &Model,
    mode: usize,
    rows: &[u32],
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let rank = model.shape().ranks()[mode];
    let covariance = covariance(&model.modes()[mode].factor, rows, rank, monitor)?;
    let mut polls = StepPolls::new(monitor, rank * rank);
    let own = ParameterView::own(model);
    let mut terms = vec![prediction_metric(model, &own, mode, &[], monitor)?];
    for matrix in model.matrices().iter().filter(|m| m.mode == mode) {
        let mut gram = vec![0.0f64; rank * rank];
        for c in 0..matrix.factor.len() {
            polls.step()?;
            let v = matrix.factor.row(c);
            for (line, &x) in gram.chunks_exact_mut(rank).zip(v) {
                let add = |(s, &y): (&mut f64, &f32)| *s += f64::from(x) * f64::from(y);
                line.iter_mut().zip(v).for_each(add);
            }
        }
        terms.push(gram);
    }
    let mut metric = vec![0.0f64; rank * rank];
    for term in &terms {
        let variance: f64 = term.iter().zip(&covariance).map(|(m, s)| m * s).sum();
        // A term with equal predictions for all rows does not separate them.
        if variance > f64::MIN_POSITIVE && variance.is_finite() {
            let add = |(w, m): (&mut f64, &f64)| *w += m / variance;
            metric.iter_mut().zip(term).for_each(add);
        }
    }
    let Eigen { values, vectors } = symmetric_eigen(rank, &metric, monitor)?;
    let entry = |k: usize| vectors[k % rank * rank + k / rank] * values[k % rank].max(0.0).sqrt();
    Ok((0..rank * rank).map(entry).collect())
}

/// Returns the covariance matrix of the rows.
fn covariance(
    factor: &FactorMatrix,
    rows: &[u32],
    rank: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let mut mean = vec![0.0f64; rank];
    for &row in rows {
        let add = |(m, &x): (&mut f64, &f32)| *m += f64::from(x) / rows.len() as f64;
        mean.iter_mut().zip(factor.row(row as usize)).for_each(add);
    }
    let mut covariance = vec![0.0f64; rank * rank];
    let mut centred = vec![0.0f64; rank];
    let mut polls = StepPolls::new(monitor, rank * rank);
    for &r in rows {
        polls.step()?;
        let values = factor.row(r as usize).iter().zip(&mean);
        let subtract = |(x, (&u, m)): (&mut f64, (&f32, &f64))| *x = f64::from(u) - m;
        centred.iter_mut().zip(values).for_each(subtract);
        for (line, &x) in covariance.chunks_exact_mut(rank).zip(&centred) {
            let add = |(s, y): (&mut f64, &f64)| *s += x * y / rows.len() as f64;
            line.iter_mut().zip(&centred).for_each(add);
        }
    }
    Ok(covariance)
}
