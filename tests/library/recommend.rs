//! Recommendations and similar rows, compared with direct computations in `f64`, and names of rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Scratch;
use crate::common::in_memory::{Entries, fit_ratings, options, planted_ratings};
use s3cmtf::discover::{
    AVERAGE_ROW, ObservedPairs, RankBy, RankedRow, RecommendOptions, RowNames, SimilarOptions,
    recommend, similar_rows,
};
use s3cmtf::format::Names;
use s3cmtf::model::{Model, Predict};
use s3cmtf::predict::{PredictOptions, predict_intervals_at};

use s3cmtf::kernel::CoreKind;
use s3cmtf::options::{Algorithm, ModelKind};

/// Returns the entries, and a Tucker model, one without biases, a CP model and a `gibbs` model fitted to them.
fn models() -> (Entries, Vec<Model>) {
    let (tensor, genres) = planted_ratings();
    // Film 7 has genres but no ratings, film 11 has neither, user 5 has no ratings.
    let tensor = tensor.filtered(|x| x[1] != 7 && x[1] != 11 && x[0] != 5);
    let genres = genres.filtered(|x| x[0] != 11);
    let kinds = [
        (Algorithm::Blocked, ModelKind::Tucker, true),
        (Algorithm::Blocked, ModelKind::Tucker, false),
        (Algorithm::Als, ModelKind::Cp, true),
        (Algorithm::Gibbs, ModelKind::Tucker, true),
    ];
    let models = kinds.map(|(algorithm, kind, biases)| {
        let mut o = options(algorithm, kind, 3);
        (o.epochs, o.samples, o.biases) = (8, 6, biases);
        fit_ratings(&tensor, Some(&genres), &o)
    });
    (tensor, models.into())
}

/// Returns the recommendations for several positions.
fn recommend_all(
    model: &Model,
    positions: &[Vec<u32>],
    request: &RecommendOptions<'_>,
) -> Vec<Vec<RankedRow>> {
    let mut lists = Vec::new();
    let index = |q: usize, to: &mut [u32]| to.copy_from_slice(&positions[q]);
    recommend(model, positions.len(), index, request, &(), |q, list| {
        assert_eq!(q, lists.len());
        lists.push(list.to_vec());
        Ok(())
    })
    .unwrap();
    lists
}

/// Returns the row of an index, or the mean row for an unknown index, in `f64`.
fn row(model: &Model, n: usize, index: u32) -> Vec<f64> {
    let at = model.row_of(n, index) as usize;
    let row = model.modes()[n].factor.row(at);
    row.iter().map(|&x| f64::from(x)).collect()
}

/// Computes the prediction of a model without samples by definition, with mean and biases if `baseline`.
fn value(model: &Model, index: &[u32], baseline: bool) -> f64 {
    let rows: Vec<Vec<f64>> = (0..3).map(|n| row(model, n, index[n])).collect();
    let core = model.shape().dense_core(model.core()).unwrap();
    let ranks = &model.shape().ranks();
    let mut sum = 0.0;
    for (at, &g) in core.iter().enumerate() {
        let (i, j, k) = (
            at / (ranks[1] * ranks[2]),
            at / ranks[2] % ranks[1],
            at % ranks[2],
        );
        sum += f64::from(g) * rows[0][i] * rows[1][j] * rows[2][k];
    }
    if baseline {
        sum += model.mean();
        for (n, mode) in model.modes().iter().enumerate() {
            let at = model.row_of(n, index[n]) as usize;
            sum += mode.biases.get(at).map_or(0.0, |&b| f64::from(b));
        }
    }
    sum
}

/// Checks that a list has the largest scores of all candidates, up to rounding.
fn check(list: &[RankedRow], scores: &BTreeMap<u32, f64>, top: usize, near: f64) {
    assert_eq!(list.len(), top.min(scores.len()));
    assert!(list.windows(2).all(|w| w[0].score > w[1].score
        || w[0].score == w[1].score && w[0].index < w[1].index));
    let listed: BTreeSet<u32> = list.iter().map(|r| r.index).collect();
    assert_eq!(listed.len(), list.len());
    for r in list {
        let expected = scores[&r.index];
        assert!((r.score - expected).abs() < near, "{} {expected}", r.score);
    }
    let worst = list.last().map_or(f64::INFINITY, |r| r.score);
    for (row, &score) in scores {
        assert!(
            listed.contains(row) || score < worst + near,
            "{row} is missing"
        );
    }
}

