//! Colours, legends and marks of methods, the same in all charts.

use super::table_position;
use crate::chart::{Curve, Mark, Series, Stroke, colour, short_number};
use crate::figure::Figure;
use crate::methods::{METHODS, OPT, TUCKER};
use crate::store::{Key, Measurement, OUT_OF_TIME, SKIPPED, Store};

/// Colours of methods, the same in all charts.
pub(super) struct Styles {
    /// Names of other programs, in alphabetic order.
    others: Vec<String>,
}

impl Styles {
    pub fn of(store: &Store) -> Styles {
        let all = store.all().filter(|(k, _)| k.figure != Figure::Gap);
        let names = all.map(|(k, _)| base(&k.method));
        let is_other = |name: &&str| table_position(name) == METHODS.len();
        let mut others: Vec<String> = names.filter(is_other).map(str::to_string).collect();
        others.sort();
        others.dedup();
        Styles { others }
    }

    /// Returns the position of a method among all; a variant has that of its method.
    pub fn place(&self, method: &str) -> usize {
        let name = match base(method) {
            // The models of the gap statistic: with matrices and without.
            "coupled" => OPT,
            "uncoupled" => TUCKER,
            name => name,
        };
        let other = self.others.iter().position(|o| o == name);
        table_position(name) + other.unwrap_or(0)
    }

    /// Returns the colour of a method. Variants are dashed.
    pub fn stroke(&self, method: &str) -> Stroke {
        Stroke {
            colour: colour(self.place(method)),
            is_dashed: base(method) != method,
        }
    }

    /// Returns what methods are sorted by: the order of tables, variants after their method.
    pub fn order(&self, method: &str) -> (usize, bool) {
        (self.place(method), base(method) != method)
    }

    /// Returns the legend of some methods.
    pub fn legend(&self, mut methods: Vec<String>) -> Vec<Series> {
        methods.sort_by_key(|m| self.order(m));
        let series = |name: String| Series {
            stroke: self.stroke(&name),
            name,
        };
        methods.into_iter().map(series).collect()
    }

    pub fn curve(&self, method: &str, points: Vec<(f64, f64)>) -> Curve {
        Curve {
            stroke: self.stroke(method),
            points,
            errors: Vec::new(),
        }
    }

    /// Returns marks for the measurements without results. Skipped sizes are only in the table.
    pub fn marks<'a>(&self, all: impl Iterator<Item = (&'a Key, &'a Measurement)>) -> Vec<Mark> {
        let mark = |(key, m): (&Key, &Measurement)| Mark {
            colour: colour(self.place(&key.method)),
            x: key.x.map(|x| x as f64),
            text: match key.x {
                Some(_) => status(m),
                None => format!("{}: {}", key.method, status(m)),
            },
        };
        all.filter(|(_, m)| has_mark(m)).map(mark).collect()
    }
}

/// Returns the name of a method without that of its variant, as in "S3CMTF-opt, 1 thread".
fn base(method: &str) -> &str {
    method.split_once(", ").map_or(method, |(base, _)| base)
}

pub(super) fn has_mark(m: &Measurement) -> bool {
    !m.is_ok() && m.status != SKIPPED
}

/// Returns why there are no results; with its limit, if the time was too short.
pub(super) fn status(m: &Measurement) -> String {
    match m.number("limit_seconds") {
        Some(limit) if m.status == OUT_OF_TIME => format!("{} {} s", m.status, short_number(limit)),
        _ => m.status.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::SALS;
    use crate::store::{NOT_SUPPORTED, OK};
    use serde_json::json;

    fn store(folder: &std::path::Path, methods: &[&str]) -> Store {
        let mut store = Store::open(folder).unwrap();
        for method in methods {
            let key = Key {
                figure: Figure::Accuracy,
                data: "data".into(),
                method: (*method).into(),
                x: None,
            };
            store.add(key, Measurement::new(OK, json!({}))).unwrap();
        }
        store
    }

    #[test]
    fn colours_do_not_depend_on_the_order_of_measurement() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let first = Styles::of(&store(folders[0].path(), &["b", SALS, "a"]));
        let second = Styles::of(&store(folders[1].path(), &[OPT, "a", "b"]));
        for method in [OPT, SALS, "a", "b"] {
            assert_eq!(first.stroke(method), second.stroke(method), "{method}");
        }
        let variant = first.stroke("S3CMTF-opt, 1 thread");
        assert!(variant.is_dashed && variant.colour == first.stroke(OPT).colour);
        let names = ["b", "a", "S3CMTF-opt, 1 thread", SALS, OPT].map(String::from);
        let legend = first.legend(names.into());
        let names: Vec<&str> = legend.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, [OPT, "S3CMTF-opt, 1 thread", SALS, "a", "b"]);
    }

    #[test]
    fn marks_have_the_time_limit_and_skipped_sizes_have_none() {
        let key = Key {
            figure: Figure::Accuracy,
            data: "data".into(),
            method: OPT.into(),
            x: None,
        };
        let late = Measurement::new(OUT_OF_TIME, json!({"limit_seconds": 14.52}));
        let other = Measurement::new(NOT_SUPPORTED, json!({}));
        let skipped = Measurement::new(SKIPPED, json!({}));
        let all = [late, other, skipped];
        let styles = Styles { others: Vec::new() };
        let marks = styles.marks(all.iter().map(|m| (&key, m)));
        let texts: Vec<&str> = marks.iter().map(|m| m.text.as_str()).collect();
        assert_eq!(
            texts,
            ["S3CMTF-opt: O.O.T. 14.5 s", "S3CMTF-opt: not supported"]
        );
    }
}
