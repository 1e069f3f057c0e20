//! Ranking metrics, compared with a direct implementation of their definitions.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::in_memory::{fit_with_matrix, hash_unit, options, planted_ratings};
use s3cmtf::discover::{AVERAGE_ROW, RankBy, RankingMetrics, RankingOptions, evaluate_ranking};
use s3cmtf::model::Predict;
use s3cmtf::options::{Algorithm, ModelKind};
use s3cmtf::problem::MatrixKind;

/// Computes the metrics of the lists by definition.
fn expected_metrics(
    lists: impl Fn(u32) -> Vec<u32>,
    users: &BTreeMap<u32, BTreeSet<u32>>,
    at: usize,
) -> RankingMetrics {
    let mut sum = RankingMetrics::default();
    for (&user, relevant) in users {
        let list: Vec<u32> = lists(user).into_iter().take(at).collect();
        let hits = list.iter().filter(|r| relevant.contains(r)).count();
        let dcg = |gains: &[bool]| {
            let gain = |(p, &g): (usize, &bool)| {
                if g {
                    1.0 / ((p + 2) as f64).log2()
                } else {
                    0.0
                }
            };
            gains.iter().enumerate().map(gain).sum::<f64>()
        };
        let gains: Vec<bool> = list.iter().map(|r| relevant.contains(r)).collect();
        sum.hit_rate += if hits > 0 { 1.0 } else { 0.0 };
        sum.recall += hits as f64 / relevant.len() as f64;
        sum.ndcg += dcg(&gains) / dcg(&vec![true; relevant.len().min(at)]);
    }
    let n = users.len() as f64;
    RankingMetrics {
        hit_rate: sum.hit_rate / n,
        recall: sum.recall / n,
        ndcg: sum.ndcg / n,
    }
}

#[test]
fn ranking_metrics_match_their_definitions() {
    let (tensor, genres) = planted_ratings();
    let is_test = |x: &[u32]| hash_unit(u64::from(x[0] * 64 + x[1])) < 0.3 || x[1] == 30;
    let (train, mut test) = (tensor.filtered(|x| !is_test(x)), tensor.filtered(is_test));
    // A film with a training entry of the user is not relevant. Users and films without training entries count.
    let first = train.index(0);
    test.push(&[first[0], first[1], 4], 200.0);
    let train = train.filtered(|x| x[0] != 21);
    let genres = genres.filtered(|x| x[0] != 30);
    let mut o = options(Algorithm::Blocked, ModelKind::Tucker, 3);
    o.epochs = 8;
    let model = fit_with_matrix(&train, Some((&genres, MatrixKind::Observed)), &o);
    let mut predict = model.predictor().unwrap();
    let has = |u: u32, f: u32| (0..train.values.len()).any(|i| train.index(i)[..2] == [u, f]);
    let films: Vec<u32> = model.modes()[1].rows.indices().collect();
    assert!(!films.contains(&30) && model.modes()[0].rows.compact(21).is_none());
    for (at, relevant) in [(1, None), (3, Some(101.0)), (10, Some(104.0)), (60, None)] {
        let mut users: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for i in 0..test.values.len() {
            let index = test.index(i);
            let enough = relevant.is_none_or(|r| test.values[i] >= r);
            if enough && !has(index[0], index[1]) {
                users.entry(index[0]).or_default().insert(index[1]);
            }
        }
        let mut scores = BTreeMap::new();
        for &user in users.keys() {
            for &film in &films {
                scores.insert((user, film), predict(&[user, film, AVERAGE_ROW]));
            }
        }
        let count = |film: u32| train.columns[1].iter().filter(|&&f| f == film).count();
        let ranked = |user: u32, score: &dyn Fn(u32) -> f64| {
            let mut list: Vec<u32> = films.iter().copied().filter(|&f| !has(user, f)).collect();
            list.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
            list
        };
        let model_metrics = expected_metrics(|u| ranked(u, &|f| scores[&(u, f)]), &users, at);
        let popularity_metrics = expected_metrics(|u| ranked(u, &|f| count(f) as f64), &users, at);
        for threads in [1, 3] {
            let request = RankingOptions {
                mode: 1,
                user_mode: 0,
                list_len: at,
                rank_by: RankBy::Mean,
                min_relevant_value: relevant,
                threads,
            };
            let report =
                evaluate_ranking(&model, &test.view(), &train.view(), &request, &()).unwrap();
            assert_eq!(report.users, users.len() as u64);
            for (found, expected) in [
                (report.model, model_metrics),
                (report.popularity, popularity_metrics),
            ] {
                for (a, b) in [
                    (found.hit_rate, expected.hit_rate),
                    (found.recall, expected.recall),
                    (found.ndcg, expected.ndcg),
                ] {
                    assert!((a - b).abs() < 1e-12, "{found:?} {expected:?}");
                }
            }
        }
    }
    let request = RankingOptions {
        mode: 1,
        user_mode: 1,
        list_len: 3,
        rank_by: RankBy::Mean,
        min_relevant_value: None,
        threads: 1,
    };
    for (request, word) in [
        (request, "another mode"),
        (
            RankingOptions {
                list_len: 0,
                user_mode: 0,
                ..request
            },
            "at least 1",
        ),
        (
            RankingOptions {
                user_mode: 3,
                ..request
            },
            "3 modes",
        ),
        (
            RankingOptions {
                user_mode: 0,
                rank_by: RankBy::Quantile(0.1),
                ..request
            },
            "samples",
        ),
        (
            RankingOptions {
                user_mode: 0,
                min_relevant_value: Some(f64::NAN),
                ..request
            },
            "number",
        ),
    ] {
        let error =
            evaluate_ranking(&model, &test.view(), &train.view(), &request, &()).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    // Without relevant entries there are no users, and the metrics are 0.
    let request = RankingOptions {
        user_mode: 0,
        min_relevant_value: Some(1e9),
        ..request
    };
    let report = evaluate_ranking(&model, &test.view(), &train.view(), &request, &()).unwrap();
    assert_eq!((report.users, report.model.ndcg), (0, 0.0));
}
