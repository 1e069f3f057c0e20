//! Recommendations: the rows of a mode with the largest predictions for given rows of the other modes.

use super::batch_scoring::{
    CandidateNoise, CandidateTable, QueryRun, QueryVectors, ScoreRule, TILE, TopKScorer, rescore,
};
use super::model_rows::{check_mode, compact_row};
use super::observed_pairs::{ObservedPairs, ObservedRows};
use super::parameter_view::ParameterView;
use super::top_k::{RankedRow, sort_best_first};
use crate::error::{Error, Result};
use crate::kernel::{Method, TensorKernel};
use crate::model::{AVERAGE_ROW, Model, PosteriorSamples, Predict};
use crate::normal_distribution::normal_quantile;
use crate::predict::{check_prediction, quantile_predictor, require_samples};
use crate::progress::Monitor;
use crate::simd::Level;
use crate::try_alloc::try_collect;

/// The quantity that rows are ranked by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankBy {
    /// The prediction.
    Mean,
    /// A quantile of the predictive distribution, with a probability above 0 and below 1. It needs a model with posterior
    /// samples. A low quantile prefers rows with a small predictive variance. With the probit likelihood, whose predictive
    /// distribution has two values only, it is a quantile of the posterior distribution of the prediction.
    Quantile(f64),
}

/// Options of [`recommend`].
#[derive(Clone, Copy)]
pub struct RecommendOptions<'a> {
    /// The mode whose rows are ranked, counted from 0.
    pub mode: usize,
    /// The largest number of rows per query.
    pub top: usize,
    /// The quantity that rows are ranked by.
    pub rank_by: RankBy,
    /// Pairs of rows to leave out. Each query then names a row of their query mode.
    pub exclude_observed: Option<&'a ObservedPairs>,
    /// The only rows that may be recommended. Rows that the model does not have are ignored.
    pub candidates: Option<&'a [u32]>,
    /// Rows that are never recommended.
    pub exclude: &'a [u32],
    /// The number of threads; 0 means all that this process may use. Results do not depend on it.
    pub threads: usize,
}

impl RecommendOptions<'_> {
    /// Ranks all rows of `mode` by their predictions and returns the `top` best.
    pub fn new(mode: usize, top: usize) -> Self {
        RecommendOptions {
            mode,
            top,
            rank_by: RankBy::Mean,
            exclude_observed: None,
            candidates: None,
            exclude: &[],
            threads: 0,
        }
    }
}

/// Ranks the rows of a mode for each of `count` queries. `take` receives the best rows of each query, in order.
///
/// `write_index` writes the index of a query: a row for each mode, or [`AVERAGE_ROW`]. The index of the ranked mode is
/// ignored. The model must have the other rows. Only rows of the model are ranked.
///
/// A score is bit for bit the prediction for its position, not clipped to the range of the training values. Of equal
/// scores the smaller row comes first. All candidates are first scored in single precision. Rounding there decides which
/// of two rows with nearly equal predictions is the last of a list.
pub fn recommend(
    model: &Model,
    count: usize,
    write_index: impl Fn(usize, &mut [u32]) + Sync,
    options: &RecommendOptions<'_>,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[RankedRow]) -> Result<()>,
) -> Result<()> {
    check_mode(model, options.mode)?;
    let mut index = vec![AVERAGE_ROW; model.order()];
    for q in 0..count {
        write_index(q, &mut index);
        let has_no_row = |observed: &&ObservedPairs| {
            index
                .get(observed.query_mode())
                .is_none_or(|&i| i == AVERAGE_ROW)
        };
        if let Some(observed) = options.exclude_observed.filter(has_no_row) {
            return Err(Error::argument(format!(
                "observed rows are excluded by rows of mode {}, but a query has no row of that mode",
                observed.query_mode() + 1
            )));
        }
        for (n, &i) in index.iter().enumerate() {
            if n != options.mode && i != AVERAGE_ROW {
                compact_row(model, n, i)?;
            }
        }
    }
    recommend_unchecked(model, count, write_index, options, monitor, take)
}

