//! Scores of predictive distributions on observed entries.
//!
//! Values on a scale of a few levels, such as ratings or 0 and 1, are scored by the probability of their level: the
//! predictive distribution between the midpoints to its neighbours, unbounded at both ends. An interval covers part of
//! the probability of a level; the expected fraction counts, as with a randomized probability integral transform.
//! The distributions of models with the probit likelihood have the two values themselves.

use std::collections::BTreeMap;

use super::binary_scores::MIN_PROBABILITY;
use super::intervals::{interval_predictor, require_samples};
use super::parallel_chunks::{ChunkRun, Positions, check_prediction};
use crate::error::Result;
use crate::format::CooView;
use crate::model::{Model, Predict, ProbitLink};
use crate::normal_distribution::{normal_crps, normal_probability, normal_quantile};
use crate::progress::{Monitor, StepPolls};
use crate::value_range::ValueRange;

/// Number of distinct values up to which values are levels of a scale: the first, or the second if each occurs
/// [`MIN_LEVEL_COUNT`] times on average.
const MAX_LEVELS: [usize; 2] = [32, 4096];
const MIN_LEVEL_COUNT: usize = 20;

/// Scores of the predictive distributions of a model with posterior samples. Entries count by weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionScores {
    /// Mean of -ln p, with p the predictive density of the value, or the probability of its level. Lower is better.
    pub log_score: f64,
    /// Mean continuous ranked probability score, in the unit of the values. Lower is better.
    pub crps: f64,
    /// Fraction of the values inside their central 50% interval.
    pub coverage_50: f64,
    /// Fraction of the values inside their central 90% interval.
    pub coverage_90: f64,
    /// Mean width of the central 90% intervals.
    pub width_90: f64,
    /// Number of levels of the values; 0 if they are continuous.
    pub levels: usize,
    /// The number of entries, without those of weight 0.
    pub count: u64,
}

/// Scores of entries whose rows have similar numbers of training entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowLengthGroup {
    /// Training entries of the shortest row of an entry: the smallest number in the group. 0 if the model does not have a
    /// row.
    pub min_len: u64,
    /// The largest number in the group.
    pub max_len: u64,
    /// Scores of the entries of the group.
    pub scores: DistributionScores,
}

/// Scores of the predictive distributions of a model, of all entries and by the length of their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct DistributionEvaluation {
    /// Scores of all entries.
    pub all: DistributionScores,
    /// Entries with a row that the model does not have, then deciles of the other entries by the length of their shortest
    /// row. Entries of the same length are in the same group, so groups may be larger and fewer.
    pub by_row_length: Vec<RowLengthGroup>,
}

/// Scores the predictive distribution of every entry of `view`.
///
/// The model must have posterior samples. 0 threads means all that this process may use; the scores do not depend on the
/// number. Without entries the scores are 0 and there are no groups.
pub fn evaluate_distributions(
    model: &Model,
    view: &CooView<'_>,
    threads: usize,
    monitor: &dyn Monitor,
) -> Result<DistributionEvaluation> {
    model.check_order(view)?;
    let samples = require_samples(model, &[])?;
    let levels = Levels::of(view, monitor)?;
    let groups = RowLengths::of(model, view, monitor)?;
    let run = ChunkRun {
        threads,
        phase: "evaluating intervals",
        monitor,
    };
    let z50 = normal_quantile(0.75);
    let z90 = normal_quantile(0.95);
    let mut totals = vec![ScoreSums::default(); groups.bounds.len()];
    run.map(
        || interval_predictor(model, samples, &[], ValueRange::UNBOUNDED),
        2 * model.operations_per_prediction(),
        &Positions::of_entries(view),
        |sums: &mut Vec<ScoreSums>, i, distribution| {
            let deviation = distribution.standard_deviation;
            check_prediction(i, deviation)?;
            let weight = view.weight(i)?.unwrap_or(1.0);
            if weight == 0.0 {
                return Ok(());
            }
            // A model of constant values has no deviation.
            let deviation = deviation.max(f64::MIN_POSITIVE.sqrt());
            let value = view.values().get(i);
            sums.resize_with(groups.bounds.len(), ScoreSums::default);
            let sums = &mut sums[groups.group_of(i)];
            if let Some(link) = samples.link() {
                sums.add_entry(weight, &two_point_scores(&link, distribution.mean, value));
                return Ok(());
            }
            let z = |x: f64| (x - distribution.mean) / deviation;
            let (log_score, coverage_50, coverage_90) = match levels.cell(value) {
                Some((low, high)) => {
                    let (low, high) = (z(low), z(high));
                    let p = normal_probability(low, high);
                    let covered = |q: f64| {
                        let inside = normal_probability(low.clamp(-q, q), high.clamp(-q, q));
                        if p > 0.0 { inside / p } else { 0.0 }
                    };
                    (-p.max(f64::MIN_POSITIVE).ln(), covered(z50), covered(z90))
                }
                None => {
                    let z = z(value);
                    let log_density = -0.5 * (z * z + std::f64::consts::TAU.ln()) - deviation.ln();
                    let inside = |q: f64| f64::from(u8::from(z.abs() <= q));
                    (-log_density, inside(z50), inside(z90))
                }
            };
            let entry = EntryScores {
                log_score,
                crps: deviation * normal_crps(z(value)),
                coverage_50,
                coverage_90,
                width_90: 2.0 * z90 * deviation,
            };
            sums.add_entry(weight, &entry);
            Ok(())
        },
        |_, sums| {
            totals.iter_mut().zip(&sums).for_each(|(t, s)| t.add(s));
            Ok(())
        },
    )?;
    let level_count = levels.values.len();
    let mut all = ScoreSums::default();
    totals.iter().for_each(|sums| all.add(sums));
    let bounds = groups.bounds.iter().zip(&totals);
    let group = |(&(min_len, max_len), sums): (&(u64, u64), &ScoreSums)| RowLengthGroup {
        min_len,
        max_len,
        scores: sums.scores(level_count),
    };
    Ok(DistributionEvaluation {
        all: all.scores(level_count),
        by_row_length: bounds.map(group).collect(),
    })
}

