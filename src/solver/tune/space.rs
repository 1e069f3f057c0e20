//! What is searched: for each option a list of values or an interval, drawn from by number.

use std::collections::BTreeMap;

use super::super::default_rank::default_rank;
use super::super::hyperparameters::CORE_ETA_SCALE;
use super::super::stream_ids;
use crate::error::{Error, Result};
use crate::options::{Algorithm, ModelKind, OPTION_TABLE, OptionKind, Options};
use crate::problem::Problem;
use crate::random::{hash_words, unit_interval};
use crate::sort::stable_sort_by_key;

/// Options that are the same for all trials: they say how a fit runs or is measured, or are lists themselves.
const SAME: [&str; 17] = [
    "algorithm",
    "mode_steps",
    "start_modes",
    "clip",
    "tolerance",
    "patience",
    "valid_fraction",
    "refit",
    "time_limit",
    "eval_every",
    "attempts",
    "checkpoint_every",
    "checkpoint_seconds",
    "threads",
    "pin",
    "kernel",
    "seed",
];

/// Ranks that are tried where none are given: so many times that of the fit that is not tuned.
const RANKS_CP: [f64; 5] = [0.25, 0.5, 1.0, 1.5, 2.0];
const RANKS_TUCKER: [f64; 4] = [0.5, 0.75, 1.0, 1.5];

/// Full cores of more entries are not tried unless they are asked for.
const LARGE_CORE: f64 = 16384.0;

/// Intervals around what the fit that is not tuned has, as factors. Trials take turns in how much of them
/// (of their logarithms) they use: that fit is rarely far from good, and far away little is.
const SHARES: [f64; 3] = [1.0, 0.5, 0.25];
const ETA: (f64, f64) = (0.25, 4.0);
const LAMBDA_REG: (f64, f64) = (0.25, 4.0);
const LAMBDA_BIAS: (f64, f64) = (0.1, 10.0);
const CORE_STEPS: (f64, f64) = (0.1, 10.0);
const WEIGHTS: (f64, f64) = (0.01, 10.0);

/// Values of an option to draw from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Range {
    /// One of these.
    List(Vec<String>),
    /// A number between these, by its logarithm if the first is above 0.
    Between(f64, f64),
}

impl Range {
    /// An interval with all its numbers times another.
    fn times(&self, by: f64) -> Range {
        match self {
            Range::Between(low, high) => Range::Between(low * by, high * by),
            list => list.clone(),
        }
    }
}

/// What each option is drawn from. Options that are not restricted have ranges around what a fit would
/// choose: rank, model, step, penalties, the step of the core and weights of matrices, as far as the
/// algorithm uses them. All others are those of the options that `tune` is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    ranges: BTreeMap<&'static str, Range>,
}

impl Space {
    /// Restricts an option to values separated by commas (`8,16,32`) or to an interval (`0.005..0.1`).
    pub fn set(&mut self, name: &str, range: &str) -> Result<()> {
        let key = name.replace('-', "_");
        let Some(info) = OPTION_TABLE.iter().find(|o| o.name == key) else {
            // The same words as for any option.
            return Options::default().set(name, range);
        };
        if !Space::searches(info.name) {
            return Err(Error::argument(format!(
                "{key} is the same for all trials; give it one value, with the other options"
            )));
        }
        let bad = |what: String| Error::argument(format!("{key} = {range:?}: {what}"));
        let numeric = !matches!(info.kind, OptionKind::Flag | OptionKind::Choice(_));
        let parsed = match range.split_once("..").filter(|_| numeric) {
            Some((low, high)) => {
                let number = |end: &str| -> Result<f64> {
                    let end = end.trim();
                    Options::default().set(info.name, end)?;
                    end.parse().map_err(|_| {
                        bad("an interval goes from a number to a number, such as 0.005..0.1".into())
                    })
                };
                let (low, high) = (number(low)?, number(high)?);
                if low > high {
                    return Err(bad(format!(
                        "the interval is empty; did you mean {high}..{low}?"
                    )));
                }
                Range::Between(low, high)
            }
            None => {
                let words: Vec<String> = range.split(',').map(|w| w.trim().to_string()).collect();
                for word in &words {
                    if word.is_empty() {
                        return Err(bad(
                            "a value is missing; give values such as 8,16,32 or an interval such as 8..32"
                                .into(),
                        ));
                    }
                    if word == "auto" {
                        return Err(bad(
                            "trials need values; leave the option out to have it searched".into(),
                        ));
                    }
                    Options::default().set(info.name, word)?;
                }
                Range::List(words)
            }
        };
        self.ranges.insert(info.name, parsed);
        Ok(())
    }

    /// Whether an option can have a range.
    pub fn searches(name: &str) -> bool {
        !SAME.contains(&name.replace('-', "_").as_str())
    }

    /// All restrictions as a text that other ones would not have.
    pub(super) fn describe(&self) -> String {
        format!("{:?}", self.ranges)
    }
}