/// As [`recommend`], but a row that the model does not have is replaced by the mean row of its mode.
pub(super) fn recommend_unchecked(
    model: &Model,
    count: usize,
    write_index: impl Fn(usize, &mut [u32]) + Sync,
    options: &RecommendOptions<'_>,
    monitor: &dyn Monitor,
    take: impl FnMut(usize, &[RankedRow]) -> Result<()>,
) -> Result<()> {
    let (mode, order) = (options.mode, model.order());
    check_mode(model, mode)?;
    if let Some(observed) = options.exclude_observed
        && (observed.ranked_mode() != mode || observed.query_mode() >= order)
    {
        return Err(Error::argument(format!(
            "rows of mode {} are ranked, but the observed rows to exclude are of mode {}",
            mode + 1,
            observed.ranked_mode() + 1
        )));
    }
    // Before threads start: choosing a level reads the environment.
    let level = Level::choose(None)?;
    let link = model.samples().and_then(PosteriorSamples::link);
    let mut parameters = ParameterView::per_sample(model, true);
    if link.is_some() || matches!(options.rank_by, RankBy::Quantile(_)) {
        parameters.extend(ParameterView::per_sample(model, false));
    }
    let rule = match options.rank_by {
        RankBy::Mean => link.map_or(ScoreRule::Sum, ScoreRule::Probability),
        RankBy::Quantile(q) => {
            let samples = require_samples(model, &[q])?;
            let noise: f64 = samples
                .iter()
                .map(|s| s.noise_deviation * s.noise_deviation)
                .sum();
            ScoreRule::Quantile {
                z: normal_quantile(q),
                noise: CandidateNoise {
                    samples,
                    mode,
                    // The posterior distribution of a probability has no noise.
                    variance: match link {
                        Some(_) => 0.0,
                        None => noise / samples.len() as f64,
                    },
                },
            }
        }
    };
    let table = BiasedRows {
        model,
        mode,
        parameters,
    };
    let (rows, indices) = candidates(model, options)?;
    let k = options.top.min(rows.len());
    let scorer = TopKScorer {
        table: &table,
        rows: &rows,
        rule,
        level,
        k,
    };
    let answer = |range: std::ops::Range<usize>, is_cancelled: &dyn Fn() -> bool| {
        let first_query = range.start;
        let mut query_indices = vec![AVERAGE_ROW; order * range.len()];
        let mut vectors = QueryVectors::new(&table, range.len());
        let mut builder = QueryBuilder::new(&table, level)?;
        for (q, index) in query_indices.chunks_exact_mut(order).enumerate() {
            write_index(range.start + q, index);
            index[mode] = AVERAGE_ROW;
            builder.build(index, q, &mut vectors, is_cancelled)?;
            if let Some(samples) = model.samples() {
                let rows = index.iter().enumerate().map(|(n, &i)| model.row_of(n, i));
                vectors.set_noise_factor(q, samples.noise_factors.of_rows(rows));
            }
        }
        let observed_rows = |q: usize| {
            options
                .exclude_observed
                .map_or(ObservedRows::default(), |observed| {
                    observed.partners(query_indices[q * order + observed.query_mode()])
                })
        };
        let observed: Vec<ObservedRows<'_>> = (0..range.len()).map(observed_rows).collect();
        let is_excluded = |q: usize, position: usize| observed[q].contains(indices[position]);
        let tops = scorer.top_k(&vectors, is_excluded, is_cancelled)?;
        let mut predict_mean = model.predictor()?;
        let quantile = match options.rank_by {
            RankBy::Mean => [0.5],
            RankBy::Quantile(q) => [q],
        };
        let mut predict_interval = match (options.rank_by, model.samples()) {
            (RankBy::Quantile(_), Some(samples)) => {
                Some(quantile_predictor(model, samples, &quantile)?)
            }
            _ => None,
        };
        let mut lists = Vec::new();
        for (q, top) in tops.into_iter().enumerate() {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            let index = &mut query_indices[q * order..(q + 1) * order];
            let has_unseen_row = has_unseen_row(model, mode, index);
            let mut exact = |position: usize| {
                index[mode] = indices[position];
                let score = match &mut predict_interval {
                    Some(predict) => predict(index),
                    None => predict_mean(index),
                };
                RankedRow {
                    index: index[mode],
                    score,
                }
            };
            // The variance of rows without any entry depends on the candidate, and the batch scores leave it out.
            let list = if has_unseen_row && !matches!(rule, ScoreRule::Sum) {
                let allowed = (0..rows.len()).filter(|&position| !is_excluded(q, position));
                let mut list: Vec<RankedRow> = allowed.map(exact).collect();
                sort_best_first(&mut list);
                list.truncate(k);
                list
            } else {
                rescore(top, &mut exact)
            };
            for row in &list {
                check_prediction(first_query + q, row.score)?;
            }
            lists.push(list);
        }
        Ok(lists)
    };
    let run = QueryRun {
        count,
        list_len: k,
        threads: options.threads,
        phase: "recommending",
        monitor,
    };
    run.answer_in_blocks(answer, take)
}

