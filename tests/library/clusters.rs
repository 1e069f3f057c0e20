//! Concepts and clusters of models, compared with direct computations in `f64`.

use crate::common::in_memory::{Entries, fit_ratings, hash_unit, options, planted_ratings, rmse};
use s3cmtf::discover::{
    ClusterOptions, ClusterSpace, Clusters, ConceptOptions, cluster_rows, describe_concepts,
};
use s3cmtf::model::Model;
use s3cmtf::options::{Algorithm, ModelKind};

fn models() -> Vec<Model> {
    let (tensor, genres) = planted_ratings();
    // Film 7 has genres but no ratings.
    let tensor = tensor.filtered(|x| x[1] != 7);
    let kinds = [
        (Algorithm::Blocked, ModelKind::Tucker, false),
        (Algorithm::Als, ModelKind::Cp, false),
        (Algorithm::Als, ModelKind::Tucker, true),
        (Algorithm::Als, ModelKind::Cp, true),
        (Algorithm::Gibbs, ModelKind::Tucker, false),
    ];
    let models = kinds.map(|(algorithm, kind, nonneg)| {
        let mut o = options(algorithm, kind, 3);
        (o.epochs, o.samples, o.nonneg, o.biases) = (8, 4, nonneg, !nonneg);
        if nonneg {
            o.start = s3cmtf::options::Initialization::Auto;
        }
        fit_ratings(&tensor, Some(&genres), &o)
    });
    models.into()
}

fn row(model: &Model, n: usize, at: usize) -> Vec<f64> {
    let row = model.modes()[n].factor.row(at);
    row.iter().map(|&x| f64::from(x)).collect()
}

/// Returns the contribution of each concept of mode 1 to the prediction at these compact rows, by definition.
fn contributions(model: &Model, position: [usize; 3]) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = (0..3).map(|n| row(model, n, position[n])).collect();
    let core = model.shape().dense_core(model.core()).unwrap();
    let ranks = &model.shape().ranks();
    let mut sums = vec![0.0; ranks[1]];
    for (at, &g) in core.iter().enumerate() {
        let (i, j, k) = (
            at / (ranks[1] * ranks[2]),
            at / ranks[2] % ranks[1],
            at % ranks[2],
        );
        sums[j] += f64::from(g) * rows[0][i] * rows[1][j] * rows[2][k];
    }
    sums
}

/// Returns the fraction of the entries that each row of a mode has.
fn entry_fractions(model: &Model, n: usize) -> Vec<f64> {
    let counts = &model.modes()[n].counts;
    let total: u64 = counts.iter().sum();
    counts.iter().map(|&c| c as f64 / total as f64).collect()
}

