//! The options of trials, sampled around those of the plain fit.

use super::space::{OptionRange, Space};
use crate::error::Result;
use crate::options::{Algorithm, ModelKind, OptionInfo, OptionKind, Options};
use crate::problem::Problem;
use crate::random::{hash_words, unit_interval};
use crate::solver::core_eta_scale;
use crate::solver::default_rank::default_rank;
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
const LAMBDA_M_FACTORS: (f64, f64) = (0.01, 10.0);

/// Samples the options of trials.
pub(super) struct TrialSampler<'a> {
    space: &'a Space,
    /// The resolved options of the plain fit.
    base: &'a Options,
    /// Whether the kind of model is searched: the options leave it and the rank open.
    searches_model: bool,
    /// The automatic rank of the other kind of model.
    other_rank: usize,
    /// Whether a matrix has no weight of its own and takes `lambda_m`.
    uses_lambda_m: bool,
    order: usize,
}

impl<'a> TrialSampler<'a> {
    /// `given` are the options of the search, `base` the resolved ones.
    pub(super) fn new(
        problem: &Problem<'_>,
        space: &'a Space,
        given: &Options,
        base: &'a Options,
    ) -> TrialSampler<'a> {
        TrialSampler {
            space,
            base,
            searches_model: given.model == ModelKind::Auto
                && given.rank.is_empty()
                && given.algorithm.only_model().is_none(),
            other_rank: default_rank(
                problem,
                match base.model {
                    ModelKind::Cp => ModelKind::Tucker,
                    _ => ModelKind::Cp,
                },
            ),
            uses_lambda_m: problem.matrices().iter().any(|m| m.weight.is_none()),
            order: problem.order(),
        }
    }

    /// Returns the options of the first trial: the plain fit, or the nearest that the ranges allow.
    pub(super) fn first(&self) -> Result<Options> {
        let mut o = self.base.clone();
        let mut ranges: Vec<_> = self.space.ranges.iter().collect();
        // The rank depends on the model.
        stable_sort_by_key(&mut ranges, &|(name, _)| **name != "model");
        for (name, range) in ranges {
            let value = match (*name, range) {
                ("lambda_bias", range) => {
                    nearest(range, &geometric_mean(&o.lambda_bias).to_string(), false)
                }
                ("lambda_m", range) => {
                    nearest(range, &geometric_mean(&o.lambda_m).to_string(), false)
                }
                (name, range) => {
                    let current = o.get(name).unwrap_or_default();
                    nearest(range, &current, self.is_integer(name))
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
        let searched: Vec<OptionInfo> = self.base.all_options();
        let is_other = |o: &&OptionInfo| !["model", "rank"].contains(&o.name) && o.is_searched();
        let names = ["model", "rank"]
            .into_iter()
            .chain(searched.iter().filter(is_other).map(|o| o.name));
        for name in names {
            let width = WIDTH_FRACTIONS[(number % WIDTH_FRACTIONS.len() as u64) as usize];
            let Some(range) = self.range(name, &o, width) else {
                continue;
            };
            let uniform = unit_interval(hash_words(&[
                self.base.seed,
                stream_ids::TUNING,
                number,
                attempt,
                stream_number(name),
                0,
            ]));
            let value = match name {
                // The same factor for all modes, or for all matrices.
                "lambda_bias" | "lambda_m" if !self.space.ranges.contains_key(name) => {
                    let all = match name {
                        "lambda_m" => &o.lambda_m,
                        _ => &o.lambda_bias,
                    };
                    let values = all
                        .iter()
                        .map(|&x| value_at(&range.scaled(x), uniform, false));
                    values.collect::<Vec<_>>().join(",")
                }
                _ => value_at(&range, uniform, self.is_integer(name)),
            };
            o.set(name, &value)?;
        }
        self.resolved(o)
    }

    /// Returns the range of an option, given the options that were sampled before it; `None` if the option stays as it is.
    /// `width` is the fraction of the default intervals to use.
    fn range(&self, name: &str, o: &Options, width: f64) -> Option<OptionRange> {
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
            "lambda_bias" if !is_gibbs && o.biases && o.allows_baseline() => {
                around(1.0, LAMBDA_BIAS_FACTORS)
            }
            "core_step" if is_sgd && has_full_core => around(self.core_step()?, CORE_STEP_FACTORS),
            "lambda_m" if self.uses_lambda_m => around(1.0, LAMBDA_M_FACTORS),
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

    /// The core step of a full core around which trials are sampled; `None` if it depends on the starting values.
    fn core_step(&self) -> Option<f64> {
        if self.base.start.defines_prior_mean() && self.base.model == ModelKind::Cp {
            self.default_core_step()
        } else {
            self.base.core_step
        }
    }

    /// The default core step of a full core after a start with prior means.
    fn default_core_step(&self) -> Option<f64> {
        core_eta_scale::without_starting_values(ModelKind::Tucker, self.order)
    }

    /// Returns whether the values of an option are integers.
    fn is_integer(&self, name: &str) -> bool {
        let all = self.base.all_options();
        let kind = all.iter().find(|o| o.name == name).map(|o| o.kind);
        matches!(
            kind,
            Some(OptionKind::Integer(..) | OptionKind::IntegerList(..))
        )
    }

    /// Sets the options that follow from the sampled ones, and validates all.
    fn resolved(&self, mut o: Options) -> Result<Options> {
        let has_core_range = self.space.ranges.contains_key("core_step");
        let has_prior_mean = o.start.defines_prior_mean();
        if !has_core_range && o.model != self.base.model && has_prior_mean {
            match o.model {
                ModelKind::Cp => o.core_step = Some(0.0),
                // The first trial does not sample it.
                _ if o.core_step == Some(0.0) => o.core_step = self.default_core_step(),
                _ => {}
            }
        }
        o.validate()?;
        // A fit with the options of a trial uses them as far as the search did.
        o.given.clear();
        Ok(o)
    }
}

/// Returns the number of the random stream of an option, which depends on nothing but its name.
fn stream_number(name: &str) -> u64 {
    let bytes: Vec<u64> = name.bytes().map(u64::from).collect();
    hash_words(&bytes)
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