#[test]
fn recommendations_are_the_largest_predictions() {
    let (tensor, models) = models();
    let seen = ObservedPairs::new(&[tensor.view()], 0, 1).unwrap();
    let known: Vec<u32> = models[0].modes()[1].rows.indices().collect();
    assert!(!known.contains(&11) && known.contains(&7));
    for (m, model) in models.iter().enumerate() {
        let mut predict = model.predictor().unwrap();
        for month in [AVERAGE_ROW, 2] {
            let users: Vec<u32> = model.modes()[0].rows.indices().collect();
            // The index of the ranked mode is ignored.
            let positions: Vec<Vec<u32>> = users.iter().map(|&u| vec![u, 3, month]).collect();
            let mut request = RecommendOptions::new(1, 5);
            request.exclude_observed = Some(&seen);
            let lists = recommend_all(model, &positions, &request);
            for (list, user) in lists.iter().zip(&users) {
                let own = (0..tensor.values.len()).filter(|&i| tensor.columns[0][i] == *user);
                let own: BTreeSet<u32> = own.map(|i| tensor.columns[1][i]).collect();
                let candidates = known.iter().filter(|row| !own.contains(row));
                let scores = candidates.map(|&row| {
                    let position = [*user, row, month];
                    // Predictions from posterior samples have tests of their own.
                    let score = if model.samples().is_none() {
                        value(model, &position, true)
                    } else {
                        predict(&position)
                    };
                    (row, score)
                });
                check(list, &scores.collect(), 5, 2e-4);
                for r in list {
                    let predicted = predict(&[*user, r.index, month]);
                    assert_eq!(r.score.to_bits(), predicted.to_bits(), "model {m}");
                }
            }
        }
        // Users for a film, averaged over months.
        let request = RecommendOptions::new(0, 4);
        let lists = recommend_all(model, &[vec![AVERAGE_ROW, 9, AVERAGE_ROW]], &request);
        let users = model.modes()[0].rows.indices();
        let scores = users.map(|u| (u, predict(&[u, 9, AVERAGE_ROW]))).collect();
        check(&lists[0], &scores, 4, 2e-4);
    }
}

#[test]
fn recommendations_are_independent_of_thread_count() {
    let (tensor, models) = models();
    let seen = ObservedPairs::new(&[tensor.view()], 0, 1).unwrap();
    for model in &models {
        let users: Vec<u32> = model.modes()[0].rows.indices().collect();
        let positions: Vec<Vec<u32>> = users.iter().map(|&u| vec![u, 0, AVERAGE_ROW]).collect();
        let run = |threads: usize| {
            let mut request = RecommendOptions::new(1, 6);
            (request.exclude_observed, request.threads) = (Some(&seen), threads);
            let mut lists = recommend_all(model, &positions, &request);
            let options = SimilarOptions {
                mode: 0,
                top: 6,
                threads,
            };
            similar_rows(model, &users, &options, &(), |_, list| {
                lists.push(list.to_vec());
                Ok(())
            })
            .unwrap();
            lists
        };
        let one = run(1);
        assert_eq!(one.len(), 2 * users.len());
        for threads in [2, 3, 7] {
            assert_eq!(run(threads), one);
        }
        // A single request gives the same list.
        let request = RecommendOptions {
            exclude_observed: Some(&seen),
            ..RecommendOptions::new(1, 6)
        };
        assert_eq!(
            recommend_all(model, &positions[17..18], &request)[0],
            one[17]
        );
    }
}