/// Returns whether a mode other than the ranked one has an index without training data.
fn has_unseen_row(model: &Model, mode: usize, index: &[u32]) -> bool {
    let mut others = index.iter().enumerate().filter(|&(n, _)| n != mode);
    others.any(|(n, &i)| i != AVERAGE_ROW && model.modes()[n].rows.compact(i).is_none())
}

/// Returns the compact rows that may be recommended, ascending, and their indices.
fn candidates(model: &Model, options: &RecommendOptions<'_>) -> Result<(Vec<u32>, Vec<u32>)> {
    let map = &model.modes()[options.mode].rows;
    let mut is_candidate: Vec<bool> = try_collect(
        map.len(),
        std::iter::repeat_n(options.candidates.is_none(), map.len()),
        "rows",
    )?;
    let lists = [
        (options.candidates.unwrap_or(&[]), true),
        (options.exclude, false),
    ];
    for (list, value) in lists {
        for row in list.iter().filter_map(|&i| map.compact(i)) {
            is_candidate[row as usize] = value;
        }
    }
    let chosen = (0..)
        .zip(map.indices())
        .filter(|&(row, _)| is_candidate[row as usize]);
    Ok(chosen.unzip())
}

/// The rows of a mode, each followed by its bias.
struct BiasedRows<'a> {
    model: &'a Model,
    mode: usize,
    parameters: Vec<ParameterView<'a>>,
}

impl CandidateTable for BiasedRows<'_> {
    fn parameter_sets(&self) -> usize {
        self.parameters.len()
    }

    fn width(&self) -> usize {
        self.model.shape().ranks()[self.mode] + 1
    }

    fn transpose(&self, parameter_set: usize, rows: &[u32], tile: &mut [f32]) {
        let (parameters, rank) = (&self.parameters[parameter_set], self.width() - 1);
        let mut values = vec![0.0; rank];
        for (i, &row) in rows.iter().enumerate() {
            parameters.read(self.mode, row as usize, &mut values);
            for (j, &x) in values.iter().enumerate() {
                tile[j * TILE + i] = x;
            }
            tile[rank * TILE + i] = parameters.bias(self.mode, row as usize) as f32;
        }
    }
}

/// Computes the query vectors, on one thread.
///
/// The query vector is the core contracted with the rows of all modes but the ranked one, which is the gradient of the
/// prediction with respect to the ranked row. A last value of 1 multiplies the bias.
struct QueryBuilder<'a> {
    table: &'a BiasedRows<'a>,
    kernel: TensorKernel,
    rows: Vec<f32>,
    gradients: Vec<f32>,
}

impl<'a> QueryBuilder<'a> {
    fn new(table: &'a BiasedRows<'a>, level: Level) -> Result<QueryBuilder<'a>> {
        let shape = table.model.shape();
        Ok(QueryBuilder {
            table,
            kernel: TensorKernel::new(shape, Method::Shared(level))?,
            // The row of the ranked mode stays 0: its own gradient does not depend on it.
            rows: vec![0.0; shape.rows_len()],
            gradients: vec![0.0; shape.rows_len()],
        })
    }

    /// Writes the vectors and offsets of a query in all parameter sets.
    fn build(
        &mut self,
        index: &[u32],
        query: usize,
        vectors: &mut QueryVectors,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        let (model, mode) = (self.table.model, self.table.mode);
        let shape = model.shape();
        for (set, parameters) in self.table.parameters.iter().enumerate() {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (vector, offset) = vectors.get_mut(set, query);
            *offset = parameters.mean();
            for (n, &i) in index.iter().enumerate().filter(|&(n, _)| n != mode) {
                let (row, start) = (model.row_of(n, i) as usize, shape.row(n).start);
                parameters.read(n, row, &mut self.rows[start..start + shape.ranks()[n]]);
                *offset += parameters.bias(n, row);
            }
            self.kernel
                .gradients(parameters.core(), &self.rows, &mut self.gradients);
            let (rank, start) = (shape.ranks()[mode], shape.row(mode).start);
            vector[..rank].copy_from_slice(&self.gradients[start..start + rank]);
            vector[rank] = 1.0;
        }
        Ok(())
    }
}
