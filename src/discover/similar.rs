//! Nearest neighbours of a row, by the cosine similarity of predictions.
//!
//! Factor rows cannot be compared directly, because factors and core are only determined up to invertible matrices
//! between them. Instead, the similarity of rows u and v is the cosine of their predictions over all positions, without
//! mean and biases:
//!
//! cos(u, v) = u M v^T / sqrt((u M u^T) (v M v^T)), with M from [`prediction_metric`].
//!
//! It is the same for every parametrization of a model. In a model with posterior samples each of the three inner products
//! is a sum over all samples, so that uncertain rows are less similar.

use super::batch_scoring::{
    CandidateTable, QueryRun, QueryVectors, ScoreRule, TILE, TopKScorer, rescore,
};
use super::model_rows::{check_mode, compact_row};
use super::parameter_view::ParameterView;
use super::prediction_metric::prediction_metric;
use super::top_k::RankedRow;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::progress::{Monitor, StepPolls};
use crate::simd::Level;
use crate::try_alloc::try_zeroed;

/// Options of [`similar_rows`].
#[derive(Clone, Copy)]
pub struct SimilarOptions {
    /// The mode whose rows are compared, counted from 0.
    pub mode: usize,
    /// The largest number of neighbours per row.
    pub top: usize,
    /// The number of threads; 0 means all that this process may use. Results do not depend on it.
    pub threads: usize,
}

/// Finds the most similar rows of the same mode for each of `rows`. `take` receives the neighbours of each row in order,
/// with their cosines as scores, the largest first.
///
/// The model must have all `rows`. A row is not its own neighbour, and rows without tensor entries are never neighbours.
/// A row whose predictions are all 0 has no neighbours and is no neighbour.
pub fn similar_rows(
    model: &Model,
    rows: &[u32],
    options: &SimilarOptions,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[RankedRow]) -> Result<()>,
) -> Result<()> {
    let mode = options.mode;
    check_mode(model, mode)?;
    // Before threads start: choosing a level reads the environment.
    let level = Level::choose(None)?;
    let compact = |&index: &u32| compact_row(model, mode, index);
    let queries = rows.iter().map(compact).collect::<Result<Vec<u32>>>()?;
    let table = NormalizedRows::new(model, mode, monitor)?;
    let counts = &model.modes()[mode].counts;
    let is_candidate =
        |&(row, _): &(u32, u32)| counts[row as usize] > 0 && table.norms[row as usize] > 0.0;
    let all = (0..).zip(model.modes()[mode].rows.indices());
    let (rows, indices): (Vec<u32>, Vec<u32>) = all.filter(is_candidate).unzip();
    let k = options.top.min(rows.len());
    let scorer = TopKScorer {
        table: &table,
        rows: &rows,
        rule: ScoreRule::Sum,
        level,
        k,
    };
    let answer = |range: std::ops::Range<usize>, is_cancelled: &dyn Fn() -> bool| {
        let mut vectors = QueryVectors::new(&table, range.len());
        let queries = &queries[range];
        let mut out = vec![0.0; table.width()];
        for (q, &row) in queries.iter().enumerate() {
            for set in 0..table.parameter_sets() {
                table.query_vector(set, row as usize, &mut out);
                let (to, _) = vectors.get_mut(set, q);
                to.iter_mut().zip(&out).for_each(|(t, &x)| *t = x as f32);
            }
        }
        let is_excluded = |q: usize, position: usize| {
            rows[position] == queries[q] || table.norms[queries[q] as usize] == 0.0
        };
        let tops = scorer.top_k(&vectors, is_excluded, is_cancelled)?;
        let exact = |&row: &u32, top| {
            rescore(top, |position| RankedRow {
                index: indices[position],
                score: table.cosine(row as usize, rows[position] as usize),
            })
        };
        if is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(queries
            .iter()
            .zip(tops)
            .map(|(row, top)| exact(row, top))
            .collect())
    };
    let run = QueryRun {
        count: queries.len(),
        list_len: k,
        threads: options.threads,
        phase: "comparing",
        monitor,
    };
    run.answer_in_blocks(answer, take)
}