#[test]
fn candidates_and_exclusions_are_respected() {
    let (tensor, models) = models();
    let model = &models[0];
    let position = [vec![4, 0, 1]];
    let rows = |request: &RecommendOptions<'_>| -> Vec<u32> {
        recommend_all(model, &position, request)[0]
            .iter()
            .map(|r| r.index)
            .collect()
    };
    let everything = rows(&RecommendOptions::new(1, usize::MAX));
    // All rows of the model, including film 7 without ratings.
    assert_eq!(everything.len(), model.modes()[1].rows.len());
    assert!(everything.contains(&7) && !everything.contains(&11));
    let chosen = [40, 3, 7, 11, 3, 20, 4_000_000];
    let mut request = RecommendOptions::new(1, 100);
    request.candidates = Some(&chosen);
    let expected: Vec<u32> = everything
        .iter()
        .copied()
        .filter(|i| chosen.contains(i))
        .collect();
    assert_eq!(rows(&request), expected);
    assert_eq!(expected.len(), 4);
    request.exclude = &[3, 20, 99];
    let expected: Vec<u32> = expected
        .into_iter()
        .filter(|i| ![3, 20].contains(i))
        .collect();
    assert_eq!(rows(&request), expected);
    request.top = 1;
    assert_eq!(rows(&request), expected[..1]);
    request.top = 0;
    assert!(rows(&request).is_empty());
    request.top = 5;
    request.candidates = Some(&[]);
    assert!(rows(&request).is_empty());
    // A user with entries for all films gets no recommendations.
    let mut watched = Entries::new(&tensor.dims);
    (0..45).for_each(|film| watched.push(&[4, film, 0], 1.0));
    let seen = ObservedPairs::new(&[watched.view()], 0, 1).unwrap();
    let request = RecommendOptions {
        exclude_observed: Some(&seen),
        ..RecommendOptions::new(1, 5)
    };
    assert!(rows(&request).is_empty());
    assert!(recommend_all(model, &[], &request).is_empty());
    // Users without an entry for a film.
    let seen = ObservedPairs::new(&[tensor.view()], 1, 0).unwrap();
    let request = RecommendOptions {
        exclude_observed: Some(&seen),
        ..RecommendOptions::new(0, 100)
    };
    let list = &recommend_all(model, &[vec![0, 9, AVERAGE_ROW]], &request)[0];
    let has_entry = |u: u32| (0..tensor.values.len()).any(|i| tensor.index(i)[..2] == [u, 9]);
    assert!(!list.is_empty() && list.iter().all(|r| !has_entry(r.index)));
}