#[test]
fn concept_strength_is_the_rms_of_its_contribution() {
    for model in &models() {
        let (users, months) = (model.modes()[0].rows.len(), model.modes()[2].rows.len());
        let films = model.modes()[1].rows.len();
        let fraction: Vec<Vec<f64>> = (0..3).map(|n| entry_fractions(model, n)).collect();
        for given in [vec![], vec![(0, 9)], vec![(0, 9), (2, 2)]] {
            let row_of = |n: usize| given.iter().find(|g| g.0 == n).map(|g| g.1 as usize);
            let range = |n: usize, all: usize| match row_of(n) {
                Some(r) => vec![(r, 1.0)],
                None => (0..all).map(|r| (r, fraction[n][r])).collect(),
            };
            let rank = model.shape().ranks()[1];
            let mut squares = vec![0.0; rank];
            for &(u, a) in &range(0, users) {
                for (film, c) in fraction[1].iter().enumerate() {
                    for &(m, b) in &range(2, months) {
                        let weight = a * b * c;
                        for (s, x) in squares.iter_mut().zip(contributions(model, [u, film, m])) {
                            *s += weight * x * x;
                        }
                    }
                }
            }
            // The mean row of a mode is stored after its other rows.
            let u = row_of(0).unwrap_or(users);
            let m = row_of(2).unwrap_or(months);
            let concept_options = ConceptOptions {
                given: given.clone(),
                top: 4,
                ..ConceptOptions::new(1)
            };
            let found = describe_concepts(model, &concept_options, &()).unwrap();
            assert_eq!(found.concepts.len(), rank);
            let strengths: Vec<f64> = found.concepts.iter().map(|c| c.strength).collect();
            assert!(strengths.windows(2).all(|w| w[0] >= w[1]));
            for c in &found.concepts {
                let expected = squares[c.column].sqrt();
                let near = 1e-5 * strengths[0];
                assert!((c.strength - expected).abs() < near, "{c:?} {expected}");
                assert!(c.strength >= c.effect * (1.0 - 1e-4) - near && c.effect >= 0.0);
                // The contribution of a concept to a listed row is its loading times the effect.
                for r in c.largest.iter().chain(&c.smallest) {
                    let film = model.modes()[1].rows.compact(r.index).unwrap() as usize;
                    let contribution = contributions(model, [u, film, m])[c.column];
                    assert!(
                        (contribution - r.score * c.effect).abs() < 10.0 * near,
                        "{contribution} {r:?}"
                    );
                    assert_ne!(r.index, 7, "film 7 has no entries");
                }
                let sign = if c.sign_flipped { -1.0 } else { 1.0 };
                let mut all: Vec<f64> = (0..films)
                    .filter(|&f| model.modes()[1].counts[f] > 0)
                    .map(|f| sign * row(model, 1, f)[c.column])
                    .collect();
                all.sort_by(|a, b| b.total_cmp(a));
                let size: f64 = (0..films)
                    .map(|f| fraction[1][f] * row(model, 1, f)[c.column].powi(2))
                    .sum();
                for (k, r) in c.largest.iter().enumerate() {
                    assert!((r.score - all[k] / size.sqrt()).abs() < 1e-5);
                }
                for (k, r) in c.smallest.iter().enumerate() {
                    let expected = all[all.len() - 1 - k] / size.sqrt();
                    assert!((r.score - expected).abs() < 1e-5);
                }
                // Ties are broken by the number of entries, then by index.
                let mut order: Vec<usize> = (0..films).collect();
                let counts = &model.modes()[1].counts;
                order.retain(|&f| counts[f] > 0);
                order.sort_by(|&a, &b| {
                    let x = |f: usize| sign * row(model, 1, f)[c.column];
                    let by = x(a).partial_cmp(&x(b)).unwrap();
                    by.then(counts[b].cmp(&counts[a])).then(a.cmp(&b))
                });
                let expected = order[..4]
                    .iter()
                    .map(|&f| model.modes()[1].rows.indices().nth(f).unwrap());
                assert!(expected.eq(c.smallest.iter().map(|r| r.index)));
                // Genres: the contribution of a loading of 1, relative to the root mean square of the predictions.
                assert_eq!((c.positive.len(), c.negative.len()), (4, 4));
                for a in c.positive.iter().chain(&c.negative) {
                    let v = model.matrices()[0].factor.row(a.column as usize);
                    let dot = |f: usize| -> f64 {
                        let each = row(model, 1, f).into_iter().zip(v);
                        each.map(|(x, &y)| x * f64::from(y)).sum()
                    };
                    let all: f64 = (0..films).map(|f| fraction[1][f] * dot(f).powi(2)).sum();
                    let expected = sign * size.sqrt() * f64::from(v[c.column]) / all.sqrt();
                    assert!((a.contribution - expected).abs() < 1e-4, "{a:?} {expected}");
                }
            }
            // With one free mode the profile R of the paper is a matrix, scaled by the sizes of the columns.
            assert_eq!(found.profile.is_some(), given.len() == 1);
            if let Some(profile) = &found.profile {
                let core = model.shape().dense_core(model.core()).unwrap();
                let ranks = &model.shape().ranks();
                let user = row(model, 0, 9);
                let size = |n: usize, j: usize| -> f64 {
                    let all = fraction[n].iter().enumerate();
                    let sum: f64 = all.map(|(r, s)| s * row(model, n, r)[j].powi(2)).sum();
                    sum.sqrt()
                };
                for (at, x) in profile.values.iter().enumerate() {
                    let (j, k) = (at / ranks[2], at % ranks[2]);
                    let each = user
                        .iter()
                        .enumerate()
                        .map(|(i, u)| u * f64::from(core[(i * ranks[1] + j) * ranks[2] + k]));
                    let expected = each.sum::<f64>() * size(1, j) * size(2, k);
                    assert!((x - expected).abs() < 1e-5 * strengths[0], "{x} {expected}");
                }
            }
        }
        let same = ConceptOptions {
            given: vec![(1, 3)],
            ..ConceptOptions::new(1)
        };
        assert!(describe_concepts(model, &same, &()).is_err());
        assert!(describe_concepts(model, &ConceptOptions::new(3), &()).is_err());
    }
}

