//! Lookup of a row by its name, with suggestions for misspelt names.

use crate::error::{Error, Result};
use crate::format::Names;
use crate::sort::stable_sort_by_key;

/// The largest number of names that an error suggests.
const MAX_SUGGESTIONS: usize = 3;

/// Returns the row with a name, or an error that suggests similar names. `kind` is the kind of the named thing in the
/// error.
pub(crate) fn find_by_name(names: &Names, text: &str, kind: &str) -> Result<u32> {
    if let Some(row) = names.find(text) {
        return Ok(row);
    }
    let suggestions = suggestions(names, text);
    let quoted: Vec<String> = suggestions
        .names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect();
    let hint = match &quoted[..] {
        [] => String::new(),
        [only] if suggestions.are_close => format!("; did you mean {only}?"),
        some if suggestions.are_close => format!("; did you mean one of {}?", some.join(", ")),
        [only] => format!("; the nearest is {only}"),
        some => format!("; the nearest are {}", some.join(", ")),
    };
    Err(Error::argument(format!(
        "no {kind} is called {text:?}{hint}"
    )))
}

/// How well a name matches a text, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// Equal up to case.
    Equal,
    /// The name begins with the text; shorter names first.
    Prefix {
        name_len: usize,
    },
    /// The name contains the text; shorter names first.
    Substring {
        name_len: usize,
    },
    /// Within an edit distance of a third of the text.
    FewEdits {
        distance: usize,
    },
    ManyEdits {
        distance: usize,
    },
}

impl Match {
    fn is_close(self) -> bool {
        !matches!(self, Match::ManyEdits { .. })
    }
}

/// Names to suggest.
struct Suggestions<'a> {
    names: Vec<&'a str>,
    /// Whether they match well enough to ask "did you mean".
    are_close: bool,
}

/// Returns the best matches of a text; close ones only, if there are any. Ties go to the first rows.
fn suggestions<'a>(names: &'a Names, text: &str) -> Suggestions<'a> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let lower_text: String = text.iter().collect();
    let max_edits = text.len().div_ceil(3);
    let mut found: Vec<(Match, &str)> = Vec::new();
    for (_, name) in names.iter() {
        let lower = name.to_lowercase();
        let name_len = lower.len();
        let quality = match lower.find(&lower_text) {
            _ if lower_text.is_empty() => continue,
            Some(_) if lower == lower_text => Match::Equal,
            Some(0) => Match::Prefix { name_len },
            Some(_) => Match::Substring { name_len },
            None => match edit_distance(&text, &lower).min(word_distance(&lower_text, &lower)) {
                distance if distance <= max_edits => Match::FewEdits { distance },
                distance => Match::ManyEdits { distance },
            },
        };
        found.push((quality, name));
    }
    stable_sort_by_key(&mut found, &|&(quality, _)| quality);
    found.dedup_by_key(|f| f.1);
    let are_close = found.first().is_some_and(|f| f.0.is_close());
    found.retain(|f| f.0.is_close() == are_close);
    found.truncate(MAX_SUGGESTIONS);
    Suggestions {
        names: found.into_iter().map(|(_, name)| name).collect(),
        are_close,
    }
}

/// Returns one plus the distance between the words of a text and those of a name, in any order.
///
/// A word of the text costs its edit distance to the nearest word of the name, or 1 if one begins with the other. If no
/// word is within a third of its length, it costs its length.
fn word_distance(text: &str, name: &str) -> usize {
    let costs = words(text).map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let distances = words(name).map(|other| {
            if word == other {
                0
            } else if other.starts_with(word) || (other.len() > 2 && word.starts_with(other)) {
                1
            } else {
                edit_distance(&letters, other)
            }
        });
        let near = distances.filter(|&count| count <= letters.len() / 3);
        near.min().unwrap_or(letters.len())
    });
    costs.sum::<usize>() + 1
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split(|c: char| !c.is_alphanumeric());
    all.filter(|word| !word.is_empty())
}

/// Returns the restricted Damerau-Levenshtein distance: the number of insertions, deletions, substitutions and swaps of
/// neighbours from `text` to `name`, or one more than the distance to a prefix of `name` if that is less.
fn edit_distance(text: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut before_previous = Vec::new();
    let mut previous: Vec<usize> = (0..=name.len()).collect();
    for (i, &c) in text.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, &d) in name.iter().enumerate() {
            let mut distance = (previous[j] + usize::from(c != d))
                .min(previous[j + 1] + 1)
                .min(current[j] + 1);
            if i > 0 && j > 0 && c == name[j - 1] && d == text[i - 1] {
                distance = distance.min(before_previous[j - 1] + 1);
            }
            current.push(distance);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    let to_prefix = previous.iter().min().map_or(usize::MAX, |m| m + 1);
    previous[name.len()].min(to_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances_match_known_values() {
        let distance = |a: &str, b: &str| edit_distance(&a.chars().collect::<Vec<_>>(), b);
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("", "abc", 1),
            ("abc", "", 3),
            ("toy stroy", "toy story", 1),
            ("toy stroy", "toy story (1995)", 2),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
