//! How good the rankings of a model are, beside what everybody likes.

use std::collections::{BTreeMap, BTreeSet};

use super::recommend::{AVERAGE, Measure, Recommend, recommend_anyone};
use super::seen::Seen;
use super::{check_mode, top_k::Ranked};
use crate::error::{Error, Result};
use crate::format::CooView;

use crate::model::Model;
use crate::progress::Monitor;
use crate::try_alloc::try_zeroed;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankingOptions {
    /// The mode whose rows are ranked (items, say), counted from 0.
    pub mode: usize,
    /// The mode for whose rows they are ranked (users, say).
    pub by: usize,
    /// How many rows a list has.
    pub at: usize,
    /// What rows are ranked by.
    pub measure: Measure,
    /// The least value of a relevant entry; without it every entry is.
    pub relevant: Option<f64>,
    /// 0 means all this process may use; results do not depend on the number.
    pub threads: usize,
}

/// Figures of lists, each the mean over users.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankingMetrics {
    /// The share of users whose list has a relevant row.
    pub hit_rate: f64,
    /// The share of the relevant rows of a user that is in the list.
    pub recall: f64,
    /// The normalized discounted cumulative gain: a relevant row in place p (counted from 1) gains 1 / log2(p + 1),
    /// over what a list with all relevant rows first would gain.
    pub ndcg: f64,
}

/// What [`evaluate_ranking`] finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankingReport {
    /// Of the lists of the model.
    pub model: RankingMetrics,
    /// Of lists of what has the most training entries.
    pub popularity: RankingMetrics,
    /// How many users there are with something relevant.
    pub users: u64,
}

/// Measures rankings on test entries. For each row of the mode `by` (a user) the rows of the ranked mode that the model
/// knows and the user has no training entry with are ranked, all other modes averaged over, and the first `at` are the
/// list. Relevant are the rows of his test entries with values of at least `relevant` that he has no training entry
/// with, also those that the model does not know. Users without any do not count; one that the model does not know is
/// ranked for as the mean user. Entries of weight 0 do not count.
pub fn evaluate_ranking(
    model: &Model,
    test: &CooView<'_>,
    train: &CooView<'_>,
    options: &RankingOptions,
    monitor: &dyn Monitor,
) -> Result<RankingReport> {
    let (mode, by) = (options.mode, options.by);
    check_mode(model, mode)?;
    check_mode(model, by)?;
    model.check_order(test)?;
    model.check_order(train)?;
    if options.at == 0 {
        return Err(Error::argument("lists of 0 rows; give at least 1"));
    }
    if options.relevant.is_some_and(f64::is_nan) {
        return Err(Error::argument("the least relevant value is no number"));
    }
    let seen = Seen::new(std::slice::from_ref(train), by, mode)?;
    let mut relevant: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for i in 0..test.len() {
        let value = test.values().get(i);
        if !value.is_finite() {
            return Err(test.not_finite(i, "value", value));
        }
        let (user, row) = (test.column(by)[i], test.column(mode)[i]);
        let counts = test.weight(i)? != Some(0.0) && options.relevant.is_none_or(|r| value >= r);
        if counts && !seen.of(user).contains(row) {
            relevant.entry(user).or_default().insert(row);
        }
    }
    let users: Vec<(u32, BTreeSet<u32>)> = relevant.into_iter().collect();
    let popular = by_popularity(model, train, mode)?;
    let index = |q: usize, cell: &mut [u32]| {
        cell.fill(AVERAGE);
        cell[by] = users[q].0;
    };
    let how = Recommend {
        measure: options.measure,
        seen: Some(&seen),
        threads: options.threads,
        ..Recommend::new(mode, options.at)
    };
    let (mut own, mut common) = (Sums::default(), Sums::default());
    let take = |q: usize, list: &[Ranked]| {
        let (user, relevant) = &users[q];
        let list = list.iter().map(|r| r.index);
        own.add(list, relevant, options.at);
        let seen = seen.of(*user);
        let list = popular.iter().copied().filter(|&row| !seen.contains(row));
        common.add(list.take(options.at), relevant, options.at);
        Ok(())
    };
    recommend_anyone(model, (users.len(), index), &how, monitor, take)?;
    Ok(RankingReport {
        model: own.mean(),
        popularity: common.mean(),
        users: users.len() as u64,
    })
}

/// The rows that the model knows, those with the most entries first, then in their order.
fn by_popularity(model: &Model, train: &CooView<'_>, mode: usize) -> Result<Vec<u32>> {
    let map = &model.modes()[mode].rows;
    let mut counts: Vec<u64> = try_zeroed(map.len(), "rows")?;
    for (i, &row) in train.column(mode).iter().enumerate() {
        if let Some(row) = map.compact(row)
            && train.weight(i)? != Some(0.0)
        {
            counts[row as usize] += 1;
        }
    }
    let mut rows: Vec<(u64, u32)> = counts.into_iter().zip(map.indices()).collect();
    rows.sort_by_key(|&(count, row)| (std::cmp::Reverse(count), row));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[derive(Default)]
struct Sums {
    users: f64,
    total: RankingMetrics,
}

impl Sums {
    fn add(&mut self, list: impl Iterator<Item = u32>, relevant: &BTreeSet<u32>, at: usize) {
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let (mut found, mut gained) = (0.0, 0.0);
        for (place, _) in list.enumerate().filter(|(_, row)| relevant.contains(row)) {
            found += 1.0;
            gained += gain(place);
        }
        let ideal: f64 = (0..at.min(relevant.len())).map(gain).sum();
        self.users += 1.0;
        self.total.hit_rate += f64::from(found > 0.0);
        self.total.recall += found / relevant.len() as f64;
        self.total.ndcg += gained / ideal;
    }

    fn mean(&self) -> RankingMetrics {
        let users = self.users.max(1.0);
        RankingMetrics {
            hit_rate: self.total.hit_rate / users,
            recall: self.total.recall / users,
            ndcg: self.total.ndcg / users,
        }
    }
}
