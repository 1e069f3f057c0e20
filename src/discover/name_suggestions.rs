//! Lookup of a row by its name, with suggestions for misspelt names.

use crate::error::{Error, Result};
use crate::format::Names;
use crate::nearest_name::{MAX_COMPARED, edit_distance};
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
    let lower_text = text.to_lowercase();
    // Edits are counted for the beginning of a long text only.
    let text: Vec<char> = lower_text.chars().take(MAX_COMPARED).collect();
    let beginning: String = text.iter().collect();
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
            None => match edit_distance(&text, &lower).min(word_distance(&beginning, &lower)) {
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
