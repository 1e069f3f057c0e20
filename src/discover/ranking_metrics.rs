//! Ranking metrics of a model on test entries, beside those of a popularity baseline.

use super::model_rows::check_mode;
use super::observed_pairs::{ObservedPairs, ObservedRows, pair};
use super::recommend::{RankBy, RecommendOptions, recommend_unchecked};
use super::top_k::RankedRow;
use crate::error::{Error, Result};
use crate::format::{CooView, for_each_valid_batch};
use crate::model::{AVERAGE_ROW, Model};
use crate::progress::Monitor;
use crate::try_alloc::try_zeroed;

/// Options of [`evaluate_ranking`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankingOptions {
    /// The mode whose rows are ranked (items, say), counted from 0.
    pub mode: usize,
    /// The mode of the users, for whose rows the others are ranked, counted from 0.
    pub user_mode: usize,
    /// The length of a list, the k of "recall at k".
    pub list_len: usize,
    /// The quantity that rows are ranked by.
    pub rank_by: RankBy,
    /// The smallest value of a relevant test entry; without it every test entry is relevant.
    pub min_relevant_value: Option<f64>,
    /// The number of threads; 0 means all that this process may use. Results do not depend on it.
    pub threads: usize,
}

/// Metrics of the lists of k rows, each a mean over users.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankingMetrics {
    /// The fraction of users whose list holds a relevant row.
    pub hit_rate: f64,
    /// The fraction of the relevant rows of a user that the list holds.
    pub recall: f64,
    /// Normalized discounted cumulative gain. A relevant row at rank p (counted from 1) gains 1 / log2(p + 1). The sum is
    /// divided by that of the ideal list, whose first ranks are all relevant (Jarvelin and Kekalainen 2002).
    pub ndcg: f64,
}

/// The result of [`evaluate_ranking`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankingReport {
    /// Metrics of the lists of the model.
    pub model: RankingMetrics,
    /// Metrics of lists of the same length that are ordered by the number of training entries of a row.
    pub popularity: RankingMetrics,
    /// The number of users with a relevant row.
    pub users: u64,
}

/// Computes ranking metrics on test entries.
///
/// For each row of `user_mode`, all rows of the ranked mode are ranked that the model has and the user has no training
/// entry with. The other modes are averaged over. The first `list_len` rows are the list of the user.
///
/// The relevant rows of a user are those of the test entries with a value of at least `min_relevant_value`, unless the
/// user also has a training entry with the row. A relevant row counts even if the model does not have it. Users without
/// relevant rows are left out. A user that the model does not have gets the list of the mean user. Entries of weight 0
/// are ignored.
pub fn evaluate_ranking(
    model: &Model,
    test: &CooView<'_>,
    train: &CooView<'_>,
    options: &RankingOptions,
    monitor: &dyn Monitor,
) -> Result<RankingReport> {
    let (mode, user_mode) = (options.mode, options.user_mode);
    check_mode(model, mode)?;
    check_mode(model, user_mode)?;
    model.check_order(test)?;
    model.check_order(train)?;
    if options.list_len == 0 {
        return Err(Error::argument("lists of 0 rows; give at least 1"));
    }
    if options.min_relevant_value.is_some_and(f64::is_nan) {
        return Err(Error::argument(
            "the smallest relevant value is NaN; it must be a number",
        ));
    }
    let observed = ObservedPairs::new(std::slice::from_ref(train), user_mode, mode)?;
    let mut relevant = Vec::new();
    for_each_valid_batch(
        test,
        monitor,
        "reading test entries",
        &mut |columns, range| {
            for (k, i) in range.enumerate() {
                let (user, row) = (columns[user_mode][k], columns[mode][k]);
                let is_large = |smallest| test.values().get(i) >= smallest;
                let is_relevant =
                    test.weight(i)? != Some(0.0) && options.min_relevant_value.is_none_or(is_large);
                if is_relevant && !observed.partners(user).contains(row) {
                    relevant.push(pair(user, row));
                }
            }
            Ok(())
        },
    )?;
    let relevant = ObservedPairs::from_pairs(relevant, user_mode, mode);
    let users = relevant.query_rows();
    let popular = by_popularity(model, train, mode)?;
    let write_index = |q: usize, index: &mut [u32]| {
        index.fill(AVERAGE_ROW);
        index[user_mode] = users[q];
    };
    let recommend_options = RecommendOptions {
        rank_by: options.rank_by,
        exclude_observed: Some(&observed),
        threads: options.threads,
        ..RecommendOptions::new(mode, options.list_len)
    };
    let (mut of_model, mut of_popularity) = (MetricSums::default(), MetricSums::default());
    let take = |q: usize, list: &[RankedRow]| {
        let relevant = relevant.partners(users[q]);
        let list = list.iter().map(|r| r.index);
        of_model.add(list, relevant, options.list_len);
        let observed = observed.partners(users[q]);
        let list = popular
            .iter()
            .copied()
            .filter(|&row| !observed.contains(row));
        of_popularity.add(list.take(options.list_len), relevant, options.list_len);
        Ok(())
    };
    recommend_unchecked(
        model,
        users.len(),
        write_index,
        &recommend_options,
        monitor,
        take,
    )?;
    Ok(RankingReport {
        model: of_model.mean(),
        popularity: of_popularity.mean(),
        users: users.len() as u64,
    })
}

/// Returns the rows of the model by descending number of training entries, then ascending.
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
    rows.sort_unstable_by_key(|&(count, row)| (std::cmp::Reverse(count), row));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Sums of the metrics over users.
#[derive(Default)]
struct MetricSums {
    users: f64,
    total: RankingMetrics,
}

impl MetricSums {
    /// Adds the metrics of one user.
    fn add(
        &mut self,
        list: impl Iterator<Item = u32>,
        relevant: ObservedRows<'_>,
        list_len: usize,
    ) {
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let (mut hits, mut gained) = (0.0, 0.0);
        for (rank, _) in list.enumerate().filter(|(_, row)| relevant.contains(*row)) {
            hits += 1.0;
            gained += gain(rank);
        }
        let ideal: f64 = (0..list_len.min(relevant.len())).map(gain).sum();
        self.users += 1.0;
        self.total.hit_rate += f64::from(hits > 0.0);
        self.total.recall += hits / relevant.len() as f64;
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