/// Number of groups of entries by the length of their shortest row, without that of unseen rows.
const GROUPS: usize = 10;

/// Groups of entries by the length of their shortest row: its number of training entries.
struct RowLengths<'a> {
    model: &'a Model,
    view: &'a CooView<'a>,
    /// The smallest and largest length of each group, in ascending order.
    bounds: Vec<(u64, u64)>,
}

impl<'a> RowLengths<'a> {
    fn of(
        model: &'a Model,
        view: &'a CooView<'a>,
        monitor: &dyn Monitor,
    ) -> Result<RowLengths<'a>> {
        let mut lengths = RowLengths {
            model,
            view,
            bounds: Vec::new(),
        };
        let mut histogram = BTreeMap::new();
        let mut polls = StepPolls::new(monitor, view.order());
        for i in 0..view.len() {
            polls.step()?;
            *histogram.entry(lengths.shortest_row(i)).or_insert(0) += 1;
        }
        lengths.bounds = group_bounds(&histogram);
        Ok(lengths)
    }

    /// Returns the length of the shortest row of an entry; 0 if the model does not have one of its rows.
    fn shortest_row(&self, entry: usize) -> u64 {
        let modes = self.model.modes().iter().enumerate();
        let lengths = modes.map(|(n, mode)| {
            let row = self.model.row_of(n, self.view.column(n)[entry]) as usize;
            mode.counts.get(row).copied().unwrap_or(0)
        });
        lengths.min().unwrap_or(0)
    }

    fn group_of(&self, entry: usize) -> usize {
        let length = self.shortest_row(entry);
        self.bounds.partition_point(|&(_, max)| max < length)
    }
}

/// Returns the smallest and largest length of each group: length 0, and tenths of the entries of other lengths, as far as entries
/// of equal length are in one group. `histogram` has the number of entries of each length.
fn group_bounds(histogram: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut bounds: Vec<(u64, u64)> = Vec::new();
    let seen: u64 = histogram.range(1..).map(|(_, count)| count).sum();
    // Number of entries before the group, and at the end of its tenth.
    let (mut before, mut end) = (0, 0);
    for (&length, &count) in histogram {
        if length == 0 {
            bounds.push((0, 0));
            continue;
        }
        match bounds.last_mut() {
            Some((_, max)) if before < end => *max = length,
            _ => {
                bounds.push((length, length));
                let mut tenths = (1..=GROUPS as u64).map(|k| seen * k / GROUPS as u64);
                end = tenths.find(|&e| e > before).unwrap_or(seen);
            }
        }
        before += count;
    }
    bounds
}

/// The distinct values, if there are few.
struct Levels {
    /// In ascending order; empty if there are more than [`MAX_LEVELS`] allows.
    values: Vec<f64>,
}

