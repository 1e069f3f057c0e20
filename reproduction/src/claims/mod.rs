//! The claims of the paper beside what was measured.
//!
//! Each data set or method gives one piece of evidence on a claim. A claim is reproduced if all evidence agrees with it, and not
//! reproduced if any contradicts it. It is undecided if no evidence contradicts it but a measurement is missing or inconclusive.
//! `errors` has the claims about test errors, `times` those about the time of iterations, `scaling` those about size and
//! threads, `clusters` the gap statistic.

mod clusters;
mod errors;
mod scaling;
mod times;

use super::figure::Figure;
use super::store::{Key, Measurement, Store};

/// A claim and its measurement.
pub(super) struct Claim {
    /// The claim with the paper's figures.
    pub claim: &'static str,
    /// The criterion by which it is judged.
    pub criterion: String,
    /// One text per data set or method.
    pub measured: Vec<String>,
    pub verdict: Verdict,
    pub why: String,
}

/// Whether the measurements reproduce a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Reproduced,
    NotReproduced,
    Undecided,
}

/// The measurement of one data set or method, and whether it supports the claim.
struct Evidence {
    text: String,
    /// Whether it agrees; `None` if it decides nothing.
    agrees: Option<bool>,
}

impl Evidence {
    fn new(text: String, agrees: bool) -> Evidence {
        Evidence {
            text,
            agrees: Some(agrees),
        }
    }

    /// Evidence that decides nothing, for a reason.
    fn open(text: &str, reason: &str) -> Evidence {
        Evidence {
            text: format!("{text} (not decided: {reason})"),
            agrees: None,
        }
    }
}

impl Claim {
    fn new(
        claim: &'static str,
        criterion: impl Into<String>,
        evidence: Vec<Evidence>,
        why: impl Into<String>,
    ) -> Claim {
        let agrees = |e: &Evidence| e.agrees;
        let all: Vec<Option<bool>> = evidence.iter().map(agrees).collect();
        let verdict = if all.contains(&Some(false)) {
            Verdict::NotReproduced
        } else if all.is_empty() || all.contains(&None) {
            Verdict::Undecided
        } else {
            Verdict::Reproduced
        };
        Claim {
            claim,
            criterion: criterion.into(),
            measured: evidence.into_iter().map(|e| e.text).collect(),
            verdict,
            why: why.into(),
        }
    }
}

/// Returns all claims of the figures that were measured.
pub(super) fn claims(store: &Store, figures: &[Figure]) -> Vec<Claim> {
    let of_figure = |figure: &Figure| match figure {
        Figure::Accuracy => errors::of_competitors(store),
        Figure::Sals => {
            let mut list = vec![times::faster_than_sals(store)];
            list.extend(errors::of_sals(store));
            list
        }
        Figure::IterationTime => times::of_competitors(store),
        Figure::Dimensionality => scaling::of_dimensionality(store),
        Figure::Entries => scaling::of_entries(store),
        Figure::Cores => scaling::of_threads(store),
        Figure::Gap => vec![clusters::higher_gap(store)],
    };
    figures.iter().flat_map(of_figure).collect()
}

/// Returns the measurement of a method on a data set.
fn find<'a>(store: &'a Store, figure: Figure, data: &str, method: &str) -> Option<&'a Measurement> {
    store.get(&Key {
        figure,
        data: data.into(),
        method: method.into(),
        x: None,
    })
}

/// Returns the status of a method on a data set, for a text.
fn status<'a>(store: &'a Store, figure: Figure, data: &str, method: &str) -> &'a str {
    find(store, figure, data, method).map_or("not measured", |m| &m.status)
}

/// The data set of the paper that some data is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaperData {
    MovieLens,
    Netflix,
    Yelp,
    Other,
}

impl PaperData {
    /// Recognizes it by the name of the data set.
    fn of(data: &str) -> PaperData {
        let name = data.to_lowercase();
        if name.contains("yelp") {
            PaperData::Yelp
        } else if name.contains("netflix") {
            PaperData::Netflix
        } else if name.contains("movielens") || name.starts_with("ml") {
            PaperData::MovieLens
        } else {
            PaperData::Other
        }
    }

    /// The paper's figure for it; for other data the lowest.
    fn figure(self, movielens: f64, netflix: f64, yelp: f64) -> f64 {
        match self {
            PaperData::MovieLens => movielens,
            PaperData::Netflix => netflix,
            PaperData::Yelp => yelp,
            PaperData::Other => movielens.min(netflix).min(yelp),
        }
    }
}

/// Stores of measurements for tests.
#[cfg(test)]
mod test_stores {
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    pub(super) struct TestStore {
        pub store: Store,
        _folder: TempDir,
    }

    impl TestStore {
        pub(super) fn new() -> TestStore {
            let folder = tempfile::tempdir().unwrap();
            TestStore {
                store: Store::open(folder.path()).unwrap(),
                _folder: folder,
            }
        }

        /// Adds a measurement.
        pub(super) fn add(
            &mut self,
            figure: Figure,
            data: &str,
            method: &str,
            x: Option<u64>,
            status: &str,
            fields: Value,
        ) -> &mut TestStore {
            let key = Key {
                figure,
                data: data.into(),
                method: method.into(),
                x,
            };
            self.store
                .add(key, Measurement::new(status, fields))
                .unwrap();
            self
        }

        /// Adds a fit with these test errors, one per second.
        pub(super) fn add_fit(
            &mut self,
            data: &str,
            method: &str,
            errors: &[f64],
        ) -> &mut TestStore {
            let points = errors.iter().enumerate();
            let points: Vec<Value> = points.map(|(k, e)| json!([k + 1, 0.0, e])).collect();
            let fields = json!({"test_rmse": errors.last(), "reason": "epochs", "epochs": points});
            self.add(Figure::Accuracy, data, method, None, "ok", fields)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_contradiction_decides_and_one_gap_leaves_open() {
        let verdict = |agrees: &[Option<bool>]| {
            let evidence = agrees.iter().map(|a| Evidence {
                text: String::new(),
                agrees: *a,
            });
            Claim::new("", "", evidence.collect(), "").verdict
        };
        assert_eq!(verdict(&[]), Verdict::Undecided);
        assert_eq!(verdict(&[Some(true), Some(true)]), Verdict::Reproduced);
        assert_eq!(verdict(&[Some(true), None]), Verdict::Undecided);
        assert_eq!(
            verdict(&[Some(true), None, Some(false)]),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn data_of_the_paper_is_recognized_by_name() {
        for (name, data) in [
            ("movielens-like", PaperData::MovieLens),
            ("ml1m_half", PaperData::MovieLens),
            ("Yelp_hin", PaperData::Yelp),
            ("nyctaxi3", PaperData::Other),
        ] {
            assert_eq!(PaperData::of(name), data);
        }
        assert_eq!(PaperData::Other.figure(3.6, 4.1, 2.1), 2.1);
    }
}