#[test]
fn cluster_distances_equal_distances_of_predictions() {
    for model in &models()[..4] {
        let (users, months) = (model.modes()[0].rows.len(), model.modes()[2].rows.len());
        let fraction: Vec<Vec<f64>> = (0..3).map(|n| entry_fractions(model, n)).collect();
        let cluster_options = ClusterOptions {
            k: Some(3),
            max_members: usize::MAX,
            threads: 1,
            ..ClusterOptions::new(1)
        };
        let found = cluster_rows(model, &cluster_options, &[], &()).unwrap();
        assert_eq!(found.rows.len(), 44);
        assert!(!found.rows.contains(&7) && found.gap.is_none());
        // The predictions of a film at all positions, weighted by the root of the fraction of entries; then its genres.
        let film = |index: u32| model.modes()[1].rows.compact(index).unwrap() as usize;
        let tensor = |index: u32| -> Vec<f64> {
            let mut all = Vec::new();
            for u in 0..users {
                for m in 0..months {
                    let sum: f64 = contributions(model, [u, film(index), m]).iter().sum();
                    all.push(sum * (fraction[0][u] * fraction[2][m]).sqrt());
                }
            }
            all
        };
        let genres = |index: u32| -> Vec<f64> {
            let u = row(model, 1, film(index));
            let v = &model.matrices()[0].factor;
            let dot = |c: usize| u.iter().zip(v.row(c)).map(|(x, &y)| x * f64::from(y)).sum();
            (0..v.len()).map(dot).collect()
        };
        let standardized = |of: &dyn Fn(u32) -> Vec<f64>| -> Vec<Vec<f64>> {
            let mut all: Vec<Vec<f64>> = found.rows.iter().map(|&r| of(r)).collect();
            let count = all.len() as f64;
            let mut variance = 0.0;
            for j in 0..all[0].len() {
                let mean = all.iter().map(|x| x[j]).sum::<f64>() / count;
                all.iter_mut().for_each(|x| x[j] -= mean);
                variance += all.iter().map(|x| x[j] * x[j]).sum::<f64>() / count;
            }
            all.iter_mut().flatten().for_each(|x| *x /= variance.sqrt());
            all
        };
        let mut points = standardized(&tensor);
        for (to, more) in points.iter_mut().zip(standardized(&genres)) {
            to.extend(more);
        }
        let mut within = 0.0;
        for (c, cluster) in found.clusters.iter().enumerate() {
            let own: Vec<usize> = (0..found.rows.len())
                .filter(|&i| found.assignments[i] as usize == c)
                .collect();
            assert_eq!(own.len() as u64, cluster.size);
            let centre: Vec<f64> = (0..points[0].len())
                .map(|j| own.iter().map(|&i| points[i][j]).sum::<f64>() / own.len() as f64)
                .collect();
            for m in &cluster.members {
                let at = found.rows.iter().position(|&r| r == m.index).unwrap();
                let each = points[at].iter().zip(&centre);
                let square: f64 = each.map(|(x, y)| (x - y) * (x - y)).sum();
                within += square;
                // Tensor and genres have variance 1 each.
                let expected = (square / 2.0).sqrt();
                assert!((m.distance - expected).abs() < 2e-3, "{m:?} {expected}");
            }
        }
        let expected = 1.0 - within / (2.0 * found.rows.len() as f64);
        assert!(
            (found.explained_variance - expected).abs() < 1e-3,
            "{expected}"
        );
    }
}