impl Levels {
    fn of(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Levels> {
        let mut values: Vec<f64> = Vec::new();
        let mut polls = StepPolls::new(monitor, 1);
        for i in 0..view.len() {
            polls.step()?;
            let value = view.values().get(i);
            if let Err(k) = values.binary_search_by(|v| v.total_cmp(&value)) {
                values.insert(k, value);
            }
            if values.len() > MAX_LEVELS[1] {
                break;
            }
        }
        let most = (view.len() / MIN_LEVEL_COUNT).clamp(MAX_LEVELS[0], MAX_LEVELS[1]);
        // A single value is no scale.
        if values.len() == 1 || values.len() > most {
            values.clear();
        }
        Ok(Levels { values })
    }

    /// Returns the ends of the interval of values that round to the level of `value`; `None` if values are continuous.
    fn cell(&self, value: f64) -> Option<(f64, f64)> {
        let search = self.values.binary_search_by(|v| v.total_cmp(&value));
        let k = search.ok()?;
        let middle = |a: usize, b: usize| 0.5 * self.values[a] + 0.5 * self.values[b];
        let low = match k {
            0 => f64::NEG_INFINITY,
            _ => middle(k - 1, k),
        };
        let high = if k + 1 == self.values.len() {
            f64::INFINITY
        } else {
            middle(k, k + 1)
        };
        Some((low, high))
    }
}

/// Scores of one entry.
struct EntryScores {
    log_score: f64,
    crps: f64,
    coverage_50: f64,
    coverage_90: f64,
    width_90: f64,
}

/// Returns the scores of a distribution of two values with this mean.
fn two_point_scores(link: &ProbitLink, mean: f64, value: f64) -> EntryScores {
    let range = link.high - link.low;
    let high = ((mean - link.low) / range).clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY);
    let low = 1.0 - high;
    // The distribution function jumps from `start` to `end` at the value.
    let (start, end) = match value >= link.low + 0.5 * range {
        true => (low, 1.0),
        false => (0.0, low),
    };
    let covered = |q: f64| {
        let tail = 0.5 * (1.0 - q);
        (end.min(1.0 - tail) - start.max(tail)).max(0.0) / (end - start)
    };
    EntryScores {
        log_score: -(end - start).ln(),
        crps: range * (1.0 - (end - start)).powi(2),
        coverage_50: covered(0.5),
        coverage_90: covered(0.9),
        width_90: if low.min(high) >= 0.05 { range } else { 0.0 },
    }
}

#[derive(Default, Clone)]
struct ScoreSums {
    weight: f64,
    count: u64,
    log_score: f64,
    crps: f64,
    coverage_50: f64,
    coverage_90: f64,
    width_90: f64,
}

impl ScoreSums {
    fn add_entry(&mut self, weight: f64, entry: &EntryScores) {
        self.weight += weight;
        self.count += 1;
        self.log_score += weight * entry.log_score;
        self.crps += weight * entry.crps;
        self.coverage_50 += weight * entry.coverage_50;
        self.coverage_90 += weight * entry.coverage_90;
        self.width_90 += weight * entry.width_90;
    }

    fn add(&mut self, other: &ScoreSums) {
        self.weight += other.weight;
        self.count += other.count;
        self.log_score += other.log_score;
        self.crps += other.crps;
        self.coverage_50 += other.coverage_50;
        self.coverage_90 += other.coverage_90;
        self.width_90 += other.width_90;
    }

    fn scores(&self, levels: usize) -> DistributionScores {
        let weight = if self.count > 0 { self.weight } else { 1.0 };
        DistributionScores {
            log_score: self.log_score / weight,
            crps: self.crps / weight,
            coverage_50: self.coverage_50 / weight,
            coverage_90: self.coverage_90 / weight,
            width_90: self.width_90 / weight,
            levels,
            count: self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;

    fn levels(values: &[f64]) -> Levels {
        let column: Vec<u32> = (0..values.len() as u32).collect();
        let dims = [values.len() as u64; 2];
        let view = CooView::new("t", &dims, &[&column, &column], Values::F64(values)).unwrap();
        Levels::of(&view, &()).unwrap()
    }

    #[test]
    fn levels_lie_between_midpoints() {
        let ratings = levels(&[3.0, 1.0, 2.0, 3.0, 1.0]);
        assert_eq!(ratings.cell(1.0), Some((f64::NEG_INFINITY, 1.5)));
        assert_eq!(ratings.cell(2.0), Some((1.5, 2.5)));
        assert_eq!(ratings.cell(3.0), Some((2.5, f64::INFINITY)));
    }

    #[test]
    fn groups_keep_equal_lengths_together() {
        let bounds = |lengths: &mut dyn Iterator<Item = u64>| {
            let mut histogram = BTreeMap::new();
            lengths.for_each(|length| *histogram.entry(length).or_insert(0) += 1);
            group_bounds(&histogram)
        };
        assert_eq!(
            bounds(&mut (0..20).map(|k| k / 4)),
            [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
        );
        assert_eq!(bounds(&mut std::iter::empty()), []);
        let bounds = bounds(&mut (1..=1000));
        assert_eq!(
            (bounds.len(), bounds[0], bounds[9]),
            (10, (1, 100), (901, 1000))
        );
    }

    #[test]
    fn many_values_or_one_are_continuous() {
        let mut many: Vec<f64> = (0..=MAX_LEVELS[0]).map(|k| k as f64).collect();
        assert_eq!(levels(&many).cell(1.0), None);
        many.extend(std::iter::repeat_n(1.0, MIN_LEVEL_COUNT * many.len()));
        assert_eq!(levels(&many).cell(1.0), Some((0.5, 1.5)));
        assert_eq!(levels(&[7.0, 7.0]).cell(7.0), None);
    }
}
