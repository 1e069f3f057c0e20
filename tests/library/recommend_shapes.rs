//! Lists of models of other orders and ranks, and of more rows than are scored at a time, against predictions one by one.

use std::collections::BTreeMap;

use crate::common::in_memory::{Entries, SilentObserver, hash_unit};
use s3cmtf::discover::{
    AVERAGE_ROW, RankedRow, RecommendOptions, SimilarOptions, recommend, similar_rows,
};
use s3cmtf::model::{Model, Predict};
use s3cmtf::options::{ModelKind, Options};
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

/// A model without mean and biases, of entries all over.
fn model(dims: &[u64], kind: ModelKind, rank: usize) -> Model {
    let mut tensor = Entries::new(dims);
    let largest = *dims.iter().max().unwrap();
    for i in 0..4 * largest {
        let index = dims
            .iter()
            .zip(0..)
            .map(|(&dim, n): (&u64, u64)| match dim == largest {
                true => (i % dim) as u32,
                false => (hash_unit(i * 8 + n) * dim as f64) as u32,
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
        model(&[30, 1300, 4], ModelKind::Tucker, 20),
        model(&[30, 1300, 4], ModelKind::Cp, 17),
        model(&[8, 1025, 3, 2], ModelKind::Tucker, 3),
        model(&[40, 513], ModelKind::Tucker, 6),
    ]
}

/// The best of all scores, by sorting all of them.
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
            let cells: Vec<Vec<u32>> = (0..3)
                .map(|q| {
                    let mut cell = vec![AVERAGE_ROW; model.order()];
                    cell[others] = q % model.dims()[others] as u32;
                    cell
                })
                .collect();
            let index = |q: usize, to: &mut [u32]| to.copy_from_slice(&cells[q]);
            let top = 7.min(model.modes()[mode].rows.len());
            let how = RecommendOptions::new(mode, 7);
            recommend(model, 3, index, &how, &(), |q, list| {
                let mut cell = cells[q].clone();
                let scores = model.modes()[mode].rows.indices().map(|row| {
                    cell[mode] = row;
                    (row, predict(&cell))
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
        let share = |n: usize, i: u32| {
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
                let mut cell = vec![0u32; model.order()];
                loop {
                    cell[mode] = row;
                    let weight = (0..cell.len()).filter(|&n| n != mode);
                    let weight: f64 = weight.map(|n| share(n, cell[n])).product();
                    if weight > 0.0 {
                        out.push(weight.sqrt() * predict(&cell));
                    }
                    let others = (0..cell.len()).filter(|&n| n != mode);
                    let Some(n) = others
                        .into_iter()
                        .find(|&n| u64::from(cell[n]) + 1 < dims[n])
                    else {
                        break out;
                    };
                    cell[n] += 1;
                    (0..n).for_each(|m| cell[m] = 0);
                }
            };
            let rows: Vec<u32> = model.modes()[mode].rows.indices().collect();
            // A few of the many rows are enough to compare with.
            let some: Vec<u32> = rows.iter().copied().step_by(1 + rows.len() / 40).collect();
            let slices: BTreeMap<u32, Vec<f64>> = some.iter().map(|&r| (r, slice(r))).collect();
            let how = SimilarOptions {
                mode,
                top: usize::MAX,
                threads: 2,
            };
            similar_rows(model, &some[..2], &how, &(), |q, list| {
                assert_eq!(list.len(), rows.len() - 1);
                assert!(list.windows(2).all(|w| w[0].score >= w[1].score));
                let own = &slices[&some[q]];
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