/// Where trials come from: a space around settled options.
pub(super) struct Draws<'a> {
    space: &'a Space,
    /// The options of the fit that is not tuned, all settled.
    base: &'a Options,
    /// Whether the model was left open.
    any_model: bool,
    /// The rank of the other kind of model, which nobody asked for.
    other_rank: usize,
    /// For each matrix, its weight, and whether that is open.
    weights: Vec<(f64, bool)>,
    order: usize,
}

impl<'a> Draws<'a> {
    pub(super) fn new(
        problem: &Problem<'_>,
        space: &'a Space,
        given: &Options,
        base: &'a Options,
    ) -> Result<Draws<'a>> {
        let weights = problem
            .matrix_weights(base)?
            .into_iter()
            .zip(problem.matrices());
        Ok(Draws {
            space,
            base,
            any_model: given.model == ModelKind::Auto && given.rank.is_empty(),
            other_rank: default_rank(
                problem,
                match base.model {
                    ModelKind::Cp => ModelKind::Tucker,
                    _ => ModelKind::Cp,
                },
            ),
            weights: weights.map(|(w, m)| (w, m.weight.is_none())).collect(),
            order: problem.order(),
        })
    }

    /// The fit that is not tuned, as near as the space allows: the first trial.
    pub(super) fn first(&self) -> Result<Options> {
        let mut o = self.base.clone();
        let mut ranges: Vec<_> = self.space.ranges.iter().collect();
        // Ranks follow the model.
        stable_sort_by_key(&mut ranges, &|(name, _)| **name != "model");
        for (name, range) in ranges {
            let value = match (*name, range) {
                ("matrix_weights", range) => {
                    self.each_weight(|_, weight| nearest(range, &weight.to_string(), false))
                }
                ("lambda_bias", range) => {
                    nearest(range, &common(&o.lambda_bias).to_string(), false)
                }
                (name, range) => {
                    let now = o.get(name).unwrap_or_default();
                    nearest(range, &now, whole(name))
                }
            };
            o.set(name, &value)?;
            if *name == "model" && o.model != self.base.model {
                o.rank = vec![self.other_rank];
            }
        }
        self.settled(o)
    }

    /// Trial `number`, drawn for the `attempt`-th time.
    pub(super) fn draw(&self, number: u64, attempt: u64) -> Result<Options> {
        let mut o = self.base.clone();
        // Those that others depend on come first.
        let later = |o: &&crate::options::OptionInfo| !["model", "rank"].contains(&o.name);
        let names = ["model", "rank"]
            .into_iter()
            .chain(OPTION_TABLE.iter().filter(later).map(|o| o.name));
        for name in names.filter(|name| Space::searches(name)) {
            let share = SHARES[(number % SHARES.len() as u64) as usize];
            let Some(range) = self.range(name, &o, share) else {
                continue;
            };
            let place = OPTION_TABLE
                .iter()
                .position(|o| o.name == name)
                .unwrap_or(0) as u64;
            let chance = |m: usize| {
                let seed = self.base.seed;
                unit_interval(hash_words(&[
                    seed,
                    stream_ids::TUNING,
                    number,
                    attempt,
                    place,
                    m as u64,
                ]))
            };
            let value = match name {
                "matrix_weights" => {
                    // Those that nobody restricted are around what they are.
                    let around = !self.space.ranges.contains_key(name);
                    let by = |weight: f64| if around { weight } else { 1.0 };
                    let value =
                        |m: usize, weight: f64| drawn(&range.times(by(weight)), chance(m), false);
                    self.each_weight(value)
                }
                // All modes go up or down together.
                "lambda_bias" if !self.space.ranges.contains_key(name) => {
                    let by = chance(0);
                    let each = o.lambda_bias.iter();
                    let each = each.map(|&x| drawn(&range.times(x), by, false));
                    each.collect::<Vec<_>>().join(",")
                }
                _ => drawn(&range, chance(0), whole(name)),
            };
            o.set(name, &value)?;
        }
        self.settled(o)
    }

    /// The list of weights, with those that are open as `value` gives them.
    fn each_weight(&self, value: impl Fn(usize, f64) -> String) -> String {
        let weights = self.weights.iter().enumerate();
        let words = weights.map(|(m, &(weight, open))| match open {
            true => value(m, weight),
            false => weight.to_string(),
        });
        words.collect::<Vec<_>>().join(",")
    }

    /// What an option of a trial is drawn from, those before it being drawn; `None` if it stays as it is.
    fn range(&self, name: &str, o: &Options, share: f64) -> Option<Range> {
        let none_open = !self.weights.iter().any(|w| w.1);
        if name == "matrix_weights" && none_open {
            return None;
        }
        if let Some(range) = self.space.ranges.get(name) {
            return Some(range.clone());
        }
        let steps = !o.algorithm.is_rowwise();
        let draws = o.algorithm == Algorithm::Gibbs;
        let times = |x: f64, (low, high): (f64, f64)| {
            let range = Range::Between(x * low.powf(share), x * high.powf(share));
            (x > 0.0).then_some(range)
        };
        let full = o.model != ModelKind::Cp;
        match name {
            "model" if self.any_model => Some(Range::List(vec!["cp".into(), "tucker".into()])),
            "rank" => Some(Range::List(self.ranks(full))),
            "eta" if steps => times(o.eta?, ETA),
            "lambda_reg" if !draws => times(o.lambda_reg?, LAMBDA_REG),
            "lambda_bias" if !draws && o.biases && !o.nonneg => times(1.0, LAMBDA_BIAS),
            "core_step" if steps && full => times(self.core_step(full), CORE_STEPS),
            "matrix_weights" => times(1.0, WEIGHTS),
            _ => None,
        }
    }

    /// The ranks that are tried, each as one per mode or one for all.
    fn ranks(&self, full: bool) -> Vec<String> {
        let same = full == (self.base.model != ModelKind::Cp);
        let ranks = match same {
            true => self.base.rank.clone(),
            false => vec![self.other_rank],
        };
        let size = |ranks: &[usize]| -> f64 {
            let one_for_all = ranks.len() == 1;
            let all = if one_for_all { self.order as i32 } else { 1 };
            ranks.iter().map(|&j| j as f64).product::<f64>().powi(all)
        };
        let times: &[f64] = if full { &RANKS_TUCKER } else { &RANKS_CP };
        let mut list: Vec<String> = Vec::new();
        for by in times {
            let near = |&j: &usize| ((j as f64 * by).round() as usize).clamp(1, 1024);
            let these: Vec<usize> = ranks.iter().map(near).collect();
            let words: Vec<String> = these.iter().map(usize::to_string).collect();
            let word = words.join(",");
            let large = full && *by > 1.0 && size(&these) > LARGE_CORE;
            if !large && !list.contains(&word) {
                list.push(word);
            }
        }
        list
    }

    fn core_step(&self, full: bool) -> f64 {
        match (self.base.start, full) {
            (start, true) if start.defines_prior_mean() && self.base.model == ModelKind::Cp => {
                CORE_ETA_SCALE
            }
            _ => self.base.core_step.unwrap_or(1.0),
        }
    }

    /// What follows from what was chosen.
    fn settled(&self, mut o: Options) -> Result<Options> {
        let searched = self.space.ranges.contains_key("core_step");
        let centred = o.start.defines_prior_mean();
        if !searched && o.model != self.base.model && centred {
            match o.model {
                ModelKind::Cp => o.core_step = Some(0.0),
                // Drawn, or not drawn by the first trial.
                _ if o.core_step == Some(0.0) => o.core_step = Some(CORE_ETA_SCALE),
                _ => {}
            }
        }
        o.validate()?;
        Ok(o)
    }
}

