//! The options of trials, sampled around those of the plain fit.

use super::space::{OptionRange, Space};
use crate::error::Result;
use crate::options::{Algorithm, ModelKind, OPTION_TABLE, OptionInfo, OptionKind, Options};
use crate::problem::Problem;
use crate::random::{hash_words, unit_interval};
use crate::solver::default_rank::default_rank;
use crate::solver::hyperparameters::CORE_ETA_SCALE;
use crate::solver::stream_ids;
use crate::sort::stable_sort_by_key;

/// Ranks, as multiples of the plain fit's rank.
const RANK_FACTORS_CP: [f64; 5] = [0.25, 0.5, 1.0, 1.5, 2.0];
const RANK_FACTORS_TUCKER: [f64; 4] = [0.5, 0.75, 1.0, 1.5];

/// Number of elements of a full core above which larger ranks are not tried, unless a range asks for them.
const MAX_CORE_LEN: f64 = 16384.0;

/// Widths of the intervals that trials use in turn, as fractions of the full intervals' logarithms: the plain fit's options
/// are rarely far from the best, and few options far away are good.
const WIDTH_FRACTIONS: [f64; 3] = [1.0, 0.5, 0.25];

/// Full intervals, as factors of the plain fit's values.
const ETA_FACTORS: (f64, f64) = (0.25, 4.0);
const LAMBDA_REG_FACTORS: (f64, f64) = (0.25, 4.0);
const LAMBDA_BIAS_FACTORS: (f64, f64) = (0.1, 10.0);
const CORE_STEP_FACTORS: (f64, f64) = (0.1, 10.0);
const WEIGHT_FACTORS: (f64, f64) = (0.01, 10.0);

/// Samples the options of trials.
pub(super) struct TrialSampler<'a> {
    space: &'a Space,
    /// The resolved options of the plain fit.
    base: &'a Options,
    /// Whether the kind of model is searched: the options leave it and the rank open.
    searches_model: bool,
    /// The automatic rank of the other kind of model.
    other_rank: usize,
    matrix_weights: Vec<MatrixWeight>,
    order: usize,
}

/// The weight of a matrix in the plain fit.
struct MatrixWeight {
    weight: f64,
    /// Whether trials may change it: the matrix has no weight of its own.
    is_searched: bool,
}

