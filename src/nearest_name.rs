//! Edit distance, and the nearest of a few names to a misspelt one.

/// Most characters of a misspelt text that are compared with names. The time for a name is quadratic in them.
pub(crate) const MAX_COMPARED: usize = 64;

/// Returns the end of an error message that suggests the name nearest to `text`: `; did you mean 'rank'?`. Empty if no name
/// is within an edit distance of a third of the text.
pub(crate) fn did_you_mean<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(text, names) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => String::new(),
    }
}

/// Returns the name with the smallest edit distance to `text` if that is at most a third of the text; the first of several.
/// A text longer than [`MAX_COMPARED`] is no misspelt name.
fn nearest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = text.to_lowercase().chars().collect();
    if letters.len() > MAX_COMPARED {
        return None;
    }
    let distances = names
        .into_iter()
        .map(|name| (edit_distance(&letters, &name.to_lowercase()), name));
    distances
        .filter(|(distance, _)| *distance <= letters.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the restricted Damerau-Levenshtein distance: the number of insertions, deletions, substitutions and swaps of
/// neighbours from `text` to `name`, or one more than the distance to a prefix of `name` if that is less.
///
/// Of `name` at most twice as many characters are compared as `text` has: a longer prefix is farther from the text than the
/// empty one.
pub(crate) fn edit_distance(text: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().take(2 * text.len() + 1).collect();
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
            ("ab", "xyabzzzzzzzz", 3),
            ("ab", "zzzzzzzzzzab", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn nearest_names_are_suggested() {
        let names = ["algorithm", "eta", "rank", "lambda_reg", "lambda_bias"];
        for (text, expected) in [
            ("rnak", Some("rank")),
            ("Rank", Some("rank")),
            ("lambda_rge", Some("lambda_reg")),
            ("algoritm", Some("algorithm")),
            ("iterations", None),
            ("x", None),
        ] {
            assert_eq!(nearest(text, names), expected, "{text}");
        }
        assert_eq!(did_you_mean("rnak", names), "; did you mean 'rank'?");
        assert_eq!(did_you_mean("iterations", names), "");
    }
}