#[test]
fn recommendations_can_be_ranked_by_a_quantile() {
    let (_, models) = models();
    let model = models.last().unwrap();
    let rows: Vec<u32> = model.modes()[1].rows.indices().collect();
    for (quantile, month) in [(0.05, AVERAGE_ROW), (0.5, 1), (0.9, 3)] {
        let mut request = RecommendOptions::new(1, 7);
        request.rank_by = RankBy::Quantile(quantile);
        let positions: Vec<Vec<u32>> = [0u32, 3, 59].iter().map(|&u| vec![u, 0, month]).collect();
        for (list, position) in recommend_all(model, &positions, &request)
            .iter()
            .zip(&positions)
        {
            let mut quantiles = Vec::new();
            let index = |positions: std::ops::Range<usize>, to: &mut [u32]| {
                for (to, row) in to.chunks_exact_mut(3).zip(&rows[positions]) {
                    to.copy_from_slice(&[position[0], *row, month]);
                }
            };
            predict_intervals_at(
                model,
                rows.len(),
                index,
                &[quantile],
                &PredictOptions {
                    clip: false,
                    threads: 1,
                },
                &(),
                |_, s| {
                    quantiles.extend(s.iter().map(|s| s.quantiles[0]));
                    Ok(())
                },
            )
            .unwrap();
            let scores: BTreeMap<u32, f64> = rows.iter().copied().zip(quantiles).collect();
            check(list, &scores, 7, 2e-4);
            for r in list {
                assert_eq!(r.score.to_bits(), scores[&r.index].to_bits());
            }
        }
    }
    for (model, quantile, word) in [(model, 1.0, "quantile"), (&models[0], 0.5, "samples")] {
        let request = RecommendOptions {
            rank_by: RankBy::Quantile(quantile),
            ..RecommendOptions::new(1, 7)
        };
        let index = |_: usize, to: &mut [u32]| to.fill(AVERAGE_ROW);
        let error = recommend(model, 1, index, &request, &(), |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// Returns the predictions of a row at all positions of the other modes, each times the root of its weight.
fn slice(model: &Model, mode: usize, row: u32) -> Vec<f64> {
    let others: Vec<usize> = (0..3).filter(|&n| n != mode).collect();
    let weights = |n: usize| {
        let m = &model.modes()[n];
        let total: u64 = m.counts.iter().sum();
        let fraction = m.counts.iter().map(move |&c| c as f64 / total as f64);
        m.rows.indices().zip(fraction).collect::<Vec<_>>()
    };
    let mut out = Vec::new();
    for (a, wa) in weights(others[0]) {
        for (b, wb) in weights(others[1]) {
            let mut index = [0; 3];
            (index[mode], index[others[0]], index[others[1]]) = (row, a, b);
            out.push((wa * wb).sqrt() * value(model, &index, false));
        }
    }
    out
}

#[test]
fn similarity_is_the_cosine_of_predictions() {
    let (_, models) = models();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    for model in models.iter().filter(|m| m.samples().is_none()) {
        for mode in 0..3 {
            let rows: Vec<u32> = model.modes()[mode].rows.indices().collect();
            let slices: BTreeMap<u32, Vec<f64>> =
                rows.iter().map(|&r| (r, slice(model, mode, r))).collect();
            let queried: Vec<u32> = rows.iter().copied().step_by(4).collect();
            let request = SimilarOptions {
                mode,
                top: 3,
                threads: 1,
            };
            let mut count = 0;
            similar_rows(model, &queried, &request, &(), |q, list| {
                let own = &slices[&queried[q]];
                let scores = rows.iter().zip(model.modes()[mode].counts.iter());
                let scores = scores.filter(|&(&r, &count)| r != queried[q] && count > 0);
                let scores = scores.map(|(&r, _)| {
                    let other = &slices[&r];
                    let norms = dot(own, own).sqrt() * dot(other, other).sqrt();
                    (r, dot(own, other) / norms)
                });
                check(list, &scores.collect(), 3, 1e-4);
                count += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(count, queried.len());
        }
    }
    assert!(
        models
            .iter()
            .any(|m| m.shape().kind() == CoreKind::Diagonal)
    );
    // A film without ratings is in no list, but may be queried.
    for model in &models {
        let request = SimilarOptions {
            mode: 1,
            top: 1000,
            threads: 2,
        };
        similar_rows(model, &[7, 8], &request, &(), |q, list| {
            assert!(
                list.iter()
                    .all(|r| r.index != 7 && (-1.0..=1.0).contains(&r.score))
            );
            assert_eq!(list.len(), 43 - q);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn unknown_rows_and_invalid_requests_are_rejected() {
    let (tensor, models) = models();
    let model = &models[0];
    let error_of = |position: [u32; 3], request: &RecommendOptions<'_>| {
        let index = |_: usize, to: &mut [u32]| to.copy_from_slice(&position);
        let error = recommend(model, 1, index, request, &(), |_, _| Ok(())).unwrap_err();
        error.to_string()
    };
    let request = RecommendOptions::new(1, 3);
    let error = error_of([5, 0, 0], &request);
    assert!(
        error.contains("row 6 of mode 1 is not in the model"),
        "{error}"
    );
    assert!(error.contains("nearest that it has is 5"), "{error}");
    assert!(error_of([900, 0, 0], &request).contains("nearest that it has is 60"));
    assert!(error_of([0, 0, 0], &RecommendOptions::new(3, 3)).contains("3 modes"));
    let seen = ObservedPairs::new(&[tensor.view()], 1, 0).unwrap();
    let other = RecommendOptions {
        exclude_observed: Some(&seen),
        ..request
    };
    assert!(error_of([0, 0, 0], &other).contains("mode 2"));
    let seen = ObservedPairs::new(&[tensor.view()], 2, 1).unwrap();
    let no_user = RecommendOptions {
        exclude_observed: Some(&seen),
        ..request
    };
    assert!(error_of([0, 0, AVERAGE_ROW], &no_user).contains("no row of that mode"));
    for (by, mode) in [(0, 0), (0, 3)] {
        assert!(ObservedPairs::new(&[tensor.view()], by, mode).is_err());
    }
    let request = SimilarOptions {
        mode: 1,
        top: 3,
        threads: 1,
    };
    let error = similar_rows(model, &[0, 11], &request, &(), |_, _| Ok(())).unwrap_err();
    assert!(error.to_string().contains("row 12 of mode 2"), "{error}");
}

#[test]
fn row_names_are_resolved_and_close_names_suggested() {
    let scratch = Scratch::new("discover-names");
    let films =
        "1\tToy Story (1995)\n2\tToy Soldiers (1991)\n3\tJumanji (1995)\n4\t12\n5\tHeat (1995)\n";
    let path = scratch.file("data.mode2.tsv", format!("index\tname\n{films}"));
    let mut names = RowNames::new(3);
    let train = scratch.join("data.train.coo");
    names.load_beside(&train).unwrap();
    assert!(names.of_mode(0).is_none() && names.of_mode(1).is_some());
    let (_, models) = models();
    let map = &models[0].modes()[1].rows;
    let find = |text: &str| names.find(1, text, map);
    assert_eq!(find("Jumanji (1995)").unwrap(), 2);
    let mut given = names.clone();
    // Names of a mode that has names already are not read.
    scratch.file("odd.mode2.tsv", "1\tx\n1\ty\n");
    let invalid = scratch.join("odd.train.coo");
    given.load_beside(&invalid).unwrap();
    assert!(RowNames::new(3).load_beside(&invalid).is_err());
    assert_eq!(
        (names.display_name(1, 2), names.display_name(1, 99)),
        ("Jumanji (1995)".into(), "100".into())
    );
    // Names take precedence over numbers.
    assert_eq!(find("12").unwrap(), 3);
    assert_eq!(find("=12").unwrap(), 3);
    assert_eq!(find("#12").unwrap(), 11);
    assert_eq!(find("7").unwrap(), 6);
    assert_eq!(names.find(0, "7", map).unwrap(), 6);
    let error = |mode: usize, text: &str| names.find(mode, text, map).unwrap_err().to_string();
    for (text, expected) in [
        ("Toy Stroy", "did you mean \"Toy Story (1995)\"?"),
        ("=Toy Stroy", "did you mean \"Toy Story (1995)\"?"),
        ("jumanji (1995)", "did you mean \"Jumanji (1995)\"?"),
        ("story", "did you mean \"Toy Story (1995)\"?"),
        ("heta (1995)", "did you mean \"Heat (1995)\"?"),
        ("Story, Toy", "did you mean \"Toy Story (1995)\"?"),
        ("Jumanjis", "did you mean \"Jumanji (1995)\"?"),
        ("Toyota 1995", "did you mean one of \"Toy Story (1995)\","),
        ("qqqqqq", "is called \"qqqqqq\"; the nearest are \""),
        ("0", "rows are numbered from 1, up to "),
        ("all", "many rows of mode 2"),
        ("2-3", "many rows of mode 2"),
    ] {
        assert!(error(1, text).contains(expected), "{}", error(1, text));
    }
    assert!(!error(1, "qqqqqq").contains("did you mean"));
    // Messages about numbers do not suggest names.
    for text in [
        "1995",
        "99999999999999999999999",
        "#1995",
        "-1",
        "1.5",
        "3-",
    ] {
        let error = error(1, text);
        assert!(!error.contains("called"), "{error}");
        assert!(error.contains(" of mode 2"), "{error}");
    }
    assert!(error(0, "Alice").contains("no names"));
    let list = scratch.file("list.txt", "Heat (1995)\n\n3\r\n#1\n");
    assert_eq!(names.read_list(1, &list, map).unwrap(), [4, 2, 0]);
    for text in ["Heat (1995)\nHeet (1995)\n", "Jumanji (1995)\n1995\n"] {
        let bad = scratch.file("bad.txt", text);
        let error = names.read_list(1, &bad, map).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
    let select = |text: &str| names.select(1, text, map);
    assert_eq!(select("all").unwrap().len(), 44);
    assert_eq!(select("10-13").unwrap(), [9, 10, 12]);
    assert_eq!(select("12").unwrap(), [3]);
    assert_eq!(select(&format!("@{}", list.display())).unwrap(), [4, 2, 0]);
    // Row 12 is not in the model.
    let unknown = format!("@{}", scratch.file("new.txt", "3\n#12\n").display());
    let empty = format!("@{}", scratch.file("empty.txt", "\n").display());
    for (text, expected) in [
        ("900-1000", "none of them"),
        ("0-3", "rows are numbered from 1"),
        ("5-2", "as in 2-5"),
        ("@", "the name of a file follows"),
        ("#12", "row 12 of mode 2 is not in the model"),
        (&unknown, "line 2: row 12 of mode 2 is not in the model"),
        (&empty, "lists no row"),
    ] {
        let error = select(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Names that look like other syntax, and ambiguous names.
    names
        .set(
            1,
            Names::from_names(["#6", "all", "1-3", "=6", "6", "twin", "@list", "twin"]),
        )
        .unwrap();
    let select = |text: &str| names.select(1, text, map);
    for (text, row) in [
        ("all", 1),
        ("=all", 1),
        ("1-3", 2),
        ("=#6", 0),
        ("#6", 5),
        ("6", 4),
        ("=6", 4),
        ("==6", 3),
        ("=@list", 6),
    ] {
        assert_eq!(select(text).unwrap(), [row], "{text}");
    }
    assert_eq!(select("#all").unwrap().len(), 44);
    assert_eq!(select("#1-3").unwrap(), [0, 1, 2]);
    let error = select("twin").unwrap_err().to_string();
    let expected = "2 rows of mode 2 are called \"twin\": 6, 8; give the number of one, as in #6";
    assert!(error.contains(expected), "{error}");
    assert!(names.set(3, Names::load(&path).unwrap()).is_err());
}