impl<'a> TrialSampler<'a> {
    /// `given` are the options of the search, `base` the resolved ones.
    pub(super) fn new(
        problem: &Problem<'_>,
        space: &'a Space,
        given: &Options,
        base: &'a Options,
    ) -> Result<TrialSampler<'a>> {
        let weights = problem
            .matrix_weights(base)?
            .into_iter()
            .zip(problem.matrices());
        Ok(TrialSampler {
            space,
            base,
            searches_model: given.model == ModelKind::Auto && given.rank.is_empty(),
            other_rank: default_rank(
                problem,
                match base.model {
                    ModelKind::Cp => ModelKind::Tucker,
                    _ => ModelKind::Cp,
                },
            ),
            matrix_weights: weights
                .map(|(weight, m)| MatrixWeight {
                    weight,
                    is_searched: m.weight.is_none(),
                })
                .collect(),
            order: problem.order(),
        })
    }

    /// Returns the options of the first trial: the plain fit, or the nearest that the ranges allow.
    pub(super) fn first(&self) -> Result<Options> {
        let mut o = self.base.clone();
        let mut ranges: Vec<_> = self.space.ranges.iter().collect();
        // The rank depends on the model.
        stable_sort_by_key(&mut ranges, &|(name, _)| **name != "model");
        for (name, range) in ranges {
            let value = match (*name, range) {
                ("matrix_weights", range) => {
                    self.weight_list(|_, weight| nearest(range, &weight.to_string(), false))
                }
                ("lambda_bias", range) => {
                    nearest(range, &geometric_mean(&o.lambda_bias).to_string(), false)
                }
                (name, range) => {
                    let current = o.get(name).unwrap_or_default();
                    nearest(range, &current, is_integer(name))
                }
            };
            o.set(name, &value)?;
            if *name == "model" && o.model != self.base.model {
                o.rank = vec![self.other_rank];
            }
        }
        self.resolved(o)
    }

    /// Samples the options of trial `number`. Further attempts give other options.
    pub(super) fn sample(&self, number: u64, attempt: u64) -> Result<Options> {
        let mut o = self.base.clone();
        // The ranges of other options depend on model and rank.
        let is_other = |o: &&OptionInfo| !["model", "rank"].contains(&o.name);
        let names = ["model", "rank"]
            .into_iter()
            .chain(OPTION_TABLE.iter().filter(is_other).map(|o| o.name));
        for name in names.filter(|name| Space::searches(name)) {
            let width = WIDTH_FRACTIONS[(number % WIDTH_FRACTIONS.len() as u64) as usize];
            let Some(range) = self.range(name, &o, width) else {
                continue;
            };
            let position = OPTION_TABLE
                .iter()
                .position(|o| o.name == name)
                .unwrap_or(0) as u64;
            let uniform = |m: usize| {
                let seed = self.base.seed;
                unit_interval(hash_words(&[
                    seed,
                    stream_ids::TUNING,
                    number,
                    attempt,
                    position,
                    m as u64,
                ]))
            };
            let value = match name {
                "matrix_weights" => {
                    // A given range is absolute; the default one is relative to the weight.
                    let is_relative = !self.space.ranges.contains_key(name);
                    self.weight_list(|m, weight| {
                        let factor = if is_relative { weight } else { 1.0 };
                        value_at(&range.scaled(factor), uniform(m), false)
                    })
                }
                // The same factor for all modes.
                "lambda_bias" if !self.space.ranges.contains_key(name) => {
                    let modes = o.lambda_bias.iter();
                    let values = modes.map(|&x| value_at(&range.scaled(x), uniform(0), false));
                    values.collect::<Vec<_>>().join(",")
                }
                _ => value_at(&range, uniform(0), is_integer(name)),
            };
            o.set(name, &value)?;
        }
        self.resolved(o)
    }

    /// Returns the list of matrix weights. `value` gives those that are searched, from the number of the matrix and its
    /// weight.
    fn weight_list(&self, value: impl Fn(usize, f64) -> String) -> String {
        let matrices = self.matrix_weights.iter().enumerate();
        let weights = matrices.map(|(m, matrix)| {
            if matrix.is_searched {
                value(m, matrix.weight)
            } else {
                matrix.weight.to_string()
            }
        });
        weights.collect::<Vec<_>>().join(",")
    }

    /// Returns the range of an option, given the options that were sampled before it; `None` if the option stays as it is.
    /// `width` is the fraction of the default intervals to use.
    fn range(&self, name: &str, o: &Options, width: f64) -> Option<OptionRange> {
        if name == "matrix_weights" && !self.matrix_weights.iter().any(|w| w.is_searched) {
            return None;
        }
        if let Some(range) = self.space.ranges.get(name) {
            return Some(range.clone());
        }
        let is_sgd = !o.algorithm.is_rowwise();
        let is_gibbs = o.algorithm == Algorithm::Gibbs;
        let around = |x: f64, (low, high): (f64, f64)| {
            let range = OptionRange::Between(x * low.powf(width), x * high.powf(width));
            (x > 0.0).then_some(range)
        };
        let has_full_core = o.model != ModelKind::Cp;
        match name {
            "model" if self.searches_model => {
                Some(OptionRange::List(vec!["cp".into(), "tucker".into()]))
            }
            "rank" => Some(OptionRange::List(self.ranks(has_full_core))),
            "eta" if is_sgd => around(o.eta?, ETA_FACTORS),
            "lambda_reg" if !is_gibbs => around(o.lambda_reg?, LAMBDA_REG_FACTORS),
            "lambda_bias" if !is_gibbs && o.biases && !o.nonneg => around(1.0, LAMBDA_BIAS_FACTORS),
            "core_step" if is_sgd && has_full_core => around(self.core_step(), CORE_STEP_FACTORS),
            "matrix_weights" => around(1.0, WEIGHT_FACTORS),
            _ => None,
        }
    }

    /// Returns the ranks that are tried, each as one per mode or one for all.
    fn ranks(&self, has_full_core: bool) -> Vec<String> {
        let is_base_model = has_full_core == (self.base.model != ModelKind::Cp);
        let ranks = if is_base_model {
            self.base.rank.clone()
        } else {
            vec![self.other_rank]
        };
        let core_len = |ranks: &[usize]| -> f64 {
            let repetitions = if ranks.len() == 1 {
                self.order as i32
            } else {
                1
            };
            let product: f64 = ranks.iter().map(|&j| j as f64).product();
            product.powi(repetitions)
        };
        let factors: &[f64] = if has_full_core {
            &RANK_FACTORS_TUCKER
        } else {
            &RANK_FACTORS_CP
        };
        let mut list: Vec<String> = Vec::new();
        for factor in factors {
            let scaled = |&j: &usize| ((j as f64 * factor).round() as usize).clamp(1, 1024);
            let scaled: Vec<usize> = ranks.iter().map(scaled).collect();
            let words: Vec<String> = scaled.iter().map(usize::to_string).collect();
            let value = words.join(",");
            let is_large = has_full_core && *factor > 1.0 && core_len(&scaled) > MAX_CORE_LEN;
            if !is_large && !list.contains(&value) {
                list.push(value);
            }
        }
        list
    }

    /// The core step of a full core around which trials are sampled.
    fn core_step(&self) -> f64 {
        if self.base.start.defines_prior_mean() && self.base.model == ModelKind::Cp {
            CORE_ETA_SCALE
        } else {
            self.base.core_step.unwrap_or(1.0)
        }
    }

    /// Sets the options that follow from the sampled ones, and validates all.
    fn resolved(&self, mut o: Options) -> Result<Options> {
        let has_core_range = self.space.ranges.contains_key("core_step");
        let has_prior_mean = o.start.defines_prior_mean();
        if !has_core_range && o.model != self.base.model && has_prior_mean {
            match o.model {
                ModelKind::Cp => o.core_step = Some(0.0),
                // The first trial does not sample it.
                _ if o.core_step == Some(0.0) => o.core_step = Some(CORE_ETA_SCALE),
                _ => {}
            }
        }
        o.validate()?;
        Ok(o)
    }
}