/// Returns ratings that depend on the group of a film, and a matrix with the group of most films, one column each.
fn grouped_films(films: u32, groups: u32) -> (Entries, Entries) {
    let mut tensor = Entries::new(&[80, films.into(), 3]);
    let mut matrix = Entries::new(&[films.into(), u64::from(groups) + 1]);
    for film in 0..films {
        let group = film % groups;
        for user in 0..80u32 {
            let cell = u64::from(user * films + film);
            if hash_unit(cell) < 0.5 {
                let taste = 2.0 * hash_unit(10_000_000 + u64::from(user * groups + group)) - 1.0;
                let noise = 0.05 * (hash_unit(20_000_000 + cell) - 0.5);
                let month = (3.0 * hash_unit(30_000_000 + cell)) as u32;
                tensor.push(&[user, film, month], taste + noise);
            }
        }
        let label = if film % 11 == 0 { groups } else { group };
        (0..=groups).for_each(|c| matrix.push(&[film, c], f64::from(u8::from(c == label))));
    }
    (tensor, matrix)
}

/// Fits the ratings of four groups of films.
fn grouped_model() -> (Model, Entries) {
    let (tensor, matrix) = grouped_films(120, 4);
    let mut o = options(Algorithm::Als, ModelKind::Cp, 6);
    (o.epochs, o.biases, o.lambda_reg) = (40, false, Some(0.001));
    let model = fit_ratings(&tensor, None, &o);
    let error = rmse(&model, &tensor);
    assert!(error < 0.05, "{error}");
    (model, matrix)
}

fn same(a: &Clusters, b: &Clusters) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

#[test]
fn planted_clusters_are_recovered_counted_and_labelled() {
    let (model, matrix) = grouped_model();
    for space in [ClusterSpace::Predictions, ClusterSpace::Columns] {
        let mut cluster_options = ClusterOptions {
            max_k: Some(8),
            restarts: 4,
            max_members: 3,
            threads: 1,
            space,
            ..ClusterOptions::new(1)
        };
        if space == ClusterSpace::Columns {
            cluster_options.k = Some(4);
        }
        let found = cluster_rows(&model, &cluster_options, &[matrix.view()], &()).unwrap();
        let gap = found.gap.as_ref().unwrap();
        assert_eq!(gap.points.len(), 8);
        assert_eq!(found.clusters.len(), 4, "{gap:?}");
        if space == ClusterSpace::Predictions {
            assert_eq!((gap.chosen, gap.is_conclusive), (4, true));
        }
        for (i, &r) in found.rows.iter().enumerate() {
            assert_eq!(found.assignments[i], found.assignments[r as usize % 4]);
        }
        for cluster in &found.clusters {
            assert_eq!((cluster.size, cluster.members.len()), (30, 3));
            let label = &cluster.labels[0];
            let group = cluster.members[0].index % 4;
            let has = |f: u32| !f.is_multiple_of(11) && f % 4 == group;
            let count = (0..120).filter(|&f| has(f)).count() as u64;
            assert_eq!(
                (label.column, label.count, label.overall),
                (group, count, count)
            );
            assert!((label.lift - 4.0).abs() < 1e-12);
            // All rows with the label are in the cluster: the hypergeometric probability is a product.
            let each = (0..count).map(|i| (30 - i) as f64 / (120 - i) as f64);
            let expected: f64 = each.product();
            assert!((label.p_value / expected - 1.0).abs() < 1e-9);
            // The correction is for 4 clusters x 5 columns tested.
            for l in &cluster.labels {
                let corrected = (l.p_value * 20.0).min(1.0);
                assert!((l.corrected_p / corrected - 1.0).abs() < 1e-9, "{l:?}");
                assert_eq!(l.is_significant(), l.column == group, "{l:?}");
            }
        }
        assert!(found.uncertainty_coefficients[0] > 0.7 && found.uncertainty_coefficients[0] < 1.0);
        for threads in [2, 3, 7] {
            cluster_options.threads = threads;
            let more = cluster_rows(&model, &cluster_options, &[matrix.view()], &()).unwrap();
            assert!(same(&found, &more), "{threads} threads");
        }
        cluster_options.seed = 99;
        let other = cluster_rows(&model, &cluster_options, &[], &()).unwrap();
        assert_eq!(other.clusters.len(), 4);
    }
}

