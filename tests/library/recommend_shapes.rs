//! Rankings and similarities for models of all orders and ranks, and for more rows than one chunk, compared with single
//! predictions.

use std::collections::BTreeMap;

use crate::common::in_memory::{Entries, SilentObserver, hash_unit};
use s3cmtf::discover::{
    AVERAGE_ROW, RankedRow, RecommendOptions, SimilarOptions, recommend, similar_rows,
};
use s3cmtf::model::{Model, Predict};
use s3cmtf::options::{ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

/// Fits a model without mean and biases to entries at random positions.
fn fitted_model(dims: &[u64], kind: ModelKind, rank: usize) -> Model {
    let mut tensor = Entries::new(dims);
    let largest = *dims.iter().max().unwrap();
    for i in 0..4 * largest {
        let index = dims.iter().zip(0..).map(|(&dim, n): (&u64, u64)| {
            if dim == largest {
                (i % dim) as u32
            } else {
                (hash_unit(i * 8 + n) * dim as f64) as u32
            }
        });
        tensor.push(&index.collect::<Vec<_>>(), hash_unit(77 * i) - 0.3);
    }
    let mut o = Options::preset("paper").unwrap();
    (o.model, o.rank, o.epochs, o.threads) = (kind, vec![rank], 3, 1);
    (o.eta, o.orthogonal) = (Some(0.05), false);
    let problem = Problem::builder(tensor.view()).build(&()).unwrap();
    let input = FitInput::default();
    fit(&problem, &o, &input, &mut SilentObserver, &())
        .unwrap()
        .0
}

fn models() -> Vec<Model> {
    vec![
        fitted_model(&[30, 1300, 4], ModelKind::Tucker, 20),
        fitted_model(&[30, 1300, 4], ModelKind::Cp, 17),
        fitted_model(&[8, 1025, 3, 2], ModelKind::Tucker, 3),
        fitted_model(&[40, 513], ModelKind::Tucker, 6),
    ]
}

/// Checks that a list has the largest of all scores.
fn check(list: &[RankedRow], scores: &BTreeMap<u32, f64>, top: usize, near: f64) {
    let mut sorted: Vec<f64> = scores.values().copied().collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(list.len(), top);
    for (r, expected) in list.iter().zip(&sorted) {
        assert!((r.score - expected).abs() < near, "{} {expected}", r.score);
        assert!((r.score - scores[&r.index]).abs() < near);
    }
}

#[test]
fn rankings_match_predictions_for_all_shapes() {
    for model in &models() {
        let mut predict = model.predictor().unwrap();
        for mode in 0..model.order() {
            let others = (mode + 1) % model.order();
            let positions: Vec<Vec<u32>> = (0..3)
                .map(|q| {
                    let mut position = vec![AVERAGE_ROW; model.order()];
                    position[others] = q % model.dims()[others] as u32;
                    position
                })
                .collect();
            let index = |q: usize, to: &mut [u32]| to.copy_from_slice(&positions[q]);
            let top = 7.min(model.modes()[mode].rows.len());
            let request = RecommendOptions::new(mode, 7);
            recommend(model, 3, index, &request, &(), |q, list| {
                let mut position = positions[q].clone();
                let scores = model.modes()[mode].rows.indices().map(|row| {
                    position[mode] = row;
                    (row, predict(&position))
                });
                check(list, &scores.collect(), top, 1e-5);
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn similarity_matches_predictions_for_all_shapes() {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    for model in models().iter().skip(2) {
        let mut predict = model.predictor().unwrap();
        let fraction = |n: usize, i: u32| {
            let mode = &model.modes()[n];
            let row = mode
                .rows
                .compact(i)
                .map_or(0, |row| mode.counts[row as usize]);
            row as f64 / mode.counts.iter().sum::<u64>() as f64
        };
        let dims = model.dims();
        for mode in 0..model.order() {
            let mut slice = |row: u32| {
                let mut out = Vec::new();
                let mut position = vec![0u32; model.order()];
                loop {
                    position[mode] = row;
                    let weight = (0..position.len()).filter(|&n| n != mode);
                    let weight: f64 = weight.map(|n| fraction(n, position[n])).product();
                    if weight > 0.0 {
                        out.push(weight.sqrt() * predict(&position));
                    }
                    let others = (0..position.len()).filter(|&n| n != mode);
                    let Some(n) = others
                        .into_iter()
                        .find(|&n| u64::from(position[n]) + 1 < dims[n])
                    else {
                        break out;
                    };
                    position[n] += 1;
                    (0..n).for_each(|m| position[m] = 0);
                }
            };
            let rows: Vec<u32> = model.modes()[mode].rows.indices().collect();
            // Compares with a sample of the rows.
            let sample: Vec<u32> = rows.iter().copied().step_by(1 + rows.len() / 40).collect();
            let slices: BTreeMap<u32, Vec<f64>> = sample.iter().map(|&r| (r, slice(r))).collect();
            let request = SimilarOptions {
                mode,
                top: usize::MAX,
                threads: 2,
            };
            similar_rows(model, &sample[..2], &request, &(), |q, list| {
                assert_eq!(list.len(), rows.len() - 1);
                assert!(list.windows(2).all(|w| w[0].score >= w[1].score));
                let own = &slices[&sample[q]];
                for r in list.iter().filter(|r| slices.contains_key(&r.index)) {
                    let other = &slices[&r.index];
                    let cosine = dot(own, other) / (dot(own, own) * dot(other, other)).sqrt();
                    assert!((r.score - cosine).abs() < 1e-4, "{} {cosine}", r.score);
                }
                Ok(())
            })
            .unwrap();
        }
    }
}