/// Returns whether the values of an option are integers.
fn is_integer(name: &str) -> bool {
    let kind = OPTION_TABLE.iter().find(|o| o.name == name).map(|o| o.kind);
    matches!(
        kind,
        Some(OptionKind::Integer(..) | OptionKind::IntegerList(..))
    )
}

/// Returns the value at a quantile of a range, from 0 to 1.
fn value_at(range: &OptionRange, quantile: f64, is_integer: bool) -> String {
    match range {
        OptionRange::List(words) => {
            let position = (quantile * words.len() as f64) as usize;
            words[position.min(words.len() - 1)].clone()
        }
        OptionRange::Between(low, high) => {
            let x = if *low > 0.0 {
                low * (high / low).powf(quantile)
            } else {
                low + (high - low) * quantile
            };
            rounded(x, *low, *high, is_integer)
        }
    }
}

fn geometric_mean(list: &[f64]) -> f64 {
    let logs: f64 = list.iter().map(|x| x.max(1e-300).ln()).sum();
    (logs / list.len().max(1) as f64).exp()
}

/// Returns the value of a range that is nearest to a given one.
fn nearest(range: &OptionRange, value: &str, is_integer: bool) -> String {
    let target: Option<f64> = value.parse().ok();
    match (range, target) {
        (OptionRange::Between(low, high), Some(x)) => {
            if (low..=high).contains(&&x) {
                value.into()
            } else {
                rounded(x.clamp(*low, *high), *low, *high, is_integer)
            }
        }
        // Without a number to compare with, the middle.
        (OptionRange::Between(..), None) => value_at(range, 0.5, is_integer),
        (OptionRange::List(words), _) if words.iter().any(|w| w == value) => value.into(),
        (OptionRange::List(words), target) => {
            let log_distance = |word: &String| {
                let x: f64 = word.parse().unwrap_or(f64::NAN);
                let ratio = (x.max(1e-300) / target.unwrap_or(1.0).max(1e-300))
                    .ln()
                    .abs();
                if ratio.is_nan() { f64::MAX } else { ratio }
            };
            let nearest = words
                .iter()
                .min_by(|a, b| log_distance(a).total_cmp(&log_distance(b)));
            nearest.cloned().unwrap_or_default()
        }
    }
}

/// Returns a number rounded to three significant digits, or to an integer, inside its interval.
fn rounded(x: f64, low: f64, high: f64, is_integer: bool) -> String {
    if is_integer {
        return x.round().clamp(low.ceil(), high.floor()).to_string();
    }
    let short: f64 = format!("{x:.2e}").parse().unwrap_or(x);
    short.clamp(low, high).to_string()
}