fn whole(name: &str) -> bool {
    let kind = OPTION_TABLE.iter().find(|o| o.name == name).map(|o| o.kind);
    matches!(
        kind,
        Some(OptionKind::Integer(..) | OptionKind::IntegerList(..))
    )
}

/// A value by `chance`, from 0 to 1.
fn drawn(range: &Range, chance: f64, whole: bool) -> String {
    match range {
        Range::List(words) => {
            let place = (chance * words.len() as f64) as usize;
            words[place.min(words.len() - 1)].clone()
        }
        Range::Between(low, high) => {
            let x = match *low > 0.0 {
                true => low * (high / low).powf(chance),
                false => low + (high - low) * chance,
            };
            number(x, *low, *high, whole)
        }
    }
}

/// One number for several: their geometric mean.
fn common(list: &[f64]) -> f64 {
    let logs: f64 = list.iter().map(|x| x.max(1e-300).ln()).sum();
    (logs / list.len().max(1) as f64).exp()
}

/// What of a range is nearest to a value.
fn nearest(range: &Range, value: &str, whole: bool) -> String {
    let now: Option<f64> = value.parse().ok();
    match (range, now) {
        (Range::Between(low, high), Some(x)) => match (low..=high).contains(&&x) {
            true => value.into(),
            false => number(x.clamp(*low, *high), *low, *high, whole),
        },
        // Nothing to be near to: the middle.
        (Range::Between(..), None) => drawn(range, 0.5, whole),
        (Range::List(words), _) if words.iter().any(|w| w == value) => value.into(),
        (Range::List(words), now) => {
            let far = |word: &String| {
                let x: f64 = word.parse().unwrap_or(f64::NAN);
                let ratio = (x.max(1e-300) / now.unwrap_or(1.0).max(1e-300)).ln().abs();
                if ratio.is_nan() { f64::MAX } else { ratio }
            };
            let near = words.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            near.cloned().unwrap_or_default()
        }
    }
}

/// A number that reads well: three digits, inside its interval.
fn number(x: f64, low: f64, high: f64, whole: bool) -> String {
    if whole {
        return x.round().clamp(low.ceil(), high.floor()).to_string();
    }
    let short: f64 = format!("{x:.2e}").parse().unwrap_or(x);
    short.clamp(low, high).to_string()
}