#[test]
fn number_of_clusters_is_limited_by_rows_and_invalid_options_are_rejected() {
    let (model, _) = grouped_model();
    let with_k = |mode: usize, k: usize| ClusterOptions {
        k: Some(k),
        ..ClusterOptions::new(mode)
    };
    // The mode has only three rows.
    let found = cluster_rows(&model, &with_k(2, 50), &[], &()).unwrap();
    assert_eq!(found.clusters.len(), 3);
    assert!(
        found
            .clusters
            .iter()
            .all(|c| c.radius == 0.0 && c.size == 1)
    );
    let chosen = cluster_rows(&model, &ClusterOptions::new(2), &[], &()).unwrap();
    assert_eq!(chosen.gap.unwrap().points.len(), 3);
    let mut many = with_k(1, 2);
    many.min_entries = 1_000_000;
    let message = cluster_rows(&model, &many, &[], &())
        .unwrap_err()
        .to_string();
    assert!(message.contains("no row of mode 2"), "{message}");
    for wrong in [with_k(3, 2), with_k(1, 0)] {
        assert!(cluster_rows(&model, &wrong, &[], &()).is_err());
    }
    let (tensor, _) = planted_ratings();
    let message = cluster_rows(&model, &with_k(1, 2), &[tensor.view()], &());
    assert!(message.unwrap_err().to_string().contains("matrix"));
}

#[test]
fn nonnegative_models_have_columns_of_norm_one() {
    for model in &models()[2..4] {
        for mode in model.modes() {
            for j in 0..mode.factor.rank() {
                let column = (0..mode.rows.len()).map(|i| f64::from(mode.factor.row(i)[j]));
                let column: Vec<f64> = column.collect();
                let norm = column.iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!(norm == 0.0 || (norm - 1.0).abs() < 1e-5, "{norm}");
                assert!(column.iter().all(|&x| x >= 0.0));
            }
        }
        assert!(model.core().iter().all(|&g| g >= 0.0));
        let largest = model.core().iter().fold(0.0f32, |a, &g| a.max(g));
        assert!(largest > 10.0, "scales are in the core");
    }
}

#[test]
fn underflowing_p_values_have_a_logarithm() {
    let films = 1600u32;
    let (tensor, matrix) = grouped_films(films, 2);
    let mut o = options(Algorithm::Als, ModelKind::Cp, 4);
    (o.epochs, o.biases, o.lambda_reg) = (30, false, Some(0.001));
    let model = fit_ratings(&tensor, None, &o);
    let cluster_options = ClusterOptions {
        k: Some(2),
        max_labels: 1,
        ..ClusterOptions::new(1)
    };
    let found = cluster_rows(&model, &cluster_options, &[matrix.view()], &()).unwrap();
    let mut zero = 0;
    for cluster in &found.clusters {
        let label = &cluster.labels[0];
        assert_eq!((cluster.size, label.count), (800, label.overall));
        // All rows with the label are in the cluster: the hypergeometric probability is a product.
        let each =
            (0..label.count).map(|i| ((800 - i) as f64 / f64::from(films - i as u32)).log10());
        let expected: f64 = each.sum();
        assert!(
            (label.log10_p - expected).abs() < 1e-8 * expected.abs(),
            "{label:?} {expected}"
        );
        zero += u32::from(expected < -330.0 && label.p_value == 0.0);
    }
    assert_eq!(zero, 2);
}
