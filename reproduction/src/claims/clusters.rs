//! The claim about the gap statistic.

use super::super::figure::Figure;
use super::super::store::Store;
use super::{Claim, Evidence, find};

pub(super) fn higher_gap(store: &Store) -> Claim {
    let figure = Figure::Gap;
    let mut evidence = Vec::new();
    for data in store.data_sets(figure) {
        // The paper's models are non-negative.
        for (suffix, counts) in [(", non-negative", true), ("", false)] {
            let points = |name: &str| {
                let m = find(store, figure, &data, &format!("{name}{suffix}"))?;
                Some(m.points("gap")).filter(|p| !p.is_empty())
            };
            let (Some(with), Some(without)) = (points("coupled"), points("uncoupled")) else {
                if counts {
                    evidence.push(Evidence::open(&data, "a model has no result"));
                }
                continue;
            };
            let (higher, lower, total) = compare(&with, &without);
            let text = format!(
                "{data}{suffix}: higher for {higher} and lower for {lower} of {total} numbers of clusters"
            );
            evidence.push(match counts {
                true => Evidence::new(text, 2 * higher > total),
                false => Evidence {
                    text: format!("{text} (for comparison)"),
                    agrees: Some(true),
                },
            });
        }
    }
    Claim::new(
        "The gap statistic of the coupled mode is higher with coupling than without (Yelp, businesses)",
        "it is higher beyond the standard errors for most of 2 to 12 clusters, with non-negative models as in the paper",
        evidence,
        "A matrix can add groups to the rows only where its columns form groups that the tensor does not show already",
    )
}

/// Counts the numbers of clusters, from 2 on, with a higher and with a lower gap beyond the standard errors, and all of them.
fn compare(with: &[Vec<f64>], without: &[Vec<f64>]) -> (usize, usize, usize) {
    let pairs = with.iter().zip(without).filter(|(a, _)| a[0] > 1.0);
    let difference = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let error = (a[2] * a[2] + b[2] * b[2]).sqrt();
        (a[1] - b[1], error)
    };
    let all: Vec<(f64, f64)> = pairs.map(difference).collect();
    let higher = all.iter().filter(|(d, e)| d > e).count();
    let lower = all.iter().filter(|(d, e)| -d > *e).count();
    (higher, lower, all.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::super::test_stores::TestStore;
    use super::*;

    #[test]
    fn most_numbers_of_clusters_must_have_a_higher_gap() {
        let verdict = |coupled: [f64; 4]| {
            let mut s = TestStore::new();
            let mut add = |name: &str, gaps: [f64; 4]| {
                let points: Vec<_> = (1..).zip(gaps).map(|(k, g)| json!([k, g, 0.01])).collect();
                s.add(Figure::Gap, "a", name, None, "ok", json!({"gap": points}));
            };
            add("coupled, non-negative", coupled);
            add("uncoupled, non-negative", [1.0; 4]);
            higher_gap(&s.store).verdict
        };
        assert_eq!(verdict([0.0, 1.1, 1.1, 1.0]), Verdict::Reproduced);
        assert_eq!(verdict([9.0, 1.1, 1.001, 1.0]), Verdict::NotReproduced);
        let empty = TestStore::new();
        assert_eq!(higher_gap(&empty.store).verdict, Verdict::Undecided);
    }
}