/// The rows of a mode, each divided by its norm in the prediction metric.
struct NormalizedRows<'a> {
    mode: usize,
    rank: usize,
    parameters: Vec<ParameterView<'a>>,
    /// The prediction metric of each parameter set, row-major.
    metrics: Vec<Vec<f64>>,
    /// The norm of each compact row, over all parameter sets; 0 if it is not positive and finite.
    norms: Vec<f64>,
}

impl<'a> NormalizedRows<'a> {
    fn new(model: &'a Model, mode: usize, monitor: &dyn Monitor) -> Result<NormalizedRows<'a>> {
        let parameters = ParameterView::per_sample(model, false);
        let rank = model.shape().ranks()[mode];
        let count = model.modes()[mode].rows.len();
        let mut norms: Vec<f64> = try_zeroed(count, "rows")?;
        let mut metrics = Vec::new();
        let (mut row, mut product) = (vec![0.0f32; rank], vec![0.0f64; rank]);
        for parameters in &parameters {
            let metric = prediction_metric(model, parameters, mode, &[], monitor)?;
            let mut polls = StepPolls::new(monitor, rank * rank);
            for (i, norm) in norms.iter_mut().enumerate() {
                polls.step()?;
                parameters.read(mode, i, &mut row);
                matrix_vector(&metric, &row, &mut product);
                *norm += dot(&product, &row);
            }
            metrics.push(metric);
        }
        for norm in &mut norms {
            *norm = if *norm > f64::MIN_POSITIVE && norm.is_finite() {
                norm.sqrt()
            } else {
                0.0
            };
        }
        Ok(NormalizedRows {
            mode,
            rank,
            parameters,
            metrics,
            norms,
        })
    }

    /// Computes M u^T / |u| of a row u.
    fn query_vector(&self, parameter_set: usize, row: usize, out: &mut [f64]) {
        let mut values = vec![0.0; self.rank];
        self.parameters[parameter_set].read(self.mode, row, &mut values);
        matrix_vector(&self.metrics[parameter_set], &values, out);
        let norm = self.norms[row];
        out.iter_mut()
            .for_each(|x| *x = if norm > 0.0 { *x / norm } else { 0.0 });
    }

    fn cosine(&self, a: usize, b: usize) -> f64 {
        let (mut query, mut row) = (vec![0.0; self.rank], vec![0.0; self.rank]);
        let mut sum = 0.0;
        for (set, parameters) in self.parameters.iter().enumerate() {
            self.query_vector(set, a, &mut query);
            parameters.read(self.mode, b, &mut row);
            sum += dot(&query, &row);
        }
        (sum / self.norms[b]).clamp(-1.0, 1.0)
    }
}

impl CandidateTable for NormalizedRows<'_> {
    fn parameter_sets(&self) -> usize {
        self.parameters.len()
    }

    fn width(&self) -> usize {
        self.rank
    }

    fn transpose(&self, parameter_set: usize, rows: &[u32], tile: &mut [f32]) {
        let mut values = vec![0.0; self.rank];
        for (i, &row) in rows.iter().enumerate() {
            self.parameters[parameter_set].read(self.mode, row as usize, &mut values);
            let norm = self.norms[row as usize];
            for (j, &x) in values.iter().enumerate() {
                tile[j * TILE + i] = (f64::from(x) / norm) as f32;
            }
        }
    }
}

fn matrix_vector(matrix: &[f64], vector: &[f32], out: &mut [f64]) {
    for (j, row) in matrix.chunks_exact(vector.len()).enumerate() {
        out[j] = dot(row, vector);
    }
}

fn dot(a: &[f64], b: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (j, x) in a.iter().enumerate() {
        sum += x * f64::from(b[j]);
    }
    sum
}
